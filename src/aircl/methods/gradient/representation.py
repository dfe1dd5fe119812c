"""Training of what lies below the head: by contrast, by a teacher's features, by small adapters."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, cos, pi

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, cross_entropy, normalize

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
    """
    optimiser = Optimiser([{"params": parameters, "lr": learning_rate}], kind, clip=1.0)
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


class AdaptedViT(nn.Module):
    """A frozen ViT with a small bottleneck beside the MLP of every block (AdaptFormer [1]_).

    Parameters
    ----------
    vit : VisionTransformer
        Its weights stay as they are.
    width : int, default=16
        Of the bottlenecks.
    generator : torch.Generator, optional
        Of the initial weights; the way up begins at zero, so that nothing is changed at first.

    References
    ----------
    .. [1] Chen et al. "AdaptFormer: Adapting Vision Transformers for Scalable Visual Recognition." NeurIPS 2022.
    """

    def __init__(self, vit: VisionTransformer, width: int = 16, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.vit = vit.requires_grad_(False)
        self.down = nn.ParameterList(
            torch.randn(vit.width, width, generator=generator) / vit.width**0.5 for _ in vit.blocks
        )
        self.up = nn.ParameterList(torch.zeros(width, vit.width) for _ in vit.blocks)
        for number, block in enumerate(vit.blocks):
            mlp = block.mlp
            assert isinstance(mlp, nn.Module)
            mlp.register_forward_hook(self._beside(number))

    def _beside(self, number: int) -> Callable[..., torch.Tensor]:
        def add(_: nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
            adapted: torch.Tensor = output + (inputs[0] @ self.down[number]).relu() @ self.up[number]
            return adapted

        return add

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the class tokens, shape (n, width)."""
        tokens: torch.Tensor = self.vit(images)
        return tokens
