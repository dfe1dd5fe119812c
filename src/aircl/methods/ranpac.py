"""RanPAC on features."""

from __future__ import annotations

from aircl.classifiers.ranpac import RanPACClassifier
from aircl.methods.classifier import AnalyticMethod
from aircl.methods.registry import register_method


@register_method("ranpac")
class RanPac(AnalyticMethod):
    """RanPAC: a wide layer of normal random weights, and a ridge that is searched on held-out rows of every phase."""

    estimator = RanPACClassifier
    uses_phase_ends = True

    def make(self) -> RanPACClassifier:
        """Return RanPAC, of the benchmark's width; gamma="auto" is the search on held-out rows."""
        gamma = "held-out" if self.setup.gamma == "auto" else self.setup.gamma
        width = self.setup.buffer
        return RanPACClassifier(gamma, n_components=width, random_state=self.setup.seed)
