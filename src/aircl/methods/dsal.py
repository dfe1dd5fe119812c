"""DS-AL."""

from __future__ import annotations

from aircl.classifiers.dsal import DSALClassifier
from aircl.methods.classifier import AnalyticMethod
from aircl.methods.registry import register_method

# Without a buffer in the benchmark there is still one in DS-AL: its two streams are two activations of it.
WIDTH = 2048


@register_method("ds-al")
class DsAl(AnalyticMethod):
    """DS-AL: ACIL, and a second regression on other features, which learns the residual of each phase."""

    estimator, options = DSALClassifier, ("compensation",)
    uses_phase_ends = True

    def make(self) -> DSALClassifier:
        """Return DS-AL, of the benchmark's width."""
        return DSALClassifier(
            self.setup.gamma,
            n_components=self.setup.buffer or WIDTH,
            random_state=self.setup.seed,
            **self.setup.options,
        )
