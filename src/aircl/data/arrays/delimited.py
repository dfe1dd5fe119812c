"""Delimited text, .csv and .tsv: a header line, numbers, and one column of labels."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from aircl.data.arrays.columns import align_columns, check_no_ids, select_columns
from aircl.data.arrays.labels import read_text_label, text_label_kinds
from aircl.data.arrays.source import Array, DataError, LabelKind, Request, Rows, Source, check_id
from aircl.data.arrays.tables import DelimitedTable


class DelimitedSource(Source):
    """A table of text. Labels are integers if all of them read as such, strings otherwise.

    Parameters
    ----------
    path : Path
    request : Request
    """

    def __init__(self, path: Path, request: Request) -> None:
        self.path = path
        self._table = DelimitedTable(path)
        columns = self._table.columns
        chosen, ignored = align_columns(path, select_columns(path, columns, request), request.names)
        if request.chooses_features:
            check_no_ids(self._table, chosen)
        self._features = [columns.index(name) for name in chosen]
        self._label = None if request.label is None else columns.index(request.label)
        self._weight = None if request.weight is None else columns.index(request.weight)
        self._id = None if request.id is None else columns.index(request.id)
        self.feature_names, self.ignored, self.n_features = tuple(chosen), tuple(ignored), len(chosen)

    def label_kinds(self, candidates: set[LabelKind]) -> set[LabelKind]:
        """Read the labels of the whole file, so that the kind is not decided by its beginning."""
        left = set(candidates)
        if len(left) == 1:  # reading will tell
            return left
        assert self._label is not None
        for _, row in self._table.records():
            left &= text_label_kinds(row[self._label])
            if left <= {"strings"}:
                break
        return left

    def _read(self, size: int, kind: LabelKind | None) -> Iterator[Rows]:
        pick: Any = itemgetter(*self._features)
        X = np.empty((size, len(self._features)))
        weight = np.empty(0 if self._weight is None else size)
        labels: list[Any] = []
        ids: list[str] = []
        filled = 0
        for line, row in self._table.records():
            numbers = pick(row)
            try:
                # Python would read 1_0 as 10, and digits of other scripts.
                text = numbers if isinstance(numbers, str) else "".join(numbers)
                if "_" in text or not text.isascii():
                    raise ValueError
                X[filled] = numbers
                if self._weight is not None:
                    weight[filled] = _number(row[self._weight])
            except ValueError:
                raise self._not_a_number(line, row) from None
            if kind is not None and self._label is not None:
                labels.append(read_text_label(f"{self.path}, line {line}", row[self._label], kind))
            if self._id is not None:
                ids.append(check_id(f"{self.path}, line {line}", row[self._id]))
            filled += 1
            if filled == size:
                yield self._filled(X, labels, weight, ids)
                X, weight, labels, ids, filled = np.empty_like(X), np.empty_like(weight), [], [], 0
        if filled:
            yield self._filled(X[:filled], labels, weight[:filled], ids)

    def _filled(self, X: Array, labels: list[Any], weight: Array, ids: list[str]) -> Rows:
        y = np.array(labels) if labels else None
        return X, y, None if self._weight is None else weight, None if self._id is None else ids

    def _not_a_number(self, line: int, row: list[str]) -> DataError:
        columns = list(zip(self.feature_names or (), self._features, strict=True))
        if self._weight is not None:
            columns.append(("of --sample-weight", self._weight))
        for name, position in columns:
            try:
                _number(row[position])
            except ValueError:
                return DataError(
                    f"{self.path}, line {line}: column {name!r} holds {row[position]!r}, which is not a number. "
                    "Say which columns are features with --features, which hold texts with --text, or paths of images "
                    "with --image."
                )
        return DataError(f"{self.path}, line {line}: the features are not numbers.")


def _number(text: str) -> float:
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)
