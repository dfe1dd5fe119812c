"""A linear classifier that grows by a row whenever a class is new, and masks for its logits."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn
from torch.nn.functional import linear, normalize


class GrowingHead(nn.Module):
    """A linear layer over the classes that were seen, in the order in which they came.

    New rows are zero. A class that was never seen has no row, which is the same as a mask on its logit: it takes no
    part in the softmax, has no gradient, and is never predicted.

    Parameters
    ----------
    width : int
        Number of features.

    Attributes
    ----------
    classes : list of int
        The label of each row.

    Examples
    --------
    >>> import torch
    >>> from aircl.methods.gradient.head import GrowingHead
    >>> head = GrowingHead(4)
    >>> head.grow([7, 3, 7])
    >>> head(torch.ones(2, 4)).shape, head.columns(torch.tensor([3, 7, 3]))
    (torch.Size([2, 2]), tensor([1, 0, 1]))
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(0, width))
        self.bias = nn.Parameter(torch.zeros(0))
        self.classes: list[int] = []
        self._column: dict[int, int] = {}

    def grow(self, labels: Iterable[int]) -> None:
        """Add a row for each label that is new. The parameters stay the same objects; `Optimiser.adapt` follows."""
        new = [label for label in dict.fromkeys(labels) if label not in self._column]
        if not new:
            return
        for label in new:
            self._column[label] = len(self.classes)
            self.classes.append(label)
        for parameter in self.growing():
            added = parameter.new_zeros(len(new), *parameter.shape[1:])
            parameter.data = torch.cat([parameter.data, added])
            parameter.grad = None

    def growing(self) -> list[nn.Parameter]:
        """Return what has a row for each class."""
        return [self.weight, self.bias]

    def columns(self, labels: torch.Tensor) -> torch.Tensor:
        """Return which column of the logits each label has."""
        return torch.tensor(
            [self._column[label] for label in labels.tolist()], dtype=torch.int64, device=self.weight.device
        )

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return logits of shape (n, C) for features of shape (n, width)."""
        return linear(features, self.weight, self.bias)


class CosineHead(GrowingHead):
    """Logits eta cos(x, w_c), with a learned eta that begins at 1.

    Parameters
    ----------
    width : int
        Number of features.

    Notes
    -----
    A row of 0 has no direction, and a gradient of any size: `imprint` new rows before they are trained.

    Examples
    --------
    >>> import torch
    >>> from aircl.methods.gradient.head import CosineHead
    >>> head, features = CosineHead(2), torch.tensor([[3.0, 0.0], [0.0, 0.5]])
    >>> head.grow([5, 8])
    >>> head.imprint(features, torch.tensor([5, 8]), 0)
    >>> head(10 * features).detach()
    tensor([[1., 0.],
            [0., 1.]])
    """

    def __init__(self, width: int) -> None:
        super().__init__(width)
        del self.bias
        self.eta = nn.Parameter(torch.ones(()))

    def growing(self) -> list[nn.Parameter]:
        """Return what has a row for each class."""
        return [self.weight]

    def imprint(self, features: torch.Tensor, labels: torch.Tensor, first: int) -> None:
        """Set rows from a column on to the mean of the class's features at length 1, as long as earlier rows are."""
        columns, unit = self.columns(labels), normalize(features.detach())
        length = self.weight[:first].norm(dim=1).mean() if first else 1.0
        with torch.no_grad():
            for column in range(first, len(self.classes)):
                self.weight[column] = length * normalize(unit[columns == column].mean(0), dim=0)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return logits of shape (n, C) for features of shape (n, width)."""
        return self.eta * self.cosines(features)

    def cosines(self, features: torch.Tensor) -> torch.Tensor:
        """Return the logits without eta."""
        return linear(normalize(features), normalize(self.weight))


def mask_logits(logits: torch.Tensor, columns: torch.Tensor | None) -> torch.Tensor:
    """Return logits with all but some columns at minus infinity: these have no share in a softmax, and no gradient.

    Parameters
    ----------
    logits : tensor of shape (n, C)
    columns : int64 tensor, or None
        Columns that stay; None: all.
    """
    if columns is None:
        return logits
    out = torch.ones(logits.shape[1], dtype=torch.bool, device=logits.device)
    out[columns] = False
    return logits.masked_fill(out, -torch.inf)
