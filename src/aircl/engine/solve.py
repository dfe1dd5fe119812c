"""The closed-form ridge solution W = (G + gamma I)^-1 B, and what a solution is to those who predict with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from aircl.engine.backend import Array, backend_of


class SingularError(ValueError):
    """The normal equations have no unique solution."""


def solve_ridge(G: Array, B: Array, gamma: float) -> Array:
    """Solve (G + gamma I) W = B by Cholesky factorisation, in float64 whatever the statistics' dtype.

    Parameters
    ----------
    G : array of shape (f, f)
        The weighted sum of second moments, lower triangle. It is not changed.
    B : array of shape (f, C)
        The weighted class sums, one column per class.
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
    return RidgeFactor(G, gamma).solve(B)


class RidgeFactor:
    """G + gamma I, factorised once, as `solve_ridge` needs it."""

    def __init__(self, G: Array, gamma: float) -> None:
        backend = self._backend = backend_of(G)
        self._L = backend.cholesky(G, gamma)
        if gamma == 0.0:
            rcond = 0.0 if self._L is None else backend.reciprocal_condition(G, self._L)
            if rcond < len(G) * np.finfo(backend.dtype(G)).eps:
                raise SingularError(
                    f"gamma=0 needs second moments of full rank, but those of the {len(G)} features are singular "
                    f"(reciprocal condition number {rcond:.1e}). Use gamma > 0 or gamma='auto'."
                )
        if self._L is None:
            eigenvalues, self._V = backend.eigh(backend.symmetric(backend.double(G)))
            self._shrinkage = 1.0 / (eigenvalues.clip(min=0.0) + gamma)[:, None]

    def solve(self, B: Array) -> Array:
        """Return (G + gamma I)^-1 B for B (f, k), float64. Cost O(f^2 k)."""
        if self._L is not None:
            return self._backend.cholesky_solve(self._L, B)
        W: Array = self._V @ ((self._V.T @ B) * self._shrinkage)
        return W

    def inverse(self) -> Array:
        """Return (G + gamma I)^-1, shape (f, f), lower, float64. Cost O(2 f^3 / 3)."""
        if self._L is not None:
            return self._backend.cholesky_inverse(self._L)
        K: Array = self._V @ (self._shrinkage * self._V.T)
        return K


class Solution:
    """What a rule made of a state.

    Examples
    --------
    A solution that scores by the counts of the classes, whatever the features are:

    >>> import numpy as np
    >>> from aircl.engine import Solution
    >>> class Counts(Solution):
    ...     def __init__(self, count):
    ...         self.count = count
    ...     def scorer(self, order):
    ...         return lambda X: np.tile(self.count[order], (len(X), 1))
    >>> score = Counts(np.array([5.0, 2.0, 9.0])).scorer(np.array([2, 0, 1]))
    >>> score(np.zeros((2, 4))).tolist()
    [[9.0, 5.0, 2.0], [9.0, 5.0, 2.0]]
    """

    def scorer(self, order: Array) -> Callable[[Array], Array]:
        """Return the function from features (n, f) to scores (n, C) of the classes, in this order of their slots."""
        raise NotImplementedError

    @property
    def is_released(self) -> bool:
        """Whether it has let go what a prediction may still need."""
        return False

    def released(self) -> Self:
        """Return the same without what it holds of the state, which is one to predict with still."""
        return self


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearSolution(Solution):
    """Weights for one state of the statistics.

    Attributes
    ----------
    W : array of shape (f, C)
    b : array of shape (C,) or None
        Intercepts.
    gamma : float or None
        The ridge, where there is one.
    """

    W: Array
    b: Array | None = None
    gamma: float | None = None

    @property
    def coef(self) -> Array:
        """W transposed, shape (C, f)."""
        return self.W.T

    def scorer(self, order: Array) -> Callable[[Array], Array]:
        """Return the function from features (n, f) to scores XW + b (n, C), with the classes in this order."""
        W, b = self.W[:, order], None if self.b is None else self.b[order]
        return lambda X: X @ W if b is None else X @ W + b
