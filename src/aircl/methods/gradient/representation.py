"""Training of what lies below the head: by contrast, or by a teacher's features."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, cos, pi

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, cross_entropy, normalize

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
    momentum: float = 0.9,
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
    momentum : float, default=0.9
        Of SGD.
    clip : float or None, default=1.0
        Longest gradient.
    weight_decay : float, default=0.0
    """
    groups = [{"params": parameters, "lr": learning_rate}]
    optimiser = Optimiser(groups, kind, momentum=momentum, clip=clip, weight_decay=weight_decay)
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


class LayerFeatures(nn.Module):
    """Features of several depths of a network, side by side: its own, and before them those inside its blocks.

    Parameters
    ----------
    trunk : nn.Module
        A network from images to features, with `blocks`: a `ResNet32` or a `VisionTransformer`.
    parts : int, default=3
        The blocks are cut into so many parts of equal length; the last block of each has a say. For ResNet-32 these are
        its three stages.

    Notes
    -----
    Maps are averaged over places; of tokens, the class token is taken. The last part is what the network returns.

    Examples
    --------
    >>> import torch
    >>> from aircl.backbones.resnet import ResNet32
    >>> from aircl.methods.gradient.representation import LayerFeatures
    >>> LayerFeatures(ResNet32()).eval()(torch.zeros(2, 3, 32, 32)).shape  # 16 + 32 + 64
    torch.Size([2, 112])
    """

    def __init__(self, trunk: nn.Module, parts: int = 3) -> None:
        super().__init__()
        self.trunk, self.parts = trunk, parts

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return features of shape (n, width of all parts) for images of shape (n, 3, height, width)."""
        blocks = list(self.trunk.get_submodule("blocks").children())
        inner: list[torch.Tensor] = []

        def note(block: nn.Module, inputs: object, output: torch.Tensor) -> None:
            inner.append(output.mean((2, 3)) if output.dim() == 4 else output[:, 0])

        ends = [blocks[len(blocks) * part // self.parts - 1] for part in range(1, self.parts)]
        hooks = [block.register_forward_hook(note) for block in ends]
        try:
            own = self.trunk(images)
        finally:
            for hook in hooks:
                hook.remove()
        return torch.cat([*inner, own], dim=1)


def feature_distance(student: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Return 1 - cos between the features of two networks, the mean over samples; no gradient flows to the teacher."""
    return (1 - cosine_similarity(student, teacher.detach())).mean()
