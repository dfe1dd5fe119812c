"""REAL, representation-enhanced analytic learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from aircl.classifiers.acil import ACILClassifier
from aircl.methods.base_phase import BasePhaseMethod
from aircl.methods.method import IncompatibleError
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch
    from torch import nn

    from aircl.backbones.base_trained import BaseTrained
    from aircl.backbones.network import Network
    from aircl.methods.gradient import Rows


@register_method("real")
class Real(BasePhaseMethod):
    """REAL: ACIL on a backbone that learned the first phase without labels, and then from a supervised backbone.

    Three networks of one architecture: one is trained on the labels of the first phase (the benchmark's base: backbone
    is that one), one on pairs of views of its images, without labels; the second is then taught the features of the
    first, and kept.

    Notes
    -----
    With ``fusion=True`` the classifier sees features of three depths of that network, side by side: the feature fusion
    buffer of the second version [1]_, as far as its abstract describes it. Which depths, and that they are put side by
    side before the random layer, is ours.

    References
    ----------
    .. [1] He et al. "REAL: Representation Enhanced Analytic Learning for Exemplar-free Class-incremental Learning."
       2024.
    """

    estimator = ACILClassifier
    trial_options: ClassVar[Mapping[str, Any]] = {"epochs": 1, "distillation_epochs": 3, "learning_rate": 3e-3}
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "epochs": 20, "distillation_epochs": 20, "learning_rate": 1e-3, "fusion": False,
    }  # fmt: skip

    def make(self) -> ACILClassifier:
        """Return ACIL behind the buffer."""
        return ACILClassifier(self.setup.gamma, expansion=self.buffer, calibrate=False)

    def check_backbone(self) -> Network:
        """Return the backbone, if it was trained on the base phase: that is the supervised one of the three."""
        from aircl.backbones.base_trained import BaseTrained

        backbone = super().check_backbone()
        if not isinstance(backbone, BaseTrained):
            raise IncompatibleError(
                f"it trains networks of the architecture of base:resnet32 or base:vit-micro; it got {backbone.name!r}."
            )
        return backbone

    def empty(self) -> nn.Module:
        """Return a network of the backbone's architecture, with the weights that the seed gives."""
        return self._fused(self._build())

    def adapt(self, rows: Rows) -> nn.Module:
        """Train a network on pairs of views, then on the features of the supervised one."""
        import torch
        from torch import nn

        from aircl.backbones.device import send
        from aircl.methods.gradient.representation import contrastive_loss, feature_distance, train

        options = self._options
        teacher, device, pixels, width = self.network.module, self.network.device, rows["inputs"], self.network.width
        trunk = self._build().train().to(device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.setup.seed)
            projection = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).to(device)

        def views(places: torch.Tensor) -> torch.Tensor:
            return send(self.views.changed(pixels[places], self.generator), device)

        def contrast(places: torch.Tensor) -> torch.Tensor:
            both = projection(trunk(torch.cat([views(places), views(places)])))
            return contrastive_loss(both[: len(places)], both[len(places) :])

        def distance(places: torch.Tensor) -> torch.Tensor:
            images = views(places)
            with torch.no_grad():
                taught = teacher(images)
            return feature_distance(trunk(images), taught)

        settings: dict[str, Any] = {
            "batch_size": max(2, self.setup.batch_size),
            "kind": "adam",
            "learning_rate": options["learning_rate"],
        }
        if len(pixels) > 1:  # one sample has nothing to be told from, and a batch normalisation nothing to learn from
            parameters = [*trunk.parameters(), *projection.parameters()]
            train(contrast, parameters, len(pixels), self.generator, epochs=options["epochs"], **settings)
            parameters = list(trunk.parameters())
            train(distance, parameters, len(pixels), self.generator, epochs=options["distillation_epochs"], **settings)
        return self._fused(trunk)

    @property
    def _options(self) -> dict[str, Any]:
        return self.resolve_options(self.setup.options, online=False)

    def _build(self) -> nn.Module:
        from aircl.backbones.base_trained import build

        backbone: BaseTrained = self.network  # type: ignore[assignment]
        return build(backbone.architecture, backbone.transform.size, seed=self.setup.seed)

    def _fused(self, trunk: nn.Module) -> nn.Module:
        from aircl.methods.gradient.representation import LayerFeatures

        return LayerFeatures(trunk) if self._options["fusion"] else trunk
