"""Everything at once: what a method that may keep all samples could reach."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from aircl.classifiers.air import AIRClassifier
from aircl.expansion import RandomReLU
from aircl.methods.method import Floats, Labels, Method, Setup
from aircl.methods.registry import register_method

CLASSIFIERS = ("logistic", "air")


@register_method("joint")
class Joint(Method):
    """The upper bound: keeps every sample, and fits a classifier to all of them whenever it is asked.

    It is logistic regression on standardised features, trained to the end, or AIR. No competitor: the report shows it
    as a bound, and does not rank it.
    """

    is_bound = True
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"classifier": "logistic", "C": 1.0, "balanced": True, "max_iter": 300}

    @classmethod
    def resolve_options(cls, options: Mapping[str, Any], *, online: bool) -> dict[str, Any]:
        """Return all options with their values; those that there are not are errors."""
        resolved = super().resolve_options(options, online=online)
        if resolved["classifier"] not in CLASSIFIERS:
            raise ValueError(f"classifier={resolved['classifier']!r} is not known. Choose one of {CLASSIFIERS}.")
        return resolved

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.options = self.resolve_options(setup.options, online=setup.online)
        self._inputs: list[Floats] = []
        self._labels: list[Labels] = []
        self._classifier: Any = None

    def learn(self, inputs: Floats, labels: Labels) -> None:
        """Keep a batch."""
        if len(labels):
            self._inputs.append(np.array(inputs))
            self._labels.append(np.array(labels, np.int64))
            self._classifier = None

    def refresh(self) -> None:
        """Fit to everything so far, if something is new."""
        if self._classifier is None and self._labels:
            X, y = np.concatenate(self._inputs), np.concatenate(self._labels)
            # One class is no regression; every classifier that has seen nothing else predicts it.
            self._classifier = _Constant(y[0]) if len(np.unique(y)) == 1 else self._fit(X, y)

    def _fit(self, X: Floats, y: Labels) -> Any:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        if self.options["classifier"] == "air":
            width = self.setup.buffer
            buffer = None if width is None else RandomReLU(width, random_state=self.setup.seed)
            return AIRClassifier(self.setup.gamma, expansion=buffer, calibrate=False).fit(X, y)
        model = LogisticRegression(
            C=self.options["C"],
            class_weight="balanced" if self.options["balanced"] else None,
            max_iter=self.options["max_iter"],
        )
        with warnings.catch_warnings():
            # Steps beyond the last are of no use to a bound that is regularised anyway.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return make_pipeline(StandardScaler(), model).fit(X.astype(np.float64), y)

    def predict(self, encoded: Floats) -> Labels:
        """Return the class of the highest score."""
        self.refresh()
        if self._classifier is None:
            raise ValueError("it has learned nothing yet, so there is no class that it could predict.")
        return np.asarray(self._classifier.predict(encoded) if len(encoded) else np.zeros(0), np.int64)

    def probabilities(self, inputs: Floats) -> tuple[Labels, Floats] | None:
        """Return the classes and their probabilities."""
        self.refresh()
        return np.asarray(self._classifier.classes_, np.int64), self._classifier.predict_proba(inputs)

    @property
    def samples_kept(self) -> int:
        """All of them."""
        return sum(map(len, self._labels))

    def save(self, directory: Path) -> None:
        """Write the samples."""
        labels = np.concatenate(self._labels) if self._labels else np.zeros(0, np.int64)
        inputs = np.concatenate(self._inputs) if self._labels else np.zeros((0, self.setup.n_features), np.float32)
        np.savez(directory / "samples.npz", inputs=inputs, labels=labels)

    def restore(self, directory: Path) -> None:
        """Read the samples; the classifier is fitted again."""
        with np.load(directory / "samples.npz") as file:
            self._inputs, self._labels = [], []
            self.learn(file["inputs"], file["labels"])


class _Constant:
    """A classifier of one class."""

    def __init__(self, label: int) -> None:
        self.classes_ = np.array([label])

    def predict(self, X: Floats) -> Labels:
        return np.full(len(X), self.classes_[0])

    def predict_proba(self, X: Floats) -> Floats:
        return np.ones((len(X), 1))
