"""Second moments A_y as values: that of one class in its smallest exact form, and those of all classes.

One is few rows, a packed matrix, or a file of either. Of all, those that there is no room for are in files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from aircl.engine.backend import Array, packed_size
from aircl.engine.batch import ClassRows
from aircl.engine.factor import GROUP_ROWS, factor, grouped, rounding_tolerance, without_rows
from aircl.engine.memory import OnDisk, Stored, opened
from aircl.engine.space import NOT_LEARNED, Space, StoreError

# Rows that come after a matrix was packed stay rows until there are so many: adding them to the matrix costs a pass
# over all of it, however few they are, while a sum over classes takes the rows of many classes in one product. To a
# matrix in a file, which is written again, more of them: a share of the features.
LATE_ROWS, LATE_SHARE_ON_DISK = 96, 1 / 8
# After so many sums, a factor of so many rows is packed if there is room: f^2 / 2 additions a sum against r f^2.
PACK_AFTER_SUMS = 3
MANY_ROWS = 100
# Bytes of new matrices that are made before the old ones are let go.
STEP_BYTES = 512 * 2**20


@dataclass(frozen=True, eq=False)
class SecondMoment:
    """A_y = P + sum of R'R over blocks of rows R: no P while there are fewer than f/2 rows, few rows beyond.

    A value: what changes it returns another one, which shares what is the same.
    """

    space: Space
    rows: tuple[Stored, ...] = ()  # blocks of shape (r, f)
    packed: Stored | None = None  # of shape (f (f + 1) / 2,)
    is_sealed: bool = True  # whether what is held is a function of A_y alone

    @property
    def n_rows(self) -> int:
        """The number of rows that are held beside a packed matrix, or in place of one."""
        return sum(block.shape[0] for block in self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        held = self.rows if self.packed is None else (*self.rows, self.packed)
        return sum(array.nbytes for array in held if not isinstance(array, OnDisk))

    @property
    def trace(self) -> float:
        """The trace of A_y."""
        backend = self.space.backend
        return float(backend.square(self.all_rows()).sum()) if self.packed is None else backend.trace(self.dense())

    def blocks(self) -> list[Array]:
        """Return the rows, in blocks, in memory."""
        return [block.read() if isinstance(block, OnDisk) else block for block in self.rows]

    def all_rows(self) -> Array:
        """Return the rows as one array, shape (r, f)."""
        backend, blocks = self.space.backend, self.blocks()
        return backend.concatenate(blocks) if blocks else backend.zeros((0, self.space.n_features), self.space.dtype)

    def with_packed_rows(self, *more: Array) -> SecondMoment:
        """Return the same plus the rows `more`, all of it as a packed matrix."""
        return SecondMoment(self.space, packed=self._total(*more))

    def _total(self, *more: Array) -> Array:
        """Return A_y plus the rows `more` as a packed matrix that nobody else holds."""
        backend, f = self.space.backend, self.space.n_features
        if self.packed is None:
            P = backend.zeros(packed_size(f), self.space.dtype)
        else:
            P = self.packed.read() if isinstance(self.packed, OnDisk) else backend.copy(self.packed)
        if blocks := [*self.blocks(), *more]:
            backend.packed_add_gram(P, backend.concatenate(blocks))
        return P

    def dense(self) -> Array:
        """Return A_y of a packed class as a new matrix of shape (f, f), lower."""
        assert self.packed is not None
        with opened(self.packed) as P:
            A = self.space.backend.unpack(P, self.space.n_features)
        for block in self.blocks():
            self.space.backend.add_gram(A, block)
        return A

    # -- algebra --
    def plus(self, X: Array) -> SecondMoment:
        """Return A_y + X'X, in the form that is smaller. No row of X is kept as it is, unless it is all there is."""
        n, f, late = self.n_rows + len(X), self.space.n_features, LATE_ROWS
        if isinstance(self.packed, OnDisk):
            late = max(late, int(LATE_SHARE_ON_DISK * f))
        if (2 * n < f) if self.packed is None else (2 <= n <= late):
            return self._appended(X)
        return self.with_packed_rows(X)

    def _appended(self, X: Array) -> SecondMoment:
        """Add rows; few of them join the last ones, as one row alone would stay as it is."""
        rows, n = self.rows, len(X)
        if rows and not isinstance(last := rows[-1], OnDisk) and (1 in (n, len(last)) or n + len(last) <= GROUP_ROWS):
            rows = (*rows[:-1], last[:-GROUP_ROWS]) if len(last) > GROUP_ROWS else rows[:-1]
            X = self.space.backend.concatenate([last[-GROUP_ROWS:], X])
        return replace(self, rows=(*rows, grouped(X)), is_sealed=False)

    def plus_moment(self, other: SecondMoment) -> SecondMoment:
        """Return the sum of two."""
        if other.packed is None:
            return self.plus(other.all_rows()) if other.rows else self
        P = self._total(*other.blocks())
        with opened(other.packed) as Q:
            self.space.backend.packed_add(P, [(1.0, Q)])
        return SecondMoment(self.space, packed=P)

    def minus(self, X: Array) -> SecondMoment:
        """Return A_y - X'X; refuse rows that are not in it."""
        if self.packed is None:
            return replace(self, rows=(without_rows(self.all_rows(), X),), is_sealed=True)
        backend, f, left = self.space.backend, self.space.n_features, self._total()
        backend.packed_add_gram(left, X, alpha=-1.0)
        slack = rounding_tolerance(self.space.dtype, f, self.trace)
        if backend.cholesky(backend.unpack(left, f), slack) is None:
            raise StoreError(NOT_LEARNED)
        return SecondMoment(self.space, packed=left)

    def sealed(self) -> SecondMoment:
        """Return the same as a function of A_y alone: one factor, or one packed matrix."""
        if self.is_sealed:
            return self
        if self.packed is not None:
            return self.with_packed_rows()
        return SecondMoment(self.space, (factor(self.all_rows()),))

    # -- storage --
    def spilled(self) -> SecondMoment:
        """Return the same in files; of rows those that are not in one yet, as what is in a file is not written again.

        A row that is alone stays: it is as it came until others join it.
        """
        disk, packed = self.space.disk, self.packed
        new = [block for block in self.rows if not isinstance(block, OnDisk)]
        rows = self.rows
        if sum(map(len, new)) > 1 or (new and self.is_sealed):
            written = tuple(block for block in rows if isinstance(block, OnDisk))
            rows = (*written, OnDisk(self.space.backend.concatenate(new), disk))
        if packed is not None and not isinstance(packed, OnDisk):
            packed = OnDisk(packed, disk)
        return replace(self, rows=rows, packed=packed)

    def stored(self) -> Stored:
        """Return a sealed moment as one array: rows of shape (r, f) or a packed matrix, or the file that has it."""
        if self.packed is not None:
            return self.packed
        return self.rows[0] if len(self.rows) == 1 else self.all_rows()

    @classmethod
    def of(cls, array: Stored, space: Space) -> SecondMoment:
        """Return the moment that `stored` has returned an array of."""
        return cls(space, (array,)) if len(array.shape) == 2 else cls(space, packed=array)


Change = Callable[[SecondMoment], SecondMoment]


@dataclass(frozen=True, eq=False)
class Moments:
    """A_y of every class, by slot, as a value; beyond the room there is, the largest are in files."""

    space: Space
    held: tuple[SecondMoment, ...] = ()
    n_sums: int = 0  # how often they were summed since they were packed for it

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
