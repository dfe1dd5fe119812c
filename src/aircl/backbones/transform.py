"""From images of any size to the tensor that a network takes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import interpolate

from aircl.backbones.image_batch import group_by_size
from aircl.inputs import Batch

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class ImageTransform:
    """Resize the shorter side (bicubic, antialiased), cut out the centre, normalise.

    Attributes
    ----------
    size : int
        Height and width of the result.
    crop : float
        Share of the shorter side that the cut keeps: it is resized to ``size / crop`` first.
    mean, std : tuple of 3 float
        Per channel, of pixel values in 0..1.

    Notes
    -----
    Resizing works on uint8, as PIL does, an order of magnitude faster than on floats. Images of one size are resized
    in one call and every one on its own terms, so what else is in a batch changes nothing.
    """

    size: int
    crop: float = 1.0
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 < self.crop <= 1:
            raise ValueError(f"size is at least 1 and crop in (0, 1], got {self.size} and {self.crop}.")
        if len(self.mean) != 3 or len(self.std) != 3 or min(self.std) <= 0:
            raise ValueError(f"mean and std have 3 values, std above 0; got {self.mean} and {self.std}.")

    def parameters(self) -> dict[str, Any]:
        """Return what the result depends on, for a fingerprint."""
        return {"resize": "bicubic uint8", **asdict(self)}

    def __call__(self, inputs: Batch) -> torch.Tensor:
        """Transform a batch of images.

        Parameters
        ----------
        inputs : uint8 array of shape (n, height, width, channels), or a sequence of (height, width, channels) ones
            Grey images are repeated to three channels.

        Returns
        -------
        images : float32 tensor of shape (n, 3, size, size), in channels_last order
        """
        return self.normalise(self.resize(inputs))

    def resize(self, inputs: Batch) -> torch.Tensor:
        """Return a uint8 tensor of shape (n, 3, size, size), in channels_last order."""
        result = torch.empty(
            (len(inputs), 3, self.size, self.size), dtype=torch.uint8, device="cpu", memory_format=torch.channels_last
        )
        for places, images in group_by_size(inputs):
            colour = np.broadcast_to(images, (*images.shape[:-1], 3))
            # A copy of its own: PyTorch warns of arrays that cannot be written to, such as those of a mapped file.
            result[places] = self._resize(torch.from_numpy(np.array(colour, order="C")).permute(0, 3, 1, 2))
        return result

    def normalise(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return (pixels / 255 - mean) / std in float32."""
        mean, std = (
            torch.tensor(values, device=pixels.device).mul(255).view(3, 1, 1) for values in (self.mean, self.std)
        )
        return pixels.float().sub_(mean).div_(std)

    def _resize(self, images: torch.Tensor) -> torch.Tensor:
        height, width = images.shape[-2:]
        short = round(self.size / self.crop)
        scale = short / min(height, width)
        if scale != 1:
            shape = max(round(height * scale), short), max(round(width * scale), short)
            images = interpolate(images, size=shape, mode="bicubic", antialias=True)
        top, left = ((side - self.size) // 2 for side in images.shape[-2:])
        return images[..., top : top + self.size, left : left + self.size]
