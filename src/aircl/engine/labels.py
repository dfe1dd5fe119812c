"""Labels of one sortable type as a value, numbered by slots in the order they arrive."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from aircl.engine.backend import Array

KINDS = {"b": "booleans", "i": "numbers", "u": "numbers", "f": "numbers", "U": "strings"}
ALLOWED = "Labels must be all strings, all whole numbers or all booleans."
NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels seen so far, by slot, and those that were declared but not seen yet.

    Strings keep their full length when longer ones arrive: the array is widened, never written into.
    """

    seen: Array = field(default_factory=lambda: NONE)  # (C,) by slot
    declared: Array = field(default_factory=lambda: NONE)  # sorted; they may have been seen
    order: Array = field(default_factory=lambda: NONE)  # (C,) the slots in ascending order of their labels

    def __len__(self) -> int:
        """Return the number of seen classes."""
        return len(self.seen)

    @cached_property
    def _sorted(self) -> Array:
        return self.seen[self.order]

    @cached_property
    def classes(self) -> Array:
        """Seen and declared labels, sorted."""
        classes = np.union1d(self._sorted, self.declared) if len(self.declared) else self._sorted
        classes.flags.writeable = False  # it is handed out
        return classes

    @cached_property
    def columns(self) -> Array:
        """The places of the seen labels, in ascending order, among `classes`."""
        return np.flatnonzero(np.isin(self.classes, self._sorted))

    def cast(self, y: Array) -> Array:
        """Return y in the type of the labels so far, or refuse it."""
        for known in (self.seen, self.declared):
            if len(known) == 0 or len(y) == 0:
                continue
            before, now = KINDS[known.dtype.kind], KINDS[y.dtype.kind]
            if before != now:
                raise ValueError(f"y holds {now}, but the labels so far are {before} ({known[:3]}, ..). {ALLOWED}")
            if known.dtype.kind in "iu" and y.dtype.kind == "f":
                y = y.astype(np.int64)
        return y

    def match(self, values: Array) -> Array:
        """Return the slot of each value, -1 where it was never seen. O(k log C)."""
        if len(self) == 0:
            return np.full(len(values), -1, dtype=np.intp)
        place = np.minimum(np.searchsorted(self._sorted, values), len(self) - 1)
        return np.where(self._sorted[place] == values, self.order[place], -1)

    def with_slots(self, unique: Array) -> tuple[Labels, Array]:
        """Return the labels with all of `unique`, which is sorted, among them; and the slot of each."""
        slots = self.match(unique)
        new = np.flatnonzero(slots < 0)
        if len(new) == 0:
            return self, slots
        slots[new] = len(self) + np.arange(len(new))
        if len(self) == 0:
            return replace(self, seen=unique[new], order=np.arange(len(new))), slots
        place = np.searchsorted(self._sorted, unique[new])
        seen, order = np.concatenate([self.seen, unique[new]]), np.insert(self.order, place, slots[new])
        return replace(self, seen=seen, order=order), slots

    def declaring(self, values: Array) -> Labels:
        """Return the labels with some more announced."""
        if len(values) == 0:
            return self
        return replace(self, declared=np.union1d(self.declared, values) if len(self.declared) else np.unique(values))

    def without(self, slots: Array) -> Labels:
        """Return the labels without some, declared or seen; the later slots move up."""
        gone, seen = self.seen[slots], np.delete(self.seen, slots)
        return Labels(seen, np.setdiff1d(self.declared, gone), np.argsort(seen, kind="stable"))

    def taken(self, slots: Array) -> Labels:
        """Return some of the seen labels, in this order."""
        seen = self.seen[slots]
        return Labels(seen, NONE, np.argsort(seen, kind="stable"))
