"""Elastic weight consolidation (EWC)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aircl.methods import gradient
from aircl.methods.gradient.anchored import Anchored
from aircl.methods.gradient.options import PhaseOptions
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch

    from aircl.methods.gradient import MeanFisher, Rows

# Samples of a phase, at most, whose gradients are computed one by one if the backbone is trained.
ONE_BY_ONE = 1000


@dataclass(frozen=True)
class HeldOptions(PhaseOptions):
    """Options of methods that are held where they were.

    Attributes
    ----------
    compare : {"phase", "exposed"}
        "exposed": told from the classes of its phase alone, a sample moves no row of another one, on frozen features,
        and there is nothing to hold.
    penalty : float
        Weight of the penalty.
    """

    compare: Literal["phase", "exposed"] = "exposed"
    penalty: float = 1.0

    may_be_zero = PhaseOptions.may_be_zero | {"penalty"}


@dataclass(frozen=True)
class EWCOptions(HeldOptions):
    """Options of EWC.

    Attributes
    ----------
    keep : float
        What the importance F of earlier phases weighs beside that of the present one, 1 - keep.
    labels : {"drawn", "true"}
        F is of labels as the network would draw them, the Fisher information, or of the true ones.
    """

    penalty: float = 100.0
    keep: float = 0.5
    labels: Literal["drawn", "true"] = "drawn"

    may_be_zero = HeldOptions.may_be_zero | {"keep"}
    at_most_one = frozenset({"keep"})


@register_method("ewc")
class ElasticWeights(Anchored):
    """EWC: fine-tuning with the penalty lambda/2 sum F (theta - theta*)^2, F the Fisher information; keeps no sample.

    F is the mean over the samples of a phase of squared gradients of log p(y | x), y drawn from p. For a linear head on
    features that is mean p_c (1 - p_c) x_j^2 exactly; if the backbone is trained, gradients are computed sample by
    sample, on 1000 of a phase at most, with one label drawn for each.

    Notes
    -----
    In an online stream F is measured on each batch when it was learned, as samples do not come back.

    References
    ----------
    .. [1] Kirkpatrick et al. "Overcoming catastrophic forgetting in neural networks." PNAS, 2017.
    """

    Options = EWCOptions
    options: EWCOptions
    anchor: MeanFisher
    share = 0.5

    def make_anchor(self) -> MeanFisher:
        """Return an anchor by the Fisher information."""
        return gradient.MeanFisher(self.options.keep)

    def absorb(self, rows: Rows) -> None:
        """Measure the Fisher information on samples that were trained on."""
        super().absorb(rows)
        n = gradient.count(rows)
        if not self.student.trained:
            self.anchor.add(self._closed_form(rows), n)
            return
        import torch

        places = torch.randperm(n, generator=self.generator)[:ONE_BY_ONE]
        self.anchor.add(self._one_by_one(gradient.take(rows, places)), len(places))

    def _closed_form(self, rows: Rows) -> dict[str, torch.Tensor]:
        import torch
        from torch.nn.functional import one_hot

        with torch.no_grad():
            features, logits = self.look(rows)
            p = logits.softmax(1)
            truth = one_hot(self.student.head.columns(rows["labels"]), p.shape[1])
            squares = p * (1 - p) if self.options.labels == "drawn" else (p - truth).square()
            return {"head.weight": squares.T @ features.square(), "head.bias": squares.sum(0)}

    def _one_by_one(self, rows: Rows) -> dict[str, torch.Tensor]:
        import torch
        from torch.nn.functional import cross_entropy

        trained = self.student.trained_parameters()
        sums = {name: torch.zeros_like(parameter) for name, parameter in trained.items()}
        columns = self.student.head.columns(rows["labels"])
        for place in range(gradient.count(rows)):
            logits = self.student(self.views.plain(rows["inputs"][place : place + 1]))
            column = columns[place : place + 1]
            if self.options.labels == "drawn":
                shares = gradient.send(logits.detach().softmax(1), rows["inputs"].device)
                column = gradient.send(torch.multinomial(shares, 1, generator=self.generator)[0], logits.device)
            gradients = torch.autograd.grad(cross_entropy(logits, column), list(trained.values()))
            for total, one in zip(sums.values(), gradients, strict=True):
                total += one.square()
        return sums
