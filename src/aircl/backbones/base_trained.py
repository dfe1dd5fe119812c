"""Backbones that are trained on the first phase of a stream and frozen then: no download, no foreign data."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from aircl.backbones.backbone import BackboneError
from aircl.backbones.device import choose_device, to_array
from aircl.backbones.image_batch import group_by_size
from aircl.backbones.network import Network
from aircl.backbones.resnet import ResNet32
from aircl.backbones.training import train_classifier
from aircl.backbones.transform import ImageTransform
from aircl.backbones.vit import VisionTransformer
from aircl.classifiers.file import FORMAT, read, write
from aircl.inputs import Batch

SmallNetwork = ResNet32 | VisionTransformer

# What the header of a file that holds such a backbone has, and that of no other.
HEADER = "backbone"

# Learning rates that train both on small and on large base phases.
LEARNING_RATES = {"resnet32": 3e-3, "vit-micro": 1e-3}
# Larger images are shrunk to this: training has to end on a processor without help.
LARGEST = 64


class BaseTrained(Network):
    """A network that was trained on a base phase, with what it takes to build it again.

    Parameters
    ----------
    name : str
    architecture : {"resnet32", "vit-micro"}
    module : ResNet32 or VisionTransformer
    transform : ImageTransform
    """

    def __init__(self, name: str, architecture: str, module: SmallNetwork, transform: ImageTransform) -> None:
        super().__init__(name, module, transform, width=module.width, architecture=architecture, batch_size=128)
        self.architecture = architecture

    def save(self, path: str | Path) -> None:
        """Write weights and transform to one safetensors file, at once or not at all.

        ``create_backbone(f"checkpoint:{path}")`` reads it.
        """
        path = Path(path)
        if path.suffix != ".safetensors":
            raise ValueError(f"a backbone is saved to a .safetensors file, got {path}.")
        transform = {name: getattr(self.transform, name) for name in ("size", "crop", "mean", "std")}
        header = {"format": FORMAT, HEADER: self.architecture, "transform": transform}
        write(path, json.dumps(header), {key: to_array(value) for key, value in self.module.state_dict().items()})


def create(name: str, *, base: tuple[Batch, npt.ArrayLike] | None = None, **options: Any) -> BaseTrained:
    """Train "base:resnet32" or "base:vit-micro" on ``base``, the images and labels of phase 1; see `train_base`."""
    if base is None:
        raise ValueError(
            f"{name!r} is trained on the first phase. Give it: create_backbone({name!r}, base=(images, labels)). One "
            "that was saved is read as 'checkpoint:FILE'."
        )
    images, labels = base
    return train_base(name.removeprefix("base:"), images, labels, **options)


def train_base(
    architecture: str,
    images: Batch,
    labels: npt.ArrayLike,
    *,
    seed: int = 0,
    epochs: int = 30,
    batch_size: int = 64,
    learning_rate: float | None = None,
    size: int | None = None,
    shift: int | None = None,
    flip: bool | None = None,
    progress: bool = True,
    device: str | None = None,
) -> BaseTrained:
    """Train a small network on the base phase and freeze it.

    Parameters
    ----------
    architecture : {"resnet32", "vit-micro"}
        ResNet-32 (64 features) or a ViT of 6 blocks (128 features) with about 8 x 8 patches.
    images : uint8 array of shape (n, height, width, channels), or a sequence of (height, width, channels) ones
    labels : array-like of shape (n,)
        Of any sortable type.
    seed : int, default=0
        Decides initial weights, order and augmentation: on the CPU the same seed, machine and number of threads
        give the same weights, bit for bit.
    epochs : int, default=30
    batch_size : int, default=64
    learning_rate : float, optional
        The highest of the schedule; by default 3e-3 for the ResNet and 1e-3 for the ViT.
    size : int, optional
        Height and width that images are brought to; by default the shorter side of the first image, at most 64.
    shift : int, optional
        Images are moved by up to so many pixels while training; by default an eighth of the size.
    flip : bool, optional
        Whether to mirror images while training; by default those with colours, as grey ones may be digits or letters.
    progress : bool, default=True
        Show a bar on stderr, if that is a terminal.
    device : str, optional
        Where to train, as for `create_backbone`; the finished backbone is on the CPU.

    Returns
    -------
    backbone : BaseTrained
    """
    if architecture not in LEARNING_RATES:
        raise ValueError(
            f"there is no architecture {architecture!r} to train on the base phase. Known: {', '.join(LEARNING_RATES)}."
        )
    if epochs < 0 or batch_size < 1:
        raise ValueError(f"epochs is at least 0 and batch_size at least 1, got {epochs} and {batch_size}.")
    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    if len(images) != len(codes) or len(codes) == 0:
        raise ValueError(
            f"the base phase needs images and as many labels, at least one; got {len(images)} and {len(codes)}."
        )
    first = group_by_size(images[:1])[0][1]
    size = size or min(*first.shape[1:3], LARGEST)
    if architecture == "vit-micro":
        size = _patches(size)[0]
    pixels = ImageTransform(size).resize(images)
    transform = ImageTransform(size, 1.0, *_mean_and_std(pixels))
    module = build(architecture, size, seed=seed)
    if len(codes) == 1:  # a batch normalisation cannot learn from one value
        pixels, codes = pixels.repeat(2, 1, 1, 1), codes.repeat(2)
    train_classifier(
        module,
        module.width,
        pixels,
        torch.from_numpy(codes.astype(np.int64)),
        transform.normalise,
        generator=torch.Generator().manual_seed(seed),
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate or LEARNING_RATES[architecture],
        device=choose_device(device),
        shift=ceil(size / 8) if shift is None else shift,
        flip=first.shape[3] == 3 if flip is None else flip,
        progress=progress,
        description=f"base:{architecture} on {len(images):,} images of {len(classes)} classes",
    )
    return BaseTrained(f"base:{architecture}", architecture, module.to("cpu"), transform)


def load_base(path: str | Path, *, name: str | None = None) -> BaseTrained:
    """Read a backbone that `BaseTrained.save` wrote.

    Parameters
    ----------
    path : str or Path
    name : str, optional
        What the backbone shall be called; by default as when it was saved.

    Returns
    -------
    backbone : BaseTrained
    """
    try:
        with read(Path(path)) as (header, arrays):
            architecture, known = header[HEADER], header["transform"]
            transform = ImageTransform(known["size"], known["crop"], tuple(known["mean"]), tuple(known["std"]))
            module = _build(architecture, transform.size)
            module.load_state_dict({key: torch.from_numpy(arrays[key]) for key in arrays})
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        raise BackboneError(f"{path} is not a whole file of a base-trained backbone: {error}") from error
    return BaseTrained(name or f"base:{architecture}", architecture, module, transform)


def build(architecture: str, size: int, *, seed: int) -> SmallNetwork:
    """Return a network of random weights, which follow from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _build(architecture, size)


