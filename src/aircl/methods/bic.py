"""Bias correction (BiC)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from aircl.methods import gradient
from aircl.methods.gradient.phase_wise import PhaseWise
from aircl.methods.icarl import ExemplarOptions, ExemplarReplay
from aircl.methods.method import Floats, Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch

    from aircl.methods.gradient import Exemplars, Rows

# Newton steps at most: two numbers of a convex problem.
MAX_STEPS = 20


@dataclass(frozen=True)
class BiCOptions(ExemplarOptions):
    """Options of BiC.

    Attributes
    ----------
    validation : float
        Share of a class's exemplars that is never trained on, and that the correction is fitted to.
    l2 : float
        Weight of b^2 / 2 beside the cross-entropy of the second stage.
    """

    learning_rate: float = 0.1
    adjust: Literal["none"] = "none"  # a prior is to be corrected once
    distillation: float = 1.0
    validation: float = 0.1
    l2: float = 0.1

    may_be_zero = ExemplarOptions.may_be_zero | {"l2"}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.validation >= 1:
            raise ValueError(f"validation={self.validation!r} is not a share below 1.")
        if self.exemplars < 2:
            raise ValueError(f"exemplars={self.exemplars!r}: one to train on and one to validate with are needed.")


@register_method("bic")
class BiasCorrection(PhaseWise, ExemplarReplay):
    """BiC: distillation with exemplars, then one scale and one shift for the logits of the phase's new classes.

    Stage 1 is (1 - l) CE + l KD with l = old / (old + new), the numbers of classes. Stage 2 replaces the logits z of
    new classes by a z + b, the pair of least cross-entropy on samples that stage 1 did not have: a tenth of the
    exemplars of each class. Pairs of earlier phases stay; the teacher has them too.

    Notes
    -----
    The second stage is convex in a and b: Newton's method needs no learning rate. A class of one sample has none to
    validate with. One pair serves all new classes: it corrects new against old, not large against small ones within a
    phase. In a phase without new classes there is no second stage, and l is as if there were one.

    References
    ----------
    .. [1] Wu et al. "Large Scale Incremental Learning." CVPR 2019.
    """

    Options = BiCOptions
    options: BiCOptions

    kept = "scale shift held_out"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        # a and b of each column, and the samples that are never trained on.
        self.scale: Floats = np.ones(0)
        self.shift: Floats = np.zeros(0)
        self.held_out: Rows = {}
        self._apart: torch.Tensor

    def make_memory(self) -> Exemplars:
        """Return a memory of the exemplars that are trained on."""
        return gradient.Exemplars(self.options.exemplars - self._quota, self._encode)

    @property
    def samples_kept(self) -> int:
        """Exemplars, of both kinds."""
        return len(self.memory) + gradient.count(self.held_out)

    def criterion(self, logits: torch.Tensor, labels: torch.Tensor, views: torch.Tensor) -> torch.Tensor:
        """Return (1 - l) CE + l KD, of corrected logits."""
        loss = self.cross_entropy(self.corrected(logits), labels)
        if self.teacher is None or not self.n_old:
            return loss
        taught = self.corrected(self.teacher(views))
        distilled = gradient.distillation_loss(self.corrected(logits), taught, self.options.temperature)
        share = self.n_old / (self.n_old + max(self.n_new, 1))
        return (1 - share) * loss + self.options.distillation * share * distilled

    def train_phase(self, rows: Rows) -> None:
        """Train on all but the samples to validate with, then fit the pair of the new classes."""
        self._grow()
        self._apart = self._set_apart(rows)
        self.held_out = gradient.join([self.held_out, gradient.take(rows, self._apart)])
        super().train_phase(_without(rows, self._apart))
        if not self.held_out:
            return
        columns = gradient.to_array(self.student.head.columns(self.held_out["labels"]))
        new = columns >= self.n_old
        if new.any() and not new.all():
            logits = self.logits(gradient.to_array(self.held_out["inputs"])).astype(np.float64)
            pair = fit_pair(logits, columns, self.n_old, self.options.l2)
            self.scale[self.n_old :], self.shift[self.n_old :] = pair

    def absorb(self, rows: Rows) -> None:
        """Choose exemplars among the samples that were trained on, and a teacher."""
        super().absorb(_without(rows, self._apart))

    def corrected(self, logits: torch.Tensor) -> torch.Tensor:
        """Return a z + b for logits of the first columns."""
        import torch

        n = logits.shape[1]
        a, b = (gradient.send(torch.from_numpy(pair[:n]).to(logits.dtype), logits.device) for pair in self._pairs)
        return a * logits + b

    def logits(self, encoded: Any) -> Floats:
        """Return corrected logits of shape (n, C), in the order in which classes came."""
        plain = super().logits(encoded)
        a, b = (pair.astype(plain.dtype) for pair in self._pairs)
        return plain * a + b

    @property
    def _pairs(self) -> tuple[Floats, Floats]:
        return self.scale, self.shift

    @property
    def _quota(self) -> int:
        """Samples of a class that are never trained on."""
        return max(1, round(self.options.validation * self.options.exemplars))

    def _grow(self) -> None:
        """Give new classes the pair 1 and 0."""
        more = len(self.student.head.classes) - len(self.scale)
        self.scale, self.shift = np.append(self.scale, np.ones(more)), np.append(self.shift, np.zeros(more))

    def _set_apart(self, rows: Rows) -> torch.Tensor:
        """Return the places of samples to validate with: a random few of each class, until its quota is full."""
        import torch

        there = gradient.by_class(self.held_out)
        apart = [torch.zeros(0, dtype=torch.int64, device=gradient.HOST)]
        for label, places in gradient.by_class(rows).items():
            n = min(self._quota - (len(there[label]) if label in there else 0), len(places) - 1)
            apart.append(places[torch.randperm(len(places), generator=self.generator)[: max(n, 0)]])
        return torch.cat(apart)


def fit_pair(logits: Floats, columns: Floats, n_old: int, l2: float) -> tuple[float, float]:
    """Return a and b of least cross-entropy when the logits z of columns from `n_old` on become a z + b.

    Parameters
    ----------
    logits : array of shape (n, C)
    columns : int array of shape (n,)
        The true ones.
    n_old : int
        Columns that stay as they are.
    l2 : float
        Weight of b^2 / 2.

    Notes
    -----
    Newton's method, with steps that are halved until the loss falls.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl.methods.bic import fit_pair
    >>> logits = np.array([[1.0, 2.0], [0.5, 0.1], [0.2, 1.5], [0.0, 3.0]])
    >>> a, b = fit_pair(logits, np.array([0, 0, 1, 1]), 1, 0.0)
    >>> shares = 1 / (1 + np.exp(logits[:, 0] - a * logits[:, 1] - b))
    >>> print(f"{shares.mean():.4f}")  # that of the new class in the sample
    0.5000
    """
    z, y = logits[:, n_old:], np.eye(logits.shape[1])[columns]

    def evaluate(pair: Floats) -> tuple[float, Floats]:
        corrected = np.concatenate([logits[:, :n_old], pair[0] * z + pair[1]], axis=1)
        shifted = corrected - corrected.max(axis=1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return float(-(y * logs).sum() / len(y) + l2 * pair[1] ** 2 / 2), np.exp(logs)

    pair = np.array([1.0, 0.0])
    loss, p = evaluate(pair)
    for _ in range(MAX_STEPS):
        errors, shares = (p - y)[:, n_old:], p[:, n_old:]
        slope = np.array([(errors * z).sum() / len(y), errors.sum() / len(y) + l2 * pair[1]])
        # Covariances under p of z and 1 on the new columns, which are 0 on the others.
        m, m_z, m_zz = shares.sum(1), (shares * z).sum(1), (shares * z**2).sum(1)
        ab = (m_z - m_z * m).mean()
        hessian = np.array([[(m_zz - m_z**2).mean(), ab], [ab, (m - m**2).mean() + l2]])
        step = np.linalg.solve(hessian + 1e-9 * np.eye(2), slope)
        size = 1.0
        while size > 1e-4:
            trial, trial_p = evaluate(pair - size * step)
            if trial < loss:
                pair, loss, p = pair - size * step, trial, trial_p
                break
            size /= 2
        else:
            break
    return float(pair[0]), float(pair[1])


def _without(rows: Rows, places: torch.Tensor) -> Rows:
    import torch

    stays = torch.ones(gradient.count(rows), dtype=torch.bool, device=gradient.HOST)
    stays[places] = False
    return gradient.take(rows, torch.nonzero(stays).flatten())
