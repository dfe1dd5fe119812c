"""Riemannian walk (RWalk)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aircl.methods import gradient
from aircl.methods.elastic import HeldOptions
from aircl.methods.gradient.anchored import Anchored
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    from aircl.methods.gradient import RiemannianWalk


@dataclass(frozen=True)
class RWalkOptions(HeldOptions):
    """Options of RWalk.

    Attributes
    ----------
    penalty : float
        Weight of sum (F + s) (theta - theta*)^2.
    rate : float
        What the squared gradient of a step weighs in F, against 1 - rate of the F before.
    every : int
        Steps of a stretch over which the score s is measured.
    eps : float
        Beside the distance of a stretch, which may be 0.
    """

    penalty: float = 10.0
    rate: float = 0.9
    every: int = 10
    eps: float = 0.1

    at_most_one = frozenset({"rate"})


@register_method("rwalk")
class RiemannianWalking(Anchored):
    """RWalk: fine-tuning with the penalty of EWC++ plus scores like those of SI; keeps no sample.

    References
    ----------
    .. [1] Chaudhry et al. "Riemannian Walk for Incremental Learning: Understanding Forgetting and Intransigence." ECCV
       2018.
    """

    Options = RWalkOptions
    options: RWalkOptions

    def make_anchor(self) -> RiemannianWalk:
        """Return an anchor by F and scores."""
        return gradient.RiemannianWalk(self.options.rate, self.options.every, self.options.eps)
