"""A memory of a few samples for each class, those that stand for it best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn.functional import normalize

from aircl.methods.gradient.herding import herd
from aircl.methods.gradient.reservoir import draw
from aircl.methods.gradient.rows import Rows, by_class, count, join, nothing, take

# From inputs to features, shape (n, d).
Encoder = Callable[[torch.Tensor], torch.Tensor]


class Exemplars:
    """Exemplars of each class, chosen by herding on features of length 1.

    Parameters
    ----------
    quota : int
        Samples of a class, at most.

    Attributes
    ----------
    rows : Rows
    """

    def __init__(self, quota: int) -> None:
        self.quota = quota
        self.rows: Rows = nothing()

    def __len__(self) -> int:
        return count(self.rows)

    def update(self, rows: Rows, encode: Encoder, means: Mapping[int, torch.Tensor] | None = None) -> None:
        """Choose anew for the classes of new samples, among these and the old exemplars.

        Parameters
        ----------
        rows : Rows
        encode : callable
            From inputs to features.
        means : mapping of int to tensor, optional
            What is to be approached for each class; by default the mean of the samples at hand.
        """
        touched = by_class(rows)
        stay, candidates = nothing(), rows
        if len(self):
            again = torch.isin(self.rows["labels"], torch.tensor(list(touched)))
            stay = take(self.rows, torch.nonzero(~again).flatten())
            candidates = join([take(self.rows, torch.nonzero(again).flatten()), rows])
        features = normalize(encode(candidates["inputs"]))
        kept = []
        for label, places in by_class(candidates).items():
            own = features[places]
            kept.append(places[herd(own, own.mean(0) if means is None else means[label], self.quota)])
        self.rows = join([stay, take(candidates, torch.cat(kept))])

    def means(self, encode: Encoder) -> tuple[list[int], torch.Tensor]:
        """Return the classes, and the mean of each one's exemplars at length 1, shape (C, d)."""
        features = normalize(encode(self.rows["inputs"]))
        classes = by_class(self.rows)
        return list(classes), normalize(torch.stack([features[places].mean(0) for places in classes.values()]))

    def draw(self, n: int, generator: torch.Generator) -> Rows:
        """Return n different exemplars at random; all, if there are no more."""
        return draw(self.rows, n, generator)

    def state(self) -> dict[str, Any]:
        """Return the samples."""
        return {"rows": self.rows}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.rows = state["rows"]
