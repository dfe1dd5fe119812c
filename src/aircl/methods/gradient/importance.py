"""A class-balanced memory of the samples that training on helped most."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from aircl.backbones.device import to_array
from aircl.methods.gradient.rows import Rows
from aircl.methods.gradient.slots import SlotMemory

# What a measurement weighs in the moving average of a sample's importance.
RATE = 0.1


class ImportanceMemory(SlotMemory):
    """The memory of CLIB [1]_: in the largest class, every new sample replaces the one of least importance.

    The importance H of a sample is a moving average of how far the mean loss of the memory fell in steps that it took
    part in: after a step, H <- H + 0.1 (d - mean of H over the batch) for the samples of its batch, d the fall of the
    mean loss of all samples that were measured before. A new sample has the mean H of its class; if there is none of
    it, the mean of all if the memory is full, else 0.

    Parameters
    ----------
    size : int
        Samples that it holds at most.
    losses : callable
        From rows to the loss of each, shape (n,).
    every : int, default=1
        Steps between measurements, each of which looks at the whole memory. Samples of all batches since are credited.

    Attributes
    ----------
    importance, loss : arrays of shape (size,)
        H and the loss of each slot, which is nan before it was measured.
    fall : float or None
        d of the last measurement.

    References
    ----------
    .. [1] Koh et al. "Online Continual Learning on Class Incremental Blurry Task Configuration with Anytime Inference."
       ICLR 2022.
    """

    kept = "importance loss fall _steps _credited"

    def __init__(self, size: int, losses: Callable[[Rows], torch.Tensor], every: int = 1) -> None:
        super().__init__(size)
        self.losses, self.every = losses, every
        self.importance = np.zeros(size)
        self.loss = np.full(size, np.nan)
        self.fall: float | None = None
        self._steps = 0
        # Slots of the batches since the last measurement.
        self._credited: list[int] = []

    def choose(self, label: int, draws: list[float]) -> int:
        """Return the slot of least importance in the largest class, the new sample counted."""
        counts = {one: n + (one == label) for one, n in self.held.items() if n}
        most = max(counts.values())
        largest = sorted(one for one, n in counts.items() if n == most)
        slots = self.slots_of(largest[int(draws[0] * len(largest))])
        return int(slots[self.importance[slots].argmin()])

    def admit(self, label: int, slot: int) -> None:
        """Give a new sample the importance of its class."""
        peers = self.slots_of(label)
        peers = peers[peers != slot]
        if not len(peers) and sum(self.held.values()) == self.size:
            peers = np.flatnonzero(np.arange(self.size) != slot)
        self.importance[slot] = self.importance[peers].mean() if len(peers) else 0.0
        self.loss[slot] = np.nan

    def follow(self, batch: Rows) -> None:
        """Measure the memory, and credit the samples of the batch with the fall of its mean loss."""
        if not len(self):
            return
        slots = batch["slot"] if "slot" in batch else torch.zeros(0)
        self._credited += [int(slot) for slot in slots.tolist() if slot >= 0]
        self._steps += 1
        if self._steps % self.every:
            return
        now = to_array(self.losses(self.rows)).astype(np.float64)
        before = self.loss[: len(now)]
        measured = ~np.isnan(before)
        self.fall = float((before - now)[measured].mean()) if measured.any() else None
        credited = np.unique(np.array(self._credited, np.intp))
        if self.fall is not None and len(credited):
            self.importance[credited] += RATE * (self.fall - self.importance[credited].mean())
        self.loss[: len(now)] = now
        self._credited = []
