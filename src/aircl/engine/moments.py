"""The second moments of all classes: sums of them, and which of them are in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from aircl.engine.backend import Array, packed_size
from aircl.engine.batch import ClassRows
from aircl.engine.memory import OnDisk, opened
from aircl.engine.moment import SecondMoment
from aircl.engine.space import Space

# After so many sums, a factor of so many rows is packed if there is room: f^2 / 2 additions a sum against r f^2.
PACK_AFTER_SUMS = 3
MANY_ROWS = 100
# Bytes of new matrices that are made before the old ones are let go.
STEP_BYTES = 512 * 2**20

Change = Callable[[SecondMoment], SecondMoment]


@dataclass(frozen=True, eq=False)
class Moments:
    """A_y of every class, by slot, as a value; beyond the room there is, the largest are in files.

    Attributes
    ----------
    space : Space
    held : tuple of SecondMoment
    n_sums : int
        How often they were summed since they were packed for it.
    """

    space: Space
    held: tuple[SecondMoment, ...] = ()
    n_sums: int = 0

    @cached_property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return sum(moment.nbytes for moment in self.held)

    def changed(self, changes: Iterable[tuple[int, Change]], reserve: int = 0) -> Moments:
        """Return the same with some moments changed, of new slots too; `reserve` bytes of room are taken already.

        Changes are made one at a time, each to what the moment is by then, as what is over the room goes to files.
        """
        held, nbytes, room = list(self.held), self.nbytes, self.space.room - reserve
        for slot, change in changes:
            held.extend(SecondMoment(self.space) for _ in range(len(held), slot + 1))
            nbytes -= held[slot].nbytes
            held[slot] = change(held[slot])
            nbytes += held[slot].nbytes
            if nbytes > room:
                for largest in sorted(range(len(held)), key=lambda slot: -held[slot].nbytes):
                    if nbytes <= 0.9 * room or held[largest].nbytes == 0:
                        break
                    nbytes -= held[largest].nbytes
                    held[largest] = held[largest].spilled()
                    nbytes += held[largest].nbytes
        return replace(self, held=tuple(held))

    def taken(self, slots: Array) -> Moments:
        """Return those of some classes, in this order; -1 stands for an empty one."""
        empty = SecondMoment(self.space)
        return replace(self, held=tuple(empty if slot < 0 else self.held[slot] for slot in slots.tolist()))

    def plus(self, batch: ClassRows, reserve: int = 0) -> Moments:
        """Return the moments with rows added."""
        return self.changed(((slot, partial(SecondMoment.plus, X=rows)) for slot, rows in batch), reserve)

    def first_step(self, batch: ClassRows) -> int:
        """Return how many classes of a batch to add at once, so that old and new matrices fit into memory together."""
        matrix = packed_size(self.space.n_features) * self.space.dtype.itemsize
        packed = [slot < len(self.held) and self.held[slot].packed is not None for slot in batch.slots.tolist()]
        few = 2 * (batch.stop - batch.start) < self.space.n_features
        size = np.cumsum(np.where(np.array(packed) | ~few, matrix, 0))
        return max(1, int(np.searchsorted(size, STEP_BYTES, side="right")))

    def sealed(self, reserve: int = 0) -> Moments:
        """Return the same as a function of the A_y alone."""
        waiting = [slot for slot, moment in enumerate(self.held) if not moment.is_sealed]
        return self.changed(((slot, SecondMoment.sealed) for slot in waiting), reserve) if waiting else self

    # -- sums --
    def summed(self, pi: Array) -> Array:
        """Return sum_y pi_y A_y, shape (f, f), lower. Cost O(f^2) a packed class, O(n_y f^2) a factor."""
        backend, f = self.space.backend, self.space.n_features
        terms = [(weight, moment) for weight, moment in zip(pi.tolist(), self.held, strict=True) if weight]
        G = self._summed_rows(terms)
        packed = [(weight, moment.packed) for weight, moment in terms if moment.packed is not None]
        if packed:
            total = backend.zeros(packed_size(f), self.space.dtype)
            backend.packed_add(total, [(weight, P) for weight, P in packed if not isinstance(P, OnDisk)])
            for weight, P in packed:
                if isinstance(P, OnDisk):
                    with opened(P) as matrix:
                        backend.packed_add(total, [(weight, matrix)])
            G += backend.unpack(total, f)
        return G

    def _summed_rows(self, terms: list[tuple[float, SecondMoment]]) -> Array:
        """Sum what is held as rows through a workspace of few rows: one large product, not C small ones."""
        space, size, filled = self.space, self.space.waiting_rows, 0
        G = space.backend.lower_zeros(space.n_features, space.dtype)
        workspace = space.backend.empty((size, space.n_features), space.dtype)
        for weight, moment in terms:
            root = float(np.sqrt(weight))
            for block in moment.blocks():
                for start in range(0, len(block), size):
                    part = block[start : start + size]
                    if filled + len(part) > size:
                        space.backend.add_gram(G, workspace[:filled])
                        filled = 0
                    workspace[filled : filled + len(part)] = part
                    workspace[filled : filled + len(part)] *= root
                    filled += len(part)
        space.backend.add_gram(G, workspace[:filled])
        return G

    def packed_for_sums(self) -> Moments:
        """Return the same after one more sum: larger factors are packed if sums are frequent and there is room."""
        if self.n_sums < PACK_AFTER_SUMS or not self.space.backend.spills:  # the room on another device is not known
            return replace(self, n_sums=self.n_sums + 1)
        size, nbytes, changes = packed_size(self.space.n_features) * self.space.dtype.itemsize, self.nbytes, []
        for slot, moment in enumerate(self.held):
            if moment.packed is None and moment.n_rows > MANY_ROWS and nbytes + size - moment.nbytes < self.space.room:
                nbytes += size - moment.nbytes
                changes.append(slot)
                if len(changes) * size > STEP_BYTES:  # the others at the next sum
                    break
        return self.changed((slot, SecondMoment.with_packed_rows) for slot in changes)
