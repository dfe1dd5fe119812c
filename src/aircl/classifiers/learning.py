"""What learning, merging and forgetting make of a classifier's state: first everything is checked, then it changes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_consistent_length

from aircl.classifiers.duplicates import Naming, check_learned, chosen_to_replace, new_ledger, news, old_rows_missing
from aircl.classifiers.fingerprint import check_mergeable
from aircl.classifiers.inputs import Inputs, check_features, check_weights, without_zero_weights
from aircl.classifiers.labels import check_labels
from aircl.engine import Learner, Space, State
from aircl.engine.backend import Array, backend_of
from aircl.engine.labels import Labels
from aircl.engine.learner import both_locked
from aircl.engine.ledger import Ledger, Shown

if TYPE_CHECKING:
    from aircl.classifiers.stream import StreamClassifier

_ONE_AT_A_TIME = threading.Lock()
_FIRST_BATCH: weakref.WeakKeyDictionary[Any, threading.RLock] = weakref.WeakKeyDictionary()


def beginning(classifier: StreamClassifier) -> threading.RLock:
    """Return the lock of the first batch: before it there is no learner that could have one."""
    with _ONE_AT_A_TIME:
        return _FIRST_BATCH.setdefault(classifier, threading.RLock())


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows of one call that weigh something, with their labels, checked.

    Attributes
    ----------
    X : array, sparse matrix or tensor of shape (n, d)
    labels : array of shape (n,)
    weight : array of shape (n,) or None
    naming : Naming
    shown : Shown or None
        The rows as the ledger knows them; None if there is none.
    """

    X: Any
    labels: Array
    weight: Array | None
    naming: Naming
    shown: Shown | None = None

    @classmethod
    def of(
        cls, classifier: StreamClassifier, X: Any, y: Any, sample_weight: Any, known: Labels, naming: Naming
    ) -> Batch:
        """Return the rows of a call, or say what is wrong with them; X is checked."""
        if y is None:
            raise ValueError(f"{type(classifier).__name__} requires y to be passed, but the target y is None.")
        labels = known.cast(check_labels(y))
        check_consistent_length(X, labels)
        weight = None if sample_weight is None else check_weights(sample_weight, labels)
        naming = naming.validated(classifier, len(labels), weight)
        return cls(*without_zero_weights(X, labels, weight), naming)

    def shown_to(self, ledger: Ledger | None) -> Batch:
        """Return the same, hashed for a ledger if there is one."""
        return replace(self, shown=self.naming.shown(ledger, self.X, self.labels, self.weight))

    def taken(self, chosen: Array) -> Batch:
        """Return some of the rows."""
        if len(chosen) == len(self.labels):
            return self
        X, weight = self.X[backend_of(self.X).index(chosen)], None if self.weight is None else self.weight[chosen]
        return Batch(
            X, self.labels[chosen], weight, self.naming, None if self.shown is None else self.shown.taken(chosen)
        )

    def features(self, classifier: StreamClassifier, inputs: Inputs) -> Iterator[tuple[Array, Array, Array | None]]:
        """Yield what is learned of the rows, a block at a time, with labels and weights."""
        for part, features in classifier._rows_to_learn(self.X, inputs):
            yield features, self.labels[part], None if self.weight is None else self.weight[part]


def learn(
    classifier: StreamClassifier, X: Any, y: Any, classes: Any, sample_weight: Any, naming: Naming | None = None
) -> None:
    """Learn a batch, whether it is the first or not."""
    naming = naming or Naming()
    if not hasattr(classifier, "_learner"):
        with beginning(classifier):
            if not hasattr(classifier, "_learner"):
                state = begun(classifier, X, y, classes, sample_weight, classifier._known_labels(), naming)
                if isinstance(state, State):
                    classifier._learner = Learner(state)
                elif len(state.classes):
                    classifier._declared = state
                return
    go_on(classifier, X, y, classes, sample_weight, naming)


def begun(
    classifier: StreamClassifier,
    X: Any,
    y: Any,
    classes: Any,
    sample_weight: Any,
    declared: Labels,
    naming: Naming,
    min_samples: int = 0,
) -> State | Labels:
    """Return the state after a first batch, or, if it has no row, the labels that are declared."""
    classifier._check_parameters()
    classifier._check_kind(X)
    inputs, rows = Inputs.first(type(classifier).__name__, X, min_samples, getattr(classifier, "backbone", None))
    declared = _declaring(declared, classes)
    batch = Batch.of(classifier, rows, y, sample_weight, declared, naming.of(X, inputs))
    classifier._check_new_classes(np.unique(batch.labels))
    if not len(batch.labels):
        return declared
    ledger = new_ledger(classifier, batch.naming)
    batch = batch.shown_to(ledger)
    if ledger is not None and batch.shown is not None:
        news(ledger, batch.naming, batch.shown)
    inputs = inputs.with_expansion(classifier._make_expansion(), batch.X, getattr(classifier, "random_state", None))
    state = None
    for features, labels, weight in batch.features(classifier, inputs):
        if state is None:
            backend = backend_of(features)
            space = Space(features.shape[1], backend.dtype(features), backend, classifier._memory_limit())
            check_features(features, weight, space.n_features, space.dtype, is_first=True)
            with backend.no_grad():
                statistics = classifier._empty_statistics(space, inputs)
                state = State(statistics, labels=declared, inputs=inputs, ledger=ledger)
        state = _learned(state, features, labels, weight)
    assert state is not None
    return state.noted(batch.shown, batch.labels)


