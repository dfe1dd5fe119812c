"""Memories that decide sample by sample which slot a new one takes; the class-balancing reservoir is one."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter

import numpy as np
import numpy.typing as npt
import torch

from aircl.backbones.device import to_array
from aircl.methods.gradient.memory import BoundedMemory
from aircl.methods.gradient.rows import Rows, join, take

# The class of a slot that is free: no label, whatever labels there are.
NONE = np.iinfo(np.int64).min


class SlotMemory(BoundedMemory):
    """Samples are appended until the memory is full; then a policy says by `choose` which sample is replaced.

    Attributes
    ----------
    rows : Rows
    seen : Counter of int
        Samples that were offered so far, by class.
    held : Counter of int
        Slots, by class.

    Notes
    -----
    Three numbers are drawn for every sample, so what is held does not depend on how a stream is cut into batches.
    """

    kept = "seen held"

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.seen: Counter[int] = Counter()
        self.held: Counter[int] = Counter()
        # The class of each slot, while samples are added.
        self._labels: npt.NDArray[np.int64] = np.zeros(0, np.int64)

    def consider(self, place: int) -> None:
        """Look at a sample of the batch before anything is decided about it."""

    @abstractmethod
    def choose(self, label: int, draws: list[float]) -> int | None:
        """Return the slot that a sample of a class takes in a full memory, or None; draws are uniform on 0..1."""

    def admit(self, label: int, slot: int) -> None:
        """Take notice of a sample that was taken in."""

    def add(self, rows: Rows, generator: torch.Generator) -> None:
        """Offer samples, in order."""
        labels = rows["labels"].tolist()
        draws = torch.rand(len(labels), 3, generator=generator, dtype=torch.float64).tolist()
        before = len(self)
        self._labels = np.full(self.size, NONE)
        self._labels[:before] = to_array(self.rows["labels"]) if before else 0
        filled, taken = before, dict[int, int]()
        for place, label in enumerate(labels):
            self.seen[label] += 1
            self.consider(place)
            slot: int | None = filled
            if filled == self.size:
                slot = self.choose(label, draws[place])
            else:
                filled += 1
            if slot is None:
                continue
            if slot < before or slot in taken:
                self.held[int(self._labels[slot])] -= 1
            self.held[label] += 1
            self._labels[slot] = label
            taken[slot] = place  # of several for one slot, the last stays
            self.admit(label, slot)
        self._write(rows, taken, before)

    def slots_of(self, label: int) -> npt.NDArray[np.intp]:
        """Return the slots of a class. O(size), a few microseconds for thousands of slots."""
        return np.flatnonzero(self._labels == label)

    def _write(self, rows: Rows, taken: dict[int, int], before: int) -> None:
        new = [place for slot, place in sorted(taken.items()) if slot >= before]
        old = {slot: place for slot, place in taken.items() if slot < before}
        if old:
            fresh = take(rows, torch.tensor(list(old.values())))
            for name, tensor in self.rows.items():
                tensor[torch.tensor(list(old))] = fresh[name]
        if new:
            self.rows = join([self.rows, take(rows, torch.tensor(new))])


class ClassBalancingReservoir(SlotMemory):
    """CBRS [1]_: the classes share the memory fairly, and each is a random sample of what came of it.

    A class is full once it has been the largest in memory at any time since the memory was. A sample of a class that is
    not full takes a random slot of a largest class. The n-th sample of a full class, which has m slots, takes a random
    one of these with probability m / n.

    Parameters
    ----------
    size : int
        Samples that it holds at most.

    Attributes
    ----------
    full : set of int
        The full classes.

    References
    ----------
    .. [1] Chrysakis & Moens. "Online Continual Learning from Imbalanced Data." ICML 2020.

    Examples
    --------
    >>> import torch
    >>> from aircl.methods.gradient.slots import ClassBalancingReservoir
    >>> memory, labels = ClassBalancingReservoir(12), torch.tensor([0] * 80 + [1] * 2 + [2] * 30)
    >>> memory.add({"inputs": torch.zeros(112, 1), "labels": labels}, torch.Generator().manual_seed(0))
    >>> sorted(memory.held.items())
    [(0, 5), (1, 2), (2, 5)]
    """

    kept = "full"

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.full: set[int] = set()

    def choose(self, label: int, draws: list[float]) -> int | None:
        """Return a slot of a largest class, or with probability m / n one of the sample's own."""
        if label in self.full:
            slots = self.slots_of(label)
            return None if draws[0] * self.seen[label] >= len(slots) else int(slots[int(draws[1] * len(slots))])
        most = max(self.held.values())
        largest = sorted(one for one, n in self.held.items() if n == most)
        slots = self.slots_of(largest[int(draws[0] * len(largest))])
        return int(slots[int(draws[1] * len(slots))])

    def admit(self, label: int, slot: int) -> None:
        """Note which classes are full from now on."""
        if sum(self.held.values()) == self.size:
            most = max(self.held.values())
            self.full.update(one for one, n in self.held.items() if n == most)
