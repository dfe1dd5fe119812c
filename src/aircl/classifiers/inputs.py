"""What a learner's rows are made of: checked as scikit-learn checks them, expanded, and fit for being squared."""

from __future__ import annotations

from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import validate_data

from aircl.classifiers.advice import advice_on
from aircl.engine.backend import FLOATS, NUMPY, Array, NumpyBackend, backend_of, is_tensor
from aircl.expansion.tensors import check_expanded, check_tensor, on_cpu
from aircl.hooks import embedding
from aircl.inputs import is_empty, raw_samples


class Inputs(ClassifierMixin, BaseEstimator):
    """The width and the names of the columns, the fitted expansion and the kind of arrays, settled by the first batch.

    It is scikit-learn's idea of an estimator that has seen X, and never changes. Made by `Inputs.first`.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features_in_,), where columns have names
    expansion_ : fitted transformer or None
    backend_ : NumpyBackend
        Of the arrays that were given.
    backbone_ : dict or None
        Name and fingerprint of what made the features, where it is known.
    embedder_ : transformer or None
        Makes features of texts or images before anything else.
    columns_ : dict or None
        Which columns of a table the command line has read.
    history_ : list of dict or None
        What the command line did, when, and with which files.
    """

    n_features_in_: int
    expansion_: Any
    backend_: NumpyBackend
    backbone_: dict[str, str] | None
    embedder_: Any = None
    columns_: dict[str, Any] | None = None
    history_: list[dict[str, Any]] | None = None

    @classmethod
    def first(cls, name: str, X: Any, min_samples: int, backbone: Any = None) -> tuple[Inputs, Any]:
        """Return the inputs that a first batch settles for a classifier of some name, and the batch, checked."""
        embedder = None if backbone is None else embedding(backbone).fit(X)
        if embedder is not None:
            X = _embedded(embedder, X)
        inputs = cls.of(name, expansion_=None, backbone_=None, backend_=backend_of(X)).with_embedder(embedder)
        return inputs, inputs._validate(X, reset=True, min_samples=min_samples)

    @classmethod
    def of(cls, name: str, **attributes: Any) -> Inputs:
        """Return inputs with these attributes, of a classifier of this name: messages have it."""
        inputs: Inputs = object.__new__(_named(name))
        inputs.__dict__.update(attributes)
        return inputs

    def with_(self, **attributes: Any) -> Inputs:
        """Return the same with some attributes changed."""
        return Inputs.of(type(self).__name__, **{**self.__dict__, **attributes})

    def with_names(self, names: list[str] | None) -> Inputs:
        """Return the same with other names of the columns, or none."""
        unnamed = {name: value for name, value in self.__dict__.items() if name != "feature_names_in_"}
        given = {} if names is None else {"feature_names_in_": np.array(names, dtype=object)}
        return Inputs.of(type(self).__name__, **unnamed, **given)

    def with_embedder(self, embedder: Any) -> Inputs:
        """Return the same with what makes features, and note which; None: X are features from now on."""
        return self if embedder is None else self.with_(embedder_=embedder, backbone_=embedder.noted)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by name: the class is made when it is needed."""
        return _restore, (type(self).__name__, dict(self.__dict__))

    def __sklearn_tags__(self) -> Any:
        """Declare what input is taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- checks --
    def check(self, X: Any, min_samples: int = 0) -> Any:
        """Return X as a clean 2-d array, sparse matrix or tensor of this width and kind."""
        if self.embedder_ is not None:
            X = _embedded(self.embedder_, X)
        if (got := backend_of(X)) != self.backend_:
            raise ValueError(_other_kind(self.backend_, got))
        return self._validate(X, reset=False, min_samples=min_samples)

    def _validate(self, X: Any, *, reset: bool, min_samples: int) -> Any:
        try:
            if is_tensor(X):
                return check_tensor(self, X, reset=reset, min_samples=min_samples)
            return validate_data(
                self, X, reset=reset, accept_sparse="csr", dtype=list(FLOATS), ensure_min_samples=min_samples
            )
        except (ValueError, TypeError) as error:
            if (advice := advice_on(X, type(self).__name__)) is not None:
                raise ValueError(advice) from error
            raise

    # -- expansion --
    def with_expansion(self, expansion: Any, X: Any, random_state: Any) -> Inputs:
        """Return the same with a clone of an expansion, fitted on the first batch; `random_state` if it has none."""
        if expansion is None:
            return self
        expansion = clone(expansion)
        if random_state is not None and expansion.get_params(deep=False).get("random_state", 0) is None:
            expansion.set_params(random_state=random_state)
        X = dense_unless(X, _takes_sparse(expansion))
        return self.with_(expansion_=expansion.fit(X, None))  # FrozenEstimator insists on a y

    def dense_width(self, X: Any) -> int:
        """Return how many numbers a row of X has at the most on its way to being expanded; a sparse one may stay so."""
        width: int = getattr(self.expansion_, "_n_features_out", 0)
        stays = sparse.issparse(X) and self.expansion_ is not None and _takes_sparse(self.expansion_)
        return width if stays and width else max(X.shape[1], width)

    def expanded(self, X: Any) -> Array:
        """Return the output of the expansion, dense; X itself if there is none."""
        features: Array = X
        if self.expansion_ is not None:
            features = self.expansion_.transform(dense_unless(X, _takes_sparse(self.expansion_)))
            if is_tensor(X):
                return check_expanded(self.expansion_, features, X)  # type: ignore[no-any-return]
        if is_tensor(X):
            return features
        features = np.asarray(dense_unless(features, False))
        return features if features.dtype in FLOATS else features.astype(np.float64)


