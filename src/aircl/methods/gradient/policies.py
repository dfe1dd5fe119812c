"""The memories that options name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from aircl.methods.gradient.diversity import DiverseMemory
from aircl.methods.gradient.importance import ImportanceMemory
from aircl.methods.gradient.memory import Memory
from aircl.methods.gradient.partitioning import PartitioningReservoir
from aircl.methods.gradient.reservoir import Reservoir
from aircl.methods.gradient.rows import Rows
from aircl.methods.gradient.slots import ClassBalancingReservoir


def make_memory(
    options: Any,
    directions: Callable[[Rows], tuple[torch.Tensor, torch.Tensor]],
    losses: Callable[[Rows], torch.Tensor],
) -> Memory:
    """Return an empty memory.

    Parameters
    ----------
    options : MemoryOptions
        Size and policy, and what else they have for this policy: `rho`, `compared`, `measure_every`.
    directions, losses : callable
        What a network says of samples: factors of their gradients, and their losses.
    """
    size = options.memory
    if options.policy == "cbrs":
        return ClassBalancingReservoir(size)
    if options.policy == "prs":
        return PartitioningReservoir(size, getattr(options, "rho", 0.0))
    if options.policy == "clib":
        return ImportanceMemory(size, losses, getattr(options, "measure_every", 1))
    if options.policy == "gss":
        return DiverseMemory(size, directions, getattr(options, "compared", 10))
    return Reservoir(size)
