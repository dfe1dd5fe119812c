"""Rows on their way into the statistics: collected until there are enough, then sorted by class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from aircl.engine.backend import Array, backend_of
from aircl.engine.space import Space


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Rows sorted by class: `rows[start[i]:stop[i]]` belong to `slots[i]`. The rows are scaled by sqrt(weight)."""

    rows: Array  # (n, f)
    root_weight: Array | None  # (n,) square roots of the sample weights; None: all one
    slots: Array  # (k,) each touched class once, ascending
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

    def centred(self, mean: Array) -> Array:
        """Return the rows minus the means of their classes (k, f)."""
        return backend_of(self.rows).subtract_means(self.rows, mean, self.start, self.root_weight)

    def classes(self, first: int, last: int | None = None) -> ClassRows:
        """Return the rows of some of the touched classes, as views."""
        rows = slice(self.start[first], self.stop[-1 if last is None else last - 1])
        root = None if self.root_weight is None else self.root_weight[rows]
        part = slice(first, last)
        shift = rows.start
        return ClassRows(self.rows[rows], root, self.slots[part], self.start[part] - shift, self.stop[part] - shift)

    def columns(self, columns: slice) -> ClassRows:
        """Return the same rows with some of their columns."""
        return replace(self, rows=self.rows[:, columns])

    def where(self, chosen: Array) -> ClassRows:
        """Return some of the rows, chosen by a boolean for each."""
        backend, rows = backend_of(self.rows), np.flatnonzero(chosen)
        root = None if self.root_weight is None else self.root_weight[rows]
        classes = np.repeat(np.arange(len(self.slots)), self.stop - self.start)[rows]
        left, start = np.unique(classes, return_index=True)
        return ClassRows(backend.take(self.rows, rows), root, self.slots[left], start, np.append(start[1:], len(rows)))

    def __iter__(self) -> Iterator[tuple[int, Array]]:
        """Yield each touched slot with its rows."""
        for slot, start, stop in zip(self.slots.tolist(), self.start.tolist(), self.stop.tolist(), strict=True):
            yield slot, self.rows[start:stop]


def sort_by_class(X: Array, slots: Array, weight: Array | None) -> ClassRows:
    """Bring the rows of each class together and scale them by the square root of their weight. The rows are copied."""
    order = np.argsort(slots, kind="stable")
    backend = backend_of(X)
    rows = backend.take(X, order)
    root = None
    if weight is not None:
        root = np.sqrt(weight[order])
        rows *= backend.column(root, rows)
    touched, start = np.unique(slots[order], return_index=True)
    return ClassRows(rows, root, touched, start, np.append(start[1:], len(slots)))


@dataclass(frozen=True, eq=False)
class Waiting:
    """Rows that wait to be absorbed: the first ones of a buffer, behind which more are written.

    The buffer is shared with the value that `added` returns and is only ever written to behind the rows that are there,
    so an older value stays what it was.
    """

    rows: Array | None = None  # (capacity, f)
    slots: Array = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    weight: Array | None = None

    def __len__(self) -> int:
        """Return how many rows wait."""
        return len(self.slots)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(held.nbytes for held in (self.rows, self.slots, self.weight) if held is not None)

    def count(self, n_classes: int) -> Array:
        """Return the weight of what waits by class, shape (C,)."""
        return np.bincount(self.slots, self.weight, minlength=n_classes).astype(np.float64)

    def added(self, X: Array, slots: Array, weight: Array | None, space: Space) -> Waiting:
        """Return what waits with these rows of a space behind it; there must be room."""
        held, rows = len(self), self.rows
        if rows is None:  # the system gives the pages when they are written to
            rows = space.backend.empty((space.waiting_rows, space.n_features), space.dtype)
        rows[held : held + len(X)] = X
        if weight is not None or self.weight is not None:
            before = np.ones(held) if self.weight is None else self.weight
            weight = np.append(before, np.ones(len(X)) if weight is None else weight)
        return Waiting(rows, np.append(self.slots, slots), weight)

    def sorted(self) -> ClassRows:
        """Return a sorted copy of what waits."""
        assert self.rows is not None
        return sort_by_class(self.rows[: len(self)], self.slots, self.weight)
