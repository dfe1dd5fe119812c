"""An analytic classifier on a backbone that is adapted to the first phase, and frozen then."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aircl.inputs import Batch
from aircl.methods import gradient
from aircl.methods.classifier import AnalyticMethod
from aircl.methods.method import Floats, IncompatibleError, Labels, Setup

if TYPE_CHECKING:
    from torch import nn

    from aircl.backbones.network import Network
    from aircl.methods.gradient import Rows
    from aircl.scenarios import Phase

# Images that pass the backbone at a time.
IMAGES_AT_A_TIME = 256


class BasePhaseMethod(AnalyticMethod):
    """Collects the images of the first phase, adapts the backbone to them when it ends, and learns features from then.

    A method says how by overriding `adapt`.

    Attributes
    ----------
    trunk : nn.Module or None
        The adapted backbone; None while the first phase lasts.
    """

    consumes = "images"
    uses_phase_ends = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        if find_spec("torch") is None:
            raise IncompatibleError("its backbone is trained with torch: pip install 'aircl[torch]'.")
        import torch

        self.generator = torch.Generator().manual_seed(setup.seed)
        self.network = self.check_backbone()
        self.views = gradient.ImageViews(self.network.transform, augmented=True)
        self.trunk: nn.Module | None = None
        self._phase: list[Rows] = []

    def check_backbone(self) -> Network:
        """Return the backbone, if it can be adapted."""
        from aircl.backbones.network import Network

        backbone = self.setup.backbone
        if not isinstance(backbone, Network):
            name = "none" if backbone is None else repr(backbone.name)
            raise IncompatibleError(f"it adapts a backbone that is a network, such as base:vit-micro; it got {name}.")
        return backbone

    def adapt(self, rows: Rows) -> nn.Module:
        """Return a module from images to features, trained on the samples of the first phase."""
        raise NotImplementedError

    def empty(self) -> nn.Module:
        """Return a module that the weights of an adapted one can be read into."""
        raise NotImplementedError

    def learn(self, inputs: Batch, labels: Labels) -> None:
        """Keep a batch of the first phase; add the features of a later one to the statistics."""
        import torch

        if not len(labels):
            return
        pixels = self.views.tensor(inputs)
        if self.trunk is None:
            self._phase.append(
                {"inputs": pixels, "labels": torch.tensor(np.asarray(labels, np.int64), device=gradient.HOST)}
            )
        else:
            super().learn(self.features(gradient.to_array(pixels)), labels)

    def end_phase(self, phase: Phase) -> None:
        """Adapt the backbone, if this was the first phase that had samples."""
        if self.trunk is None and self._phase:
            rows, self._phase = gradient.join(self._phase), []
            self.trunk = self.adapt(rows).eval().requires_grad_(False)
            super().learn(self.features(gradient.to_array(rows["inputs"])), gradient.to_array(rows["labels"]))
        super().end_phase(phase)

    def features(self, pixels: Any) -> Floats:
        """Return features of uint8 pixels, shape (n, width)."""
        import torch

        from aircl.backbones.device import send

        assert self.trunk is not None
        with torch.inference_mode():
            parts = [
                gradient.to_array(self.trunk(send(self.views.plain(part), self.network.device)))
                for part in gradient.pieces(torch.tensor(pixels, device=gradient.HOST), IMAGES_AT_A_TIME)
            ]
        return np.concatenate(parts) if parts else np.zeros((0, self.setup.n_features), np.float32)

    def encode(self, inputs: Batch) -> Any:
        """Return pixels: what the backbone makes of them changes when the first phase ends."""
        return gradient.to_array(self.views.tensor(inputs))

    def predict(self, encoded: Any) -> Labels:
        """Return the class of the highest score; while the first phase lasts, one that was seen."""
        if self.trunk is not None:
            return super().predict(encoded)
        if len(encoded) and not self._phase:
            raise ValueError("it has learned nothing yet, so there is no class that it could predict.")
        return np.full(len(encoded), int(self._phase[0]["labels"][0]) if len(encoded) else 0, np.int64)

    def scores(self, encoded: Any) -> tuple[Labels, Floats]:
        """Return the regression on one-hot targets."""
        return super().scores(self._classifier.expand(self.sent(self.features(encoded))))

    def probabilities(self, inputs: Batch) -> tuple[Labels, Floats] | None:
        """Return what the classifier says of the features; None while the first phase lasts."""
        if self.trunk is None or not hasattr(self._classifier, "predict_proba"):
            return None
        given = self._classifier.predict_proba(self.sent(self.features(self.encode(inputs))))
        return self._classifier.classes_, self._backend.to_numpy(given)

    def save(self, directory: Path) -> None:
        """Write the classifier, the adapted backbone, and what there is of the first phase."""
        from aircl.methods.gradient.state import write_state

        super().save(directory)
        state = {
            "trunk": None if self.trunk is None else dict(self.trunk.state_dict()),
            "phase": gradient.join(self._phase),
            "flip": self.views.flip,
            "generator": self.generator.get_state(),
        }
        write_state(directory, state)

    def restore(self, directory: Path) -> None:
        """Read what was written."""
        from aircl.methods.gradient.state import read_state

        super().restore(directory)
        state = read_state(directory)
        if state["trunk"] is not None:
            self.trunk = self.empty().to(self.network.device)
            self.trunk.load_state_dict(state["trunk"])
            self.trunk.eval().requires_grad_(False)
        self._phase = [state["phase"]] if gradient.count(state["phase"]) else []
        self.views.flip = state["flip"]
        self.generator.set_state(state["generator"])
