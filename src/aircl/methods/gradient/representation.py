"""Training of what lies below the head: by contrast, by a teacher's features, by small adapters."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, cos, pi

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, cross_entropy, linear, normalize
from torch.utils.hooks import RemovableHandle

from aircl.backbones.device import send
from aircl.backbones.vit import VisionTransformer
from aircl.methods.gradient.optimiser import Optimiser


def train(
    loss: Callable[[torch.Tensor], torch.Tensor],
    parameters: list[nn.Parameter],
    n: int,
    generator: torch.Generator,
    *,
    epochs: int,
    batch_size: int,
    kind: str,
    learning_rate: float,
    clip: float | None = 1.0,
    weight_decay: float = 0.0,
) -> None:
    """Make the loss of random batches smaller, with a learning rate that falls along a cosine.

    Parameters
    ----------
    loss : callable
        From the places of the samples of a batch to a scalar.
    parameters : list of nn.Parameter
    n : int
        Number of samples.
    generator : torch.Generator
    epochs, batch_size : int
        The batches of an epoch are as equal in size as can be.
    kind : {"adam", "sgd"}
    learning_rate : float
        At first.
    clip : float or None, default=1.0
        Longest gradient.
    weight_decay : float, default=0.0
    """
    groups = [{"params": parameters, "lr": learning_rate}]
    optimiser = Optimiser(groups, kind, clip=clip, weight_decay=weight_decay)
    batches = ceil(n / batch_size)
    for step in range(epochs * batches):
        if step % batches == 0:
            order = torch.randperm(n, generator=generator).tensor_split(batches)
        optimiser.scale((1 + cos(pi * step / (epochs * batches))) / 2)
        optimiser.minimise(loss(order[step % batches]))


def contrastive_loss(one: torch.Tensor, other: torch.Tensor, temperature: float = 0.5) -> torch.Tensor:
    """Return how badly each view of a sample finds the other view of it among all views of a batch (NT-Xent [1]_).

    Parameters
    ----------
    one, other : tensors of shape (n, d)
        Two views of n samples.
    temperature : float, default=0.5

    References
    ----------
    .. [1] Chen et al. "A Simple Framework for Contrastive Learning of Visual Representations." ICML 2020.

    Examples
    --------
    >>> import torch
    >>> views = torch.eye(4)
    >>> alike, mixed = contrastive_loss(views, views), contrastive_loss(views, views.roll(1, 0))
    >>> print(f"{alike:.2f} {mixed:.2f}")
    0.59 2.59
    """
    views = normalize(torch.cat([one, other]))
    similarity = views @ views.T / temperature
    similarity.fill_diagonal_(-torch.inf)  # not itself
    partner = torch.arange(len(views), device=views.device).roll(len(one))
    return cross_entropy(similarity, partner)


def feature_distance(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Return 1 - cos between the features of two networks, the mean over samples; no gradient flows to the teacher."""
    return (1 - cosine_similarity(student, teacher.detach())).mean()


class Adapter(nn.Module):
    """A bottleneck, scale * up(dropout(relu(down(x)))), that begins as 0 (AdaptFormer [1]_).

    Parameters
    ----------
    width : int
        Of what it reads and gives.
    bottleneck : int, default=64
    scale, dropout : float, default=0.1
    generator : torch.Generator
        Of the initial weights and of the dropout.

    References
    ----------
    .. [1] Chen et al. "AdaptFormer: Adapting Vision Transformers for Scalable Visual Recognition." NeurIPS 2022.
    """

    def __init__(
        self, width: int, bottleneck: int = 64, *, scale: float = 0.1, dropout: float = 0.1, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.scale, self.dropout, self.generator = scale, dropout, generator
        self.down = nn.Parameter(torch.empty(bottleneck, width))
        nn.init.uniform_(self.down, -(width**-0.5), width**-0.5, generator=generator)
        self.down_bias = nn.Parameter(torch.zeros(bottleneck))
        self.up = nn.Parameter(torch.zeros(width, bottleneck))
        self.up_bias = nn.Parameter(torch.zeros(width))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return what is added to tokens of shape (n, t, width)."""
        inner = linear(tokens, self.down, self.down_bias).relu()
        if self.training:
            kept = send(torch.rand(inner.shape, generator=self.generator), inner.device) >= self.dropout
            inner = inner * kept / (1 - self.dropout)
        return self.scale * linear(inner, self.up, self.up_bias)


class AdaptedViT(nn.Module):
    """A frozen ViT with an adapter beside the MLP of every block, which reads what the block's second norm reads.

    Parameters
    ----------
    vit : VisionTransformer
        Its weights stay as they are. Several adapted ones may share it: adapters are at work during `forward` alone.
    generator : torch.Generator
        Of the adapters.
    bottleneck : int, default=64
    """

    def __init__(self, vit: VisionTransformer, generator: torch.Generator, bottleneck: int = 64) -> None:
        super().__init__()
        self.vit = vit.requires_grad_(False)
        self.adapters = nn.ModuleList(Adapter(vit.width, bottleneck, generator=generator) for _ in vit.blocks)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the class tokens, shape (n, width)."""
        hooks = [
            hook
            for block, adapter in zip(self.vit.blocks, self.adapters, strict=True)
            for hook in _beside_mlp(block, adapter)
        ]
        try:
            tokens: torch.Tensor = self.vit(images)
        finally:
            for hook in hooks:
                hook.remove()
        return tokens


def _beside_mlp(block: nn.Module, adapter: nn.Module) -> list[RemovableHandle]:
    """Let a block add what an adapter makes of the tokens between its attention and its second norm."""
    read: list[torch.Tensor] = []

    def keep(_: nn.Module, inputs: tuple[torch.Tensor]) -> None:
        read.append(inputs[0])

    def add(_: nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
        adapted: torch.Tensor = output + adapter(read.pop())
        return adapted

    norm = block.norm2
    assert isinstance(norm, nn.Module)
    return [norm.register_forward_pre_hook(keep), block.register_forward_hook(add)]
