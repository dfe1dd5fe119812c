"""Batches of images, checked."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from aircl.inputs import Batch

Images = npt.NDArray[np.uint8]


def group_by_size(inputs: Batch) -> list[tuple[Any, Images]]:
    """Split a batch of images into arrays of one size each.

    Parameters
    ----------
    inputs : uint8 array of shape (n, height, width, channels), or a sequence of (height, width, channels) ones
        Channels are 1 (grey) or 3 (RGB).

    Returns
    -------
    groups : list of (places, images)
        Where in the batch the images stand (a slice or a list of int), and the uint8 array of shape
        (len(places), height, width, channels). Nothing for an empty batch.
    """
    if isinstance(inputs, np.ndarray) and inputs.dtype != object:
        _check(inputs.dtype, inputs.shape, "(n, height, width, channels)", 4)
        return [(slice(None), inputs)] if len(inputs) else []
    places: dict[tuple[int, ...], list[int]] = defaultdict(list)
    images = [np.asarray(image) for image in inputs]
    for place, image in enumerate(images):
        _check(image.dtype, image.shape, "(height, width, channels)", 3)
        places[image.shape].append(place)
    return [(group, np.stack([images[place] for place in group])) for group in places.values()]


def _check(dtype: np.dtype[Any], shape: tuple[int, ...], form: str, ndim: int) -> None:
    if dtype != np.uint8 or len(shape) != ndim or shape[-1] not in (1, 3) or 0 in shape[-3:]:
        raise ValueError(
            f"images are uint8 arrays of shape {form} with 1 (grey) or 3 (RGB) channels, got {dtype} of shape {shape}. "
            "Values in 0..1 are brought there by (255 * x).round().astype('uint8'), grey ones by x[..., None]."
        )
