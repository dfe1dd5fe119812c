"""AIR in its three stores."""

from __future__ import annotations

from typing import ClassVar

from aircl.classifiers.air import AIRClassifier
from aircl.methods.classifier import AnalyticMethod
from aircl.methods.registry import register_method


@register_method("air")
class Air(AnalyticMethod):
    """AIR, exact for every stream: every class's second moment, weighted by 1/count."""

    estimator, options = AIRClassifier, ("weighting", "scale", "memory_limit")
    store: ClassVar[str] = "per-class"

    def make(self) -> AIRClassifier:
        """Return AIR behind the buffer."""
        return AIRClassifier(self.setup.gamma, store=self.store, expansion=self.buffer, **self.setup.options)


@register_method("air-shared")
class AirShared(Air):
    """AIR with one within-class scatter for all classes, in 1/C of the memory."""

    store = "shared"


@register_method("air-pooled")
class AirPooled(Air):
    """AIR as in the paper's Algorithm 1, for phases that share no class."""

    store = "pooled"
