"""Fine-tuning: the baseline that forgets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aircl.methods import gradient
from aircl.methods.gradient.method import GradientMethod
from aircl.methods.gradient.options import TrainingOptions
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch

    from aircl.methods.gradient import Rows


@dataclass(frozen=True)
class FineTuningOptions(TrainingOptions):
    """Options of fine-tuning.

    Attributes
    ----------
    compare : {"phase", "exposed"}
        Which classes a sample is told from: those of its phase, whose rows of the head alone are trained then, or all
        that were seen. An online stream has no phases to see: all.
    """

    compare: Literal["phase", "exposed"] = "phase"


@register_method("fine-tuning")
class FineTuning(GradientMethod):
    """Fine-tuning: cross-entropy on the samples of the present phase alone; nothing is done against forgetting."""

    Options = FineTuningOptions
    options: FineTuningOptions

    # Columns of the classes of the phase that is trained on; None: all.
    _columns: torch.Tensor | None = None

    def material(self, rows: Rows) -> Rows:
        """Note the classes of the phase."""
        if self.options.compare == "phase":
            self._columns = self.student.head.columns(rows["labels"])
        return rows

    def loss(self, batch: Rows) -> torch.Tensor:
        """Return the cross-entropy over the classes of the phase."""
        from torch.nn.functional import cross_entropy

        logits, columns = self.answer(batch)
        return cross_entropy(gradient.mask_logits(logits, self._columns), columns)
