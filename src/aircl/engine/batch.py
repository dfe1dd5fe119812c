"""Rows on their way into the statistics: collected until there are enough, then sorted by class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from aircl.engine.backend import NUMPY, Array, NumpyBackend, backend_of

# Small batches are collected, since one rank-4096 update costs far less than 64 updates of rank 64 ..
PENDING_ROWS = 4096
# .. but not beyond this many bytes, which is enough for wide rows.
PENDING_BYTES = 64 * 2**20


@dataclass(frozen=True)
class ClassRows:
    """Rows sorted by class: `rows[start[i]:stop[i]]` belong to `slots[i]`. The rows are scaled by sqrt(weight)."""

    rows: Array  # (n, f)
    root_weight: Array | None  # (n,) square roots of the sample weights; None: all one
    slots: Array  # (k,) each touched class once
    start: Array  # (k,)
    stop: Array  # (k,)

    @property
    def count(self) -> Array:
        """The weight of each touched class, shape (k,)."""
        if self.root_weight is None:
            return (self.stop - self.start).astype(np.float64)
        return np.add.reduceat(np.square(self.root_weight), self.start)

    @property
    def sums(self) -> Array:
        """The weighted sum of the rows of each touched class, shape (k, f), float64."""
        return backend_of(self.rows).class_sums(self.rows, self.start, self.root_weight)

    def subtract_means(self, mean: Array) -> Array:
        """Subtract the means of the touched classes (k, f) from the (weighted) rows, in place; return the rows."""
        backend_of(self.rows).subtract_means(self.rows, mean, self.start, self.root_weight)
        return self.rows

    def __iter__(self) -> Iterator[tuple[int, Array]]:
        """Yield each touched slot with its rows."""
        for slot, start, stop in zip(self.slots.tolist(), self.start.tolist(), self.stop.tolist(), strict=True):
            yield slot, self.rows[start:stop]


def sort_by_class(X: Array, slots: Array, weight: Array | None, out: Array | None = None) -> ClassRows:
    """Bring the rows of each class together and scale them by the square root of their weight."""
    order = np.argsort(slots, kind="stable")
    backend = backend_of(X)
    rows = backend.take(X, order, out)
    root = None
    if weight is not None:
        root = np.sqrt(weight[order])
        rows *= backend.column(root, rows)
    touched, start = np.unique(slots[order], return_index=True)
    return ClassRows(rows, root, touched, start, np.append(start[1:], len(slots)))


class Pending:
    """A buffer for rows that wait to be absorbed, at most `capacity` of them.

    Parameters
    ----------
    n_features : int
    dtype : dtype
    backend : backend of the rows
    """

    def __init__(self, n_features: int, dtype: np.dtype[Any], backend: NumpyBackend = NUMPY) -> None:
        self.capacity = max(256, min(PENDING_ROWS, PENDING_BYTES // (n_features * dtype.itemsize)))
        self._shape = (self.capacity, n_features)
        self._dtype = dtype
        self._backend = backend
        self.wipe()

    def wipe(self) -> None:
        """Drop the buffers: no row stays in memory."""
        self._rows: Array | None = None
        self._sorted: Array | None = None
        self._slots = np.zeros(0, dtype=np.intp)
        self._weight: Array | None = None

    def __len__(self) -> int:
        """Return how many rows wait."""
        return len(self._slots)

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers."""
        return sum(
            buffer.nbytes for buffer in (self._rows, self._sorted, self._slots, self._weight) if buffer is not None
        )

    def count(self, n_classes: int) -> Array:
        """Return the weight of what waits by class, shape (C,)."""
        return np.bincount(self._slots, self._weight, minlength=n_classes).astype(np.float64)

    def add(self, X: Array, slots: Array, weight: Array | None) -> None:
        """Copy rows into the buffer; there must be room."""
        if self._rows is None:
            # The system gives the pages when they are written to.
            self._rows = self._backend.empty(self._shape, self._dtype)
        held = len(self)
        self._rows[held : held + len(X)] = X
        if weight is not None or self._weight is not None:
            before = np.ones(held) if self._weight is None else self._weight
            self._weight = np.append(before, np.ones(len(X)) if weight is None else weight)
        self._slots = np.append(self._slots, slots)

    def take(self) -> ClassRows:
        """Return what waits, sorted by class, and wait for more. The rows are the caller's until `clear`."""
        assert self._rows is not None
        if self._sorted is None:
            self._sorted = self._backend.empty(self._shape, self._dtype)
        n = len(self)
        taken = sort_by_class(self._rows[:n], self._slots, self._weight, out=self._sorted[:n])
        self._slots, self._weight = self._slots[:0], None
        return taken

    def clear(self) -> None:
        """Blot out the rows that were taken, so that no more than `capacity` rows are ever in memory."""
        if self._sorted is not None:
            self._sorted[:] = 0.0
