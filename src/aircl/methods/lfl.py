"""Less-forgetting learning (LfL)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aircl.methods.gradient.options import PhaseOptions
from aircl.methods.gradient.phase_wise import PhaseWise
from aircl.methods.lwf import Taught
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch

    from aircl.methods.gradient import Optimiser


@dataclass(frozen=True)
class LfLOptions(PhaseOptions):
    """Options of LfL.

    Attributes
    ----------
    features : float
        Weight of half the squared distance of features to those before the phase.
    """

    features: float = 1.6e-3

    may_be_zero = PhaseOptions.may_be_zero | {"features"}


@register_method("lfl")
class LessForgetting(PhaseWise, Taught):
    """LfL: features are held to those before the phase, |f_old(x) - f(x)|^2, and rows of old classes are frozen.

    Notes
    -----
    On the features of a frozen backbone the distance is 0: what is left is fine-tuning.

    References
    ----------
    .. [1] Jung et al. "Less-forgetful Learning for Domain Expansion in Deep Neural Networks." AAAI 2018.
    """

    reason = "it holds features to those before the phase"
    Options = LfLOptions
    options: LfLOptions  # type: ignore[assignment]  # no answers are distilled
    on_frozen = "On the features of a frozen backbone, where no class returns, it is fine-tuning exactly."

    def criterion(self, logits: torch.Tensor, labels: torch.Tensor, views: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy, plus the distance of features if they are trained."""
        loss = self.cross_entropy(logits, labels)
        if self.teacher is None or not self.student.trained or not self.options.features:
            return loss
        # The same views again: the trunk is in evaluation mode, so they have the same features.
        distance = (self.teacher.features(views).detach() - self.student.features(views)).square().sum(1).mean()
        return loss + self.options.features / 2 * distance

    def step(self, optimiser: Optimiser) -> None:
        """Move what is trained, but no row of an old class."""
        self.hold_old_rows()
        super().step(optimiser)
