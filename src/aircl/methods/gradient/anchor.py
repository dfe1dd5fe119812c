"""A quadratic penalty that holds parameters where they were, each as firmly as it mattered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from aircl.methods.gradient.optimiser import Optimiser, grown

Parameters = Mapping[str, nn.Parameter]


class Anchor:
    """The penalty sum F (theta - theta*)^2 of EWC++ [1]_, by name of the parameter.

    Parameters
    ----------
    keep : float, default=0.5
        What the importance of earlier phases weighs when a phase is over; its own weighs 1 - keep.

    Attributes
    ----------
    importance : dict of str to tensor
        F, a moving average over phases of the mean squared gradient of a phase's steps. Empty in the first phase.
    place : dict of str to tensor
        theta*, as it was when the last phase was over.

    Notes
    -----
    Rows that a parameter got since have importance 0: they move freely.

    References
    ----------
    .. [1] Chaudhry et al. "Riemannian Walk for Incremental Learning." ECCV 2018.
    """

    def __init__(self, keep: float = 0.5) -> None:
        self.keep = keep
        self.importance: dict[str, torch.Tensor] = {}
        self.place: dict[str, torch.Tensor] = {}
        self._squares: dict[str, torch.Tensor] = {}
        self._steps = 0

    def note(self, parameters: Parameters) -> None:
        """Add the squares of the gradients of one step."""
        for name, parameter in parameters.items():
            square = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.square()
            if name in self._squares:
                square += grown(self._squares[name], parameter)
            self._squares[name] = square.detach()
        self._steps += 1

    def pull(self, parameters: Parameters, optimiser: Optimiser, penalty: float) -> None:
        """Move parameters by the step that the penalty asks for.

        The step is implicit, theta <- (theta + 2 s penalty F theta*) / (1 + 2 s penalty F) with s the step size of each
        entry: to first order it is the gradient step on the penalty, and it cannot overshoot, however large that is.
        """
        with torch.no_grad():
            for name, importance in self.importance.items():
                parameter = parameters[name]
                # Rows that are newer than the anchor are not held.
                old = len(importance)
                sizes = optimiser.step_sizes(parameter)
                firm = 2 * penalty * importance * (sizes[:old] if sizes.dim() else sizes)
                parameter[:old] = (parameter[:old] + firm * self.place[name]) / (1 + firm)

    def drop(self, parameters: Parameters) -> None:
        """Take what was noted in a phase into the importance, and hold parameters where they are now."""
        if not self._steps:
            return
        for name, squares in self._squares.items():
            mean = grown(squares, parameters[name]) / self._steps
            if name in self.importance:
                mean = self.keep * grown(self.importance[name], mean) + (1 - self.keep) * mean
            self.importance[name] = mean
        self.place = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        self._squares, self._steps = {}, 0

    def state(self) -> dict[str, Any]:
        """Return importances, places and what was noted in the present phase."""
        return {
            "importance": self.importance,
            "place": self.place,
            "squares": self._squares,
            "steps": self._steps,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.importance, self.place = state["importance"], state["place"]
        self._squares, self._steps = state["squares"], state["steps"]
