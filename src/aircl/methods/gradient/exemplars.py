"""A memory of a few samples for each class, those that stand for it best."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import normalize

from aircl.methods.gradient.herding import herd
from aircl.methods.gradient.memory import Memory
from aircl.methods.gradient.rows import Rows, by_class, join, nothing, take

# From inputs to features, shape (n, d).
Encoder = Callable[[torch.Tensor], torch.Tensor]


class Exemplars(Memory):
    """Exemplars of each class, chosen by herding on features of length 1.

    Parameters
    ----------
    quota : int
        Samples of a class, at most.
    encode : callable
        From inputs to features.
    running : bool, default=False
        Approach the mean of all samples of a class so far, of which the sum is kept, not of those at hand: for streams
        that show a class in many small batches.

    Attributes
    ----------
    rows : Rows
    """

    kept = "_sums _counts"

    def __init__(self, quota: int, encode: Encoder, *, running: bool = False) -> None:
        super().__init__()
        self.quota, self.encode, self.running = quota, encode, running
        # For each class the sum of features of length 1, and how many they are.
        self._sums: dict[int, torch.Tensor] = {}
        self._counts: dict[int, int] = {}

    def add(self, rows: Rows, generator: torch.Generator) -> None:
        """Choose again for the classes of new samples, among these and the old exemplars; nothing is random."""
        new = by_class(rows)
        stay, candidates = nothing(), rows
        if len(self):
            again = torch.isin(self.rows["labels"], torch.tensor(list(new)))
            stay = take(self.rows, torch.nonzero(~again).flatten())
            candidates = join([take(self.rows, torch.nonzero(again).flatten()), rows])
        features = normalize(self.encode(candidates["inputs"]))
        fresh = features[len(features) - len(rows["labels"]) :]
        kept = []
        for label, places in by_class(candidates).items():
            own = features[places]
            mean = self._running_mean(label, fresh[new[label]]) if self.running else own.mean(0)
            kept.append(places[herd(own, mean, self.quota)])
        self.rows = join([stay, take(candidates, torch.cat(kept))])

    def means(self) -> tuple[list[int], torch.Tensor]:
        """Return the classes, and the mean of each one's exemplars at length 1, shape (C, d)."""
        features = normalize(self.encode(self.rows["inputs"]))
        classes = by_class(self.rows)
        return list(classes), normalize(torch.stack([features[places].mean(0) for places in classes.values()]))

    def _running_mean(self, label: int, features: torch.Tensor) -> torch.Tensor:
        self._sums[label] = features.sum(0) + self._sums.get(label, 0)
        self._counts[label] = len(features) + self._counts.get(label, 0)
        return self._sums[label] / self._counts[label]
