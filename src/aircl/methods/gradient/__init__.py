"""What gradient methods are made of. A part is imported when it is first asked for, and torch with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aircl.lazy import on_demand

if TYPE_CHECKING:
    from aircl.backbones.device import HOST, send, to_array
    from aircl.methods.gradient.adaptor import Adaptor, virtual_loss
    from aircl.methods.gradient.anchor import Anchor, MeanFisher, PhaseFisher, StepFisher
    from aircl.methods.gradient.augmentation import cut_mix, rand_augment, random_crops
    from aircl.methods.gradient.balanced import BalancedMemory, equidistant, fair_shares
    from aircl.methods.gradient.distillation import distillation_loss
    from aircl.methods.gradient.diversity import DiverseMemory
    from aircl.methods.gradient.exemplars import Exemplars
    from aircl.methods.gradient.head import CosineHead, GrowingHead, mask_logits
    from aircl.methods.gradient.herding import herd
    from aircl.methods.gradient.importance import ImportanceMemory
    from aircl.methods.gradient.memory import Memory
    from aircl.methods.gradient.optimiser import Optimiser
    from aircl.methods.gradient.partitioning import PartitioningReservoir
    from aircl.methods.gradient.paths import PathIntegral, RiemannianWalk
    from aircl.methods.gradient.policies import make_memory
    from aircl.methods.gradient.prior import LabelWindow, log_prior
    from aircl.methods.gradient.representation import feature_distance
    from aircl.methods.gradient.reservoir import Reservoir
    from aircl.methods.gradient.rows import Rows, balanced_places, by_class, count, join, nothing, pieces, take
    from aircl.methods.gradient.slots import ClassBalancingReservoir
    from aircl.methods.gradient.state import sent_to
    from aircl.methods.gradient.student import Student
    from aircl.methods.gradient.uncertainty import vote_uncertainty
    from aircl.methods.gradient.views import FeatureViews, ImageViews

__all__ = [
    "HOST",
    "Adaptor",
    "Anchor",
    "BalancedMemory",
    "ClassBalancingReservoir",
    "CosineHead",
    "DiverseMemory",
    "Exemplars",
    "FeatureViews",
    "GrowingHead",
    "ImageViews",
    "ImportanceMemory",
    "LabelWindow",
    "MeanFisher",
    "Memory",
    "Optimiser",
    "PartitioningReservoir",
    "PathIntegral",
    "PhaseFisher",
    "Reservoir",
    "RiemannianWalk",
    "Rows",
    "StepFisher",
    "Student",
    "balanced_places",
    "by_class",
    "count",
    "cut_mix",
    "distillation_loss",
    "equidistant",
    "fair_shares",
    "feature_distance",
    "herd",
    "join",
    "log_prior",
    "make_memory",
    "mask_logits",
    "nothing",
    "pieces",
    "rand_augment",
    "random_crops",
    "send",
    "sent_to",
    "take",
    "to_array",
    "virtual_loss",
    "vote_uncertainty",
]

__getattr__ = on_demand(
    __name__,
    {
        "adaptor": "Adaptor virtual_loss",
        "anchor": "Anchor MeanFisher PhaseFisher StepFisher",
        "augmentation": "cut_mix rand_augment random_crops",
        "balanced": "BalancedMemory equidistant fair_shares",
        "exemplars": "Exemplars",
        "views": "FeatureViews ImageViews",
        "head": "CosineHead GrowingHead mask_logits",
        "state": "HOST send sent_to to_array",
        "paths": "PathIntegral RiemannianWalk",
        "policies": "make_memory",
        "prior": "LabelWindow log_prior",
        "slots": "ClassBalancingReservoir",
        "partitioning": "PartitioningReservoir",
        "importance": "ImportanceMemory",
        "diversity": "DiverseMemory",
        "memory": "Memory",
        "optimiser": "Optimiser",
        "representation": "feature_distance",
        "reservoir": "Reservoir",
        "rows": "Rows balanced_places by_class count join nothing pieces take",
        "student": "Student",
        "distillation": "distillation_loss",
        "herding": "herd",
        "uncertainty": "vote_uncertainty",
    },
)
