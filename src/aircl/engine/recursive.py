"""The recursive form of ACIL: weights that are up to date after every batch, without a solve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import linalg

from aircl.engine.backend import NUMPY, Array, NumpyBackend, packed_size
from aircl.engine.batch import ClassRows
from aircl.engine.memory import OnDisk
from aircl.engine.statistics import Statistics, StoreError, checked, grown

# More rows at once would make the small systems larger than the products that they save.
ROWS = 256


class Recursive(Statistics):
    """R = (sum x'x + gamma I)^-1 and W, both updated by every batch (recursive least squares), in float64.

    For rows X with one-hot labels Y: R <- R - R X'(I + X R X')^-1 X R, then W <- W + R X'(Y - X W). The new R X' is
    R X'(I + X R X')^-1 of the old R, so nothing of size f is ever solved. Memory f^2 + C f numbers; a batch of B rows
    costs 3 B f^2.
    """

    name = "recursive"
    gamma = 1.0

    def __init__(
        self,
        n_features: int,
        dtype: np.dtype[Any],
        memory_limit: int | None = None,
        backend: NumpyBackend = NUMPY,
    ) -> None:
        super().__init__(n_features, dtype, memory_limit, backend)
        self.begin(self.gamma)
        # self._center holds W', one row a class.

    def begin(self, gamma: float) -> None:
        """Set the ridge, before anything is learned."""
        self._R = np.asfortranarray(np.eye(self.n_features) / gamma)  # lower triangle

    @property
    def count(self) -> Array:
        """n_y, shape (C,)."""
        return self._count[: self.n_classes]

    @property
    def W(self) -> Array:
        """The weights, shape (f, C)."""
        return self._center[: self.n_classes].T

    def update(self, X: Array, slots: Array, weight: Array | None = None) -> None:
        """Learn rows X (n, f) of the given classes."""
        self._count[: self.n_classes] += np.bincount(slots, weight, minlength=self.n_classes)
        for start in range(0, len(X), ROWS):
            part = slice(start, start + ROWS)
            self._learn(X[part].astype(np.float64), slots[part], None if weight is None else weight[part])

    def _learn(self, X: Array, slots: Array, weight: Array | None) -> None:
        Y = np.zeros((len(X), self.n_classes))
        Y[np.arange(len(X)), slots] = 1.0
        if weight is not None:
            root = np.sqrt(weight)[:, None]
            X, Y = X * root, Y * root
        RX = self.backend.symmetric_product(self._R, X.T)  # (f, B)
        L = linalg.cholesky(X @ RX + np.eye(len(X)), lower=True)
        Z = linalg.solve_triangular(L, RX.T, lower=True)  # Z'Z = R X'(I + X R X')^-1 X R
        self.backend.add_gram(self._R, Z, alpha=-1.0)
        gain = linalg.solve_triangular(L, Z, lower=True, trans="T")  # (B, f), X R of the new R
        W = self._center[: self.n_classes]
        W += (Y - X @ W.T).T @ gain

    def change_gamma(self, change: float) -> None:
        """Add `change` to the ridge, as if it had been so from the start: R and W in R's eigenbasis. Cost O(f^3)."""
        inverse, V = np.linalg.eigh(self.backend.symmetric(self._R))  # 1 / (lambda + gamma)
        ratio = 1.0 / (1.0 + change * inverse)
        self._R = np.asfortranarray((V * (inverse * ratio)) @ V.T)
        self._center = ((self._center @ V) * ratio) @ V.T

    def _absorb(self, batch: ClassRows) -> None:
        raise AssertionError("rows never wait")

    def check_merge(self, slots: Array) -> None:
        """Refuse: the statistics are gone."""
        raise StoreError("recursive ACIL keeps weights, not statistics, and cannot be merged. Use ACILClassifier.")

    def merge(self, other: Any, slots: Array) -> None:
        """Refuse, as `check_merge` does."""
        self.check_merge(slots)

    def subtract(self, X: Array, slots: Array, weight: Array | None) -> Array:
        """Refuse: the statistics are gone."""
        raise StoreError("recursive ACIL keeps weights, not statistics, and cannot forget. Use ACILClassifier.")

    def forget_classes(self, slots: Sequence[int]) -> None:
        """Refuse, as `subtract` does."""
        self.subtract(self._R, np.zeros(0), None)

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return super().nbytes + self._R.nbytes

    def arrays(self) -> dict[str, Array | OnDisk]:
        """Return everything that was learned as named NumPy arrays."""
        return super().arrays() | {"inverse": self.backend.pack(self._R)}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        super()._restore(arrays)
        packed = checked(arrays["inverse"], (packed_size(self.n_features),), np.dtype(np.float64))
        self._R = np.asfortranarray(self.backend.unpack(packed, self.n_features))
        self._center = grown(self._center.copy(), self.n_classes)
        self._count = self._count.copy()
