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
    _uncertainty: Callable[[Array], float]

    @classmethod
    def of(cls, statistics: Any, weights: Array, factor: float) -> Problem:
        """Weigh statistics that have second moments by `factor` times `weights`."""
        # A power of two changes no digit, and keeps weights of any size in the range of the second moments' dtype.
        unit = float(np.ldexp(1.0, int(np.frexp(weights.max())[1])))
        own = weights / unit
        G = statistics.gram(own)
        G *= factor * unit
        return cls(
            statistics.space,
            statistics.count,
            statistics.sums,
            own * (factor * unit),
            G,
            statistics.own_moments,
            lambda: statistics.within_class_covariance(own),
            lambda within: statistics.uncertainty(within, own),
        )

    @property
    def backend(self) -> NumpyBackend:
        """What computes with the arrays."""
        return self.space.backend

    @cached_property
    def within(self) -> Array:
        """S_w, an estimate of the covariance that the classes share, shape (f, f), lower."""
        return self._within()

    def uncertainty(self, within: Array) -> float:
        """Return how little S_w, complete and in any basis, tells of a class that nothing more is known of."""
        return self._uncertainty(within)


def pooled_scatter_uncertainty(within: Array, weight: Array, count: Array) -> float:
    """Return how little S_w tells of the scatter of a class, from 0 to 1.

    It tells of the classes that it is made of: nothing is missed if all have the same share in it, much if one has
    nearly all. And it is made of samples, of which it has the noise: (1 + r) / n of its squared norm, with
    r = tr^2(S) / tr(S^2) the number of directions that it extends in.

    Parameters
    ----------
    within : array of shape (f, f)
        S_w, complete.
    weight, count : arrays of shape (C,)
        The weight of a sample of each class in S_w, and the class counts.
    """
    backend, share = backend_of(within), weight * count
    evenness = share.sum() ** 2 / np.square(share).sum()  # C for equal shares, 1 for one class
    imbalance = (len(count) / evenness - 1.0) / max(len(count) - 1, 1)
    directions = backend.trace(within) ** 2 / max(float(backend.square(within).sum()), 1e-300)
    n = share.sum() ** 2 / (weight @ share)  # as many samples of equal weight tell as much
    noise = min((1.0 + directions) / n, 1.0)
    return float(1.0 - (1.0 - imbalance) * (1.0 - noise))
