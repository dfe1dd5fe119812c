"""DS-AL: a main stream, and a compensation stream that learns what the main one misses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from aircl.classifiers.inputs import Inputs, dense_unless
from aircl.classifiers.linear import RidgeClassifier
from aircl.classifiers.phases import PhaseStatistics
from aircl.classifiers.rows import KeepLedger
from aircl.engine import Ridge, Rule, Space, State, Statistics
from aircl.engine.backend import NUMPY, Array
from aircl.engine.calibration import CalibratedSolution, calibrate
from aircl.engine.problem import Problem, bounded
from aircl.engine.solve import RidgeFactor, solve_ridge
from aircl.engine.state import BLOCK_BYTES
from aircl.engine.statistics import ByClass, declare
from aircl.expansion import RandomReLU


@dataclass(frozen=True, eq=False)
class TwoStreams(PhaseStatistics):
    """Second moments of ReLU features and tanh features side by side, and the residuals of the closed phases.

    Rows are [h, t], main and compensation features of equal width f. The residual Y - hW of a phase enters the
    compensation stream as t'(Y - hW) = t'Y - (t'h) W: class sums and a block of the phase's second moments. So the
    residual is of the whole phase, whatever its batches, and no row is kept.

    Attributes
    ----------
    residual : array of shape (C, f)
        Sums of t' residual over the closed phases.
    """

    name: ClassVar[str] = "two-streams"

    residual: Array = declare(ByClass("residual", share=0.5))

    @property
    def width(self) -> int:
        """The width f of one stream."""
        return self.space.n_features // 2

    def targets(self, W: Array) -> Array:
        """Return t'(residual) of all phases, shape (C, f), given the main weights W for the open one.

        Of the open phase only the columns of its new classes count ("previous label cleansing").
        """
        targets = self.residual.copy()
        new = slice(self.n_closed, self.n_classes)
        if self.open.count.any():
            cross = self.open.gram(np.ones(self.n_classes))[self.width :, : self.width]  # t'h, in the lower triangle
            targets[new] += self.open.sums[new, self.width :] - (cross @ W[:, new].astype(cross.dtype)).T
        return targets

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], space: Space) -> Self:
        """Return what `arrays` returned the arrays of; a residual may be of the closed classes alone."""
        given, missing = dict(arrays), len(arrays["closed.count"]) - len(arrays["residual"])
        given["residual"] = np.pad(given["residual"], ((0, max(missing, 0)), (0, 0)))
        return super().restored(given, space)


@dataclass(frozen=True)
class DualRidge(Rule):
    """Two ridge regressions, the second on the residual of the first; the score is main + c compensation."""

    gamma: float | str
    compensation: float
    calibrate: bool = False

    def solve(self, state: State, memory: Any = None) -> tuple[DualSolution, Any]:
        """Return the weights of both streams."""
        statistics = state.statistics
        assert isinstance(statistics, TwoStreams)
        ones, f = np.ones(statistics.n_classes), statistics.width
        main = statistics.total(slice(0, f))
        rule = Ridge(self.gamma, "uniform", "mean")
        first, memory = rule.solve(State.empty(main, labels=state.labels, epoch=state.epoch), memory)
        other = statistics.total(slice(f, None))
        G = other.gram(ones)
        # The same ridge for the size of the features: tanh features are not as large as ReLU's.
        size = np.trace(G) / np.trace(main.gram(ones))
        second = solve_ridge(G, statistics.targets(first.W).T, float(first.gamma * size))
        W = np.concatenate([first.W, self.compensation * second]).astype(statistics.space.dtype)
        if not self.calibrate:
            return DualSolution(W=W, main=first.W, gamma=first.gamma), memory
        both = Problem.of(statistics.total(), ones, 1.0)
        traces = [
            NUMPY.inner_product(RidgeFactor(part.gram(ones), gamma).inverse(), part.within_class_covariance(ones))
            for part, gamma in zip((main, other), (first.gamma, first.gamma * size), strict=True)
        ]
        # The second regression fits c times what the first one has left of a sample: leverages h_1 + c (1 - h_1) h_2.
        per_trace = float(both.count.sum()) / max(float(both.count.sum()) - len(ones), 1e-9)
        trace = traces[0] + self.compensation * (1.0 - min(per_trace * traces[0], 1.0)) * traces[1]
        found = calibrate(both, W, trace, bounded(per_trace * trace))
        return DualSolution.of(W, first.gamma, found, main=first.W), memory


@dataclass(frozen=True, kw_only=True, eq=False)
class DualSolution(CalibratedSolution):
    """W of shape (2 f, C), the weights of both streams one below the other; and those of the main stream alone."""

    main: Array


class DSALClassifier(RidgeClassifier):
    """DS-AL: ACIL on ReLU features, plus c times a regression of its residual on tanh features of the same projection.

    Parameters
    ----------
    gamma : float or "auto", default="auto"
        The ridge of the main stream. That of the other is scaled by the mean squares of the two streams' features.
    compensation : float, default=0.6
        c, the share of the compensation stream. 0 is ACIL.
    n_components : int, default=2048
        Width f of the random projection.
    calibrate : bool, default=False
        Add an intercept, and make probabilities reliable, both from the statistics alone: see `AIRClassifier`. As
        published, without it, there are no probabilities.
    ledger : bool, path or list of paths, default=False
        Keep a hash of every learned row; see `AIRClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of the projection.
    backbone : str or Backbone, default=None
        What makes features of texts or images first; see `AIRClassifier`.

    Attributes
    ----------
    classes_ : array of shape (C,)
    class_count_ : array of shape (C,)
    coef_ : array of shape (C, 2 f)
        Both streams side by side.
    gamma_ : float

    Notes
    -----
    The residual is taken phase by phase, at `end_phase`, and counts for the classes that are new in the phase; the open
    phase is in every prediction. Learning n rows costs O(4 n f^2): the second moments of both streams and between them,
    so that no row of the phase is kept. The result depends on the phases, so learners cannot merge or forget.

    References
    ----------
    H. Zhuang et al., "DS-AL: A Dual-Stream Analytic Learning for Exemplar-Free Class-Incremental Learning", AAAI 2024.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from aircl import DSALClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = DSALClassifier(n_components=300, random_state=0)
    >>> for digits in ([0, 1, 2, 3, 4], [5, 6, 7], [8, 9]):
    ...     phase = [i for i in range(900) if y[i] in digits]
    ...     clf = clf.partial_fit(X[phase] / 16, y[phase]).end_phase()
    >>> print(f"{clf.score(X[900:] / 16, y[900:]):.2f}")
    0.96
    """

    takes_tensors: ClassVar[bool] = False
    _store: ClassVar[type[Statistics]] = TwoStreams

    def __init__(
        self,
        gamma: float | str = "auto",
        *,
        compensation: float = 0.6,
        n_components: int = 2048,
        calibrate: bool = False,
        ledger: KeepLedger = False,
        random_state: Any = None,
        backbone: Any = None,
    ) -> None:
        self.gamma = gamma
        self.compensation = compensation
        self.n_components = n_components
        self.calibrate = calibrate
        self.ledger = ledger
        self.random_state = random_state
        self.backbone = backbone

    def end_phase(self) -> DSALClassifier:
        """Close the phase: its residual joins the compensation stream.

        Returns
        -------
        self : object
        """
        rule = self._rule()

        def close(state: State) -> State:
            state = state.sealed()
            main = rule.solve(state)[0].main
            state = state.with_statistics(lambda held: replace(held, residual=held.targets(main)))
            return state.phase_ended(self._class_weights)

        if self._has_learned():
            self._learner.change(close)
        return self

    def _rule(self) -> DualRidge:
        return DualRidge(self.gamma, float(self.compensation), bool(self.calibrate))

    def _make_expansion(self) -> RandomReLU:
        return RandomReLU(self.n_components, random_state=self.random_state)

    def _features(self, X: Any, inputs: Inputs) -> Iterator[tuple[slice, Array]]:
        size = max(1, BLOCK_BYTES // (2 * inputs.expansion_.components_.shape[1] * X.dtype.itemsize))
        for start in range(0, X.shape[0], size):
            part = slice(start, min(start + size, X.shape[0]))
            P = inputs.expansion_.project(dense_unless(X[part], True))
            yield part, np.concatenate([np.maximum(P, 0), np.tanh(P)], axis=1)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.compensation, Real) or not 0 <= self.compensation < np.inf:
            raise ValueError(f"compensation={self.compensation!r} is not possible. Use a finite number >= 0.")
