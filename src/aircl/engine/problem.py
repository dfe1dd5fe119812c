"""One weighted regression problem as a value: all that weights, gamma and probabilities are functions of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from aircl.engine.backend import Array, NumpyBackend, backend_of
from aircl.engine.moment import SecondMoment
from aircl.engine.space import Space


@dataclass(frozen=True, eq=False)
class Problem:
    """Weighted second moments and class sums, and what is known of the scatter of the classes.

    Attributes
    ----------
    space : Space
    count : array of shape (C,)
        n_y.
    sums : array of shape (C, f)
        s_y, float64.
    pi : array of shape (C,)
        The class weights, at their scale.
    G : array of shape (f, f)
        sum_y pi_y A_y, lower.
    moments : tuple of SecondMoment or None
        A_y of every class, where the classes are told apart.
    """

    space: Space
    count: Array
    sums: Array
    pi: Array
    G: Array
    moments: tuple[SecondMoment, ...] | None
    _within: Callable[[], Array]
    _weight_in_scatter: Array  # of a sample of each class

    @classmethod
    def of(cls, statistics: Any, weights: Array, factor: float) -> Problem:
        """Weigh statistics that have second moments by `factor` times `weights`."""
        # A power of two changes no digit, and keeps weights of any size in the range of the second moments' dtype.
        unit = float(np.ldexp(1.0, int(np.frexp(weights.max())[1])))
        own = weights / unit
        G, pi = statistics.gram(own), own * (factor * unit)
        G *= factor * unit
        return cls(
            statistics.space,
            statistics.count,
            statistics.sums,
            pi,
            G,
            statistics.own_moments,
            lambda: statistics.within_class_covariance(pi, G),
            own if statistics.weighs_scatter else np.ones_like(own),
        )

    @property
    def backend(self) -> NumpyBackend:
        """What computes with the arrays."""
        return self.space.backend

    @cached_property
    def within_class_covariance(self) -> Array:
        """S_w, an estimate of the covariance that the classes share, shape (f, f), lower."""
        return self._within()

    @cached_property
    def uncertainty(self) -> float:
        """How little S_w tells of a class that nothing more is known of."""
        if self.moments is not None:  # the scatter of every class is known
            return 0.0
        return pooled_scatter_uncertainty(self.within_class_covariance, self._weight_in_scatter, self.count)


def scatter_leverage(problem: Problem, K: Array) -> float:
    """Return h = tr(K sum_y pi_y (A_y - n_y m_y'm_y)) / (n - C), the mean leverage of a sample in its class's scatter.

    What is summed is a part of G, in n - C directions at the most: h is below 1 if K is (G + gamma I)^-1, whatever the
    counts are. K has the shape (f, f), lower. Cost O(f^2 C).
    """
    backend, n = problem.backend, float(problem.count.sum())
    M = weighted_means(problem)
    of_means = float((M.T * backend.symmetric_product(K, backend.cast(M.T, K.dtype))).sum())
    return bounded((backend.inner_product(K, problem.G) - of_means) / max(n - len(problem.count), 1e-9))


def weighted_means(problem: Problem) -> Array:
    """Return (pi_y n_y)^(1/2) m_y, shape (C, f), float64: their second moments are the part of G that is no scatter."""
    sums = problem.backend.double(problem.sums)
    return sums * problem.backend.column(np.sqrt(problem.pi / problem.count), sums)


def bounded(leverage: float) -> float:
    """Return a leverage within the bounds that rounding may have taken it over."""
    return min(max(leverage, 0.0), 1.0 - 1e-6)


def weighted_within_class_covariance(G: Array, sums: Array, pi: Array, count: Array) -> Array:
    """Return the mean of the class covariances under the weights pi, over n as S_w is, shape (f, f), lower.

    sum_y pi_y (A_y - n_y m_y'm_y) has the expectation sum_y pi_y (n_y - 1) S, if S is the covariance of all classes.
    """
    backend, free = backend_of(G), np.maximum(count - 1.0, 0.0)
    S = backend.copy(G)
    if (degrees_of_freedom := float(pi @ free)) == 0.0:  # one sample per class: no scatter
        S *= 0.0
        return S
    backend.add_gram(S, sums * backend.column(np.sqrt(pi / count), sums), alpha=-1.0)
    S *= float(free.sum() / count.sum()) / degrees_of_freedom
    return S


def pooled_scatter_uncertainty(S_w: Array, weight: Array, count: Array) -> float:
    """Return how little S_w tells of the scatter of a class, from 0 to 1.

    It tells of the classes that it is made of: nothing is missed if all have the same share in it, much if one has
    nearly all. And it is made of samples, of which it has the noise: (1 + r) / n of its squared norm, with
    r = tr^2(S) / tr(S^2) the number of directions that it extends in.

    Parameters
    ----------
    S_w : array of shape (f, f)
        S_w, lower.
    weight, count : arrays of shape (C,)
        The weight of a sample of each class in S_w, and the class counts.
    """
    backend, share = backend_of(S_w), weight * count
    evenness = share.sum() ** 2 / np.square(share).sum()  # C for equal shares, 1 for one class
    imbalance = (len(count) / evenness - 1.0) / max(len(count) - 1, 1)
    directions = backend.trace(S_w) ** 2 / max(backend.inner_product(S_w, S_w), 1e-300)
    n = share.sum() ** 2 / (weight @ share)  # as many samples of equal weight tell as much
    noise = min((1.0 + directions) / n, 1.0)
    return float(1.0 - (1.0 - imbalance) * (1.0 - noise))
