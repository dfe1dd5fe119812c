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
    # Whether there is an adapter, and whether the ridge is searched, whatever the gamma of the run is.
    DEFAULTS: Mapping[str, bool] = {"adapter": False, "search": True}

    def __new__(cls, setup: Setup) -> Self:
        """Return RanPAC, with an adapter if the options ask for one."""
        return super().__new__(AdaptedRanPac if setup.options.get("adapter") else cls)  # type: ignore[return-value]

    @classmethod
    def resolve_options(cls, options: Mapping[str, Any], *, online: bool) -> dict[str, Any]:
        """Return all options with their values; those that there are not are errors."""
        if unknown := sorted(set(options) - set(cls.DEFAULTS)):
            raise ValueError(f"there is no option {', '.join(map(repr, unknown))}. Allowed: {', '.join(cls.DEFAULTS)}.")
        return {name: bool(options.get(name, default)) for name, default in cls.DEFAULTS.items()}

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
        return AdaptedViT(vit, self.generator)

    def adapt(self, rows: Rows) -> nn.Module:
        """Train adapters and a head of cosines times a learned scale, which is thrown away."""
        import torch
        from torch import nn
        from torch.nn.functional import cross_entropy, linear, normalize

        from aircl.backbones.device import send
        from aircl.methods.gradient.representation import train

        device, pixels = self.network.device, rows["inputs"]
        trunk = self.empty().train().to(device)
        classes, codes = torch.unique(rows["labels"], return_inverse=True)
        head = nn.Parameter(torch.empty(len(classes), self.network.width, device="cpu"))
        nn.init.uniform_(head, -(self.network.width**-0.5), self.network.width**-0.5, generator=self.generator)
        head = nn.Parameter(send(head.data, device))  # drawn on the CPU, where the generator is
        scale = nn.Parameter(torch.ones((), device=device))

        def loss(places: torch.Tensor) -> torch.Tensor:
            features = trunk(send(self.views.changed(pixels[places], self.generator, "crop"), device))
            return cross_entropy(scale * linear(normalize(features), normalize(head)), send(codes[places], device))

        parameters = [parameter for parameter in trunk.parameters() if parameter.requires_grad]
        train(
            loss, [*parameters, head, scale], len(pixels), self.generator, epochs=20, batch_size=self.setup.batch_size,
            kind="sgd", learning_rate=0.01, clip=None, weight_decay=5e-4,
        )  # fmt: skip
        return trunk
