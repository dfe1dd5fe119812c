"""Counts and class means, and what varies around them: nothing, every feature by itself, or one scatter for all.

All are held centred and pooled by Chan, Golub and LeVeque's pairwise update, so that rows far from the origin lose no
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
from aircl.engine.problem import pooled_scatter_uncertainty
from aircl.engine.space import Space, StoreError
from aircl.engine.statistics import ByClass, Statistics, Symmetric, declare

# Rows that add to what varies within the classes, and where each class begins.
Deviations = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Means(Statistics):
    """Counts and means of every class: C f numbers.

    Attributes
    ----------
    means : array of shape (C, f)
        m_y, float64.
    """

    name: ClassVar[str] = "means"
    forgets_classes: ClassVar[bool] = True
    scatter_part: ClassVar[str | None] = None  # the part that holds what varies within the classes

    means: Array = declare(ByClass("center"))

    @property
    def sums(self) -> Array:
        """s_y = n_y m_y, shape (C, f)."""
        sums: Array = self.means * self.space.backend.column(self.count, self.means)
        return sums

    def with_deviations(self, slots: Array, deviations: list[Deviations], sign: float = 1.0) -> Any:
        """Return what varies within the classes plus (or minus) that of some rows."""

    def _pooled(self, slots: Array, count: Array, mean: Array, deviations: list[Deviations]) -> Self:
        """Return these statistics plus classes of the given counts and means."""
        backend, touched = self.space.backend, self.space.backend.index(slots)
        before = self.count[slots]
        total = before + count
        shift = mean - self.means[touched]
        between = shift * backend.column(np.sqrt(before * count / total), shift)
        means, counts = backend.copy(self.means), self.count.copy()
        means[touched] += shift * backend.column(count / total, shift)
        counts[slots] = total
        changed: dict[str, Any] = {"count": counts, "means": means}
        if self.scatter_part is not None:
            changed[self.scatter_part] = self.with_deviations(slots, [*deviations, (between, np.arange(len(slots)))])
        return dataclasses.replace(self, **changed)

    def plus(self, batch: ClassRows, reserve: int = 0) -> Self:
        """Return the statistics with rows added."""
        count, mean = batch.count, batch.sums
        mean /= self.space.backend.column(count, mean)
        deviations = [] if self.scatter_part is None else [(batch.centred(mean), batch.start)]
        return self._pooled(batch.slots, count, mean, deviations)

    def merged(self, other: Self, slots: Array) -> Self:
        """Return the sum with other statistics."""
        total = self.padded(int(slots.max()) + 1 if len(slots) else 0)
        if total.scatter_part is not None:
            name = total.scatter_part
            summed = self.parts()[name].summed(getattr(total, name), getattr(other, name), slots, 0)
            total = dataclasses.replace(total, **{name: summed})
        seen = np.flatnonzero(other.count)
        return total._pooled(slots[seen], other.count[seen], self.space.backend.take(other.means, seen), [])

    def minus(self, batch: ClassRows) -> tuple[Self, Array]:
        """Return the statistics without learned rows: the pairwise update run backwards."""
        backend, touched = self.space.backend, self.space.backend.index(batch.slots)
        left, emptied = self.remaining_count(batch)
        taken, before = batch.count, self.count[batch.slots]
        mean = batch.sums
        mean /= backend.column(taken, mean)
        shift = self.means[touched] - mean
        back = np.where(emptied, 0.0, taken / np.where(emptied, 1.0, left))
        rest = self.means[touched] + shift * backend.column(back, shift)
        slack = rounding_tolerance(self.space.dtype, self.space.n_features, self._trace())
        not_learned = emptied & (backend.to_numpy((shift**2).sum(1)) * taken > slack)

        means, counts = backend.copy(self.means), self.count.copy()
        means[touched], counts[batch.slots] = rest, left
        changed: dict[str, Any] = {"count": counts, "means": means}
        is_possible = not not_learned.any()
        if self.scatter_part is not None:
            between = (mean - rest) * backend.column(np.sqrt(left * taken / before), rest)
            deviations = [(batch.centred(mean), batch.start), (between, np.arange(len(batch.slots)))]
            left_over = self.with_deviations(batch.slots, deviations, sign=-1.0)
            changed[self.scatter_part] = self.without_rounding(left_over, slack)
            is_possible = is_possible and changed[self.scatter_part] is not None
        if not is_possible:
            raise StoreError(
                "cannot forget these rows: what would be left is not a sum of squares, so they were not all learned "
                "with their classes. Nothing was changed."
            )
        return dataclasses.replace(self, **changed), batch.slots[emptied]

    def _trace(self) -> float:
        """Return the trace of all that was learned: the size of the numbers that rounding acts on."""
        return float(self.space.backend.to_numpy((self.means**2).sum(1)) @ self.count)

    def without_rounding(self, spread: Array, slack: float) -> Array | None:
        """Return what varies within the classes; None if it is not a sum of squares by more than rounding."""
        return spread


@dataclass(frozen=True, eq=False)
class ClassVariances(Means):
    """Counts, means and variances of every feature in every class: 2 C f numbers.

    Attributes
    ----------
    squares : array of shape (C, f)
        Sums of squared deviations from the means.
    """

    name: ClassVar[str] = "spread"
    scatter_part: ClassVar[str] = "squares"

    squares: Array = declare(ByClass("squares"))

    def with_deviations(self, slots: Array, deviations: list[Deviations], sign: float = 1.0) -> Array:
        """Return the sums of squares plus (or minus) those of some rows."""
        backend, squares = self.space.backend, self.space.backend.copy(self.squares)
        for rows, start in deviations:
            squares[backend.index(slots)] += sign * backend.class_sums(rows * rows, start, None)
        return squares

    def _trace(self) -> float:
        return super()._trace() + float(self.squares.sum())

    def without_rounding(self, spread: Array, slack: float) -> Array | None:
        """Return the sums of squares, none below 0."""
        return None if len(spread) and float(spread.min()) < -slack else spread.clip(min=0.0)


@dataclass(frozen=True, eq=False)
class Shared(Means):
    """The `shared` store: ONE within-class scatter for all classes, 1/C of the memory of `per-class`.

    sum_y pi_y A_y is replaced by (sum_y pi_y n_y) S_w + sum_y pi_y n_y m_y'm_y with S_w the scatter over n: exact if
    the weighted counts are equal or the weights uniform, whatever the data; otherwise if the classes share their
    within-class covariance. Memory f^2 + C f numbers.

    Attributes
    ----------
    scatter : array of shape (f, f)
        n S_w, lower.

    References
    ----------
    T. Chan, G. Golub, R. LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979.
    """

    name: ClassVar[str] = "shared"
    scatter_part: ClassVar[str] = "scatter"
    own_moments: ClassVar[None] = None
    forgets_classes: ClassVar[bool] = False
    cannot_forget = (
        "store='shared' holds one scatter for all classes and cannot forget a whole class without its rows. "
        "Pass its rows, forget(X=..., y=...), or use store='per-class'."
    )

    scatter: Array = declare(Symmetric("scatter"))

    def with_deviations(self, slots: Array, deviations: list[Deviations], sign: float = 1.0) -> Array:
        """Return the scatter plus (or minus) that of some rows."""
        scatter = self.space.backend.copy(self.scatter)
        for rows, _ in deviations:
            self.space.backend.add_gram(scatter, rows, alpha=sign)
        return scatter

    def gram(self, pi: Array) -> Array:
        """Return (sum pi_y n_y) S_w + sum pi_y n_y m_y'm_y, shape (f, f), lower. Cost O(C f^2)."""
        G: Array = self.scatter * float((pi @ self.count) / self.count.sum())
        self.space.backend.add_gram(G, self.means * self.space.backend.column(np.sqrt(pi * self.count), self.means))
        return G

    def within_class_covariance(self, pi: Array, G: Array | None = None) -> Array:
        """Return S_w, shape (f, f), lower."""
        S_w: Array = self.scatter / float(self.count.sum())
        return S_w

    def uncertainty(self, S_w: Array, pi: Array) -> float:
        """Return how little S_w tells of the scatter of a single class."""
        return pooled_scatter_uncertainty(S_w, np.ones(self.n_classes), self.count)

    def columns(self, columns: slice) -> Shared:
        """Return the statistics of some features only."""
        means = self.means[:, columns]
        space = Space(means.shape[1], self.space.dtype, self.space.backend, default_limit=self.space.default_limit)
        scatter = self.space.backend.copy(self.scatter[columns, columns])
        return Shared(space, self.count, means, scatter)

    def _trace(self) -> float:
        return super()._trace() + self.space.backend.trace(self.scatter)

    def without_rounding(self, spread: Array, slack: float) -> Array | None:
        """Return the scatter as it is: a ridge makes up for what rounding does to it."""
        return None if self.space.backend.cholesky(spread, slack) is None else spread