def go_on(classifier: StreamClassifier, X: Any, y: Any, classes: Any, sample_weight: Any, naming: Naming) -> None:
    """Learn a batch that is not the first."""
    classifier._check_parameters()
    classifier._check_kind(X)
    learner, limit, inputs = classifier._learner, classifier._memory_limit(), classifier._inputs()
    rows = inputs.check(X)
    with learner.locked():
        if limit != learner.state.statistics.space.memory_limit:
            learner.change(lambda state: state.with_limits(memory_limit=limit))
        known = _declaring(learner.state.labels, classes)
        batch = Batch.of(classifier, rows, y, sample_weight, known, naming.of(X, inputs))
        unique = np.unique(batch.labels)
        classifier._check_new_classes(unique[known.match(unique) < 0])
        state = learner.absorb(room=len(batch.labels))
        if known is not state.labels:
            state = state.changed(new_gamma=False, labels=known)
        batch = batch.shown_to(state.ledger)
        if state.ledger is not None and batch.shown is not None:
            new, changed = news(state.ledger, batch.naming, batch.shown)
            if changed.any():
                state = _without_replaced(classifier, state, batch, changed)
            batch = batch.taken(np.flatnonzero(new))
        for features, labels, weight in batch.features(classifier, inputs):
            state = _learned(state, features, labels, weight)
        if state is not learner.state:
            state = state.noted(batch.shown, batch.labels)
            learner.change(lambda _: state)


def merge(classifier: StreamClassifier, other: StreamClassifier) -> None:
    """Add everything another learner has learned."""
    classifier._check_parameters()
    if not other._has_learned():
        return
    if not classifier._has_learned():
        with beginning(classifier):
            if not classifier._has_learned():
                check_mergeable(classifier, other)
                classifier._check_new_classes(other._learner.state.labels.seen)
                theirs = other._learner.sealed()
                with theirs.statistics.space.backend.no_grad():
                    state = empty_like(classifier, theirs).merged(theirs)
                classifier._learner = Learner(state)
                return
    learner = classifier._learner
    with both_locked(learner, other._learner):
        check_mergeable(classifier, other)
        theirs, labels = other._learner.sealed(), learner.state.labels
        seen = labels.cast(theirs.labels.seen)
        classifier._check_new_classes(seen[labels.match(seen) < 0])
        learner.change(lambda state: state.merged(theirs))


def empty_like(classifier: StreamClassifier, other: State) -> State:
    """Return the state of an empty learner of the same features as another; keep the classes that were declared."""
    theirs = other.statistics.space
    space = Space(theirs.n_features, theirs.dtype, theirs.backend, classifier._memory_limit())
    with space.backend.no_grad():
        statistics = classifier._empty_statistics(space, other.inputs)
    ledger = new_ledger(classifier, Naming())
    return State(statistics, labels=classifier._known_labels(), inputs=other.inputs, ledger=ledger)


def forget_rows(classifier: StreamClassifier, X: Any, y: Any, sample_weight: Any, naming: Naming) -> None:
    """Take rows out of the statistics."""
    classifier._check_kind(X)
    learner, inputs = classifier._learner, classifier._inputs()
    rows = inputs.check(X)
    with learner.locked():
        batch = Batch.of(classifier, rows, y, sample_weight, learner.state.labels, naming.of(X, inputs))
        state = learner.absorb()
        batch = batch.shown_to(state.ledger)
        if state.ledger is not None and batch.shown is not None:
            check_learned(state.ledger, batch.shown, batch.naming.ids)
        state = _without(classifier, state, batch)
        if state is not learner.state:
            learner.change(lambda _: state)


def _without(classifier: StreamClassifier, state: State, batch: Batch) -> State:
    """Return the state without rows."""
    space = state.statistics.space
    if len(batch.labels) and state.ledger is not None and batch.shown is not None:
        state = replace(state, ledger=state.ledger.minus(batch.shown))
    for features, labels, weight in batch.features(classifier, state.inputs):
        features = check_features(features, weight, space.n_features, space.dtype)
        state = state.without_rows(features, labels, weight)
    return state


def _without_replaced(classifier: StreamClassifier, state: State, batch: Batch, changed: Array) -> State:
    """Return the state without the old rows of ids that have new ones now."""
    assert state.ledger is not None
    assert batch.shown is not None
    if not (old := batch.naming.replaced):
        raise old_rows_missing(batch.naming, changed)
    naming = Naming(old.get("ids"), raw=old.get("raw")).of(old["X"], state.inputs)
    gone = Batch.of(classifier, state.inputs.check(old["X"]), old["y"], old.get("sample_weight"), state.labels, naming)
    gone = gone.shown_to(state.ledger)
    assert gone.shown is not None
    chosen = chosen_to_replace(state.ledger, batch.naming, batch.shown, changed, gone.naming, gone.shown)
    return _without(classifier, state, gone.taken(chosen))


def _learned(state: State, features: Array, labels: Array, weight: Array | None) -> State:
    space = state.statistics.space
    features = check_features(features, weight, space.n_features, space.dtype)
    with space.backend.no_grad():
        return state.learned(features, labels, weight)


def _declaring(known: Labels, classes: Any) -> Labels:
    """Return the labels known so far, with those that are declared now."""
    return known if classes is None else known.declaring(known.cast(check_labels(classes)))
