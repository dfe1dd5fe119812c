"""Gradient steps: SGD or Adam, for parameters that may grow on the way."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

KINDS = ("adam", "sgd")


class Optimiser:
    """SGD with momentum or Adam, whose state follows growing parameters and can be saved.

    Parameters
    ----------
    groups : list of dict
        "params", a list of parameters, and "lr".
    kind : {"adam", "sgd"}
    momentum : float, default=0.9
        Of SGD.
    clip : float, optional
        Longest gradient, over all parameters.
    weight_decay : float, default=0.0
        Added to the gradient, times the parameter.
    """

    def __init__(
        self,
        groups: list[dict[str, Any]],
        kind: str,
        *,
        momentum: float = 0.9,
        clip: float | None = None,
        weight_decay: float = 0.0,
    ) -> None:
        if kind not in KINDS:
            raise ValueError(f"optimiser={kind!r} is not known. Choose one of {', '.join(KINDS)}.")
        self.kind, self.clip = kind, clip
        self._momentum = momentum
        self._rates = [group["lr"] for group in groups]
        self._parameters: list[nn.Parameter] = [parameter for group in groups for parameter in group["params"]]
        self._optimiser: torch.optim.Optimizer = (
            torch.optim.Adam(groups, weight_decay=weight_decay)
            if kind == "adam"
            else torch.optim.SGD(groups, momentum=momentum, weight_decay=weight_decay)
        )

    def compute_gradients(self, loss: torch.Tensor) -> None:
        """Fill the gradients of the parameters, clipped if asked for."""
        torch.autograd.backward(loss)
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self._parameters, self.clip)

    def step(self) -> None:
        """Move the parameters, and let go of the gradients."""
        self._optimiser.step()
        for parameter in self._parameters:
            parameter.grad = None

    def minimise(self, loss: torch.Tensor) -> None:
        """Compute the gradients of a loss and make one step."""
        self.compute_gradients(loss)
        self.step()

    def scale(self, share: float) -> None:
        """Set the learning rates to a share of what they were at first."""
        for group, rate in zip(self._optimiser.param_groups, self._rates, strict=True):
            group["lr"] = share * rate

    def adapt(self) -> None:
        """Follow parameters that have grown: new rows begin without a past."""
        for parameter, state in self._optimiser.state.items():
            for name, value in state.items():
                if value is not None and value.dim() and value.shape != parameter.shape:
                    state[name] = padded_like(value, parameter)

    def forget(self, parameter: nn.Parameter) -> None:
        """Let a parameter begin without a past, as after it was drawn again."""
        self._optimiser.state.pop(parameter, None)

    def step_sizes(self, parameter: nn.Parameter) -> torch.Tensor:
        """Return by how much a steady gradient of 1 moves each entry of a parameter in one step.

        Adam: lr / (sqrt(v) + eps), v the mean square of the gradients so far. SGD: lr / (1 - momentum).
        """
        (group,) = (g for g in self._optimiser.param_groups if any(parameter is p for p in g["params"]))
        if self.kind == "sgd":
            return torch.tensor(group["lr"] / (1 - self._momentum), device=parameter.device)
        state = self._optimiser.state[parameter]
        v = state["exp_avg_sq"] / (1 - group["betas"][1] ** float(state["step"]))
        sizes: torch.Tensor = group["lr"] / (v.sqrt() + group["eps"])
        return sizes

    def state(self) -> dict[str, Any]:
        """Return moments and counts of steps."""
        return {str(key): dict(value) for key, value in self._optimiser.state_dict()["state"].items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        whole = self._optimiser.state_dict()
        whole["state"] = {int(key): value for key, value in state.items()}
        self._optimiser.load_state_dict(whole)


def padded_like(tensor: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return a tensor with rows of zeros added, until it has as many as another."""
    return torch.cat([tensor, tensor.new_zeros(len(like) - len(tensor), *tensor.shape[1:])])
