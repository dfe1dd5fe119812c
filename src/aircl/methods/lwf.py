"""Learning without forgetting (LwF)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from aircl.methods import gradient
from aircl.methods.gradient.method import GradientMethod
from aircl.methods.gradient.options import PhaseOptions, StepOptions, TrainingOptions
from aircl.methods.method import Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch

    from aircl.methods.gradient import Rows, Student


@dataclass(frozen=True)
class DistillationOptions(TrainingOptions):
    """Options of methods that learn from a teacher.

    Attributes
    ----------
    distillation : float
        Weight of the teacher's answers beside the labels.
    temperature : float
        That softens answers.
    """

    distillation: float = 0.2
    temperature: float = 2.0

    may_be_zero = TrainingOptions.may_be_zero | {"distillation"}


@dataclass(frozen=True)
class LwFOptions(DistillationOptions, PhaseOptions):
    """Options of LwF: those of a teacher, and which classes a sample is told from."""

    online, unfrozen = PhaseOptions.online, PhaseOptions.unfrozen


class Taught(GradientMethod):
    """A student that is held to the answers of a teacher: itself, as it was after the previous phase or batch."""

    Options: ClassVar[type[StepOptions]] = DistillationOptions
    options: DistillationOptions
    # What is said of frozen features where a sample is told from the classes of its phase alone.
    on_frozen: ClassVar[str] = ""

    @classmethod
    def notes_for(cls, options: Mapping[str, Any], *, online: bool) -> list[str]:
        """Say where it is nothing but fine-tuning."""
        notes = super().notes_for(options, online=online)
        nothing_left = options.get("compare") == "phase" and cls.inputs_for(options) == "features"
        return [*notes, cls.on_frozen] if nothing_left else notes

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.teacher: Student | None = None

    def criterion(self, logits: torch.Tensor, labels: torch.Tensor, views: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy, plus the distillation over the classes that the teacher knows."""
        loss = super().criterion(logits, labels, views)
        if self.teacher is not None and self.options.distillation:
            taught = gradient.distillation_loss(logits, self.teacher(views), self.options.temperature)
            loss = loss + self.options.distillation * taught
        return loss

    def absorb(self, rows: Rows) -> None:
        """Take the network as it is now for a teacher."""
        super().absorb(rows)
        self.teacher = self.student.teacher()

    def get_state(self) -> dict[str, Any]:
        """Return the teacher, beside what there is without one."""
        return {**super().get_state(), "teacher": None if self.teacher is None else self.teacher.state()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on with the teacher."""
        super().set_state(state)
        if state["teacher"] is not None:
            self.teacher = self.new_student()
            self.teacher.restore(state["teacher"])
            self.teacher.requires_grad_(False)


@register_method("lwf")
class LearningWithoutForgetting(Taught):
    """LwF: the labels of new samples, and the answers that the network gave to them before it learned them.

    Notes
    -----
    In a stream with phases on the features of a frozen backbone, nothing moves the answers for earlier classes while a
    sample is told from the classes of its phase alone: distillation has nothing to do, and LwF is fine-tuning.

    References
    ----------
    .. [1] Li & Hoiem. "Learning without Forgetting." IEEE TPAMI, 2018.
    """

    Options = LwFOptions
    options: LwFOptions
    on_frozen = "On the features of a frozen backbone, phase by phase, it is fine-tuning exactly."
