"""What gradient methods are made of. A part is imported when it is first asked for, and torch with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aircl.lazy import on_demand

if TYPE_CHECKING:
    from aircl.backbones.device import to_array
    from aircl.methods.gradient.anchor import Anchor, PhaseFisher, StepFisher
    from aircl.methods.gradient.augmentation import cut_mix, rand_augment, random_crops
    from aircl.methods.gradient.balanced import BalancedMemory, equidistant, fair_shares
    from aircl.methods.gradient.distillation import distillation_loss
    from aircl.methods.gradient.exemplars import Exemplars
    from aircl.methods.gradient.head import GrowingHead, mask_logits
    from aircl.methods.gradient.herding import herd
    from aircl.methods.gradient.memory import Memory
    from aircl.methods.gradient.optimiser import Optimiser
    from aircl.methods.gradient.reservoir import Reservoir
    from aircl.methods.gradient.rows import Rows, by_class, count, join, nothing, pieces, take
    from aircl.methods.gradient.state import sent_to
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
    "Memory",
    "Optimiser",
    "PhaseFisher",
    "Reservoir",
    "Rows",
    "StepFisher",
    "Student",
    "by_class",
    "count",
    "cut_mix",
    "distillation_loss",
    "equidistant",
    "fair_shares",
    "herd",
    "join",
    "mask_logits",
    "nothing",
    "pieces",
    "rand_augment",
    "random_crops",
    "sent_to",
    "take",
    "to_array",
    "vote_uncertainty",
]

__getattr__ = on_demand(
    __name__,
    {
        "anchor": "Anchor PhaseFisher StepFisher",
        "augmentation": "cut_mix rand_augment random_crops",
        "balanced": "BalancedMemory equidistant fair_shares",
        "exemplars": "Exemplars",
        "views": "FeatureViews ImageViews",
        "head": "GrowingHead mask_logits",
        "state": "sent_to to_array",
        "memory": "Memory",
        "optimiser": "Optimiser",
        "reservoir": "Reservoir",
        "rows": "Rows by_class count join nothing pieces take",
        "student": "Student",
        "distillation": "distillation_loss",
        "herding": "herd",
        "uncertainty": "vote_uncertainty",
    },
)
