"""Statistics made of several others that know the same classes: phases apart, or columns apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from aircl.classifiers.file import Below
from aircl.engine.backend import Array
from aircl.engine.batch import ClassRows
from aircl.engine.means import Shared
from aircl.engine.memory import Stored
from aircl.engine.space import Space
from aircl.engine.statistics import ByClass, Part, Statistics, declare


@dataclass(frozen=True)
class Nested(Part):
    """Statistics as a part of others."""

    kind: type[Statistics]

    def empty(self, space: Space) -> Statistics:
        """Return them for no class."""
        return self.kind.empty(space)

    def taken(self, value: Statistics, slots: Array) -> Statistics:
        """Return them for some of the classes only."""
        return value.taken(slots)

    def summed(self, value: Statistics, other: Statistics, slots: Array, reserve: int) -> Statistics:
        """Return the sum."""
        return value.merged(other, slots)

    def stored(self, value: Statistics, space: Space) -> dict[str, Stored]:
        """Return their arrays under a common name."""
        return {f"{self.file}.{name}": array for name, array in value.arrays().items()}

    def restored(self, arrays: Mapping[str, Array], space: Space, n_classes: int) -> Statistics:
        """Return what `stored` has made arrays of."""
        own = dict(Below(f"{self.file}.", arrays))
        if len(own.get("count", ())) != n_classes:
            raise ValueError(f"{self.file} has {len(own.get('count', ()))} classes where there are {n_classes}")
        return self.kind.restored(own, space)


@dataclass(frozen=True, eq=False)
class PhaseStatistics(Statistics):
    """Second moments of the closed phases and of the open one apart, every sample weighing the same.

    Attributes
    ----------
    closed, open, held_out : Shared
        Every `every`-th row of a class in a phase is held out of "open", until the phase ends; 0: none.
    rows : array of shape (C,)
        Rows of every class in the open phase.
    n_closed : int
        Classes of the closed phases: the first slots.
    """

    name: ClassVar[str] = "phased"
    every: ClassVar[int] = 0
    cannot_forget = "this classifier looks at its phases one after the other and cannot forget what was in them."
    cannot_merge = "this classifier looks at its phases one after the other, so two of them cannot be merged."

    closed: Shared = declare(Nested("closed", Shared))
    open: Shared = declare(Nested("open", Shared))
    held_out: Shared = declare(Nested("held_out", Shared))
    rows: Array = declare(ByClass("rows", share=0))
    n_closed: int = field(default=0, kw_only=True)

    @property
    def sums(self) -> Array:
        """s_y, shape (C, f)."""
        sums: Array = self.closed.sums + self.open.sums + self.held_out.sums
        return sums

    def plus(self, batch: ClassRows, reserve: int = 0) -> Self:
        """Return the statistics with rows of the open phase added."""
        count, rows = self.count.copy(), self.rows.copy()
        count[batch.slots] += batch.count
        rows[batch.slots] += batch.stop - batch.start
        apart = self._held_out(batch)
        changed: dict[str, Any] = {"count": count, "rows": rows}
        for name, chosen in (("open", ~apart), ("held_out", apart)):
            if chosen.any():
                changed[name] = getattr(self, name).plus(batch if chosen.all() else batch.where(chosen))
        return dataclasses.replace(self, **changed)

    def _held_out(self, batch: ClassRows) -> Array:
        """Tell which rows are held out: every fifth of a class, say, so that rare classes are learned whole."""
        size = batch.stop - batch.start
        if not self.every:
            return np.zeros(len(batch.rows), bool)
        nth = np.arange(1, len(batch.rows) + 1) + np.repeat(self.rows[batch.slots] - batch.start, size)
        apart: Array = nth % self.every == 0
        return apart

    def closed_phase(self, pi: Array) -> Self:
        """Return the statistics with the open phase added to the closed ones."""
        empty = Shared.empty(self.space).padded(self.n_classes)
        return dataclasses.replace(
            self,
            closed=self.total(),
            open=empty,
            held_out=empty,
            rows=np.zeros(self.n_classes),
            n_closed=self.n_classes,
        )

    def total(self, columns: slice = slice(None)) -> Shared:
        """Return the statistics of all that was learned, of some columns only."""
        every, total = np.arange(self.n_classes), self.closed.columns(columns)
        for part in (self.open, self.held_out):
            if part.count.any():
                total = total.merged(part.columns(columns), every)
        return total

    def arrays(self) -> dict[str, Stored]:
        """Return everything that was learned as named NumPy arrays."""
        arrays = super().arrays()
        position = np.append(self.rows, self.n_closed).astype(np.int64)
        del arrays["rows"], arrays["count"]  # that of the parts
        if not self.every:
            arrays = {name: array for name, array in arrays.items() if not name.startswith("held_out.")}
        return arrays | {"position": position}

    @classmethod
    def restored(cls, arrays: Mapping[str, Array], space: Space) -> Self:
        """Return what `arrays` returned the arrays of; refuse what does not fit."""
        n_classes = len(arrays["closed.count"])
        rows, n_closed = arrays["position"][:-1].astype(np.float64), int(arrays["position"][-1])
        given: dict[str, Any] = dict(arrays)
        if not cls.every:
            empty = Shared.empty(space).padded(n_classes).arrays()
            given |= {f"held_out.{name}": array for name, array in empty.items()}
        given["count"] = sum((given[f"{name}.count"] for name in ("closed", "open", "held_out")), np.zeros(n_classes))
        given["rows"] = np.append(rows, np.zeros(n_classes - len(rows)))
        return dataclasses.replace(super().restored(given, space), n_closed=n_closed)
