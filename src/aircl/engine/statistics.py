"""What every store of sufficient statistics has in common: counts, class sums, and rows that wait to be absorbed.

Per class y the paper accumulates n_y (count), s_y (sum of x) and A_y (sum of x'x). The stores differ only in how they
hold the A_y. Classes are numbered by slots 0, 1, .. in the order they arrive; labels live in the classifier.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from aircl.engine.backend import NUMPY, Array, NumpyBackend, backend_of
from aircl.engine.batch import ClassRows, Pending, sort_by_class
from aircl.engine.gamma import Spectrum, doubt, shared_losses
from aircl.engine.memory import OnDisk

# Larger batches are absorbed in blocks of about this many bytes.
BLOCK_BYTES = 128 * 2**20


class StoreError(ValueError):
    """What was asked for cannot be done exactly by this store, so it was not done at all.

    Examples
    --------
    A small store has no statistics of a single class that it could take out again:

    >>> import numpy as np
    >>> from aircl import AIRClassifier
    >>> clf = AIRClassifier(0.1, store="shared").fit(np.eye(3), ["cat", "dog", "owl"])
    >>> clf.forget(classes=["owl"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    aircl.engine.statistics.StoreError: store='shared' ... cannot forget a whole class without its rows. Pass ...
    >>> clf.forget([[0.0, 0.0, 1.0]], ["owl"]).classes_
    array(['cat', 'dog'], dtype='<U3')
    """


def grown(table: Array, size: int) -> Array:
    """Return `table` with room for `size` rows, zeros beyond the old ones; capacity doubles, so growth is cheap."""
    if len(table) >= size:
        return table
    backend = backend_of(table)
    larger = backend.zeros((max(size, 2 * len(table)), *table.shape[1:]), backend.dtype(table))
    larger[: len(table)] = table
    return larger


class Statistics(ABC):
    """Sufficient statistics of a stream: what is learned, in whatever order it came.

    Parameters
    ----------
    n_features : int
        Width f of the rows.
    dtype : dtype
        float32 or float64, of the second moments. Counts and sums are float64 always.
    memory_limit : int or None
        Bytes that may be held in memory, for stores that can go on beyond. None: half of what there is.
    backend : backend of the rows
        Rows, sums and second moments are its arrays; counts and weights are NumPy arrays always.

    Attributes
    ----------
    n_classes : int
        C, the number of slots.
    count : array of shape (C,)
        n_y, the sum of sample weights of every class.
    sums : array of shape (C, f)
        s_y, the weighted sum of the rows of every class.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.engine import STORES
    >>> store = STORES["shared"](n_features=2, dtype=np.float64)
    >>> store.grow(2)
    >>> store.update(np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0]]), slots=np.array([0, 0, 1]))
    >>> store.count, store.sums.tolist()
    (array([2., 1.]), [[4.0, 0.0], [0.0, 2.0]])
    """

    name: ClassVar[str]

    def __init__(
        self,
        n_features: int,
        dtype: np.dtype[Any],
        memory_limit: int | None = None,
        backend: NumpyBackend = NUMPY,
    ) -> None:
        if memory_limit is not None and not backend.spills:
            raise ValueError(
                f"memory_limit={memory_limit} cannot be kept for {backend.name}: only NumPy arrays can live in files. "
                "Set memory_limit=None, or learn from NumPy arrays."
            )
        self.n_features = n_features
        self.dtype = np.dtype(dtype)
        self.backend = backend
        self.memory_limit = memory_limit
        self.n_classes = 0
        self._count = np.zeros(0)
        self._center = backend.zeros((0, n_features), np.float64)  # s_y, or the mean where a store says so
        self._pending = Pending(n_features, self.dtype, backend)

    @property
    def n_scored(self) -> int:
        """Width of the rows that are scored: those that are learned may be wider."""
        return self.n_features

    # -- learning --
    def grow(self, n_classes: int) -> None:
        """Make room for classes up to slot n_classes - 1."""
        self._count = grown(self._count, n_classes)
        self._center = grown(self._center, n_classes)
        self.n_classes = max(self.n_classes, n_classes)

    def check_update(self, slots: Array) -> None:  # noqa: B027 (most stores refuse nothing)
        """Refuse classes that this store can take no more rows of. Called before anything changes."""

    def update(self, X: Array, slots: Array, weight: Array | None = None) -> None:
        """Learn rows X (n, f) of the given classes. Cost O(n f^2), amortised; the rows are copied."""
        if len(self._pending) + len(X) > self._pending.capacity:
            self.flush()
        if len(X) <= self._pending.capacity:
            self._pending.add(X, slots, weight)
            return
        block = max(self._pending.capacity, BLOCK_BYTES // (self.n_features * self.dtype.itemsize))
        for start in range(0, len(X), block):
            part = slice(start, start + block)
            self._absorb(sort_by_class(X[part], slots[part], None if weight is None else weight[part]))

    def flush(self) -> None:
        """Absorb the rows that wait."""
        if len(self._pending):
            self._absorb(self._pending.take())
            self._pending.clear()

    @abstractmethod
    def _absorb(self, batch: ClassRows) -> None:
        """Add rows to counts, sums and second moments."""

    def seal(self) -> None:
        """Absorb what waits, and leave nothing that is a raw row of a class of three or more samples."""
        self.flush()
        self._pending.wipe()

    def end_phase(self, pi: Array) -> None:
        """Close the open phase; pi (C,) are the unscaled class weights."""
        self.seal()

    # -- what a solution needs --
    @property
    def count(self) -> Array:
        """n_y, the sum of sample weights of every class, shape (C,)."""
        return self._count[: self.n_classes] + self._pending.count(self.n_classes)

    @property
    def sums(self) -> Array:
        """s_y, the weighted sum of the rows of every class, shape (C, f)."""
        self.flush()
        return self._center[: self.n_classes]

    # -- algebra --
    def check_merge(self, slots: Array) -> None:  # noqa: B027 (most stores refuse nothing)
        """Refuse to merge statistics whose classes land on these slots. Called before anything changes."""

    @abstractmethod
    def merge(self, other: Self, slots: Array) -> None:
        """Add the statistics of another store, whose class i is `slots[i]` here."""

    @abstractmethod
    def subtract(self, X: Array, slots: Array, weight: Array | None) -> Array:
        """Take learned rows out again; return the slots of the classes of which nothing is left."""

    def forget_classes(self, slots: Sequence[int]) -> None:
        """Forget classes whose rows are not at hand, where the store can."""
        self.drop(slots)

    def drop(self, slots: Sequence[int]) -> None:
        """Remove classes of which nothing is left; the later slots move up."""
        self.flush()
        self._count = np.delete(self._count[: self.n_classes], slots)
        self._center = self.backend.take(self._center, np.delete(np.arange(self.n_classes), slots))
        self.n_classes -= len(slots)

    def remaining_count(self, batch: ClassRows) -> tuple[Array, Array]:
        """Return the counts after taking `batch` out, and which of the touched classes that empties.

        Raises
        ------
        StoreError
            If a class has less weight than is to be taken out.
        """
        held, taken = self._count[batch.slots], batch.count
        left = held - taken
        slack = 1e-9 * held
        if np.any(left < -slack):
            worst = int(np.argmin(left))
            raise StoreError(
                f"cannot forget a weight of {taken[worst]:g} of a class that holds {held[worst]:g}. "
                "Forget only rows that were learned, and each only once."
            )
        return np.maximum(left, 0.0), left <= slack

    # -- size and storage --
    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return self._count.nbytes + self._center.nbytes + self._pending.nbytes

    def arrays(self) -> dict[str, Array | OnDisk]:
        """Return everything that was learned as named NumPy arrays, sealed."""
        self.seal()
        center = self.backend.to_numpy(self._center[: self.n_classes])
        return {"count": self._count[: self.n_classes], "center": center}

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, Array],
        n_features: int,
        dtype: np.dtype[Any],
        memory_limit: int | None = None,
        backend: NumpyBackend = NUMPY,
    ) -> Self:
        """Build a store from what `arrays` returned."""
        store = cls(n_features, dtype, memory_limit, backend)
        store._restore(arrays)
        return store

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        """Take up what `arrays` returned, in a new store; refuse what does not fit."""
        self.n_classes = n_classes = len(arrays["count"])
        self._count = checked(arrays["count"], (n_classes,), np.dtype(np.float64))
        center = checked(arrays["center"], (n_classes, self.n_features), np.dtype(np.float64))
        self._center = self.backend.asarray(center)


class SecondMoments(Statistics):
    """Statistics that a ridge regression can be solved from."""

    @abstractmethod
    def gram(self, pi: Array) -> Array:
        """Return sum_y pi_y A_y, shape (f, f), in its lower triangle."""

    @abstractmethod
    def within(self, pi: Array) -> Array:
        """Return an estimate of the within-class covariance S_w, shape (f, f), in its lower triangle."""

    def losses(self, spectrum: Spectrum, shrinkage: Array, within: Array) -> list[Array]:
        """Return estimates of every class's leave-one-out error, shape (g, C) each: here, all classes share S_w.

        `within` is S_w in the eigenbasis.
        """
        return shared_losses(spectrum, shrinkage, within)

    def unlike(self, within: Array, pi: Array) -> float:
        """Return how little S_w, complete, tells of the scatter of a class that the store has no more of."""
        return doubt(within, np.ones(self.n_classes), self.count)


def checked(array: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return a stored array, or say that it is not what it should be."""
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"an array is {array.dtype}{list(array.shape)} where {dtype}{list(shape)} belongs")
    return array


def rounding(dtype: np.dtype[Any], size: int, energy: float) -> float:
    """Return how far below zero rounding alone can push an eigenvalue of a difference of sums of squares.

    `energy` is the trace of what was summed, `size` the number of terms an error can pile up over.
    """
    return float(64 * np.finfo(dtype).eps * np.sqrt(max(size, 1)) * energy)
