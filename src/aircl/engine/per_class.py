"""The `per-class` store (Algorithm 2): A_y of every class, exact for every stream and every weighting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from aircl.engine import backend
from aircl.engine.backend import Array
from aircl.engine.factor import Factor
from aircl.engine.statistics import PENDING_ROWS, ClassRows, Statistics, StoreError, rounding, sort_by_class


class PerClass(Statistics):
    """Counts, sums and one second moment A_y per class.

    A class with fewer than f/2 rows is held as a `Factor`, a larger one as a packed symmetric matrix, so the
    memory is bounded by min(n f, C f^2 / 2) numbers, plus C f for the sums.
    """

    name = "per-class"

    def __init__(self, n_features: int, dtype: np.dtype[Any]) -> None:
        super().__init__(n_features, dtype)
        # A_y by slot: a Factor, or a packed array.
        self._moments: list[Factor | Array] = []

    def grow(self, n_classes: int) -> None:
        """Make room for classes up to slot n_classes - 1."""
        super().grow(n_classes)
        for _ in range(len(self._moments), n_classes):
            self._moments.append(Factor(self.n_features, self.dtype))

    def _absorb(self, batch: ClassRows) -> None:
        self._count[batch.slots] += batch.count
        self._center[batch.slots] += batch.sums
        for slot, rows in batch:
            self._add_rows(slot, rows)

    def _add_rows(self, slot: int, rows: Array) -> None:
        """A_y += rows' rows, in the form that is smaller."""
        moment = self._moments[slot]
        if isinstance(moment, Factor):
            if 2 * (len(moment) + len(rows)) < self.n_features:
                moment.append(rows)
                return
            moment = self._moments[slot] = self._packed(moment)
        backend.packed_add_gram(moment, rows, self.n_features)

    def _packed(self, moment: Factor | Array) -> Array:
        if not isinstance(moment, Factor):
            return moment
        P = np.zeros(backend.packed_size(self.n_features), dtype=self.dtype)
        for block in moment.blocks:
            backend.packed_add_gram(P, block, self.n_features)
        return P

    def seal(self) -> None:
        """Absorb what waits and make every factor a function of its A_y alone."""
        self.flush()
        for moment in self._moments:
            if isinstance(moment, Factor):
                moment.seal()

    def gram(self, pi: Array) -> Array:
        """Return sum_y pi_y A_y, shape (f, f), lower. Cost O(f^2) a packed class, O(n_y f^2) a factor."""
        self.flush()
        G = self._gram_of_factors(pi)
        packed = None
        for weight, moment in zip(pi.tolist(), self._moments, strict=True):
            if not isinstance(moment, Factor):
                if packed is None:
                    packed = np.zeros_like(moment)
                backend.packed_axpy(packed, moment, weight)
        if packed is not None:
            G += backend.unpack(packed, self.n_features)
        return G

    def _gram_of_factors(self, pi: Array) -> Array:
        """Sum the factors' part through a workspace of few rows, so that it is one large product, not C small ones."""
        G = backend.lower_zeros(self.n_features, self.dtype)
        workspace = np.empty((PENDING_ROWS, self.n_features), dtype=self.dtype)
        filled = 0
        for weight, moment in zip(pi.tolist(), self._moments, strict=True):
            if not isinstance(moment, Factor):
                continue
            for block in moment.blocks:
                for start in range(0, len(block), PENDING_ROWS):
                    part = block[start : start + PENDING_ROWS]
                    if filled + len(part) > PENDING_ROWS:
                        backend.add_gram(G, workspace[:filled])
                        filled = 0
                    np.multiply(part, self.dtype.type(np.sqrt(weight)), out=workspace[filled : filled + len(part)])
                    filled += len(part)
        backend.add_gram(G, workspace[:filled])
        return G

    def within(self, pi: Array) -> Array:
        """Return S_w = (sum_y A_y - n_y m_y'm_y) / n, shape (f, f), lower."""
        S = self.gram(np.ones(self.n_classes))
        count = self.count
        backend.add_gram(S, self.sums / np.sqrt(count)[:, None], alpha=-1.0)
        S /= self.dtype.type(count.sum())
        return S

    def merge(self, other: Self, slots: Array) -> None:
        """Add the statistics of another store, class by class."""
        self.flush()
        other.seal()
        self.grow(int(slots.max()) + 1 if len(slots) else 0)
        self._count[slots] += other._count[: other.n_classes]
        self._center[slots] += other._center[: other.n_classes]
        for slot, moment in zip(slots.tolist(), other._moments, strict=True):
            if isinstance(moment, Factor):
                self._add_rows(slot, moment.rows())
            else:
                P = self._moments[slot] = self._packed(self._moments[slot])
                backend.packed_axpy(P, moment)
        self.seal()

    def subtract(self, X: Array, slots: Array, weight: Array | None) -> Array:
        """Take learned rows out: projection for a factor, subtraction for a packed matrix. All or nothing."""
        self.seal()
        batch = sort_by_class(X, slots, weight)
        left, emptied = self.remaining_count(batch)
        sums = self._center[batch.slots] - batch.sums
        changed: dict[int, Factor | Array] = {}
        for slot, rows in batch:
            moment = self._moments[slot]
            changed[slot] = moment.subtract(rows) if isinstance(moment, Factor) else self._subtract_packed(moment, rows)
        for slot in batch.slots[emptied].tolist():
            before, after = (_energy(m, self.n_features) for m in (self._moments[slot], changed[slot]))
            if after > rounding(self.dtype, self.n_features, before):
                raise StoreError(
                    "cannot forget these rows: they have the whole weight of their class but are not the rows it "
                    "was taught. Nothing was changed."
                )
        self._count[batch.slots] = left
        self._center[batch.slots] = sums
        for slot, moment in changed.items():
            self._moments[slot] = moment
        return batch.slots[emptied]

    def _subtract_packed(self, P: Array, rows: Array) -> Array:
        P = P.copy()
        energy = _energy(P, self.n_features)
        backend.packed_add_gram(P, rows, self.n_features, alpha=-1.0)
        A = backend.unpack(P, self.n_features)
        if not backend.is_positive(A, rounding(self.dtype, self.n_features, energy)):
            raise StoreError(
                "cannot forget these rows: what would be left is not a sum of squares, so they were not all learned "
                "with this class. Nothing was changed."
            )
        return P

    def drop(self, slots: Sequence[int]) -> None:
        """Remove classes; the later slots move up."""
        super().drop(slots)
        gone = set(slots)
        self._moments = [moment for slot, moment in enumerate(self._moments) if slot not in gone]

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return super().nbytes + sum(moment.nbytes for moment in self._moments)

    def arrays(self) -> dict[str, Array]:
        """Return everything that was learned as named arrays, sealed."""
        arrays = super().arrays()
        for slot, moment in enumerate(self._moments):
            if isinstance(moment, Factor):
                arrays[f"factor.{slot}"] = moment.rows()
            else:
                arrays[f"packed.{slot}"] = moment
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array], n_features: int, dtype: np.dtype[Any]) -> Self:
        """Build a store from what `arrays` returned."""
        store = super().from_arrays(arrays, n_features, dtype)
        for slot in range(store.n_classes):
            if (P := arrays.get(f"packed.{slot}")) is not None:
                store._moments.append(np.array(P))
            else:
                store._moments.append(Factor.of(np.array(arrays[f"factor.{slot}"])))
        return store


def _energy(moment: Factor | Array, n_features: int) -> float:
    """Return the trace of A_y."""
    if isinstance(moment, Factor):
        return float(sum(np.square(block, dtype=np.float64).sum() for block in moment.blocks))
    return float(np.trace(backend.unpack(moment, n_features), dtype=np.float64))
