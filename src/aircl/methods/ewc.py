"""Elastic weight consolidation with replay (EWC++)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aircl.methods import gradient
from aircl.methods.er import ExperienceReplay
from aircl.methods.gradient.anchored import Anchored
from aircl.methods.gradient.options import ReplayOptions
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    from aircl.methods.gradient import Anchor


@dataclass(frozen=True)
class ConsolidationOptions(ReplayOptions):
    """Options of EWC++.

    Attributes
    ----------
    penalty : float
        Weight of sum F (theta - theta*)^2.
    keep : float
        What the importance F weighs that there was before a step; the step's squared gradient weighs 1 - keep.
    average : {"step", "phase"}
        F is a moving average over steps, as published; or over phases, of each one's mean squared gradient.
    """

    penalty: float = 100.0
    keep: float = 0.5
    average: Literal["step", "phase"] = "step"

    may_be_zero = ReplayOptions.may_be_zero | {"penalty", "keep"}
    at_most_one = frozenset({"keep"})


@register_method("ewc++")
class Consolidation(Anchored, ExperienceReplay):
    """EWC++: ER with a penalty on changing parameters that were important for earlier phases, the head's too.

    References
    ----------
    .. [1] Kirkpatrick et al. "Overcoming catastrophic forgetting in neural networks." PNAS, 2017.
    .. [2] Chaudhry et al. "Riemannian Walk for Incremental Learning." ECCV 2018.
    """

    Options = ConsolidationOptions
    options: ConsolidationOptions

    def make_anchor(self) -> Anchor:
        """Return an anchor by squared gradients of steps."""
        fisher = gradient.StepFisher if self.options.average == "step" else gradient.PhaseFisher
        return fisher(self.options.keep)
