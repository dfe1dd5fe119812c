"""Shares of the classes in what is trained on, and what they do to logits."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from math import inf, log

import torch

from aircl.backbones.device import HOST
from aircl.methods.gradient.stateful import Stateful

Counts = Mapping[int, float]


def log_prior(counts: Counts, classes: Sequence[int]) -> torch.Tensor:
    """Return the logarithm of each class's share of the samples that were counted.

    Parameters
    ----------
    counts : mapping of int to float
        Samples by label, or their weights.
    classes : sequence of int
        The label of each column.

    Returns
    -------
    log_prior : tensor of shape (C,)
        Minus infinity for a class without samples: added to logits, it masks the column.

    Examples
    --------
    >>> from aircl.methods.gradient.prior import log_prior
    >>> log_prior({7: 3, 5: 1}, [5, 6, 7]).exp()
    tensor([0.2500, 0.0000, 0.7500])
    """
    total = sum(counts.get(label, 0.0) for label in classes)
    logs = [log(counts[label] / total) if counts.get(label) else -inf for label in classes]
    return torch.tensor(logs, device=HOST)


class LabelWindow(Stateful):
    """Labels of the samples of the last steps, counted.

    Parameters
    ----------
    steps : int
        How many steps are counted, the present one among them.

    Examples
    --------
    >>> from aircl.methods.gradient.prior import LabelWindow
    >>> window = LabelWindow(2)
    >>> for labels in ([0, 0, 0, 1], [1, 1], [2, 1]):
    ...     window.note(labels)
    >>> dict(window.counts())
    {1: 3.0, 2: 1.0}
    """

    kept = "_steps"

    def __init__(self, steps: int) -> None:
        self._steps: deque[dict[int, float]] = deque(maxlen=steps)

    def note(self, labels: Sequence[int], weights: Sequence[float] | None = None) -> None:
        """Count the labels of one more step, each by what its sample weighs in the loss."""
        counts: dict[int, float] = {}
        for label, weight in zip(labels, weights or [1.0] * len(labels), strict=True):
            counts[label] = counts.get(label, 0.0) + weight
        self._steps.append(counts)

    def counts(self) -> Counts:
        """Return the counts of all steps in the window."""
        total: dict[int, float] = {}
        for counts in self._steps:
            for label, n in counts.items():
                total[label] = total.get(label, 0.0) + n
        return total
