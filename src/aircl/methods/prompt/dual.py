"""General prompts for every sample in some blocks, and a pool of experts for the next ones."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from aircl.backbones.vit import Prefix, VisionTransformer
from aircl.methods.prompt.pool import PromptPool
from aircl.methods.prompt.prompted import draw_prompts, through_block


class DualPrompts(nn.Module):
    """The prompts of DualPrompt [1]_: G in the first blocks, E, of which each sample has one, in those behind.

    Parameters
    ----------
    width : int
    general_blocks, general_length : int
        How many blocks have G-prompts, from the first on, and their length.
    expert_blocks, expert_length : int
        The same of E-prompts, in the blocks that follow.
    pool : int
        Number of experts.
    form : {"prefix", "prompt"}
        Prompts are keys and values of a block's attention, or tokens that enter the block and are dropped behind it.
    generator : torch.Generator

    References
    ----------
    .. [1] Wang et al. "DualPrompt: Complementary Prompting for Rehearsal-free Continual Learning." ECCV 2022.
    """

    def __init__(
        self,
        width: int,
        *,
        general_blocks: int,
        general_length: int,
        expert_blocks: int,
        expert_length: int,
        pool: int,
        form: Literal["prefix", "prompt"],
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        parts = 2 if form == "prefix" else 1
        self.general = draw_prompts(general_blocks, parts, general_length, width, generator=generator)
        self.experts = PromptPool(pool, (expert_blocks, parts, expert_length, width), width, generator=generator)

    def prefixes(self, vit: VisionTransformer, chosen: torch.Tensor) -> dict[int, Prefix]:
        """Return keys and values by block for samples that chose experts, shape (n, 1)."""
        general = self.general.expand(len(chosen), -1, -1, -1, -1)
        experts = self.experts.prompts[chosen[:, 0]]
        prompts = [*general.unbind(1), *experts.unbind(1)]  # each (n, parts, length, width)
        return {number: _prefix(vit, number, prompt) for number, prompt in enumerate(prompts)}


def _prefix(vit: VisionTransformer, number: int, prompt: torch.Tensor) -> Prefix:
    if prompt.shape[1] == 2:
        return prompt[:, 0], prompt[:, 1]
    return through_block(vit.blocks[number], prompt[:, 0])  # type: ignore[arg-type]  # of a list of blocks
