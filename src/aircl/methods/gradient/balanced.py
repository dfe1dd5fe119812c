"""A memory that has as many samples of one class as of another, chosen over the range of their uncertainty."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from aircl.methods.gradient.memory import BoundedMemory
from aircl.methods.gradient.rows import Rows, by_class, count, join, take


class BalancedMemory(BoundedMemory):
    """A memory that the classes share fairly.

    Attributes
    ----------
    rows : Rows
        With "uncertainty", which decides what stays.
    """

    def add(self, rows: Rows, generator: torch.Generator) -> None:
        """Offer samples with "uncertainty"; of those at hand, each class keeps its fair share, equidistant ones."""
        candidates = join([self.rows, rows])
        if count(candidates) > self.size:
            classes = by_class(candidates)
            shares = fair_shares({label: len(places) for label, places in classes.items()}, self.size)
            kept = [
                places[equidistant(candidates["uncertainty"][places], shares[label])]
                for label, places in classes.items()
            ]
            candidates = take(candidates, torch.cat(kept).sort().values)
        self.rows = candidates


def fair_shares(counts: Mapping[int, int], size: int) -> dict[int, int]:
    """Return how many samples each class may keep: equally many, but for classes that have fewer.

    Parameters
    ----------
    counts : mapping of int to int
        Samples at hand, by class.
    size : int
        Of the memory.

    Returns
    -------
    shares : dict of int to int
        Their sum is the size, or all samples if these are fewer. Classes that do not keep all they have differ by one
        sample at most.

    Examples
    --------
    >>> from aircl.methods.gradient.balanced import fair_shares
    >>> fair_shares({0: 500, 1: 2, 2: 30, 3: 30}, 40)
    {0: 13, 1: 2, 2: 13, 3: 12}
    """
    shares: dict[int, int] = {}
    left = size
    # Small classes first: what they do not need is for the others.
    poorest = sorted(counts, key=lambda label: (counts[label], -label))
    for number, label in enumerate(poorest):
        shares[label] = min(counts[label], left // (len(poorest) - number))
        left -= shares[label]
    return {label: shares[label] for label in counts}


def equidistant(uncertainty: torch.Tensor, n: int) -> torch.Tensor:
    """Return the places of n samples spread over the range from the most uncertain to the most certain.

    The samples are sorted by falling uncertainty and cut into n stretches of equal length; the first of each stretch,
    its most uncertain one, is picked. Of equals, the earlier comes first.

    Parameters
    ----------
    uncertainty : tensor of shape (m,)
    n : int
        At most m.

    Examples
    --------
    >>> import torch
    >>> from aircl.methods.gradient.balanced import equidistant
    >>> equidistant(torch.tensor([0.1, 0.9, 0.5, 0.3, 0.7, 0.2]), 3)
    tensor([1, 2, 5])
    """
    order = uncertainty.argsort(descending=True, stable=True)
    return order[torch.arange(n) * len(order) // max(n, 1)]
