"""Samples as they are trained on and kept: tensors side by side, one row each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from aircl.backbones.device import to_array

# "inputs" (float32 features, or uint8 pixels of shape (n, 3, size, size)), "labels" (int64, as the stream has them),
# and whatever else a method notes of each sample. All tensors have the same length.
Rows = dict[str, torch.Tensor]


def count(rows: Rows) -> int:
    """Return the number of samples."""
    return len(rows["labels"]) if rows else 0


def take(rows: Rows, places: torch.Tensor) -> Rows:
    """Return copies of some samples."""
    return {name: tensor[places] for name, tensor in rows.items()}


def join(parts: Sequence[Rows]) -> Rows:
    """Return samples one after the other; what one part lacks is left out of all."""
    parts = [part for part in parts if count(part)]
    if len(parts) < 2:
        return dict(parts[0]) if parts else nothing()
    names = [name for name in parts[0] if all(name in part for part in parts)]
    return {name: torch.cat([part[name] for part in parts]) for name in names}


def by_class(rows: Rows) -> dict[int, torch.Tensor]:
    """Return the places of the samples of each class, by label, sorted."""
    labels = to_array(rows["labels"])
    return {int(label): torch.from_numpy(np.flatnonzero(labels == label)) for label in np.unique(labels)}


def pieces(tensor: torch.Tensor, size: int) -> Iterator[torch.Tensor]:
    """Yield a tensor in pieces of so many rows; nothing if it has none."""
    for start in range(0, len(tensor), size):
        yield tensor[start : start + size]


def nothing() -> Rows:
    """Return no samples."""
    return {}
