"""Methods that train on whole phases, and tell classes that are new in a phase from those that are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from aircl.methods.gradient.method import GradientMethod
from aircl.methods.method import IncompatibleError, Setup

if TYPE_CHECKING:
    from aircl.methods.gradient import Rows


class PhaseWise(GradientMethod):
    """A gradient method in front of another one, which declines online streams.

    Attributes
    ----------
    n_old : int
        Classes that were met before the present phase: the first so many columns of the logits. One that returns is
        old; a phase may have no new class, the first has no old one.
    reason : str
        Why it needs phases.
    """

    reason: ClassVar[str] = "it passes over a phase in several stages"

    def __init__(self, setup: Setup) -> None:
        if setup.online:
            raise IncompatibleError(f"{self.reason}, but an online stream shows no phases.")
        super().__init__(setup)
        self.n_old = 0

    @property
    def n_new(self) -> int:
        """Classes that are new in the present phase."""
        return len(self.student.head.classes) - self.n_old

    def meet(self, rows: Rows) -> None:
        """Make room for classes that are new, and note which were there."""
        self.n_old = len(self.student.head.classes)
        super().meet(rows)

    def hold_old_rows(self) -> None:
        """Set the gradients of the head's rows of old classes to 0, so that a step leaves them where they are."""
        for parameter in self.student.head.growing():
            if parameter.grad is not None:
                parameter.grad[: self.n_old] = 0
