"""The numerical kernels of the engine: symmetric rank-k updates, packed storage, eigenvectors.

A symmetric matrix is held in one of two ways. *Lower*: an (f, f) Fortran-ordered array of which only the lower
triangle is meaningful, the fastest to update. *Packed*: the f(f+1)/2 numbers of LAPACK's rectangular full packed
format, half the memory, still updated by level-3 BLAS; sums of packed matrices are sums of vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas, lapack

Array = npt.NDArray[Any]

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def _kernel(module: Any, name: str, dtype: np.dtype[Any]) -> Any:
    return getattr(module, ("s" if dtype == np.float32 else "d") + name)


def lower_zeros(n_features: int, dtype: npt.DTypeLike) -> Array:
    """Return an (f, f) zero matrix that `add_gram` can update in place."""
    return np.zeros((n_features, n_features), dtype=dtype, order="F")


def add_gram(A: Array, X: Array, alpha: float = 1.0) -> None:
    """Add alpha X'X to A in the lower triangle, in place (SYRK: half the work of a general product)."""
    if len(X) == 0:
        return
    X = np.ascontiguousarray(X, dtype=A.dtype)
    syrk = _kernel(blas, "syrk", A.dtype)
    syrk(alpha, X.T, beta=1.0, c=A, lower=1, overwrite_c=1)


def symmetric_product(A: Array, B: Array) -> Array:
    """Return AB for a symmetric A in its lower form, shape (f, k)."""
    return np.asarray(_kernel(blas, "symm", A.dtype)(1.0, A, B, lower=1))


def symmetric(A: Array) -> Array:
    """Mirror the lower triangle of A into a new, complete symmetric matrix."""
    full: Array = np.tril(A)
    full += np.tril(A, -1).T
    return full


def packed_size(n_features: int) -> int:
    """Return how many numbers a packed symmetric (f, f) matrix has."""
    return n_features * (n_features + 1) // 2


def packed_add_gram(P: Array, X: Array, n_features: int, alpha: float = 1.0) -> None:
    """Add alpha X'X to a packed P, in place."""
    if len(X) == 0:
        return
    X = np.ascontiguousarray(X, dtype=P.dtype)
    sfrk = _kernel(lapack, "sfrk", P.dtype)
    sfrk(n_features, len(X), alpha, X.T, 1.0, P, uplo="L", overwrite_c=1)


def packed_axpy(P: Array, Q: Array, alpha: float = 1.0) -> None:
    """Add alpha Q to P, in place, without a temporary of their size."""
    _kernel(blas, "axpy", P.dtype)(Q, P, a=alpha)


def packed_diagonal(P: Array, n_features: int) -> Array:
    """Return the diagonal of a packed matrix, shape (f,), without unpacking it."""
    # Rectangular full packed, lower, column-major: an (f + 1, f / 2) array for even f, an (f, (f + 1) / 2) one for odd.
    columns = (n_features + 1) // 2
    rectangle = P.reshape(columns, -1).T
    shift = 1 - n_features % 2
    low = rectangle[np.arange(columns) + shift, np.arange(columns)]
    high = rectangle[np.arange(n_features - columns), np.arange(n_features - columns) + 1 - shift]
    return np.concatenate([low, high])


def unpack(P: Array, n_features: int) -> Array:
    """Return a packed matrix in its lower form."""
    A, _ = _kernel(lapack, "tfttr", P.dtype)(n_features, P, uplo="L")
    return np.asarray(A)


def pack(A: Array) -> Array:
    """Return a lower matrix in its packed form."""
    P, _ = _kernel(lapack, "trttf", A.dtype)(A, uplo="L")
    return np.asarray(P)


def is_positive(A: Array, slack: float) -> bool:
    """Tell whether the symmetric A (lower) has no eigenvalue below -slack, by one Cholesky factorisation."""
    shifted = np.array(A, dtype=np.float64, order="F")
    shifted[np.diag_indices_from(shifted)] += slack
    _, info = lapack.dpotrf(shifted, lower=1, clean=0, overwrite_a=1)
    return bool(info == 0)
