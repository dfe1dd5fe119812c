"""The `shared` store: ONE within-class scatter for all classes, 1/C of the memory of `per-class`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from aircl.engine import backend
from aircl.engine.backend import Array
from aircl.engine.batch import ClassRows, sort_by_class
from aircl.engine.statistics import Statistics, StoreError, checked, rounding


class Shared(Statistics):
    """Counts, means and the within-class scatter summed over all classes, held centred.

    sum_y pi_y A_y is replaced by (sum_y pi_y n_y) S_w + sum_y pi_y n_y m_y'm_y with S_w the scatter over n: exact if
    the weighted counts are equal or the weights uniform, whatever the data; otherwise if the classes share their
    within-class covariance. Memory f^2 + C f numbers.

    References
    ----------
    T. Chan, G. Golub, R. LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979.
    """

    name = "shared"

    def __init__(self, n_features: int, dtype: np.dtype[Any], memory_limit: int | None = None) -> None:
        super().__init__(n_features, dtype, memory_limit)
        self._scatter = backend.lower_zeros(n_features, dtype)  # n S_w
        # self._center holds the means m_y.

    def _absorb(self, batch: ClassRows) -> None:
        count, center = batch.count, batch.sums
        center /= count[:, None]
        backend.add_gram(self._scatter, _centred(batch, center))
        self._add_means(batch.slots, count, center)

    def _add_means(self, slots: Array, count: Array, mean: Array) -> None:
        """Pool classes of the given counts and means with those held (Chan et al.'s pairwise update)."""
        held = self._count[slots]
        total = held + count
        shift = mean - self._center[slots]
        backend.add_gram(self._scatter, shift * np.sqrt(held * count / total)[:, None])
        self._center[slots] += shift * (count / total)[:, None]
        self._count[slots] = total

    @property
    def sums(self) -> Array:
        """s_y = n_y m_y, shape (C, f)."""
        self.flush()
        sums: Array = self._center[: self.n_classes] * self._count[: self.n_classes, None]
        return sums

    def gram(self, pi: Array) -> Array:
        """Return (sum pi_y n_y) S_w + sum pi_y n_y m_y'm_y, shape (f, f), lower. Cost O(C f^2)."""
        self.flush()
        count = self._count[: self.n_classes]
        G: Array = self._scatter * self.dtype.type((pi @ count) / count.sum())
        backend.add_gram(G, self._center[: self.n_classes] * np.sqrt(pi * count)[:, None])
        return G

    def within(self, pi: Array) -> Array:
        """Return S_w, shape (f, f), lower."""
        self.flush()
        return np.asarray(self._scatter / self.dtype.type(self._count.sum()))

    def merge(self, other: Self, slots: Array) -> None:
        """Add the statistics of another store."""
        self.seal()
        other.seal()
        self.grow(int(slots.max()) + 1 if len(slots) else 0)
        self._scatter += other._scatter
        self._add_means(slots, other._count[: other.n_classes], other._center[: other.n_classes])

    def subtract(self, X: Array, slots: Array, weight: Array | None) -> Array:
        """Take learned rows out: the pairwise update run backwards. All or nothing."""
        self.seal()
        batch = sort_by_class(X, slots, weight)
        left, emptied = self.remaining_count(batch)
        taken = batch.count
        mean = batch.sums / taken[:, None]
        held = self._count[batch.slots]
        rest = self._center[batch.slots].copy()
        kept = ~emptied
        rest[kept] += (self._center[batch.slots] - mean)[kept] * (taken / np.where(kept, left, 1.0))[kept, None]

        scatter = self._scatter.copy(order="F")
        backend.add_gram(scatter, _centred(batch, mean), alpha=-1.0)
        backend.add_gram(scatter, (mean - rest) * np.sqrt(left * taken / held)[:, None], alpha=-1.0)
        slack = rounding(self.dtype, self.n_features, self._energy())
        strangers = np.square(mean - self._center[batch.slots]).sum(axis=1) * taken > slack
        if np.any(strangers & emptied) or not backend.is_positive(scatter, slack):
            raise StoreError(
                "cannot forget these rows: what would be left is not a sum of squares, so they were not all learned "
                "with their classes. Nothing was changed."
            )
        self._scatter = scatter
        self._center[batch.slots] = rest
        self._count[batch.slots] = left
        return batch.slots[emptied]

    def _energy(self) -> float:
        """Return the trace of all that was learned: the size of the numbers that rounding acts on."""
        means = (np.square(self._center[: self.n_classes]).sum(axis=1) * self._count[: self.n_classes]).sum()
        return float(np.trace(self._scatter, dtype=np.float64) + means)

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

    def arrays(self) -> dict[str, Array]:
        """Return everything that was learned as named arrays, sealed."""
        return super().arrays() | {"scatter": backend.pack(self._scatter)}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, Array], n_features: int, dtype: np.dtype[Any], memory_limit: int | None = None
    ) -> Self:
        """Build a store from what `arrays` returned."""
        store = super().from_arrays(arrays, n_features, dtype, memory_limit)
        store._scatter = backend.unpack(
            checked(arrays["scatter"], (backend.packed_size(n_features),), store.dtype), n_features
        )
        return store


def _centred(batch: ClassRows, mean: Array) -> Array:
    """Subtract the class means from the (weighted) rows, in place."""
    mean = mean.astype(batch.rows.dtype)
    for i, (_, rows) in enumerate(batch):
        if batch.root_weight is None:
            rows -= mean[i]
        else:
            rows -= batch.root_weight[batch.start[i] : batch.stop[i], None].astype(rows.dtype) * mean[i]
    return batch.rows
