"""Methods that are held where they were, by an anchor."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from aircl.methods import gradient
from aircl.methods.gradient.method import GradientMethod
from aircl.methods.method import Setup

if TYPE_CHECKING:
    from aircl.methods.gradient import Anchor, Optimiser


class Anchored(GradientMethod):
    """A gradient method with an anchor, alone or in front of another one; its options have `penalty`.

    It is told where phases end in online streams too: then the anchor is dropped.

    Attributes
    ----------
    share : float
        Of the penalty, that weighs sum F (theta - theta*)^2.
    """

    uses_phase_ends = True
    options: Any
    share: ClassVar[float] = 1.0
    kept = "anchor"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.anchor = self.make_anchor()

    @abstractmethod
    def make_anchor(self) -> Anchor:
        """Return an anchor that holds nothing yet."""

    def step(self, optimiser: Optimiser) -> None:
        """Make one step on the loss, then one on the penalty."""
        trained = self.student.trained_parameters()
        self.anchor.note(trained)
        super().step(optimiser)
        self.anchor.pull(trained, optimiser, self.share * self.options.penalty)
        self.anchor.moved(trained)

    def close_phase(self) -> None:
        """Hold parameters where they are from now on."""
        super().close_phase()
        self.anchor.drop(self.student.trained_parameters())

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on with the anchor where the parameters are."""
        super().set_state({**state, "anchor": gradient.sent_to(self.student.head.weight.device, state["anchor"])})
