"""One state behind one lock, and the one solution that was last made of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from aircl.engine.backend import Array
from aircl.engine.labels import Labels
from aircl.engine.solve import Solution
from aircl.engine.space import Space
from aircl.engine.state import State
from aircl.engine.statistics import Statistics


class Rule:
    """How a state becomes a solution: parameters that may change without learning anything again. Rules compare.

    Attributes
    ----------
    sums_moments : bool
        Whether solving sums the second moments of the classes: those that are summed often take another form.

    Examples
    --------
    A rule of one's own, by which class means are the weights:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from aircl.engine import STORES, Learner, Rule, Space
    >>> from aircl.engine.solve import LinearSolution
    >>> @dataclass(frozen=True)
    ... class ClassMeans(Rule):
    ...     def solve(self, state, memory=None):
    ...         return LinearSolution(W=state.statistics.means.T), memory
    >>> learner = Learner.empty(STORES["shared"], Space(n_features=2, dtype=np.float64))
    >>> learner.learn(np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 5.0]]), np.array([0, 0, 1]))
    >>> learner.solution(ClassMeans()).W.tolist()
    [[2.0, 0.0], [0.0, 5.0]]
    """

    sums_moments: ClassVar[bool] = False

    def solve(self, state: State, memory: Any = None) -> tuple[Solution, Any]:
        """Return the solution for an absorbed state, and what to remember for the next one."""
        raise NotImplementedError

    def solve_again(self, last: Solved, state: State, memory: Any = None) -> tuple[Solution, Any]:
        """Do as `solve`, with what the last rule has prepared for the same state, if that is of use."""
        return self.solve(state, memory)


@dataclass(frozen=True, eq=False)
class Solved:
    """A solution, and what it is a solution of.

    Attributes
    ----------
    version : int
        Of the state.
    rule : Rule
    labels : Labels
    inputs : object
    n_samples : float
        Sum of all sample weights.
    width : int
        Of the rows that are scored.
    dtype : dtype
        Of the rows.
    solution : Solution
    is_released : bool
        Whether the solution has let go what it held of the state.
    """

    version: int
    rule: Rule
    labels: Labels
    inputs: Any
    n_samples: float
    width: int
    dtype: np.dtype[Any]
    solution: Any
    is_released: bool = False

    @classmethod
    def of(cls, state: State, rule: Rule, solution: Any) -> Solved:
        """Return a solution with what a prediction needs of its state."""
        statistics, n = state.statistics, float(state.count.sum())
        width, dtype = statistics.n_score_features, statistics.space.dtype
        return cls(state.version, rule, state.labels, state.inputs, n, width, dtype, solution)


class Learner:
    """One state behind one lock, and the solution that was last made of it.

    Writers come one after the other. Readers never see a part of a change, and wait for a writer only to have rows
    absorbed that wait.

    Parameters
    ----------
    state : State
    memory : object
        What a rule has left for its next solution.

    Examples
    --------
    What the classifiers do, without checks:

    >>> import numpy as np
    >>> from aircl.engine import STORES, Learner, Ridge, Space
    >>> learner = Learner.empty(STORES["per-class"], Space(n_features=3, dtype=np.float64))
    >>> learner.learn(np.eye(3)[[0, 0, 1, 2]], np.array(["cat", "cat", "dog", "owl"]))
    >>> learner.solution(Ridge(0.1, "inverse", "mean")).W.round(2).tolist()
    [[0.92, 0.0, 0.0], [0.0, 0.92, 0.0], [0.0, 0.0, 0.92]]
    """

    def __init__(self, state: State, memory: Any = None) -> None:
        self.state = state
        self.memory = memory
        self._last: Solved | None = None
        self._writing, self._solving = threading.RLock(), threading.RLock()

    @classmethod
    def empty(cls, store: type[Statistics], space: Space) -> Learner:
        """Return a learner that has learned nothing."""
        return cls(State.empty(store.empty(space)))

    def __getstate__(self) -> dict[str, Any]:
        """Seal before anything leaves the process; locks and solution stay."""
        return {"state": self.sealed(), "memory": self.memory}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore with locks of its own."""
        self.__init__(state["state"], state["memory"])  # type: ignore[misc]

    # -- change --
    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let no other writer in, in the context that the backend changes statistics in."""
        with self._writing, self.state.statistics.space.backend.no_grad():
            yield

    def change(self, function: Callable[[State], State]) -> None:
        """Go over to the state that a function makes of this one."""
        with self.locked():
            self.state = function(self.state)
            self._release()

    def _release(self) -> None:
        """Let go what the last solution still holds of an older state; it stays one to predict with."""
        last = self._last
        if last is not None and last.version != self.state.version:  # a reader may have solved the new state already
            self._last = replace(last, solution=last.solution.released(), is_released=True)

    def learn(self, X: Array, labels: Array, weight: Array | None = None) -> None:
        """Learn rows X (n, f)."""
        with self.locked():
            self.absorb(room=len(X))
            self.change(lambda state: state.learned(X, labels, weight))

    def absorb(self, room: int | None = None) -> State:
        """Bring the rows that wait into the statistics, a step at a time, unless there is `room` for as many more.

        The statistics of one step stay while the next is made, instead of those of all.
        """
        state = self.state
        if room is not None and len(state.waiting) + room <= state.statistics.space.waiting_rows:
            return state
        if self._writing.acquire(blocking=room is not None):
            try:
                with self.locked():
                    while not self.state.is_absorbed:
                        self.state = self.state.step()
                    self.state = self.state.absorbed()
                    return self.state
            finally:
                self._writing.release()
        with state.statistics.space.backend.no_grad():  # a writer is at work: a reader does not wait for it
            return state.absorbed()

    def sealed(self) -> State:
        """Return the state, sealed; and stay so."""
        with self.locked():
            self.state = self.state.sealed()
            return self.state

    # -- solution --
    def last(self, rule: Rule) -> Solved | None:
        """Return the last solution by this rule, of whatever state; None if there is none."""
        last = self._last
        return last if last is not None and last.rule == rule else None

    def solved(self, rule: Rule) -> Solved:
        """Return the solution of the state as it is now, solving only if it has changed since it was last asked for."""
        last = self.last(rule)
        if last is not None and last.version == self.state.version:
            return last
        with self._solving:
            state = self.absorb()
            last = self.last(rule)
            # A writer may have changed the state since, and released the solution of this one.
            if last is not None and last.version == state.version and not last.is_released:
                return last
            with state.statistics.space.backend.no_grad():
                prepared = self._last
                if prepared is not None and prepared.version == state.version:
                    solution, self.memory = rule.solve_again(prepared, state, self.memory)
                else:
                    solution, self.memory = rule.solve(state, self.memory)
                self._last = last = Solved.of(state, rule, solution)
            if rule.sums_moments and self._writing.acquire(blocking=False):
                try:
                    if self.state is state:
                        self.state = replace(state, statistics=state.statistics.after_sum())
                finally:
                    self._writing.release()
            return last

    def solution(self, rule: Rule) -> Any:
        """Return the solution of the state as it is now."""
        return self.solved(rule).solution


@contextmanager
def both_locked(one: Learner, other: Learner) -> Iterator[None]:
    """Let no writer into either; one order for all, so that two that merge each other do not deadlock."""
    first, second = sorted((one, other), key=id)
    with first.locked(), second.locked():
        yield
