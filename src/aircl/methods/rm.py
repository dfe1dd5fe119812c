"""Rainbow memory (RM)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import cos, pi
from typing import TYPE_CHECKING, Any, Literal

from aircl.methods import gradient
from aircl.methods.gradient.options import ReplayOptions
from aircl.methods.gradient.rehearsal import Rehearsal
from aircl.methods.method import Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch

    from aircl.methods.gradient import BalancedMemory, Rows
    from aircl.methods.gradient.views import Views


@dataclass(frozen=True)
class RainbowOptions(ReplayOptions):
    """Options of RM.

    Attributes
    ----------
    policy : {"rainbow"}
        Samples over the range of uncertainty stay, as many of one class as of another.
    views : int
        Changed views of a sample that vote on its class.
    noise : float
        Size of the noise that changes features, as a share of their root mean square; images go through RandAugment.
    memory_epochs : int
        Passes over the memory when a phase is over: 256 as published, which takes long on images.
    cutmix : bool or None
        Whether half of the steps are made with images that have a rectangle of another one; None: if images are
        augmented, which in turn is by RandAugment if the backbone is trained.
    """

    policy: Literal["rainbow"] = "rainbow"  # type: ignore[assignment]  # its memory is what makes it
    views: int = 12
    noise: float = 0.5
    memory_epochs: int = 32
    cutmix: bool | None = None

    may_be_zero = ReplayOptions.may_be_zero | {"memory_epochs"}

    def __post_init__(self) -> None:
        if self.augment is None and self.unfreeze:
            object.__setattr__(self, "augment", "rand")
        if self.cutmix is None:
            object.__setattr__(self, "cutmix", bool(self.augment))
        super().__post_init__()
        if self.cutmix and not self.on_images:
            raise ValueError("cutmix=True mixes images, but features are trained on. Set augment or unfreeze.")


@register_method("rm")
class RainbowMemory(Rehearsal):
    """RM: ER with a class-balanced memory of certain and uncertain samples; trains on it after each phase.

    Notes
    -----
    In a stream with phases, all samples of a phase are judged when it ends. Online, a sample is judged when it comes,
    and those in memory again when a phase is over, which the method has to be told.

    References
    ----------
    .. [1] Bang et al. "Rainbow Memory: Continual Learning with a Memory of Diverse Samples." CVPR 2021.
    """

    uses_phase_ends = True
    Options = RainbowOptions
    options: RainbowOptions
    memory: BalancedMemory

    kept = "_fresh"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._fresh = False  # whether something came into memory since it was last trained on

    @classmethod
    def notes_for(cls, options: Mapping[str, Any], *, online: bool) -> list[str]:
        """Say that views of features are noise."""
        notes = super().notes_for(options, online=online)
        if cls.inputs_for(options) == "features":
            notes.append("The views that vote on uncertainty are cached features with noise, not augmented images.")
        return notes

    def make_memory(self) -> BalancedMemory:
        """Return a memory that the classes share fairly."""
        return gradient.BalancedMemory(self.options.memory)

    def make_views(self) -> Views:
        """Return views with the noise of the options."""
        views = super().make_views()
        if isinstance(views, gradient.FeatureViews):
            views.noise = self.options.noise
        return views

    def loss(self, batch: Rows) -> torch.Tensor:
        """Return the cross-entropy, in half of the steps of mixed images if they are to be mixed."""
        import torch

        if not self.options.cutmix or torch.rand((), generator=self.generator) < 0.5:
            return super().loss(batch)
        views, partners, share = gradient.cut_mix(self.views.training(batch["inputs"], self.generator), self.generator)
        logits, labels = self.student(views), batch["labels"]
        own, others = (self.criterion(logits, labels[places], views) for places in (slice(None), partners))
        return share * own + (1 - share) * others

    def absorb(self, rows: Rows) -> None:
        """Offer the samples to the memory, with how uncertain the network is of them."""
        if not self.setup.online:
            self._judge_memory()
        super().absorb(self._judged(rows))
        self._fresh = True

    def close_phase(self) -> None:
        """Train on the memory alone, with a learning rate that falls along a cosine and rises again."""
        if not self._fresh:
            return
        self.pass_again(self.memory.rows, self.options.memory_epochs, rate_share, self.make_optimiser())
        self._fresh = False
        if self.setup.online:
            self._judge_memory()

    def _judge_memory(self) -> None:
        if len(self.memory):
            self.memory.rows = self._judged(self.memory.rows)

    def _judged(self, rows: Rows) -> Rows:
        uncertainty = gradient.vote_uncertainty(
            self.student, self.views, rows["inputs"], self.options.views, self.generator
        )
        return {**rows, "uncertainty": uncertainty}


def rate_share(epoch: int) -> float:
    """Return the share of the learning rate in an epoch: a tenth in the first, then cosines over 1, 2, 4, .. epochs.

    >>> [round(rate_share(epoch), 2) for epoch in range(6)]
    [0.1, 1.0, 1.0, 0.51, 1.0, 0.86]
    """
    if epoch == 0:
        return 0.1
    length = 1 << (epoch.bit_length() - 1)  # cycles begin at epochs 1, 2, 4, 8, ..
    return 0.01 + 0.99 * (1 + cos(pi * (epoch - length) / length)) / 2
