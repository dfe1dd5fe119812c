"""The partitioning reservoir: every class has a target share of the memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aircl.methods.gradient.slots import SlotMemory


class PartitioningReservoir(SlotMemory):
    """PRS [1]_: class i should have the share q_i = n_i^rho / sum n_j^rho of the memory, n_i the samples of it so far.

    Parameters
    ----------
    size : int
        Samples that it holds at most, M.
    rho : float, default=0.0
        0: all classes have equal targets; 1: targets in proportion, as a reservoir has them.

    Notes
    -----
    In a full memory a sample of class i is taken with probability min(1, M q_i / n_i). It takes a random slot of a
    class that is drawn with the softmax of (slots held) - (slots meant): nearly always one that is 5 over its target.
    n_i counts the samples before; a class that is new is always taken. The method was made for samples with several
    labels, where it prefers rows without rare ones; with one label there is nothing to prefer.

    References
    ----------
    .. [1] Kim, Jeong & Kim. "Imbalanced Continual Learning with Partitioning Reservoir Sampling." ECCV 2020.

    Examples
    --------
    >>> import torch
    >>> from aircl.methods.gradient.partitioning import PartitioningReservoir
    >>> memory, labels = PartitioningReservoir(12), torch.tensor([0] * 80 + [1] * 2 + [2] * 30)
    >>> memory.add({"inputs": torch.zeros(112, 1), "labels": labels}, torch.Generator().manual_seed(0))
    >>> sorted(memory.held.items())
    [(0, 3), (1, 2), (2, 7)]
    """

    def __init__(self, size: int, rho: float = 0.0) -> None:
        super().__init__(size)
        self.rho = rho

    def choose(self, label: int, draws: list[float]) -> int | None:
        """Return a slot of a class that has more than it should, unless the sample is not taken."""
        before = {one: n - (one == label) for one, n in self.seen.items()}
        if before[label]:
            targets = self.targets(before)
            if draws[0] * before[label] >= targets[label]:
                return None
        else:  # the target of a class that is new is that of its first sample
            targets = self.targets(self.seen)
        classes = sorted(one for one, n in self.held.items() if n)
        excess = np.array([self.held[one] - targets[one] for one in classes])
        chances = np.exp(excess - excess.max()).cumsum()
        one = classes[min(int(np.searchsorted(chances, draws[1] * chances[-1], side="right")), len(classes) - 1)]
        slots = self.slots_of(one)
        return int(slots[int(draws[2] * len(slots))])

    def targets(self, counts: Mapping[int, int]) -> dict[int, float]:
        """Return how many slots each class should have, given how many samples came of it."""
        powers = {label: n**self.rho if n else 0.0 for label, n in counts.items()}
        total = sum(powers.values())
        return {label: self.size * power / total for label, power in powers.items()}
