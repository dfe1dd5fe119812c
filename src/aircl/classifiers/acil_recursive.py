"""ACIL in its recursive form: predictions after every small batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import linalg

from aircl.classifiers.inputs import Inputs
from aircl.classifiers.linear import CalibratedClassifier, check_gamma
from aircl.classifiers.rows import KeepLedger
from aircl.engine import Rule, Space, State, Statistics
from aircl.engine.backend import NUMPY, Array
from aircl.engine.batch import ClassRows
from aircl.engine.calibration import CalibratedSolution, calibrate
from aircl.engine.means import Shared
from aircl.engine.memory import Stored
from aircl.engine.problem import Problem, scatter_leverage
from aircl.engine.statistics import ByClass, Symmetric, declare

# More rows at once would make the small systems larger than the products that they save.
ROWS = 256


@dataclass(frozen=True)
class Inverse(Symmetric):
    """A symmetric matrix in float64, whatever the dtype of the rows is."""

    def empty(self, space: Space) -> Array:
        """Return the unit matrix: that of gamma = 1."""
        return np.asfortranarray(np.eye(space.n_features))

    def restored(self, arrays: Mapping[str, Array], space: Space, n_classes: int) -> Array:
        """Return it unpacked."""
        return super().restored(arrays, replace(space, dtype=np.dtype(np.float64)), n_classes)


@dataclass(frozen=True, eq=False)
class Recursive(Statistics):
    """R = (sum x'x + gamma I)^-1 and W, both updated by every batch (recursive least squares), in float64.

    For rows X with one-hot labels Y: R <- R - R X'(I + X R X')^-1 X R, then W <- W + R X'(Y - X W). The new R X' is
    R X'(I + X R X')^-1 of the old R, so nothing of size f is ever solved. Memory f^2 + C f numbers; a batch of B rows
    costs 3 B f^2.

    Attributes
    ----------
    weights : array of shape (C, f)
        W transposed.
    inverse : array of shape (f, f)
        R, lower.
    gamma : float
        The ridge in them.
    """

    name: ClassVar[str] = "recursive"
    cannot_forget = "recursive ACIL keeps weights, not statistics, and cannot forget. Use ACILClassifier."
    cannot_merge = "recursive ACIL keeps weights, not statistics, and cannot be merged. Use ACILClassifier."

    weights: Array = declare(ByClass("center"))
    inverse: Array = declare(Inverse("inverse"))
    gamma: float = field(default=1.0, kw_only=True)

    @classmethod
    def beginning(cls, space: Space, gamma: float) -> Recursive:
        """Return the recursion before its first row."""
        inverse = np.asfortranarray(np.eye(space.n_features) / gamma)
        return replace(cls.empty(space), inverse=inverse, gamma=gamma)

    def plus(self, batch: ClassRows, reserve: int = 0) -> Self:
        """Return the weights after some more rows."""
        count, W, R = self.count.copy(), self.weights.copy(), self.inverse.copy(order="F")
        count[batch.slots] += batch.count
        slots = np.repeat(batch.slots, batch.stop - batch.start)
        for start in range(0, len(slots), ROWS):
            part = slice(start, start + ROWS)
            root = None if batch.root_weight is None else batch.root_weight[part]
            _learn(R, W, batch.rows[part].astype(np.float64), slots[part], root)
        return replace(self, count=count, weights=W, inverse=R)

    def with_gamma(self, gamma: float) -> Recursive:
        """Return the weights as if the ridge had been so from the start: R and W in R's eigenbasis. Cost O(f^3)."""
        if gamma == self.gamma:
            return self
        inverse, V = np.linalg.eigh(NUMPY.symmetric(self.inverse))  # 1 / (lambda + gamma)
        ratio = 1.0 / (1.0 + (gamma - self.gamma) * inverse)
        R = np.asfortranarray((V * (inverse * ratio)) @ V.T)
        return replace(self, inverse=R, weights=((self.weights @ V) * ratio) @ V.T, gamma=gamma)

    def moments(self) -> Shared:
        """Return what was learned as means and scatter: sum x'x = R^-1 - gamma I, s = R^-1 W. Cost O(f^3)."""
        total = NUMPY.symmetric(np.asfortranarray(linalg.inv(NUMPY.symmetric(self.inverse))))  # R^-1
        means = self.weights @ total / self.count[:, None]
        total[np.diag_indices_from(total)] -= self.gamma
        scatter = np.asfortranarray(total - (means.T * self.count) @ means)
        return Shared(replace(self.space, dtype=np.dtype(np.float64)), self.count, means, scatter)

    def arrays(self) -> dict[str, Stored]:
        """Return everything that was learned as named NumPy arrays."""
        return super().arrays() | {"gamma": np.array([self.gamma])}

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], space: Space) -> Self:
        """Return what `arrays` returned the arrays of; a gamma of 0 means that they do not have it."""
        gamma = float(arrays["gamma"][0]) if "gamma" in arrays else 0.0
        return replace(super().restored(arrays, space), gamma=gamma)


