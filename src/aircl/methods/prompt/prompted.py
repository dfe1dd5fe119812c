"""A frozen ViT that is told what to look at: by tokens among its own, or by keys and values of chosen blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from aircl.backbones.device import HOST, send
from aircl.backbones.vit import Block, Prefix, VisionTransformer, insert
from aircl.methods.gradient.student import Student


@dataclass(frozen=True)
class Guidance:
    """What a batch of images is looked at with.

    Attributes
    ----------
    tokens : tensor of shape (n, length, width), or None
        Put after the class token, with its position; the feature is then the mean of what comes out in their places.
    prefixes : mapping of int to (keys, values)
        By block, tensors of shape (n, length, width). Without tokens, the feature is the class token.
    chosen : int64 tensor of shape (n, k), or None
        Which prompts of a pool these are.
    penalty : tensor or float
        What choosing or using them adds to the loss.
    """

    tokens: torch.Tensor | None = None
    prefixes: Mapping[int, Prefix] = field(default_factory=dict)
    chosen: torch.Tensor | None = None
    penalty: torch.Tensor | float = 0.0


class PromptedViT(Student):
    """A ViT that does not learn, prompts that do, and a growing head.

    Parameters
    ----------
    trunk : VisionTransformer
        It is shared, not copied: nothing here changes it.
    prompts : nn.Module
        Everything that is trained beside the head.

    Examples
    --------
    >>> import torch
    >>> from aircl.backbones.vit import VisionTransformer
    >>> from aircl.methods.prompt import Guidance, PromptedViT
    >>> vit = VisionTransformer(image_size=8, patch_size=4, width=12, depth=2, heads=3)
    >>> student = PromptedViT(vit, torch.nn.Module())
    >>> student.see(torch.zeros(5, 3, 8, 8), Guidance(tokens=torch.ones(5, 4, 12))).shape
    torch.Size([5, 12])
    """

    trunk: VisionTransformer

    def __init__(self, trunk: VisionTransformer, prompts: nn.Module) -> None:
        super().__init__(trunk.width, trunk)
        self.prompts = prompts

    def query(self, images: torch.Tensor, *, whole: bool = True) -> torch.Tensor:
        """Return the class tokens of the ViT without prompts, shape (n, width); no gradient.

        They are those behind the last normalisation or, if not ``whole``, those that enter the last block.
        """
        with torch.no_grad():
            images = send(images, self.head.weight.device)
            if whole:
                queries: torch.Tensor = self.trunk(images)
                return queries
            tokens = self.trunk.embed(images)
            for block in list(self.trunk.blocks)[:-1]:
                tokens = block(tokens)
            return tokens[:, 0]

    def see(self, images: torch.Tensor, guidance: Guidance) -> torch.Tensor:
        """Return features of shape (n, width) of images of shape (n, 3, size, size)."""
        tokens = self.trunk.embed(send(images, self.head.weight.device))
        if guidance.tokens is None:
            return self.trunk.forward_tokens(tokens, guidance.prefixes)[:, 0]
        placed = guidance.tokens + self.trunk.pos_embed[:, :1]
        seen = self.trunk.forward_tokens(insert(tokens, placed), guidance.prefixes)
        return seen[:, 1 : 1 + guidance.tokens.shape[1]].mean(1)

    def groups(self, learning_rate: float, trunk_share: float = 0.0) -> list[dict[str, Any]]:
        """Return head and prompts with the learning rate, for an optimiser."""
        return [{"params": [*self.head.parameters(), *self.prompts.parameters()], "lr": learning_rate}]

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; prompts take the shapes that they had grown to."""
        self.head.grow(state["classes"])
        own = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        for name, tensor in state["weights"].items():
            own[name].data = send(tensor.clone(), own[name].device)


def through_block(block: Block, prompts: torch.Tensor) -> Prefix:
    """Return what prompt tokens are to the other tokens of a block: its keys and values of them.

    Tokens that enter a block and are dropped behind it (prompt tuning of single blocks) act on the others through the
    attention alone. They are the prefix that this returns, and cost no query and no perceptron.
    """
    _, key, value = block.attn.qkv(block.norm1(prompts)).chunk(3, dim=-1)
    return key, value


def draw_prompts(*shape: int, generator: torch.Generator) -> nn.Parameter:
    """Return a parameter drawn uniformly from -1 to 1."""
    return nn.Parameter(torch.empty(shape, device=HOST).uniform_(-1, 1, generator=generator))
