"""Digits in phases, and what a method makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from aircl.benchmark.metrics import forgetting
from aircl.data import load_dataset
from aircl.methods import Method, Setup, create_method
from aircl.scenarios import make_stream

BATCH_SIZE = 16


@dataclass(frozen=True)
class Digits:
    images: np.ndarray
    labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray

    @property
    def features(self):
        return self.images.reshape(len(self.images), 64).astype(np.float32) / 255

    @property
    def test_features(self):
        return self.test_images.reshape(len(self.test_images), 64).astype(np.float32) / 255

    def inputs_of(self, method, test=False):
        if method.setup.backbone is None:
            return self.test_features if test else self.features
        return self.test_images if test else self.images

    def stream(self, phases, seed=1, scenario="cil", **options):
        return make_stream(scenario, self.labels, phases=phases, seed=seed, **options)

    def teach(self, method, phase, at_most=None):
        """Give a phase to a method in batches, and its end if the setup announces it."""
        inputs, train = self.inputs_of(method), phase.train[:at_most]
        for start in range(0, len(train), BATCH_SIZE):
            rows = train[start : start + BATCH_SIZE]
            method.learn(inputs[rows], self.labels[rows])
        if not method.setup.online or method.uses_phase_ends:
            method.end_phase(phase)


@pytest.fixture(scope="session")
def digits():
    data = load_dataset("digits")
    train, test = (np.asarray(split.inputs[np.arange(len(split))]) for split in (data.train, data.test))
    return Digits(train, data.train.labels, test, data.test.labels)


@pytest.fixture(scope="session")
def make():
    """A function that makes a method for digits."""

    def make_method(name, *, seed=1, online=False, backbone=None, **options):
        width = 64 if backbone is None else backbone.width
        setup = Setup(seed, width, online=online, batch_size=BATCH_SIZE, backbone=backbone, options=options)
        return create_method(name, setup)

    return make_method


@dataclass(frozen=True)
class Course:
    """A method after a stream, with the accuracy of each class (column) after each phase (row), nan before it came."""

    method: Method
    accuracy: np.ndarray

    @property
    def last(self):
        return float(np.mean(self.accuracy[-1]))

    @property
    def forgetting(self):
        return forgetting(self.accuracy)


@pytest.fixture(scope="session")
def take_course(digits, make):
    """A function that takes a method through a class-incremental stream."""

    def take(name, *, phases=5, seed=1, at_most=None, **settings):
        method = make(name, seed=seed, **settings)
        encoded = method.encode(digits.inputs_of(method, test=True))
        accuracy = []
        for phase in digits.stream(phases, seed).phases:
            digits.teach(method, phase, at_most)
            right = method.predict(encoded) == digits.test_labels
            accuracy.append([
                right[digits.test_labels == c].mean() if c in phase.exposed else np.nan for c in range(10)
            ])  # fmt: skip
        return Course(method, np.array(accuracy))

    return take


@pytest.fixture
def tiny_network():
    """A backbone of one hidden layer, for methods that train it: as quick as features."""
    torch = pytest.importorskip("torch")
    from aircl.backbones.network import Network
    from aircl.backbones.transform import ImageTransform

    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 64), torch.nn.ReLU())
    transform = ImageTransform(8, mean=(0.5,) * 3, std=(0.5,) * 3)
    return Network("tiny", module, transform, width=64, architecture="tiny")


@pytest.fixture(scope="session")
def tiny_vit():
    """A ViT that knows some of every digit, as a pre-trained one would."""
    pytest.importorskip("torch")
    from aircl.benchmark.contract.material import _trial_network

    return _trial_network("vit")
