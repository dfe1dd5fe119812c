"""The state of a learner, changed as a whole, and the one solution that was last made of it.

A `State` is a value: every change makes another one, and a learner has changed when its `state` is another. So
whatever is raised, wherever, a learner is as before or as after, and whoever reads a state reads one moment.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from aircl.engine.backend import Array
from aircl.engine.batch import ClassRows, Waiting, sort_by_class
from aircl.engine.labels import Labels
from aircl.engine.space import Space
from aircl.engine.statistics import Statistics, Stored

# Larger batches are added in blocks of about this many bytes.
BLOCK_BYTES = 128 * 2**20


@dataclass(frozen=True, eq=False)
class State:
    """Labels and statistics at one moment, and the rows that are on their way into the statistics.

    Attributes
    ----------
    statistics : Statistics
        Without the rows that wait.
    labels : Labels
        Of all classes that a row was seen of.
    waiting : Waiting
    batch : ClassRows or None
        Rows that no longer wait, sorted by class, of which the first classes are in the statistics already.
    inputs : object
        What the rows were made of: the classifier's business.
    lineage : frozenset of str
        One id per learner whose samples are in the statistics: what was merged once is not merged again.
    version : int
        One more after every change.
    epoch : int
        One more whenever gamma is to be chosen anew.

    Examples
    --------
    A change makes another state; the one before stays what it was:

    >>> import numpy as np
    >>> from aircl.engine import STORES, Space, State
    >>> before = State.empty(STORES["shared"].empty(Space(n_features=2, dtype=np.float64)))
    >>> after = before.learned(np.eye(2), np.array(["cat", "dog"]))
    >>> before.n_classes, after.n_classes, after.labels.seen.tolist(), after.count
    (0, 2, ['cat', 'dog'], array([1., 1.]))
    >>> after.without_classes(np.array(["cat"]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    aircl.engine.space.StoreError: store='shared' holds one scatter for all classes and cannot forget a whole class ...
    """

    statistics: Statistics
    labels: Labels
    waiting: Waiting
    batch: ClassRows | None = None
    inputs: Any = None
    lineage: frozenset[str] = field(default_factory=lambda: frozenset({uuid.uuid4().hex}))
    version: int = 0
    epoch: int = 0

    @classmethod
    def empty(cls, statistics: Statistics, **more: Any) -> State:
        """Return the state in which nothing was learned."""
        return cls(statistics, more.pop("labels", Labels()), Waiting(statistics.space), **more)

    @property
    def n_classes(self) -> int:
        """The number of classes that were seen."""
        return len(self.labels)

    @property
    def count(self) -> Array:
        """n_y by slot, rows that wait included, shape (C,)."""
        count = self.waiting.count(self.n_classes)
        count[: self.statistics.n_classes] += self.statistics.count
        if self.batch is not None:
            count[self.batch.slots] += self.batch.count
        return count

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return self.statistics.nbytes + self.waiting.nbytes + (0 if self.batch is None else self.batch.rows.nbytes)

    def _changed(self, *, anew: bool, **parts: Any) -> State:
        return replace(self, version=self.version + 1, epoch=self.epoch + anew, **parts)

    # -- rows on their way --
    @property
    def is_absorbed(self) -> bool:
        """Whether all rows are in the statistics."""
        return self.batch is None and len(self.waiting) == 0

    def step(self) -> State:
        """Return the same, one step further: what was learned does not change, only where it is."""
        if self.batch is None:
            return replace(self, batch=self.waiting.sorted(), waiting=Waiting(self.statistics.space))
        statistics = self.statistics.padded(self.n_classes)
        n = statistics.first_step(self.batch)
        rest = self.batch.classes(n) if n < len(self.batch.slots) else None
        return replace(self, statistics=statistics.plus(self.batch.classes(0, n)), batch=rest)

    def absorbed(self) -> State:
        """Return the same with all rows in the statistics, which have every class."""
        state = self
        while not state.is_absorbed:
            state = state.step()
        if state.statistics.n_classes < self.n_classes:
            state = replace(state, statistics=state.statistics.padded(self.n_classes))
        return state

    def sealed(self) -> State:
        """Return the same without anything that is a raw row of a class of three or more samples."""
        state = self.absorbed()
        waiting = Waiting(state.statistics.space)
        return replace(state, statistics=state.statistics.sealed(), waiting=waiting)

    # -- change --
    def learned(self, X: Array, labels: Array, weight: Array | None = None) -> State:
        """Return the state after rows X (n, f). Cost O(n f^2), amortised; the rows are copied."""
        unique, inverse = np.unique(labels, return_inverse=True)
        known, slots = self.labels.with_slots(unique)
        self.statistics.check_update(slots)
        state = self._changed(anew=False, labels=known)
        if len(X) <= self.statistics.space.waiting_rows:
            if len(state.waiting) + len(X) > self.statistics.space.waiting_rows:
                state = state.absorbed()
            return replace(state, waiting=state.waiting.added(X, slots[inverse], weight))
        state, space = state.absorbed(), self.statistics.space
        block, statistics = max(space.waiting_rows, BLOCK_BYTES // X[:1].nbytes), state.statistics
        for start in range(0, len(X), block):
            part = slice(start, start + block)
            rows = sort_by_class(X[part], slots[inverse[part]], None if weight is None else weight[part])
            statistics = statistics.plus(rows, reserve=self.statistics.nbytes)
        return replace(state, statistics=statistics)

    def with_limits(self, **limits: int | None) -> State:
        """Return the same with another `memory_limit` or `default_limit`, see `Space`."""
        statistics = self.statistics.in_space(replace(self.statistics.space, **limits))  # type: ignore[arg-type]
        return replace(self, statistics=statistics, waiting=replace(self.waiting, space=statistics.space))

    def merged(self, other: State, *, check: bool = True) -> State:
        """Return the state after everything that another one has learned, which is sealed."""
        state, seen = self.sealed(), self.labels.cast(other.labels.seen)
        unique, where = np.unique(seen, return_index=True)
        labels, slots_of_unique = self.labels.with_slots(unique)
        slots = np.empty(len(seen), dtype=np.intp)
        slots[where] = slots_of_unique
        if check:
            state.statistics.check_merge(slots)
        return state._changed(
            anew=True,
            statistics=state.statistics.merged(other.statistics, slots),
            labels=labels.declaring(self.labels.cast(other.labels.declared)),
            lineage=self.lineage | other.lineage,
        )

    def without_rows(self, X: Array, labels: Array, weight: Array | None = None) -> State:
        """Return the state as if rows had not been learned; classes that have no row left are gone."""
        state = self.sealed()
        unique, inverse = np.unique(labels, return_inverse=True)
        slots = state._known(unique)
        statistics, emptied = state.statistics.minus(sort_by_class(X, slots[inverse], weight))
        gone = emptied.tolist()
        return state._changed(
            anew=True,
            statistics=statistics.dropped(gone).sealed() if gone else statistics.sealed(),
            labels=state.labels.without(gone) if gone else state.labels,
        )

    def without_classes(self, labels: Array) -> State:
        """Return the state as if classes had never been seen."""
        state = self.sealed()
        slots = state._known(np.unique(labels)).tolist()
        statistics = state.statistics.without_classes(slots)
        return state._changed(anew=True, statistics=statistics, labels=state.labels.without(slots))

    def _known(self, unique: Array) -> Array:
        slots = self.labels.match(unique)
        if np.any(slots < 0):
            raise ValueError(f"the classes {unique[slots < 0].tolist()} were never learned, so cannot be forgotten.")
        return slots

    def phase_ended(self, weights: Callable[[Array, Array], Array]) -> State:
        """Return the state after the open phase; the class weights are a function of counts and labels."""
        state = self.sealed()
        statistics = state.statistics.closed_phase(weights(state.count, state.labels.seen))
        return state._changed(anew=True, statistics=statistics)

    def with_labels(self, labels: Labels) -> State:
        """Return the same with more labels declared."""
        return self._changed(anew=False, labels=labels)

    def with_inputs(self, inputs: Any) -> State:
        """Return the same with something else noted about where the rows come from."""
        return self._changed(anew=False, inputs=inputs)

    def with_statistics(self, change: Callable[[Any], Statistics]) -> State:
        """Return the state with other statistics of the same samples, made of those that there are."""
        state = self.absorbed()
        return state._changed(anew=True, statistics=change(state.statistics))

    def refreshed(self) -> State:
        """Return the same state, for which gamma is to be chosen anew."""
        return self._changed(anew=True)


class Solution(Protocol):
    """What a rule made of a state.

    Examples
    --------
    A solution that scores by the counts of the classes, whatever the features are:

    >>> import numpy as np
    >>> class Counts:
    ...     def __init__(self, count):
    ...         self.count = count
    ...     def scorer(self, order):
    ...         return lambda X: np.tile(self.count[order], (len(X), 1))
    >>> score = Counts(np.array([5.0, 2.0, 9.0])).scorer(np.array([2, 0, 1]))
    >>> score(np.zeros((2, 4))).tolist()
    [[9.0, 5.0, 2.0], [9.0, 5.0, 2.0]]
    """

    def scorer(self, order: Array) -> Callable[[Array], Array]:
        """Return the function from features (n, f) to scores (n, C) of the classes, in this order of their slots."""


class Rule(Protocol):
    """How a state becomes a solution: parameters that may change without learning anything anew. Rules compare.

    Examples
    --------
    A rule of one's own, by which class means are the weights:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from aircl.engine import STORES, Learner, Space
    >>> from aircl.engine.solve import LinearSolution
    >>> @dataclass(frozen=True)
    ... class ClassMeans:
    ...     def solve(self, state, memory=None):
    ...         return LinearSolution(W=state.statistics.means.T), memory
    >>> learner = Learner.empty(STORES["shared"], Space(n_features=2, dtype=np.float64))
    >>> learner.learn(np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 5.0]]), np.array([0, 0, 1]))
    >>> learner.solution(ClassMeans()).W.tolist()
    [[2.0, 0.0], [0.0, 5.0]]
    """

    def solve(self, state: State, memory: Any = None) -> tuple[Solution, Any]:
        """Return the solution for an absorbed state, and what to remember for the next one."""


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
    """

    version: int
    rule: Rule
    labels: Labels
    inputs: Any
    n_samples: float
    width: int
    dtype: np.dtype[Any]
    solution: Any

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
        with self._writing, self.state.statistics.space.backend.computing():
            yield

    def change(self, function: Callable[[State], State]) -> None:
        """Go over to the state that a function makes of this one."""
        with self.locked():
            self.state = function(self.state)
            self._release()

    def _release(self) -> None:
        """Let go what the last solution still holds of an older state; it stays one to predict with."""
        last = self._last
        if last is not None and hasattr(last.solution, "released"):
            self._last = replace(last, solution=last.solution.released())

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
        with state.statistics.space.backend.computing():  # a writer is at work: a reader does not wait for it
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
            if last is not None and last.version == state.version:
                return last
            with state.statistics.space.backend.computing():
                solution, self.memory = rule.solve(state, self.memory)
                self._last = last = Solved.of(state, rule, solution)
            if getattr(rule, "sums_moments", False) and self._writing.acquire(blocking=False):
                try:
                    if self.state is state:
                        self.state = replace(state, statistics=state.statistics.after_sum())
                finally:
                    self._writing.release()
            return last

    def solution(self, rule: Rule) -> Any:
        """Return the solution of the state as it is now."""
        return self.solved(rule).solution

    def arrays(self) -> dict[str, Stored]:
        """Return everything that was learned as named NumPy arrays or files of them, sealed."""
        return self.sealed().statistics.arrays()


@contextmanager
def both_locked(one: Learner, other: Learner) -> Iterator[None]:
    """Let no writer into either; one order for all, so that two that merge each other do not deadlock."""
    first, second = sorted((one, other), key=id)
    with first.locked(), second.locked():
        yield
