"""Deep model consolidation (DMC), on frozen features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aircl.inputs import Batch
from aircl.methods.gradient.options import TrainingOptions
from aircl.methods.gradient.phase_wise import PhaseWise
from aircl.methods.method import IncompatibleError, Labels, Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    from aircl.methods.gradient import Rows


@dataclass(frozen=True)
class DMCOptions(TrainingOptions):
    """Options of DMC: those of methods that train a head."""


@register_method("dmc")
class DeepModelConsolidation(PhaseWise):
    """DMC: a head for each phase, trained by itself; the mean of its logits is subtracted from them.

    The student that is fitted by least squares to the centred logits of two linear heads on the same features is these
    heads side by side, each minus its mean row, whatever the inputs: no other data are needed.

    Notes
    -----
    A head that begins at 0 and is trained by SGD on the cross-entropy has a mean row of 0 already: with the default
    optimiser this is fine-tuning with ``compare="phase"``.

    References
    ----------
    .. [1] Zhang et al. "Class-incremental Learning via Deep Model Consolidation." WACV 2020.
    """

    reason = "it trains a head for each phase by itself"
    Options = DMCOptions
    options: DMCOptions

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        if self.options.unfreeze:
            raise IncompatibleError("networks are consolidated on unlabelled other data, which a stream has not.")

    @classmethod
    def notes_for(cls, options: Mapping[str, Any], *, online: bool) -> list[str]:
        """Say where it is nothing but fine-tuning."""
        notes = super().notes_for(options, online=online)
        if options.get("optimiser") == "sgd":
            notes.append("On the features of a frozen backbone, by SGD, it is fine-tuning with compare=phase.")
        return notes

    def learn(self, inputs: Batch, labels: Labels) -> None:
        """Note a batch for the end of the phase, unless it has classes of an earlier one."""
        if back := sorted(set(np.asarray(labels).tolist()) & set(self.student.head.classes)):
            raise IncompatibleError(f"it trains a head for each phase by itself, but classes returned: {back[:5]}.")
        super().learn(inputs, labels)

    def train_phase(self, rows: Rows) -> None:
        """Train the head of the phase by itself, and centre it."""
        import torch

        self.compared = self.student.head.columns(rows["labels"])
        super().train_phase(rows)
        with torch.no_grad():
            for parameter in self.student.head.parameters():
                parameter[self.n_old :] -= parameter[self.n_old :].mean(0)
