"""The common face of all classifiers that learn a stream: a scikit-learn estimator over the engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from aircl.classifiers import persistence
from aircl.classifiers.features import check_features, dense_unless, other_kind, takes_sparse, without_zero_weights
from aircl.classifiers.fingerprint import check_mergeable
from aircl.classifiers.labels import Labels, check_labels
from aircl.engine import Learner, Rule, Solution, Statistics
from aircl.engine.backend import FLOATS, NUMPY, Array, NumpyBackend, backend_of, is_tensor
from aircl.engine.memory import parse_bytes
from aircl.engine.statistics import BLOCK_BYTES
from aircl.engine.tensors import check_expanded, check_tensor, on_cpu


class StreamClassifier(ClassifierMixin, BaseEstimator):
    """Learns sufficient statistics of a stream; subclasses say which, and what scores follow from them.

    Subclasses bring the constructor, the kind of statistics (`_store_type`) and the rule that makes a solution of them
    (`_rule`). `partial_fit` only accumulates; the rule is applied when a prediction or a learned attribute is asked
    for, once, until something changes.

    X may be a torch tensor where `takes_tensors`, and then all that is computed from it stays a tensor on its device:
    scores, probabilities, `class_count_`, and predictions unless the labels are strings. A learner holds one kind of
    array on one device; `classes_` is a NumPy array always.
    """

    takes_tensors: ClassVar[bool] = True

    classes_: Array
    n_features_in_: int
    feature_names_in_: Array
    expansion_: Any
    backbone_: dict[str, str]  # name and fingerprint, where it is known what made the features
    _learner: Learner
    _labels: Labels

    # -- what subclasses say --
    def _store_type(self) -> type[Statistics]:
        """Return the kind of statistics that is learned."""
        raise NotImplementedError

    def _rule(self) -> Rule:
        """Return how the statistics become a solution."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Refuse parameters that are not possible."""

    def _make_expansion(self) -> Any:
        """Return what is applied to X first, not fitted yet, or None."""
        return getattr(self, "expansion", None)

    def _class_weights(self, count: Array) -> Array:
        """Return the weight of every class, unscaled, for statistics that fold phases."""
        return np.ones(len(count))

    def _check_new_classes(self, new: Array) -> None:
        """Refuse classes that cannot be learned."""

    # -- learning --
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from X alone, forgetting everything before. It is one phase, which stays open until `end_phase`.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Strings, whole numbers or booleans.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        before = self.__dict__.copy()
        try:
            self._reset()
            self._learn(X, y, None, sample_weight, whole=False)
            if not len(self._labels):
                raise ValueError("All sample weights are zero, so there is nothing to fit. Give some sample weight.")
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn a batch; labels may be new at any time.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
            No rows at all is fine and changes nothing.
        y : array-like of shape (n_samples,)
        classes : array-like, default=None
            Labels to list in `classes_` before they arrive. They are not predicted until then.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        before = self.__dict__.copy()
        try:
            if not hasattr(self, "_labels"):
                self._reset()
            self._learn(X, y, classes, sample_weight, whole=True)
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def end_phase(self) -> Self:
        """Close the current phase: seal what waits, fold it (store='pooled'), choose gamma anew.

        Returns
        -------
        self : object
        """
        if self._has_learned():
            self._learner.end_phase(self._class_weights)
        return self

    def refresh(self) -> Self:
        """Choose gamma anew and solve now rather than at the next prediction.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        self._learner.choose_anew()
        self._solution()
        return self

    def merge(self, other: StreamClassifier) -> Self:
        """Add everything another learner has learned, exactly; the other one stays as it is.

        Parameters
        ----------
        other : classifier of the same kind
            With the same store, features, expansion and dtype; one whose samples are not in here already.

        Returns
        -------
        self : object
        """
        if not isinstance(other, StreamClassifier):
            raise TypeError(f"merge takes another aircl classifier, not {type(other).__name__}.")
        self._check_parameters()
        if not other._has_learned():
            return self
        before = self.__dict__.copy()
        try:
            if not self._has_learned():
                check_mergeable(self, other)
                self._begin_as(other)
            with self._learner.locked_with(other._learner):
                check_mergeable(self, other)
                slots, new = self._slots(self._labels.cast(other._labels.seen))
                declared = self._labels.cast(other._labels.declared)
                self._learner.merge(other._learner, slots)
                self._commit_labels(new, declared)
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def forget(self, X: Any = None, y: Any = None, *, classes: Any = None, sample_weight: Any = None) -> Self:
        """Unlearn exactly: afterwards it is as if the rows, or the classes, had never been seen.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Rows that were learned, with their labels y and the sample weights they were learned with.
        y : array-like of shape (n_samples,), default=None
        classes : array-like, default=None
            Labels to forget whole (store='per-class'), instead of X and y.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        if (classes is None) == (X is None) or (X is None) != (y is None):
            raise ValueError(
                "forget takes either rows with their labels, forget(X=..., y=...), or forget(classes=...)."
            )
        if classes is not None:
            slots = self._known_slots(np.unique(self._labels.cast(check_labels(classes))))
            self._learner.forget_classes(slots.tolist())
            self._drop_labels(slots.tolist())
            return self
        X = self._check_X(X, reset=False)
        labels, weight = self._check_y(X, y, sample_weight)
        X, labels, weight = without_zero_weights(X, labels, weight)
        unique, inverse = np.unique(labels, return_inverse=True)
        slots = self._known_slots(unique)
        store = self._learner.store
        for _, features in self._rows_to_learn(X, whole=True):
            features = check_features(features, weight, store.n_features, store.dtype)
            self._drop_labels(self._learner.forget_rows(features, slots[inverse], weight))
        return self

    def _begin_as(self, other: StreamClassifier) -> None:
        """Become an empty learner of the same features as another; keep the classes that were declared."""
        labels = getattr(self, "_labels", Labels())
        self._reset()
        self._labels = Labels.of(labels.declared)
        for name in ("n_features_in_", "feature_names_in_", "expansion_", "backbone_"):
            if hasattr(other, name):
                setattr(self, name, getattr(other, name))
        theirs = other._learner.store
        self._learner = Learner(self._new_store(theirs.n_features, theirs.dtype, theirs.backend))

    def _reset(self) -> None:
        """Drop everything learned."""
        learned = {name for name in vars(self) if name.endswith("_") or name in ("_learner", "_labels")}
        for name in learned:
            delattr(self, name)
        self._labels = Labels()

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any, *, whole: bool) -> None:
        """Check everything, then learn. The features are made at once (whole) or in blocks, if nothing can be lost."""
        self._check_parameters()
        first = not hasattr(self, "_learner")
        X = self._check_X(X, reset=first, min_samples=0 if whole else 1)
        labels, weight = self._check_y(X, y, sample_weight)
        declared = np.zeros(0, dtype=labels.dtype)
        if classes is not None:
            declared = self._labels.cast(check_labels(classes))
            labels = Labels.of(declared).cast(labels)
        X, labels, weight = without_zero_weights(X, labels, weight)
        unique, inverse = np.unique(labels, return_inverse=True)
        slots, new = self._slots(unique)
        self._check_new_classes(new)
        if X.shape[0]:
            if first:
                self.expansion_ = self._fit_expansion(X)
            for part, features in self._rows_to_learn(X, whole=whole):
                part_weight = None if weight is None else weight[part]
                if not hasattr(self, "_learner"):
                    backend = backend_of(features)
                    self._learner = Learner(self._new_store(features.shape[1], backend.dtype(features), backend))
                store = self._learner.store
                features = check_features(features, part_weight, store.n_features, store.dtype)
                store.check_update(slots)
                n_classes = len(self._labels) + len(new)
                self._learner.update(features, slots[inverse[part]], part_weight, n_classes)
        elif first:  # nothing was learned, so the width is not settled either
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
        self._commit_labels(new, declared)

    def _new_store(self, n_features: int, dtype: np.dtype[Any], backend: NumpyBackend) -> Statistics:
        with backend.computing():
            return self._store_type()(n_features, dtype, parse_bytes(getattr(self, "memory_limit", None)), backend)

    def _fit_expansion(self, X: Any) -> Any:
        """Fit a clone of the expansion on the first batch, with this classifier's seed if it has none of its own."""
        expansion = self._make_expansion()
        if expansion is None:
            return None
        expansion = clone(expansion)
        if self.random_state is not None and expansion.get_params(deep=False).get("random_state", 0) is None:
            expansion.set_params(random_state=self.random_state)
        return expansion.fit(dense_unless(X, takes_sparse(expansion)), None)  # FrozenEstimator insists on a y

    def _features(self, X: Any, *, whole: bool = False) -> Iterator[tuple[slice, Array]]:
        """Yield the rows of X, expanded and dense, in blocks that fit the cache of a small machine."""
        width = X.shape[1] if not hasattr(self, "_learner") else max(X.shape[1], self._learner.store.n_features)
        size = X.shape[0] if whole else max(1, BLOCK_BYTES // (width * X.dtype.itemsize))
        for start in range(0, X.shape[0], max(size, 1)):
            part = slice(start, min(start + size, X.shape[0]))
            if self.expansion_ is None:
                yield part, dense_unless(X[part], False)
                continue
            features = self.expansion_.transform(dense_unless(X[part], takes_sparse(self.expansion_)))
            if is_tensor(X):
                yield part, check_expanded(self.expansion_, features, X)
                continue
            features = np.asarray(dense_unless(features, False))
            if features.dtype not in FLOATS:
                features = features.astype(np.float64)
            yield part, features

    def _rows_to_learn(self, X: Any, *, whole: bool) -> Iterator[tuple[slice, Array]]:
        """Yield the rows that the statistics are of: the features, unless a subclass learns more."""
        return self._features(X, whole=whole)

    def _slots(self, unique: Array) -> tuple[Array, Array]:
        """Return the slot of each label, and the labels that need a new one (numbered from the next free slot)."""
        slots = self._labels.match(unique)
        is_new = slots < 0
        slots[is_new] = len(self._labels) + np.arange(np.count_nonzero(is_new))
        return slots, unique[is_new]

    def _known_slots(self, unique: Array) -> Array:
        slots = self._labels.match(unique)
        if np.any(slots < 0):
            raise ValueError(f"the classes {unique[slots < 0].tolist()} were never learned, so cannot be forgotten.")
        return slots

    def _commit_labels(self, new: Array, declared: Array) -> None:
        """Give slots to new labels, once their samples are safely learned."""
        if len(new):
            self._labels.add(new)
        if len(declared):
            self._labels.declare(declared)
        if len(new) or len(declared):
            self.classes_ = self._labels.classes

    def _drop_labels(self, slots: list[int]) -> None:
        if slots:
            self._labels.drop(slots)
            self.classes_ = self._labels.classes

    # -- what was learned --
    @property
    def class_count_(self) -> Array:
        """The sum of sample weights of every class, shape (C,)."""
        self._require_learned("class_count_")
        return self._by_class(self._backend.asarray(self._learner.count))

    @property
    def nbytes_(self) -> int:
        """Bytes the statistics take in memory."""
        self._require_learned("nbytes_")
        return self._learner.store.nbytes

    # -- prediction --
    def expand(self, X: Any) -> Array:
        """Return the features that X is scored by: the output of the expansion.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)

        Returns
        -------
        features : array of shape (n_samples, f)
        """
        X = self._check_query(X)
        blocks = [features for _, features in self._features(X)]
        return self._backend.concatenate(blocks) if blocks else np.zeros((0, self._learner.store.n_scored))

    def decision_function(self, X: Any) -> Array:
        """Return the scores xW.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) for two classes
            One column a class; -inf for classes not seen yet. For two classes, the second's minus the first's.
        """
        X = self._check_query(X)
        scores = self._fill_unseen([scores for scores in self._scores(X)], X, -np.inf)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> Array:
        """Return the class of highest score, among those seen.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)

        Returns
        -------
        y : array of shape (n_samples,)
            For tensors a tensor, unless the labels are strings.
        """
        X = self._check_query(X)
        backend = self._backend
        best = [scores.argmax(1) for scores in self._scores(X)]
        seen = self._labels.seen[self._labels.order]
        if seen.dtype.kind == "U":  # there are no tensors of strings
            best, backend = [backend.to_numpy(block) for block in best], NUMPY
        seen = backend.asarray(seen)
        return seen[backend.concatenate(best)] if best else seen[:0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        accuracy : float
        """
        return float(accuracy_score(on_cpu(y), on_cpu(self.predict(X)), sample_weight=on_cpu(sample_weight)))

    def _check_query(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._check_X(X, reset=False)

    def _scores(self, X: Any) -> Iterator[Array]:
        """Yield the scores of the seen classes, in ascending order of label, for blocks of rows."""
        solution, store, order = self._solution(), self._learner.store, self._labels.order
        score = solution.scorer(self._backend.index(order))
        rows = max(1, BLOCK_BYTES // (len(order) * store.dtype.itemsize))
        for _, features in self._features(X):
            features = check_features(features, None, store.n_scored, store.dtype)
            for start in range(0, len(features), rows):
                yield score(features[start : start + rows])

    def _fill_unseen(self, blocks: list[Array], X: Any, value: float) -> Array:
        """Stack blocks of columns of seen classes into columns of all of `classes_`."""
        backend = self._backend
        dtype = backend.dtype(blocks[0]) if blocks else self._learner.store.dtype
        full = backend.zeros((X.shape[0], len(self.classes_)), dtype)
        full += value
        if blocks:
            full[:, backend.index(np.flatnonzero(self._labels.is_seen))] = backend.concatenate(blocks)
        return full

    def _solution(self, attribute: str | None = None) -> Solution:
        self._require_learned(attribute)
        self._check_parameters()
        return self._learner.solution(self._rule(), self._labels.seen)

    def _by_class(self, values: Array) -> Array:
        """Bring values by slot into the order of `classes_`, zeros for classes not seen."""
        backend = self._backend
        out = backend.zeros((len(self.classes_), *values.shape[1:]), backend.dtype(values))
        out[backend.index(np.flatnonzero(self._labels.is_seen))] = values[backend.index(self._labels.order)]
        return out

    @property
    def _backend(self) -> NumpyBackend:
        """Of the arrays that were learned from."""
        return self._learner.store.backend if hasattr(self, "_learner") else NUMPY

    # -- checks --
    def _has_learned(self) -> bool:
        return hasattr(self, "_learner") and len(self._labels) > 0

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is anything to predict with."""
        return self._has_learned()

    def _require_learned(self, attribute: str | None) -> None:
        """Fail as an attribute fails that is not there yet, so that hasattr works; or as an unfitted estimator does."""
        if not self._has_learned():
            if attribute is not None:
                raise AttributeError(f"{type(self).__name__} has no {attribute} before it has learned something.")
            check_is_fitted(self)

    def _check_X(self, X: Any, *, reset: bool, min_samples: int = 0) -> Any:
        if not reset and (got := backend_of(X)) != self._backend:
            raise ValueError(other_kind(self._backend, got))
        if is_tensor(X):
            if not self.takes_tensors:
                raise TypeError(f"{type(self).__name__} takes no torch tensors. Convert: X.numpy(force=True).")
            return check_tensor(self, X, reset=reset, min_samples=min_samples)
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=list(FLOATS), ensure_min_samples=min_samples
        )

    def _check_y(self, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array | None]:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        labels = self._labels.cast(check_labels(y))
        check_consistent_length(X, labels)
        if sample_weight is None:
            return labels, None
        sample_weight = on_cpu(sample_weight)
        if len(labels) == 0:  # scikit-learn's check insists on at least one sample
            check_consistent_length(X, sample_weight)
            return labels, np.zeros(0)
        weight = _check_sample_weight(
            sample_weight, labels, dtype=np.float64, ensure_non_negative=True, allow_all_zero_weights=True
        )
        return labels, np.asarray(weight)

    def __sklearn_tags__(self) -> Any:
        """Declare what input is taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- files --
    def save(self, path: str | Path) -> None:
        """Write everything to one safetensors file, atomically. No sample is in it, no code, no pickle.

        Parameters
        ----------
        path : str or path
        """
        persistence.save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, *, expansion: Any = None, weighting: Any = None, device: Any = None) -> Self:
        """Read what `save` wrote, and go on where it stopped. Nothing in the file is executed.

        Parameters
        ----------
        path : str or path
        expansion : fitted transformer, default=None
            Needed if the classifier was saved with a transformer that is not aircl's own.
        weighting : callable, default=None
            Needed if the classifier was saved with a callable weighting.
        device : str or torch.device, default=None
            Where the statistics live as torch tensors, such as "cpu" or "cuda". None: as NumPy arrays. The file does
            not say what it was learned from.

        Returns
        -------
        classifier : object
        """
        return persistence.load(cls, Path(path), expansion=expansion, weighting=weighting, device=device)
