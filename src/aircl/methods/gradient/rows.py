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
    labels = to_array(rows["labels"]) if rows else np.zeros(0, np.int64)
    return {int(label): torch.from_numpy(np.flatnonzero(labels == label)) for label in np.unique(labels)}


def balanced_places(labels: torch.Tensor, n: int, generator: torch.Generator) -> torch.Tensor:
    """Return the places of n samples, as many of one class as of another: classes in turn, then a sample of the class.

    Parameters
    ----------
    labels : int64 tensor of shape (m,)
        Of one sample at least.
    n : int
        It may exceed m: the samples of a small class are drawn more than once.
    generator : torch.Generator

    Examples
    --------
    >>> import torch
    >>> from aircl.methods.gradient.rows import balanced_places
    >>> labels = torch.tensor([0] * 90 + [1] * 9 + [2])
    >>> labels[balanced_places(labels, 30, torch.Generator().manual_seed(0))].bincount()
    tensor([10, 10, 10])
    """
    _, order, counts = np.unique(to_array(labels), return_inverse=True, return_counts=True)
    members = torch.from_numpy(np.argsort(order, kind="stable"))
    sizes = torch.from_numpy(counts)
    rounds = [torch.randperm(len(sizes), generator=generator) for _ in range(-(-n // len(sizes)))]
    classes = torch.cat(rounds)[:n] if rounds else torch.zeros(0, dtype=torch.int64)
    # floor(u m) in double precision is uniform on 0..m-1 for all that matters.
    which = (torch.rand(n, generator=generator, dtype=torch.float64) * sizes[classes]).long()
    return members[(sizes.cumsum(0) - sizes)[classes] + which]


def pieces(tensor: torch.Tensor, size: int) -> Iterator[torch.Tensor]:
    """Yield a tensor in pieces of so many rows; nothing if it has none."""
    for start in range(0, len(tensor), size):
        yield tensor[start : start + size]


def nothing() -> Rows:
    """Return no samples."""
    return {}
