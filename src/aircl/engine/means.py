"""Counts and class means, and what varies around them: nothing, or one scatter for all classes.

Both are held centred and pooled by Chan, Golub and LeVeque's pairwise update, so that rows far from the origin lose no
digits. Two groups of n and k samples with means apart by `shift` have, beside what varies within each, the scatter of
one more row, sqrt(n k / (n + k)) shift.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from aircl.engine.backend import Array
from aircl.engine.batch import ClassRows
from aircl.engine.factor import rounding_tolerance
from aircl.engine.space import NOT_LEARNED, Space, StoreError
from aircl.engine.statistics import ByClass, Statistics, Symmetric, declare


@dataclass(frozen=True, eq=False)
class Means(Statistics):
    """Counts and means of every class: C f numbers."""

    name: ClassVar[str] = "means"
    forgets_classes: ClassVar[bool] = True

    means: Array = declare(ByClass("center"))  # (C, f) m_y, float64

    @property
    def sums(self) -> Array:
        """s_y = n_y m_y, shape (C, f)."""
        sums: Array = self.means * self.space.backend.column(self.count, self.means)
        return sums

    def scattered(
        self, slots: Array, between: Array, sign: float, batch: ClassRows | None = None, mean: Array | None = None
    ) -> dict[str, Any]:
        """Return the part that tells what varies within the classes, plus (or minus) that of some rows, by its name.

        The rows are `between`, one for each of `slots`, and those of a batch less the means (k, f) of its classes.
        """
        return {}

    def _pooled(self, slots: Array, count: Array, mean: Array, batch: ClassRows | None = None) -> Self:
        """Return these statistics plus classes of the given counts and means."""
        backend, touched = self.space.backend, self.space.backend.index(slots)
        before = self.count[slots]
        total = before + count
        shift = mean - self.means[touched]
        between = shift * backend.column(np.sqrt(before * count / total), shift)
        means, counts = backend.copy(self.means), self.count.copy()
        means[touched] += shift * backend.column(count / total, shift)
        counts[slots] = total
        return dataclasses.replace(self, count=counts, means=means, **self.scattered(slots, between, 1.0, batch, mean))

    def plus(self, batch: ClassRows, reserve: int = 0) -> Self:
        """Return the statistics with rows added."""
        count, mean = batch.count, batch.sums
        mean /= self.space.backend.column(count, mean)
        return self._pooled(batch.slots, count, mean, batch)

    def merged(self, other: Self, slots: Array) -> Self:
        """Return the sum with other statistics."""
        total, seen = super().merged(other, slots), np.flatnonzero(other.count)
        before = self.padded(total.n_classes)
        total = dataclasses.replace(total, count=before.count, means=before.means)  # which are not plain sums
        return total._pooled(slots[seen], other.count[seen], self.space.backend.take(other.means, seen))

    def minus(self, batch: ClassRows) -> tuple[Self, Array]:
        """Return the statistics without learned rows: the pairwise update run backwards."""
        backend, touched = self.space.backend, self.space.backend.index(batch.slots)
        left, emptied = self.remaining_count(batch)
        taken, before = batch.count, self.count[batch.slots]
        mean = batch.sums
        mean /= backend.column(taken, mean)
        shift = self.means[touched] - mean
        back = np.where(emptied, 0.0, taken / np.where(emptied, 1.0, left))
        kept = self.means[touched] + shift * backend.column(back, shift)
        slack = rounding_tolerance(self.space.dtype, self.space.n_features, self._trace())
        not_learned = emptied & (backend.to_numpy((shift**2).sum(1)) * taken > slack)

        means, counts = backend.copy(self.means), self.count.copy()
        means[touched], counts[batch.slots] = kept, left
        between = (mean - kept) * backend.column(np.sqrt(left * taken / before), kept)
        varying = self.scattered(batch.slots, between, -1.0, batch, mean)
        rest = dataclasses.replace(self, count=counts, means=means, **varying).without_rounding(slack)
        if rest is None or not_learned.any():
            raise StoreError(NOT_LEARNED)
        return rest, batch.slots[emptied]

    def _trace(self) -> float:
        """Return the trace of all that was learned: the size of the numbers that rounding acts on."""
        return float(self.space.backend.to_numpy((self.means**2).sum(1)) @ self.count)

    def without_rounding(self, slack: float) -> Self | None:
        """Return the same; None if what varies within the classes is not a sum of squares by more than rounding."""
        return self


@dataclass(frozen=True, eq=False)
class Shared(Means):
    """The `shared` store: ONE within-class scatter for all classes, 1/C of the memory of `per-class`.

    sum_y pi_y A_y is replaced by (sum_y pi_y n_y) S_w + sum_y pi_y n_y m_y'm_y with S_w the scatter over n: exact if
    the weighted counts are equal or the weights uniform, whatever the data; otherwise if the classes share their
    within-class covariance. Memory f^2 + C f numbers.

    References
    ----------
    T. Chan, G. Golub, R. LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979.
    """

    name: ClassVar[str] = "shared"
    own_moments: ClassVar[None] = None
    forgets_classes: ClassVar[bool] = False
    cannot_forget = (
        "store='shared' holds one scatter for all classes and cannot forget a whole class without its rows. "
        "Pass its rows, forget(X=..., y=...), or use store='per-class'."
    )

    scatter: Array = declare(Symmetric("scatter"))  # (f, f) n S_w, lower

    def scattered(
        self, slots: Array, between: Array, sign: float, batch: ClassRows | None = None, mean: Array | None = None
    ) -> dict[str, Any]:
        """Return the scatter plus (or minus) that of some rows."""
        scatter = self.space.backend.copy(self.scatter)
        if batch is not None and mean is not None:
            self.space.backend.add_gram(scatter, batch.centred(mean), alpha=sign)
        self.space.backend.add_gram(scatter, between, alpha=sign)
        return {"scatter": scatter}

    def gram(self, pi: Array) -> Array:
        """Return (sum pi_y n_y) S_w + sum pi_y n_y m_y'm_y, shape (f, f), lower. Cost O(C f^2)."""
        G: Array = self.scatter * float((pi @ self.count) / self.count.sum())
        self.space.backend.add_gram(G, self.means * self.space.backend.column(np.sqrt(pi * self.count), self.means))
        return G

    def within_class_covariance(self, pi: Array, G: Array | None = None) -> Array:
        """Return S_w, shape (f, f), lower."""
        S_w: Array = self.scatter / float(self.count.sum())
        return S_w

    def columns(self, columns: slice) -> Shared:
        """Return the statistics of some features only."""
        means = self.means[:, columns]
        space = Space(means.shape[1], self.space.dtype, self.space.backend, default_limit=self.space.default_limit)
        scatter = self.space.backend.copy(self.scatter[columns, columns])
        return Shared(space, self.count, means, scatter)

    def _trace(self) -> float:
        return super()._trace() + self.space.backend.trace(self.scatter)

    def without_rounding(self, slack: float) -> Self | None:
        """Return the same: a ridge makes up for what rounding does to the scatter."""
        return None if self.space.backend.cholesky(self.scatter, slack) is None else self
