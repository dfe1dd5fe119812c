"""No backbone: pixels or given features, as they are."""

from __future__ import annotations

import numpy as np

from aircl.backbones.backbone import Features
from aircl.backbones.fingerprint import fingerprint
from aircl.backbones.image_batch import group_by_size
from aircl.inputs import Batch, Kind


class Identity:
    """Images flattened to pixels in 0..1, or features passed through, in float32.

    Parameters
    ----------
    name : str
    example : batch of images of one size, or of features
        At least one sample of the data; only its shape is used.
    """

    kinds: tuple[Kind, ...] = ("images", "features")
    batch_size = 1024

    def __init__(self, name: str = "identity", *, example: Batch = None) -> None:
        if example is None or len(example) == 0:
            raise ValueError(
                "the identity backbone is as wide as the data. Show it some: create_backbone('identity', "
                "example=images), images or features, at least one."
            )
        self.name = name
        self._shape = np.asarray(example[0]).shape
        self.width = int(np.prod(self._shape))
        self.fingerprint = fingerprint({}, {"backbone": "identity", "shape": self._shape})
        self.prepare(example)  # says what is wrong with it

    def prepare(self, inputs: Batch) -> Features:
        """Return the batch as a float32 array of shape (n, width)."""
        if len(inputs) == 0:
            return np.empty((0, self.width), dtype=np.float32)
        given = {np.shape(sample) for sample in inputs} if isinstance(inputs, list) else {np.shape(inputs)[1:]}
        if given != {self._shape}:
            raise ValueError(
                f"the identity backbone needs samples of one shape, here {self._shape}; got {sorted(given)}. Resize "
                "images first, or use a backbone that resizes."
            )
        if len(self._shape) == 1:
            return np.asarray(inputs, dtype=np.float32)
        ((_, images),) = group_by_size(inputs)
        return images.reshape(len(images), -1).astype(np.float32) / np.float32(255)

    def forward(self, prepared: Features) -> Features:
        """Return the batch itself."""
        return prepared
