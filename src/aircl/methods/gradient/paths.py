"""Importances that are measured along the path of training: by how much each parameter made the loss fall."""

from __future__ import annotations

import torch

from aircl.methods.gradient.anchor import Anchor, Parameters, StepFisher, Tensors, add_to
from aircl.methods.gradient.optimiser import padded_like
from aircl.methods.gradient.stateful import Stateful


class Path(Stateful):
    """The movement of parameters and the fall of the loss that it explains, -g dtheta summed up over steps.

    Attributes
    ----------
    start : dict of str to tensor
        Where parameters were when counting began; rows that are newer began at 0.
    falls : dict of str to tensor
    """

    kept = "start falls"

    def __init__(self) -> None:
        self.start: Tensors = {}
        self.falls: Tensors = {}
        self._before: Tensors = {}
        self._gradients: Tensors = {}

    def note(self, parameters: Parameters) -> None:
        """Take notice of places and gradients before a step."""
        for name, parameter in parameters.items():
            place = parameter.detach().clone()
            self.start[name] = padded_like(self.start[name], place) if name in self.start else place
            gradient = torch.zeros_like(place) if parameter.grad is None else parameter.grad.detach().clone()
            self._before[name], self._gradients[name] = place, gradient

    def moved(self, parameters: Parameters) -> None:
        """Add what a step explains."""
        moves = {name: parameter.detach() - self._before[name] for name, parameter in parameters.items()}
        add_to(self.falls, {name: -self._gradients[name] * move for name, move in moves.items()})

    def begin_anew(self, parameters: Parameters) -> None:
        """Count from here."""
        self.start = {name: parameter.detach().clone() for name, parameter in parameters.items()}
        self.falls = {}


class PathIntegral(Anchor):
    """Omega of SI [1]_: over phases, the sum of max(0, fall of the loss) / ((way in the phase)^2 + xi).

    Parameters
    ----------
    xi : float, default=0.1

    Notes
    -----
    The gradient is that of the loss without the penalty, the movement is the whole of it. New rows have Omega 0.

    References
    ----------
    .. [1] Zenke, Poole & Ganguli. "Continual Learning Through Synaptic Intelligence." ICML 2017.
    """

    kept = "path"

    def __init__(self, xi: float = 0.1) -> None:
        super().__init__()
        self.xi, self.path = xi, Path()

    def note(self, parameters: Parameters) -> None:
        """Take notice of places and gradients before a step."""
        self.path.note(parameters)

    def moved(self, parameters: Parameters) -> None:
        """Add what the step explains."""
        self.path.moved(parameters)

    def measured(self, parameters: Parameters) -> Tensors:
        """Return Omega, the present phase among its terms."""
        measured = {}
        for name, fall in self.path.falls.items():
            place = parameters[name].detach()
            way = place - padded_like(self.path.start[name], place)
            measured[name] = padded_like(fall, place).clamp(min=0) / (way.square() + self.xi)
        self.path.begin_anew(parameters)
        total = dict(self.importance)
        add_to(total, measured)
        return total


class RiemannianWalk(StepFisher):
    """Importance of RWalk [1]_: F of EWC++ plus scores, each scaled to 1 at most.

    Every few steps the score s of a parameter grows by max(0, fall of the loss) / (F (way)^2 / 2 + eps). When a phase
    is over, the score in use becomes the mean of that before and of the phase's; after the first it is the latter.

    Parameters
    ----------
    rate : float, default=0.9
        F <- rate g^2 + (1 - rate) F at every step.
    every : int, default=10
        Steps of a stretch.
    eps : float, default=0.1

    References
    ----------
    .. [1] Chaudhry et al. "Riemannian Walk for Incremental Learning: Understanding Forgetting and Intransigence." ECCV
       2018.
    """

    kept = "path scores fresh _steps"

    def __init__(self, rate: float = 0.9, every: int = 10, eps: float = 0.1) -> None:
        super().__init__(1 - rate)
        self.every, self.eps, self.path = every, eps, Path()
        # Of the phases before, and of the present one.
        self.scores: Tensors = {}
        self.fresh: Tensors = {}
        self._steps = 0

    def note(self, parameters: Parameters) -> None:
        """Take gradients into F, and notice of places."""
        super().note(parameters)
        self.path.note(parameters)

    def moved(self, parameters: Parameters) -> None:
        """Add what the step explains; at the end of a stretch, to the scores."""
        self.path.moved(parameters)
        self._steps += 1
        if self._steps % self.every == 0:
            self._score(parameters)

    def measured(self, parameters: Parameters) -> Tensors:
        """Return F and scores, each divided by its greatest entry, added up."""
        self._score(parameters)
        fisher = super().measured(parameters)
        for name, fresh in self.fresh.items():
            fresh = padded_like(fresh, parameters[name])
            self.scores[name] = (padded_like(self.scores[name], fresh) + fresh) / 2 if name in self.scores else fresh
        self.fresh, self._steps = {}, 0
        return _added(_scaled(fisher), _scaled(self.scores))

    def _score(self, parameters: Parameters) -> None:
        for name, fall in self.path.falls.items():
            place = parameters[name].detach()
            way = place - padded_like(self.path.start[name], place)
            distance = padded_like(self._average[name], place) * way.square() / 2 + self.eps
            add_to(self.fresh, {name: padded_like(fall, place).clamp(min=0) / distance})
        self.path.begin_anew(parameters)


def _scaled(tensors: Tensors) -> Tensors:
    """Return tensors divided by the greatest entry of all."""
    greatest = max((float(tensor.max()) for tensor in tensors.values() if tensor.numel()), default=0.0)
    return {name: tensor / greatest if greatest > 0 else tensor for name, tensor in tensors.items()}


def _added(one: Tensors, other: Tensors) -> Tensors:
    return {name: tensor + other[name] if name in other else tensor for name, tensor in one.items()}
