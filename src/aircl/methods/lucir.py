"""Learning a unified classifier incrementally via rebalancing (LUCIR)."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Literal

from aircl.methods import gradient
from aircl.methods.gradient.options import AdjustOptions, TrainingOptions
from aircl.methods.gradient.phase_wise import PhaseWise
from aircl.methods.icarl import ICaRL
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch

    from aircl.methods.gradient import CosineHead, Optimiser, Rows


@dataclass(frozen=True)
class LUCIROptions(AdjustOptions, TrainingOptions):
    """Options of LUCIR.

    Attributes
    ----------
    exemplars : int
        Samples that are kept of a class, at most.
    less_forget : float
        Weight of the features' distance to those before the phase, times sqrt(old / new), the numbers of classes.
    margin : float
        By how much the cosine of an exemplar with its class is to exceed those with new classes; -2 is no demand.
    nearest : int
        New classes that an exemplar is told from, those of the greatest cosines.
    balanced_epochs : int
        Passes over balanced samples after every phase but the first, which train all rows of the head and nothing else,
        at a tenth of the learning rate, and a hundredth in the second half; 20 as published.
    classify : {"head", "nearest-mean"}
        Predict by the head, or the class whose exemplars have the nearest mean.
    """

    learning_rate: float = 0.1
    exemplars: int = 20
    less_forget: float = 5.0
    margin: float = 0.5
    nearest: int = 2
    balanced_epochs: int = 0
    classify: Literal["head", "nearest-mean"] = "head"

    may_be_zero = TrainingOptions.may_be_zero | AdjustOptions.may_be_zero | {"less_forget", "balanced_epochs"}
    may_be_negative = frozenset({"margin"})


@register_method("lucir")
class LUCIR(PhaseWise, ICaRL):
    """LUCIR: a head of cosines, features held to their directions, and a margin between exemplars and new classes.

    The loss is CE(eta cos) + lambda sqrt(old/new) (1 - cos(f_old(x), f(x))) + the mean of max(0, m - cos_y + cos_k)
    over exemplars of old classes and the few new classes k of the greatest cosines. Rows of new classes begin as the
    mean of their features, those of old ones do not move.

    Notes
    -----
    On the features of a frozen backbone the second term is 0: head and margin are left.

    References
    ----------
    .. [1] Hou et al. "Learning a Unified Classifier Incrementally via Rebalancing." CVPR 2019.
    """

    reason = "it holds features to those before the phase"
    Options = LUCIROptions  # type: ignore[assignment]  # no answers are distilled
    options: LUCIROptions  # type: ignore[assignment]
    # Whether rows of old classes move: in passes over balanced samples.
    _all_rows = False

    @property
    def head(self) -> CosineHead:
        """The head of the student."""
        head: CosineHead = self.student.head  # type: ignore[assignment]  # as make_head made it
        return head

    def make_head(self) -> CosineHead:
        """Return a head of cosines."""
        return gradient.CosineHead(self.setup.n_features)

    def meet(self, rows: Rows) -> None:
        """Make room for classes that are new, whose rows begin as means of their features."""
        super().meet(rows)
        if self.n_new:
            features = self._encode(rows["inputs"])
            self.head.imprint(gradient.send(features, self.head.weight.device), rows["labels"], self.n_old)

    def criterion(self, logits: torch.Tensor, labels: torch.Tensor, views: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy, plus the distance of features and the margin of exemplars."""
        loss = self.cross_entropy(logits, labels)
        if self.teacher is None or not self.n_new:
            return loss
        if self.student.trained and self.options.less_forget:
            weight = self.options.less_forget * sqrt(self.n_old / self.n_new)
            distance = gradient.feature_distance(self.student.features(views), self.teacher.features(views))
            loss = loss + weight * distance
        columns = self.head.columns(labels)
        old = columns < self.n_old
        if old.any():
            cosines = (logits / self.head.eta)[old]
            own = cosines.gather(1, columns[old, None])
            rivals = cosines[:, self.n_old :].topk(min(self.options.nearest, self.n_new), dim=1).values
            loss = loss + (self.options.margin - own + rivals).relu().mean()
        return loss

    def step(self, optimiser: Optimiser) -> None:
        """Move what is trained, but no row of an old class, unless samples are balanced."""
        if not self._all_rows:
            self.hold_old_rows()
        super().step(optimiser)

    def train_phase(self, rows: Rows) -> None:
        """Train on a phase, and then the rows of the head on balanced samples if asked for."""
        super().train_phase(rows)
        epochs = self.options.balanced_epochs
        if not epochs or not self.n_old:
            return
        groups = [{"params": [self.head.weight], "lr": self.options.learning_rate / 10}]
        optimiser = gradient.Optimiser(groups, "sgd", momentum=self.options.momentum)
        self._all_rows = True
        self.pass_again(
            self.material(rows), epochs, lambda epoch: 1.0 if 2 * epoch < epochs else 0.1, optimiser, balanced=True
        )
        self._all_rows = False
        for parameter in self.student.trained_parameters().values():
            parameter.grad = None  # no step of this pass used up those of eta and the backbone
