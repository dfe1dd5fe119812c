"""AIR in its three stores, and calibrated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from aircl.classifiers.air import AIRClassifier
from aircl.methods.classifier import AnalyticMethod
from aircl.methods.registry import register_method


@register_method("air")
class Air(AnalyticMethod):
    """AIR, exact for every stream: every class's second moment, weighted by 1/count."""

    estimator = AIRClassifier
    options: ClassVar[tuple[str, ...]] = ("weighting", "scale", "memory_limit")
    fixed: ClassVar[dict[str, Any]] = {"calibrate": False}

    def make(self) -> AIRClassifier:
        """Return AIR behind the buffer."""
        return AIRClassifier(self.setup.gamma, expansion=self.buffer, **self.fixed, **self.setup.options)


@register_method("air-calibrated")
class AirCalibrated(Air):
    """`AIRClassifier` with its defaults: its own buffer, and an intercept and calibrated probabilities."""

    options = (*Air.options, "store")
    # Behind the buffer, the classes of a trial stay below the f/2 samples from which on their moments do not grow.
    trial_options: ClassVar[Mapping[str, Any]] = {"store": "shared"}

    def make(self) -> AIRClassifier:
        """Return AIR with the buffer that it chooses, whatever the run says."""
        return AIRClassifier(self.setup.gamma, random_state=self.setup.seed, **self.setup.options)


@register_method("air-shared")
class AirShared(Air):
    """AIR with one within-class scatter for all classes, in 1/C of the memory."""

    fixed: ClassVar[dict[str, Any]] = {"store": "shared", "calibrate": False}


@register_method("air-pooled")
class AirPooled(Air):
    """AIR as in the paper's Algorithm 1, for phases that share no class."""

    fixed: ClassVar[dict[str, Any]] = {"store": "pooled", "calibrate": False}
