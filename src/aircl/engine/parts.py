"""Statistics made of several others that know the same classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from aircl.engine.backend import NUMPY, Array, NumpyBackend
from aircl.engine.batch import ClassRows
from aircl.engine.memory import OnDisk
from aircl.engine.shared import Shared
from aircl.engine.statistics import Statistics, StoreError


class Parts(Statistics):
    """Statistics in named parts; subclasses say which rows, or which columns of them, go where."""

    _parts: dict[str, Statistics]

    def grow(self, n_classes: int) -> None:
        """Make room for classes up to slot n_classes - 1."""
        self.n_classes = max(self.n_classes, n_classes)
        for part in self._parts.values():
            part.grow(n_classes)

    def _absorb(self, batch: ClassRows) -> None:
        raise AssertionError("the parts absorb")

    def flush(self) -> None:
        """Absorb the rows that wait."""
        for part in self._parts.values():
            part.flush()

    def seal(self) -> None:
        """Leave nothing that is a raw row of a class of three or more samples."""
        for part in self._parts.values():
            part.seal()

    def drop(self, slots: Sequence[int]) -> None:
        """Remove classes; the later slots move up."""
        for part in self._parts.values():
            part.drop(slots)
        self.n_classes -= len(slots)

    @property
    def nbytes(self) -> int:
        """Bytes held in memory."""
        return sum(part.nbytes for part in self._parts.values())

    def arrays(self) -> dict[str, Array | OnDisk]:
        """Return everything that was learned as named NumPy arrays, sealed."""
        return {f"{part}.{name}": array for part, held in self._parts.items() for name, array in held.arrays().items()}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        for name, part in self._parts.items():
            part._restore({key.removeprefix(f"{name}."): arrays[key] for key in arrays if key.startswith(f"{name}.")})
            self.n_classes = part.n_classes


class Phased(Parts):
    """Second moments of the closed phases and of the open one apart, every sample weighing the same.

    Parameters
    ----------
    n_features, dtype, memory_limit, backend
        As in `Statistics`.

    Notes
    -----
    Every `hold_out`-th row of a class in a phase is held out of "open", until the phase ends; 0: none.
    """

    name = "phased"
    hold_out = 0

    def __init__(
        self,
        n_features: int,
        dtype: np.dtype[Any],
        memory_limit: int | None = None,
        backend: NumpyBackend = NUMPY,
    ) -> None:
        super().__init__(n_features, dtype, memory_limit, backend)
        names = ("closed", "open", "held_out") if self.hold_out else ("closed", "open")
        self._parts = {name: self._empty() for name in names}
        self._rows = np.zeros(0, np.int64)  # of the open phase, by class
        self.n_closed = 0  # classes of the closed phases: the first slots

    def _empty(self) -> Shared:
        part = Shared(self.n_features, self.dtype, None, self.backend)
        part.grow(self.n_classes)
        return part

    def part(self, name: str) -> Shared:
        """Return one of the parts "closed", "open", "held_out"."""
        part = self._parts[name]
        assert isinstance(part, Shared)
        return part

    def update(self, X: Array, slots: Array, weight: Array | None = None) -> None:
        """Learn rows X (n, f) of the open phase."""
        apart = self._held_out(slots)
        for name, rows in (("open", ~apart), ("held_out", apart)):
            if rows.any():
                chosen = np.flatnonzero(rows)
                part_weight = None if weight is None else weight[chosen]
                part_rows = X if rows.all() else self.backend.take(X, chosen)
                self._parts[name].update(part_rows, slots[chosen], part_weight)

    def _held_out(self, slots: Array) -> Array:
        """Tell which rows are held out: every fifth of a class, say, so that rare classes are learned whole."""
        if not self.hold_out:
            return np.zeros(len(slots), bool)
        self._rows = np.append(self._rows, np.zeros(self.n_classes - len(self._rows), np.int64))
        order = np.argsort(slots, kind="stable")
        touched, start, count = np.unique(slots[order], return_index=True, return_counts=True)
        nth = np.empty(len(slots), np.int64)  # of its class in the phase, from 1
        nth[order] = np.arange(1, len(slots) + 1) - np.repeat(start, count) + self._rows[slots[order]]
        self._rows[touched] += count
        apart: Array = nth % self.hold_out == 0
        return apart

    def end_phase(self, pi: Array) -> None:
        """Add the open phase to the closed ones."""
        every = np.arange(self.n_classes)
        for name in list(self._parts)[1:]:
            self.part("closed").merge(self.part(name), every)
            self._parts[name] = self._empty()
        self._rows, self.n_closed = self._rows[:0], self.n_classes
        self.seal()

    @property
    def count(self) -> Array:
        """n_y, shape (C,)."""
        count: Array = sum((part.count for part in self._parts.values()), np.zeros(self.n_classes))
        return count

    @property
    def sums(self) -> Array:
        """s_y, shape (C, f)."""
        first, *others = (part.sums for part in self._parts.values())
        sums: Array = sum(others, first)
        return sums

    def total(self, columns: slice = slice(None)) -> Shared:
        """Return the statistics of all that was learned, of some columns only."""
        every = np.arange(self.n_classes)
        total = self.part("closed").columns(columns)
        for name in list(self._parts)[1:]:
            total.merge(self.part(name).columns(columns), every)
        return total

    def check_merge(self, slots: Array) -> None:
        """Refuse: what comes of phases depends on their order."""
        raise StoreError("this classifier looks at its phases one after the other, so two of them cannot be merged.")

    def merge(self, other: Any, slots: Array) -> None:
        """Refuse, as `check_merge` does."""
        self.check_merge(slots)

    def subtract(self, X: Array, slots: Array, weight: Array | None) -> Array:
        """Refuse: what came of earlier phases stays."""
        raise StoreError("this classifier looks at its phases one after the other and cannot forget what was in them.")

    def forget_classes(self, slots: Sequence[int]) -> None:
        """Refuse, as `subtract` does."""
        self.subtract(np.zeros((0, 0)), np.zeros(0), None)

    def arrays(self) -> dict[str, Array | OnDisk]:
        """Return everything that was learned as named NumPy arrays, sealed."""
        return super().arrays() | {"position": np.append(self._rows, self.n_closed)}

    def _restore(self, arrays: Mapping[str, Array]) -> None:
        super()._restore(arrays)
        self._rows, self.n_closed = arrays["position"][:-1].copy(), int(arrays["position"][-1])
