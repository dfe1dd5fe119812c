"""The `shared` store: ONE within-class scatter for all classes, 1/C of the memory of `per-class`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from aircl.engine.backend import NUMPY, Array, NumpyBackend, packed_size
from aircl.engine.batch import ClassRows, sort_by_class
from aircl.engine.memory import OnDisk
from aircl.engine.statistics import SecondMoments, StoreError, checked, rounding


class Shared(SecondMoments):
    """Counts, means and the within-class scatter summed over all classes, held centred.

    sum_y pi_y A_y is replaced by (sum_y pi_y n_y) S_w + sum_y pi_y n_y m_y'm_y with S_w the scatter over n: exact if
    the weighted counts are equal or the weights uniform, whatever the data; otherwise if the classes share their
    within-class covariance. Memory f^2 + C f numbers.

    References
    ----------
    T. Chan, G. Golub, R. LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979.
    """

    name = "shared"

    def __init__(
        self,
        n_features: int,
        dtype: np.dtype[Any],
        memory_limit: int | None = None,
        backend: NumpyBackend = NUMPY,
    ) -> None:
        super().__init__(n_features, dtype, memory_limit, backend)
        self._scatter = backend.lower_zeros(n_features, dtype)  # n S_w
        # self._center holds the means m_y.

    def _absorb(self, batch: ClassRows) -> None:
        count, center = batch.count, batch.sums
        center /= self.backend.column(count, center)
        self.backend.add_gram(self._scatter, batch.subtract_means(center))
        self._add_means(batch.slots, count, center)

    def _add_means(self, slots: Array, count: Array, mean: Array) -> None:
        """Pool classes of the given counts and means with those held (Chan et al.'s pairwise update)."""
        backend, touched = self.backend, self.backend.index(slots)
        held = self._count[slots]
        total = held + count
        shift = mean - self._center[touched]
        backend.add_gram(self._scatter, shift * backend.column(np.sqrt(held * count / total), shift))
        self._center[touched] += shift * backend.column(count / total, shift)
        self._count[slots] = total

    @property
    def sums(self) -> Array:
        """s_y = n_y m_y, shape (C, f)."""
        self.flush()
        center = self._center[: self.n_classes]
        sums: Array = center * self.backend.column(self._count[: self.n_classes], center)
        return sums

    def gram(self, pi: Array) -> Array:
        """Return (sum pi_y n_y) S_w + sum pi_y n_y m_y'm_y, shape (f, f), lower. Cost O(C f^2)."""
        self.flush()
        count, center = self._count[: self.n_classes], self._center[: self.n_classes]
        G: Array = self._scatter * float((pi @ count) / count.sum())
        self.backend.add_gram(G, center * self.backend.column(np.sqrt(pi * count), center))
        return G

    def within(self, pi: Array) -> Array:
        """Return S_w, shape (f, f), lower."""
        self.flush()
        within: Array = self._scatter / float(self._count.sum())
        return within

    def columns(self, columns: slice) -> Shared:
        """Return a copy of the statistics of some features only."""
        self.flush()
        center = self._center[: self.n_classes, columns]
        part = Shared(center.shape[1], self.dtype, None, self.backend)
        part.grow(self.n_classes)
        part._count[: self.n_classes] = self._count[: self.n_classes]
        part._center[: self.n_classes] = center
        part._scatter[:] = self._scatter[columns, columns]
        return part

    def merge(self, other: Self, slots: Array) -> None:
        """Add the statistics of another store."""
        self.seal()
        other.seal()
        self.grow(int(slots.max()) + 1 if len(slots) else 0)
        self._scatter += other._scatter
        held = np.flatnonzero(other._count[: other.n_classes])
        self._add_means(slots[held], other._count[held], self.backend.take(other._center, held))

    def subtract(self, X: Array, slots: Array, weight: Array | None) -> Array:
        """Take learned rows out: the pairwise update run backwards. All or nothing."""
        self.seal()
        backend, batch = self.backend, sort_by_class(X, slots, weight)
        touched = backend.index(batch.slots)
        left, emptied = self.remaining_count(batch)
        taken = batch.count
        mean = batch.sums
        mean /= backend.column(taken, mean)
        held, center = self._count[batch.slots], self._center[touched]
        shift = center - mean
        rest = center + shift * backend.column(np.where(emptied, 0.0, taken / np.where(emptied, 1.0, left)), shift)

        scatter = backend.copy(self._scatter)
        backend.add_gram(scatter, batch.subtract_means(mean), alpha=-1.0)
        backend.add_gram(scatter, (mean - rest) * backend.column(np.sqrt(left * taken / held), rest), alpha=-1.0)
        slack = rounding(self.dtype, self.n_features, self._energy())
        strangers = backend.to_numpy((shift**2).sum(1)) * taken > slack
        if np.any(strangers & emptied) or backend.cholesky(scatter, slack) is None:
            raise StoreError(
                "cannot forget these rows: what would be left is not a sum of squares, so they were not all learned "
                "with their classes. Nothing was changed."
            )
        self._scatter = scatter
        self._center[touched] = rest
        self._count[batch.slots] = left
        return batch.slots[emptied]

    def _energy(self) -> float:
        """Return the trace of all that was learned: the size of the numbers that rounding acts on."""
        squares = self.backend.to_numpy((self._center[: self.n_classes] ** 2).sum(1))
        return self.backend.trace(self._scatter) + float(squares @ self._count[: self.n_classes])

    def forget_classes(self, slots: Sequence[int]) -> None:
        """Refuse: the scatter of one class cannot be told from the others'."""
        raise StoreError(
            "store='shared' holds one scatter for all classes and cannot forget a whole class without its rows. "
            "Pass its rows, forget(X=..., y=...), or use store='per-class'."
        )

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return super().nbytes + self._scatter.nbytes

    def arrays(self) -> dict[str, Array | OnDisk]:
        """Return everything that was learned as named NumPy arrays, sealed."""
        return super().arrays() | {"scatter": self.backend.to_numpy(self.backend.pack(self._scatter))}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        super()._restore(arrays)
        scatter = checked(arrays["scatter"], (packed_size(self.n_features),), self.dtype)
        self._scatter = self.backend.unpack(self.backend.asarray(scatter), self.n_features)
