"""Post-scaling of class-imbalanced continual learning (CImbL)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from aircl.methods.gradient.options import ReplayOptions
from aircl.methods.gradient.rehearsal import Rehearsal
from aircl.methods.lwf import DistillationOptions, Taught
from aircl.methods.method import Floats, Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    from aircl.methods.gradient import Rows


@dataclass(frozen=True)
class CImbLOptions(ReplayOptions, DistillationOptions):
    """Options of CImbL.

    Attributes
    ----------
    distillation : float
        Weight of the answers of the network as it was before, as in LwF; 0: none.
    decay : float
        What counts of earlier steps weigh after each further step.
    tau : float
        Strength of the correction; 0 is none.
    """

    adjust: Literal["none"] = "none"  # a prior is to be corrected once
    distillation: float = 0.0
    decay: float = 1.0

    online: ClassVar[Mapping[str, Any]] = {**ReplayOptions.online, "decay": 0.9}
    may_be_zero = ReplayOptions.may_be_zero | DistillationOptions.may_be_zero
    at_most_one = frozenset({"decay"})


@register_method("cimbl")
class PostScaling(Rehearsal, Taught):
    """CImbL: ER; predictions subtract from each logit the logarithm of the class's share of what was trained on.

    z_c + tau log((1/C) / pi_c), pi_c the share of class c among the samples of all steps: of an online stream so far,
    else of the last phase; replayed samples count whenever they are replayed.

    Notes
    -----
    It takes the network to have learned the shares, which takes many steps: after few, it corrects too much. Online,
    earlier steps fade by default.

    A class that no step of the last phase had, as the memory lost it, is taken to have had as many as the smallest one
    that was there: its true share, 0, has no logarithm.

    References
    ----------
    .. [1] He, Wang & Chen. "A Tale of Two CILs: The Connections between Class Incremental Learning and Class Imbalanced
       Learning, and Beyond." CVPR Workshops 2021.
    """

    Options: ClassVar[type[CImbLOptions]] = CImbLOptions
    options: CImbLOptions

    kept = "counts"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.counts: dict[int, float] = {}

    def update(self, batch: Rows) -> None:
        """Make one step, and count its samples."""
        super().update(batch)
        for label in self.counts if self.options.decay < 1 else ():
            self.counts[label] *= self.options.decay
        for label in batch["labels"].tolist():
            self.counts[label] = self.counts.get(label, 0.0) + 1

    def train_phase(self, rows: Rows) -> None:
        """Train on a phase, and count its samples only."""
        self.counts = {}
        super().train_phase(rows)

    def offsets(self) -> Floats:
        """Return tau log((1/C) / pi_c) of each column, shape (C,)."""
        least = min(self.counts.values())
        counts = np.array([self.counts.get(label, least) for label in self.student.head.classes])
        offsets: Floats = -self.options.tau * np.log(counts / counts.sum() * len(counts))
        return offsets

    def logits(self, encoded: Any) -> Floats:
        """Return corrected logits of shape (n, C), in the order in which classes came."""
        plain = super().logits(encoded)
        return plain + self.offsets().astype(plain.dtype) if self.counts else plain
