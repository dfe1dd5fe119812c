"""Files of results, written whole or not at all."""

from __future__ import annotations

import csv
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO

import numpy as np
import numpy.typing as npt

from aircl.data.arrays.npz import write_arrays
from aircl.storage.errors import OutputError
from aircl.storage.text import table_cell, visible
from aircl.storage.writing import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[Any]


def write_figure(figure: Figure, path: Path, mark: str) -> None:
    """Write a picture in the format that the name asks for, PNG if it asks for none; PNGs get the mark."""
    kind = path.suffix.removeprefix(".").lower() or "png"
    known = figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise OutputError(f"{path}: pictures of the type {kind!r} cannot be written. Choose one of {', '.join(known)}.")
    with replacing(path) as temporary:
        figure.savefig(temporary, format=kind, dpi=150, metadata={"Software": mark} if kind == "png" else None)


class Predictions(ABC):
    """Takes predictions batch by batch.

    Parameters
    ----------
    classes : array of shape (C,)
        The order of the columns of probabilities.
    proba, labelled : bool
        Whether probabilities, and true labels, come with the predictions.
    more : mapping of str to {"label", "number", "text"}
        Further columns.

    Attributes
    ----------
    columns : list of str
    changed : int
        How many cells were written with a ' in front, so that they are not taken for formulas.
    """

    changed = 0

    def __init__(self, classes: Array, proba: bool, labelled: bool, more: Mapping[str, str]) -> None:
        kinds = {"prediction": "label", **({"label": "label"} if labelled else {}), **more}
        self.columns = [*kinds, *[f"p_{label}" for label in classes.tolist()] * proba]
        self.kinds = [*kinds.values(), *["number"] * (len(self.columns) - len(kinds))]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._stack.__exit__(*problem)

    @abstractmethod
    def write(self, prediction: Array, label: Array | None, proba: Array | None, more: Mapping[str, Array]) -> None:
        """Add a batch; labels that are withheld are masked."""


class Lines(Predictions):
    """Standard output: one label a line; with probabilities, comma-separated values under a header.

    Parameters
    ----------
    classes : array of shape (C,)
    proba : bool
    raw : bool
        Whether labels are written as they are.
    more : mapping of str to {"label", "number", "text"}
    """

    def __init__(self, classes: Array, proba: bool, raw: bool, more: Mapping[str, str]) -> None:
        super().__init__(classes, proba, False, more)
        self._show: Callable[[Any], str] = str if raw else visible
        self._table = None
        if len(self.columns) > 1:
            self._table = _Table(sys.stdout, list(map(self._show, self.columns)), self.kinds, raw)

    def write(self, prediction: Array, label: Array | None, proba: Array | None, more: Mapping[str, Array]) -> None:
        """Print a batch."""
        if self._table is not None:
            self.changed += self._table.write(_cells(prediction, None, proba, more), self._show)
        else:
            sys.stdout.writelines(f"{self._show(value)}\n" for value in prediction.tolist())


class CsvFile(Predictions):
    """A csv file."""

    def __init__(
        self, path: Path, classes: Array, proba: bool, labelled: bool, raw: bool, more: Mapping[str, str]
    ) -> None:
        super().__init__(classes, proba, labelled, more)
        temporary = self._stack.enter_context(replacing(path))
        file = self._stack.enter_context(temporary.open("w", newline="", encoding="utf-8"))
        self._table = _Table(file, self.columns, self.kinds, raw)

    def write(self, prediction: Array, label: Array | None, proba: Array | None, more: Mapping[str, Array]) -> None:
        """Add a batch."""
        self.changed += self._table.write(_cells(prediction, label, proba, more))


