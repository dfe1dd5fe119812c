"""The `per-class` store (Algorithm 2): A_y of every class, exact for every stream and every weighting."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from aircl.engine.backend import NUMPY, Array, NumpyBackend, packed_size
from aircl.engine.batch import ClassRows, sort_by_class
from aircl.engine.gamma import Spectrum, own_losses
from aircl.engine.memory import DiskSpace, OnDisk, available_memory
from aircl.engine.moment import SecondMoment
from aircl.engine.probes import Probes
from aircl.engine.running import RunningGram
from aircl.engine.statistics import SecondMoments, StoreError, checked, rounding

# A factor that has been summed this often, with this many rows, is packed if the memory limit allows it.
OFTEN = 3
MANY_ROWS = 100


class PerClass(SecondMoments):
    """Counts, sums and one second moment A_y per class.

    A class with fewer than f/2 rows is held as a factor, a larger one as a packed symmetric matrix, so the memory is
    bounded by min(n f, C f^2 / 2) numbers, plus C f for the sums; where predictions between batches keep changing the
    weights, larger factors are packed earlier, while there is room. Beyond the memory limit they move to files;
    tensors have no limit.
    """

    name = "per-class"

    def __init__(
        self,
        n_features: int,
        dtype: np.dtype[Any],
        memory_limit: int | None = None,
        backend: NumpyBackend = NUMPY,
    ) -> None:
        super().__init__(n_features, dtype, memory_limit, backend)
        self._moments: list[SecondMoment] = []  # A_y by slot
        self._disk = DiskSpace()
        self._running: RunningGram | None = None
        self._limit = available_memory() // 2 if memory_limit is None else memory_limit
        if memory_limit is not None and memory_limit < self.workspace_bytes:
            raise ValueError(
                f"memory_limit is {memory_limit} bytes, but with {n_features} features of {self.dtype} batches and a "
                f"solve alone need {self.workspace_bytes}. Raise memory_limit or use fewer features."
            )

    def grow(self, n_classes: int) -> None:
        """Make room for classes up to slot n_classes - 1."""
        super().grow(n_classes)
        for _ in range(len(self._moments), n_classes):
            self._moments.append(SecondMoment(self.n_features, self.dtype, self.backend))

    def _absorb(self, batch: ClassRows) -> None:
        self._count[batch.slots] += batch.count
        self._center[self.backend.index(batch.slots)] += batch.sums
        if self._running is not None and not self._running.add(batch):
            self._running = None
        room = self._room()
        for slot, rows in batch:
            moment = self._moments[slot]
            room += moment.nbytes
            moment.add_rows(rows)
            room -= moment.nbytes
            if room < 0:
                room = self._make_room()

    # -- memory --
    @property
    def workspace_bytes(self) -> int:
        """Bytes that a batch, a solve and the choice of gamma take for a while, beside what is held."""
        batch = 3 * self._pending.capacity * self.n_features * self.dtype.itemsize
        solve = self.n_features**2 * (8 * self.dtype.itemsize + 16)
        return batch + solve

    def _room(self) -> int:
        """Return how many more bytes may be held within the memory limit."""
        if not self.backend.spills:
            return sys.maxsize
        return self._limit - self.workspace_bytes - (self.nbytes - self._pending.nbytes)

    def _make_room(self) -> int:
        """Move the largest second moments to files until a tenth of the limit is free; return the room there is."""
        room, wanted = self._room(), self._limit // 10
        for moment in sorted(self._moments, key=lambda moment: -moment.nbytes):
            if room >= wanted or moment.nbytes == 0:
                break
            room += moment.nbytes
            moment.spill(self._disk)
        return room

    def keep_below(self, limit: int) -> None:
        """Hold no more than this in memory from now on, where the caller has not set a limit of their own."""
        if self.memory_limit is None:
            self._limit = max(limit, 2 * self.workspace_bytes)

    def part(self, slots: Sequence[int]) -> PerClass:
        """Return the statistics of some classes alone. They are not copied: neither store may change afterwards."""
        self.seal()
        part = PerClass(self.n_features, self.dtype, self.memory_limit, self.backend)
        part._limit = self._limit
        part._count = self._count[list(slots)]
        part._center = self.backend.take(self._center, np.array(slots, dtype=np.intp))
        part._moments = [self._moments[slot] for slot in slots]
        part._disk = self._disk  # its files stay as long as one store needs them
        part.n_classes = len(slots)
        return part

    def seal(self) -> None:
        """Absorb what waits and make every factor a function of its A_y alone."""
        super().seal()
        self._running = None
        for moment in self._moments:
            moment.seal()

    # -- what a solution needs --
    def gram(self, pi: Array) -> Array:
        """Return sum_y pi_y A_y, shape (f, f), lower; only classes whose weight has changed are summed again.

        Cost O(f^2) a packed class, O(n_y f^2) a factor.
        """
        self.flush()
        running = self._running
        if running is None or not running.can_follow(pi, self.count):
            running = RunningGram(self.backend.lower_zeros(self.n_features, self.dtype))
        difference = running.follow(pi)
        self._pack_what_is_summed_often(difference)
        self._add_moments(running.G, difference)
        self._running = running
        return self.backend.copy(running.G)

    def _pack_what_is_summed_often(self, difference: Array) -> None:
        """Pack factors of many rows whose weight keeps changing, while there is room: f^2 adds against r f^2."""
        if not self.backend.spills:  # the room on another device is not known
            return
        size = packed_size(self.n_features) * self.dtype.itemsize
        room = self._room()
        for slot in np.flatnonzero(difference).tolist():
            moment = self._moments[slot]
            moment.times_summed += 1
            often = moment.times_summed > OFTEN and moment.n_rows > MANY_ROWS
            if often and not moment.is_packed and room + moment.nbytes > size:
                room += moment.nbytes - size
                moment.pack()

    def _add_moments(self, G: Array, pi: Array) -> None:
        """Add sum_y pi_y A_y to G; weights may be negative."""
        for sign in (1.0, -1.0):
            self._add_rows(G, [(w, m) for w, m in zip(pi, self._moments, strict=True) if w * sign > 0], sign)
        packed = [(weight, moment) for weight, moment in zip(pi.tolist(), self._moments, strict=True) if weight]
        packed = [(weight, moment) for weight, moment in packed if moment.is_packed]
        if not packed:
            return
        total = self.backend.zeros(packed_size(self.n_features), self.dtype)
        in_memory = [(weight, moment.without_late_rows) for weight, moment in packed]
        self.backend.packed_add(total, [(weight, P) for weight, P in in_memory if P is not None])
        for weight, moment in packed:
            if moment.is_on_disk:
                with moment.packed() as P:
                    self.backend.packed_add(total, [(weight, P)])
        G += self.backend.unpack(total, self.n_features)

    def _add_rows(self, G: Array, moments: list[tuple[float, SecondMoment]], sign: float) -> None:
        """Add what is held as rows through a workspace of few rows: one large product, not C small ones."""
        backend, size = self.backend, self._pending.capacity
        workspace = backend.empty((size, self.n_features), self.dtype)
        filled = 0
        for weight, moment in moments:
            root = float(np.sqrt(abs(weight)))
            for block in moment.blocks():
                for start in range(0, len(block), size):
                    part = block[start : start + size]
                    if filled + len(part) > size:
                        backend.add_gram(G, workspace[:filled], sign)
                        filled = 0
                    backend.multiply(part, root, out=workspace[filled : filled + len(part)])
                    filled += len(part)
        backend.add_gram(G, workspace[:filled], sign)

    def within(self, pi: Array) -> Array:
        """Return S_w = (sum_y A_y - n_y m_y'm_y) / n, shape (f, f), lower."""
        self.flush()
        S = self.backend.lower_zeros(self.n_features, self.dtype)
        self._add_moments(S, np.ones(self.n_classes))
        count, sums = self.count, self.sums
        self.backend.add_gram(S, sums / self.backend.column(np.sqrt(count), sums), alpha=-1.0)
        S /= float(count.sum())
        return S

    def moment(self, slot: int) -> tuple[Array | None, Array | None]:
        """Return A_y of one class as it is held: rows R (r, f) with R'R = A_y, or the matrix (f, f) in lower form."""
        self.flush()
        moment = self._moments[slot]
        if moment.is_packed:
            return None, moment.dense()
        return self.backend.concatenate(moment.blocks()), None

    def losses(self, spectrum: Spectrum, shrinkage: Array, within: Array) -> list[Array]:
        """Return estimates of every class's leave-one-out error, from a shared scatter and from its own A_y."""
        probes = Probes(spectrum, shrinkage)
        traces = [self.backend.stack(list(moment.traces(probes, slot))) for slot, moment in enumerate(self._moments)]
        own = own_losses(spectrum, shrinkage, self.backend.stack(traces))
        return [*super().losses(spectrum, shrinkage, within), own]

    def unlike(self, within: Array, pi: Array) -> float:
        """Return 0: `losses` has the scatter of every class."""
        return 0.0

    # -- algebra --
    def merge(self, other: Self, slots: Array) -> None:
        """Add the statistics of another store, class by class."""
        self.seal()
        other.seal()
        self.grow(int(slots.max()) + 1 if len(slots) else 0)
        self._count[slots] += other._count[: other.n_classes]
        self._center[self.backend.index(slots)] += other._center[: other.n_classes]
        room = self._room()
        for slot, theirs in zip(slots.tolist(), other._moments, strict=True):
            moment = self._moments[slot]
            room += moment.nbytes
            moment.add(theirs)
            moment.seal()
            room -= moment.nbytes
            if room < 0:
                room = self._make_room()

    def subtract(self, X: Array, slots: Array, weight: Array | None) -> Array:
        """Take learned rows out: projection for a factor, subtraction for a packed matrix. All or nothing."""
        self.seal()
        batch = sort_by_class(X, slots, weight)
        left, emptied = self.remaining_count(batch)
        touched = self.backend.index(batch.slots)
        sums = self._center[touched] - batch.sums
        changed = {slot: self._moments[slot].minus(rows) for slot, rows in batch}
        for slot in batch.slots[emptied].tolist():
            if changed[slot].trace > rounding(self.dtype, self.n_features, self._moments[slot].trace):
                raise StoreError(
                    "cannot forget these rows: they have the whole weight of their class but are not the rows it "
                    "was taught. Nothing was changed."
                )
        self._count[batch.slots] = left
        self._center[touched] = sums
        for slot, moment in changed.items():
            self._moments[slot] = moment
        self._running = None
        return batch.slots[emptied]

    def drop(self, slots: Sequence[int]) -> None:
        """Remove classes; the later slots move up."""
        super().drop(slots)
        self._running = None
        gone = set(slots)
        self._moments = [moment for slot, moment in enumerate(self._moments) if slot not in gone]

    # -- size and storage --
    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        running = 0 if self._running is None else self._running.G.nbytes
        return super().nbytes + sum(moment.nbytes for moment in self._moments) + running

    def arrays(self) -> dict[str, Array | OnDisk]:
        """Return everything that was learned as named NumPy arrays or files of them, sealed."""
        arrays = super().arrays()  # which seals
        for slot, moment in enumerate(self._moments):
            arrays[f"moment.{slot}"] = moment.stored()
        return arrays

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        super()._restore(arrays)
        for slot in range(self.n_classes):
            array = arrays[f"moment.{slot}"]
            shape = (len(array), self.n_features) if array.ndim == 2 else (packed_size(self.n_features),)
            moment = self.backend.asarray(checked(array, shape, self.dtype))
            self._moments.append(SecondMoment.of(moment, self.n_features))
            if self._room() < 0:
                self._make_room()

    def __getstate__(self) -> dict[str, Any]:
        """Leave the files behind: they belong to this process, and what is in them comes along."""
        return {**self.__dict__, "_disk": DiskSpace(), "_running": None}
