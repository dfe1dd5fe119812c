"""What is kept of a stream: samples to replay."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch

from aircl.methods.gradient.rows import Rows, balanced_places, count, nothing, take
from aircl.methods.gradient.stateful import Stateful


class Memory(Stateful, ABC):
    """Samples that are kept; a policy says by `add` which.

    Attributes
    ----------
    rows : Rows
        The samples, with all that is known of them.
    """

    kept = "rows"

    def __init__(self) -> None:
        self.rows: Rows = nothing()

    def __len__(self) -> int:
        return count(self.rows)

    @abstractmethod
    def add(self, rows: Rows, generator: torch.Generator) -> None:
        """Offer samples, in order."""

    def draw(self, n: int, generator: torch.Generator, *, balanced: bool = False) -> Rows:
        """Return samples at random, with the places that they have in memory as "slot".

        Parameters
        ----------
        n : int
        generator : torch.Generator
        balanced : bool, default=False
            Draw as many of one class as of another, some samples more than once; else n different samples, or all if
            there are no more.
        """
        if not len(self):
            return nothing()
        if balanced:
            slots = balanced_places(self.rows["labels"], n, generator)
        else:
            slots = torch.randperm(len(self), generator=generator)[:n]
        return {**take(self.rows, slots), "slot": slots}

    def follow(self, batch: Rows) -> None:
        """Take notice of a step that was made with a batch, whose "slot" is that of samples drawn, and else -1."""


class BoundedMemory(Memory):
    """A memory of a size that is given.

    Parameters
    ----------
    size : int
        Samples that it holds at most.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size
