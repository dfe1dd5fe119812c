"""Statistics without second moments: class means, and the spread of every feature around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from aircl.engine.backend import NUMPY, Array, NumpyBackend
from aircl.engine.batch import ClassRows, sort_by_class
from aircl.engine.memory import OnDisk
from aircl.engine.statistics import Statistics, StoreError, checked, grown, rounding


class Means(Statistics):
    """Counts and means of every class: C f numbers."""

    name = "means"

    @property
    def means(self) -> Array:
        """m_y, the mean of every class, shape (C, f)."""
        self.flush()
        return self._center[: self.n_classes]

    def _absorb(self, batch: ClassRows) -> None:
        count, mean = batch.count, batch.sums
        mean /= self.backend.column(count, mean)
        self._pool(batch.slots, count, mean)

    def _pool(self, slots: Array, count: Array, mean: Array) -> None:
        touched, held = self.backend.index(slots), self._count[slots]
        shift = mean - self._center[touched]
        self._center[touched] += shift * self.backend.column(count / (held + count), shift)
        self._count[slots] = held + count

    def merge(self, other: Self, slots: Array) -> None:
        """Add the statistics of another store."""
        self.seal()
        other.seal()
        self.grow(int(slots.max()) + 1 if len(slots) else 0)
        held = np.flatnonzero(other._count[: other.n_classes])
        self._take_over(other, held, slots[held])

    def _take_over(self, other: Self, held: Array, slots: Array) -> None:
        self._pool(slots, other._count[held], self.backend.take(other._center, held))

    def subtract(self, X: Array, slots: Array, weight: Array | None) -> Array:
        """Take learned rows out: the mean moves back. All or nothing."""
        self.seal()
        batch = sort_by_class(X, slots, weight)
        left, emptied = self.remaining_count(batch)
        taken, touched = batch.count, self.backend.index(batch.slots)
        mean = batch.sums
        mean /= self.backend.column(taken, mean)
        shift = self._center[touched] - mean
        energy = float(self.backend.to_numpy((mean**2).sum(1)) @ taken)
        strangers = self.backend.to_numpy((shift**2).sum(1)) * taken > rounding(self.dtype, self.n_features, energy)
        if np.any(strangers & emptied):
            raise StoreError(
                "cannot forget these rows: they have the whole weight of their class but are not the rows it was "
                "learned from. Nothing was changed."
            )
        back = np.where(emptied, 0.0, taken / np.where(emptied, 1.0, left))
        rest = self._center[touched] + shift * self.backend.column(back, shift)
        self._take_out(batch, mean, rest, left, taken)
        self._center[touched] = rest
        self._count[batch.slots] = left
        return batch.slots[emptied]

    def _take_out(self, batch: ClassRows, mean: Array, rest: Array, left: Array, taken: Array) -> None:
        """Take out what is held beside the means; may refuse."""


class Spread(Means):
    """Counts, means and variances of every feature in every class: 2 C f numbers."""

    name = "spread"

    def __init__(
        self,
        n_features: int,
        dtype: np.dtype[Any],
        memory_limit: int | None = None,
        backend: NumpyBackend = NUMPY,
    ) -> None:
        super().__init__(n_features, dtype, memory_limit, backend)
        self._squares = backend.zeros((0, n_features), np.float64)  # sums of squared deviations from the means

    def grow(self, n_classes: int) -> None:
        """Make room for classes up to slot n_classes - 1."""
        super().grow(n_classes)
        self._squares = grown(self._squares, n_classes)

    @property
    def variances(self) -> Array:
        """The variance (over n_y) of every feature in every class, shape (C, f)."""
        self.flush()
        squares = self._squares[: self.n_classes]
        variances: Array = squares / self.backend.column(self._count[: self.n_classes], squares)
        return variances

    def _absorb(self, batch: ClassRows) -> None:
        count, mean = batch.count, batch.sums
        mean /= self.backend.column(count, mean)
        squares = self._deviations(batch, mean)
        self._add_squares(batch.slots, count, mean, squares)
        self._pool(batch.slots, count, mean)

    def _deviations(self, batch: ClassRows, mean: Array) -> Array:
        rows = batch.subtract_means(mean)
        return self.backend.class_sums(rows * rows, batch.start, None)

    def _add_squares(self, slots: Array, count: Array, mean: Array, squares: Array) -> None:
        """Pool sums of squared deviations with those held (Chan et al.'s pairwise update)."""
        touched, held = self.backend.index(slots), self._count[slots]
        shift = mean - self._center[touched]
        self._squares[touched] += squares + shift**2 * self.backend.column(held * count / (held + count), shift)

    def _take_over(self, other: Self, held: Array, slots: Array) -> None:
        mean, squares = (self.backend.take(table, held) for table in (other._center, other._squares))
        self._add_squares(slots, other._count[held], mean, squares)
        super()._take_over(other, held, slots)

    def _take_out(self, batch: ClassRows, mean: Array, rest: Array, left: Array, taken: Array) -> None:
        touched, held = self.backend.index(batch.slots), self._count[batch.slots]
        gone = (mean - rest) ** 2 * self.backend.column(left * taken / held, rest)
        energy = float((self._squares[touched] + self._center[touched] ** 2).sum() * held.max(initial=0.0))
        squares = self._squares[touched] - self._deviations(batch, mean) - gone
        if float(squares.min()) < -rounding(self.dtype, self.n_features, energy):
            raise StoreError(
                "cannot forget these rows: what would be left is not a sum of squares, so they were not all learned "
                "with their classes. Nothing was changed."
            )
        self._squares[touched] = self.backend.limit(squares, low=0.0)

    def drop(self, slots: Sequence[int]) -> None:
        """Remove classes; the later slots move up."""
        self._squares = self.backend.take(self._squares, np.delete(np.arange(self.n_classes), slots))
        super().drop(slots)

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return super().nbytes + self._squares.nbytes

    def arrays(self) -> dict[str, Array | OnDisk]:
        """Return everything that was learned as named NumPy arrays, sealed."""
        return super().arrays() | {"squares": self.backend.to_numpy(self._squares[: self.n_classes])}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        super()._restore(arrays)
        squares = checked(arrays["squares"], (self.n_classes, self.n_features), np.dtype(np.float64))
        self._squares = self.backend.asarray(squares)