def _build(architecture: str, size: int) -> SmallNetwork:
    if architecture == "resnet32":
        return ResNet32()
    if architecture != "vit-micro":
        raise ValueError(f"there is no architecture {architecture!r}.")
    size, patch = _patches(size)
    return VisionTransformer(image_size=size, patch_size=patch, width=128, depth=6, heads=4, mlp_width=256)


def _patches(size: int) -> tuple[int, int]:
    """Return the image size and the patch size, of 2 px at least, for a ViT with about 8 x 8 patches."""
    tiling = [patch for patch in range(2, size) if size % patch == 0 and 4 <= size // patch <= 12]
    if tiling:
        return size, min(tiling, key=lambda patch: abs(size / patch - 8))
    patch = max(2, round(size / 8))
    return 8 * patch, patch


def _mean_and_std(pixels: torch.Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation of each channel, in 0..1; 1 for a channel without variation."""
    levels = np.arange(256) / 255
    shares = [np.bincount(to_array(channel).ravel(), minlength=256) / channel.numel() for channel in pixels.unbind(1)]
    means = [float(share @ levels) for share in shares]
    stds = [float(np.sqrt(share @ (levels - mean) ** 2)) for share, mean in zip(shares, means, strict=True)]
    return tuple(round(mean, 4) for mean in means), tuple(round(std, 4) or 1.0 for std in stds)
