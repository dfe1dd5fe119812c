"""DualPrompt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from aircl.methods import prompt
from aircl.methods.gradient.options import StepOptions
from aircl.methods.method import IncompatibleError, Setup
from aircl.methods.prompt.method import PromptMethod
from aircl.methods.prompt.options import DualOptions, SelectionOptions
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    from torch import nn

    from aircl.backbones.vit import VisionTransformer
    from aircl.methods.gradient import Rows
    from aircl.methods.prompt import DualPrompts, Guidance


@dataclass(frozen=True)
class DualPromptOptions(DualOptions, SelectionOptions):
    """Options of DualPrompt.

    Attributes
    ----------
    assign : {"phase", "nearest"}
        Which expert a sample is trained with: one for each phase, or that of the nearest key. Test samples always have
        that of the nearest key. An online stream shows no phases, so there it is the nearest.
    """

    assign: Literal["phase", "nearest"] = "phase"

    online: ClassVar[Mapping[str, Any]] = {**DualOptions.online, "assign": "nearest"}


class DualMethod(PromptMethod):
    """General prompts in the first blocks, and expert prompts of a pool in the next."""

    Options: ClassVar[type[StepOptions]] = DualOptions
    options: DualOptions

    def make_prompts(self, vit: VisionTransformer) -> nn.Module:
        """Return general prompts and the pool of experts."""
        options = self.options
        self.need_blocks(vit, options.general_blocks + options.expert_blocks, "general_blocks and expert_blocks")
        return prompt.DualPrompts(
            vit.width,
            general_blocks=options.general_blocks,
            general_length=options.general_length,
            expert_blocks=options.expert_blocks,
            expert_length=options.expert_length,
            pool=options.pool,
            form=options.form,
            generator=self.generator,
        )

    @property
    def prompts(self) -> DualPrompts:
        """The prompts, as `make_prompts` made them."""
        prompts: DualPrompts = self.student.prompts  # type: ignore[assignment]
        return prompts


@register_method("dualprompt")
class DualPrompt(DualMethod):
    """DualPrompt: general prompts for all images, and an expert prompt for each, that of the nearest key.

    Notes
    -----
    Expert t is trained in phase t, and begins as a copy of the prompt and the key of expert t - 1. When there are more
    phases than experts, those that come later train the expert of each sample's nearest key.

    References
    ----------
    .. [1] Wang et al. "DualPrompt: Complementary Prompting for Rehearsal-free Continual Learning." ECCV 2022.
    """

    Options = DualPromptOptions
    options: DualPromptOptions

    kept = "_phase"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        if setup.online and self.options.assign == "phase":
            raise IncompatibleError("assign='phase' needs phases, which an online stream does not show. Use 'nearest'.")
        self._phase = 0  # phases that were trained on

    @property
    def _expert(self) -> int | None:
        """The expert of the phase; None if each sample has that of its nearest key."""
        return self._phase if self.options.assign == "phase" and self._phase < self.options.pool else None

    def train_phase(self, rows: Rows) -> None:
        """Let the expert of the phase begin where the one before it ended, and train."""
        if self._expert:
            self.prompts.experts.copy(self._expert - 1, self._expert)
        super().train_phase(rows)

    def guide(self, rows: Rows, *, training: bool) -> Guidance:
        """Return the prefixes of all blocks that have some."""
        pool = self.prompts.experts
        distances = pool.distances(rows["queries"])
        chosen = pool.nearest(distances)
        if training and self._expert is not None:
            chosen = chosen.new_full(chosen.shape, self._expert)
        elif self.options.selection == "batch":
            chosen = prompt.most_frequent(chosen)
        return prompt.Guidance(
            prefixes=self.prompts.prefixes(self.student.trunk, chosen),
            chosen=chosen,
            penalty=self.options.key_loss * distances.gather(1, chosen).mean(),
        )

    def absorb(self, rows: Rows) -> None:
        """Turn to the next expert, if there is one for each phase."""
        self._phase += 1
