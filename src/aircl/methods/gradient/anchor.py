"""A quadratic penalty that holds parameters where they were, each as firmly as it mattered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import nn

from aircl.methods.gradient.optimiser import Optimiser, padded_like
from aircl.methods.gradient.stateful import Stateful

Parameters = Mapping[str, nn.Parameter]
Tensors = dict[str, torch.Tensor]


class Anchor(Stateful, ABC):
    """The penalty sum F (theta - theta*)^2, by name of the parameter; a subclass says what F is.

    Attributes
    ----------
    importance : dict of str to tensor
        F, as it was when the last phase was over. Empty in the first phase.
    place : dict of str to tensor
        theta*, as it was when the last phase was over.

    Notes
    -----
    Rows that a parameter got since have importance 0: they move freely.
    """

    kept = "importance place"

    def __init__(self) -> None:
        self.importance: Tensors = {}
        self.place: Tensors = {}

    @abstractmethod
    def note(self, parameters: Parameters) -> None:
        """Take notice of the gradients of one step, before it is made."""

    def moved(self, parameters: Parameters) -> None:
        """Take notice of where the step, and the pull after it, have led."""

    @abstractmethod
    def measured(self, parameters: Parameters) -> Tensors:
        """Return F when a phase is over, and begin again; empty if there was no step."""

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
        """Hold parameters where they are now, as firmly as they mattered; after a phase without a step, as before."""
        if measured := self.measured(parameters):
            self.importance = measured
            self.place = {name: parameter.detach().clone() for name, parameter in parameters.items()}


class StepFisher(Anchor):
    """F of EWC++ [1]_: a moving average over all steps, F <- keep F + (1 - keep) g^2, which begins with the first g^2.

    Parameters
    ----------
    keep : float, default=0.5

    References
    ----------
    .. [1] Chaudhry et al. "Riemannian Walk for Incremental Learning." ECCV 2018.
    """

    kept = "_average"

    def __init__(self, keep: float = 0.5) -> None:
        super().__init__()
        self.keep = keep
        self._average: Tensors = {}

    def note(self, parameters: Parameters) -> None:
        """Take the squares of the gradients of one step into the average."""
        for name, square in squared_gradients(parameters).items():
            if name in self._average:
                square = self.keep * padded_like(self._average[name], square) + (1 - self.keep) * square
            self._average[name] = square

    def measured(self, parameters: Parameters) -> Tensors:
        """Return the average as it is now; it goes on."""
        return {name: padded_like(average, parameters[name]) for name, average in self._average.items()}


class MeanFisher(Anchor):
    """F of EWC [1]_: the mean of squared gradients of log p over the samples of a phase; a moving average over phases.

    Parameters
    ----------
    keep : float, default=0.5
        F <- keep F + (1 - keep) F_phase, which begins with that of the first phase.

    References
    ----------
    .. [1] Kirkpatrick et al. "Overcoming catastrophic forgetting in neural networks." PNAS, 2017.
    """

    kept = "_sums _samples"

    def __init__(self, keep: float = 0.5) -> None:
        super().__init__()
        self.keep = keep
        self._sums: Tensors = {}
        self._samples = 0

    def note(self, parameters: Parameters) -> None:
        """Do nothing: F is measured on samples, not in steps."""

    def add(self, sums: Tensors, n: int) -> None:
        """Add squared gradients of n samples, summed up."""
        add_to(self._sums, sums)
        self._samples += n

    def measured(self, parameters: Parameters) -> Tensors:
        """Return the average over phases, the present one among them."""
        measured = {}
        for name, sums in self._sums.items():
            mean = padded_like(sums, parameters[name]) / self._samples
            if name in self.importance:
                mean = self.keep * padded_like(self.importance[name], mean) + (1 - self.keep) * mean
            measured[name] = mean
        self._sums, self._samples = {}, 0
        return measured


class PhaseFisher(MeanFisher):
    """F as a moving average over phases, F <- keep F + (1 - keep) (mean g^2 of the phase's steps).

    Parameters
    ----------
    keep : float, default=0.5
    """

    def note(self, parameters: Parameters) -> None:
        """Add the squares of the gradients of one step."""
        self.add(squared_gradients(parameters), 1)


def add_to(sums: Tensors, more: Tensors) -> None:
    """Add tensors, which may have rows that their sums have not yet."""
    for name, tensor in more.items():
        sums[name] = tensor + padded_like(sums[name], tensor) if name in sums else tensor


def squared_gradients(parameters: Parameters) -> Tensors:
    """Return the squares of the gradients; 0 where there is none."""
    return {
        name: torch.zeros_like(parameter) if parameter.grad is None else parameter.grad.detach().square()
        for name, parameter in parameters.items()
    }
