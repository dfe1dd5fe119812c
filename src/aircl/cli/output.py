"""Files of results, written whole or not at all."""

from __future__ import annotations

import csv
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
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
    id_name : str or None
        What the names of rows are called, if they have some.

    Attributes
    ----------
    columns : list of str
    changed : int
        How many cells were written with a ' in front, so that they are not taken for formulas.
    """

    changed = 0

    def __init__(self, classes: Array, proba: bool, labelled: bool, id_name: str | None) -> None:
        self.columns = [] if id_name is None else [id_name]
        self.columns += ["prediction"] + ["label"] * labelled + [f"p_{label}" for label in classes.tolist()] * proba
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._stack.__exit__(*problem)

    @abstractmethod
    def write(
        self, prediction: Array, label: Array | None, proba: Array | None, ids: Sequence[str] | None = None
    ) -> None:
        """Add a batch."""


class Lines(Predictions):
    """Standard output: one label a line; with probabilities or names, comma-separated values under a header.

    Parameters
    ----------
    classes : array of shape (C,)
    proba : bool
    raw : bool
        Whether labels are written as they are.
    id_name : str or None
    """

    def __init__(self, classes: Array, proba: bool, raw: bool, id_name: str | None = None) -> None:
        super().__init__(classes, proba, False, id_name)
        self._show: Callable[[Any], str] = str if raw else visible
        self._table = _Table(sys.stdout, list(map(self._show, self.columns)), raw) if len(self.columns) > 1 else None

    def write(
        self, prediction: Array, label: Array | None, proba: Array | None, ids: Sequence[str] | None = None
    ) -> None:
        """Print a batch."""
        if self._table is not None:
            self.changed += self._table.write(prediction, None, proba, ids, self._show)
        else:
            sys.stdout.writelines(f"{self._show(value)}\n" for value in prediction.tolist())


class CsvFile(Predictions):
    """A csv file."""

    def __init__(
        self, path: Path, classes: Array, proba: bool, labelled: bool, raw: bool, id_name: str | None = None
    ) -> None:
        super().__init__(classes, proba, labelled, id_name)
        temporary = self._stack.enter_context(replacing(path))
        file = self._stack.enter_context(temporary.open("w", newline="", encoding="utf-8"))
        self._table = _Table(file, self.columns, raw)

    def write(
        self, prediction: Array, label: Array | None, proba: Array | None, ids: Sequence[str] | None = None
    ) -> None:
        """Add a batch."""
        self.changed += self._table.write(prediction, label, proba, ids)


class ParquetFile(Predictions):
    """A parquet file."""

    def __init__(
        self, path: Path, classes: Array, proba: bool, labelled: bool, raw: bool, id_name: str | None = None
    ) -> None:
        super().__init__(classes, proba, labelled, id_name)
        try:
            import pyarrow
            from pyarrow.parquet import ParquetWriter
        except ImportError:
            raise ValueError(
                f"writing {path} needs pyarrow. Install it: pip install 'aircl[parquet]', or write .csv or .npz."
            ) from None
        self._arrow = pyarrow
        label_type = pyarrow.array(classes[:0]).type
        n_labels = 1 + labelled
        types = [pyarrow.string()] * (id_name is not None) + [label_type] * n_labels
        types += [pyarrow.float64()] * (len(self.columns) - len(types))
        self._schema = pyarrow.schema(list(zip(self.columns, types, strict=True)))
        temporary = self._stack.enter_context(replacing(path))
        self._writer = self._stack.enter_context(ParquetWriter(temporary, self._schema))

    def write(
        self, prediction: Array, label: Array | None, proba: Array | None, ids: Sequence[str] | None = None
    ) -> None:
        """Add a batch."""
        columns: list[Any] = [] if ids is None else [ids]
        columns += [prediction] + ([] if label is None else [label]) + ([] if proba is None else list(proba.T))
        arrays = [self._arrow.array(column, type_) for column, type_ in zip(columns, self._schema.types, strict=True)]
        self._writer.write_batch(self._arrow.record_batch(arrays, schema=self._schema))


class NpzFile(Predictions):
    """An npz file with the arrays `prediction`, `label`, `proba`, `id` and `classes`, held in memory until the end."""

    def __init__(
        self, path: Path, classes: Array, proba: bool, labelled: bool, raw: bool, id_name: str | None = None
    ) -> None:
        super().__init__(classes, proba, labelled, id_name)
        self._path, self._classes = path, classes
        self._parts: dict[str, list[Array]] = {"prediction": [classes[:0]]}
        if labelled:
            self._parts["label"] = [classes[:0]]
        if proba:
            self._parts["proba"] = [np.zeros((0, len(classes)))]
        if id_name is not None:
            self._parts["id"] = [np.array([], dtype=str)]

    def write(
        self, prediction: Array, label: Array | None, proba: Array | None, ids: Sequence[str] | None = None
    ) -> None:
        """Keep a batch."""
        names = None if ids is None else np.array(ids, dtype=str)
        for name, part in (("prediction", prediction), ("label", label), ("proba", proba), ("id", names)):
            if part is not None:
                self._parts[name].append(part)

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


class _Table:
    """Comma-separated values under a header."""

    def __init__(self, file: TextIO, columns: list[str], raw: bool) -> None:
        self._raw = raw
        self._writer = csv.writer(file, lineterminator="\n")
        self._writer.writerow(columns)

    def write(
        self,
        prediction: Array,
        label: Array | None,
        proba: Array | None,
        ids: Sequence[str] | None = None,
        show: Callable[[Any], Any] = lambda cell: cell,
    ) -> int:
        """Add rows, and return how many cells were changed."""
        columns = [] if ids is None else [list(ids)]
        columns.append(prediction.tolist())
        if label is not None:
            columns.append(label.tolist())
        changed = 0
        if not self._raw and (ids is not None or prediction.dtype.kind == "U"):
            plain = [[show(cell) if isinstance(cell, str) else cell for cell in column] for column in columns]
            columns = [list(map(table_cell, column)) for column in plain]
            changed = sum(
                a != b for old, new in zip(plain, columns, strict=True) for a, b in zip(old, new, strict=True)
            )
        if proba is not None:
            columns += [[f"{value:.6g}" for value in column] for column in proba.T.tolist()]
        self._writer.writerows(zip(*columns, strict=True))
        return changed
