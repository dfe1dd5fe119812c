"""Rows on their way from the caller to the engine: dense, of the learner's kind, and small enough to be squared."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags

from aircl.engine.backend import NUMPY, Array, NumpyBackend, backend_of


def takes_sparse(expansion: Any) -> bool:
    """Tell whether a transformer takes sparse input."""
    return bool(get_tags(expansion).input_tags.sparse)


def dense_unless(X: Any, keep_sparse: bool) -> Any:
    """Return X, made dense unless it may stay sparse."""
    return X.toarray() if sparse.issparse(X) and not keep_sparse else X


def without_zero_weights(X: Any, labels: Array, weight: Array | None) -> tuple[Any, Array, Array | None]:
    """Drop rows that weigh nothing; a class of total weight 0 is unseen."""
    if weight is None or np.all(weight > 0):
        return X, labels, weight
    positive = weight > 0
    rows = backend_of(X).index(np.flatnonzero(positive))
    return X[rows], labels[positive], weight[positive]


def other_kind(learned: NumpyBackend, got: NumpyBackend) -> str:
    """Say how to turn what was given into what was learned from."""
    if learned == NUMPY:
        how = "X.numpy(force=True)"
    else:
        how = ("torch.from_numpy(X)" if got == NUMPY else "X") + f".to({learned.device!r})"
    return f"X comes as {got.name}, but this learner has learned from {learned.name}. Convert it: {how}."


def check_features(features: Array, weight: Array | None, n_features: int, dtype: np.dtype[Any]) -> Array:
    """Return the features in the dtype of the statistics, or say why they cannot be learned."""
    if features.ndim != 2 or features.shape[1] != n_features:
        raise ValueError(
            f"the expansion gave features of shape {features.shape}, but {n_features} columns are learned."
        )
    backend = backend_of(features)
    peak = backend.peak(features)
    if weight is not None:
        peak *= float(np.sqrt(weight.max(initial=0.0)))
    # Squares of this size, summed over 10^10 entries, still fit.
    limit = 1e-5 * float(np.sqrt(np.finfo(dtype).max))
    if not peak <= limit:
        raise ValueError(
            f"the largest feature (times the root of its weight) is {peak:.1e}; in {dtype} its square cannot be summed "
            f"safely beyond {limit:.1e}. Scale the features down."
        )
    return backend.cast(features, dtype)
