"""A torch module as a frozen backbone."""

from __future__ import annotations

import torch
from torch import nn

from aircl.backbones.backbone import Features
from aircl.backbones.fingerprint import fingerprint
from aircl.backbones.transform import ImageTransform
from aircl.inputs import Batch, Kind


class Network:
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
    device : str, default="cpu"
        Where to compute.

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
        device: str = "cpu",
    ) -> None:
        module.eval().requires_grad_(False)
        self.name = name
        self.width = width
        self.batch_size = batch_size
        self.fingerprint = fingerprint(
            module.state_dict(), {"architecture": architecture, "transform": transform.parameters()}
        )
        self.transform = transform
        # The stubs of PyTorch do not know this argument.
        self.module = module.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._device = device

    def prepare(self, inputs: Batch) -> torch.Tensor:
        """Transform a batch of images to a tensor of shape (n, 3, size, size)."""
        return self.transform(inputs)

    def forward(self, prepared: torch.Tensor) -> Features:
        """Return the features, a float32 array of shape (n, width)."""
        with torch.inference_mode():
            features: Features = self.module(prepared.to(self._device)).float().cpu().numpy()
        return features
