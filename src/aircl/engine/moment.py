"""One class's second moment A_y, a value in its smallest exact form: few rows, a packed matrix, a file of either."""

from __future__ import annotations

from dataclasses import dataclass, replace

from aircl.engine.backend import Array, packed_size
from aircl.engine.factor import GROUP_ROWS, factor, grouped, rounding_tolerance, without_rows
from aircl.engine.memory import OnDisk, Stored, opened
from aircl.engine.space import Space, StoreError

# Rows that come after a matrix was packed stay rows until there are so many: adding them to the matrix costs a pass
# over all of it, however few they are, while a sum over classes takes the rows of many classes in one product. To a
# matrix in a file, which is written again, more of them: a share of the features.
LATE_ROWS, LATE_SHARE_ON_DISK = 96, 1 / 8


@dataclass(frozen=True, eq=False)
class SecondMoment:
    """A_y = P + sum of R'R over blocks of rows R: no P while there are fewer than f/2 rows, few rows beyond.

    A value: what changes it returns another one, which shares what is the same.

    Attributes
    ----------
    space : Space
    rows : tuple of arrays of shape (r, f), in memory or in a file
    packed : array of shape (f (f + 1) / 2,), in memory or in a file, or None
    is_sealed : bool
        Whether what is held is a function of A_y alone.
    """

    space: Space
    rows: tuple[Stored, ...] = ()
    packed: Stored | None = None
    is_sealed: bool = True

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
            backend.packed_add_gram(P, backend.concatenate(blocks), f)
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
        backend.packed_add_gram(left, X, f, alpha=-1.0)
        slack = rounding_tolerance(self.space.dtype, f, self.trace)
        if backend.cholesky(backend.unpack(left, f), slack) is None:
            raise StoreError(
                "cannot forget these rows: what would be left is not a sum of squares, so they were not all learned "
                "with this class. Nothing was changed."
            )
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
