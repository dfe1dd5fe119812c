"""Partitioning reservoir sampling (PRS)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aircl.methods.gradient.options import ReplayOptions
from aircl.methods.gradient.rehearsal import Rehearsal
from aircl.methods.registry import register_method


@dataclass(frozen=True)
class PRSOptions(ReplayOptions):
    """Options of PRS.

    Attributes
    ----------
    rho : float
        Class i should have a share of the memory in proportion to n_i^rho: 0 is the same for all, 1 that of the stream.
    """

    policy: Literal["reservoir", "cbrs", "prs", "clib", "gss"] = "prs"
    rho: float = 0.0

    may_be_negative = frozenset({"rho"})


@register_method("prs")
class PartitioningReplay(Rehearsal):
    """PRS: replay from a reservoir in which every class has a target share; classes above it lose samples.

    Other methods with a memory have the same one, with rho 0, by ``policy="prs"``.

    References
    ----------
    .. [1] Kim, Jeong & Kim. "Imbalanced Continual Learning with Partitioning Reservoir Sampling." ECCV 2020.
    """

    Options = PRSOptions
    options: PRSOptions
