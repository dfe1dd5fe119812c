"""RanPAC, on features; or, with an adapter that is trained on the first phase, on images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from aircl.classifiers.ranpac import RanPACClassifier
from aircl.methods.base_phase import BasePhaseMethod
from aircl.methods.classifier import AnalyticMethod
from aircl.methods.method import Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    from torch import nn

    from aircl.backbones.network import Network
    from aircl.methods.gradient import Rows
    from aircl.methods.gradient.adapters import AdaptedViT


@register_method("ranpac")
class RanPac(AnalyticMethod):
    """RanPAC: a wide layer of normal random weights, and a ridge that is searched on held-out rows of every phase."""

    estimator = RanPACClassifier
    uses_phase_ends = True
    # Whether there is an adapter, and whether the ridge is searched, whatever the gamma of the run is.
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"adapter": False, "search": True}

    def __new__(cls, setup: Setup) -> Self:
        """Return RanPAC, with an adapter if the options ask for one."""
        return super().__new__(AdaptedRanPac if setup.options.get("adapter") else cls)  # type: ignore[return-value]

    @classmethod
    def inputs_for(cls, options: Mapping[str, Any]) -> Literal["features", "images"]:
        """Return "images" if there is to be an adapter, else "features"."""
        return "images" if options.get("adapter") else "features"

    @classmethod
    def notes_for(cls, options: Mapping[str, Any], *, online: bool) -> list[str]:
        """Say where its ridge comes from."""
        searched = ["Its ridge is searched on held-out rows of every phase; the gamma of the run is not for it."]
        return super().notes_for(options, online=online) + (searched if options.get("search") else [])

    def make(self) -> RanPACClassifier:
        """Return RanPAC, of the benchmark's width; without the search gamma="auto" means the search all the same."""
        options = self.resolve_options(self.setup.options, online=self.setup.online)
        gamma = "held-out" if options["search"] or self.setup.gamma == "auto" else self.setup.gamma
        return RanPACClassifier(gamma, n_components=self.setup.buffer, random_state=self.setup.seed)


class AdaptedRanPac(BasePhaseMethod, RanPac):
    """RanPAC behind a ViT with adapters beside its MLPs: 20 epochs of the first phase, SGD 0.01 along a cosine."""

    def check_backbone(self) -> Network:
        """Return the backbone, if it is a ViT."""
        from aircl.methods.gradient.adapters import need_vit

        need_vit(self.setup.backbone, "adapters")
        return super().check_backbone()

    def empty(self) -> AdaptedViT:
        """Return the ViT with adapters that change nothing yet."""
        from aircl.methods.gradient.adapters import AdaptedViT, need_vit

        return AdaptedViT(need_vit(self.setup.backbone, "adapters"), self.generator)

    def adapt(self, rows: Rows) -> nn.Module:
        """Train adapters below a head of cosines, which is thrown away."""
        return (
            self.empty()
            .to(self.network.device)
            .learn_classes(
                rows, self.views, self.generator, epochs=20, batch_size=self.setup.batch_size, learning_rate=0.01
            )
        )
