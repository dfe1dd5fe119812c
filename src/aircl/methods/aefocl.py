"""AEF-OCL."""

from __future__ import annotations

from aircl.classifiers.aefocl import AEFOCLClassifier
from aircl.methods.classifier import AnalyticMethod
from aircl.methods.registry import register_method


@register_method("aef-ocl")
class AefOcl(AnalyticMethod):
    """AEF-OCL: ACIL; for every solve, Gaussian pseudo-features fill all classes up to the size of the largest."""

    estimator, options = AEFOCLClassifier, ("spread",)

    def make(self) -> AEFOCLClassifier:
        """Return AEF-OCL behind the buffer."""
        setup = self.setup
        return AEFOCLClassifier(setup.gamma, expansion=self.buffer, random_state=setup.seed, **setup.options)
