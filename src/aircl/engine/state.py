"""The state of a learner: labels and statistics at one moment, as a value.

Every change makes another state, and a learner has changed when its `state` is another. So whatever is raised,
wherever, a learner is as before or as after, and a state that is read is that of one moment.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from aircl.engine.backend import Array
from aircl.engine.batch import ClassRows, Waiting, sort_by_class
from aircl.engine.labels import Labels
from aircl.engine.ledger import Ledger, Shown
from aircl.engine.statistics import Statistics

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
        One more whenever gamma is to be chosen again.
    ledger : Ledger or None
        Which rows were learned, where that is noted.

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
    ledger: Ledger | None = None

    @classmethod
    def empty(cls, statistics: Statistics, **more: Any) -> State:
        """Return the state in which nothing was learned."""
        return cls(statistics, more.pop("labels", Labels()), Waiting(), **more)

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
        batch, ledger = 0 if self.batch is None else self.batch.rows.nbytes, self.ledger
        return self.statistics.nbytes + self.waiting.nbytes + batch + (0 if ledger is None else ledger.nbytes)

    def changed(self, *, new_gamma: bool = True, **parts: Any) -> State:
        """Return the state with some of its attributes changed; `new_gamma`: for which gamma is to be chosen again."""
        return replace(self, version=self.version + 1, epoch=self.epoch + new_gamma, **parts)

    # -- rows on their way --
    @property
    def is_absorbed(self) -> bool:
        """Whether all rows are in the statistics."""
        return self.batch is None and len(self.waiting) == 0

    def step(self) -> State:
        """Return the same, one step further: what was learned does not change, only where it is."""
        if self.batch is None:
            return replace(self, batch=self.waiting.sorted(), waiting=Waiting())
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
        return replace(state, statistics=state.statistics.sealed(), waiting=Waiting())

    # -- change --
    def learned(self, X: Array, labels: Array, weight: Array | None = None) -> State:
        """Return the state after rows X (n, f). Cost O(n f^2), amortised; the rows are copied."""
        unique, inverse = np.unique(labels, return_inverse=True)
        known, slots = self.labels.with_slots(unique)
        self.statistics.check_update(slots)
        state = self.changed(new_gamma=False, labels=known)
        space = self.statistics.space
        if len(X) <= space.waiting_rows:
            if len(state.waiting) + len(X) > space.waiting_rows:
                state = state.absorbed()
            return replace(state, waiting=state.waiting.added(X, slots[inverse], weight, space))
        state = state.absorbed()
        block, statistics = max(space.waiting_rows, BLOCK_BYTES // X[:1].nbytes), state.statistics
        for start in range(0, len(X), block):
            part = slice(start, start + block)
            rows = sort_by_class(X[part], slots[inverse[part]], None if weight is None else weight[part])
            statistics = statistics.plus(rows, reserve=self.statistics.nbytes)
        return replace(state, statistics=statistics)

    def with_limits(self, **limits: int | None) -> State:
        """Return the same with another `memory_limit` or `default_limit`, see `Space`."""
        space = replace(self.statistics.space, **limits)  # type: ignore[arg-type]
        return replace(self, statistics=self.statistics.in_space(space))

    def merged(self, other: State, *, check: bool = True) -> State:
        """Return the state after everything that another one has learned, which is sealed."""
        state, seen = self.sealed(), self.labels.cast(other.labels.seen)
        unique, where = np.unique(seen, return_index=True)
        labels, slots_of_unique = self.labels.with_slots(unique)
        slots = np.empty(len(seen), dtype=np.intp)
        slots[where] = slots_of_unique
        if check:
            state.statistics.check_merge(slots)
        return state.changed(
            statistics=state.statistics.merged(other.statistics, slots),
            labels=labels.declaring(self.labels.cast(other.labels.declared)),
            lineage=self.lineage | other.lineage,
            ledger=None if self.ledger is None or other.ledger is None else self.ledger.merged(other.ledger, slots),
        )

    def without_rows(self, X: Array, labels: Array, weight: Array | None = None) -> State:
        """Return the state as if rows had not been learned; classes that have no row left are gone."""
        state = self.sealed()
        unique, inverse = np.unique(labels, return_inverse=True)
        slots = state._known(unique)
        statistics, emptied = state.statistics.minus(sort_by_class(X, slots[inverse], weight))
        gone = emptied.tolist()
        return state.changed(
            statistics=statistics.dropped(gone).sealed() if gone else statistics.sealed(),
            labels=state.labels.without(gone) if gone else state.labels,
            ledger=state._ledger_without(gone),
        )

    def without_classes(self, labels: Array) -> State:
        """Return the state as if classes had never been seen."""
        state = self.sealed()
        slots = state._known(np.unique(labels)).tolist()
        statistics = state.statistics.without_classes(slots)
        kept, ledger = state.labels.without(slots), state._ledger_without(slots)
        return state.changed(statistics=statistics, labels=kept, ledger=ledger)

    def _ledger_without(self, slots: list[int]) -> Ledger | None:
        return self.ledger.without_slots(slots, self.n_classes) if self.ledger is not None and slots else self.ledger

    # -- the ledger --
    def noted(self, shown: Shown | None, labels: Array) -> State:
        """Return the state with rows in the ledger that have just been learned; the same if there is no ledger."""
        if self.ledger is None or shown is None:
            return self
        return replace(self, ledger=self.ledger.plus(shown, self.labels.match(labels)))

    def _known(self, unique: Array) -> Array:
        slots = self.labels.match(unique)
        if np.any(slots < 0):
            raise ValueError(f"the classes {unique[slots < 0].tolist()} were never learned, so cannot be forgotten.")
        return slots

    def phase_ended(self, weights: Callable[[Array, Array], Array]) -> State:
        """Return the state after the open phase; the class weights are a function of counts and labels."""
        state = self.sealed()
        statistics = state.statistics.closed_phase(weights(state.count, state.labels.seen))
        return state.changed(statistics=statistics)

    def with_statistics(self, change: Callable[[Any], Statistics]) -> State:
        """Return the state with other statistics of the same samples, made of those that there are."""
        state = self.absorbed()
        return state.changed(statistics=change(state.statistics))
