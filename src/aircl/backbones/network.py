"""A torch module as a frozen backbone of images."""

from __future__ import annotations

import torch
from torch import nn

from aircl.backbones.backbone import Features
from aircl.backbones.device import to_array
from aircl.backbones.frozen import FrozenModule
from aircl.backbones.transform import ImageTransform
from aircl.inputs import Batch, Kind


class Network(FrozenModule):
    """A module from images to features, and the transform before it.

    Parameters
    ----------
    name : str
    module : nn.Module
        From a float32 tensor of shape (n, 3, size, size) to one of shape (n, width). It is put into evaluation mode
        and its parameters stop asking for gradients.
    transform : ImageTransform
    width : int
        Number of features.
    architecture : str
        What the weights mean; part of the fingerprint.
    batch_size : int, default=32

    Attributes
    ----------
    module : nn.Module
        For methods that train or prompt it: ``module(prepare(images))`` is differentiable, `forward` is not.
    transform : ImageTransform
    """

    kinds: tuple[Kind, ...] = ("images",)

    def __init__(
        self,
        name: str,
        module: nn.Module,
        transform: ImageTransform,
        *,
        width: int,
        architecture: str,
        batch_size: int = 32,
    ) -> None:
        parts = {"architecture": architecture, "transform": transform.parameters()}
        super().__init__(name, module, parts, width=width, batch_size=batch_size)
        self.transform = transform
        # The stubs of PyTorch do not know this argument.
        self.module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def prepare(self, inputs: Batch) -> torch.Tensor:
        """Transform a batch of images to a tensor of shape (n, 3, size, size), in the memory of the CPU."""
        return self.pinned(self.transform(inputs))

    def forward(self, prepared: torch.Tensor) -> Features:
        """Return the features, a float32 array of shape (n, width)."""
        return to_array(self.compute(prepared))
