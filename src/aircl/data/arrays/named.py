"""Files of named arrays: a matrix of features and a vector of labels side by side."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from aircl.data.arrays.columns import listed
from aircl.data.arrays.source import (
    MAX_LABEL,
    Array,
    DataError,
    LabelKind,
    Request,
    Rows,
    Source,
    check_id,
    float_dtype,
    kind_of,
)


@dataclass(frozen=True)
class Form:
    """Shape and type of an array that was not read."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Bytes that the array takes."""
        return self.dtype.itemsize * math.prod(self.shape)


class NamedArrays(Source):
    """A file of arrays. The features are the array that is asked for, or `X`, or the only one with two dimensions.

    Parameters
    ----------
    path : Path
    request : Request
    """

    def __init__(self, path: Path, request: Request) -> None:
        self.path = path
        forms = self._forms()
        self._features = _choose_features(path, forms, request.features)
        form = self._checked(forms, self._features)
        if len(form.shape) != 2 or form.dtype.kind not in "fiub":
            raise DataError(
                f"{path}: the features {self._features!r} are of type {form.dtype} and shape {form.shape}. They should "
                "be numbers, one row a sample."
            )
        self.n_rows, self.n_features = form.shape
        self._label = request.label
        self._label_form: Form | None = None
        if request.label is not None:
            if request.label not in forms:
                raise DataError(f"{path} has no array {request.label!r} for --label. It has {listed(sorted(forms))}.")
            self._label_form = self._checked(forms, request.label)
            if self._label_form.shape != (self.n_rows,):
                raise DataError(
                    f"{path}: the labels {request.label!r} have shape {self._label_form.shape}, but there are "
                    f"{self.n_rows} rows of features {self._features!r}: the shape should be ({self.n_rows},)."
                )
        self._weight = request.weight
        if request.weight is not None:
            if request.weight not in forms:
                raise DataError(
                    f"{path} has no array {request.weight!r} for --sample-weight. It has {listed(sorted(forms))}."
                )
            form = self._checked(forms, request.weight)
            if form.shape != (self.n_rows,) or form.dtype.kind not in "fiub":
                raise DataError(
                    f"{path}: the sample weights {request.weight!r} are of type {form.dtype} and shape {form.shape}. "
                    f"They should be numbers of the shape ({self.n_rows},)."
                )

        self._id = request.id
        if request.id is not None:
            if request.id not in forms:
                raise DataError(f"{path} has no array {request.id!r} for --id. It has {listed(sorted(forms))}.")
            form = self._checked(forms, request.id)
            if form.shape != (self.n_rows,) or form.dtype.kind not in "iuSU":
                raise DataError(
                    f"{path}: the ids {request.id!r} are of type {form.dtype} and shape {form.shape}. They should be "
                    f"whole numbers or texts of the shape ({self.n_rows},)."
                )

    @abstractmethod
    def _forms(self) -> Mapping[str, Form]:
        """Return shape and type of every array in the file."""

    @abstractmethod
    def _blocks(self, name: str, size: int) -> Iterator[Array]:
        """Yield an array from its beginning, `size` rows at a time."""

    def label_kinds(self, candidates: set[LabelKind]) -> set[LabelKind]:
        """Return the one kind that the array's type stands for."""
        assert self._label_form is not None
        return candidates & {kind_of(self.path, self._label_form.dtype)}

    def _read(self, size: int, kind: LabelKind | None) -> Iterator[Rows]:
        labelled = kind is not None and self._label is not None
        labels: Iterator[Array | None] = self._blocks(str(self._label), size) if labelled else repeat(None)
        weights: Iterator[Array | None] = repeat(None) if self._weight is None else self._blocks(self._weight, size)
        ids: Iterator[Array | None] = repeat(None) if self._id is None else self._blocks(self._id, size)
        start = 0
        for X, y, weight, id_ in zip(self._blocks(self._features, size), labels, weights, ids, strict=False):
            if y is not None:
                y = self._typed_labels(y.astype(str) if y.dtype.kind == "S" else y, start)
            weight = None if weight is None else weight.astype(np.float64)
            names = None if id_ is None else self._names(id_, start)
            yield np.ascontiguousarray(X, dtype=float_dtype(X.dtype)), y, weight, names
            start += len(X)

    def _names(self, ids: Array, start: int) -> list[str]:
        values = (ids.astype(str) if ids.dtype.kind == "S" else ids).tolist()
        return [check_id(f"{self.path}, row {row}", value) for row, value in enumerate(values, start + 1)]

    def _checked(self, forms: Mapping[str, Form], name: str) -> Form:
        form = forms[name]
        if form.dtype.hasobject:
            raise DataError(
                f"{self.path}: the array {name!r} holds Python objects, which only unpickling could read, and that may "
                "run code. Save it as numbers, or labels as strings: y.astype(str)."
            )
        if any(length < 0 for length in form.shape):
            raise DataError(f"{self.path}: the array {name!r} has the shape {form.shape}. The file is damaged.")
        if form.dtype.kind in "SU" and not 1 <= form.dtype.itemsize <= 4 * MAX_LABEL:
            raise DataError(
                f"{self.path}: the array {name!r} is of type {form.dtype}. Labels are texts of 1 to {MAX_LABEL:,} "
                "characters."
            )
        return form


def _choose_features(path: Path, forms: Mapping[str, Form], features: str | None) -> str:
    if features is not None:
        if features not in forms:
            raise DataError(f"{path} has no array {features!r} for --features. It has {listed(sorted(forms))}.")
        return features
    matrices = sorted(name for name, form in forms.items() if len(form.shape) == 2)
    if "X" in forms:
        return "X"
    if len(matrices) == 1:
        return matrices[0]
    raise DataError(
        f"{path} has no array 'X', and {len(matrices)} arrays with two dimensions ({listed(matrices)}). "
        "Say which one holds the features with --features."
    )
