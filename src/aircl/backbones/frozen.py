"""A torch module that does not learn: on a device, in a precision, from a batch to an array of features."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Literal, Self, get_args

import torch
from torch import nn

from aircl.backbones.device import choose_device, send
from aircl.backbones.fingerprint import fingerprint

Precision = Literal["float32", "bfloat16"]


class FrozenModule:
    """What backbones of images and of texts share.

    Parameters
    ----------
    name : str
    module : nn.Module
        It is put into evaluation mode and its parameters stop asking for gradients.
    parts : dict
        What the features depend on beside the weights, for the fingerprint.
    width : int
        Number of features.
    batch_size : int

    Attributes
    ----------
    device : torch.device
        Where the module is: the CPU until `to` says otherwise.
    precision : {"float32", "bfloat16"}
    """

    def __init__(self, name: str, module: nn.Module, parts: dict[str, Any], *, width: int, batch_size: int) -> None:
        module.eval().requires_grad_(False)
        self.name = name
        self.width = width
        self.batch_size = batch_size
        self.fingerprint = fingerprint(module.state_dict(), parts)
        self.module = module
        self.device = torch.device("cpu")
        self.precision: Precision = "float32"

    def to(self, device: str | torch.device | None = None, precision: str = "float32") -> Self:
        """Move the module to a device, and choose how exactly it computes.

        Parameters
        ----------
        device : str or torch.device, optional
            "auto", "cpu", "cuda", "cuda:1" or "mps"; see `aircl.backbones.device.choose_device`.
        precision : {"float32", "bfloat16"}, default="float32"
            With bfloat16 matrix products have 8 bits: other features, under another fingerprint, and faster where the
            device has instructions for it. Weights stay float32.
        """
        if precision not in get_args(Precision):
            raise ValueError(f"precision={precision!r} is neither of {', '.join(get_args(Precision))}.")
        if precision != self.precision:
            if self.precision != "float32":
                raise ValueError(f"{self.name} computes in {self.precision} already. Create it again.")
            self.precision = "bfloat16"
            self.fingerprint = fingerprint({}, {"of": self.fingerprint, "precision": precision})
        self.device = choose_device(device)
        self.module.to(self.device)
        return self

    def compute(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the features of a prepared batch as a float32 tensor on the device, without gradients."""
        half = self.precision == "bfloat16"
        with torch.inference_mode(), torch.autocast(self.device.type, torch.bfloat16) if half else nullcontext():
            features: torch.Tensor = self.module(send(batch, self.device)).float()
        return features

    def pinned(self, batch: torch.Tensor) -> torch.Tensor:
        """Return a batch in memory that CUDA copies from without waiting, if that is where it goes."""
        return batch.pin_memory() if self.device.type == "cuda" else batch
