"""Tables of texts, and of paths of images."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from aircl.data.arrays import DataError, LabelKind
from aircl.data.arrays.columns import listed
from aircl.data.arrays.labels import read_text_label, read_typed_label, text_label_kinds, typed_label_kinds
from aircl.data.arrays.source import Array, check_id, is_broken
from aircl.data.arrays.tables import TABLES, Table
from aircl.data.samples import Texts, UnnamedImages
from aircl.inputs import is_empty
from aircl.raw.columns import Columns
from aircl.raw.encoded import BLOCK_ROWS, Block, EncodedSource
from aircl.raw.frozen import FrozenBackbone


def open_table(path: Path) -> Table:
    r"""Look into a table.

    Parameters
    ----------
    path : Path
        A .csv, .tsv, .jsonl or .parquet file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.raw.tables import open_table
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.jsonl").write_text('{"text": "where is my card", "intent": "card"}\n')
    ...     open_table(Path(folder, "a.jsonl")).columns
    ['text', 'intent']
    """
    if path.suffix.lower() not in TABLES:
        raise DataError(f"{path} is not a table of texts or of paths. Use {', '.join(TABLES)}.")
    return TABLES[path.suffix.lower()](path)


class _TableSource(EncodedSource):
    """Rows of a table.

    Parameters
    ----------
    table : Table
    columns : Columns
    backbone : FrozenBackbone
    """

    def __init__(self, table: Table, columns: Columns, backbone: FrozenBackbone) -> None:
        super().__init__(backbone)
        columns.check(table)
        self.path, self.n_rows = table.path, table.n_rows
        self._table, self._columns = table, columns

    def label_kinds(self, candidates: set[LabelKind]) -> set[LabelKind]:
        """Read the labels of the whole file, so that the kind is not decided by its beginning."""
        left = set(candidates)
        if len(left) == 1:  # reading will tell
            return left
        assert self._columns.label is not None
        for place, (label,) in self._table.rows([self._columns.label]):
            left &= self._kinds_of(f"{self.path}, {place}", label)
            if left <= {"strings"}:
                break
        return left

    def _blocks(self, kind: LabelKind | None) -> Iterator[Block]:
        names = self._columns.names
        rows = self._table.rows(names)
        while block := list(islice(rows, BLOCK_ROWS)):
            places = [f"{self.path}, {place}" for place, _ in block]
            cells = dict(zip(names, zip(*(row for _, row in block), strict=True), strict=True))
            yield self._block(places, cells, kind)

    def _block(self, places: list[str], cells: dict[str, tuple[Any, ...]], kind: LabelKind | None) -> Block:
        columns = self._columns
        y = weight = ids = None
        if kind is not None and columns.label is not None:
            y = np.array([self._label(*pair, kind) for pair in zip(places, cells[columns.label], strict=True)])
        if columns.weight is not None:
            weight = self._weights(places, cells[columns.weight])
        if columns.id is not None:
            ids = [check_id(*pair) for pair in zip(places, cells[columns.id], strict=True)]
        inputs, raw = self._inputs(places, cells)
        return Block(inputs, y, weight, ids, raw)

    def _inputs(self, places: list[str], cells: dict[str, tuple[Any, ...]]) -> tuple[Texts | UnnamedImages, list[str]]:
        raise NotImplementedError

    def _kinds_of(self, place: str, label: Any) -> set[LabelKind]:
        return typed_label_kinds(place, label) if self._table.is_typed else text_label_kinds(label)

    def _label(self, place: str, label: Any, kind: LabelKind) -> Any:
        read = read_typed_label if self._table.is_typed else read_text_label
        return read(place, label, kind)

    def _weights(self, places: list[str], cells: tuple[Any, ...]) -> Array:
        weights = []
        for place, cell in zip(places, cells, strict=True):
            try:
                weights.append(float(cell))
            except (TypeError, ValueError, OverflowError):
                raise DataError(f"{place}: the sample weight {cell!r:.40} is not a number.") from None
        return np.array(weights)


class TextTable(_TableSource):
    r"""Texts of a table; several columns are joined.

    Parameters
    ----------
    table : Table
    columns : Columns
    backbone : FrozenBackbone

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.raw.columns import Columns
    >>> from aircl.raw.frozen import FrozenBackbone
    >>> from aircl.raw.tables import TextTable, open_table
    >>> backbone = FrozenBackbone.create("char-ngrams", "texts", None)
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("text,intent\nwhere is my card,card\n")
    ...     source = TextTable(open_table(Path(folder, "a.csv")), Columns("intent", ("text",)), backbone)
    ...     [(batch.X.shape, batch.y.tolist()) for batch in source.batches(10, "strings")]
    [((1, 1024), ['card'])]
    """

    def _inputs(self, places: list[str], cells: dict[str, tuple[Any, ...]]) -> tuple[Texts | UnnamedImages, list[str]]:
        texts = []
        for place, parts in zip(places, zip(*(cells[name] for name in self._columns.text), strict=True), strict=True):
            if wrong := [part for part in parts if not (part is None or isinstance(part, str))]:
                raise DataError(f"{place}: {wrong[0]!r:.40} is not a text. Name columns of texts with --text.")
            text = "\n".join(part for part in parts if part and not is_empty(part))
            if not text:
                raise DataError(f"{place}: there is no text in {listed(self._columns.text)}. Fill or drop such rows.")
            if is_broken(text):
                raise DataError(f"{place}: the text {text[:40]!r} is not Unicode: half of a character.")
            texts.append(text)
        return Texts(texts), texts


class ImageTable(_TableSource):
    r"""Images whose paths are in a table, relative to the folder of its file or else to the working directory.

    Parameters
    ----------
    table : Table
    columns : Columns
    backbone : FrozenBackbone

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from PIL import Image
    >>> from aircl.raw.columns import Columns
    >>> from aircl.raw.frozen import FrozenBackbone
    >>> from aircl.raw.tables import ImageTable, open_table
    >>> with TemporaryDirectory() as folder:
    ...     Image.new("L", (4, 3), 255).save(Path(folder, "a.png"))
    ...     _ = Path(folder, "a.csv").write_text("photo,label\na.png,cat\n")
    ...     backbone = FrozenBackbone.create("identity", "images", np.zeros((1, 3, 4, 3), np.uint8))
    ...     source = ImageTable(open_table(Path(folder, "a.csv")), Columns("label", image="photo"), backbone)
    ...     [(batch.X.shape, batch.y.tolist()) for batch in source.batches(10, "strings")]
    [((1, 36), ['cat'])]
    """

    def _inputs(self, places: list[str], cells: dict[str, tuple[Any, ...]]) -> tuple[Texts | UnnamedImages, list[Any]]:
        assert self._columns.image is not None
        pairs = zip(places, cells[self._columns.image], strict=True)
        names = [find_image(self._table, place, name) for place, name in pairs]
        return UnnamedImages(self.path.parent, names), [self.path.parent / name for name in names]


def find_image(table: Table, place: str, name: Any) -> str:
    """Return where an image of a table is: as a path below the folder of its file, or as one of its own."""
    if isinstance(name, str) and name:
        if (table.path.parent / name).is_file():
            return name
        if Path(name).is_file():
            return str(Path(name).absolute())
    raise DataError(
        f"{place}: there is no image {name!r:.80}. Paths are relative to {table.path.parent} or to the working "
        "directory."
    )


def first_image(table: Table, column: str) -> Any:
    """Return the first image of a table as a batch of one, or None if there is no row."""
    for place, (name,) in table.rows([column]):
        found = find_image(table, f"{table.path}, {place}", name)
        return UnnamedImages(table.path.parent, [found])[np.arange(1)]
    return None
