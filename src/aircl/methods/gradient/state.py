"""The state of a method as two files: tensors as safetensors, the rest as JSON. Nothing in them is executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from aircl.backbones.device import HOST, send, to_array

__all__ = ["HOST", "read_state", "send", "sent_to", "to_array", "write_state"]

TENSORS, OTHERS = "tensors.safetensors", "state.json"
# In the JSON file, a mapping with one of these keys alone stands for the tensor or the array of that name, for pairs of
# numbers and values, or for a set.
TENSOR, ARRAY, NUMBERED, MEMBERS = "tensor", "array", "numbered", "members"


def write_state(directory: Path, state: dict[str, Any]) -> None:
    """Write nested dictionaries, lists and sets of tensors, arrays, numbers, strings, booleans and None.

    Parameters
    ----------
    directory : Path
    state : dict
        Keys are strings, those of inner dictionaries may be whole numbers.
    """
    tensors: dict[str, torch.Tensor] = {}
    text = json.dumps(_without_tensors(state, "", tensors), indent=1)
    save_file(tensors, directory / TENSORS)
    (directory / OTHERS).write_text(text, encoding="utf-8")


def read_state(directory: Path) -> dict[str, Any]:
    """Read what `write_state` wrote."""
    tensors = load_file(directory / TENSORS)
    state: dict[str, Any] = _with_tensors(json.loads((directory / OTHERS).read_text(encoding="utf-8")), tensors)
    return state


def sent_to(device: torch.device, value: Any) -> Any:
    """Return a state with its tensors on a device: one that computations go on with."""
    if isinstance(value, torch.Tensor):
        return send(value, device)
    if isinstance(value, dict):
        return {key: sent_to(device, item) for key, item in value.items()}
    return [sent_to(device, item) for item in value] if isinstance(value, list) else value


def _without_tensors(value: Any, place: str, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, np.ndarray):
        return {ARRAY: _without_tensors(torch.from_numpy(value), place, tensors)[TENSOR]}
    if isinstance(value, torch.Tensor):
        # A copy of its own: safetensors refuses tensors that share their memory.
        tensors[place] = send(value.detach().clone().contiguous(), HOST)
        return {TENSOR: place}
    if isinstance(value, set):
        return {MEMBERS: sorted(value)}
    if isinstance(value, dict):
        inner = {
            key: _without_tensors(item, f"{place}/{key}" if place else key, tensors) for key, item in value.items()
        }
        return {NUMBERED: list(inner.items())} if any(isinstance(key, int) for key in inner) else inner
    if isinstance(value, list | tuple):
        return [_without_tensors(item, f"{place}/{number}", tensors) for number, item in enumerate(value)]
    return value


def _with_tensors(value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, list):
        return [_with_tensors(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    mark, held = next(iter(value.items())) if len(value) == 1 else (None, None)
    if mark == TENSOR and isinstance(held, str):
        return tensors[held]
    if mark == ARRAY and isinstance(held, str):
        return to_array(tensors[held])
    if mark == MEMBERS and isinstance(held, list):
        return set(held)
    if mark == NUMBERED and isinstance(held, list):
        return {key: _with_tensors(item, tensors) for key, item in held}
    return {key: _with_tensors(item, tensors) for key, item in value.items()}
