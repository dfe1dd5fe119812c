"""What learning, merging and forgetting make of a classifier's state: first everything is checked, then it changes."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_consistent_length

from aircl.classifiers.duplicates import Naming, check_learned, chosen_to_replace, new_ledger, news
from aircl.classifiers.fingerprint import check_mergeable
from aircl.classifiers.inputs import Inputs, check_features, check_weights, without_zero_weights
from aircl.classifiers.labels import check_labels
from aircl.engine import Learner, Space, State
from aircl.engine.backend import Array, backend_of
from aircl.engine.labels import Labels
from aircl.engine.learner import both_locked
from aircl.engine.ledger import Shown

if TYPE_CHECKING:
    from aircl.classifiers.stream import StreamClassifier

_ONE_AT_A_TIME = threading.Lock()
_FIRST_BATCH: weakref.WeakKeyDictionary[Any, threading.RLock] = weakref.WeakKeyDictionary()


def beginning(classifier: StreamClassifier) -> threading.RLock:
    """Return the lock of the first batch: before it there is no learner that could have one."""
    with _ONE_AT_A_TIME:
        return _FIRST_BATCH.setdefault(classifier, threading.RLock())


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
    given = X
    inputs, X = Inputs.first(type(classifier).__name__, X, min_samples, getattr(classifier, "backbone", None))
    labels, weight, declared = _check_y(classifier, X, y, classes, sample_weight, declared)
    naming = naming.of(given, inputs).checked(classifier, len(labels), weight)
    X, labels, weight = without_zero_weights(X, labels, weight)
    classifier._check_new_classes(np.unique(labels))
    if X.shape[0] == 0:
        return declared
    ledger = new_ledger(classifier, naming)
    shown = naming.shown(ledger, X, labels, weight)
    if ledger is not None and shown is not None:
        news(ledger, naming, shown)
    inputs = inputs.with_expansion(classifier._make_expansion(), X, getattr(classifier, "random_state", None))
    state = None
    for part, features in classifier._rows_to_learn(X, inputs):
        part_weight = None if weight is None else weight[part]
        if state is None:
            backend = backend_of(features)
            space = Space(features.shape[1], backend.dtype(features), backend, classifier._memory_limit())
            check_features(features, part_weight, space.n_features, space.dtype, is_first=True)
            with backend.computing():
                statistics = classifier._empty_statistics(space, inputs)
                state = State.empty(statistics, labels=declared, inputs=inputs, ledger=ledger)
        state = _learned(state, features, labels[part], part_weight)
    assert state is not None
    return state.noted(shown, labels)


def go_on(classifier: StreamClassifier, X: Any, y: Any, classes: Any, sample_weight: Any, naming: Naming) -> None:
    """Learn a batch that is not the first."""
    classifier._check_parameters()
    classifier._check_kind(X)
    learner, limit = classifier._learner, classifier._memory_limit()
    inputs, given = classifier._inputs(), X
    X = inputs.check(X)
    with learner.locked():
        if limit != learner.state.statistics.space.memory_limit:
            learner.change(lambda state: state.with_limits(memory_limit=limit))
        labels, weight, declared = _check_y(classifier, X, y, classes, sample_weight, learner.state.labels)
        naming = naming.of(given, inputs).checked(classifier, len(labels), weight)
        X, labels, weight = without_zero_weights(X, labels, weight)
        unique = np.unique(labels)
        classifier._check_new_classes(unique[learner.state.labels.match(unique) < 0])
        state = learner.absorb(room=X.shape[0])
        if declared is not state.labels:
            state = state.with_labels(declared)
        shown = naming.shown(state.ledger, X, labels, weight)
        if state.ledger is not None and shown is not None:
            new, changed = news(state.ledger, naming, shown)
            if changed.any():
                state = _without_replaced(classifier, state, naming, shown, changed)
            X, labels, weight, shown = _taken(X, labels, weight, shown, np.flatnonzero(new))
        for part, features in classifier._rows_to_learn(X, inputs):
            state = _learned(state, features, labels[part], None if weight is None else weight[part])
        if state is not learner.state:
            state = state.noted(shown, labels)
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
                with theirs.statistics.space.backend.computing():
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
    with space.backend.computing():
        statistics = classifier._empty_statistics(space, other.inputs)
    ledger = new_ledger(classifier, Naming())
    return State.empty(statistics, labels=classifier._known_labels(), inputs=other.inputs, ledger=ledger)


def forget_rows(classifier: StreamClassifier, X: Any, y: Any, sample_weight: Any, naming: Naming) -> None:
    """Take rows out of the statistics."""
    classifier._check_kind(X)
    learner = classifier._learner
    inputs, given = classifier._inputs(), X
    X = inputs.check(X)
    with learner.locked():
        labels, weight, _ = _check_y(classifier, X, y, None, sample_weight, learner.state.labels)
        naming = naming.of(given, inputs).checked(classifier, len(labels), weight)
        X, labels, weight = without_zero_weights(X, labels, weight)
        state = learner.absorb()
        shown = naming.shown(state.ledger, X, labels, weight)
        if state.ledger is not None and shown is not None:
            check_learned(state.ledger, shown, naming.ids)
        state = _without(classifier, state, X, labels, weight, shown)
        if state is not learner.state:
            learner.change(lambda _: state)


def _without(
    classifier: StreamClassifier, state: State, X: Any, labels: Array, weight: Array | None, shown: Shown | None
) -> State:
    """Return the state without rows."""
    space, is_first = state.statistics.space, True
    for part, features in classifier._rows_to_learn(X, state.inputs):
        if is_first:
            state, is_first = state.crossed_out(shown), False
        part_weight = None if weight is None else weight[part]
        features = check_features(features, part_weight, space.n_features, space.dtype)
        state = state.without_rows(features, labels[part], part_weight)
    return state


def _without_replaced(
    classifier: StreamClassifier, state: State, naming: Naming, shown: Shown, changed: Array
) -> State:
    """Return the state without the old rows of ids that have new ones now."""
    assert state.ledger is not None
    old, old_naming, old_shown = naming.replaced or {}, Naming(), None
    if old:
        X = state.inputs.check(old["X"])
        labels, weight, _ = _check_y(classifier, X, old["y"], None, old.get("sample_weight"), state.labels)
        old_naming = Naming(old.get("ids"), raw=old.get("raw")).of(old["X"], state.inputs)
        old_naming = old_naming.checked(classifier, len(labels), None)
        old_shown = old_naming.shown(state.ledger, X, labels, weight)
    chosen = chosen_to_replace(state.ledger, naming, shown, changed, old_naming, old_shown)
    return _without(classifier, state, *_taken(X, labels, weight, old_shown, chosen))


def _taken(
    X: Any, labels: Array, weight: Array | None, shown: Shown | None, chosen: Array
) -> tuple[Any, Array, Array | None, Shown | None]:
    """Return some of the rows."""
    if len(chosen) == len(labels):
        return X, labels, weight, shown
    rows = backend_of(X).index(chosen)
    taken = None if shown is None else shown.taken(chosen)
    return X[rows], labels[chosen], None if weight is None else weight[chosen], taken


def _learned(state: State, features: Array, labels: Array, weight: Array | None) -> State:
    space = state.statistics.space
    features = check_features(features, weight, space.n_features, space.dtype)
    with space.backend.computing():
        return state.learned(features, labels, weight)


def _check_y(
    classifier: StreamClassifier, X: Any, y: Any, classes: Any, sample_weight: Any, known: Labels
) -> tuple[Array, Array | None, Labels]:
    """Return labels, weights and the labels known so far, with those that are declared now."""
    if y is None:
        raise ValueError(f"{type(classifier).__name__} requires y to be passed, but the target y is None.")
    labels = known.cast(check_labels(y))
    check_consistent_length(X, labels)
    if classes is not None:
        known = known.declaring(known.cast(check_labels(classes)))
        labels = known.cast(labels)
    if sample_weight is None:
        return labels, None, known
    return labels, check_weights(sample_weight, labels), known
