"""RanPAC: ridge regression on random features, the ridge chosen on held-out rows of every phase."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from aircl.classifiers.linear import RidgeClassifier
from aircl.classifiers.phases import PhaseStatistics
from aircl.classifiers.rows import KeepLedger
from aircl.engine import Ridge, Rule, Space, State, Statistics
from aircl.engine.backend import Array
from aircl.engine.calibration import CalibratedSolution
from aircl.engine.gamma import descend
from aircl.engine.means import Shared
from aircl.engine.memory import Stored
from aircl.engine.solve import solve_ridge
from aircl.expansion import RandomReLU

GRID = tuple(10.0**power for power in range(-8, 9))
# Where the first search begins.
START = 100.0
# Fewer held-out rows say nothing about the ridge: a phase of rare classes would choose at random for all others.
MIN_HELD_OUT = 20


@dataclass(frozen=True, eq=False)
class HoldingOut(PhaseStatistics):
    """Statistics of the closed phases, of the open one, and of every fifth row of a class in it apart.

    All a held-out row is for is its squared error, and that follows from second moments: no row is kept.

    Attributes
    ----------
    chosen : float or None
        The ridge of the last phase that ended.
    """

    name: ClassVar[str] = "holding-out"
    every: ClassVar[int] = 5

    chosen: float | None = field(default=None, kw_only=True)

    def closed_phase(self, pi: Array) -> Self:
        """Choose the ridge again, and add the open phase to the closed ones."""
        return dataclasses.replace(super().closed_phase(pi), chosen=self.choose() or self.chosen)

    def choose(self) -> float | None:
        """Return the ridge with the least squared error on the held-out rows; None if they are too few.

        Downhill on the grid, from the last one: the smallest ridges cost the most where rows are fewer than features.
        """
        learned, held = self.open, self.held_out
        if held.count.sum() < MIN_HELD_OUT:
            return None
        ones, here = np.ones(self.n_classes), np.flatnonzero(learned.count + held.count)
        G, Q = learned.gram(ones), learned.sums[here].T
        G_held, Q_held = held.gram(ones), held.sums[here].T
        n = float(held.count.sum())

        @cache
        def error(place: int) -> float:
            W = solve_ridge(G, Q, GRID[place])
            # sum |y - xW|^2 = n - 2 tr(W'Q) + tr(W'GW) over the held-out rows
            GW = self.space.backend.symmetric_product(G_held, W.astype(G_held.dtype))
            # Of those that rounding cannot tell apart, the largest is taken.
            return float(np.rint((n + (W * (GW - 2 * Q_held)).sum()) / (1e-7 * n)))

        return GRID[descend(error, GRID.index(self.chosen or START), (2, 1, 1), len(GRID))]

    def arrays(self) -> dict[str, Stored]:
        """Return everything that was learned as named NumPy arrays."""
        return super().arrays() | {"chosen": np.array([self.chosen or 0.0])}

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], space: Space) -> Self:
        """Return what `arrays` returned the arrays of."""
        return dataclasses.replace(super().restored(arrays, space), chosen=float(arrays["chosen"][0]) or None)


@dataclass(frozen=True)
class HeldOutRidge(Rule):
    """Ridge regression on one-hot labels with the ridge that did best on held-out rows, or a given one."""

    gamma: float | str
    calibrate: bool = False

    def solve(self, state: State, memory: Any = None) -> tuple[CalibratedSolution, Any]:
        """Return the weights for what was learned."""
        statistics = state.statistics
        assert isinstance(statistics, HoldingOut)
        total = statistics.total()
        rule = Ridge(self._ridge(statistics, total, state), "uniform", "mean", self.calibrate)
        found = rule.solve(State.empty(total, labels=state.labels))[0]
        temperature = found.temperature if self.calibrate else None
        return CalibratedSolution(W=found.W, b=found.b, gamma=found.gamma, temperature=temperature), memory

    def _ridge(self, statistics: HoldingOut, total: Shared, state: State) -> float:
        """Return the ridge: given, of the last phase that ended, or chosen from what there is of the first."""
        if self.gamma != "held-out":
            return float(self.gamma)
        chosen = statistics.chosen or statistics.choose()
        if chosen is None:  # too few rows were held out: from the statistics, then
            solution, _ = Ridge("auto", "uniform", "mean").solve(State.empty(total, labels=state.labels))
            chosen = solution.gamma
        return chosen


class RanPACClassifier(RidgeClassifier):
    """RanPAC: a wide random ReLU layer and a ridge regression whose ridge is searched in every phase.

    Parameters
    ----------
    gamma : float or "held-out", default="held-out"
        The ridge (lambda in the paper). "held-out" takes the power of ten from 1e-8 to 1e8 with the least squared error
        on every fifth row of each class of the phase, when the phase ends, and in the first phase also before its
        end. After a phase with fewer than 20 such rows the ridge stays as it was.
    n_components : int or None, default=10000
        Width f of the random layer; None: X is the features.
    calibrate : bool, default=False
        Add an intercept, and make probabilities reliable, both from the statistics alone: see `AIRClassifier`. As
        published, without it, there are no probabilities.
    ledger : bool, path or list of paths, default=False
        Keep a hash of every learned row; see `AIRClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of the random layer, whose entries are N(0, 1).
    backbone : str or Backbone, default=None
        What makes features of texts or images first; see `AIRClassifier`.

    Attributes
    ----------
    classes_ : array of shape (C,)
    class_count_ : array of shape (C,)
    coef_ : array of shape (C, f)
    gamma_ : float

    Notes
    -----
    Learning n rows costs O(n f (d + f)), the end of a phase some six solves of O(f^3 / 3). No row is kept: the error on
    held-out rows follows from their second moments. The ridge depends on how the stream is cut into phases, so learners
    cannot be merged, nor forget.

    References
    ----------
    M. McDonnell et al., "RanPAC: Random Projections and Pre-trained Models for Continual Learning", NeurIPS 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from aircl import RanPACClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = RanPACClassifier(n_components=500, random_state=0).fit(X[:900], y[:900])
    >>> print(f"{clf.score(X[900:], y[900:]):.2f}")
    0.95
    """

    takes_tensors: ClassVar[bool] = False
    _store: ClassVar[type[Statistics]] = HoldingOut
    _gamma_word = "held-out"

    def __init__(
        self,
        gamma: float | str = "held-out",
        *,
        n_components: int | None = 10000,
        calibrate: bool = False,
        ledger: KeepLedger = False,
        random_state: Any = None,
        backbone: Any = None,
    ) -> None:
        self.gamma = gamma
        self.n_components = n_components
        self.calibrate = calibrate
        self.ledger = ledger
        self.random_state = random_state
        self.backbone = backbone

    def _rule(self) -> HeldOutRidge:
        return HeldOutRidge(self.gamma, bool(self.calibrate))

    def _make_expansion(self) -> RandomReLU | None:
        if self.n_components is None:
            return None
        return RandomReLU(self.n_components, init="normal", random_state=self.random_state)
