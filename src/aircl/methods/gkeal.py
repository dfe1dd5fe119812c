"""GKEAL, which needs its whole first phase before it can begin."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from aircl.classifiers.gkeal import GKEALClassifier
from aircl.methods.classifier import AnalyticMethod
from aircl.methods.method import Floats, Labels, Setup
from aircl.methods.registry import register_method
from aircl.scenarios import Phase

# Number of centres where the benchmark has no buffer.
WIDTH = 2048


@register_method("gkeal")
class Gkeal(AnalyticMethod):
    """GKEAL: ACIL on Gaussian kernel values at centres that are samples of the first phase."""

    estimator, options = GKEALClassifier, ("sigma",)
    uses_phase_ends = True
    _classifier: GKEALClassifier

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        # The first phase: centres are drawn from all of it when it ends, and it is learned then.
        self._phase: list[tuple[Floats, Labels]] = []
        self._begun, self._centres = False, 0

    def make(self) -> GKEALClassifier:
        """Return GKEAL with as many centres as the benchmark's buffer is wide."""
        setup = self.setup
        width = setup.buffer or WIDTH
        return GKEALClassifier(setup.gamma, n_components=width, random_state=setup.seed, **setup.options)

    def learn(self, inputs: Floats, labels: Labels) -> None:
        """Keep a batch of the first phase; add a later one to the statistics."""
        if self._begun:
            super().learn(inputs, labels)
        elif len(labels):
            self._phase.append((np.array(inputs), np.array(labels)))
            self._classifier = self.make()  # what was tried on the phase so far

    def refresh(self) -> None:
        """Solve; in the first phase, from what there is of it."""
        if not self._begun and self._phase and not self.has_learned:
            inputs, labels = (np.concatenate(parts) for parts in zip(*self._phase, strict=True))
            self._classifier.fit(self.sent(inputs), labels)
        super().refresh()

    def end_phase(self, phase: Phase) -> None:
        """Begin, if this was the first phase that had samples."""
        if not self._begun and self._phase:
            self.refresh()
            self._centres = min(self.samples_kept, self._classifier.n_components)
            self._phase, self._begun = [], True
        super().end_phase(phase)

    def encode(self, inputs: Floats) -> Floats:
        """Return the inputs: the centres are not known while the first phase lasts."""
        return inputs

    def scores(self, encoded: Floats) -> tuple[Labels, Floats]:
        """Return the regression on one-hot targets."""
        self.refresh()
        return super().scores(self._classifier.expand(self.sent(encoded)))

    @property
    def samples_kept(self) -> int:
        """The centres that are samples, and the first phase while it lasts."""
        return self._centres + sum(len(labels) for _, labels in self._phase)

    def save(self, directory: Path) -> None:
        """Write the classifier, or what there is of the first phase."""
        if self._begun:
            super().save(directory)
        state = {"begun": np.array([self._begun, self._centres])}
        if self._phase:
            inputs, labels = (np.concatenate(parts) for parts in zip(*self._phase, strict=True))
            state |= {"inputs": inputs, "labels": labels}
        save_file(state, directory / "first_phase.safetensors")

    def restore(self, directory: Path) -> None:
        """Read what was written."""
        state = load_file(directory / "first_phase.safetensors")
        self._begun, self._centres = bool(state["begun"][0]), int(state["begun"][1])
        if self._begun:
            super().restore(directory)
        elif "labels" in state:
            self._phase = [(state["inputs"], state["labels"])]
