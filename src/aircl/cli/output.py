"""Files of results, written whole or not at all."""

from __future__ import annotations

import csv
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TextIO

import numpy as np
import numpy.typing as npt

from aircl.data.arrays.npz import write_arrays
from aircl.storage.text import table_cell, visible
from aircl.storage.writing import replacing

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Columns:
    """What is written of every row.

    Attributes
    ----------
    classes : array of shape (C,)
        The order of the columns of probabilities.
    proba, labelled : bool
        Whether probabilities, and true labels, come with the predictions.
    id_name : str or None
        What the names of rows are called, if they have some.
    more : mapping of str to {"label", "number", "text"}
        Further columns, and what is in them.
    """

    classes: Array
    proba: bool
    labelled: bool
    id_name: str | None
    more: Mapping[str, str]

    @property
    def kinds(self) -> dict[str, str]:
        """What is in each column, in order."""
        names = {} if self.id_name is None else {self.id_name: "text"}
        truth = {"label": "label"} if self.labelled else {}
        proba = {f"p_{label}": "number" for label in self.classes.tolist() * self.proba}
        return {**names, "prediction": "label", **truth, **self.more, **proba}


class Predictions(ABC):
    """Takes predictions batch by batch.

    Parameters
    ----------
    columns : Columns

    Attributes
    ----------
    changed : int
        How many cells were written with a ' in front, so that they are not taken for formulas.
    """

    changed = 0

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._stack.__exit__(*problem)

    def write(
        self,
        prediction: Array,
        label: Array | None,
        proba: Array | None,
        ids: Sequence[str] | None,
        more: Mapping[str, Array],
    ) -> None:
        """Add a batch; labels that are withheld are masked."""
        names = [] if self.columns.id_name is None else [np.array(ids or [], dtype=str)]
        truth = [label] if self.columns.labelled and label is not None else []
        self._write([*names, prediction, *truth, *more.values(), *([] if proba is None else proba.T)])

    @abstractmethod
    def _write(self, cells: list[Array]) -> None:
        """Add a batch, column by column."""


class Lines(Predictions):
    """Standard output: one label a line; with more than that, comma-separated values under a header.

    Parameters
    ----------
    columns : Columns
    raw : bool
        Whether labels are written as they are.
    """

    def __init__(self, columns: Columns, raw: bool) -> None:
        super().__init__(replace(columns, labelled=False))
        self._show: Callable[[Any], str] = str if raw else visible
        kinds = self.columns.kinds
        self._table = None
        if len(kinds) > 1:
            self._table = _Table(sys.stdout, list(map(self._show, kinds)), list(kinds.values()), raw)

    def _write(self, cells: list[Array]) -> None:
        if self._table is not None:
            self.changed += self._table.write(cells, self._show)
        else:
            sys.stdout.writelines(f"{self._show(value)}\n" for value in cells[0].tolist())

    def __exit__(self, *problem: Any) -> None:
        if problem[0] is None:
            sys.stdout.flush()  # what is said afterwards, on stderr, is read afterwards, and true
        super().__exit__(*problem)


class CsvFile(Predictions):
    """A csv file."""

    def __init__(self, path: Path, columns: Columns, raw: bool) -> None:
        super().__init__(columns)
        temporary = self._stack.enter_context(replacing(path))
        file = self._stack.enter_context(temporary.open("w", newline="", encoding="utf-8"))
        self._table = _Table(file, list(columns.kinds), list(columns.kinds.values()), raw)

    def _write(self, cells: list[Array]) -> None:
        self.changed += self._table.write(cells)


class ParquetFile(Predictions):
    """A parquet file."""

    def __init__(self, path: Path, columns: Columns, raw: bool) -> None:
        super().__init__(columns)
        try:
            import pyarrow
            from pyarrow.parquet import ParquetWriter
        except ImportError:
            raise ValueError(
                f"writing {path} needs pyarrow. Install it: pip install 'aircl[parquet]', or write .csv or .npz."
            ) from None
        self._arrow = pyarrow
        label = pyarrow.array(columns.classes[:0]).type
        types = {"label": label, "number": pyarrow.float64(), "text": pyarrow.string()}
        self._schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.kinds.items()])
        temporary = self._stack.enter_context(replacing(path))
        self._writer = self._stack.enter_context(ParquetWriter(temporary, self._schema))

    def _write(self, cells: list[Array]) -> None:
        columns = [column.tolist() if np.ma.isMA(column) else column for column in cells]
        arrays = [self._arrow.array(column, type_) for column, type_ in zip(columns, self._schema.types, strict=True)]
        self._writer.write_batch(self._arrow.record_batch(arrays, schema=self._schema))


class NpzFile(Predictions):
    """An npz file with the arrays `prediction`, `label`, `proba`, `id` and `classes`, held in memory until the end.

    Arrays have no cells without a value: `prediction` has labels that are withheld too, and `reason` tells which.
    """

    def __init__(self, path: Path, columns: Columns, raw: bool) -> None:
        super().__init__(columns)
        self._path = path
        self._batches: list[list[Array]] = []

    def _write(self, cells: list[Array]) -> None:
        self._batches.append([np.ma.getdata(column) for column in cells])

    def __exit__(self, *problem: Any) -> None:
        if problem[0] is None:
            classes, kinds = self.columns.classes, self.columns.kinds
            empty = {"label": classes[:0], "number": np.zeros(0), "text": np.zeros(0, dtype="U1")}
            parts = zip(*([empty[kind] for kind in kinds.values()], *self._batches), strict=True)
            arrays = dict(zip(kinds, map(np.concatenate, parts), strict=True))
            if self.columns.id_name is not None:
                arrays = {"id": arrays.pop(self.columns.id_name), **arrays}
            if self.columns.proba:
                arrays["proba"] = np.stack([arrays.pop(f"p_{label}") for label in classes.tolist()], axis=1)
            with replacing(self._path) as temporary:
                write_arrays(temporary, {"classes": classes, **arrays})


OUTPUTS: dict[str, type[CsvFile] | type[ParquetFile] | type[NpzFile]] = {
    ".csv": CsvFile,
    ".parquet": ParquetFile,
    ".npz": NpzFile,
}


class _Table:
    """Comma-separated values under a header."""

    def __init__(self, file: TextIO, columns: list[str], kinds: list[str], raw: bool) -> None:
        self._raw, self._kinds = raw, kinds
        self._writer = csv.writer(file, lineterminator="\n")
        self._writer.writerow(columns)

    def write(self, cells: list[Array], show: Callable[[Any], Any] = lambda cell: cell) -> int:
        """Add rows, and return how many cells were changed."""
        changed, columns = 0, []
        for column, kind in zip(cells, self._kinds, strict=True):
            values = column.tolist()
            if kind == "number":
                values = [f"{value:.6g}" for value in values]
            elif not self._raw and column.dtype.kind == "U":
                plain = [None if value is None else show(value) for value in values]
                values = [None if value is None else table_cell(value) for value in plain]
                changed += sum(a != b for a, b in zip(plain, values, strict=True))
            columns.append(values)
        self._writer.writerows(zip(*columns, strict=True))
        return changed
