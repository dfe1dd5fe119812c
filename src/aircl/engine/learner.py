"""The engine's core: a store, a weighting and a ridge become a classifier's weights, lazily and once."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from aircl.engine.backend import Array
from aircl.engine.gamma import GammaPath, Spectrum, gamma_grid, log_error, log_odds_of_a_miss
from aircl.engine.memory import OnDisk
from aircl.engine.per_class import PerClass
from aircl.engine.pooled import Pooled
from aircl.engine.shared import Shared
from aircl.engine.solve import solve_ridge
from aircl.engine.statistics import Statistics, StoreError
from aircl.engine.weighting import Weighting, class_weights, depends_on_own_count_only, scale_factor

STORES: dict[str, type[Statistics]] = {store.name: store for store in (Pooled, PerClass, Shared)}


@dataclass(frozen=True)
class Rule:
    """How statistics become a solution: the parameters that may change without learning anything anew."""

    gamma: float | str
    weighting: Weighting
    scale: str


@dataclass(frozen=True)
class Solution:
    """The weights for one state of the statistics.

    Attributes
    ----------
    W : array of shape (f, C)
    pi : array of shape (C,)
        Scaled class weights.
    gamma : float
    path : GammaPath or None
        Where gamma was searched for; None for a given gamma, or one that was kept.
    """

    rule: Rule
    W: Array
    pi: Array
    gamma: float
    path: GammaPath | None


@dataclass
class GammaMemory:
    """The last gamma that was searched for, for which class weights, and how much had been learned then."""

    rule: Rule
    gamma: float
    count: float
    n_classes: int
    path: GammaPath

    def serves(self, rule: Rule, store: Statistics) -> bool:
        """Tell whether it may stand: the same weighting, no new class, and the count has not doubled."""
        return rule == self.rule and store.n_classes == self.n_classes and bool(store.count.sum() < 2 * self.count)


@dataclass
class Learner:
    """Statistics, what they were made of, and the one cached solution.

    Parameters
    ----------
    store : Statistics
    lineage : set of str
        One id per learner whose samples are in the statistics: what was merged once is not merged again.
    """

    store: Statistics
    lineage: set[str] = field(default_factory=lambda: {uuid.uuid4().hex})
    gamma_memory: GammaMemory | None = None
    _solution: Solution | None = None
    _temperature: tuple[Solution, float] | None = None
    _lock: Any = field(default_factory=threading.RLock, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Seal before anything leaves the process; the lock stays."""
        with self._computing():
            self.store.seal()
            return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore with a lock of its own."""
        self.__dict__.update(state, _lock=threading.RLock())

    @contextmanager
    def _computing(self) -> Iterator[None]:
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
        with first._computing(), second._computing():
            yield

    # -- change --
    def update(self, X: Array, slots: Array, weight: Array | None, n_classes: int) -> None:
        """Learn rows; gamma may lag behind."""
        with self._computing():
            self._solution = None
            self.store.grow(n_classes)
            self.store.update(X, slots, weight)

    def end_phase(self, weighting: Weighting, labels: Array) -> None:
        """Close the open phase and let gamma be chosen anew."""
        with self._computing():
            count = self.store.count
            if self.store.name == "pooled" and not depends_on_own_count_only(weighting, count, labels):
                raise StoreError(
                    "store='pooled' folds each phase with the weights it has then, so weighting= must give a class a "
                    "weight that depends on its own count only. Use store='per-class'."
                )
            self.store.end_phase(class_weights(weighting, count, labels))
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
        with self._computing():
            emptied: list[int] = self.store.subtract(X, slots, weight).tolist()
            if emptied:
                self.store.drop(emptied)
            self.choose_anew()
            return emptied

    def forget_classes(self, slots: list[int]) -> None:
        """Take whole classes out."""
        with self._computing():
            self.store.forget_classes(slots)
            self.choose_anew()

    def arrays(self) -> dict[str, Array | OnDisk]:
        """Return everything that was learned as named NumPy arrays or files of them, sealed."""
        with self._computing():
            return self.store.arrays()

    # -- solution --
    def solution(self, rule: Rule, labels: Array) -> Solution:
        """Return the weights, solving only if something has changed since they were last asked for."""
        solution = self._solution
        if solution is not None and solution.rule == rule:
            return solution
        with self._computing():
            if self._solution is None or self._solution.rule != rule:
                self._solution = self._solve(rule, labels)
            return self._solution

    def _solve(self, rule: Rule, labels: Array) -> Solution:
        count = self.store.count
        own = class_weights(rule.weighting, count, labels)
        factor = scale_factor(rule.scale, own, count)
        pi = own * factor
        G = self.store.gram(own)
        G *= factor
        sums = self.store.sums
        path = None
        if rule.gamma == "auto":
            gamma, path = self._choose(rule, G, sums, count, own, pi)
        else:
            gamma = float(rule.gamma)
        backend = self.store.backend
        W = solve_ridge(G, (sums * backend.column(pi, sums)).T, gamma)
        return Solution(rule, backend.cast(W, self.store.dtype), pi, gamma, path)

    def _choose(
        self, rule: Rule, G: Array, sums: Array, count: Array, own: Array, pi: Array
    ) -> tuple[float, GammaPath]:
        if self.gamma_memory is None or not self.gamma_memory.serves(rule, self.store):
            gammas = gamma_grid(G)
            path = GammaPath(gammas, self._criterion(Spectrum(G, sums, count, pi), own, gammas))
            self.gamma_memory = GammaMemory(rule, path.best, float(count.sum()), len(count), path)
        return self.gamma_memory.gamma, self.gamma_memory.path

    def _criterion(self, spectrum: Spectrum, own: Array, gammas: Array) -> Array:
        shrinkage, within = spectrum.shrinkage(gammas), spectrum.rotated(self.store.within(own))
        miss = log_odds_of_a_miss(spectrum, shrinkage, within, self.store.unlike(within, own))
        return log_error(self.store.losses(spectrum, shrinkage, within)) + miss

    def temperature(self, rule: Rule, labels: Array) -> float:
        """Return the variance per output of the class-wise leave-one-out error: the softmax temperature.

        If scores scatter around the one-hot target with variance T in every direction, the posterior of equally
        likely classes is the softmax of the scores over T.
        """
        with self._computing():
            solution = self.solution(rule, labels)
            if self._temperature is None or self._temperature[0] is not solution:
                count, own = self.store.count, class_weights(rule.weighting, self.store.count, labels)
                G = self.store.gram(own) * scale_factor(rule.scale, own, count)
                spectrum = Spectrum(G, self.store.sums, count, solution.pi)
                shrinkage = spectrum.shrinkage(np.array([solution.gamma]))
                losses = self.store.losses(spectrum, shrinkage, spectrum.rotated(self.store.within(own)))
                self._temperature = solution, float(np.exp(log_error(losses)[0])) / len(count)
            return self._temperature[1]
