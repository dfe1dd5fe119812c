"""A memory in which every sample of the stream has the same chance to be."""

from __future__ import annotations

import torch

from aircl.methods.gradient.memory import BoundedMemory
from aircl.methods.gradient.rows import Rows, count, join, take


class Reservoir(BoundedMemory):
    """Reservoir sampling [1]_: after n samples, each of them is held with probability size / n.

    Parameters
    ----------
    size : int
        Samples that it holds at most.

    Attributes
    ----------
    rows : Rows
    seen : int
        Samples that were offered so far.

    References
    ----------
    .. [1] Vitter. "Random Sampling with a Reservoir." ACM Transactions on Mathematical Software, 1985.
    """

    kept = "seen"

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.seen = 0

    def add(self, rows: Rows, generator: torch.Generator) -> None:
        """Offer samples, in order.

        They are appended until the memory is full. Then the n-th sample of the stream draws a slot from 0..n-1, and
        takes it if the memory has that slot.
        """
        n = count(rows)
        free = min(self.size - len(self), n)
        if free > 0:
            self.rows = join([self.rows, take(rows, torch.arange(free))])
        late = torch.arange(max(free, 0), n)
        # floor(u n) in double precision is uniform on 0..n-1 to 1 part in 10^12 for streams of thousands of samples.
        drawn = torch.rand(len(late), generator=generator, dtype=torch.float64)
        slots = (drawn * (self.seen + late + 1)).long()
        self.seen += n
        taken = {slot: place for slot, place in zip(slots.tolist(), late.tolist(), strict=True) if slot < self.size}
        if taken:  # of several for one slot, the last stays
            new = take(rows, torch.tensor(list(taken.values())))
            for name, tensor in self.rows.items():
                tensor[torch.tensor(list(taken))] = new[name]
