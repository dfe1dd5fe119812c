"""The network that a gradient method trains: a backbone, or none below given features, and a growing head."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from aircl.backbones.device import send
from aircl.methods.gradient.head import GrowingHead


class Student(nn.Module):
    """A head, on features that are given or that a backbone computes.

    Parameters
    ----------
    width : int
        Number of features.
    trunk : nn.Module, optional
        From images to features; it is used as it is, so give a copy. None: inputs are features.
    trained : bool, default=False
        Whether the trunk learns.
    head : GrowingHead, optional
        By default a linear one.

    Notes
    -----
    A trunk stays in evaluation mode: batch normalisations use the statistics of the base phase, so that a batch of one
    sample can be learned from and no row depends on its company; their scale and shift are trained.
    """

    def __init__(
        self, width: int, trunk: nn.Module | None = None, *, trained: bool = False, head: GrowingHead | None = None
    ) -> None:
        super().__init__()
        self.trunk = trunk
        self.trained = trained
        if trunk is not None:
            trunk.eval().requires_grad_(trained)
        self.head = head or GrowingHead(width)

    def features(self, views: torch.Tensor) -> torch.Tensor:
        """Return features of shape (n, width), on the device of the network."""
        views = send(views, self.head.weight.device)
        return views if self.trunk is None else self.trunk(views)

    def forward(self, views: torch.Tensor) -> torch.Tensor:
        """Return logits of shape (n, C)."""
        logits: torch.Tensor = self.head(self.features(views))
        return logits

    def groups(self, learning_rate: float, trunk_share: float) -> list[dict[str, Any]]:
        """Return the trained parameters with their learning rates, for an optimiser."""
        groups: list[dict[str, Any]] = [{"params": list(self.head.parameters()), "lr": learning_rate}]
        if self.trunk is not None and self.trained:
            groups.append({"params": list(self.trunk.parameters()), "lr": trunk_share * learning_rate})
        return groups

    def trained_parameters(self) -> dict[str, nn.Parameter]:
        """Return what learns, by name."""
        return {name: parameter for name, parameter in self.named_parameters() if parameter.requires_grad}

    def teacher(self) -> Student:
        """Return a frozen copy; a trunk that does not learn is shared."""
        memo = {} if self.trained or self.trunk is None else {id(self.trunk): self.trunk}
        return copy.deepcopy(self, memo).requires_grad_(False)

    def state(self) -> dict[str, Any]:
        """Return what was learned: classes and weights, without those of a trunk that does not learn."""
        weights = {
            name: tensor for name, tensor in self.state_dict().items() if self.trained or not name.startswith("trunk.")
        }
        return {"classes": list(self.head.classes), "weights": weights}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.head.grow(state["classes"])
        self.load_state_dict(state["weights"], strict=False)
