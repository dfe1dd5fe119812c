"""AIR's rule: a weighting and a ridge turn statistics into a classifier's weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import exp
from typing import ClassVar

from aircl.engine.air import solve, weigh
from aircl.engine.backend import Array, backend_of
from aircl.engine.calibration import Calibration, calibrate
from aircl.engine.gamma import Criterion, GammaPath, Trial, choose_gamma
from aircl.engine.learner import Rule, Solved
from aircl.engine.novelty import Novelty, novelty
from aircl.engine.problem import Problem
from aircl.engine.solve import LinearSolution
from aircl.engine.state import State
from aircl.engine.weighting import Weighting


@dataclass(frozen=True)
class Ridge(Rule):
    """Ridge regression on one-hot labels, every class weighing pi_y.

    Attributes
    ----------
    gamma : float or "auto"
        "auto": chosen from the statistics, see `aircl.engine.gamma`.
    weighting : {"inverse", "uniform", "effective"}, float, mapping or callable
        From counts to class weights.
    scale : {"mean", "none", "balanced"}
        Of the weights, see `AIRClassifier`.
    calibrate : bool
        Whether there are an intercept and a temperature, see `aircl.engine.calibration`.

    Examples
    --------
    The same statistics under two rules. A class of four samples and one of a single sample:

    >>> import numpy as np
    >>> from aircl.engine import STORES, Learner, Ridge, Space
    >>> learner = Learner.empty(STORES["per-class"], Space(n_features=2, dtype=np.float64))
    >>> learner.learn(np.eye(2)[[0, 0, 0, 0, 1]], np.array(["cat"] * 4 + ["dog"]))
    >>> for weighting in ("uniform", "inverse"):  # ACIL and AIR
    ...     solution = learner.solution(Ridge(1.0, weighting, "mean"))
    ...     print(weighting, solution.pi, solution.W.diagonal().round(2))
    uniform [1. 1.] [0.8 0.5]
    inverse [0.4 1.6] [0.62 0.62]
    """

    gamma: float | str
    weighting: Weighting
    scale: str
    calibrate: bool = False
    sums_moments: ClassVar[bool] = True

    @property
    def weighed(self) -> Ridge:
        """The same but for what no search depends on."""
        return Ridge(self.gamma, self.weighting, self.scale)

    def solve(self, state: State, memory: object = None) -> tuple[RidgeSolution, object]:
        """Return the weights for what was learned, and the gamma to remember."""
        return self.solve_problem(weigh(state.statistics, self.weighting, self.scale, state.labels.seen), state, memory)

    def solve_again(self, last: Solved, state: State, memory: object = None) -> tuple[RidgeSolution, object]:
        """Do as `solve`, without weighing again if the last solution, of the same state, has another gamma only."""
        rule, problem = last.rule, last.solution.problem if isinstance(last.rule, Ridge) else None
        if problem is None or not isinstance(rule, Ridge) or replace(rule.weighed, gamma=self.gamma) != self.weighed:
            return self.solve(state, memory)
        return self.solve_problem(problem, state, memory)

    def solve_problem(self, problem: Problem, state: State, memory: object = None) -> tuple[RidgeSolution, object]:
        """Do as `solve`, for a state that has been weighed."""
        chosen: GammaMemory | None = None
        trial: Trial | None = None
        if self.gamma == "auto":
            chosen = memory if isinstance(memory, GammaMemory) and memory.is_near_for(self, state) else None
            if chosen is None or not chosen.is_valid_for(self, state):
                path, trial = choose_gamma(problem, None if chosen is None else chosen.gamma)
                chosen = GammaMemory.of(self, state, path)
        gamma = float(self.gamma) if chosen is None else chosen.gamma
        if self.calibrate and trial is None:
            trial = Criterion(problem).at(gamma)
        W = solve(problem, gamma) if trial is None or trial.W is None else trial.W
        backend, dtype = problem.backend, problem.space.dtype
        found = calibrate(problem, W, trial.trace, trial.leverage) if self.calibrate and trial is not None else None
        solution = RidgeSolution(
            W=backend.cast(W, dtype),
            b=None if found is None else backend.cast(backend.asarray(found.b), dtype),
            pi=problem.pi,
            count=problem.count,
            gamma=gamma,
            path=None if chosen is None else chosen.path,
            problem=problem,
            calibration=found,
        )
        return solution, chosen or memory


@dataclass(frozen=True, kw_only=True, eq=False)
class RidgeSolution(LinearSolution):
    """The weights for one state of the statistics.

    Attributes
    ----------
    W : array of shape (f, C)
    pi, count : arrays of shape (C,)
        Scaled class weights, and n_y.
    b : array of shape (C,) or None
        Intercepts, if calibrated.
    gamma : float
        The ridge that was used.
    path : GammaPath or None
        Where gamma was searched for; None for a given gamma.
    problem : Problem or None
        What was solved, as long as nothing has changed.
    calibration : Calibration or None

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.engine import STORES, Learner, Ridge, Space
    >>> learner = Learner.empty(STORES["per-class"], Space(n_features=3, dtype=np.float64))
    >>> X = np.eye(3)[[0, 1, 2, 2]]
    >>> learner.learn(X, np.array([0, 1, 1, 1]))
    >>> solution = learner.solution(Ridge("auto", "inverse", "mean"))
    >>> solution.W.shape, solution.pi, solution.path.best == solution.gamma
    ((3, 2), array([1.5, 0.5]), True)
    >>> solution.scorer(np.arange(2))(X).argmax(axis=1)
    array([0, 1, 1, 1])
    """

    gamma: float
    pi: Array
    count: Array
    path: GammaPath | None
    problem: Problem | None
    calibration: Calibration | None = None

    @cached_property
    def temperature(self) -> float:
        """The softmax temperature: as calibrated, or the variance per output of the class-wise leave-one-out error.

        If scores scatter around the one-hot target with variance T in every direction, the posterior of equally
        likely classes is the softmax of the scores over T. A gamma that was searched for has brought it along.
        """
        if self.calibration is not None:
            return self.calibration.temperature
        error = None if self.path is None else self.path.least_error
        if error is None:
            assert self.problem is not None
            error = Criterion(self.problem).at(self.gamma).error
        return exp(error) / len(self.pi)

    @cached_property
    def novelty(self) -> Novelty:
        """How unlike anything learned rows are; as long as the problem is there."""
        assert self.problem is not None
        return novelty(self.problem)

    @property
    def share(self) -> Array:
        """The share of every class in the loss, in sum 1, shape (C,)."""
        share: Array = self.pi * self.count / (self.pi @ self.count)
        return share

    def with_log_odds(self, change: Array) -> RidgeSolution:
        """Return the same with the log-odds of every class changed, (C,): where `share` is not how likely they are."""
        backend, dtype = backend_of(self.W), self.W.dtype
        shift = backend.cast(backend.asarray(self.temperature * change), dtype)
        changed = replace(self, b=shift if self.b is None else self.b + shift)
        kept = ("temperature", "novelty")
        changed.__dict__.update({name: self.__dict__[name] for name in kept if name in self.__dict__})
        return changed

    @property
    def is_released(self) -> bool:
        """Whether the temperature is not known and cannot be any more."""
        searched = self.path is not None and self.path.least_error is not None
        known = searched or self.calibration is not None or "temperature" in self.__dict__
        return self.problem is None and not known

    def released(self) -> RidgeSolution:
        """Return the same without the problem, which holds the statistics."""
        released = replace(self, problem=None)
        if "temperature" in self.__dict__:
            released.__dict__["temperature"] = self.temperature
        return released


@dataclass(frozen=True, eq=False)
class GammaMemory:
    """The last gamma that was searched for, for which class weights, and how much had been learned then.

    Attributes
    ----------
    rule : Ridge
        With gamma="auto", as `Ridge.weighed`.
    gamma : float
    count : float
        Sum of all sample weights.
    n_classes, epoch : int
    path : GammaPath

    Examples
    --------
    It stands until the count has doubled:

    >>> import numpy as np
    >>> from aircl.engine import STORES, Learner, Ridge, Space
    >>> rule, labels, X = Ridge("auto", "inverse", "mean"), np.arange(3), np.eye(3)
    >>> learner = Learner.empty(STORES["per-class"], Space(n_features=3, dtype=np.float64))
    >>> learner.learn(X, labels)
    >>> solution = learner.solution(rule)
    >>> memory = learner.memory
    >>> learner.learn(X[:1], labels[:1])
    >>> memory.count, memory.is_valid_for(rule, learner.state)
    (3.0, True)
    >>> learner.learn(X, labels)
    >>> memory.is_valid_for(rule, learner.state)
    False
    """

    rule: Ridge
    gamma: float
    count: float
    n_classes: int
    epoch: int
    path: GammaPath

    @classmethod
    def of(cls, rule: Ridge, state: State, path: GammaPath) -> GammaMemory:
        """Remember the best gamma of a search in this state."""
        return cls(rule.weighed, path.best, float(state.count.sum()), state.n_classes, state.epoch, path)

    def is_near_for(self, rule: Ridge, state: State) -> bool:
        """Tell whether to search in its vicinity only: the same weighting, no end of a phase, few new classes."""
        same = (rule.weighed, state.epoch) == (self.rule, self.epoch)
        return same and 2 * state.n_classes < 3 * self.n_classes

    def is_valid_for(self, rule: Ridge, state: State) -> bool:
        """Tell whether it may stand: it is near, a tenth more classes at the most, none less, the count not doubled."""
        few = self.n_classes <= state.n_classes <= 1.1 * self.n_classes
        return self.is_near_for(rule, state) and few and bool(state.count.sum() < 2 * self.count)
