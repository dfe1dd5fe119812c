"""iCaRL: exemplars by herding, distillation, and the nearest mean of exemplars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from aircl.methods import gradient
from aircl.methods.gradient.options import AdjustOptions, StepOptions
from aircl.methods.gradient.rehearsal import Rehearsal
from aircl.methods.lwf import DistillationOptions, Taught
from aircl.methods.method import Floats, Labels, Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch

    from aircl.methods.gradient import Exemplars, Rows


@dataclass(frozen=True)
class ExemplarOptions(AdjustOptions, DistillationOptions):
    """Options of methods with exemplars of each class.

    Attributes
    ----------
    exemplars : int
        Samples that are kept of a class, at most.
    """

    distillation: float = 1.0
    exemplars: int = 20

    may_be_zero = DistillationOptions.may_be_zero | AdjustOptions.may_be_zero


class ExemplarReplay(Rehearsal, Taught):
    """A student with a teacher and exemplars: a phase is trained on together with all of them."""

    Options: ClassVar[type[StepOptions]] = ExemplarOptions
    options: ExemplarOptions
    memory: Exemplars

    def make_memory(self) -> Exemplars:
        """Return a memory of exemplars, which online approach the mean of all samples so far."""
        return gradient.Exemplars(self.options.exemplars, self._encode, running=self.setup.online)

    @property
    def n_replayed(self) -> int:
        """Some exemplars accompany a batch if the stream is online."""
        replay: int = getattr(self.options, "replay", 0)
        return replay if self.setup.online else 0

    def material(self, rows: Rows) -> Rows:
        """Add all exemplars."""
        return gradient.join([rows, self.memory.rows])

    def _encode(self, inputs: torch.Tensor) -> torch.Tensor:
        import torch

        return torch.from_numpy(self.features(gradient.to_array(inputs)))


@dataclass(frozen=True)
class ICaRLOptions(ExemplarOptions):
    """Options of iCaRL.

    Attributes
    ----------
    replay : int
        Exemplars beside every batch of an online stream; a phase is trained on together with all of them.
    classify : {"nearest-mean", "head"}
        Predict the class whose exemplars have the nearest mean, or that of the highest logit.
    """

    replay: int = 32
    classify: Literal["nearest-mean", "head"] = "nearest-mean"


@register_method("icarl")
class ICaRL(ExemplarReplay):
    """iCaRL: a few exemplars of each class, chosen by herding; distillation; nearest mean of exemplars.

    Notes
    -----
    On features of a frozen backbone the nearest mean depends on the exemplars alone. An online stream shows a sample
    once: exemplars are chosen again among themselves and the new batch, to approach the mean of all samples so far.

    References
    ----------
    .. [1] Rebuffi et al. "iCaRL: Incremental Classifier and Representation Learning." CVPR 2017.
    """

    Options = ICaRLOptions
    options: ICaRLOptions

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        # Classes and means that predictions are made with; None: to be computed.
        self._means: tuple[list[int], torch.Tensor] | None = None

    @classmethod
    def title_for(cls, name: str, options: Mapping[str, Any], *, online: bool) -> str:
        """Say what is left of it on a frozen backbone."""
        frozen = cls.inputs_for(options) == "features" and options.get("classify") == "nearest-mean"
        return f"{name} (nearest mean of exemplars)" if frozen else name

    def absorb(self, rows: Rows) -> None:
        """Choose exemplars, and a teacher."""
        super().absorb(rows)
        self._means = None

    def refresh(self) -> None:
        """Compute the means of the exemplars, if something was learned since."""
        if self._means is None and len(self.memory):
            self._means = self.memory.means()

    def predict(self, encoded: Any) -> Labels:
        """Return the class with the nearest mean of exemplars; cosines of features."""
        if self.options.classify == "head" or not len(self.memory):
            return super().predict(encoded)
        self.refresh()
        assert self._means is not None
        classes, means = self._means
        # The nearest of means of length 1 is that of the greatest product, whatever the length of the features.
        predicted: Labels = np.array(classes, np.int64)[(self.features(encoded) @ gradient.to_array(means).T).argmax(1)]
        return predicted

    def scores(self, encoded: Any) -> tuple[Labels, Floats] | None:
        """Return probabilities of the head if it predicts; distances to means are none."""
        return super().scores(encoded) if self.options.classify == "head" else None

    def weight_norms(self) -> tuple[Labels, Floats] | None:
        """Return the norms of the head's rows if it predicts; means all have length 1."""
        return super().weight_norms() if self.options.classify == "head" else None

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on with teacher and exemplars."""
        super().set_state(state)
        self._means = None
