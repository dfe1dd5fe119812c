"""SLDA: linear discriminant analysis of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from aircl.classifiers.linear import CalibratedClassifier
from aircl.classifiers.rows import KeepLedger
from aircl.engine import Rule, State, Statistics
from aircl.engine.backend import Array
from aircl.engine.calibration import CalibratedSolution, LinearScores, calibrate_linear
from aircl.engine.means import Shared
from aircl.engine.problem import Problem
from aircl.engine.solve import solve_ridge


@dataclass(frozen=True)
class Discriminant(Rule):
    """Gaussian classes of one covariance: score x'P m_y - m_y'P m_y / 2 with P = ((1 - e) S + e I)^-1."""

    shrinkage: float
    calibrate: bool = False

    def solve(self, state: State, memory: Any = None) -> tuple[CalibratedSolution, Any]:
        """Return the discriminant functions."""
        statistics = state.statistics
        assert isinstance(statistics, Shared)
        means, S_w = statistics.means, statistics.within_class_covariance(statistics.count)
        W = solve_ridge((1.0 - self.shrinkage) * S_w, means.T, self.shrinkage)
        b, backend = -0.5 * (means.T * W).sum(0), statistics.space.backend
        temperature = 1.0  # log densities: their softmax is the posterior as it is
        if self.calibrate:
            found = calibrate_linear(*self._as_simulated(statistics, S_w, W, b))
            b, temperature = b + backend.asarray(found.b), found.temperature
        return CalibratedSolution(W=backend.cast(W, statistics.space.dtype), b=b, temperature=temperature), memory

    def _as_simulated(self, statistics: Shared, S_w: Array, W: Array, b: Array) -> tuple[Problem, LinearScores]:
        """Return what new samples are simulated from: m_y is nearer to its own samples by tr(P S) / n_y."""
        backend, count = statistics.space.backend, statistics.count
        n, C, S_w = float(count.sum()), len(count), backend.symmetric(backend.double(S_w))
        trace = backend.trace(solve_ridge((1.0 - self.shrinkage) * S_w, S_w, self.shrinkage))  # tr(P S_w)
        h = min((1.0 - self.shrinkage) * trace / max(n - C, 1e-9), 1.0 - 1e-6)
        drop = trace * n / max(n - C, 1e-9) / (1.0 - h) / count
        deviation = float(((W.T @ S_w) * W.T).sum(1).mean()) ** 0.5
        linear = LinearScores(W, backend.to_numpy(b), np.ones(C), drop, h, log_scale=2.0 * deviation or 1.0)
        return Problem.of(statistics, 1.0 / count, 1.0), linear


class SLDAClassifier(CalibratedClassifier):
    """SLDA: class means and ONE covariance, both exact on any stream; all classes are equally likely.

    Parameters
    ----------
    shrinkage : float, default=1e-4
        e in the precision matrix ((1 - e) S + e I)^-1, in [0, 1].
    expansion : transformer, default=None
        Applied to X first.
    ledger : bool, path or list of paths, default=False
        Keep a hash of every learned row; see `AIRClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of an expansion that has none of its own.
    calibrate : bool, default=False
        Add to the intercept and choose a temperature such that probabilities are reliable, from the statistics alone;
        see `aircl.engine.calibration`. Without it they are those of normal classes, which features are not.
    backbone : str or Backbone, default=None
        What makes features of texts or images first; see `AIRClassifier`.

    Attributes
    ----------
    classes_ : array of shape (C,)
    class_count_ : array of shape (C,)
    coef_ : array of shape (C, f)
    intercept_ : array of shape (C,)
    temperature_ : float

    Notes
    -----
    Statistics are those of store="shared": learning n rows costs O(n f^2), memory is f^2 + C f numbers. S is the
    within-class scatter over n, as in scikit-learn's LinearDiscriminantAnalysis(solver="lsqr"), whose decision function
    is this one plus the logarithms of the priors.

    References
    ----------
    T. Hayes, C. Kanan, "Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis", CVPR-W 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from aircl import SLDAClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = SLDAClassifier().fit(X[:900], y[:900])
    >>> print(f"{clf.score(X[900:], y[900:]):.2f}")
    0.92
    """

    _store: ClassVar[type[Statistics]] = Shared

    def __init__(
        self,
        shrinkage: float = 1e-4,
        *,
        expansion: Any = None,
        ledger: KeepLedger = False,
        random_state: Any = None,
        calibrate: bool = False,
        backbone: Any = None,
    ) -> None:
        self.shrinkage = shrinkage
        self.expansion = expansion
        self.ledger = ledger
        self.random_state = random_state
        self.calibrate = calibrate
        self.backbone = backbone

    def _rule(self) -> Discriminant:
        return Discriminant(float(self.shrinkage), bool(self.calibrate))

    def _check_parameters(self) -> None:
        if not isinstance(self.shrinkage, Real) or not 0 <= self.shrinkage <= 1:
            raise ValueError(f"shrinkage={self.shrinkage!r} is not possible. Use a number from 0 to 1.")
        self._check_calibrate()

    def _has_probabilities(self) -> bool:
        return True  # of normal classes, or calibrated
