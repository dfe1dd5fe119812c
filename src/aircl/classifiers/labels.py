"""Labels of one sortable type, numbered in the order they arrive."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from aircl.engine.backend import Array
from aircl.engine.tensors import on_cpu

_KINDS = {"b": "booleans", "i": "numbers", "u": "numbers", "f": "numbers", "U": "strings"}
_ALLOWED = "Labels must be all strings, all whole numbers or all booleans."


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
    if y.dtype.kind not in _KINDS:
        raise ValueError(f"Unknown label type: dtype {y.dtype}. {_ALLOWED}")
    if y.dtype.kind == "u":
        if len(y) and y.max() > np.iinfo(np.int64).max:
            raise ValueError(f"the label {y.max()} is too large for a 64-bit integer. {_ALLOWED}")
        y = y.astype(np.int64)  # beside signed ones, NumPy would turn them into floats
    if y.dtype.kind == "f":
        if not np.all(np.isfinite(y)):
            raise ValueError(f"Input y contains NaN or infinity. {_ALLOWED}")
        check_classification_targets(y)
    return np.asarray(y)


def _from_objects(y: Array) -> Array:
    """Give an object array the dtype that its values all have."""
    types = set(map(type, y.tolist()))
    try:
        if all(issubclass(t, str) for t in types):
            if any("\0" in label for label in y.tolist()):  # NumPy drops it at the end, and joins what is not equal
                raise ValueError(f"y has labels with a NUL character in them. {_ALLOWED}")
            return y.astype(str)
        if all(issubclass(t, bool | np.bool_) for t in types):
            return y.astype(bool)
        if bool not in types and all(issubclass(t, int | np.integer) for t in types):
            return y.astype(np.int64)
        if bool not in types and all(issubclass(t, int | float | np.integer | np.floating) for t in types):
            return y.astype(np.float64)
    except OverflowError:
        raise ValueError(f"y has labels that are too large for a 64-bit integer. {_ALLOWED}") from None
    names = ", ".join(sorted(t.__name__ for t in types))
    raise ValueError(f"Unknown label type: y mixes values of the types {names}. {_ALLOWED}")


class Labels:
    """The labels seen so far, by slot, and those that were declared but not seen yet.

    Strings keep their full length when longer ones arrive: the array is widened, never written into.
    """

    def __init__(self) -> None:
        self.seen: Array = np.zeros(0, dtype=np.int64)  # by slot
        self.declared: Array = np.zeros(0, dtype=np.int64)
        self._order: Array = np.zeros(0, dtype=np.intp)  # slots by ascending label
        self._sorted: Array = self.seen

    @classmethod
    def of(cls, declared: Array) -> Labels:
        """Return labels that are declared and not seen."""
        labels = cls()
        labels.declare(declared)
        return labels

    def __len__(self) -> int:
        """Return the number of seen classes."""
        return len(self.seen)

    @property
    def order(self) -> Array:
        """The slots in ascending order of their labels, shape (C,)."""
        return self._order

    @property
    def classes(self) -> Array:
        """Seen and declared labels, sorted."""
        return np.union1d(self._sorted, self.declared) if len(self.declared) else self._sorted

    @property
    def is_seen(self) -> Array:
        """Which of `classes` have been seen, boolean."""
        return np.isin(self.classes, self._sorted)

    def cast(self, y: Array) -> Array:
        """Return y in the type of the labels so far, or refuse it."""
        for known in (self.seen, self.declared):
            if len(known) == 0 or len(y) == 0:
                continue
            before, now = _KINDS[known.dtype.kind], _KINDS[y.dtype.kind]
            if before != now:
                raise ValueError(f"y holds {now}, but the labels so far are {before} ({known[:3]}, ..). {_ALLOWED}")
            if known.dtype.kind in "iu" and y.dtype.kind == "f":
                y = y.astype(np.int64)
        return y

    def match(self, values: Array) -> Array:
        """Return the slot of each value, -1 where it was never seen. O(k log C)."""
        if len(self._sorted) == 0:
            return np.full(len(values), -1, dtype=np.intp)
        place = np.minimum(np.searchsorted(self._sorted, values), len(self._sorted) - 1)
        return np.where(self._sorted[place] == values, self._order[place], -1)

    def add(self, values: Array) -> None:
        """Give new labels the next slots."""
        self._set(np.concatenate([self.seen, values]) if len(self.seen) else np.array(values))

    def drop(self, slots: list[int]) -> None:
        """Take labels out; the later slots move up."""
        gone = self.seen[slots]
        self._set(np.delete(self.seen, slots))
        self.declared = np.setdiff1d(self.declared, gone)

    def declare(self, values: Array) -> None:
        """Announce labels that may come."""
        self.declared = np.union1d(self.declared, values) if len(self.declared) else np.unique(values)

    def _set(self, seen: Array) -> None:
        self.seen = seen
        self._order = np.argsort(seen, kind="stable")
        self._sorted = seen[self._order]
