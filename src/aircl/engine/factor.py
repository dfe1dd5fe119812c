"""A second moment held as few rows: R (r, f) with R'R = A_y, for a class with fewer samples than features.

The rows are rotated, R = U'X with XX' = U L U', which is L^(1/2) V' of A_y: a function of A_y alone. A QR factor is
not, and can return raw rows when leading columns are zero, as after a ReLU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.fft import dct

from aircl.engine.backend import Array
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
    eigenvalues, U = np.linalg.eigh((X @ X.T).astype(np.float64))
    R = U[:, ::-1].T.astype(X.dtype) @ X
    norms = np.linalg.norm(R, axis=1)
    # Null directions come out at rounding level, far below any direction that the data has.
    null = 8 * np.finfo(X.dtype).eps * np.sqrt(max(eigenvalues[-1], 0.0) * len(X))
    R = R[norms > null]
    largest = np.take_along_axis(R, np.argmax(np.abs(R), axis=1, keepdims=True), axis=1)
    R *= np.where(largest < 0, -1, 1).astype(R.dtype)
    return np.ascontiguousarray(dct(R, axis=0, norm="ortho", overwrite_x=True)) if len(R) else R


def mix(X: Array) -> Array:
    """Return as many rows with the same X'X, none of them a row of X: `rotate` without what makes it canonical."""
    _, U = np.linalg.eigh((X @ X.T).astype(np.float64))
    return dct(U.T, axis=0, norm="ortho").astype(X.dtype) @ X if len(X) > 1 else X.copy()


class Factor:
    """Rows R with R'R = A_y, kept in blocks, each mixed when it came; `seal` makes them one.

    Parameters
    ----------
    n_features : int
    dtype : dtype
    """

    def __init__(self, n_features: int, dtype: np.dtype[Any]) -> None:
        self.blocks: list[Array] = []
        self._empty = np.zeros((0, n_features), dtype=dtype)
        self._sealed = True

    @classmethod
    def of(cls, R: Array) -> Factor:
        """Wrap a sealed factor."""
        factor = cls(R.shape[1], R.dtype)
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
                self.blocks.append(last[:-TAIL].copy())
                last = last[-TAIL:]
            X = np.concatenate([last, X])
        n_blocks = max(1, len(X) // TAIL)
        self.blocks += [mix(part) for part in np.array_split(X, n_blocks)]
        self._sealed = False

    def seal(self) -> None:
        """Make the factor a function of A_y alone."""
        if not self._sealed:
            self.blocks = [rotate(self.rows())]
            self._sealed = True

    def rows(self) -> Array:
        """Return R, shape (r, f)."""
        return np.concatenate(self.blocks) if self.blocks else self._empty

    def subtract(self, X: Array) -> Factor:
        """Return the factor of A_y - X'X.

        R <- (I - a'a)^(1/2) R with aR = X, evaluated in an orthonormal basis Q of the row space: with R = KQ and
        X = cQ it is the square root of K'K - c'c, so near-duplicate rows and a rank-deficient A_y do no harm.

        Raises
        ------
        StoreError
            If A_y - X'X is not a sum of squares, beyond rounding: X was not learned.
        """
        R = self.rows().astype(np.float64)
        X = X.astype(np.float64)
        Q = np.linalg.qr(R.T)[0].T  # (r, f)
        K, c = R @ Q.T, X @ Q.T
        outside = float(np.square(X - c @ Q).sum())
        eigenvalues, P = np.linalg.eigh(K.T @ K - c.T @ c)
        slack = rounding(self._empty.dtype, len(R) + len(X), float(np.square(R).sum()))
        if outside > slack or (len(eigenvalues) and eigenvalues[0] < -slack):
            raise StoreError(
                "cannot forget these rows: what would be left is not a sum of squares, so they were not all learned "
                "with this class (or not in this form). Nothing was changed."
            )
        # Directions below the rounding of the difference are noise of what was removed.
        keep = eigenvalues > np.finfo(self._empty.dtype).eps * max(float(np.square(R).sum()), 0.0)
        left = np.sqrt(eigenvalues[keep])[:, None] * (P[:, keep].T @ Q)
        return Factor.of(rotate(left.astype(self._empty.dtype)))
