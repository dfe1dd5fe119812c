"""Validation of labels: strings, whole numbers or booleans, of one sortable type."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from aircl.engine.backend import Array
from aircl.engine.labels import ALLOWED, KINDS
from aircl.expansion.tensors import on_cpu


def check_labels(y: Any) -> Array:
    """Return y as a clean 1-d array of strings, whole numbers or booleans, or say what is wrong with it."""
    y = on_cpu(y)
    if isinstance(y, list | tuple) and not any(isinstance(label, list | tuple | np.ndarray) for label in y[:1]):
        # np.asarray([1, "a"]) would quietly turn the number into a string.
        y = np.fromiter(y, dtype=object, count=len(y)) if len(y) else np.zeros(0)
    y = np.asarray(y)  # pandas' own types become objects here, so that no boolean is taken for a number
    if y.dtype.kind == "T":  # NumPy's strings of variable length
        y = y.astype(object)
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "O":
        y = _from_objects(y)
    if y.dtype.kind not in KINDS:
        raise ValueError(f"Unknown label type: dtype {y.dtype}. {ALLOWED}")
    if y.dtype.kind == "u":
        if len(y) and y.max() > np.iinfo(np.int64).max:
            raise ValueError(f"the label {y.max()} is too large for a 64-bit integer. {ALLOWED}")
        y = y.astype(np.int64)  # beside signed ones, NumPy would turn them into floats
    if y.dtype.kind == "f":
        if not np.all(np.isfinite(y)):
            raise ValueError(f"Input y contains NaN or infinity. {ALLOWED}")
        check_classification_targets(y)
    return np.asarray(y)


def _from_objects(y: Array) -> Array:
    """Give an object array the dtype that its values all have."""
    types = set(map(type, y.tolist()))
    try:
        if all(issubclass(t, str) for t in types):
            if any("\0" in label for label in y.tolist()):  # NumPy drops it at the end, and joins what is not equal
                raise ValueError(f"y has labels with a NUL character in them. {ALLOWED}")
            return y.astype(str)
        if all(issubclass(t, bool | np.bool_) for t in types):
            return y.astype(bool)
        if bool not in types and all(issubclass(t, int | np.integer) for t in types):
            return y.astype(np.int64)
        if bool not in types and all(issubclass(t, int | float | np.integer | np.floating) for t in types):
            return y.astype(np.float64)
    except OverflowError:
        raise ValueError(f"y has labels that are too large for a 64-bit integer. {ALLOWED}") from None
    names = ", ".join(sorted(t.__name__ for t in types))
    raise ValueError(f"Unknown label type: y mixes values of the types {names}. {ALLOWED}")
