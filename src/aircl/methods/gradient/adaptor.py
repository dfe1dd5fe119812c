"""A small network that shifts logits in training, taught by what a step with it would do."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn
from torch.nn.functional import cross_entropy, one_hot

HIDDEN = 256


class Adaptor(nn.Module):
    """Shifts r = W relu(V p + v) + w of logits, p their softmax [1]_; it begins as 0.

    Parameters
    ----------
    generator : torch.Generator
        Of the first layer.

    Notes
    -----
    Classes that come later have weights 0 at first, in both layers.

    References
    ----------
    .. [1] Wang et al. "CBA: Improving Online Continual Learning via Continual Bias Adaptor." ICCV 2023.
    """

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator
        # One row for each class in all that grows.
        self.inner = nn.Parameter(torch.zeros(0, HIDDEN))
        self.inner_bias = nn.Parameter(torch.zeros(HIDDEN))
        self.outer = nn.Parameter(torch.zeros(0, HIDDEN))
        self.outer_bias = nn.Parameter(torch.zeros(0))

    def grow(self, n_classes: int) -> None:
        """Make room for more classes; the parameters stay the same objects."""
        known = len(self.inner)
        more = n_classes - known
        if more <= 0:
            return
        for parameter in (self.inner, self.outer, self.outer_bias):
            added = parameter.new_zeros(more, *parameter.shape[1:])
            parameter.data = torch.cat([parameter.data, added])
            parameter.grad = None
        if not known:
            size = n_classes**-0.5
            drawn = (2 * torch.rand(n_classes + 1, HIDDEN, generator=self.generator) - 1) * size
            self.inner.data, self.inner_bias.data = (part.to(self.inner.device) for part in (drawn[1:], drawn[0]))

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        """Return shifts of shape (n, C) for logits of this shape."""
        hidden = (logits.softmax(1) @ self.inner + self.inner_bias).relu()
        return hidden @ self.outer.T + self.outer_bias


def virtual_loss(
    adaptor: Adaptor,
    head: Iterable[torch.Tensor],
    batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    judge: tuple[torch.Tensor, torch.Tensor],
    rate: float,
) -> torch.Tensor:
    """Return the loss, on other samples, of a linear head after one SGD step on CE(z + r); by it the adaptor learns.

    Parameters
    ----------
    adaptor : Adaptor
        What gradients flow to; none to anything else.
    head : weight of shape (C, d) and bias of shape (C,)
    batch : tuple of features (n, d), columns (n,) and weights (n,)
        The step is W - rate * ((softmax(z + r) - y) * weights)' X.
    judge : tuple of features and columns
        Samples that the new head is judged by, without shifts.
    rate : float
    """
    weight, bias = (parameter.detach() for parameter in head)
    features, columns, weights = batch
    logits = features @ weight.T + bias
    errors = ((logits + adaptor(logits)).softmax(1) - one_hot(columns, len(weight))) * weights[:, None]
    moved = weight - rate * errors.T @ features
    return cross_entropy(judge[0] @ moved.T + bias - rate * errors.sum(0), judge[1])
