"""How samples are looked at: as they are, as training wants them, or with a random change."""

from __future__ import annotations

from math import ceil

import numpy as np
import torch

from aircl.backbones.image_batch import group_by_size
from aircl.backbones.training import augment
from aircl.backbones.transform import ImageTransform
from aircl.inputs import Batch
from aircl.methods.gradient.augmentation import rand_augment, random_crops
from aircl.methods.gradient.options import Augment


class FeatureViews:
    """Features of a frozen backbone: nothing is done to them in training, and a random change is noise.

    Parameters
    ----------
    noise : float, default=0.5
        Size of the noise of `changed`, as a share of the root mean square of each sample's features.
    """

    def __init__(self, noise: float = 0.5) -> None:
        self.noise = noise

    def tensor(self, inputs: Batch) -> torch.Tensor:
        """Return a float32 copy of a batch, shape (n, width)."""
        return torch.tensor(np.asarray(inputs, np.float32))

    def plain(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return what the network takes."""
        return inputs

    def training(self, inputs: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return what the network takes while it is trained."""
        return inputs

    def changed(self, inputs: torch.Tensor, generator: torch.Generator, how: Augment = True) -> torch.Tensor:
        """Return the samples with noise, whatever would be done to images."""
        size = self.noise * inputs.square().mean(1, keepdim=True).sqrt()
        return inputs + size * torch.randn(inputs.shape, generator=generator)


class ImageViews:
    """Images, held as uint8 pixels of the size that a network takes, and normalised whenever they are used.

    Parameters
    ----------
    transform : ImageTransform
        Of the backbone.
    augmented : bool, "crop" or "rand"
        What training does to images; see `changed`.

    Attributes
    ----------
    flip : bool
        Whether images are mirrored: those with colours are, as grey ones may be digits or letters. Set by the first
        batch.
    """

    def __init__(self, transform: ImageTransform, *, augmented: Augment) -> None:
        self.transform, self.augmented = transform, augmented
        self.flip: bool | None = None

    def tensor(self, inputs: Batch) -> torch.Tensor:
        """Return uint8 pixels of shape (n, 3, size, size), a copy; nothing random is done."""
        if self.flip is None and len(inputs):
            self.flip = group_by_size(inputs[:1])[0][1].shape[3] == 3
        return self.transform.resize(inputs).contiguous()

    def plain(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return normalised images."""
        return self.transform.normalise(inputs)

    def training(self, inputs: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return normalised images, changed if training is to augment."""
        return self.changed(inputs, generator, self.augmented) if self.augmented else self.plain(inputs)

    def changed(self, inputs: torch.Tensor, generator: torch.Generator, how: Augment = True) -> torch.Tensor:
        """Return normalised images, changed at random.

        Moved by up to an eighth and mirrored (True); random parts of them, scaled to their size, and mirrored ("crop");
        two changes of RandAugment ("rand"). Only images with colours are mirrored.
        """
        if how == "rand":
            return self.plain(rand_augment(inputs, generator))
        if how == "crop":
            return random_crops(self.plain(inputs), generator, flip=bool(self.flip))
        shift = ceil(self.transform.size / 8)
        return augment(self.plain(inputs), generator, shift=shift, flip=bool(self.flip))


Views = FeatureViews | ImageViews
