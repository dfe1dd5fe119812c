"""Random changes of images, all drawn from a given generator: crops, RandAugment, CutMix."""

from __future__ import annotations

from collections.abc import Callable
from math import pi

import torch
from torch.nn.functional import affine_grid, avg_pool2d, grid_sample, pad


def random_crops(
    images: torch.Tensor,
    generator: torch.Generator,
    *,
    flip: bool,
    area: tuple[float, float] = (0.05, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
) -> torch.Tensor:
    """Return a random part of every image, scaled to its size, and half of them mirrored if asked for.

    Parameters
    ----------
    images : tensor of shape (n, channels, size, size)
    generator : torch.Generator
    flip : bool
    area : tuple of 2 float, default=(0.05, 1.0)
        Smallest and largest share of the image, drawn uniformly, as L2P has it.
    ratio : tuple of 2 float, default=(3/4, 4/3)
        Smallest and largest ratio of width to height, its logarithm drawn uniformly; sides end at those of the image.
    """
    n = len(images)
    drawn = torch.rand(5, n, generator=generator)
    share = area[0] + (area[1] - area[0]) * drawn[0]
    aspect = ratio[0] * (ratio[1] / ratio[0]) ** drawn[1]
    width, height = (share * aspect).sqrt().clamp(max=1), (share / aspect).sqrt().clamp(max=1)
    mirrored = torch.where((drawn[4] < 0.5) & flip, -1.0, 1.0)
    theta = torch.zeros(n, 2, 3)
    theta[:, 0, 0], theta[:, 1, 1] = width * mirrored, height
    # The centre, from -1 to 1, such that the part lies within the image.
    theta[:, 0, 2], theta[:, 1, 2] = (1 - width) * (2 * drawn[2] - 1), (1 - height) * (2 * drawn[3] - 1)
    return _warp(images, theta, "border")


def cut_mix(images: torch.Tensor, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Put a rectangle of another image of the batch into every image [1]_.

    Parameters
    ----------
    images : tensor of shape (n, channels, height, width)
    generator : torch.Generator

    Returns
    -------
    mixed : tensor of shape (n, channels, height, width)
    partners : int64 tensor of shape (n,)
        Where the rectangle of each image comes from.
    share : float
        Of each image that is its own: its label weighs so much in the loss, and that of the partner the rest. It is
        drawn uniformly, up to the pixels that the border cuts off.

    References
    ----------
    .. [1] Yun et al. "CutMix: Regularization Strategy to Train Strong Classifiers with Localizable Features." ICCV
       2019.
    """
    n, _, height, width = images.shape
    partners = torch.randperm(n, generator=generator)
    share, x, y = torch.rand(3, generator=generator).tolist()
    half = (1 - share) ** 0.5 / 2
    left, right = (round(width * min(max(x + side, 0), 1)) for side in (-half, half))
    top, bottom = (round(height * min(max(y + side, 0), 1)) for side in (-half, half))
    mixed = images.clone()
    mixed[:, :, top:bottom, left:right] = images[partners, :, top:bottom, left:right]
    return mixed, partners, 1 - (right - left) * (bottom - top) / (height * width)


def rand_augment(
    pixels: torch.Tensor, generator: torch.Generator, *, changes: int = 2, strength: float = 0.3
) -> torch.Tensor:
    """Change every image by some of fourteen random operations [1]_.

    Parameters
    ----------
    pixels : uint8 tensor of shape (n, 3, size, size)
    generator : torch.Generator
    changes : int, default=2
        Operations for each image, one after the other.
    strength : float, default=0.3
        From 0 to 1; the published 9 of 30.

    Returns
    -------
    pixels : float tensor of shape (n, 3, size, size), from 0 to 255

    References
    ----------
    .. [1] Cubuk et al. "RandAugment: Practical automated data augmentation with a reduced search space." NeurIPS 2020.
    """
    images = pixels.float() / 255
    for _ in range(changes):
        which = torch.randint(len(OPERATIONS), (len(images),), generator=generator)
        signs = 1 - 2 * torch.randint(2, (len(images),), generator=generator)
        for number, operation in enumerate(OPERATIONS):
            places = torch.nonzero(which == number).flatten()
            if len(places):
                images[places] = operation(images[places], strength * signs[places].float()).clamp(0, 1)
    return 255 * images


# An operation takes images from 0 to 1, shape (n, 3, size, size), and a strength from -1 to 1 for each.
Operation = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _warp(images: torch.Tensor, theta: torch.Tensor, outside: str = "zeros") -> torch.Tensor:
    grid = affine_grid(theta, list(images.shape), align_corners=False)
    return grid_sample(images, grid, padding_mode=outside, align_corners=False)


def _affine(row: int, column: int, most: float) -> Operation:
    """Return a shear or a shift: one entry of the map from places of the result to those of the image."""

    def operation(images: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
        theta = torch.eye(2, 3).repeat(len(images), 1, 1)
        theta[:, row, column] = most * strength
        return _warp(images, theta)

    return operation


def _rotate(images: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    angle = strength * pi / 6
    cosine, sine, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    rows = torch.stack([cosine, -sine, zero]), torch.stack([sine, cosine, zero])
    return _warp(images, torch.stack(rows).permute(2, 0, 1))


def _away_from(base: Callable[[torch.Tensor], torch.Tensor]) -> Operation:
    """Return what moves images towards something plain (black, grey, blurred), or away from it."""

    def operation(images: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
        plain = base(images)
        return plain + (1 + 0.9 * strength.view(-1, 1, 1, 1)) * (images - plain)

    return operation


def _grey(images: torch.Tensor) -> torch.Tensor:
    return (images * torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(1, keepdim=True)


def _posterize(images: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    levels = 2 ** (8 - (4 * strength.abs()).round()).view(-1, 1, 1, 1)
    return (images * 255 / 256 * levels).floor() / levels


def _solarize(images: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    return torch.where(images < (1 - strength.abs()).view(-1, 1, 1, 1), images, 1 - images)


def _auto_contrast(images: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    low, high = images.amin((2, 3), keepdim=True), images.amax((2, 3), keepdim=True)
    return torch.where(high > low, (images - low) / (high - low).clamp_min(1e-6), images)


def _equalize(images: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
    """Make all values of a channel equally frequent: a value becomes the share of pixels up to it."""
    flat = images.flatten(2).contiguous()
    shares = torch.searchsorted(flat.sort(-1).values, flat, right=True) / flat.shape[-1]
    alike = flat.amax(-1, keepdim=True) == flat.amin(-1, keepdim=True)
    return torch.where(alike, flat, shares).view_as(images)


OPERATIONS: tuple[Operation, ...] = (
    lambda images, _: images,
    _affine(0, 1, 0.3),
    _affine(1, 0, 0.3),
    _affine(0, 2, 300 / 331),
    _affine(1, 2, 300 / 331),
    _rotate,
    _away_from(torch.zeros_like),
    _away_from(_grey),
    _away_from(lambda images: _grey(images).mean((2, 3), keepdim=True)),
    _away_from(lambda images: avg_pool2d(pad(images, (1, 1, 1, 1), "replicate"), 3, 1)),
    _posterize,
    _solarize,
    _auto_contrast,
    _equalize,
)
