"""What is kept of a stream: samples to replay."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch

from aircl.methods.gradient.rows import Rows, count, nothing, take


class Memory(ABC):
    """Samples that are kept; a policy says by `add` which.

    Attributes
    ----------
    rows : Rows
        The samples, with all that is known of them.
    """

    def __init__(self) -> None:
        self.rows: Rows = nothing()

    def __len__(self) -> int:
        return count(self.rows)

    @abstractmethod
    def add(self, rows: Rows, generator: torch.Generator) -> None:
        """Offer samples, in order."""

    def draw(self, n: int, generator: torch.Generator) -> Rows:
        """Return n different samples at random; all, if there are no more."""
        return take(self.rows, torch.randperm(len(self), generator=generator)[:n]) if len(self) else nothing()

    def state(self) -> dict[str, Any]:
        """Return the samples, and what else the policy needs to go on."""
        return {"rows": self.rows}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.rows = state["rows"]
