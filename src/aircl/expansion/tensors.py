"""Validation of tensors, as scikit-learn validates arrays; torch is not imported for it."""

from __future__ import annotations

from typing import Any

from aircl.engine.backend import Array, backend_of, is_tensor


def check_tensor(estimator: Any, X: Any, *, reset: bool, min_samples: int = 0) -> Any:
    """Return X as a finite (n, d) tensor of floats for an estimator; `reset` settles its `n_features_in_`."""
    X = _clean_rows(X)
    n, d = X.shape
    if n < min_samples or d < 1:
        raise ValueError(
            f"Found a tensor of shape {(n, d)} with {n} sample(s) and {d} feature(s), while a minimum of {min_samples} "
            "sample(s) and 1 feature(s) is required."
        )
    if reset:
        estimator.n_features_in_ = d
        estimator.__dict__.pop("feature_names_in_", None)
    elif d != estimator.n_features_in_:
        raise ValueError(
            f"X has {d} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} features as "
            "input."
        )
    return X


def check_expanded(expansion: Any, features: Any, X: Any) -> Any:
    """Return what an expansion made of a tensor X as a tensor of floats, or say that it left X's device."""
    if not is_tensor(features) or features.device != X.device:
        raise ValueError(
            f"the expansion {type(expansion).__name__} turned a tensor on {X.device} into something else "
            f"({type(features).__name__}). Use one of aircl's own, one that keeps tensors, or NumPy arrays."
        )
    return _clean_rows(features)


def _clean_rows(X: Any) -> Any:
    """Return X as a finite 2-d float32 or float64 tensor without a gradient, or say what is wrong with it."""
    if str(X.layout) != "torch.strided" or X.is_quantized:
        raise ValueError(f"X is a tensor of layout {X.layout}. Use a dense one: X.to_dense().")
    if X.is_complex():
        raise ValueError(f"Complex data not supported: X is a tensor of {X.dtype}.")
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got a tensor of shape {tuple(X.shape)} instead. Use X.reshape(1, -1) for a single "
            "sample, X.reshape(-1, 1) for a single feature."
        )
    X = X.detach()
    if str(X.dtype) not in ("torch.float64", "torch.float32"):
        X = X.float() if X.is_floating_point() else X.double()
    if not bool(X.isfinite().all()):
        what = "NaN" if bool(X.isnan().any()) else "infinity"
        raise ValueError(f"Input X contains {what}.")
    return X


def on_cpu(values: Any) -> Any:
    """Return labels or sample weights that come as a tensor as a NumPy array; other things as they are."""
    if not is_tensor(values):
        return values
    values = values.detach()
    # NumPy has no bfloat16.
    return (values.double() if values.is_floating_point() else values).cpu().numpy()


def fitted_like(A: Array, X: Any) -> Array:
    """Return A, fitted before, as an array that X can be multiplied with; NumPy arrays go to the device of a tensor."""
    fitted, given = backend_of(A), backend_of(X)
    if fitted == given:
        return A
    if is_tensor(A):
        raise ValueError(f"X comes as {given.name}, but this was fitted on {fitted.name}. Convert X, or fit again.")
    return given.asarray(A)