@lru_cache(maxsize=64)
def _named(name: str) -> type[Inputs]:
    return type(name, (Inputs,), {"__module__": Inputs.__module__})


def _embedded(embedder: Any, X: Any) -> Any:
    """Return features of texts or images; of nothing there are none, though a network gives some."""
    samples = raw_samples(X)
    empty = [i for i, sample in enumerate(samples) if is_empty(sample)] if isinstance(samples, list) else []
    if samples is not None and empty:
        raise ValueError(
            f"{len(empty)} of {len(samples)} texts hold nothing but spaces, the first at index {empty[0]}. Fill or "
            "drop such rows."
        )
    return embedder.transform(X)


def _restore(name: str, attributes: dict[str, Any]) -> Inputs:
    return Inputs.of(name, **attributes)


def _takes_sparse(expansion: Any) -> bool:
    return bool(get_tags(expansion).input_tags.sparse)


def dense_unless(X: Any, keep_sparse: bool) -> Any:
    """Return X, made dense unless it may stay sparse."""
    return X.toarray() if sparse.issparse(X) and not keep_sparse else X


def check_weights(sample_weight: Any, labels: Array) -> Array:
    """Return one finite weight of 0 or more per sample; one number stands for all."""
    weight = on_cpu(sample_weight)
    if isinstance(weight, Real):
        weight = np.full(len(labels), weight)
    weight = check_array(weight, ensure_2d=False, dtype=np.float64, ensure_min_samples=0, input_name="sample_weight")
    if weight.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weight.ndim}D array.")
    if weight.shape != labels.shape:
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {labels.shape}! One weight per sample.")
    if np.any(weight < 0):
        raise ValueError("Negative values in data passed to `sample_weight`. Weights are 0 or more.")
    tiny = np.finfo(np.float64).tiny
    if np.any((weight > 0) & (weight < tiny)):  # the rows of a class are divided by: 1 / n_y has to be finite
        raise ValueError(f"a sample_weight is {weight[weight > 0].min():.1e}. Weights are 0, or at least {tiny:.1e}.")
    return np.asarray(weight)


def without_zero_weights(X: Any, labels: Array, weight: Array | None) -> tuple[Any, Array, Array | None]:
    """Drop rows that weigh nothing; a class of total weight 0 is unseen."""
    if weight is None or np.all(weight > 0):
        return X, labels, weight
    positive = weight > 0
    rows = backend_of(X).index(np.flatnonzero(positive))
    return X[rows], labels[positive], weight[positive]


def _other_kind(learned: NumpyBackend, got: NumpyBackend) -> str:
    """Say how to turn what was given into what was learned from."""
    if learned == NUMPY:
        how = "X.numpy(force=True)"
    else:
        how = ("torch.from_numpy(X)" if got == NUMPY else "X") + f".to({learned.device!r})"
    return f"X comes as {got.name}, but this learner has learned from {learned.name}. Convert it: {how}."


def check_features(
    features: Array, weight: Array | None, n_features: int, dtype: np.dtype[Any], *, is_first: bool = False
) -> Array:
    """Return the features in the dtype of the statistics, or say why they cannot be learned."""
    if features.ndim != 2 or features.shape[1] != n_features:
        raise ValueError(
            f"the expansion gave features of shape {features.shape}, but {n_features} columns are learned."
        )
    backend = backend_of(features)
    largest = backend.max_abs(features)
    if weight is not None:
        largest *= float(np.sqrt(weight.max(initial=0.0)))
    # Squares of this size, summed over 10^10 entries, still fit.
    high = 1e-5 * float(np.sqrt(np.finfo(dtype).max))
    if not largest <= high:
        raise ValueError(
            f"the largest feature (times the root of its weight) is {largest:.1e}; in {dtype} its square cannot be "
            f"summed safely beyond {high:.1e}. Scale the features down."
        )
    # Later rows may be as small as they like beside others; a whole stream of such would be lost.
    low = 1e3 * float(np.sqrt(np.finfo(dtype).tiny))
    if is_first and 0 < largest < low:
        raise ValueError(
            f"the largest feature (times the root of its weight) of the first batch is {largest:.1e}; in {dtype} "
            f"squares of what is below {low:.1e} vanish. Scale the features up."
        )
    return backend.cast(features, dtype)
