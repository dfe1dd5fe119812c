"""AIR: Algorithm 2 of the paper, exact for every stream and every weighting.

    for every batch (X, y) of the stream                  PerClass.plus
        for every class y in it
            N_y <- N_y + n_y                              counts
            C_y <- C_y + sum of the rows                  sums s_y: the one column of C_y that is not zero
            A_y <- A_y + X_y'X_y                          second moments
    when weights are asked for                            weigh, solve
        pi_y <- 1 / N_y                                   the analytic re-weighting module (weighting.py)
        A <- sum_y pi_y A_y,  C <- [pi_y s_y]_y
        W <- (A + gamma I)^-1 C

The other stores hold sum_y pi_y A_y in other ways: `pooled.py` (Algorithm 1), `means.Shared`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from aircl.engine.backend import Array
from aircl.engine.batch import ClassRows
from aircl.engine.factor import rounding_tolerance
from aircl.engine.moments import Moments, SecondMoment
from aircl.engine.problem import Problem, weighted_within_class_covariance
from aircl.engine.solve import solve_ridge
from aircl.engine.space import Space, StoreError
from aircl.engine.statistics import ByClass, OnePerClass, Statistics, declare
from aircl.engine.weighting import Weighting, class_weights, scale_factor

# A weighted sum stands for a plain one if it is worth this share of n samples: (sum pi_y n_y)^2 / sum pi_y^2 n_y.
MIN_EFFECTIVE_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class ClassMoments(Statistics):
    """Counts n_y, sums s_y and second moments A_y of every class.

    A class with fewer than f/2 rows is held as a factor, a larger one as a packed symmetric matrix, so the memory is
    bounded by min(n f, C f^2 / 2) numbers, plus C f for the sums; where predictions between batches keep asking for
    sums, larger factors are packed earlier, while there is room. Beyond the memory limit they move to files.
    """

    sums: Array = declare(ByClass("center"))  # (C, f) s_y, float64
    moments: Moments = declare(OnePerClass("moment"))  # A_y

    def plus(self, batch: ClassRows, reserve: int = 0) -> Self:
        """Return the statistics with rows added: N_y += n_y, s_y += sum of x, A_y += X_y'X_y. Cost O(n f^2) in all."""
        count, sums = self.count.copy(), self.space.backend.copy(self.sums)
        count[batch.slots] += batch.count
        sums[self.space.backend.index(batch.slots)] += batch.sums
        changes = ((slot, partial(SecondMoment.plus, X=rows)) for slot, rows in batch)
        return dataclasses.replace(self, count=count, sums=sums, moments=self.moments.changed(changes, reserve))

    def in_space(self, space: Space) -> Self:
        """Return the same with another memory limit, which the next change keeps."""
        return dataclasses.replace(self, space=space, moments=dataclasses.replace(self.moments, space=space))

    def first_step(self, batch: ClassRows) -> int:
        """Return how many classes of a batch to add at once."""
        return self.moments.first_step(batch)

    def sealed(self) -> Self:
        """Return the same as a function of the A_y alone."""
        moments = self.moments.sealed()
        return self if moments is self.moments else dataclasses.replace(self, moments=moments)

    def after_sum(self) -> Self:
        """Return the same, in a form that is better for further sums."""
        return dataclasses.replace(self, moments=self.moments.packed_for_sums())

    def gram(self, pi: Array) -> Array:
        """Return A = sum_y pi_y A_y, shape (f, f), lower."""
        return self.moments.summed(pi)


@dataclass(frozen=True, eq=False)
class PerClass(ClassMoments):
    """The `per-class` store: exact for every stream and weighting, able to forget rows and classes."""

    name: ClassVar[str] = "per-class"
    forgets_classes: ClassVar[bool] = True

    @property
    def own_moments(self) -> tuple[SecondMoment, ...]:
        """A_y of every class."""
        return self.moments.held

    def within_class_covariance(self, pi: Array, G: Array) -> Array:
        """Return S_w = (sum_y A_y - n_y m_y'm_y) / n, shape (f, f), lower.

        Where the classes' weights leave it at least half as sure as all samples alike would make it, it is made of the
        weighted sum G instead, and no other sum is needed.
        """
        if (pi @ self.count) ** 2 >= MIN_EFFECTIVE_SHARE * self.count.sum() * (pi**2 @ self.count):
            return weighted_within_class_covariance(G, self.sums, pi, self.count)
        S = self.moments.summed(np.ones(self.n_classes))
        root = self.space.backend.column(np.sqrt(self.count), self.sums)
        self.space.backend.add_gram(S, self.sums / root, alpha=-1.0)
        S /= float(self.count.sum())
        return S

    def minus(self, batch: ClassRows) -> tuple[Self, Array]:
        """Return the statistics without learned rows: projection for a factor, subtraction for a packed matrix."""
        backend, touched = self.space.backend, self.space.backend.index(batch.slots)
        left, emptied = self.remaining_count(batch)
        count, sums = self.count.copy(), backend.copy(self.sums)
        count[batch.slots] = left
        sums[touched] -= batch.sums
        before = self.moments.sealed(reserve=self.nbytes)
        changes = ((slot, partial(SecondMoment.minus, X=rows)) for slot, rows in batch)
        moments = before.changed(changes, self.nbytes)
        for slot in batch.slots[emptied].tolist():
            rounding = rounding_tolerance(self.space.dtype, self.space.n_features, before.held[slot].trace)
            if moments.held[slot].trace > rounding:
                raise StoreError(
                    "cannot forget these rows: they have the whole weight of their class but are not the rows it "
                    "was taught. Nothing was changed."
                )
        return dataclasses.replace(self, count=count, sums=sums, moments=moments), batch.slots[emptied]


def weigh(statistics: Statistics, weighting: Weighting, scale: str, labels: Array) -> Problem:
    """Return the weighted problem: pi_y, A = sum_y pi_y A_y and what the columns C = [pi_y s_y] are made of."""
    own = class_weights(weighting, statistics.count, labels)
    factor = scale_factor(scale, own, statistics.count)
    return Problem.of(statistics, own, factor)


def solve(problem: Problem, gamma: float) -> Array:
    """Return W = (A + gamma I)^-1 C, shape (f, C), float64."""
    C = problem.sums * problem.backend.column(problem.pi, problem.sums)
    return solve_ridge(problem.G, C.T, gamma)
