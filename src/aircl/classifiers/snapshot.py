"""Predictions from one solution, which nothing can change any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from aircl.classifiers.inputs import check_features
from aircl.classifiers.priors import class_priors
from aircl.engine.backend import NUMPY, Array, NumpyBackend
from aircl.engine.learner import Solved
from aircl.engine.state import BLOCK_BYTES

if TYPE_CHECKING:
    from aircl.classifiers.stream import StreamClassifier
    from aircl.engine.novelty import Novelty


class Snapshot:
    """An immutable predictor: classes and weights of one moment. It holds no statistics, and using it never waits.

    Made by `StreamClassifier.snapshot`; whatever is learned or forgotten afterwards, it answers the same.

    Parameters
    ----------
    classifier : StreamClassifier
        For its parameters.
    solved : Solved
        Solution, labels and inputs.

    Attributes
    ----------
    classes_ : array of shape (C,)
    version : int
        Of the learner's state it was made of; one more after every change.
    n_samples : float
        Sum of the weights of all samples in it.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl import AIRClassifier
    >>> clf = AIRClassifier(0.1).fit(np.eye(3), ["cat", "dog", "owl"])
    >>> before = clf.snapshot()
    >>> clf = clf.partial_fit(np.ones((5, 3)), ["fox"] * 5)
    >>> before.classes_.tolist(), clf.classes_.tolist()
    (['cat', 'dog', 'owl'], ['cat', 'dog', 'fox', 'owl'])
    >>> before.predict(np.eye(3)).tolist(), clf.snapshot().version - before.version
    (['cat', 'dog', 'owl'], 0)
    >>> int(clf.refresh().snapshot().n_samples - before.n_samples)
    5
    """

    def __init__(self, classifier: StreamClassifier, solved: Solved) -> None:
        self._classifier = classifier
        self._solved = solved

    def __repr__(self) -> str:
        """Say whose and of when."""
        return f"<Snapshot of {type(self._classifier).__name__}, {len(self.classes_)} classes, version {self.version}>"

    @property
    def classes_(self) -> Array:
        """Labels seen or declared, sorted, shape (C,)."""
        return self._solved.labels.classes

    @property
    def n_features_in_(self) -> int:
        """The number of columns of X."""
        n: int = self._solved.inputs.n_features_in_
        return n

    @property
    def feature_names_in_(self) -> Array:
        """The names of the columns of X, where they have some, shape (n_features_in_,)."""
        names: Array = self._solved.inputs.feature_names_in_
        return names

    @property
    def backbone(self) -> Any:
        """What makes features of texts or images first: a name or an object; None: X are features."""
        embedder = self._solved.inputs.embedder_
        return None if embedder is None else embedder.backbone

    @property
    def backbone_(self) -> dict[str, str]:
        """Name and fingerprint of what made the features, where it is known."""
        noted = self._solved.inputs.backbone_
        if noted is None:
            raise AttributeError("it is not known what made the features: no backbone_ was noted.")
        return dict(noted)

    @property
    def version(self) -> int:
        """Of the learner's state."""
        return self._solved.version

    @property
    def n_samples(self) -> float:
        """Sum of the weights of all samples."""
        return self._solved.n_samples

    @property
    def solution(self) -> Any:
        """What the classifier's rule has made of the statistics."""
        return self._solved.solution

    @property
    def _backend(self) -> NumpyBackend:
        backend: NumpyBackend = self._solved.inputs.backend_
        return backend

    def decision_function(self, X: Any) -> Array:
        """Return the scores of every class, as the classifier's `decision_function` does.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        X = self._solved.inputs.check(X)
        scores = self._with_unseen(list(self._scores(X)), X, -np.inf)
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
        X, backend = self._solved.inputs.check(X), self._backend
        best = [scores.argmax(1) for scores in self._scores(X)]
        labels = self._solved.labels
        seen = labels.seen[labels.order]
        if seen.dtype.kind == "U":  # there are no tensors of strings
            best, backend = [backend.to_numpy(block) for block in best], NUMPY
        seen = backend.asarray(seen)
        return seen[backend.concatenate(best)] if best else seen[:0]

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class: a softmax of the scores at the solution's temperature.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)

        Returns
        -------
        p : array of shape (n_samples, n_classes)
        """
        X = self._solved.inputs.check(X)
        return self._with_unseen(list(self._probabilities(X, self._backend.softmax)), X, 0.0)

    def predict_log_proba(self, X: Any, *, is_checked: bool = False) -> Array:
        """Return the logarithms of the probabilities, which do not vanish where a probability rounds to 0 or 1.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
        is_checked : bool, default=False
            Whether X is known to be an array of finite floats of the right width: the checks of a few rows take longer
            than their prediction.

        Returns
        -------
        log_p : array of shape (n_samples, n_classes)
            -inf for classes not seen yet.
        """
        X = X if is_checked else self._solved.inputs.check(X)
        return self._with_unseen(list(self._probabilities(X, self._backend.log_softmax)), X, -np.inf)

    def novelty(self, X: Any, model: Novelty | None = None) -> Array:
        """Return for every row the share of new samples that would differ as much, as the classifier's `novelty` does.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_samples, n_features)
        model : Novelty, default=None
            None: that of this solution, made once, as long as it holds the problem that was solved.

        Returns
        -------
        share : array of shape (n_samples,), float64
        """
        solution, inputs = self.solution, self._solved.inputs
        model = solution.novelty if model is None else model
        X = inputs.check(X)
        blocks = [model.distance(self._backend.to_numpy(part)) for _, part in self._classifier._features(X, inputs)]
        priors = getattr(self._classifier, "priors", None)
        weight = class_priors(priors, solution.share, solution.count, self._solved.labels.seen)
        return model.share(np.concatenate(blocks) if blocks else np.zeros(0), weight)

    def embed(self, X: Any) -> Any:
        """Return the features that the backbone makes of texts or images; X itself if there is none.

        Parameters
        ----------
        X : samples

        Returns
        -------
        features : array of shape (n_samples, n_features)
        """
        embedder = self._solved.inputs.embedder_
        return X if embedder is None else embedder.transform(X)

    def _probabilities(self, X: Any, softmax: Callable[[Array], Array]) -> Iterator[Array]:
        """Yield what a softmax makes of the scores of blocks of rows; the class of the highest score stays first."""
        temperature = self.solution.temperature
        for scores in self._scores(X):
            p, best = softmax(self._backend.double(scores) / temperature), scores.argmax(1)
            first = p.argmax(1)
            if bool((rounded := first != best).any()):  # two that were next to each other have become equal
                highest = p[rounded, first[rounded]]
                p[rounded, best[rounded]] = highest + abs(highest) * np.finfo(np.float64).eps
            yield p

    def _scores(self, X: Any) -> Iterator[Array]:
        """Yield the scores of the seen classes, in ascending order of label, for blocks of rows."""
        for _, features in self._classifier._features(X, self._solved.inputs):
            features = check_features(features, None, self._solved.width, self._solved.dtype)
            rows = max(1, BLOCK_BYTES // (len(self._solved.labels.order) * self._solved.dtype.itemsize))
            for start in range(0, len(features), rows):
                yield self._score(features[start : start + rows])

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again when it is needed."""
        return {name: value for name, value in self.__dict__.items() if name != "_score"}

    @cached_property
    def _score(self) -> Callable[[Array], Array]:
        """The function from features to scores of the seen classes, in ascending order of label."""
        score: Callable[[Array], Array] = self.solution.scorer(self._backend.index(self._solved.labels.order))
        return score

    def _with_unseen(self, blocks: list[Array], X: Any, value: float) -> Array:
        """Stack blocks of columns of seen classes into columns of all of `classes_`."""
        backend = self._backend
        dtype = backend.dtype(blocks[0]) if blocks else self._solved.dtype
        full = backend.zeros((X.shape[0], len(self.classes_)), dtype)
        full += value
        if blocks:
            full[:, backend.index(self._solved.labels.columns)] = backend.concatenate(blocks)
        return full
