"""RanPAC, on features; or, with an adapter that is trained on the first phase, on images."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from aircl.classifiers.ranpac import RanPACClassifier
from aircl.methods.base_phase import BasePhaseMethod
from aircl.methods.classifier import AnalyticMethod
from aircl.methods.method import IncompatibleError, Setup
from aircl.methods.registry import register_method

if TYPE_CHECKING:
    import torch
    from torch import nn

    from aircl.backbones.network import Network
    from aircl.methods.gradient import Rows


@register_method("ranpac")
class RanPac(AnalyticMethod):
    """RanPAC: a wide layer of normal random weights, and a ridge that is searched on held-out rows of every phase."""

    estimator = RanPACClassifier
    uses_phase_ends = True

    def __new__(cls, setup: Setup) -> Self:
        """Return RanPAC, with an adapter if the options ask for one."""
        return super().__new__(AdaptedRanPac if setup.options.get("adapter") else cls)  # type: ignore[return-value]

    @classmethod
    def resolve_options(cls, options: Mapping[str, Any], *, online: bool) -> dict[str, Any]:
        """Return all options with their values; those that there are not are errors."""
        if unknown := sorted(set(options) - {"adapter"}):
            raise ValueError(f"there is no option {', '.join(map(repr, unknown))}. Allowed: adapter.")
        return {"adapter": bool(options.get("adapter", False))}

    @classmethod
    def inputs_for(cls, options: Mapping[str, Any]) -> Literal["features", "images"]:
        """Return "images" if there is to be an adapter, else "features"."""
        return "images" if options.get("adapter") else "features"

    def make(self) -> RanPACClassifier:
        """Return RanPAC, of the benchmark's width; gamma="auto" is the search on held-out rows."""
        gamma = "held-out" if self.setup.gamma == "auto" else self.setup.gamma
        return RanPACClassifier(gamma, n_components=self.setup.buffer, random_state=self.setup.seed)


class AdaptedRanPac(BasePhaseMethod, RanPac):
    """RanPAC behind a ViT with adapters beside its MLPs: SGD 0.01, 20 epochs of the first phase, cosine."""

    def check_backbone(self) -> Network:
        """Return the backbone, if it is a ViT."""
        from aircl.backbones.vit import VisionTransformer

        backbone = super().check_backbone()
        if not isinstance(backbone.module, VisionTransformer):
            raise IncompatibleError(
                f"an adapter goes into a ViT, such as base:vit-micro; it got {backbone.name!r}. Leave adapter out."
            )
        return backbone

    def empty(self) -> nn.Module:
        """Return the ViT, copied, with adapters that change nothing yet."""
        from aircl.backbones.vit import VisionTransformer
        from aircl.methods.gradient.representation import AdaptedViT

        vit = copy.deepcopy(self.network.module)
        assert isinstance(vit, VisionTransformer)
        return AdaptedViT(vit, generator=self.generator)

    def adapt(self, rows: Rows) -> nn.Module:
        """Train adapters and a head that is thrown away."""
        import torch
        from torch import nn
        from torch.nn.functional import cross_entropy, linear

        from aircl.backbones.device import send
        from aircl.methods.gradient.representation import train

        device, pixels = self.network.device, rows["inputs"]
        trunk = self.empty().train().to(device)
        classes, codes = torch.unique(rows["labels"], return_inverse=True)
        head = nn.Parameter(torch.zeros(len(classes), self.network.width, device=device))

        def loss(places: torch.Tensor) -> torch.Tensor:
            images = send(self.views.changed(pixels[places], self.generator), device)
            return cross_entropy(linear(trunk(images), head), send(codes[places], device))

        parameters = [parameter for parameter in trunk.parameters() if parameter.requires_grad]
        train(
            loss, [*parameters, head], len(pixels), self.generator,
            epochs=20, batch_size=self.setup.batch_size, kind="sgd", learning_rate=0.01,
        )  # fmt: skip
        return trunk
