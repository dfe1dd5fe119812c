"""Continual bias adaptor (CBA)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aircl.methods import gradient
from aircl.methods.gradient.options import ReplayOptions
from aircl.methods.gradient.rehearsal import Rehearsal
from aircl.methods.method import Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch

    from aircl.methods.gradient import Rows


@dataclass(frozen=True)
class CBAOptions(ReplayOptions):
    """Options of CBA.

    Attributes
    ----------
    adaptor_rate : float
        Learning rate of the adaptor's Adam.
    adaptor_every : int
        Steps between two of the adaptor.
    virtual_rate : float
        Learning rate of the step that the adaptor is judged by.
    """

    adaptor_rate: float = 1e-3
    adaptor_every: int = 5
    virtual_rate: float = 0.03

    may_be_zero = ReplayOptions.may_be_zero | {"adaptor_rate"}


@register_method("cba")
class ContinualBiasAdaptor(Rehearsal):
    """CBA: ER on CE(z + r); a small network learns r so that the head predicts well by z alone.

    The network maps the softmax of the logits to r. Every few steps it is trained on the loss of samples of the memory
    by the head as one SGD step with r would leave it. Stream and memory have a mean loss each, which are added up.

    Notes
    -----
    It begins with r = 0, and learns once the memory is full, with phases from the second on: before, a memory says
    nothing that the stream does not. On features of a trained backbone, these are constant in the adaptor's steps.

    References
    ----------
    .. [1] Wang et al. "CBA: Improving Online Continual Learning via Continual Bias Adaptor." ICCV 2023.
    """

    Options = CBAOptions
    options: CBAOptions

    kept = "_steps"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.adaptor = gradient.Adaptor(self.generator).to(self.student.head.weight.device)
        groups = [{"params": list(self.adaptor.parameters()), "lr": self.options.adaptor_rate}]
        self.adaptor_optimiser = gradient.Optimiser(groups, "adam")
        self._steps = 0

    def shares(self, stream: float, replayed: float) -> tuple[float, float]:
        """Return 1 and 1: two means."""
        return 1.0, 1.0

    def meet(self, rows: Rows) -> None:
        """Make room for classes that are new, in the adaptor too."""
        super().meet(rows)
        self.adaptor.grow(len(self.student.head.classes))
        self.adaptor_optimiser.adapt()

    def criterion(self, logits: torch.Tensor, labels: torch.Tensor, views: torch.Tensor) -> torch.Tensor:
        """Return the loss of shifted logits; the shift is constant."""
        return super().criterion(logits + self.adaptor(logits).detach(), labels, views)

    def update(self, batch: Rows) -> None:
        """Train the adaptor if its turn has come, then make one step."""
        ready = len(self.memory) == self.options.memory if self.setup.online else len(self.memory) > 0
        if ready and self.options.adaptor_rate:
            if self._steps % self.options.adaptor_every == 0:
                self.teach_adaptor(batch)
            self._steps += 1
        super().update(batch)

    def teach_adaptor(self, batch: Rows) -> None:
        """Make one step of the adaptor."""
        import torch

        weights, judge = self._weigh(batch), self.drawn()
        n = gradient.count(batch)
        weights = torch.full((n,), 1 / n, device=gradient.HOST) if weights is None else weights
        with torch.no_grad():
            features, judges = (self.look(rows)[0] for rows in (batch, judge))
        columns = self.student.head.columns
        loss = gradient.virtual_loss(
            self.adaptor,
            self.student.head.parameters(),
            (features, columns(batch["labels"]), gradient.send(weights, features.device)),
            (judges, columns(judge["labels"])),
            self.options.virtual_rate,
        )
        self.adaptor_optimiser.minimise(loss)

    def get_state(self) -> dict[str, Any]:
        """Return memory and adaptor."""
        adaptor = {
            "weights": dict(self.adaptor.state_dict()),
            "optimiser": self.adaptor_optimiser.state(),
        }
        return {**super().get_state(), "adaptor": adaptor}

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on with memory and adaptor."""
        super().set_state(state)
        adaptor = state["adaptor"]
        for name, parameter in self.adaptor.named_parameters():
            parameter.data = gradient.send(adaptor["weights"][name], parameter.device)
        self.adaptor_optimiser.restore(adaptor["optimiser"])
