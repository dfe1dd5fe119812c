"""Dual gradient reweighting (DGR)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log, sqrt
from typing import TYPE_CHECKING, Literal

from aircl.methods import gradient
from aircl.methods.gradient.phase_wise import PhaseWise
from aircl.methods.icarl import ExemplarOptions, ExemplarReplay
from aircl.methods.method import Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch

    from aircl.methods.gradient import Rows

# A teacher's gradient so much shorter than that of the labels is rounding, as in the first step of a phase, when
# student and teacher agree: it is not brought to any length.
NOISE = 1e-5


@dataclass(frozen=True)
class DGROptions(ExemplarOptions):
    """Options of DGR.

    Attributes
    ----------
    distillation : float
        Weight of the teacher, times sqrt(n_old / n_new), the numbers of samples: felt by a backbone that is trained.
    decay : float
        The g of e^(-g n_old / (n_old + n_new)), by which rows of new classes move less.
    ratio : {"published", "symmetric"}
        Rows of new classes have the factor mu as those of old ones, or 1 / mu.
    """

    learning_rate: float = 0.1
    adjust: Literal["none", "las"] = "las"
    distillation: float = 2.8
    decay: float = 1.0
    ratio: Literal["published", "symmetric"] = "published"

    may_be_zero = ExemplarOptions.may_be_zero | {"decay"}


@register_method("dgr")
class DualGradientReweighting(PhaseWise, ExemplarReplay):
    """DGR: gradients of the head's rows are balanced; classes that lost more samples are distilled more.

    Phi_c is the sum of the lengths of the cross-entropy's gradients by row c over the steps of a phase. Row c moves by
    its gradient times min Phi / Phi_c, the min over the old and the new classes apart; and old rows times min(1, mu),
    new ones times min(1, mu e^(-g n_old / (n_old + n_new))), mu = mean Phi_new / mean Phi_old. The cross-entropy is
    that of z + log pi, pi the shares of the classes in phase and exemplars.

    Notes
    -----
    The teacher's part of the gradient by old rows is brought to the length of the cross-entropy's. It is
    -sum softmax(t/T) [H log softmax(z/T) + (1-H) log softmax((v z + (1-v) t)/T)] over old classes: R_c samples of class
    c are no longer held, v = R / |R|, H is the entropy of R / sum R over the log of their number.

    References
    ----------
    .. [1] He. "Gradient Reweighting: Towards Imbalanced Class-Incremental Learning." CVPR 2024.
    """

    Options = DGROptions
    options: DGROptions

    kept = "seen"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        # Samples of each class so far, those of the present phase left out while it lasts; and of that phase.
        self.seen: dict[int, int] = {}
        self.n_phase = 0
        self.lengths: torch.Tensor

    def train_phase(self, rows: Rows) -> None:
        """Train on a phase, beginning with no gradients."""
        import torch

        self.lengths = torch.zeros_like(self.student.head.bias)
        self.n_phase = gradient.count(rows)
        super().train_phase(rows)

    def update(self, batch: Rows) -> None:
        """Make one step, by gradients of both losses that are changed before they are added."""
        import torch

        assert self.optimiser is not None
        views = self.views.training(batch["inputs"], self.generator)
        logits = self.student(views)
        head = list(self.student.head.parameters())
        parameters = [*head, *(p for name, p in self.student.trained_parameters().items() if name[:5] != "head.")]
        labels = self.cross_entropy(logits, batch["labels"])
        kept = self.teacher is not None and self.options.distillation > 0
        own = torch.autograd.grad(labels, parameters, retain_graph=kept)
        weights = self.factors(own[0])
        taught = [torch.zeros_like(parameter) for parameter in parameters]
        if self.teacher is not None and kept:
            weight = self.options.distillation * sqrt(sum(self.seen.values()) / self.n_phase)
            loss = self.lost_distillation(logits, self.teacher(views).detach())
            taught = list(torch.autograd.grad(weight * loss, parameters))
        reweighted = [weights[:, None] * own[0], weights * own[1]]
        target, length = (torch.cat([rows, bias[:, None]], 1).norm() for rows, bias in (reweighted, taught[:2]))
        if length > NOISE * target:
            taught[:2] = [target / length * part for part in taught[:2]]
        for parameter, one, other in zip(parameters, [*reweighted, *own[2:]], taught, strict=True):
            parameter.grad = one + other
        self.step(self.optimiser)

    def factors(self, rows: torch.Tensor) -> torch.Tensor:
        """Note the gradient by the head's rows, and return what that of each is multiplied by, shape (C,)."""
        import torch

        self.lengths += rows.norm(dim=1)
        factors, lengths = torch.ones_like(self.lengths), self.lengths
        groups = [lengths[: self.n_old], lengths[self.n_old :]]
        for group, part in zip(groups, (factors[: self.n_old], factors[self.n_old :]), strict=True):
            if (moved := group[group > 0]).numel():
                part[group > 0] = moved.min() / moved
        if self.n_old and self.n_new and groups[0].mean() > 0 and groups[1].mean() > 0:
            mu = float(groups[1].mean() / groups[0].mean())
            n_old = sum(self.seen.values())
            other = mu if self.options.ratio == "published" else 1 / mu
            factors[: self.n_old] *= min(1.0, mu)
            factors[self.n_old :] *= min(1.0, other * exp(-self.options.decay * n_old / (n_old + self.n_phase)))
        return factors

    def lost_distillation(self, logits: torch.Tensor, taught: torch.Tensor) -> torch.Tensor:
        """Return the distillation that follows old classes the less, the fewer of their samples were lost."""
        import torch
        from torch.nn.functional import log_softmax, softmax

        held = gradient.by_class(self.memory.rows)
        classes = self.student.head.classes[: taught.shape[1]]
        counts = [float(self.seen[label] - len(held[label])) for label in classes]
        lost = torch.tensor(counts, device=logits.device)
        T, z = self.options.temperature, logits[:, : taught.shape[1]]
        target = softmax(taught / T, dim=1)
        plain = -(target * log_softmax(z / T, dim=1)).sum(1).mean()
        if len(classes) < 2 or not lost.sum() > 0:
            return plain
        shares = lost[lost > 0] / lost.sum()
        entropy = -(shares * shares.log()).sum() / log(len(classes))
        v = lost / lost.norm()
        mixed = -(target * log_softmax((v * z + (1 - v) * taught) / T, dim=1)).sum(1).mean()
        return entropy * plain + (1 - entropy) * mixed

    def absorb(self, rows: Rows) -> None:
        """Choose exemplars and a teacher, and count samples."""
        super().absorb(rows)
        for label, places in gradient.by_class(rows).items():
            self.seen[label] = self.seen.get(label, 0) + len(places)
