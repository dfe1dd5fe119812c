"""A second moment held as few rows: R (r, f) with R'R = A_y, for a class with fewer samples than features.

X and QX have the same second moment for every orthogonal Q. The representative that is kept is R = HQ'X with QT = XD a
QR decomposition: D (f, n) are fixed directions, T is upper triangular with a positive diagonal, H is a fixed orthogonal
matrix. Another orthogonal P in PX changes Q to PQ, so R depends on X'X alone, also where eigenvalues repeat; and every
row of R is a mix of all rows of X. What R tells, X'X tells: of a class with fewer samples than features that is every
row up to a rotation of all, and for one or two samples, or non-negative sparse features, often the rows themselves.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.fft import dct

from aircl.engine.backend import Array, NumpyBackend, backend_of
from aircl.engine.space import NOT_LEARNED, StoreError

# Rows that come in a trickle are put into this form in groups of so many: cheap, and no row stays as it came.
GROUP_ROWS = 16


@lru_cache(maxsize=64)
def _directions(n_features: int, n: int, dtype: np.dtype[Any], backend: NumpyBackend) -> tuple[Array, Array]:
    """Return D (f, n) and H (n, n), a cosine transform in float64.

    Each n has directions of its own: with some in common, a part of a factor would be nearly orthogonal to its own.
    """
    normal = np.random.default_rng(n).standard_normal((n, n_features), dtype=np.float32)
    D = np.ascontiguousarray(normal.T.astype(dtype))
    return backend.asarray(D), backend.asarray(dct(np.eye(n), axis=0, norm="ortho"))


def factor(X: Array) -> Array:
    """Return R with R'R = X'X that depends on X'X alone, and has no more rows than X has rank. Cost O(n^2 f)."""
    n, backend = len(X), backend_of(X)
    if n == 0:
        return X
    make = _directions if n <= GROUP_ROWS + 1 else _directions.__wrapped__
    D, H = make(X.shape[1], n, backend.dtype(X), backend)
    Q, diagonal = backend.qr(backend.double(X @ D))
    null = 8 * np.finfo(backend.dtype(X)).eps * n * float(backend.square(X).sum()) ** 0.5
    if float(diagonal.min()) <= null:
        # Directions that X does not have come out at rounding level, far below any that it has.
        R = backend.cast(Q.T, X.dtype) @ X
        kept = R[backend.square(R).sum(1) > null**2]
        if len(kept) < n:
            return factor(kept)
    mixed: Array = backend.cast(H @ Q.T, X.dtype) @ X
    return mixed


def grouped(X: Array) -> Array:
    """Return rows with the same X'X: groups of at most 16 rows, as even as possible, each by its factor. O(16 n f)."""
    n, f, backend = len(X), X.shape[1], backend_of(X)
    n_groups = -(-n // GROUP_ROWS)
    if n_groups <= 1:
        return factor(X)
    dtype = backend.dtype(X)
    XD, R = backend.double(X @ _directions(f, GROUP_ROWS, dtype, backend)[0]), backend.empty((n, f), dtype)
    for start, stop in pairwise(n * group // n_groups for group in range(n_groups + 1)):
        Q, _ = backend.qr(XD[start:stop, : stop - start])
        R[start:stop] = backend.cast(_directions(f, stop - start, dtype, backend)[1] @ Q.T, X.dtype) @ X[start:stop]
    return R


def without_rows(R: Array, X: Array) -> Array:
    """Return the factor of R'R - X'X.

    R <- (I - a'a)^(1/2) R with aR = X, evaluated in an orthonormal basis Q of the row space: with R = KQ and X = cQ it
    is the square root of K'K - c'c, so near-duplicate rows and a rank-deficient R'R do no harm. If R'R - X'X is not a
    sum of squares, beyond rounding, X was not learned: a StoreError.
    """
    backend, dtype = backend_of(R), backend_of(R).dtype(R)
    wide, X = backend.double(R), backend.double(X)
    Q = backend.qr(wide.T)[0].T  # (r, f)
    K, c = wide @ Q.T, X @ Q.T
    outside = float(backend.square(X - c @ Q).sum())
    eigenvalues, P = backend.eigh(K.T @ K - c.T @ c)
    trace = float(backend.square(wide).sum())
    slack = rounding_tolerance(dtype, len(R) + len(X), trace)
    if outside > slack or (len(eigenvalues) and eigenvalues[0] < -slack):
        raise StoreError(NOT_LEARNED)
    # Directions below the rounding of the difference are noise of what was removed.
    keep = eigenvalues > float(np.finfo(dtype).eps) * trace
    left = (eigenvalues[keep] ** 0.5)[:, None] * (P[:, keep].T @ Q)
    return factor(backend.cast(left, R.dtype))


def rounding_tolerance(dtype: np.dtype[Any], size: int, trace: float) -> float:
    """Return how far below zero rounding alone can push an eigenvalue of a difference of sums of squares.

    `trace` is that of what was summed, `size` the number of terms an error can pile up over.
    """
    return float(64 * np.finfo(dtype).eps * np.sqrt(max(size, 1)) * trace)
