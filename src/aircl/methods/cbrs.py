"""Class-balancing reservoir sampling (CBRS)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aircl.methods.gradient.options import ReplayOptions
from aircl.methods.gradient.rehearsal import Rehearsal
from aircl.methods.registry import register_method


@dataclass(frozen=True)
class CBRSOptions(ReplayOptions):
    """Options of CBRS: those of replay, with its memory."""

    policy: Literal["reservoir", "cbrs", "prs", "clib", "gss"] = "cbrs"


@register_method("cbrs")
class ClassBalancingReplay(Rehearsal):
    """CBRS: replay from a reservoir that classes share equally; the stream has weight 1/K, the memory 1 - 1/K.

    K is the number of classes so far. Other methods with a memory have the same one by ``policy="cbrs"``.

    References
    ----------
    .. [1] Chrysakis & Moens. "Online Continual Learning from Imbalanced Data." ICML 2020.
    """

    Options = CBRSOptions
    options: CBRSOptions

    def shares(self, stream: float, replayed: float) -> tuple[float, float]:
        """Return 1/K and 1 - 1/K, the weights of both mean losses."""
        share = 1 / len(self.student.head.classes)
        return share, 1 - share
