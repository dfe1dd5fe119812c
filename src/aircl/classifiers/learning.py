"""What learning, merging and forgetting make of a classifier's state: first everything is checked, then it changes."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_consistent_length

from aircl.classifiers.fingerprint import check_mergeable
from aircl.classifiers.inputs import Inputs, check_features, check_weights, without_zero_weights
from aircl.classifiers.labels import check_labels
from aircl.engine import Learner, Space, State
from aircl.engine.backend import Array, backend_of
from aircl.engine.labels import Labels
from aircl.engine.learner import both_locked

if TYPE_CHECKING:
    from aircl.classifiers.stream import StreamClassifier

_ONE_AT_A_TIME = threading.Lock()
_FIRST_BATCH: weakref.WeakKeyDictionary[Any, threading.RLock] = weakref.WeakKeyDictionary()


def beginning(classifier: StreamClassifier) -> threading.RLock:
    """Return the lock of the first batch: before it there is no learner that could have one."""
    with _ONE_AT_A_TIME:
        return _FIRST_BATCH.setdefault(classifier, threading.RLock())


def begun(
    classifier: StreamClassifier,
    X: Any,
    y: Any,
    classes: Any,
    sample_weight: Any,
    declared: Labels,
    min_samples: int = 0,
) -> State | Labels:
    """Return the state after a first batch, or, if it has no row, the labels that are declared."""
    classifier._check_parameters()
    classifier._check_kind(X)
    inputs, X = Inputs.first(type(classifier).__name__, X, min_samples)
    labels, weight, declared = _check_y(classifier, X, y, classes, sample_weight, declared)
    X, labels, weight = without_zero_weights(X, labels, weight)
    classifier._check_new_classes(np.unique(labels))
    if X.shape[0] == 0:
        return declared
    inputs = inputs.with_expansion(classifier._make_expansion(), X, getattr(classifier, "random_state", None))
    state = None
    for part, features in classifier._rows_to_learn(X, inputs):
        part_weight = None if weight is None else weight[part]
        if state is None:
            backend = backend_of(features)
            space = Space(features.shape[1], backend.dtype(features), backend, classifier._memory_limit())
            check_features(features, part_weight, space.n_features, space.dtype, is_first=True)
            with backend.computing():
                state = State.empty(classifier._empty_statistics(space, inputs), labels=declared, inputs=inputs)
        state = _learned(state, features, labels[part], part_weight)
    assert state is not None
    return state


def go_on(classifier: StreamClassifier, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
    """Learn a batch that is not the first."""
    classifier._check_parameters()
    classifier._check_kind(X)
    learner, limit = classifier._learner, classifier._memory_limit()
    inputs = learner.state.inputs
    X = inputs.check(X)
    with learner.locked():
        if limit != learner.state.statistics.space.memory_limit:
            learner.change(lambda state: state.with_limits(memory_limit=limit))
        labels, weight, declared = _check_y(classifier, X, y, classes, sample_weight, learner.state.labels)
        X, labels, weight = without_zero_weights(X, labels, weight)
        unique = np.unique(labels)
        classifier._check_new_classes(unique[learner.state.labels.match(unique) < 0])
        state = learner.absorb(room=X.shape[0])
        if declared is not state.labels:
            state = state.with_labels(declared)
        for part, features in classifier._rows_to_learn(X, inputs):
            state = _learned(state, features, labels[part], None if weight is None else weight[part])
        if state is not learner.state:
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
    return State.empty(statistics, labels=classifier._known_labels(), inputs=other.inputs)


def forget_rows(classifier: StreamClassifier, X: Any, y: Any, sample_weight: Any) -> None:
    """Take rows out of the statistics."""
    classifier._check_kind(X)
    learner = classifier._learner
    X = learner.state.inputs.check(X)
    with learner.locked():
        labels, weight, _ = _check_y(classifier, X, y, None, sample_weight, learner.state.labels)
        X, labels, weight = without_zero_weights(X, labels, weight)
        state = learner.absorb()
        space = state.statistics.space
        for part, features in classifier._rows_to_learn(X, state.inputs):
            part_weight = None if weight is None else weight[part]
            features = check_features(features, part_weight, space.n_features, space.dtype)
            state = state.without_rows(features, labels[part], part_weight)
        if state is not learner.state:
            learner.change(lambda _: state)


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
