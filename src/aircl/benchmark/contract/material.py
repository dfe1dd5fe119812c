"""What methods are examined with: the digits, as rows of pixels or as images with a small backbone."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from aircl.backbones import Backbone, create_backbone
from aircl.benchmark.contract.trial_vit import train_vit
from aircl.data import load_dataset
from aircl.methods import Setup
from aircl.scenarios import make_stream
from aircl.scenarios.stream import Indices, Labels

SEED = 7
BATCH_SIZE = 16
# Wider than the pixels, as a buffer should be, and still solved in no time.
BUFFER = 128
# Of the backbone's training: enough for it to be of some use, as it is the method that is examined.
BASE_CLASSES = range(5)
BASE_ROWS = 40
BASE_EPOCHS = 5


@dataclass(frozen=True)
class Material:
    """Training and test digits, and the setup that fits them.

    Attributes
    ----------
    train_inputs, test_inputs : array of shape (n, 64) or (n, 8, 8, 1)
    train_labels, test_labels : array of shape (n,)
    setup : Setup
    """

    train_inputs: npt.NDArray[Any]
    train_labels: Labels
    test_inputs: npt.NDArray[Any]
    test_labels: Labels
    setup: Setup

    def rows_of(self, *classes: int, at_most: int | None = None) -> Indices:
        """Return training rows of some classes, at most so many of each, in one order always, mixed."""
        rows = np.concatenate([np.flatnonzero(self.train_labels == label)[:at_most] for label in classes])
        return np.random.default_rng(SEED).permutation(rows)

    def phases(self, *, phases: int = 5, at_most: int = 60) -> list[Indices]:
        """Return the rows of a class-incremental stream over all digits."""
        stream = make_stream("cil", self.train_labels, phases=phases, seed=SEED)
        return [self.rows_of(*phase.classes.tolist(), at_most=at_most) for phase in stream.phases]


def prepare_material(
    consumes: str, *, analytic: bool, options: Mapping[str, Any], backbone: str = "resnet"
) -> Material:
    """Return digits in the form that a method consumes.

    Parameters
    ----------
    consumes : {"features", "images"}
    analytic : bool
        Whether the method gets a random buffer.
    options : mapping
        The method's own.
    backbone : {"resnet", "vit"}, default="resnet"
        For a method that takes images.

    Raises
    ------
    BackboneError
        If the method takes images and there is no torch to train a backbone with.
    """
    digits = load_dataset("digits")
    train, test = (np.asarray(split.inputs[np.arange(len(split))]) for split in (digits.train, digits.test))
    labels = digits.train.labels, digits.test.labels
    if consumes == "features":
        identity = create_backbone("identity", example=train)
        train, test = (identity.forward(identity.prepare(images)) for images in (train, test))
        setup = Setup(SEED, identity.width, batch_size=BATCH_SIZE, buffer=BUFFER if analytic else None, options=options)
        return Material(train, labels[0], test, labels[1], setup)
    network = _trial_network(backbone)
    setup = Setup(SEED, network.width, batch_size=BATCH_SIZE, backbone=network, options=options)
    return Material(train, labels[0], test, labels[1], setup)


@functools.cache
def _trial_network(kind: str) -> Backbone:
    """Train a backbone on some digits, once: pupils get copies."""
    split = load_dataset("digits").train
    # Prompts are for a ViT that has seen much, as large ones have: this one has seen some of every class.
    known = range(10) if kind == "vit" else BASE_CLASSES
    rows = np.concatenate([np.flatnonzero(split.labels == label)[:BASE_ROWS] for label in known])
    base = split.inputs[rows], split.labels[rows]
    if kind == "vit":
        return train_vit(*base)
    return create_backbone("base:resnet32", base=base, epochs=BASE_EPOCHS, progress=False)
