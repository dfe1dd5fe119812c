"""The recursive form of ACIL: weights that are up to date after every batch, without a solve."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from scipy import linalg

from aircl.engine.backend import NUMPY, Array
from aircl.engine.batch import ClassRows
from aircl.engine.space import Space
from aircl.engine.statistics import Statistics, Stored, Symmetric, Table, held

# More rows at once would make the small systems larger than the products that they save.
ROWS = 256


@dataclass(frozen=True)
class Inverse(Symmetric):
    """A symmetric matrix in float64, whatever the dtype of the rows is."""

    def empty(self, space: Space) -> Array:
        """Return the unit matrix: that of gamma = 1."""
        return np.asfortranarray(np.eye(space.n_features))

    def restored(self, arrays: Mapping[str, Array], space: Space, n_classes: int) -> Array:
        """Return it unpacked."""
        return super().restored(arrays, dataclasses.replace(space, dtype=np.dtype(np.float64)), n_classes)


@dataclass(frozen=True, eq=False)
class Recursive(Statistics):
    """R = (sum x'x + gamma I)^-1 and W, both updated by every batch (recursive least squares), in float64.

    For rows X with one-hot labels Y: R <- R - R X'(I + X R X')^-1 X R, then W <- W + R X'(Y - X W). The new R X' is
    R X'(I + X R X')^-1 of the old R, so nothing of size f is ever solved. Memory f^2 + C f numbers; a batch of B rows
    costs 3 B f^2.

    Attributes
    ----------
    weights : array of shape (C, f)
        W transposed.
    inverse : array of shape (f, f)
        R, lower.
    gamma : float
        The ridge in them.
    """

    name: ClassVar[str] = "recursive"
    cannot_forget = "recursive ACIL keeps weights, not statistics, and cannot forget. Use ACILClassifier."
    cannot_merge = "recursive ACIL keeps weights, not statistics, and cannot be merged. Use ACILClassifier."

    weights: Array = held(Table("center"))
    inverse: Array = held(Inverse("inverse"))
    gamma: float = field(default=1.0, kw_only=True)

    @classmethod
    def beginning(cls, space: Space, gamma: float) -> Recursive:
        """Return the recursion before its first row."""
        inverse = np.asfortranarray(np.eye(space.n_features) / gamma)
        return dataclasses.replace(cls.empty(space), inverse=inverse, gamma=gamma)

    def plus(self, batch: ClassRows, reserve: int = 0) -> Self:
        """Return the weights after some more rows."""
        count, W, R = self.count.copy(), self.weights.copy(), self.inverse.copy(order="F")
        count[batch.slots] += batch.count
        slots = np.repeat(batch.slots, batch.stop - batch.start)
        for start in range(0, len(slots), ROWS):
            part = slice(start, start + ROWS)
            root = None if batch.root_weight is None else batch.root_weight[part]
            _learn(R, W, batch.rows[part].astype(np.float64), slots[part], root)
        return dataclasses.replace(self, count=count, weights=W, inverse=R)

    def with_gamma(self, gamma: float) -> Recursive:
        """Return the weights as if the ridge had been so from the start: R and W in R's eigenbasis. Cost O(f^3)."""
        if gamma == self.gamma:
            return self
        inverse, V = np.linalg.eigh(NUMPY.symmetric(self.inverse))  # 1 / (lambda + gamma)
        ratio = 1.0 / (1.0 + (gamma - self.gamma) * inverse)
        R = np.asfortranarray((V * (inverse * ratio)) @ V.T)
        return dataclasses.replace(self, inverse=R, weights=((self.weights @ V) * ratio) @ V.T, gamma=gamma)

    def arrays(self) -> dict[str, Stored]:
        """Return everything that was learned as named NumPy arrays."""
        return super().arrays() | {"gamma": np.array([self.gamma])}

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], space: Space) -> Self:
        """Return what `arrays` returned the arrays of; a gamma of 0 means that they do not have it."""
        gamma = float(arrays["gamma"][0]) if "gamma" in arrays else 0.0
        return dataclasses.replace(super().restored(arrays, space), gamma=gamma)


def _learn(R: Array, W: Array, X: Array, slots: Array, root: Array | None) -> None:
    """Update R (f, f) and W (C, f), which nobody else holds, by rows that are scaled by `root`."""
    Y = np.zeros((len(X), len(W)))
    Y[np.arange(len(X)), slots] = 1.0 if root is None else root
    RX = NUMPY.symmetric_product(R, X.T)  # (f, B)
    L = linalg.cholesky(X @ RX + np.eye(len(X)), lower=True)
    Z = linalg.solve_triangular(L, RX.T, lower=True)  # Z'Z = R X'(I + X R X')^-1 X R
    NUMPY.add_gram(R, Z, alpha=-1.0)
    gain = linalg.solve_triangular(L, Z, lower=True, trans="T")  # (B, f), X R of the new R
    W += (Y - X @ W.T).T @ gain
