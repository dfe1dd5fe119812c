"""The `pooled` store (Algorithm 1): one matrix for all closed phases, exact when phases share no class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from aircl.engine.backend import NUMPY, Array, NumpyBackend, packed_size
from aircl.engine.gamma import Spectrum, doubt
from aircl.engine.memory import OnDisk
from aircl.engine.moment import SecondMoment
from aircl.engine.per_class import PerClass
from aircl.engine.statistics import SecondMoments, StoreError, checked


class Pooled(PerClass):
    """The open phase as `per-class`; the closed ones folded into sum_y pi_y A_y.

    Memory f^2 + C f numbers, plus the open phase. The weight of a closed class is fixed, so a class cannot return.
    """

    name = "pooled"

    def __init__(
        self,
        n_features: int,
        dtype: np.dtype[Any],
        memory_limit: int | None = None,
        backend: NumpyBackend = NUMPY,
    ) -> None:
        super().__init__(n_features, dtype, memory_limit, backend)
        self._folded = backend.lower_zeros(n_features, dtype)
        self._folded_pi = np.zeros(0)  # by slot; 0 while a class is open

    def grow(self, n_classes: int) -> None:
        """Make room for classes up to slot n_classes - 1."""
        super().grow(n_classes)
        if n_classes > len(self._folded_pi):
            self._folded_pi = np.append(self._folded_pi, np.zeros(n_classes - len(self._folded_pi)))

    def check_update(self, slots: Array) -> None:
        """Refuse classes of closed phases."""
        known = slots[slots < len(self._folded_pi)]
        if np.any(self._folded_pi[known] != 0):
            raise StoreError(
                "store='pooled' has folded a closed phase and cannot take more samples of its classes. "
                "Use store='per-class' (exact) or store='shared' (small) when classes return in later phases."
            )

    def end_phase(self, pi: Array) -> None:
        """Fold the open phase: sum_y pi_y A_y of its classes joins that of the closed ones."""
        is_open = self._folded_pi == 0
        if np.any(pi[is_open] == 0):
            raise StoreError("store='pooled' cannot fold a class of weight 0. Give every class a positive weight.")
        self._folded = self.gram(pi)
        self._pending.wipe()
        self._running = None
        self._folded_pi[is_open] = pi[is_open]
        self._moments = [SecondMoment(self.n_features, self.dtype, self.backend) for _ in self._moments]

    def gram(self, pi: Array) -> Array:
        """Return sum_y pi_y A_y, shape (f, f), lower; closed classes must have the weights they were folded with."""
        closed = self._folded_pi != 0
        if not np.allclose(pi[closed], self._folded_pi[closed], rtol=1e-9, atol=0.0):
            raise StoreError(
                "store='pooled' has folded closed phases with other class weights. Set weighting= back to what it "
                "was, or learn again from the start."
            )
        return super().gram(pi) + self._folded

    def within(self, pi: Array) -> Array:
        """Return the mean of the class covariances under the weights pi: all that the folded sum still tells.

        As in the other stores, it is over n, not n - C.
        """
        count, sums = self.count, self.sums
        free = np.maximum(count - 1.0, 0.0)
        degrees_of_freedom = float(pi @ free)
        if degrees_of_freedom == 0.0:  # one sample a class: no scatter
            return self.backend.lower_zeros(self.n_features, self.dtype)
        S = self.gram(pi)
        self.backend.add_gram(S, sums * self.backend.column(np.sqrt(pi / count), sums), alpha=-1.0)
        S *= float(free.sum() / count.sum()) / degrees_of_freedom
        return S

    def losses(self, spectrum: Spectrum, shrinkage: Array, within: Array) -> list[Array]:
        """Return the estimates from a shared scatter: the A_y of closed phases are gone."""
        return SecondMoments.losses(self, spectrum, shrinkage, within)

    def unlike(self, within: Array, pi: Array) -> float:
        """Return how little S_w, complete, tells of the scatter of a class; samples are in it by their weights."""
        return doubt(within, pi, self.count)

    def check_merge(self, slots: Array) -> None:
        """Refuse to merge classes that are here already."""
        if np.any(slots < self.n_classes):
            raise StoreError(
                "store='pooled' can only merge learners that share no class. "
                "Use store='per-class' or store='shared' to merge overlapping classes."
            )

    def merge(self, other: Self, slots: Array) -> None:
        """Add the statistics of another store that has none of the classes of this one."""
        super().merge(other, slots)
        self._folded = self._folded + other._folded
        self._folded_pi[slots] = other._folded_pi

    def subtract(self, X: Array, slots: Array, weight: Array | None) -> Array:
        """Refuse: what is folded cannot be told apart again."""
        raise StoreError("store='pooled' cannot forget. Use store='per-class' to forget rows or whole classes.")

    def forget_classes(self, slots: Sequence[int]) -> None:
        """Refuse: what is folded cannot be told apart again."""
        raise StoreError("store='pooled' cannot forget. Use store='per-class' to forget rows or whole classes.")

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return super().nbytes + self._folded.nbytes + self._folded_pi.nbytes

    def arrays(self) -> dict[str, Array | OnDisk]:
        """Return everything that was learned as named NumPy arrays, sealed."""
        folded = self.backend.to_numpy(self.backend.pack(self._folded))
        return super().arrays() | {"folded": folded, "folded_pi": self._folded_pi}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        super()._restore(arrays)
        folded = checked(arrays["folded"], (packed_size(self.n_features),), self.dtype)
        self._folded = self.backend.unpack(self.backend.asarray(folded), self.n_features)
        self._folded_pi = checked(arrays["folded_pi"], (self.n_classes,), np.dtype(np.float64))
