"""What gradient methods are made of. A part is imported when it is first asked for, and torch with it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aircl.methods.gradient.anchor import Anchor
    from aircl.methods.gradient.balanced import BalancedMemory, equidistant, fair_shares
    from aircl.methods.gradient.distillation import distillation_loss
    from aircl.methods.gradient.exemplars import Exemplars
    from aircl.methods.gradient.head import GrowingHead, mask_logits
    from aircl.methods.gradient.herding import herd
    from aircl.methods.gradient.optimiser import Optimiser
    from aircl.methods.gradient.reservoir import Reservoir
    from aircl.methods.gradient.rows import Rows, by_class, count, join, nothing, pieces, take
    from aircl.methods.gradient.student import Student
    from aircl.methods.gradient.uncertainty import vote_uncertainty
    from aircl.methods.gradient.views import FeatureViews, ImageViews

__all__ = [
    "Anchor",
    "BalancedMemory",
    "Exemplars",
    "FeatureViews",
    "GrowingHead",
    "ImageViews",
    "Optimiser",
    "Reservoir",
    "Rows",
    "Student",
    "by_class",
    "count",
    "distillation_loss",
    "equidistant",
    "fair_shares",
    "herd",
    "join",
    "mask_logits",
    "nothing",
    "pieces",
    "take",
    "vote_uncertainty",
]

_HOMES = {
    "Anchor": "anchor",
    "BalancedMemory": "balanced",
    "Exemplars": "exemplars",
    "FeatureViews": "views",
    "GrowingHead": "head",
    "ImageViews": "views",
    "Optimiser": "optimiser",
    "Reservoir": "reservoir",
    "Rows": "rows",
    "Student": "student",
    "by_class": "rows",
    "count": "rows",
    "distillation_loss": "distillation",
    "equidistant": "balanced",
    "fair_shares": "balanced",
    "herd": "herding",
    "join": "rows",
    "mask_logits": "head",
    "nothing": "rows",
    "pieces": "rows",
    "take": "rows",
    "vote_uncertainty": "uncertainty",
}


def __getattr__(name: str) -> Any:
    """Import a part when it is first asked for: methods can be listed without torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'aircl.methods.gradient' has no attribute {name!r}")
    return getattr(import_module(f"aircl.methods.gradient.{_HOMES[name]}"), name)