def _learn(R: Array, W: Array, X: Array, slots: Array, root: Array | None) -> None:
    """Update R (f, f) and W (C, f), which nobody else holds, by rows that are scaled by `root`."""
    Y = np.zeros((len(X), len(W)))
    Y[np.arange(len(X)), slots] = 1.0 if root is None else root
    RX = NUMPY.symmetric_product(R, X.T)  # (f, B)
    L = linalg.cholesky(X @ RX + np.eye(len(X)), lower=True)
    Z = linalg.solve_triangular(L, RX.T, lower=True)  # Z'Z = R X'(I + X R X')^-1 X R
    NUMPY.add_gram(R, Z, alpha=-1.0)
    gain = linalg.solve_triangular(L, Z, lower=True, trans="T")  # (B, f), X R of the new R
    W += (Y - X @ W.T).T @ gain


@dataclass(frozen=True)
class RecursiveRule(Rule):
    """The weights as they are after the last batch; at another ridge than the recursion's, at a cost of O(f^3)."""

    gamma: float
    calibrate: bool = False

    def solve(self, state: State, memory: Any = None) -> tuple[CalibratedSolution, Any]:
        """Return the weights."""
        statistics = state.statistics
        assert isinstance(statistics, Recursive)
        statistics = statistics.with_gamma(self.gamma)
        W = statistics.weights.T.astype(statistics.space.dtype)
        if not self.calibrate:
            return CalibratedSolution(W=W, gamma=self.gamma), memory
        problem = Problem.of(statistics.moments(), np.ones(statistics.n_classes), 1.0)
        K = statistics.inverse
        trace = NUMPY.inner_product(K, problem.within_class_covariance)
        found = calibrate(problem, W, trace, scatter_leverage(problem, K))
        return CalibratedSolution.of(W, self.gamma, found), memory


class RecursiveACILClassifier(CalibratedClassifier):
    """ACIL by recursive least squares: the weights follow every batch, and nothing is ever solved again.

    Parameters
    ----------
    gamma : float, default=1.0
        The ridge, > 0. The recursion begins with it; `change_gamma` changes it.
    expansion : transformer, default=None
        Applied to X first, such as `RandomReLU`.
    calibrate : bool, default=False
        Add an intercept, and make probabilities reliable, both from the statistics alone: see `AIRClassifier`. As
        published, without it, there are no probabilities.
    ledger : bool, path or list of paths, default=False
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

    See Also
    --------
    ACILClassifier : The same weights, from statistics: faster, mergeable, able to forget, and free of drift.

    Notes
    -----
    A batch of B rows costs O(3 B f^2) in float64; prefer it where predictions are wanted after every few rows, B << f,
    when a solve of O(f^3 / 3) each time would cost more. Memory is f^2 + C f numbers.

    References
    ----------
    H. Zhuang et al., "ACIL: Analytic Class-Incremental Learning with Absolute Memorization and Privacy Protection",
    NeurIPS 2022.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from aircl import RandomReLU, RecursiveACILClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = RecursiveACILClassifier(0.1, expansion=RandomReLU(500, random_state=0))
    >>> for start in range(0, 900, 50):
    ...     clf = clf.partial_fit(X[start : start + 50] / 16, y[start : start + 50])
    >>> print(f"{clf.score(X[900:] / 16, y[900:]):.2f}")
    0.96
    """

    takes_tensors: ClassVar[bool] = False
    _store: ClassVar[type[Statistics]] = Recursive

    def __init__(
        self,
        gamma: float = 1.0,
        *,
        expansion: Any = None,
        calibrate: bool = False,
        ledger: KeepLedger = False,
        random_state: Any = None,
        backbone: Any = None,
    ) -> None:
        self.gamma = gamma
        self.expansion = expansion
        self.calibrate = calibrate
        self.ledger = ledger
        self.random_state = random_state
        self.backbone = backbone

    def _empty_statistics(self, space: Space, inputs: Inputs) -> Recursive:
        return Recursive.beginning(space, float(self.gamma))

    def _restored_statistics(self, statistics: Statistics) -> Statistics:
        # Older files have the recursion's ridge as the parameter only.
        assert isinstance(statistics, Recursive)
        return statistics if statistics.gamma else replace(statistics, gamma=float(self.gamma))

    def _rule(self) -> RecursiveRule:
        return RecursiveRule(float(self.gamma), bool(self.calibrate))

    def _check_parameters(self) -> None:
        check_gamma(self.gamma)
        self._check_calibrate()

    def change_gamma(self, gamma: float) -> RecursiveACILClassifier:
        """Go over to another ridge, as if the recursion had begun with it. Cost O(f^3), once.

        After `set_params(gamma=...)` the same weights are used, but every solution pays for it.

        Parameters
        ----------
        gamma : float

        Returns
        -------
        self : object
        """
        check_gamma(gamma)
        self.gamma = gamma  # from here on the rule brings the weights to it, from whatever the recursion has
        if self._has_learned():
            self._learner.change(lambda state: state.with_statistics(lambda held: held.with_gamma(float(gamma))))
        return self
