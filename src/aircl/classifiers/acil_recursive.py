"""ACIL in its recursive form: predictions after every small batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from aircl.classifiers.linear import LinearClassifier, check_gamma
from aircl.engine import Learner, Statistics
from aircl.engine.backend import Array, NumpyBackend
from aircl.engine.linear import LinearSolution
from aircl.engine.recursive import Recursive


@dataclass(frozen=True)
class Current:
    """The weights as they are after the last batch."""

    def solve(self, learner: Learner, labels: Array) -> LinearSolution:
        """Return the weights."""
        store = learner.store
        assert isinstance(store, Recursive)
        return LinearSolution(rule=self, W=store.W.astype(store.dtype))


class RecursiveACILClassifier(LinearClassifier):
    """ACIL by recursive least squares: the weights follow every batch, and nothing is ever solved anew.

    Parameters
    ----------
    gamma : float, default=1.0
        The ridge, > 0. The recursion begins with it, so it cannot be chosen from what is learned later.
    expansion : transformer, default=None
        Applied to X first, such as `RandomReLU`.
    random_state : int, RandomState instance or None, default=None
        Seed of an expansion that has none of its own.

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

    def __init__(self, gamma: float = 1.0, *, expansion: Any = None, random_state: Any = None) -> None:
        self.gamma = gamma
        self.expansion = expansion
        self.random_state = random_state

    def _store_type(self) -> type[Statistics]:
        return Recursive

    def _new_store(self, n_features: int, dtype: np.dtype[Any], backend: NumpyBackend) -> Statistics:
        store = super()._new_store(n_features, dtype, backend)
        assert isinstance(store, Recursive)
        store.begin(float(self.gamma))
        return store

    def _rule(self) -> Current:
        return Current()

    def _check_parameters(self) -> None:
        check_gamma(self.gamma)

    def change_gamma(self, gamma: float) -> RecursiveACILClassifier:
        """Go over to another ridge, as if the recursion had begun with it. Cost O(f^3).

        Parameters
        ----------
        gamma : float

        Returns
        -------
        self : object
        """
        before, self.gamma = self.gamma, gamma
        self._check_parameters()
        if self._has_learned():
            store = self._learner.store
            assert isinstance(store, Recursive)
            with self._learner.computing():
                store.change_gamma(float(gamma) - float(before))
                self._learner.choose_anew()
        return self
