"""Sufficient statistics as values: what is held is declared once, and how it adds up, is saved and sized follows.

Per class y the paper accumulates n_y (count), s_y (sum of x) and A_y (sum of x'x). Classes are numbered by slots 0, 1,
.. in the order they arrive. Nothing here changes in place: every operation returns new statistics that share with the
old what is the same, so the old ones stay valid.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from aircl.engine.backend import NUMPY, Array, backend_of, packed_size
from aircl.engine.batch import ClassRows
from aircl.engine.memory import OnDisk, Stored
from aircl.engine.moment import SecondMoment
from aircl.engine.moments import Moments
from aircl.engine.space import Space, StoreError


# -- parts: what statistics are made of --
@dataclass(frozen=True)
class Part:
    """One part of some statistics: how it begins, follows the classes, adds up and is stored.

    Attributes
    ----------
    file : str
        Its name in a file.
    """

    file: str

    def empty(self, space: Space) -> Any:
        """Return it for no class."""
        raise NotImplementedError

    def taken(self, value: Any, slots: Array) -> Any:
        """Return it for some of the classes only; -1 stands for a class of which nothing was learned."""
        return value

    def summed(self, value: Any, other: Any, slots: Array, reserve: int) -> Any:
        """Return value + other, whose class i is `slots[i]` of value."""
        return value + other

    def stored(self, value: Any, space: Space) -> dict[str, Stored]:
        """Return it as named NumPy arrays, or files of them."""
        raise NotImplementedError

    def restored(self, arrays: Mapping[str, Array], space: Space, n_classes: int) -> Any:
        """Return what `stored` has made arrays of, or raise if they do not fit."""
        raise NotImplementedError


@dataclass(frozen=True)
class ByClass(Part):
    """A float64 row per class, `share` of the features wide; with share 0 one number, in NumPy always."""

    share: float = 1.0

    def _shape(self, space: Space, n_classes: int) -> tuple[int, ...]:
        return (n_classes, int(space.n_features * self.share)) if self.share else (n_classes,)

    def empty(self, space: Space) -> Array:
        """Return no rows."""
        return (space.backend if self.share else NUMPY).zeros(self._shape(space, 0), np.float64)

    def taken(self, value: Array, slots: Array) -> Array:
        """Return some of the rows, zeros for -1."""
        backend, known = backend_of(value), slots >= 0
        rows = backend.zeros((len(slots), *value.shape[1:]), np.float64)
        rows[backend.index(np.flatnonzero(known))] = backend.take(value, slots[known])
        return rows

    def summed(self, value: Array, other: Array, slots: Array, reserve: int) -> Array:
        """Return the sum."""
        total = backend_of(value).copy(value)
        total[backend_of(value).index(slots)] += other
        return total

    def stored(self, value: Array, space: Space) -> dict[str, Stored]:
        """Return the rows."""
        return {self.file: backend_of(value).to_numpy(value)}

    def restored(self, arrays: Mapping[str, Array], space: Space, n_classes: int) -> Array:
        """Return the rows."""
        rows = validate_array(arrays[self.file], self._shape(space, n_classes), np.dtype(np.float64))
        return (space.backend if self.share else NUMPY).asarray(rows)


@dataclass(frozen=True)
class Symmetric(Part):
    """One symmetric (f, f) matrix for all classes, in its lower triangle; packed in a file."""

    def empty(self, space: Space) -> Array:
        """Return zeros."""
        return space.backend.lower_zeros(space.n_features, space.dtype)

    def stored(self, value: Array, space: Space) -> dict[str, Stored]:
        """Return it packed."""
        return {self.file: space.backend.to_numpy(space.backend.pack(value))}

    def restored(self, arrays: Mapping[str, Array], space: Space, n_classes: int) -> Array:
        """Return it unpacked."""
        packed = validate_array(arrays[self.file], (packed_size(space.n_features),), space.dtype)
        return space.backend.unpack(space.backend.asarray(packed), space.n_features)


@dataclass(frozen=True)
class OnePerClass(Part):
    """A second moment per class."""

    def empty(self, space: Space) -> Moments:
        """Return no moments."""
        return Moments(space)

    def taken(self, value: Moments, slots: Array) -> Moments:
        """Return some of the moments."""
        return value.taken(slots)

    def summed(self, value: Moments, other: Moments, slots: Array, reserve: int) -> Moments:
        """Return the sum, sealed."""
        pairs = zip(slots.tolist(), other.held, strict=True)
        total = value.changed(((slot, partial(SecondMoment.plus_moment, other=more)) for slot, more in pairs), reserve)
        return total.sealed(reserve)

    def stored(self, value: Moments, space: Space) -> dict[str, Stored]:
        """Return an array, or the file of one, per class."""
        moments = (moment.sealed().stored() for moment in value.held)
        return {
            f"{self.file}.{slot}": held if isinstance(held, OnDisk) else space.backend.to_numpy(held)
            for slot, held in enumerate(moments)
        }

    def restored(self, arrays: Mapping[str, Array], space: Space, n_classes: int) -> Moments:
        """Return the moments; they are read one at a time, and those that there is no room for go to files again."""

        def read(_: SecondMoment, slot: int) -> SecondMoment:
            array, f = arrays[f"{self.file}.{slot}"], space.n_features
            validate_array(array, (len(array), f) if array.ndim == 2 else (packed_size(f),), space.dtype)
            return SecondMoment.of(space.backend.asarray(array), space)

        return Moments(space).changed((slot, partial(read, slot=slot)) for slot in range(n_classes))


def declare(part: Part) -> Any:
    """Declare a field of statistics."""
    return dataclasses.field(metadata={"part": part})


# -- statistics --
@dataclass(frozen=True, eq=False)
class Statistics:
    """Sufficient statistics of a stream: a value made of declared parts.

    Attributes
    ----------
    space : Space
        Width, dtype and kind of the rows, and the memory for them.
    count : array of shape (C,)
        n_y, the sum of sample weights of every class.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.engine import STORES, Space
    >>> from aircl.engine.batch import sort_by_class
    >>> empty = STORES["shared"].empty(Space(n_features=2, dtype=np.float64))
    >>> rows = sort_by_class(np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0]]), np.array([0, 0, 1]), None)
    >>> one = empty.padded(2).plus(rows)
    >>> one.count, one.sums.tolist(), empty.n_classes
    (array([2., 1.]), [[4.0, 0.0], [0.0, 2.0]], 0)
    """

    name: ClassVar[str]
    cannot_forget: ClassVar[str] = "this classifier cannot forget."
    cannot_merge: ClassVar[str | None] = None
    forgets_classes: ClassVar[bool] = False  # without their rows
    weighs_scatter: ClassVar[bool] = False  # whether samples are in the pooled scatter by the weights of their classes

    space: Space
    count: Array = declare(ByClass("count", share=0))

    @classmethod
    def parts(cls) -> dict[str, Part]:
        """Return what is held, by name."""
        return {field.name: field.metadata["part"] for field in dataclasses.fields(cls) if "part" in field.metadata}

    @classmethod
    def empty(cls, space: Space) -> Self:
        """Return the statistics of nothing."""
        return cls(space, **{name: part.empty(space) for name, part in cls.parts().items()})

    def in_space(self, space: Space) -> Self:
        """Return the same with another memory limit, where one matters."""
        return self

    @property
    def n_classes(self) -> int:
        """C, the number of slots."""
        return len(self.count)

    @property
    def n_score_features(self) -> int:
        """Width of the rows that are scored: those that are learned may be wider."""
        return self.space.n_features

    def padded(self, n_classes: int) -> Self:
        """Return the same with room for classes up to slot n_classes - 1."""
        if n_classes <= self.n_classes:
            return self
        slots = np.arange(n_classes)
        return self.taken(np.where(slots < self.n_classes, slots, -1))

    def taken(self, slots: Array) -> Self:
        """Return the statistics of some classes alone, in this order; -1 stands for a new one."""
        parts = self.parts().items()
        return dataclasses.replace(self, **{name: part.taken(getattr(self, name), slots) for name, part in parts})

    def dropped(self, slots: Sequence[int]) -> Self:
        """Return the same without some classes; the later slots move up."""
        return self.taken(np.delete(np.arange(self.n_classes), slots))

    # -- learning and forgetting --
    def check_update(self, slots: Array) -> None:
        """Refuse classes that can take no more rows."""

    def plus(self, batch: ClassRows, reserve: int = 0) -> Self:
        """Return the statistics with rows added, all of whose slots there are.

        `reserve` bytes are held elsewhere for the time being, by the statistics that these replace.
        """
        raise NotImplementedError

    def first_step(self, batch: ClassRows) -> int:
        """Return how many classes of a batch to add at once, if memory is not to be needed twice for all of them."""
        return len(batch.slots)

    def sealed(self) -> Self:
        """Return the same without anything that is a raw row of a class of three or more samples."""
        return self

    def closed_phase(self, pi: Array) -> Self:
        """Return the statistics after the open phase has ended; pi (C,) are the unscaled class weights."""
        return self.sealed()

    def after_sum(self) -> Self:
        """Return the same, in a form that is better for further sums."""
        return self

    def check_merge(self, slots: Array) -> None:
        """Refuse to add statistics whose classes land on these slots."""
        if self.cannot_merge is not None:
            raise StoreError(self.cannot_merge)

    def merged(self, other: Self, slots: Array) -> Self:
        """Return the sum with other statistics, sealed, whose class i is `slots[i]` here."""
        total = self.sealed().padded(int(slots.max()) + 1 if len(slots) else 0)
        return dataclasses.replace(
            total,
            **{
                name: part.summed(getattr(total, name), getattr(other, name), slots, self.nbytes)
                for name, part in self.parts().items()
                if hasattr(other, name)  # an open phase alone has nothing folded
            },
        )

    def minus(self, batch: ClassRows) -> tuple[Self, Array]:
        """Return the statistics without learned rows, and the slots of the classes of which nothing is left."""
        raise StoreError(self.cannot_forget)

    def without_classes(self, slots: Sequence[int]) -> Self:
        """Return the statistics without classes whose rows are not at hand."""
        if not self.forgets_classes:
            raise StoreError(self.cannot_forget)
        return self.dropped(slots)

    def remaining_count(self, batch: ClassRows) -> tuple[Array, Array]:
        """Return the counts after taking `batch` out, and which of the touched classes that empties.

        Raises
        ------
        StoreError
            If a class has less weight than is to be taken out.
        """
        held, taken = self.count[batch.slots], batch.count
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
        return sum(getattr(self, name).nbytes for name in self.parts())

    def arrays(self) -> dict[str, Stored]:
        """Return everything that was learned as named NumPy arrays or files of them, sealed."""
        sealed = self.sealed()
        stored: dict[str, Stored] = {}
        for name, part in self.parts().items():
            stored |= part.stored(getattr(sealed, name), self.space)
        return stored

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], space: Space) -> Self:
        """Return what `arrays` returned the arrays of; refuse what does not fit."""
        n_classes = len(arrays["count"])
        return cls(space, **{name: part.restored(arrays, space, n_classes) for name, part in cls.parts().items()})


def validate_array(array: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return a stored array, or say that it is not what it should be."""
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"an array is {array.dtype}{list(array.shape)} where {dtype}{list(shape)} belongs")
    return array
