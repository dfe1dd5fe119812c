"""Experience replay (ER)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aircl.methods import gradient
from aircl.methods.gradient.method import GradientMethod
from aircl.methods.gradient.options import ReplayOptions
from aircl.methods.method import Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    from aircl.methods.gradient import Rows


@register_method("er")
class ExperienceReplay(GradientMethod):
    """ER: every batch is accompanied by samples of a reservoir memory.

    References
    ----------
    .. [1] Rolnick et al. "Experience Replay for Continual Learning." NeurIPS 2019.
    """

    Options = ReplayOptions
    options: ReplayOptions

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.memory = gradient.Reservoir(self.options.memory)

    @property
    def samples_kept(self) -> int:
        """The samples in memory."""
        return len(self.memory)

    def accompany(self, rows: Rows) -> Rows:
        """Add samples of the memory, others at every step."""
        return gradient.join([rows, self.memory.draw(self.options.replay, self.generator)])

    def absorb(self, rows: Rows) -> None:
        """Offer the samples to the memory."""
        self.memory.add(rows, self.generator)

    def state(self) -> dict[str, Any]:
        """Return the memory."""
        return {"memory": self.memory.state()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on with the memory."""
        self.memory.restore(state["memory"])
