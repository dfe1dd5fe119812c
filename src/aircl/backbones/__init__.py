"""Frozen feature extractors, by name. Importing this loads no framework: creating a backbone that needs one does.

>>> from aircl.backbones import create_backbone
>>> backbone = create_backbone("char-ngrams")
>>> backbone.forward(backbone.prepare(["Paris", "Lyon"])).shape
(2, 1024)
"""

from __future__ import annotations

from aircl.backbones.backbone import Backbone, BackboneError, Features
from aircl.backbones.cache import FeatureCache
from aircl.backbones.catalogue import BACKBONES, BackboneEntry, BackboneInfo, create_backbone, list_backbones
from aircl.backbones.weights import WEIGHTS, WeightsPackage, fetch_weights

__all__ = [
    "BACKBONES",
    "WEIGHTS",
    "Backbone",
    "BackboneEntry",
    "BackboneError",
    "BackboneInfo",
    "FeatureCache",
    "Features",
    "WeightsPackage",
    "create_backbone",
    "fetch_weights",
    "list_backbones",
]
