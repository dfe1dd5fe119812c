"""Gradient-based sample selection (GSS-greedy)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aircl.methods.gradient.options import ReplayOptions
from aircl.methods.gradient.rehearsal import Rehearsal
from aircl.methods.registry import register_method


@dataclass(frozen=True)
class GSSOptions(ReplayOptions):
    """Options of GSS.

    Attributes
    ----------
    compared : int
        Slots of the memory that the gradient of a sample is compared with.
    """

    policy: Literal["reservoir", "cbrs", "prs", "clib", "gss"] = "gss"
    compared: int = 10


@register_method("gss")
class DiverseReplay(Rehearsal):
    """GSS: replay from a memory of samples whose gradients by the head differ.

    Other methods with a memory have the same one by ``policy="gss"``.

    References
    ----------
    .. [1] Aljundi et al. "Gradient based sample selection for online continual learning." NeurIPS 2019.
    """

    Options = GSSOptions
    options: GSSOptions
