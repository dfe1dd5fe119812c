"""Where torch computes: one place that turns a name into a device."""

from __future__ import annotations

import torch


def choose_device(name: str = "auto") -> torch.device:
    """Return the device of a name.

    Parameters
    ----------
    name : str, default="auto"
        "cpu", "cuda", "cuda:1", "mps", or "auto": CUDA if there is a device, else MPS, else the CPU.

    Returns
    -------
    device : torch.device
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    kind, _, number = name.partition(":")
    if name == "auto":
        return torch.device(next(kind for kind, found in there.items() if found))
    if kind not in there or not (number.isdecimal() if ":" in name else True):
        raise ValueError(f"device={name!r} is none. Use auto, cpu, cuda, cuda:NUMBER or mps.")
    count = torch.cuda.device_count() if kind == "cuda" else int(there[kind])
    if int(number or 0) >= count:
        found = ", ".join(kind for kind, found in there.items() if found)
        raise ValueError(
            f"device={name!r} is not on this machine, or torch was built without it: it sees {found}. Use auto or cpu."
        )
    return torch.device(name)
