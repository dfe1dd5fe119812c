"""The closed-form ridge solution W = (G + gamma I)^-1 B."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from aircl.engine.backend import Array, symmetric


class SingularError(ValueError):
    """The normal equations have no unique solution."""


def solve_ridge(G: Array, B: Array, gamma: float) -> Array:
    """Solve (G + gamma I) W = B by Cholesky factorisation, in float64 whatever the statistics' dtype.

    Parameters
    ----------
    G : array of shape (f, f)
        The weighted sum of second moments, lower triangle. It is not changed.
    B : array of shape (f, C)
        The weighted class sums, one column a class.
    gamma : float
        The ridge, >= 0.

    Returns
    -------
    W : array of shape (f, C), float64

    Notes
    -----
    Cost O(f^3 / 3 + f^2 C). Rounding in float32 statistics can leave G slightly indefinite; then the eigenvalues
    are clipped at zero, which is the nearest matrix a sum of squares can be.
    """
    A = np.array(G, dtype=np.float64, order="F")
    A[np.diag_indices_from(A)] += gamma
    L, info = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=1)
    if gamma == 0.0:
        rcond = lapack.dpocon(L, _one_norm(G), uplo="L")[0] if info == 0 else 0.0
        if rcond < len(A) * np.finfo(G.dtype).eps:
            raise SingularError(
                f"gamma=0 needs second moments of full rank, but those of the {len(A)} features are singular "
                f"(reciprocal condition number {rcond:.1e}). Use gamma > 0 or gamma='auto'."
            )
    if info > 0:
        eigenvalues, V = np.linalg.eigh(symmetric(np.asarray(G, dtype=np.float64)))
        shrunk = (V.T @ B) / (np.maximum(eigenvalues, 0.0) + gamma)[:, None]
        return np.asarray(V @ shrunk)
    W, _ = lapack.dpotrs(L, np.asarray(B, dtype=np.float64), lower=1)
    return np.asarray(W)


def _one_norm(G: Array) -> float:
    """Return the largest absolute column sum of a symmetric matrix given by its lower triangle."""
    lower = np.abs(np.tril(G))
    strict = lower - np.diag(np.diag(lower))
    return float((lower.sum(axis=0) + strict.sum(axis=1)).max())
