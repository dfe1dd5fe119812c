"""ACIL in its recursive form: predictions after every small batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from aircl.classifiers.inputs import Inputs
from aircl.classifiers.linear import LinearClassifier, check_gamma
from aircl.engine import Space, State, Statistics
from aircl.engine.recursive import Recursive
from aircl.engine.solve import LinearSolution


@dataclass(frozen=True)
class RecursiveRule:
    """The weights as they are after the last batch; at another ridge than the recursion's, at a cost of O(f^3)."""

    gamma: float

    def solve(self, state: State, memory: Any = None) -> tuple[LinearSolution, Any]:
        """Return the weights."""
        statistics = state.statistics
        assert isinstance(statistics, Recursive)
        W = statistics.with_gamma(self.gamma).weights.T
        return LinearSolution(W=W.astype(statistics.space.dtype), gamma=self.gamma), memory


class RecursiveACILClassifier(LinearClassifier):
    """ACIL by recursive least squares: the weights follow every batch, and nothing is ever solved anew.

    Parameters
    ----------
    gamma : float, default=1.0
        The ridge, > 0. The recursion begins with it; `change_gamma` goes over to another one.
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

    def _empty_statistics(self, space: Space, inputs: Inputs) -> Recursive:
        return Recursive.beginning(space, float(self.gamma))

    def _restored_statistics(self, statistics: Statistics) -> Statistics:
        # Older files have the recursion's ridge as the parameter only.
        assert isinstance(statistics, Recursive)
        return statistics if statistics.gamma else replace(statistics, gamma=float(self.gamma))

    def _rule(self) -> RecursiveRule:
        return RecursiveRule(float(self.gamma))

    def _check_parameters(self) -> None:
        check_gamma(self.gamma)

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
