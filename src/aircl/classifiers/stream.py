"""The API that all classifiers of a stream share: a scikit-learn estimator over the engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from aircl.classifiers import learning, persistence
from aircl.classifiers.duplicates import Naming
from aircl.classifiers.inputs import Inputs
from aircl.classifiers.labels import check_labels
from aircl.classifiers.snapshot import Snapshot
from aircl.engine import Learner, Rule, Space, State, Statistics
from aircl.engine.backend import NUMPY, Array, NumpyBackend, backend_of, is_tensor
from aircl.engine.labels import Labels
from aircl.engine.learner import Solved
from aircl.engine.memory import parse_bytes
from aircl.engine.state import BLOCK_BYTES
from aircl.expansion.tensors import on_cpu


class StreamClassifier(ClassifierMixin, BaseEstimator):
    """Learns sufficient statistics of a stream; subclasses say which, and what scores follow from them.

    Subclasses bring the constructor, the kind of statistics (`_store`) and the rule that makes a solution of them
    (`_rule`). `partial_fit` only accumulates; the rule is applied when a prediction or a learned attribute is asked
    for, once, until something changes.

    X may be a torch tensor where `takes_tensors`, and then all that is computed from it stays a tensor on its device:
    scores, probabilities, `class_count_`, and predictions unless the labels are strings. A learner holds one kind of
    array on one device; `classes_` is a NumPy array always.

    Notes
    -----
    Between threads: every method is safe beside every other, but for `set_params`. What changes the learner (`fit`,
    `partial_fit`, `merge`, `forget`, `end_phase`) happens one after the other, each as a whole: whatever is raised, an
    interrupt too, the learner is as before the call or as after it. A prediction sees every change that was completed
    before it began, and solves if it must; `snapshot` gives a predictor that never does. `save` writes one moment.
    """

    takes_tensors: ClassVar[bool] = True
    _store: ClassVar[type[Statistics]]

    _learner: Learner
    _declared: Labels  # before the first row

    # -- what subclasses say --
    def _store_type(self) -> type[Statistics]:
        """Return the kind of statistics that is learned."""
        return self._store

    def _rule(self) -> Rule:
        """Return how the statistics become a solution."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Refuse parameters that are not possible."""

    def _make_expansion(self) -> Any:
        """Return what is applied to X first, not fitted yet, or None."""
        return getattr(self, "expansion", None)

    def _adjusted(self, solved: Solved) -> Solved:
        """Return a solution with what parameters change about it without solving."""
        return solved

    def _class_weights(self, count: Array, labels: Array) -> Array:
        """Return the weight of every class, unscaled, for statistics that fold phases."""
        return np.ones(len(count))

    def _check_new_classes(self, new: Array) -> None:
        """Refuse classes that cannot be learned."""

    def _empty_statistics(self, space: Space, inputs: Inputs) -> Statistics:
        """Return the statistics of nothing, for rows of this width and kind."""
        return self._store_type().empty(space)

    def _restored_statistics(self, statistics: Statistics) -> Statistics:
        """Return statistics that were read from a file, with what older files say elsewhere."""
        return statistics

    def _features(self, X: Any, inputs: Inputs) -> Iterator[tuple[slice, Array]]:
        """Yield the rows of X, expanded and dense, in blocks that fit the cache of a small machine."""
        size = max(1, BLOCK_BYTES // (inputs.dense_width(X) * X.dtype.itemsize))
        for start in range(0, X.shape[0], size):
            part = slice(start, min(start + size, X.shape[0]))
            yield part, inputs.expanded(X[part] if size < X.shape[0] else X)

    def _rows_to_learn(self, X: Any, inputs: Inputs) -> Iterator[tuple[slice, Array]]:
        """Yield the rows that the statistics are of: the features, unless a subclass learns more."""
        return self._features(X, inputs)

    # -- learning --
    def fit(self, X: Any, y: Any, sample_weight: Any = None, ids: Any = None) -> Self:
        """Learn from X alone, forgetting everything before. It is one phase, which stays open until `end_phase`.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Strings, whole numbers or booleans.
        sample_weight : array-like of shape (n_samples,), default=None
        ids : array-like of shape (n_samples,), default=None
            What rows are known by in the ledger: texts or whole numbers. None: their contents.

        Returns
        -------
        self : object
        """
        state = learning.begun(self, X, y, None, sample_weight, Labels(), Naming(ids), min_samples=1)
        if isinstance(state, Labels):
            raise ValueError("All sample weights are zero, so there is nothing to fit. Give some sample weight.")
        kept = {name: value for name, value in self.__dict__.items() if name not in ("_learner", "_declared")}
        self.__dict__ = {**kept, "_learner": Learner(state)}
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        ids: Any = None,
        on_duplicate: str = "error",
        replaced: Any = None,
    ) -> Self:
        """Learn a batch; labels may be new at any time.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
            No rows at all is fine and changes nothing.
        y : array-like of shape (n_samples,)
        classes : array-like, default=None
            Labels to list in `classes_` before they arrive. They are not predicted until then.
        sample_weight : array-like of shape (n_samples,), default=None
        ids : array-like of shape (n_samples,), default=None
            What rows are known by in the ledger: texts or whole numbers. None: their contents, labels and weights.
        on_duplicate : {"error", "skip", "replace"}, default="error"
            What to do with rows that the ledger has from earlier calls. "skip" leaves them out. "replace" learns the
            new row of an id in place of the old one, which has to be given in `replaced`. Equal rows within a call
            are learned as often as they come.
        replaced : mapping, default=None
            The old rows, as they were learned: "X", "y" and "ids", and "sample_weight" if they had some. Those of other
            ids are left alone.

        Returns
        -------
        self : object
        """
        learning.learn(self, X, y, classes, sample_weight, Naming(ids, on_duplicate, replaced))
        return self

    def end_phase(self) -> Self:
        """Close the current phase: add the rows that wait, fold it (store='pooled'), choose gamma again.

        Returns
        -------
        self : object
        """
        if self._has_learned():
            self._learner.change(lambda state: state.phase_ended(self._class_weights))
        return self

    def refresh(self) -> Self:
        """Choose gamma again and solve now rather than at the next prediction.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        self._learner.change(State.changed)
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
        learning.merge(self, other)
        return self

    def _known_labels(self) -> Labels:
        """Return the labels seen or declared so far."""
        return self._learner.state.labels if hasattr(self, "_learner") else getattr(self, "_declared", Labels())

    def forget(
        self, X: Any = None, y: Any = None, *, classes: Any = None, sample_weight: Any = None, ids: Any = None
    ) -> Self:
        """Unlearn exactly: afterwards it is as if the rows, or the classes, had never been seen.

        With a ledger, rows that were never learned, not as they are given or not as often are refused. Without one,
        only what is impossible is refused: rows of a class that was never learned, more weight than a class has, all
        the weight of a class by other rows than its own, and rows after whose removal the second moments would not be a
        sum of squares (of their class, with store='shared' of all classes together). All other rows are subtracted,
        whether they were learned or not.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Rows that were learned, with their labels y and the sample weights they were learned with.
        y : array-like of shape (n_samples,), default=None
        classes : array-like, default=None
            Labels to forget whole (store='per-class'), instead of X and y.
        sample_weight : array-like of shape (n_samples,), default=None
        ids : array-like of shape (n_samples,), default=None
            The ids that the rows were learned with, if they had some.

        Returns
        -------
        self : object
        """
        check_is_fitted(self)
        if (classes is None) == (X is None) or (X is None) != (y is None):
            raise ValueError(
                "forget takes either rows with their labels, forget(X=..., y=...), or forget(classes=...)."
            )
        if classes is None:
            learning.forget_rows(self, X, y, sample_weight, Naming(ids))
        else:
            if np.ndim(classes) == 0:
                raise ValueError(
                    f"classes={classes!r} is one label. Put labels in a list: forget(classes=[{classes!r}])."
                )
            given = check_labels(classes)
            self._learner.change(lambda state: state.without_classes(state.labels.cast(given)))
        return self

    def _ledger(self) -> Any:
        """Return whether rows are noted: True, False, or where the key is."""
        return getattr(self, "ledger", False)

    def _memory_limit(self) -> int | None:
        return parse_bytes(getattr(self, "memory_limit", None))

    # -- what was learned --
    def _state(self, attribute: str | None, *, is_fitted: bool = False) -> State:
        """Return the state; or fail as an attribute that is not there yet, so that hasattr works, or as an estimator.

        `is_fitted`: fail also if everything was forgotten.
        """
        if not (self._has_learned() if is_fitted else hasattr(self, "_learner")):
            if attribute is None:
                check_is_fitted(self)
            raise AttributeError(f"{type(self).__name__} has no {attribute} before it has learned something.")
        return self._learner.state

    @property
    def classes_(self) -> Array:
        """Labels seen or declared, sorted, shape (C,)."""
        if not hasattr(self, "_learner") and hasattr(self, "_declared"):
            return self._declared.classes
        return self._state("classes_").labels.classes

    @property
    def n_features_in_(self) -> int:
        """The number of columns of X."""
        n: int = self._state("n_features_in_").inputs.n_features_in_
        return n

    @property
    def feature_names_in_(self) -> Array:
        """The names of the columns of X, where they have some, shape (n_features_in_,)."""
        names: Array = self._state("feature_names_in_").inputs.feature_names_in_
        return names

    @property
    def expansion_(self) -> Any:
        """The fitted expansion, or None."""
        return self._state("expansion_").inputs.expansion_

    @property
    def backbone_(self) -> dict[str, str]:
        """Name and fingerprint of what made the features, where it is known."""
        backbone = self._state("backbone_").inputs.backbone_
        if backbone is None:
            raise AttributeError("it is not known what made the features: no backbone_ was noted.")
        return dict(backbone)

    @backbone_.setter
    def backbone_(self, backbone: dict[str, str]) -> None:
        self._state("backbone_")
        self._learner.change(
            lambda state: state.changed(new_gamma=False, inputs=state.inputs.with_(backbone_=dict(backbone)))
        )

    @property
    def class_count_(self) -> Array:
        """The sum of sample weights of every class, shape (C,)."""
        state = self._state("class_count_", is_fitted=True)
        return self._by_class(self._backend.asarray(state.count), state.labels)

    @property
    def nbytes_(self) -> int:
        """Bytes the statistics take in memory."""
        return self._state("nbytes_", is_fitted=True).nbytes

    # -- prediction --
    def snapshot(self) -> Snapshot:
        """Return an immutable predictor of the last solution; it solves only if there is none by these parameters.

        What was learned since that solution is not in it: `refresh` solves again.

        Returns
        -------
        snapshot : Snapshot
        """
        self._state(None, is_fitted=True)
        self._check_parameters()
        rule = self._rule()
        solved = self._learner.last(rule)
        if solved is None or solved.solution.is_released:
            solved = self._learner.solved(rule)
            getattr(solved.solution, "temperature", None)  # once it is made, nothing is left to be computed
        alone = object.__new__(type(self))
        alone.__dict__.update(self.get_params(deep=False))
        return Snapshot(alone, self._adjusted(solved))

    def _current(self, attribute: str | None = None) -> Snapshot:
        """Return a predictor of the state as it is now."""
        self._state(attribute, is_fitted=True)
        self._check_parameters()
        return Snapshot(self, self._adjusted(self._learner.solved(self._rule())))

    def _solution(self, attribute: str | None = None) -> Any:
        return self._current(attribute).solution

    def expand(self, X: Any) -> Array:
        """Return the features that X is scored by: the output of the expansion.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)

        Returns
        -------
        features : array of shape (n_samples, f)
        """
        check_is_fitted(self)
        state = self._learner.state
        self._check_kind(X)
        X = self._inputs().check(X)
        blocks = [features for _, features in self._features(X, state.inputs)]
        if not blocks:
            return self._backend.zeros((0, state.statistics.n_score_features), np.float64)
        return self._backend.concatenate(blocks)

    def decision_function(self, X: Any) -> Array:
        """Return the scores xW.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) for two classes
            One column per class; -inf for classes not seen yet. For two classes, the second's minus the first's.
        """
        return self._query(X).decision_function(X)

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
        return self._query(X).predict(X)

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

    def _query(self, X: Any) -> Snapshot:
        check_is_fitted(self)
        self._check_kind(X)
        self._inputs()
        return self._current()

    def _by_class(self, values: Array, labels: Labels) -> Array:
        """Bring values by slot into the order of `classes_`, zeros for classes not seen."""
        backend = backend_of(values)
        out = backend.zeros((len(labels.classes), *values.shape[1:]), backend.dtype(values))
        out[backend.index(labels.columns)] = values[backend.index(labels.order)]
        return out

    def _learned_by_class(self, attribute: str) -> Array:
        """Return an attribute of the solution, which is by slot, in the order of `classes_`."""
        current = self._current()
        values = getattr(current.solution, attribute)
        return self._by_class(values, current._solved.labels)

    @property
    def _backend(self) -> NumpyBackend:
        """Of the arrays that were learned from."""
        return self._learner.state.statistics.space.backend if hasattr(self, "_learner") else NUMPY

    # -- checks --
    def _has_learned(self) -> bool:
        return hasattr(self, "_learner") and self._learner.state.n_classes > 0

    def __sklearn_is_fitted__(self) -> bool:
        """Tell scikit-learn whether there is anything to predict with."""
        return self._has_learned()

    def _check_kind(self, X: Any) -> None:
        """Refuse tensors where they are not taken."""
        if is_tensor(X) and not self.takes_tensors:
            raise TypeError(f"{type(self).__name__} takes no torch tensors. Convert: X.numpy(force=True).")

    def _inputs(self) -> Inputs:
        """Return what the first batch has settled, and refuse a backbone that was changed after it."""
        inputs: Inputs = self._learner.state.inputs
        given = getattr(self, "backbone", None)
        learned = None if inputs.embedder_ is None else inputs.embedder_.backbone
        if given is not learned and not (isinstance(given, str) and given == learned):
            raise ValueError(
                f"backbone={given!r}, but this learner has learned with backbone={learned!r}. A backbone cannot change "
                "once something is learned: set it back, or fit again."
            )
        return inputs

    def __sklearn_tags__(self) -> Any:
        """Declare what input is taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = getattr(self, "backbone", None) is not None
        return tags

    # -- files --
    def save(self, path: str | Path) -> None:
        """Write everything to one safetensors file, atomically. No sample is in it, no code, no pickle.

        Parameters
        ----------
        path : str or path
        """
        persistence.save(self, Path(path))

    def export(self, path: str | Path) -> None:
        """Write only what prediction needs, without statistics: weights, labels, and how features are made.

        Parameters
        ----------
        path : str or path
            ONNX if it ends in .onnx (`pip install 'aircl[onnx]'`), else safetensors. `aircl.load_export` reads both.
        """
        from aircl.classifiers.export import export  # it needs this class

        export(self, Path(path))

    @classmethod
    def load(
        cls, path: str | Path, *, expansion: Any = None, weighting: Any = None, device: Any = None, backbone: Any = None
    ) -> Self:
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
        backbone : Backbone, default=None
            Needed if the classifier was saved with a backbone that is an object. One that has a name is made again.

        Returns
        -------
        classifier : object
        """
        return persistence.load(
            cls, Path(path), expansion=expansion, weighting=weighting, device=device, backbone=backbone
        )
