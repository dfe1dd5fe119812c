"""Where torch computes: the one place that turns a name into a device, and the two ways there and back.

Samples, random numbers and what is kept between batches stay in the memory of the CPU. Networks, and what they compute,
are on the device: a module sends what it is given to where its weights are.
"""

from __future__ import annotations

import os
from typing import Any

import numpy.typing as npt
import torch

VARIABLE = "AIRCL_DEVICE"
# Where samples, random numbers and what is kept between batches are, whatever the device.
HOST = torch.device("cpu")


def choose_device(name: str | torch.device | None = None) -> torch.device:
    """Return the device of a name.

    Parameters
    ----------
    name : str or torch.device, optional
        "cpu", "cuda", "cuda:1", "mps", or "auto": CUDA if there is a device, else MPS, else the CPU. By default what
        the environment variable AIRCL_DEVICE says, else "auto". A device is taken as it is.

    Returns
    -------
    device : torch.device
    """
    if isinstance(name, torch.device):
        return name
    name = name or os.environ.get(VARIABLE) or "auto"
    there = {"cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available()), "cpu": 1}
    if name == "auto":
        return torch.device(next(kind for kind, count in there.items() if count))
    kind, colon, number = name.partition(":")
    if kind not in there or (colon and not number.isdecimal()):
        raise ValueError(f"device={name!r} is none. Use auto, cpu, cuda, cuda:NUMBER or mps.")
    if int(number or 0) >= there[kind]:
        found = ", ".join(f"{count} {kind}" for kind, count in there.items() if count)
        raise ValueError(
            f"device={name!r} is not here, or torch was built without it: it sees {found}. Use auto or cpu."
        )
    return torch.device(name)


def send(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return a tensor on a device; to CUDA it is copied from pinned memory, without waiting."""
    if tensor.device == device:
        return tensor
    if device.type == "cuda" and tensor.device.type == "cpu" and not tensor.is_pinned():
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=device.type == "cuda")


def to_array(tensor: torch.Tensor) -> npt.NDArray[Any]:
    """Return a tensor as an array, without its history."""
    array: npt.NDArray[Any] = tensor.detach().cpu().numpy()
    return array
