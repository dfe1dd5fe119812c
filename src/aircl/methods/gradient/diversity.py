"""A memory of samples whose gradients point in different directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from aircl.backbones.device import to_array
from aircl.methods.gradient.rows import Rows, join, take
from aircl.methods.gradient.slots import SlotMemory

# The score of a sample that there was nothing to compare with.
FIRST = 0.1


class DiverseMemory(SlotMemory):
    """GSS-greedy [1]_: a sample is kept if its gradient is unlike those of samples that are held.

    The score of a sample is 1 + the greatest cosine of its gradient and those of a few random slots. Once the memory is
    full, a sample with a negative cosine draws a slot i with probability in proportion to its score s_i, and takes it
    with probability s_i / (s_i + s).

    Parameters
    ----------
    size : int
        Samples that it holds at most.
    directions : callable
        From rows to the two factors of each sample's gradient by a linear head, p - y and (x, 1), at length 1: the
        cosine of two gradients is the product of those of the factors, and no backward pass is needed.
    compared : int, default=10
        Slots that a sample is compared with.

    Attributes
    ----------
    scores : array of shape (size,)
        Of each slot.

    Notes
    -----
    Gradients are those by the head, of one sample each. Public code compares the gradient of a whole batch.

    References
    ----------
    .. [1] Aljundi et al. "Gradient based sample selection for online continual learning." NeurIPS 2019.
    """

    kept = "scores"

    def __init__(
        self,
        size: int,
        directions: Callable[[Rows], tuple[torch.Tensor, torch.Tensor]],
        compared: int = 10,
    ) -> None:
        super().__init__(size)
        self.directions, self.compared = directions, compared
        self.scores = np.zeros(size)
        # Of the samples of a batch: slots to compare with, and gradients of these and of the batch.
        self._slots: npt.NDArray[np.int64] = np.zeros((0, compared), np.int64)
        self._factors: list[npt.NDArray[np.floating[Any]]] = []
        # Which gradient is that of a slot, of the first sample of the batch, of the one at hand; the latter's score.
        self._gradient = np.zeros(size, np.int64)
        self._first, self._place, self._score = 0, 0, FIRST

    def add(self, rows: Rows, generator: torch.Generator) -> None:
        """Offer samples, in order."""
        n, before = len(rows["labels"]), len(self)
        filled = np.minimum(before + np.arange(n), self.size)
        drawn = to_array(torch.rand(n, self.compared, generator=generator, dtype=torch.float64))
        self._slots = (drawn * filled[:, None]).astype(np.int64)
        needed = np.unique(self._slots[self._slots < before])
        self._gradient[needed], self._first = np.arange(len(needed)), len(needed)
        held = take(self.rows, torch.from_numpy(needed)) if before else {}
        self._factors = [to_array(factor) for factor in self.directions(join([held, rows]))]
        super().add(rows, generator)
        self._factors = []

    def consider(self, place: int) -> None:
        """Compute the score of a sample."""
        self._place = self._first + place
        if not sum(self.held.values()):
            self._score = FIRST
            return
        others = self._gradient[self._slots[place]]
        errors, inputs = (factor[others] @ factor[self._place] for factor in self._factors)
        self._score = 1 + float((errors * inputs).max())

    def choose(self, label: int, draws: list[float]) -> int | None:
        """Return a slot of high score, unless the sample is like those that are held or loses against it."""
        if self._score >= 1:
            return None
        total = self.scores.cumsum()
        slot = min(int(np.searchsorted(total, draws[0] * total[-1], side="right")), self.size - 1)
        return slot if draws[1] * (self.scores[slot] + self._score) < self.scores[slot] else None

    def admit(self, label: int, slot: int) -> None:
        """Note the score and the gradient of a sample that was taken in."""
        self.scores[slot] = max(self._score, 0.0)  # rounding may bring a cosine below -1
        self._gradient[slot] = self._place
