"""What a backbone is: a frozen function from inputs to features."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from aircl.inputs import Batch, Kind

Features = npt.NDArray[np.float32]


class BackboneError(ValueError):
    """A backbone cannot be made: a package is missing, or a file of weights is not what it should be."""


class Backbone(Protocol):
    """A frozen feature extractor with a transform of its own.

    Attributes
    ----------
    name : str
        As it was asked for, such as "efficientnet-lite0".
    kinds : tuple of {"images", "texts", "features"}
        What it takes.
    width : int
        Number of features.
    fingerprint : str
        Hash of weights and transform: equal fingerprints give equal features.
    batch_size : int
        How many inputs it likes to be given at a time.
    """

    name: str
    kinds: tuple[Kind, ...]
    width: int
    fingerprint: str
    batch_size: int

    def prepare(self, inputs: Batch) -> Any:
        """Transform a batch (resize, normalise, tokenise); may run in another thread than `forward`."""
        ...

    def forward(self, prepared: Any) -> Features:
        """Return the features of a prepared batch, shape (n, width); row i depends on input i alone."""
        ...
