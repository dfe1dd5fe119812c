"""Herding: few samples whose mean is near that of all."""

from __future__ import annotations

import torch


def herd(features: torch.Tensor, mean: torch.Tensor, n: int) -> torch.Tensor:
    """Return samples in the order in which they bring the mean of those chosen so far nearest to a given one.

    Parameters
    ----------
    features : tensor of shape (m, d)
    mean : tensor of shape (d,)
        To be approached, such as the mean of the features.
    n : int
        How many samples are wanted; all m if that is more than there are.

    Returns
    -------
    places : int64 tensor of shape (min(n, m),)
        None twice. O(n m d).

    References
    ----------
    .. [1] Rebuffi et al. "iCaRL: Incremental Classifier and Representation Learning." CVPR 2017, Algorithm 4.

    Examples
    --------
    >>> import torch
    >>> from aircl.methods.gradient.herding import herd
    >>> features = torch.tensor([[0.0], [10.0], [4.0], [5.0]])
    >>> herd(features, features.mean(0), 3)  # means 5, 4.5 and 4.75
    tensor([3, 2, 1])
    """
    chosen: list[int] = []
    total = torch.zeros_like(mean)
    taken = torch.zeros(len(features), dtype=torch.bool)
    for number in range(1, min(n, len(features)) + 1):
        distance = (mean - (total + features) / number).square().sum(1)
        place = int(distance.masked_fill(taken, torch.inf).argmin())
        chosen.append(place)
        taken[place] = True
        total = total + features[place]
    return torch.tensor(chosen, dtype=torch.int64)
