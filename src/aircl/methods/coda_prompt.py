"""CODA-Prompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import cos, pi
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from aircl.methods import prompt
from aircl.methods.method import Setup
from aircl.methods.prompt.method import PromptMethod
from aircl.methods.prompt.options import PromptOptions
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    from torch import nn

    from aircl.backbones.vit import VisionTransformer
    from aircl.methods.gradient import Rows
    from aircl.methods.prompt import Components, Guidance


@dataclass(frozen=True)
class ComponentOptions(PromptOptions):
    """Options of CODA-Prompt.

    Attributes
    ----------
    blocks : int
        That have prompts, from the first on.
    components : int
        That every phase adds.
    length : int
        Of a component; one half are keys, the other values.
    orthogonality : float
        Weight of the loss that keeps components, keys and attentions orthogonal: 0.1 in the paper. The authors' code
        multiplies it by 1e-6, and later has 0.
    schedule : {"cosine", "constant"}
        Whether the learning rate falls along a cosine in every phase. An online stream does not tell how long it is, so
        there it is constant.
    """

    epochs: int = 20
    learning_rate: float = 1e-3
    rate_batch: int | None = None
    clip: float | None = None
    blocks: int = 5
    components: int = 10
    length: int = 8
    orthogonality: float = 0.1
    schedule: Literal["cosine", "constant"] = "cosine"

    online: ClassVar[Mapping[str, Any]] = {**PromptOptions.online, "schedule": "constant"}
    may_be_zero = PromptOptions.may_be_zero | {"orthogonality"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length % 2:
            raise ValueError(f"length={self.length} is odd, but one half of a component are keys, the other values.")


@register_method("coda-prompt")
class CodaPrompt(PromptMethod):
    """CODA-Prompt: weighted sums of components; each phase adds some that are orthogonal to the old, which stay.

    Notes
    -----
    The paper divides 100 components by the number of phases, which a stream does not tell: 10 are added in each.
    Components of a phase without samples are those of the next one. An online stream has to say where phases end.

    References
    ----------
    .. [1] Smith et al. "CODA-Prompt: COntinual Decomposed Attention-based Prompting for Rehearsal-Free Continual
       Learning." CVPR 2023.
    """

    uses_phase_ends = True
    Options = ComponentOptions
    options: ComponentOptions

    kept = "_trained _over"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._trained = self._over = False  # whether the newest components were trained, and their phase is over

    @property
    def components(self) -> Components:
        """The prompts, as `make_prompts` made them."""
        components: Components = self.student.prompts  # type: ignore[assignment]
        return components

    def make_prompts(self, vit: VisionTransformer) -> nn.Module:
        """Return the components of the first phase."""
        options = self.options
        self.need_blocks(vit, options.blocks, "blocks")
        return prompt.Components(
            options.blocks, options.components, options.length, vit.width, generator=self.generator
        )

    def guide(self, rows: Rows, *, training: bool) -> Guidance:
        """Return the prefixes that the components add up to."""
        penalty = self.options.orthogonality * self.components.crookedness() if training else 0.0
        return prompt.Guidance(prefixes=self.components.prefixes(rows["queries"]), penalty=penalty)

    def rate_share(self, epoch: int) -> float:
        """Return cos(0.495 pi epoch / (epochs - 1)): 1 in the first epoch, nearly 0 in the last."""
        if self.options.schedule == "constant":
            return 1.0
        return cos(0.495 * pi * epoch / max(self.options.epochs - 1, 1))

    def meet(self, rows: Rows) -> None:
        """Make room for classes that are new, and add components if this is a new phase."""
        super().meet(rows)
        if self._over:
            self.components.grow(self.generator)
            if self.optimiser is not None:  # what it knows of the past is about components that are set aside
                self.optimiser = self.make_optimiser()
        self._trained, self._over = True, False

    def close_phase(self) -> None:
        """Leave the components alone from now on, if there were samples."""
        self._over = self._trained
