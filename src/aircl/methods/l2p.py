"""Learning to prompt (L2P)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aircl.methods import prompt
from aircl.methods.prompt.method import PromptMethod
from aircl.methods.prompt.options import SelectionOptions
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    from torch import nn

    from aircl.backbones.vit import VisionTransformer
    from aircl.methods.gradient import Rows
    from aircl.methods.prompt import Guidance, PromptPool


@dataclass(frozen=True)
class L2POptions(SelectionOptions):
    """Options of L2P.

    Attributes
    ----------
    length : int
        Tokens of a prompt.
    top : int
        Prompts that a sample has.
    """

    length: int = 5
    top: int = 5


@register_method("l2p")
class LearningToPrompt(PromptMethod):
    """L2P: tokens from a pool of prompts, those whose keys are near the image; head on the mean of these tokens.

    Notes
    -----
    The loss is the cross-entropy plus `key_loss` times the mean distance, 1 - cos, of a query and its chosen keys. The
    paper subtracts 0.1 times the sum of their similarities, which for 5 keys is the same.

    References
    ----------
    .. [1] Wang et al. "Learning to Prompt for Continual Learning." CVPR 2022.
    """

    Options = L2POptions
    options: L2POptions

    def make_prompts(self, vit: VisionTransformer) -> nn.Module:
        """Return the pool."""
        options = self.options
        return prompt.PromptPool(options.pool, (options.length, vit.width), vit.width, generator=self.generator)

    def guide(self, rows: Rows, *, training: bool) -> Guidance:
        """Return the prompts of the nearest keys as tokens, the nearest first."""
        pool: PromptPool = self.student.prompts  # type: ignore[assignment]  # as make_prompts made it
        distances = pool.distances(rows["queries"])
        chosen = pool.nearest(distances, self.options.top)
        if self.options.selection == "batch":
            chosen = prompt.most_frequent(chosen)
        return prompt.Guidance(
            tokens=pool.prompts[chosen].flatten(1, 2),
            chosen=chosen,
            penalty=self.options.key_loss * distances.gather(1, chosen).mean(),
        )
