"""A second moment held as few rows: R (r, f) with R'R = A_y, for a class with fewer samples than features.

The rows are rotated, R = U'X with XX' = U L U', which is L^(1/2) V' of A_y: a function of A_y alone. A QR factor is
not, and can return raw rows when leading columns are zero, as after a ReLU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aircl.engine.backend import NUMPY, Array, NumpyBackend, backend_of
from aircl.engine.statistics import StoreError, rounding

# Rows that come in a trickle are mixed together with this many earlier ones: enough to mix, few enough to be cheap.
TAIL = 16


def rotate(X: Array) -> Array:
    """Return R with R'R = X'X that depends on X'X alone, and has no more rows than X has rank.

    Cost O(r^2 f + r^3). Orthogonal rows are eigenvectors themselves (common in sparse data), so a fixed orthogonal
    mix, a cosine transform across the rows, follows: no row of R is a row of X.
    """
    if len(X) == 0:
        return X
    backend = backend_of(X)
    eigenvalues, U = backend.eigh(backend.double(X @ X.T))
    R = backend.cast(backend.reverse(U.T), X.dtype) @ X
    # Null directions come out at rounding level, far below any direction that the data has.
    null = 8 * np.finfo(backend.dtype(X)).eps * np.sqrt(max(float(eigenvalues[-1]), 0.0) * len(X))
    R = R[backend.square(R).sum(1) > null**2]
    backend.fix_signs(R)
    return backend.cosine_mix(R) if len(R) else R


def mix(X: Array) -> Array:
    """Return as many rows with the same X'X, none of them a row of X. Cost O(r^2 f).

    A rotation that the rows decide themselves: the reflection at v = XX'1, and a cosine transform, which mixes rows
    that the reflection leaves alone. Cheaper than `rotate`, but not a function of X'X alone.
    """
    backend = backend_of(X)
    if len(X) < 2:
        return backend.copy(X)
    v = backend.double(X @ X.sum(0))
    norm = float(v @ v) or 1.0
    reflection = backend.asarray(np.eye(len(X))) - (2.0 / norm) * v[:, None] * v
    return backend.cast(backend.cosine_mix(reflection), X.dtype) @ X


class Factor:
    """Rows R with R'R = A_y, kept in blocks, each mixed when it came; `seal` makes them one.

    Parameters
    ----------
    n_features : int
    dtype : dtype
    backend : backend of the rows
    """

    def __init__(self, n_features: int, dtype: np.dtype[Any], backend: NumpyBackend = NUMPY) -> None:
        self.blocks: list[Array] = []
        self._dtype = dtype
        self._backend = backend
        self._empty = backend.zeros((0, n_features), dtype)
        self._sealed = True

    @classmethod
    def of(cls, R: Array) -> Factor:
        """Wrap a sealed factor."""
        backend = backend_of(R)
        factor = cls(R.shape[1], backend.dtype(R), backend)
        factor.blocks = [R]
        return factor

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self.blocks))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(block.nbytes for block in self.blocks)

    def append(self, X: Array) -> None:
        """A_y += X'X. No row of X is kept, unless it is all there is."""
        if self.blocks and len(X) < TAIL:
            last = self.blocks.pop()
            if len(last) > 2 * TAIL:
                self.blocks.append(self._backend.copy(last[:-TAIL]))
                last = last[-TAIL:]
            X = self._backend.concatenate([last, X])
        n_blocks = max(1, len(X) // TAIL)
        self.blocks += [mix(part) for part in self._backend.split(X, n_blocks)]
        self._sealed = False

    def seal(self) -> None:
        """Make the factor a function of A_y alone."""
        if not self._sealed:
            self.blocks = [rotate(self.rows())]
            self._sealed = True

    def rows(self) -> Array:
        """Return R, shape (r, f)."""
        return self._backend.concatenate(self.blocks) if self.blocks else self._empty

    def subtract(self, X: Array) -> Factor:
        """Return the factor of A_y - X'X.

        R <- (I - a'a)^(1/2) R with aR = X, evaluated in an orthonormal basis Q of the row space: with R = KQ and
        X = cQ it is the square root of K'K - c'c, so near-duplicate rows and a rank-deficient A_y do no harm.

        Raises
        ------
        StoreError
            If A_y - X'X is not a sum of squares, beyond rounding: X was not learned.
        """
        backend = self._backend
        R, X = backend.double(self.rows()), backend.double(X)
        Q = backend.orthonormal(R.T).T  # (r, f)
        K, c = R @ Q.T, X @ Q.T
        outside = float(backend.square(X - c @ Q).sum())
        eigenvalues, P = backend.eigh(K.T @ K - c.T @ c)
        energy = float(backend.square(R).sum())
        slack = rounding(self._dtype, len(R) + len(X), energy)
        if outside > slack or (len(eigenvalues) and eigenvalues[0] < -slack):
            raise StoreError(
                "cannot forget these rows: what would be left is not a sum of squares, so they were not all learned "
                "with this class (or not in this form). Nothing was changed."
            )
        # Directions below the rounding of the difference are noise of what was removed.
        keep = eigenvalues > float(np.finfo(self._dtype).eps) * energy
        left = (eigenvalues[keep] ** 0.5)[:, None] * (P[:, keep].T @ Q)
        return Factor.of(rotate(backend.cast(left, self._dtype)))
