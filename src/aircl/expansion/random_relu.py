"""Random projection followed by a ReLU: the buffer of ACIL, AIR and RanPAC."""

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from aircl.engine.backend import backend_of, is_tensor
from aircl.expansion.tensors import check_tensor, fitted_like


class RandomReLU(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Expand features to h = ReLU(x W) with a fixed random matrix W and no bias.

    Cost: O(d f) to fit, beside the check of X; O(n d f) to transform.

    Parameters
    ----------
    n_components : int, default=2048
        Width f of the expansion.
    init : {"uniform", "normal"}, default="uniform"
        Distribution of the entries of W.

        - "uniform": U(-1/sqrt(d), 1/sqrt(d)), the buffer of ACIL [1]_ and AIR [2]_ (a PyTorch ``Linear``
          layer as initialised).
        - "normal": N(0, 1), as in RanPAC [3]_. Its features are sqrt(3 d) times larger, so a numeric
          ``gamma`` behind it must be 3 d times larger for the same effect.
    random_state : int, RandomState instance or None, default=None
        Seed of W. The same seed gives the same W for float32 and float64 input, up to rounding.

    Attributes
    ----------
    components_ : ndarray of shape (n_features_in_, n_components)
        The matrix W, in the dtype of the X given to `fit`.
    n_features_in_ : int
        Number of features d seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`, if all of them are strings.

    See Also
    --------
    GaussianKernel : Expansion by distances to samples instead of random directions.

    Notes
    -----
    `fit` looks at the width and the dtype of X only, never at its values: fitting on the first batch of a
    stream is fitting on all of it. The output is dense and has the dtype of `components_`.

    Torch tensors are expanded to tensors on their device. Fitted on a tensor, `components_` is one as well and
    stays there; fitted on anything else, it is copied to the device for every call.

    References
    ----------
    .. [1] Zhuang et al. "ACIL: Analytic Class-Incremental Learning with Absolute Memorization and Privacy
       Protection." NeurIPS 2022.
    .. [2] Fang et al. "AIR: Analytic Imbalance Rectifier for Continual Learning." arXiv:2408.10349, 2024.
    .. [3] McDonnell et al. "RanPAC: Random Projections and Pre-trained Models for Continual Learning."
       NeurIPS 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from aircl.expansion import RandomReLU
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(RandomReLU(500, random_state=0), RidgeClassifier())
    >>> print(f"{model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]):.2f}")
    0.94
    """

    components_: NDArray[Any]
    n_features_in_: int

    def __init__(
        self,
        n_components: int = 2048,
        *,
        init: str = "uniform",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw W for features of the width and dtype of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Only the shape and the dtype are used.
        y : None
            Ignored.

        Returns
        -------
        self : RandomReLU
            The fitted transformer.
        """
        if not isinstance(self.n_components, Integral) or self.n_components < 1:
            raise ValueError(f"n_components must be an integer >= 1, got {self.n_components!r}.")
        if self.init not in ("uniform", "normal"):
            raise ValueError(f"init must be 'uniform' or 'normal', got {self.init!r}.")
        if is_tensor(X):
            X = check_tensor(self, X, reset=True, min_samples=1)
        else:
            X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32))
        d, f = X.shape[1], self.n_components
        random_state = check_random_state(self.random_state)
        if self.init == "uniform":
            W = random_state.uniform(-1 / np.sqrt(d), 1 / np.sqrt(d), size=(d, f))
        else:
            W = random_state.standard_normal((d, f))
        # Drawn in float64 and then cast: the seed alone decides the matrix, not the dtype.
        self.components_ = fitted_like(W.astype(backend_of(X).dtype(X), copy=False), X)
        return self

    def transform(self, X: Any) -> Any:
        """Compute ReLU(X W).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features; zero rows are allowed.

        Returns
        -------
        H : ndarray of shape (n_samples, n_components)
            Expanded features, none of them negative.
        """
        H = self.project(X)
        return backend_of(H).clip(H, low=0.0)

    def project(self, X: Any) -> Any:
        """Compute X W, before the ReLU.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        P : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        W = fitted_like(self.components_, X)
        if is_tensor(X):
            P = backend_of(X).cast(check_tensor(self, X, reset=False), W.dtype) @ W
        else:
            X = validate_data(
                self,
                X,
                reset=False,
                accept_sparse=("csr", "csc"),
                dtype=W.dtype,
                ensure_min_samples=0,
            )
            P = safe_sparse_dot(X, W, dense_output=True)
        return P

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[1])

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fitted arrays by name, as NumPy arrays."""
        check_is_fitted(self)
        return {"components": backend_of(self.components_).to_numpy(self.components_)}

    def _restore_arrays(self, arrays: dict[str, NDArray[Any]]) -> Self:
        """Set the fitted attributes from what `_state_arrays` returned."""
        shapes = {name: array.shape for name, array in arrays.items()}
        shape = shapes.get("components", ())
        if shapes.keys() != {"components"} or len(shape) != 2 or shape[1] != self.n_components:
            raise ValueError(f"RandomReLU needs 'components' of shape (d, {self.n_components}), got {shapes}.")
        self.components_ = arrays["components"]
        self.n_features_in_ = shape[0]
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
