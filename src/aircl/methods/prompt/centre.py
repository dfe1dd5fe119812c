"""The centre of the prompts of all phases so far, in which small phases weigh more."""

from __future__ import annotations

import torch

from aircl.methods.gradient.stateful import Stateful


class PromptCentre(Stateful):
    """What DAP knows of earlier phases: s = sum_j p_j / |D_j| / sum_j 1 / |D_j|, and their sizes.

    Attributes
    ----------
    sizes : list of int
        |D_j| of each phase.

    Examples
    --------
    >>> import torch
    >>> from aircl.methods.prompt import PromptCentre
    >>> earlier = PromptCentre()
    >>> earlier.add(torch.tensor([0.0, 0.0]), 100)
    >>> earlier.add(torch.tensor([4.0, 8.0]), 300)
    >>> earlier.centre(), earlier.alpha(250)
    (tensor([1., 2.]), 0.75)
    """

    kept = "sizes _sum"

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self._sum: torch.Tensor | None = None

    def add(self, prompt: torch.Tensor, size: int) -> None:
        """Add the prompt of a phase of so many samples."""
        share = prompt.detach() / size
        self._sum = share if self._sum is None else self._sum + share
        self.sizes.append(size)

    def centre(self) -> torch.Tensor | None:
        """Return s; None if there was no phase."""
        return None if self._sum is None else self._sum / sum(1 / size for size in self.sizes)

    def alpha(self, size: int) -> float:
        """Return (|D_t| - min |D|) / (max |D| - min |D|) with one more phase of this size; 0 if all are alike."""
        sizes = [*self.sizes, size]
        span = max(sizes) - min(sizes)
        return (size - min(sizes)) / span if span else 0.0
