"""The engine's core: a store and a rule become a solution, lazily and once, safely between threads."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from aircl.engine.backend import Array
from aircl.engine.memory import OnDisk
from aircl.engine.statistics import Statistics

if TYPE_CHECKING:
    from aircl.engine.ridge import GammaMemory


class Solution(Protocol):
    """What a rule made of the statistics, in one state of them.

    Attributes
    ----------
    rule : Rule
        What made it.

    Examples
    --------
    A solution that scores by the counts of the classes, whatever the features are:

    >>> import numpy as np
    >>> class Counts:
    ...     def __init__(self, rule, count):
    ...         self.rule, self.count = rule, count
    ...     def scorer(self, order):
    ...         return lambda X: np.tile(self.count[order], (len(X), 1))
    >>> score = Counts(None, np.array([5.0, 2.0, 9.0])).scorer(np.array([2, 0, 1]))
    >>> score(np.zeros((2, 4))).tolist()
    [[9.0, 5.0, 2.0], [9.0, 5.0, 2.0]]
    """

    @property
    def rule(self) -> Rule:
        """The rule."""

    def scorer(self, order: Array) -> Callable[[Array], Array]:
        """Return the function from features (n, f) to scores (n, C) of the classes, in this order of their slots."""


class Rule(Protocol):
    """How statistics become a solution: parameters that may change without learning anything anew. Rules compare.

    Examples
    --------
    A rule of one's own, by which class means are the weights:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from aircl.engine import STORES, Learner
    >>> from aircl.engine.linear import LinearSolution
    >>> @dataclass(frozen=True)
    ... class ClassMeans:
    ...     def solve(self, learner, labels):
    ...         means = learner.store.sums / learner.store.count[:, None]
    ...         return LinearSolution(rule=self, W=means.T)
    >>> learner = Learner(STORES["shared"](n_features=2, dtype=np.float64))
    >>> learner.update(np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 5.0]]), np.array([0, 0, 1]), None, n_classes=2)
    >>> learner.solution(ClassMeans(), labels=np.arange(2)).W.tolist()
    [[2.0, 0.0], [0.0, 5.0]]
    """

    def solve(self, learner: Learner, labels: Array) -> Solution:
        """Return the solution for what was learned; labels (C,) are by slot."""


@dataclass
class Learner:
    """Statistics, what they were made of, and the one cached solution.

    Parameters
    ----------
    store : Statistics
    lineage : set of str
        One id per learner whose samples are in the statistics: what was merged once is not merged again.
    gamma_memory : GammaMemory or None
        The last gamma that was searched for.

    Examples
    --------
    What the classifiers do, without labels and checks:

    >>> import numpy as np
    >>> from aircl.engine import STORES, Learner, Ridge
    >>> learner = Learner(STORES["per-class"](n_features=3, dtype=np.float64))
    >>> learner.update(np.eye(3)[[0, 0, 1, 2]], np.array([0, 0, 1, 2]), None, n_classes=3)
    >>> solution = learner.solution(Ridge(0.1, "inverse", "mean"), labels=np.arange(3))
    >>> solution.W.round(2).tolist()
    [[0.92, 0.0, 0.0], [0.0, 0.92, 0.0], [0.0, 0.0, 0.92]]
    """

    store: Statistics
    lineage: set[str] = field(default_factory=lambda: {uuid.uuid4().hex})
    gamma_memory: GammaMemory | None = None
    _solution: Solution | None = None
    _lock: Any = field(default_factory=threading.RLock, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Seal before anything leaves the process; the lock stays."""
        with self.computing():
            self.store.seal()
            return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore with a lock of its own."""
        self.__dict__.update(state, _lock=threading.RLock())

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Hold the lock, in the context that the backend changes statistics in."""
        with self._lock, self.store.backend.computing():
            yield

    @property
    def count(self) -> Array:
        """n_y by slot, not in the middle of a change."""
        with self._lock:
            return self.store.count

    @contextmanager
    def locked_with(self, other: Learner) -> Iterator[None]:
        """Let nothing change in either; one order for all, so that two that merge each other do not wait in a ring."""
        first, second = sorted((self, other), key=id)
        with first.computing(), second.computing():
            yield

    # -- change --
    def update(self, X: Array, slots: Array, weight: Array | None, n_classes: int) -> None:
        """Learn rows; gamma may lag behind."""
        with self.computing():
            self._solution = None
            self.store.grow(n_classes)
            self.store.update(X, slots, weight)

    def end_phase(self, weights: Callable[[Array], Array]) -> None:
        """Close the open phase, with class weights that are a function of the counts; let gamma be chosen anew."""
        with self.computing():
            self.store.end_phase(weights(self.store.count))
            self.choose_anew()

    def choose_anew(self) -> None:
        """Drop the cached solution and the remembered gamma."""
        self._solution = self.gamma_memory = None

    def merge(self, other: Learner, slots: Array) -> None:
        """Add another learner's statistics, whose class i is `slots[i]` here."""
        with self.locked_with(other):
            self.store.check_merge(slots)
            self.store.merge(other.store, slots)
            self.lineage |= other.lineage
            self.choose_anew()

    def forget_rows(self, X: Array, slots: Array, weight: Array | None) -> list[int]:
        """Take rows out; return the slots that vanished with their last row."""
        with self.computing():
            emptied: list[int] = self.store.subtract(X, slots, weight).tolist()
            if emptied:
                self.store.drop(emptied)
            self.choose_anew()
            return emptied

    def forget_classes(self, slots: list[int]) -> None:
        """Take whole classes out."""
        with self.computing():
            self.store.forget_classes(slots)
            self.choose_anew()

    def arrays(self) -> dict[str, Array | OnDisk]:
        """Return everything that was learned as named NumPy arrays or files of them, sealed."""
        with self.computing():
            return self.store.arrays()

    # -- solution --
    def solution(self, rule: Rule, labels: Array) -> Solution:
        """Return the solution, solving only if something has changed since it was last asked for."""
        solution = self._solution
        if solution is not None and solution.rule == rule:
            return solution
        with self.computing():
            if self._solution is None or self._solution.rule != rule:
                self._solution = rule.solve(self, labels)
            return self._solution
