"""Analytic classifiers behind a random buffer, as methods of the benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from aircl.classifiers.acil import ACILClassifier
from aircl.classifiers.air import AIRClassifier
from aircl.classifiers.analytic import AnalyticClassifier
from aircl.engine import StoreError
from aircl.expansion import RandomReLU
from aircl.methods.method import Floats, IncompatibleError, Labels, Method, Setup
from aircl.methods.registry import register_method
from aircl.scenarios import Phase


class AnalyticMethod(Method):
    """A closed-form classifier on features, behind a frozen random ReLU buffer if one is asked for.

    Attributes
    ----------
    classifier : type
    store : str
    """

    analytic = True
    classifier: ClassVar[type[AnalyticClassifier]]
    store: ClassVar[str]

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._classifier = self.classifier(gamma=setup.gamma, store=self.store, **setup.options)
        self._buffer: RandomReLU | None = None
        if setup.buffer is not None:
            self._buffer = RandomReLU(setup.buffer, random_state=setup.seed)
            self._buffer.fit(np.zeros((1, setup.n_features), np.float32))

    def encode(self, inputs: Floats) -> Floats:
        """Return the output of the buffer, shape (n, buffer)."""
        return inputs if self._buffer is None else self._buffer.transform(inputs)

    def learn(self, inputs: Floats, labels: Labels) -> None:
        """Add a batch to the statistics."""
        try:
            self._classifier.partial_fit(self.encode(inputs), labels)
        except StoreError as error:
            raise IncompatibleError(str(error)) from error

    def refresh(self) -> None:
        """Solve, if something was learned since."""
        if self._classifier.__sklearn_is_fitted__():
            self._classifier.coef_  # noqa: B018 (which solves)

    def end_phase(self, phase: Phase) -> None:
        """Close the phase: the pooled store folds it."""
        if self._classifier.__sklearn_is_fitted__():
            self._classifier.end_phase()

    def predict(self, encoded: Floats) -> Labels:
        """Return the class of the highest score."""
        labels: Labels = self._classifier.predict(encoded)
        return labels

    def set_gamma(self, gamma: float) -> None:
        """Use another ridge from now on; what was learned stays."""
        self._classifier.set_params(gamma=gamma)

    def facts(self) -> dict[str, Any]:
        """Return the gamma that was used last."""
        return {"gamma": float(self._classifier.gamma_)} if self._classifier.__sklearn_is_fitted__() else {}

    def scores(self, encoded: Floats) -> tuple[Labels, Floats]:
        """Return the regression on one-hot targets."""
        return self._classifier.classes_, encoded @ self._classifier.coef_.T.astype(encoded.dtype)

    def weight_norms(self) -> tuple[Labels, Floats]:
        """Return the norm of each class's column of W."""
        return self._classifier.classes_, np.linalg.norm(self._classifier.coef_, axis=1)

    def save(self, directory: Path) -> None:
        """Write the classifier; the buffer follows from the seed."""
        self._classifier.save(directory / "classifier.safetensors")

    def restore(self, directory: Path) -> None:
        """Read the classifier."""
        self._classifier = self.classifier.load(directory / "classifier.safetensors")


@register_method("air")
class Air(AnalyticMethod):
    """AIR, exact for every stream: every class's second moment, weighted by 1/count."""

    classifier, store = AIRClassifier, "per-class"


@register_method("air-shared")
class AirShared(AnalyticMethod):
    """AIR with one within-class scatter for all classes, in 1/C of the memory."""

    classifier, store = AIRClassifier, "shared"


@register_method("air-pooled")
class AirPooled(AnalyticMethod):
    """AIR as in the paper's Algorithm 1, for phases that share no class."""

    classifier, store = AIRClassifier, "pooled"


@register_method("acil")
class Acil(AnalyticMethod):
    """ACIL: every sample weighs the same, so frequent classes weigh most."""

    classifier, store = ACILClassifier, "shared"
