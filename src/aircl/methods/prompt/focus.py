"""What MVP does to logits and losses: a mask for each instance, and more weight to samples that the batch ignores."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.functional import cosine_similarity


class InstanceMask(nn.Module):
    """Factors for the logits of a sample that depend on the prompt it chose: 2 sigmoid(mask).

    Parameters
    ----------
    prompts : int

    Attributes
    ----------
    mask : parameter of shape (C, prompts)
        -1 at first, which is a factor of 0.54.
    """

    def __init__(self, prompts: int) -> None:
        super().__init__()
        self.mask = nn.Parameter(torch.zeros(0, prompts))

    def grow(self, classes: int) -> None:
        """Make room for so many classes in all. The parameter stays the same object; `Optimiser.adapt` follows."""
        missing = classes - len(self.mask)
        if missing:
            self.mask.data = torch.cat([self.mask.data, self.mask.new_full((missing, self.mask.shape[1]), -1.0)])
            self.mask.grad = None

    def forward(self, chosen: torch.Tensor) -> torch.Tensor:
        """Return factors of shape (n, C) for samples that chose prompts, shape (n, 1)."""
        return 2 * torch.sigmoid(self.mask[:, chosen[:, 0]].T)


def feature_scale(features: torch.Tensor, weights: torch.Tensor, margin: float) -> torch.Tensor:
    """Return 1 / (1 - cos(w_y, x) + margin), shape (n, 1), of features and the weights of their classes; a constant."""
    with torch.no_grad():
        scale: torch.Tensor = 1 / (1 - cosine_similarity(weights, features) + margin)
    return scale[:, None]


def head_errors(logits: torch.Tensor, columns: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """Return the errors e_i, shape (n, C), of which e_i x_i' is the gradient of sample i's loss by the head's weights.

    Parameters
    ----------
    logits : tensor of shape (n, C)
        factors * (W x + b), with minus infinity for classes that are left out.
    columns : int64 tensor of shape (n,)
    factors : tensor of shape (n, C)

    Notes
    -----
    The cross-entropy of softmax(f * (W x + b)) has the gradient ((p - onehot) * f) x' by W: all samples at once, and no
    backward pass for any of them.
    """
    with torch.no_grad():
        errors = logits.softmax(1)
        errors[torch.arange(len(columns), device=columns.device), columns] -= 1
        return errors * factors


def focal_factor(errors: torch.Tensor, columns: torch.Tensor, features: torch.Tensor, alpha: float) -> torch.Tensor:
    """Return (1 - alpha) + alpha s^2, with s = 1 - cos of a sample's gradient by its own class's row and the batch's.

    Parameters
    ----------
    errors : tensor of shape (n, C)
        From `head_errors`.
    columns : int64 tensor of shape (n,)
        Of the labels.
    features : tensor of shape (n, width)
    alpha : float

    Returns
    -------
    factor : tensor of shape (n,)
        Small for samples that the batch's step serves anyway, large for those that it ignores or harms.

    Notes
    -----
    Row c of the head has the gradient e_ic x_i from sample i, and the mean of these from the batch.
    """
    with torch.no_grad():
        batch = (errors.T @ features / len(errors))[columns]
        own = errors.gather(1, columns[:, None]) * features
        factor: torch.Tensor = (1 - alpha) + alpha * (1 - cosine_similarity(own, batch)).square()
        return factor
