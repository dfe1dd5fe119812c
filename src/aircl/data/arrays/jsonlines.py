"""Lines of JSON: numbers by name, or one list of numbers per line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from aircl.data.arrays.columns import align_columns, check_no_ids, select_columns
from aircl.data.arrays.labels import read_typed_label, typed_label_kinds
from aircl.data.arrays.source import DataError, LabelKind, Request, Rows, Source, check_id
from aircl.data.arrays.tables import JsonLinesTable, Row


class JsonLinesSource(Source):
    """One JSON object per line; the features are numbers by name, or one list of equal length.

    Parameters
    ----------
    path : Path
    request : Request
    """

    def __init__(self, path: Path, request: Request) -> None:
        self.path = path
        self._table = JsonLinesTable(path)
        self._request = request
        selected = select_columns(path, self._table.columns, request)
        (first,) = self._table.head(selected, 1)
        self._is_list = len(selected) == 1 and isinstance(first[0], list)
        if self._is_list:
            self._columns, self.n_features = selected, len(first[0])
            return
        self._columns, ignored = align_columns(path, selected, request.names)
        if request.chooses_features:
            check_no_ids(self._table, self._columns)
        self.feature_names, self.ignored = tuple(self._columns), tuple(ignored)
        self.n_features = len(self._columns)

    def label_kinds(self, candidates: set[LabelKind]) -> set[LabelKind]:
        """Read the labels of the whole file, so that the kind is not decided by its beginning."""
        left = set(candidates)
        assert self._request.label is not None
        for place, (label,) in self._table.rows([self._request.label]):
            left &= typed_label_kinds(f"{self.path}, {place}", label)
            if not left:
                break
        return left

    def _read(self, size: int, kind: LabelKind | None) -> Iterator[Rows]:
        request = self._request
        label = request.label if kind is not None else None
        others = [name for name in (label, request.weight, request.id) if name is not None]
        rows = self._table.rows([*self._columns, *others])
        n = len(self._columns)
        while block := list(islice(rows, size)):
            places = [f"{self.path}, {place}" for place, _ in block]
            X = np.array([self._features(place, row[:n]) for place, (_, row) in zip(places, block, strict=True)])
            values = dict(zip(others, zip(*(row[n:] for _, row in block), strict=True), strict=True)) if others else {}
            y = weight = ids = None
            if kind is not None and label is not None:
                y = np.array([read_typed_label(*pair, kind) for pair in zip(places, values[label], strict=True)])
            if request.weight is not None:
                pairs = zip(places, values[request.weight], strict=True)
                weight = np.array([_numbers(place, [value])[0] for place, value in pairs])
            if request.id is not None:
                ids = [check_id(*pair) for pair in zip(places, values[request.id], strict=True)]
            yield X, y, weight, ids

    def _features(self, place: str, cells: Row) -> list[float]:
        if not self._is_list:
            return _numbers(place, cells)
        values = cells[0]
        if not isinstance(values, list) or len(values) != self.n_features:
            raise DataError(f"{place}: {values!r:.40} is not a list of {self.n_features} numbers, as the first one is.")
        return _numbers(place, values)


def _numbers(place: str, values: Row) -> list[float]:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise DataError(
                f"{place}: {value!r:.40} is not a number. Say which columns are features with --features, which "
                "hold texts with --text, or paths of images with --image."
            )
    try:
        return [float(value) for value in values]
    except OverflowError:
        raise DataError(f"{place}: there is a number that is too large.") from None
