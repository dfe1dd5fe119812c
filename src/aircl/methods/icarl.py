"""iCaRL: exemplars by herding, distillation, and the nearest mean of exemplars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from aircl.methods import gradient
from aircl.methods.lwf import DistillationOptions, Taught
from aircl.methods.method import Floats, Labels, Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch

    from aircl.methods.gradient import Rows


@dataclass(frozen=True)
class ExemplarOptions(DistillationOptions):
    """Options of iCaRL.

    Attributes
    ----------
    exemplars : int
        Samples that are kept of a class, at most.
    replay : int
        Exemplars beside every batch of an online stream; a phase is trained on together with all of them.
    classify : {"nearest-mean", "head"}
        Predict the class whose exemplars have the nearest mean, or that of the highest logit.
    """

    distillation: float = 1.0
    exemplars: int = 20
    replay: int = 32
    classify: Literal["nearest-mean", "head"] = "nearest-mean"


@register_method("icarl")
class ICaRL(Taught):
    """iCaRL: a few exemplars of each class, chosen by herding; distillation; nearest mean of exemplars.

    Notes
    -----
    On features of a frozen backbone the nearest mean depends on the exemplars alone. An online stream shows a sample
    once: exemplars are chosen anew among themselves and the new batch, to approach the mean of all samples so far.

    References
    ----------
    .. [1] Rebuffi et al. "iCaRL: Incremental Classifier and Representation Learning." CVPR 2017.
    """

    Options = ExemplarOptions
    options: ExemplarOptions

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.exemplars = gradient.Exemplars(self.options.exemplars)
        # Of an online stream: for each class the sum of features of length 1, and how many they are.
        self._sums: dict[int, torch.Tensor] = {}
        self._counts: dict[int, int] = {}
        # Classes and means that predictions are made with; None: to be computed.
        self._means: tuple[list[int], torch.Tensor] | None = None

    @property
    def samples_kept(self) -> int:
        """The exemplars."""
        return len(self.exemplars)

    def accompany(self, rows: Rows) -> Rows:
        """Add some exemplars if the stream is online."""
        if not self.setup.online:
            return rows
        return gradient.join([rows, self.exemplars.draw(self.options.replay, self.generator)])

    def material(self, rows: Rows) -> Rows:
        """Add all exemplars."""
        return gradient.join([rows, self.exemplars.rows])

    def absorb(self, rows: Rows) -> None:
        """Choose exemplars, and a teacher."""
        super().absorb(rows)
        self.exemplars.update(rows, self._encode, self._running_means(rows) if self.setup.online else None)
        self._means = None

    def refresh(self) -> None:
        """Compute the means of the exemplars, if something was learned since."""
        if self._means is None and len(self.exemplars):
            self._means = self.exemplars.means(self._encode)

    def predict(self, encoded: Any) -> Labels:
        """Return the class with the nearest mean of exemplars; cosines of features."""
        if self.options.classify == "head" or not len(self.exemplars):
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

    def state(self) -> dict[str, Any]:
        """Return teacher, exemplars and running sums."""
        return {
            **super().state(),
            "exemplars": self.exemplars.state(),
            "sums": {str(label): total for label, total in self._sums.items()},
            "counts": {str(label): n for label, n in self._counts.items()},
        }

    def resume(self, state: dict[str, Any]) -> None:
        """Go on with teacher, exemplars and running sums."""
        super().resume(state)
        self.exemplars.restore(state["exemplars"])
        self._sums = {int(label): total for label, total in state["sums"].items()}
        self._counts = {int(label): n for label, n in state["counts"].items()}
        self._means = None

    def _running_means(self, rows: Rows) -> dict[int, torch.Tensor]:
        """Add samples to the sums of their classes, and return the means of these classes."""
        from torch.nn.functional import normalize

        features = normalize(self._encode(rows["inputs"]))
        classes = gradient.by_class(rows)
        for label, places in classes.items():
            self._sums[label] = features[places].sum(0) + self._sums.get(label, 0)
            self._counts[label] = len(places) + self._counts.get(label, 0)
        return {label: self._sums[label] / self._counts[label] for label in classes}

    def _encode(self, inputs: torch.Tensor) -> torch.Tensor:
        import torch

        return torch.from_numpy(self.features(gradient.to_array(inputs)))
