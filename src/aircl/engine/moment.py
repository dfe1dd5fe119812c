"""One class's second moment A_y in its smallest exact form: few rows, a packed matrix, or a file of either."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from aircl.engine.backend import NUMPY, Array, NumpyBackend, backend_of, packed_size
from aircl.engine.factor import Factor
from aircl.engine.memory import DiskSpace, OnDisk
from aircl.engine.probes import Probes
from aircl.engine.statistics import StoreError, rounding

# Rows that come after a matrix was packed wait, mixed, until there are so many: adding them to the matrix costs a
# pass over all of it, however few they are, while a sum over classes takes the rows of many classes in one product.
LATE_ROWS = 96


class SecondMoment:
    """A_y of one class: a `Factor` while it has fewer than f/2 rows, packed symmetric beyond, with a few late rows.

    Parameters
    ----------
    n_features : int
    dtype : dtype
    backend : backend of the rows
    """

    def __init__(self, n_features: int, dtype: np.dtype[Any], backend: NumpyBackend = NUMPY) -> None:
        self.n_features = n_features
        self.dtype = dtype
        self.backend = backend
        self.times_summed = 0
        # A file holds what memory would: rows (2-d) or a packed matrix (1-d).
        self._held: Factor | Array | OnDisk = Factor(n_features, dtype, backend)
        self._late = Factor(n_features, dtype, backend)  # of a packed matrix in memory

    @property
    def is_packed(self) -> bool:
        """Whether it is held as a packed matrix, wherever."""
        return not isinstance(self._held, Factor) and len(self._held.shape) == 1

    @property
    def is_on_disk(self) -> bool:
        """Whether it is held in a file."""
        return isinstance(self._held, OnDisk)

    @property
    def n_rows(self) -> int:
        """The number of rows of a factor, wherever."""
        return len(self._held) if isinstance(self._held, Factor) else self._held.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return 0 if isinstance(self._held, OnDisk) else self._held.nbytes + self._late.nbytes

    @property
    def trace(self) -> float:
        """The trace of A_y."""
        if not self.is_packed:
            return float(sum(self.backend.square(block).sum() for block in self.blocks()))
        with self.packed() as P:
            return float(self.backend.double(self.backend.packed_diagonal(P, self.n_features)).sum())

    # -- the two forms --
    def blocks(self) -> list[Array]:
        """Return the rows of a factor, or the late rows of a packed matrix, in blocks."""
        if self.is_packed:
            return self._late.blocks
        return [self._held.read()] if isinstance(self._held, OnDisk) else self._factor().blocks

    @property
    def without_late_rows(self) -> Array | None:
        """The packed matrix in memory that the late rows are still to be added to; None if it is in a file."""
        assert not isinstance(self._held, Factor)
        return None if isinstance(self._held, OnDisk) else self._held

    def _take_in_late_rows(self) -> None:
        if len(self._late):
            assert not isinstance(self._held, Factor | OnDisk)
            self.backend.packed_add_gram(self._held, self._late.rows(), self.n_features)
            self._late = Factor(self.n_features, self.dtype, self.backend)

    @contextmanager
    def packed(self) -> Iterator[Array]:
        """Give the whole packed matrix to read and write; a file is mapped no longer than this."""
        self._take_in_late_rows()
        if isinstance(self._held, OnDisk):
            with self._held.mapped() as P:
                yield P
        else:
            assert not isinstance(self._held, Factor)
            yield self._held

    def _factor(self) -> Factor:
        """Return the factor, in memory."""
        if isinstance(self._held, OnDisk):
            held, self._held = self._held, Factor.of(self._held.read())
            held.path.unlink(missing_ok=True)
        assert isinstance(self._held, Factor)
        return self._held

    def pack(self) -> None:
        """Turn a factor into a packed matrix."""
        if not self.is_packed:
            P = self.backend.zeros(packed_size(self.n_features), self.dtype)
            for block in self._factor().blocks:
                self.backend.packed_add_gram(P, block, self.n_features)
            self._held = P

    def dense(self) -> Array:
        """Return A_y of a packed class as a new matrix of shape (f, f), lower."""
        if isinstance(self._held, OnDisk):
            with self._held.mapped() as P:
                A = self.backend.unpack(P, self.n_features)
        else:
            assert not isinstance(self._held, Factor)
            A = self.backend.unpack(self._held, self.n_features)
        for block in self._late.blocks:  # a look must not move them, or the next sum would round otherwise
            self.backend.add_gram(A, block)
        return A

    def traces(self, probes: Probes, slot: int) -> tuple[Array, Array]:
        """Return tr(K A_y) and tr(W'A_y W) at every gamma, each of shape (g,)."""
        if not self.is_packed:
            return probes.of_rows(self.blocks())
        return probes.of_matrix(self.dense(), slot)

    # -- algebra --
    def add_rows(self, rows: Array) -> None:
        """Add rows' rows, in the form that is smaller."""
        if not self.is_packed and 2 * (self.n_rows + len(rows)) < self.n_features:
            self._factor().append(rows)
            return
        self.pack()
        # One row alone could not be mixed.
        if not self.is_on_disk and 2 <= len(self._late) + len(rows) <= LATE_ROWS:
            self._late.append(rows)
            return
        with self.packed() as P:
            self.backend.packed_add_gram(P, rows, self.n_features)

    def add(self, other: SecondMoment) -> None:
        """Add another class's second moment, which is sealed."""
        if not other.is_packed:
            for block in other.blocks():
                self.add_rows(block)
            return
        self.pack()
        with self.packed() as P, other.packed() as Q:
            self.backend.packed_add(P, [(1.0, Q)])

    def minus(self, rows: Array) -> SecondMoment:
        """Return A_y - rows' rows, leaving this one as it is; refuse rows that are not in it."""
        left = SecondMoment(self.n_features, self.dtype, self.backend)
        if not self.is_packed:
            left._held = self._factor().subtract(rows)
            return left
        energy = self.trace
        with self.packed() as P:
            left._held = self.backend.copy(P)
        self.backend.packed_add_gram(left._held, rows, self.n_features, alpha=-1.0)
        slack = rounding(self.dtype, self.n_features, energy)
        if self.backend.cholesky(self.backend.unpack(left._held, self.n_features), slack) is None:
            raise StoreError(
                "cannot forget these rows: what would be left is not a sum of squares, so they were not all learned "
                "with this class. Nothing was changed."
            )
        return left

    def seal(self) -> None:
        """Make what is held a function of A_y alone. What is on disk is that already."""
        self._take_in_late_rows()
        if isinstance(self._held, Factor):
            self._held.seal()

    # -- storage --
    def spill(self, disk: DiskSpace) -> None:
        """Move to a file."""
        self._take_in_late_rows()
        if isinstance(self._held, Factor):
            self._held.seal()
            self._held = disk.put(self._held.rows())
        elif not isinstance(self._held, OnDisk):
            self._held = disk.put(self._held)

    def stored(self) -> Array | OnDisk:
        """Return what `array` does, as a NumPy array, or the file that has it."""
        return self._held if isinstance(self._held, OnDisk) else self.backend.to_numpy(self.array())

    def array(self) -> Array:
        """Return the rows of the sealed factor, shape (r, f), or the packed matrix, shape (f (f + 1) / 2,)."""
        assert not isinstance(self._held, OnDisk)
        return self._held.rows() if isinstance(self._held, Factor) else self._held

    @classmethod
    def of(cls, array: Array, n_features: int) -> SecondMoment:
        """Build a second moment from what `array` returned."""
        backend = backend_of(array)
        moment = cls(n_features, backend.dtype(array), backend)
        moment._held = Factor.of(array) if array.ndim == 2 else array
        return moment

    def __getstate__(self) -> dict[str, Any]:
        """Bring a file's content along: the file belongs to this process."""
        state = dict(self.__dict__)
        if isinstance(self._held, OnDisk):
            array = self._held.read()
            state["_held"] = Factor.of(array) if array.ndim == 2 else array
        return state
