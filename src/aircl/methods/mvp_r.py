"""MVP with a memory (MVP-R)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from aircl.methods import gradient
from aircl.methods.method import Setup
from aircl.methods.mvp import MVP, MVPOptions
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    from aircl.methods.gradient import Rows


@dataclass(frozen=True)
class MVPReplayOptions(MVPOptions):
    """Options of MVP-R.

    Attributes
    ----------
    memory : int
        Samples that are kept at most.
    replay : int
        Samples of the memory beside every batch.
    """

    # The memory has samples of all classes, so all can be told apart.
    compare: Literal["phase", "exposed"] = "exposed"
    memory: int = 2000
    replay: int = 32

    online = MVPOptions.online


@register_method("mvp-r")
class MVPReplay(MVP):
    """MVP-R: MVP, with every batch accompanied by samples of a reservoir memory.

    References
    ----------
    .. [1] Moon et al. "Online Class Incremental Learning on Stochastic Blurry Task Boundary via Mask and Visual Prompt
       Tuning." ICCV 2023.
    """

    Options = MVPReplayOptions
    options: MVPReplayOptions

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
        """Offer the samples to the memory, with their queries."""
        self.memory.add(rows, self.generator)

    def state(self) -> dict[str, Any]:
        """Return the memory."""
        return {"memory": self.memory.state()}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on with the memory."""
        self.memory.restore(state["memory"])
