"""ACIL, iterative and recursive, and GACL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aircl.classifiers.acil import ACILClassifier
from aircl.classifiers.acil_recursive import RecursiveACILClassifier
from aircl.methods.classifier import AnalyticMethod
from aircl.methods.method import Floats, Labels, Setup
from aircl.methods.registry import register_method
from aircl.scenarios import Phase


@register_method("acil")
class Acil(AnalyticMethod):
    """ACIL: every sample weighs the same, so frequent classes weigh most."""

    estimator = ACILClassifier

    def make(self) -> ACILClassifier:
        """Return ACIL behind the buffer."""
        return ACILClassifier(self.setup.gamma, expansion=self.buffer, calibrate=False)


@register_method("gacl")
class Gacl(Acil):
    """GACL: ACIL for streams in which classes return; the same as ACIL, as statistics are kept per class."""


@register_method("acil-recursive")
class AcilRecursive(AnalyticMethod):
    """ACIL as published: recursive least squares, up to date after every batch."""

    estimator = RecursiveACILClassifier
    _classifier: RecursiveACILClassifier

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._gamma = ACILClassifier(expansion=self.buffer, calibrate=False) if setup.gamma == "auto" else None

    def make(self) -> RecursiveACILClassifier:
        """Return the recursion. With gamma="auto" it begins with 1, until there is something to choose from."""
        gamma = 1.0 if self.setup.gamma == "auto" else self.setup.gamma
        return RecursiveACILClassifier(gamma, expansion=self.buffer)

    def learn(self, inputs: Floats, labels: Labels) -> None:
        """Follow the batch."""
        super().learn(inputs, labels)
        if self._gamma is not None:
            self._gamma.partial_fit(inputs, labels)

    def refresh(self) -> None:
        """Choose gamma, the first time: from the statistics so far, which are no longer needed then."""
        if self._gamma is not None and self.has_learned:
            self.set_gamma(self._gamma.gamma_)
            self._gamma = None

    def end_phase(self, phase: Phase) -> None:
        """Choose gamma, the first time."""
        self.refresh()

    def set_gamma(self, gamma: float) -> None:
        """Use another ridge from now on, as if it had been so from the start."""
        self._gamma = None
        self._classifier.change_gamma(gamma)

    def facts(self) -> dict[str, Any]:
        """Return gamma."""
        return {"gamma": float(self._classifier.gamma)}

    def save(self, directory: Path) -> None:
        """Write the recursion, and the statistics that gamma is still to be chosen from."""
        super().save(directory)
        if self._gamma is not None:
            self._gamma.save(directory / "gamma.safetensors")

    def restore(self, directory: Path) -> None:
        """Read what was written."""
        super().restore(directory)
        path = directory / "gamma.safetensors"
        self._gamma = ACILClassifier.load(path) if path.exists() else None
