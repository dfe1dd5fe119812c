"""Small adapters beside the MLPs of a frozen ViT, and how they learn a few classes."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear, normalize
from torch.utils.hooks import RemovableHandle

from aircl.backbones.backbone import Backbone
from aircl.backbones.device import HOST, send
from aircl.backbones.network import Network
from aircl.backbones.vit import VisionTransformer
from aircl.methods.gradient.options import Augment
from aircl.methods.gradient.representation import train
from aircl.methods.gradient.rows import Rows
from aircl.methods.gradient.views import ImageViews
from aircl.methods.method import IncompatibleError


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
        It stays as it is and is no part of this module's state. Several adapted ones may share it: adapters are at work
        during `forward` alone.
    generator : torch.Generator
        Of the adapters.
    bottleneck : int, default=64
    """

    def __init__(self, vit: VisionTransformer, generator: torch.Generator, bottleneck: int = 64) -> None:
        super().__init__()
        self._shared = (vit,)  # in a tuple, where `nn.Module` does not find it
        self.adapters = nn.ModuleList(Adapter(vit.width, bottleneck, generator=generator) for _ in vit.blocks)

    @property
    def vit(self) -> VisionTransformer:
        """The ViT without adapters."""
        return self._shared[0]

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

    def learn_classes(
        self,
        rows: Rows,
        views: ImageViews,
        generator: torch.Generator,
        *,
        augment: Augment = "crop",
        epochs: int,
        batch_size: int,
        kind: str = "sgd",
        learning_rate: float,
        momentum: float = 0.9,
    ) -> AdaptedViT:
        """Train the adapters to tell the classes of some images apart, and freeze them; return the module itself.

        The loss is the cross-entropy of a learned scale times the cosines of features with a row for each class, which
        are thrown away; the rate falls along a cosine, with a weight decay of 5e-4.

        Parameters
        ----------
        rows : Rows
            Pixels and labels.
        views : ImageViews
        generator : torch.Generator
        augment : bool, "crop" or "rand"
            What is done to images.
        epochs, batch_size, kind, learning_rate, momentum
            As `train` takes them.
        """
        one, pixels = next(self.parameters()), rows["inputs"]
        device = one.device
        classes, codes = torch.unique(rows["labels"], return_inverse=True)
        head = torch.empty(len(classes), self.vit.width, dtype=one.dtype, device=HOST)  # drawn where the generator is
        nn.init.uniform_(head, -(self.vit.width**-0.5), self.vit.width**-0.5, generator=generator)
        head = nn.Parameter(send(head, device))
        scale = nn.Parameter(torch.ones((), device=device))

        def loss(places: torch.Tensor) -> torch.Tensor:
            seen = pixels[places]
            features = self(send(views.changed(seen, generator, augment) if augment else views.plain(seen), device))
            return cross_entropy(scale * linear(normalize(features), normalize(head)), send(codes[places], device))

        self.train()
        train(
            loss, [*self.parameters(), head, scale], len(pixels), generator, epochs=epochs, batch_size=batch_size,
            kind=kind, learning_rate=learning_rate, momentum=momentum, clip=None, weight_decay=5e-4,
        )  # fmt: skip
        return self.eval().requires_grad_(False)


def need_vit(backbone: Backbone | None, what: str) -> VisionTransformer:
    """Return the ViT that a backbone is, or decline: `what` says what goes into it, such as "prompts"."""
    module = backbone.module if isinstance(backbone, Network) else None
    if not isinstance(module, VisionTransformer):
        raise IncompatibleError(
            f"{what} enter a plain ViT: base:vit-micro, which is trained on the first phase, dinov2-s-mri, "
            "checkpoint:FILE with the weights of a ViT, DeiT or DINOv2, or one of these of timm: or hf:. It got "
            f"{'none' if backbone is None else repr(backbone.name)}."
        )
    return module


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
