"""What data sources give and backbones take: images, texts or features, fetched by index."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

Kind = Literal["images", "texts", "features"]

# A batch of inputs. Images: uint8 arrays of shape (height, width, channels), channels 1 (grey) or 3 (RGB), as one array
# of shape (n, height, width, channels) where all have one size, else as a list. Texts: a list of str. Features: an
# array of floats of shape (n, d).
Batch = Any


class Inputs(Protocol):
    """A sequence of samples that is read only where it is asked for."""

    def __len__(self) -> int:
        """Return the number of samples."""
        ...

    def __getitem__(self, indices: npt.NDArray[np.intp]) -> Batch:
        """Return the samples at an array of indices, in its order."""
        ...
