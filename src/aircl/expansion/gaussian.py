"""Gaussian kernel values at random centres: the buffer of GKEAL."""

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from aircl.engine.backend import backend_of, is_tensor
from aircl.expansion.tensors import check_tensor, fitted_like

# The median distance between so many rows is within a percent or so of that between all.
ROWS = 512


class GaussianKernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Expand features to h_j = exp(-|x - m_j|^2 / (2 sigma^2)) with centres m_j drawn from the data.

    Cost: O(f d) to fit, beside the check of X; O(n d f) to transform.

    Parameters
    ----------
    n_components : int, default=2048
        Number f of centres.
    sigma : float or "median", default=10.0
        Width of the kernel, > 0, in the units of the features. "median": the median distance between two rows of the X
        given to `fit`; of more than 512 rows, between 512 that are spread evenly over it.
    random_state : int, RandomState instance or None, default=None
        Seed of the choice of centres.

    Attributes
    ----------
    centers_ : ndarray of shape (n_components, n_features_in_)
        The centres m_j, in the dtype of the X given to `fit`.
    sigma_ : float
        The width that is used.
    n_features_in_ : int
        Number of features d seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`, if all of them are strings.

    See Also
    --------
    RandomReLU : Expansion that keeps no sample, and needs none.

    Notes
    -----
    The centres are rows of X drawn without replacement. If X has fewer rows than there are centres, all
    its rows are centres, and the rest are random convex mixes t x_i + (1 - t) x_j of two rows, t ~ U(0, 1).

    The centres are training samples, and a saved model holds them. `fit` is meant for the first phase of a
    stream; later phases only `transform`.

    The output has the dtype of `centers_`. Sparse input is not accepted: the features are centred first,
    which would make them dense anyway.

    Torch tensors are expanded to tensors on their device. Fitted on a tensor, the centres are one as well and
    stay there; fitted on anything else, they are copied to the device for every call.

    References
    ----------
    .. [1] Zhuang et al. "GKEAL: Gaussian Kernel Embedded Analytic Learning for Few-Shot Class Incremental
       Task." CVPR 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from aircl.expansion import GaussianKernel
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(GaussianKernel(500, sigma=20, random_state=0), RidgeClassifier(alpha=0.1))
    >>> print(f"{model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]):.2f}")
    0.96
    """

    centers_: NDArray[Any]
    sigma_: float
    n_features_in_: int

    def __init__(
        self,
        n_components: int = 2048,
        *,
        sigma: float | str = 10.0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.sigma = sigma
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the centres from the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features to draw from.
        y : None
            Ignored.

        Returns
        -------
        self : GaussianKernel
            The fitted transformer.
        """
        if not isinstance(self.n_components, Integral) or self.n_components < 1:
            raise ValueError(f"n_components must be an integer >= 1, got {self.n_components!r}.")
        is_number = isinstance(self.sigma, Real) and 0 < self.sigma < np.inf
        if not is_number and self.sigma != "median":
            raise ValueError(f"sigma must be a finite number > 0 or 'median', got {self.sigma!r}.")
        if is_tensor(X):
            X = check_tensor(self, X, reset=True, min_samples=1)
        else:
            X = validate_data(self, X, dtype=(np.float64, np.float32))
        backend = backend_of(X)
        n, f = X.shape[0], self.n_components
        self.sigma_ = float(self.sigma) if is_number else _median_distance(X)
        random_state = check_random_state(self.random_state)
        if n >= f:
            self._set_centers(X[backend.index(random_state.choice(n, f, replace=False))])
        else:
            i = random_state.randint(n, size=f - n)
            j = (i + random_state.randint(1, max(n, 2), size=f - n)) % n  # another row, if there is one
            t = backend.column(random_state.uniform(size=f - n), X)
            mixes = t * X[backend.index(i)] + (1 - t) * X[backend.index(j)]
            self._set_centers(backend.concatenate([X, mixes]))
        return self

    def _set_centers(self, centers: NDArray[Any]) -> None:
        self.centers_ = centers
        # |x - m|^2 is expanded below into terms that cancel when x and m lie far from the origin. Moving
        # the origin among the centres leaves the distances alone and keeps the terms small.
        self._origin = centers.mean(0)
        self._shifted = centers - self._origin
        self._half_norms = 0.5 * (self._shifted**2).sum(1)

    def transform(self, X: Any) -> Any:
        """Compute the kernel between the rows of X and the centres.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features; zero rows are allowed.

        Returns
        -------
        H : ndarray of shape (n_samples, n_components)
            Kernel values in [0, 1].
        """
        check_is_fitted(self)
        origin, shifted, half_norms = (fitted_like(A, X) for A in (self._origin, self._shifted, self._half_norms))
        backend = backend_of(X)
        if is_tensor(X):
            X = backend.cast(check_tensor(self, X, reset=False), shifted.dtype)
        else:
            X = validate_data(self, X, reset=False, dtype=shifted.dtype, ensure_min_samples=0)
        X = X - origin
        # -|x - m|^2 / 2 = x m' - |x|^2 / 2 - |m|^2 / 2, which only rounding makes positive
        H = X @ shifted.T
        H -= 0.5 * (X**2).sum(1)[:, None]
        H -= half_norms
        H = backend.clip(H, high=0.0)
        H /= self.sigma_**2
        return backend.exp(H)

    @property
    def _n_features_out(self) -> int:
        return int(self.centers_.shape[0])

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fitted arrays by name, as NumPy arrays."""
        check_is_fitted(self)
        centers = {"centers": backend_of(self.centers_).to_numpy(self.centers_)}
        return centers | {"sigma": np.array([self.sigma_])} if self.sigma == "median" else centers

    def _restore_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Set the fitted attributes from what `_state_arrays` returned."""
        shapes = {name: array.shape for name, array in arrays.items()}
        shape = shapes.get("centers", ())
        names = {"centers", "sigma"} if self.sigma == "median" else {"centers"}
        if shapes.keys() != names or len(shape) != 2 or shape[0] != self.n_components:
            width = " and 'sigma'" if self.sigma == "median" else ""
            raise ValueError(f"GaussianKernel needs 'centers' of shape ({self.n_components}, d){width}, got {shapes}.")
        self.sigma_ = float(arrays["sigma"][0] if self.sigma == "median" else self.sigma)
        self._set_centers(arrays["centers"])
        self.n_features_in_ = shape[1]
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _median_distance(X: Any) -> float:
    """Return the median distance between two rows that are not the same; 1 if there are no such rows."""
    n = X.shape[0]
    rows = X if n <= ROWS else X[backend_of(X).index(np.linspace(0, n - 1, ROWS).round().astype(np.intp))]
    distances = pdist(np.asarray(backend_of(X).to_numpy(rows), dtype=np.float64))
    distances = distances[distances > 0]
    return float(np.median(distances)) if len(distances) else 1.0
