"""SLDA: linear discriminant analysis of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar

from aircl.classifiers.linear import LinearClassifier
from aircl.engine import State, Statistics
from aircl.engine.backend import Array
from aircl.engine.means import Shared
from aircl.engine.solve import LinearSolution, solve_ridge


@dataclass(frozen=True, kw_only=True, eq=False)
class Discriminants(LinearSolution):
    """Log densities up to a constant: their softmax is the posterior as it is."""

    temperature: ClassVar[float] = 1.0


@dataclass(frozen=True)
class Discriminant:
    """Gaussian classes of one covariance: score x'P m_y - m_y'P m_y / 2 with P = ((1 - e) S + e I)^-1."""

    shrinkage: float

    def solve(self, state: State, memory: Any = None) -> tuple[Discriminants, Any]:
        """Return the discriminant functions."""
        statistics = state.statistics
        assert isinstance(statistics, Shared)
        means, within = statistics.means, statistics.within_class_covariance(statistics.count)
        W = solve_ridge((1.0 - self.shrinkage) * within, means.T, self.shrinkage)
        W_cast = statistics.space.backend.cast(W, statistics.space.dtype)
        return Discriminants(W=W_cast, b=-0.5 * (means.T * W).sum(0)), memory


class SLDAClassifier(LinearClassifier):
    """SLDA: class means and ONE covariance, both exact on any stream; all classes are equally likely.

    Parameters
    ----------
    shrinkage : float, default=1e-4
        e in the precision matrix ((1 - e) S + e I)^-1, in [0, 1].
    expansion : transformer, default=None
        Applied to X first.
    ledger : bool, str or path, default=False
        Keep a hash of every learned row; see `AIRClassifier`.
    random_state : int, RandomState instance or None, default=None
        Seed of an expansion that has none of its own.
    backbone : str or Backbone, default=None
        What makes features of texts or images first; see `AIRClassifier`.

    Attributes
    ----------
    classes_ : array of shape (C,)
    class_count_ : array of shape (C,)
    coef_ : array of shape (C, f)
    intercept_ : array of shape (C,)

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

    def __init__(
        self,
        shrinkage: float = 1e-4,
        *,
        expansion: Any = None,
        ledger: bool | str | Path = False,
        random_state: Any = None,
        backbone: Any = None,
    ) -> None:
        self.shrinkage = shrinkage
        self.expansion = expansion
        self.ledger = ledger
        self.random_state = random_state
        self.backbone = backbone

    def _store_type(self) -> type[Statistics]:
        return Shared

    def _rule(self) -> Discriminant:
        return Discriminant(float(self.shrinkage))

    def _check_parameters(self) -> None:
        if not isinstance(self.shrinkage, Real) or not 0 <= self.shrinkage <= 1:
            raise ValueError(f"shrinkage={self.shrinkage!r} is not possible. Use a number from 0 to 1.")

    @property
    def intercept_(self) -> Array:
        """-m_y'P m_y / 2 of every class, shape (C,)."""
        self._require_learned("intercept_")
        return self._learned_by_class("b")

    def predict_proba(self, X: Any) -> Array:
        """Return the posterior of equally likely Gaussian classes: a softmax of the scores.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)

        Returns
        -------
        p : array of shape (n_samples, n_classes)
        """
        return self._query(X).predict_proba(X)
