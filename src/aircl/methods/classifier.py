"""Classifiers of a stream as methods of the benchmark."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from aircl.classifiers.linear import LinearClassifier
from aircl.classifiers.stream import StreamClassifier
from aircl.engine import StoreError
from aircl.engine.backend import NUMPY, NumpyBackend, is_tensor, torch_backend
from aircl.expansion import RandomReLU
from aircl.methods.method import Floats, IncompatibleError, Labels, Method, Setup, with_defaults
from aircl.scenarios import Phase


def engine_backend(device: Any) -> NumpyBackend:
    """Return what statistics are computed with on the device of a run: arrays on the CPU, tensors elsewhere.

    Parameters
    ----------
    device : str, torch.device or None
        As `aircl.backbones.device.choose_device` takes it. "mps" has no float64, so that is the CPU too.
    """
    name = device or os.environ.get("AIRCL_DEVICE") or "auto"
    if name == "cpu" or (name == "auto" and "torch" not in sys.modules):  # no network is about: torch is not loaded
        return NUMPY
    from aircl.backbones.device import choose_device

    chosen = choose_device(name)
    return NUMPY if chosen.type in ("cpu", "mps") else torch_backend(chosen)


class ClassifierMethod(Method):
    """A classifier that learns features batch by batch.

    Where it takes tensors, statistics and solutions are on the device of the run; features and scores are arrays.

    Attributes
    ----------
    estimator : type
    options : tuple of str
        Parameters of the estimator that are options of the method.
    """

    estimator: ClassVar[type[StreamClassifier]]
    options: ClassVar[tuple[str, ...]] = ()
    _classifier: StreamClassifier

    @classmethod
    def resolve_options(cls, options: Mapping[str, Any], *, online: bool) -> dict[str, Any]:
        """Return all options with their values, by default those of the estimator; others are errors."""
        parameters = inspect.signature(cls.estimator).parameters
        return with_defaults(options, cls.DEFAULTS or {name: parameters[name].default for name in cls.options})

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._backend = engine_backend(setup.device) if self.estimator.takes_tensors else NUMPY
        self._classifier = self.make()

    def make(self) -> StreamClassifier:
        """Return the classifier, as `setup` wants it."""
        return self.estimator(**self.setup.options)

    def sent(self, inputs: Any) -> Any:
        """Return features where the classifier computes: as they are, or as a tensor on the device of the run."""
        if self._backend is NUMPY or is_tensor(inputs):
            return inputs
        import torch

        from aircl.backbones.device import send

        return send(torch.tensor(inputs, device="cpu"), torch.device(self._backend.device))

    def learn(self, inputs: Floats, labels: Labels) -> None:
        """Add a batch to the statistics."""
        try:
            self._classifier.partial_fit(self.sent(inputs), labels)
        except StoreError as error:
            raise IncompatibleError(str(error)) from error

    @property
    def has_learned(self) -> bool:
        """Whether there is anything to predict with."""
        return self._classifier.__sklearn_is_fitted__()

    def refresh(self) -> None:
        """Solve, if something was learned since."""
        if self.has_learned:
            self._classifier._solution()

    def end_phase(self, phase: Phase) -> None:
        """Close the phase."""
        if self.has_learned:
            self._classifier.end_phase()

    def predict(self, encoded: Floats) -> Labels:
        """Return the class of the highest score."""
        labels: Labels = self._backend.to_numpy(self._classifier.predict(self.sent(encoded)))
        return labels

    def probabilities(self, inputs: Any) -> tuple[Labels, Floats] | None:
        """Return what the classifier says, if it gives probabilities of features."""
        if self.inputs_for(self.setup.options) != "features" or not hasattr(self._classifier, "predict_proba"):
            return None
        given = self._classifier.predict_proba(self.sent(inputs))
        return self._classifier.classes_, self._backend.to_numpy(given)

    def save(self, directory: Path) -> None:
        """Write the classifier."""
        self._classifier.save(directory / "classifier.safetensors")

    def restore(self, directory: Path) -> None:
        """Read the classifier."""
        self._classifier = type(self._classifier).load(
            directory / "classifier.safetensors", device=None if self._backend is NUMPY else self._backend.device
        )


class AnalyticMethod(ClassifierMethod):
    """A ridge regression on one-hot labels, behind a frozen random buffer if one is asked for."""

    analytic = True
    init: ClassVar[str] = "uniform"
    _classifier: LinearClassifier

    @property
    def buffer(self) -> RandomReLU | None:
        """The buffer that `setup` asks for, not fitted."""
        width = self.setup.buffer
        return None if width is None else RandomReLU(width, init=self.init, random_state=self.setup.seed)

    def encode(self, inputs: Floats) -> Floats:
        """Return the output of the buffer, shape (n, buffer): test samples pass it once."""
        classifier: StreamClassifier = self._classifier
        if not self.has_learned:  # the buffer follows from the seed and the width alone
            classifier = self.make().partial_fit(self.sent(np.zeros((1, inputs.shape[1]), inputs.dtype)), [0])
        features: Floats = self._backend.to_numpy(classifier.expand(self.sent(inputs)))
        return features

    def predict(self, encoded: Floats) -> Labels:
        """Return the class of the highest score."""
        classes, scores = self.scores(encoded)
        best: Labels = classes[scores.argmax(axis=1)]
        return best

    def scores(self, encoded: Floats) -> tuple[Labels, Floats]:
        """Return the regression on one-hot targets, with the intercept if there is one."""
        solved = self._classifier._current()._solved
        X = self._backend.cast(self.sent(encoded), solved.dtype)
        scores: Floats = self._backend.to_numpy(solved.solution.scorer(solved.labels.order)(X))
        return solved.labels.seen[solved.labels.order], scores

    def weight_norms(self) -> tuple[Labels, Floats]:
        """Return the norm of each class's column of W."""
        return self._classifier.classes_, np.linalg.norm(self._backend.to_numpy(self._classifier.coef_), axis=1)

    def set_gamma(self, gamma: float) -> None:
        """Use another ridge from now on; what was learned stays."""
        self._classifier.set_params(gamma=gamma)

    def facts(self) -> dict[str, Any]:
        """Return the gamma that was used last, and the width of the buffer, which may be the method's own."""
        if not self.has_learned:
            return {}
        gamma = self._classifier._solution().gamma
        return {
            "gamma": None if gamma is None else float(gamma),
            "buffer": getattr(self._classifier.expansion_, "_n_features_out", None),
        }
