"""Rehearsal: every batch is accompanied by samples of a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aircl.methods import gradient
from aircl.methods.gradient.method import GradientMethod
from aircl.methods.method import Setup

if TYPE_CHECKING:
    from aircl.methods.gradient import Memory, Rows


class Rehearsal(GradientMethod):
    """A gradient method with a memory, alone or in front of another one; its options have `replay`, and `memory`."""

    options: Any

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.memory = self.make_memory()

    def make_memory(self) -> Memory:
        """Return an empty memory: a reservoir of the size that the options say."""
        return gradient.Reservoir(self.options.memory)

    @property
    def samples_kept(self) -> int:
        """The samples in memory."""
        return len(self.memory)

    def accompany(self, rows: Rows) -> Rows:
        """Add samples of the memory, others at every step."""
        return gradient.join([rows, self.memory.draw(self.options.replay, self.generator)])

    def absorb(self, rows: Rows) -> None:
        """Offer the samples to the memory, with all that is known of them."""
        super().absorb(rows)
        self.memory.add(rows, self.generator)

    def state(self) -> dict[str, Any]:
        """Return the memory, beside what there is without it."""
        return {**super().state(), "memory": self.memory.state()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on with the memory."""
        super().resume(state)
        self.memory.restore(state["memory"])