class ParquetFile(Predictions):
    """A parquet file."""

    def __init__(
        self, path: Path, classes: Array, proba: bool, labelled: bool, raw: bool, more: Mapping[str, str]
    ) -> None:
        super().__init__(classes, proba, labelled, more)
        try:
            import pyarrow
            from pyarrow.parquet import ParquetWriter
        except ImportError:
            raise ValueError(
                f"writing {path} needs pyarrow. Install it: pip install 'aircl[parquet]', or write .csv or .npz."
            ) from None
        self._arrow = pyarrow
        types_of = {"label": pyarrow.array(classes[:0]).type, "number": pyarrow.float64(), "text": pyarrow.string()}
        types = [types_of[kind] for kind in self.kinds]
        self._schema = pyarrow.schema(list(zip(self.columns, types, strict=True)))
        temporary = self._stack.enter_context(replacing(path))
        self._writer = self._stack.enter_context(ParquetWriter(temporary, self._schema))

    def write(self, prediction: Array, label: Array | None, proba: Array | None, more: Mapping[str, Array]) -> None:
        """Add a batch."""
        columns = [
            column.tolist() if np.ma.isMA(column) else column for column in _cells(prediction, label, proba, more)
        ]
        arrays = [self._arrow.array(column, type_) for column, type_ in zip(columns, self._schema.types, strict=True)]
        self._writer.write_batch(self._arrow.record_batch(arrays, schema=self._schema))


class NpzFile(Predictions):
    """An npz file with the arrays `prediction`, `label`, `proba` and `classes`; it is held in memory until the end.

    Arrays have no cells without a value: `prediction` has labels that are withheld too, and `reason` tells which.
    """

    def __init__(
        self, path: Path, classes: Array, proba: bool, labelled: bool, raw: bool, more: Mapping[str, str]
    ) -> None:
        super().__init__(classes, proba, labelled, more)
        self._path, self._classes = path, classes
        self._parts: dict[str, list[Array]] = {"prediction": [classes[:0]]}
        if labelled:
            self._parts["label"] = [classes[:0]]
        if proba:
            self._parts["proba"] = [np.zeros((0, len(classes)))]
        empty = {"label": classes[:0], "number": np.zeros(0), "text": np.zeros(0, dtype="U1")}
        self._parts |= {name: [empty[kind]] for name, kind in more.items()}

    def write(self, prediction: Array, label: Array | None, proba: Array | None, more: Mapping[str, Array]) -> None:
        """Keep a batch."""
        parts = {"prediction": np.ma.getdata(prediction), "label": label, "proba": proba, **more}
        for name, part in parts.items():
            if part is not None:
                self._parts.setdefault(name, []).append(part)

    def __exit__(self, *problem: Any) -> None:
        if problem[0] is None:
            arrays = {name: np.concatenate(parts) for name, parts in self._parts.items()}
            with replacing(self._path) as temporary:
                write_arrays(temporary, {"classes": self._classes, **arrays})


OUTPUTS: dict[str, type[CsvFile] | type[ParquetFile] | type[NpzFile]] = {
    ".csv": CsvFile,
    ".parquet": ParquetFile,
    ".npz": NpzFile,
}


def _cells(prediction: Array, label: Array | None, proba: Array | None, more: Mapping[str, Array]) -> list[Array]:
    """Return a batch as columns."""
    return [prediction, *([] if label is None else [label]), *more.values(), *([] if proba is None else proba.T)]


class _Table:
    """Comma-separated values under a header."""

    def __init__(self, file: TextIO, columns: list[str], kinds: list[str], raw: bool) -> None:
        self._raw, self._kinds = raw, kinds
        self._writer = csv.writer(file, lineterminator="\n")
        self._writer.writerow(columns)

    def write(self, columns: list[Array], show: Callable[[Any], Any] = lambda cell: cell) -> int:
        """Add rows, and return how many cells were changed."""
        changed, cells = 0, []
        for column, kind in zip(columns, self._kinds, strict=True):
            values = column.tolist()
            if kind == "number":
                values = [f"{value:.6g}" for value in values]
            elif kind == "label" and not self._raw and column.dtype.kind == "U":
                plain = [None if value is None else show(value) for value in values]
                values = [None if value is None else table_cell(value) for value in plain]
                changed += sum(a != b for a, b in zip(plain, values, strict=True))
            cells.append(values)
        self._writer.writerows(zip(*cells, strict=True))
        return changed
