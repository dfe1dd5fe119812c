"""Two stages for long-tailed class-incremental learning."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi
from typing import TYPE_CHECKING

from aircl.methods import gradient
from aircl.methods.gradient.phase_wise import PhaseWise
from aircl.methods.icarl import ExemplarOptions, ExemplarReplay
from aircl.methods.method import Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch
    from torch import nn

    from aircl.methods.gradient import Optimiser, Rows


@dataclass(frozen=True)
class TwoStageOptions(ExemplarOptions):
    """Options of the two stages.

    Attributes
    ----------
    second_epochs : int
        Passes of the second stage over as many samples as the first one has, drawn class by class.
    second_rate : float
        Learning rate of the head in the second stage, which falls along a cosine; that of the scales is a tenth.
    """

    learning_rate: float = 0.1
    second_epochs: int = 30
    second_rate: float = 0.1

    may_be_zero = ExemplarOptions.may_be_zero | {"second_epochs"}


@register_method("two-stage")
class TwoStage(PhaseWise, ExemplarReplay):
    """Two-stage: distillation with exemplars; then balanced samples, with a learned scale for each class.

    The second stage trains, on the cross-entropy of s_c z_c, the scales s_c of all classes, which begin at 1, and the
    rows of the head of the new classes; nothing else. Samples are drawn class by class from phase and exemplars.

    Notes
    -----
    Logits are defined up to a shift, and a scale on a negative one works backwards: the mean row of the head is
    subtracted first, z_c = (w_c - mean w) x. When the stage is over, scales and mean row go into the head, so that
    teacher and predictions have them.

    References
    ----------
    .. [1] Liu et al. "Long-Tailed Class Incremental Learning." ECCV 2022.
    """

    Options = TwoStageOptions
    options: TwoStageOptions

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        # Of the classes, while the second stage lasts.
        self.scales: nn.Parameter | None = None

    def criterion(self, logits: torch.Tensor, labels: torch.Tensor, views: torch.Tensor) -> torch.Tensor:
        """Return the loss of the first stage, or the cross-entropy of scaled logits."""
        if self.scales is None:
            return super().criterion(logits, labels, views)
        return self.cross_entropy(self.scales * (logits - logits.mean(1, keepdim=True)), labels)

    def train_phase(self, rows: Rows) -> None:
        """Train in two stages."""
        super().train_phase(rows)
        if not self.options.second_epochs:
            return
        import torch
        from torch import nn

        head, epochs = self.student.head, self.options.second_epochs
        self.scales = nn.Parameter(torch.ones_like(head.bias))
        rates = [(list(head.parameters()), 1.0), ([self.scales], 0.1)]
        groups = [{"params": own, "lr": share * self.options.second_rate} for own, share in rates]
        optimiser = gradient.Optimiser(groups, "sgd", momentum=self.options.momentum)
        self.pass_again(
            self.material(rows), epochs, lambda epoch: (1 + cos(pi * epoch / epochs)) / 2, optimiser, balanced=True
        )
        with torch.no_grad():
            for parameter in head.parameters():
                scales = self.scales.view(-1, *[1] * (parameter.dim() - 1))
                parameter.copy_(scales * (parameter - parameter.mean(0)))
        self.scales = None

    def step(self, optimiser: Optimiser) -> None:
        """Move what is trained: in the second stage the rows of new classes, and the scales of all."""
        if self.scales is not None:
            self.hold_old_rows()
            for name, parameter in self.student.trained_parameters().items():
                if not name.startswith("head."):
                    parameter.grad = None  # no step of this stage uses it up
        super().step(optimiser)
