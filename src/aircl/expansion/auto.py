"""The buffer by default: chosen by the width of the features alone, made of a seed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from aircl.engine.backend import Array, NumpyBackend, backend_of, is_tensor
from aircl.expansion.tensors import check_tensor

# Rows of fewer columns are measurements, whose length says something; of more, embeddings, whose direction does.
DIRECTIONS = 64
# ReLU features per column, and the least and the most of them in all.
PER_COLUMN, FEWEST, MOST = 8, 256, 2048
# From so many columns on nothing is gained, and beyond the second number a scatter matrix is too large.
WIDE, WIDEST = 1000, 4096
# Thresholds of narrow features, which may be of any unit: from the first to the second, evenly in the logarithm.
LEAST_THRESHOLD, LARGEST_THRESHOLD = 1e-2, 1e3
# Of more than `WIDEST` columns, each is added to so many of the outputs.
HASHES = 16


class AutoBuffer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Expand features by a buffer that their number d of columns decides; it is what ``expansion="auto"`` makes.

    8 random ReLU features per column, at least 256 and at most 2048, of rows scaled to norm 1 (fewer than 64 columns:
    of rows as they are, with random thresholds), except that 1000 to 4096 columns stay as they are.

    Cost: O(n d f) to transform n rows; for more than 4096 columns O(n d), for a sparse X O(its stored entries).

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed. None is the seed 0: two buffers that were made apart are the same, and what was learned behind them can be
        merged.

    Attributes
    ----------
    seed_ : int
    n_features_in_ : int
        Number of features d seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`, if all of them are strings.

    See Also
    --------
    RandomReLU : The papers' buffer, of any width.

    Notes
    -----
    `fit` looks at the width and the dtype of X only, never at its values. What is saved is the seed; the matrix is
    drawn from it when it is first needed.

    Random directions without a threshold, as in the papers, distinguish rows of one direction and different lengths by
    a factor only, which is too little for a few columns. The thresholds are from 0.01 to 1000, evenly in the logarithm,
    so that some of them fit whatever the unit is; still, columns of one scale are better than columns of many.

    With more than 4096 columns every column is added to 16 of the outputs, with random signs, which keeps distances on
    average and leaves a sparse X sparse; dense, a matrix for 50000 columns would take 800 MB.

    References
    ----------
    Charikar et al. "Finding Frequent Items in Data Streams." ICALP 2002 (the projection).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from aircl.expansion import AutoBuffer
    >>> X, _ = load_digits(return_X_y=True)
    >>> AutoBuffer().fit_transform(X).shape
    (1797, 512)
    """

    seed_: int
    n_features_in_: int

    def __init__(self, *, random_state: int | np.random.RandomState | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose what to do with features of the width and dtype of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Only the shape and the dtype are used.
        y : None
            Ignored.

        Returns
        -------
        self : AutoBuffer
            The fitted transformer.
        """
        if is_tensor(X):
            X = check_tensor(self, X, reset=True, min_samples=1)
        else:
            X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32))
        if self.random_state is None or isinstance(self.random_state, int | np.integer):
            self.seed_ = int(self.random_state or 0)
            np.random.RandomState(self.seed_)  # refuses what is no seed
        else:
            self.seed_ = int(check_random_state(self.random_state).randint(2**31))
        self._dtype = backend_of(X).dtype(X)
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features; zero rows are allowed.

        Returns
        -------
        H : array of shape (n_samples, f)
            In the dtype of the X given to `fit`; X itself for 1000 to 4096 columns.
        """
        check_is_fitted(self)
        if is_tensor(X):
            X = backend_of(X).cast(check_tensor(self, X, reset=False), self._dtype)
        else:
            kinds = ("csr", "csc")
            X = validate_data(self, X, reset=False, accept_sparse=kinds, dtype=self._dtype, ensure_min_samples=0)
        d = self.n_features_in_
        if WIDE <= d <= WIDEST:
            return X
        backend = backend_of(X)
        matrix = _drawn(backend, d, self.seed_, self._dtype)
        H = _add_up(X, *matrix) if d > WIDEST else X @ matrix[0]
        if d < DIRECTIONS:
            H += matrix[1]
        else:
            H /= backend.column(_norms(X), H)  # ReLU(x W) / |x| is what ReLU makes of the scaled row
        return backend.clip(H, low=0.0)

    @property
    def _n_features_out(self) -> int:
        d = self.n_features_in_
        if d > WIDEST:
            return MOST
        return d if d >= WIDE else min(max(PER_COLUMN * d, FEWEST), MOST)

    def _layer(self) -> dict[str, NDArray[Any]]:
        """Return the matrix and the thresholds; without thresholds rows are scaled first, without both left alone."""
        if self.n_features_in_ > WIDEST:
            raise ValueError(
                f"{self.n_features_in_} columns are hashed, which no graph of ONNX has. Export to safetensors."
            )
        if self.n_features_in_ >= WIDE:
            return {}
        return dict(zip(("components", "threshold"), _draw(self.n_features_in_, self.seed_, self._dtype), strict=False))

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return what the map is made of: seed, width and bits of a number."""
        check_is_fitted(self)
        return {"seed": np.array([self.seed_, self.n_features_in_, 8 * self._dtype.itemsize])}

    def _restore_arrays(self, arrays: dict[str, Array]) -> Self:
        """Set the fitted attributes from what `_state_arrays` returned."""
        shapes = {name: tuple(array.shape) for name, array in arrays.items()}
        if shapes != {"seed": (3,)}:
            raise ValueError(f"AutoBuffer needs 'seed' of shape (3,), got {shapes}.")
        seed, d, bits = (int(number) for number in arrays["seed"])
        if not 0 <= seed < 2**32 or d < 1 or bits not in (32, 64):
            raise ValueError(f"AutoBuffer needs a seed, a width and 32 or 64 bits, got {(seed, d, bits)}.")
        self.seed_, self.n_features_in_, self._dtype = seed, d, np.dtype(f"float{bits}")
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@lru_cache(maxsize=4)
def _drawn(backend: NumpyBackend, d: int, seed: int, dtype: np.dtype[Any]) -> list[Array]:
    """Return what a seed gives, as arrays of a backend."""
    return [backend.asarray(array) for array in _draw(d, seed, dtype)]


def _draw(d: int, seed: int, dtype: np.dtype[Any]) -> list[NDArray[Any]]:
    """Return W and, for few columns, the thresholds; or for many, where a column goes and with which sign."""
    random_state = np.random.RandomState(seed)
    if d > WIDEST:
        signs = 2.0 * random_state.randint(2, size=(d, HASHES)) - 1.0
        return [random_state.randint(MOST, size=(d, HASHES)), (signs / np.sqrt(HASHES)).astype(dtype)]
    f = min(max(PER_COLUMN * d, FEWEST), MOST)
    W = random_state.uniform(-1.0, 1.0, size=(d, f)) / np.sqrt(d)
    if d >= DIRECTIONS:
        return [W.astype(dtype)]
    W /= np.linalg.norm(W, axis=0)
    size = np.exp(random_state.uniform(np.log(LEAST_THRESHOLD), np.log(LARGEST_THRESHOLD), size=f))
    threshold = size * random_state.choice([-1.0, 1.0], size=f)
    unit = np.maximum(size, 1.0)  # what a large threshold lets through is no larger than the rest
    return [(W / unit).astype(dtype), (threshold / unit).astype(dtype)]


def _norms(X: Any) -> Array:
    """Return the norms of rows, 1 for a row of zeros, and 1 for one that is too long for a norm."""
    with np.errstate(over="ignore"):
        if sparse.issparse(X):
            squares = np.asarray(X.astype(np.float64).power(2).sum(axis=1)).ravel()
        else:
            squares = backend_of(X).to_numpy(backend_of(X).square(X).sum(1))
    return np.sqrt(np.where((squares > 0) & np.isfinite(squares), squares, 1.0))


def _add_up(X: Any, places: Array, signs: Array) -> Any:
    """Return X with every column added to its places, with its signs."""
    if is_tensor(X):
        H = X.new_zeros((X.shape[0], MOST))
        for hash_ in range(HASHES):
            H.index_add_(1, places[:, hash_], X * signs[:, hash_])
        return H
    d = places.shape[0]
    R = sparse.csr_array((signs.ravel(), places.ravel(), np.arange(0, places.size + 1, HASHES)), shape=(d, MOST))
    H = X @ R
    return H.toarray() if sparse.issparse(H) else np.asarray(H)
