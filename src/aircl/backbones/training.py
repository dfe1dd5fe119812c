"""Supervised training of a small network on images that fit into memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import ceil, cos, pi

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn
from torch.nn.functional import cross_entropy, linear, pad


def train_classifier(
    module: nn.Module,
    width: int,
    pixels: torch.Tensor,
    labels: torch.Tensor,
    normalise: Callable[[torch.Tensor], torch.Tensor],
    *,
    generator: torch.Generator,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    shift: int,
    flip: bool,
    progress: bool,
    description: str,
    device: torch.device | str = "cpu",
) -> None:
    """Train a module in place, below a linear head that is thrown away.

    AdamW (weight decay 0.05), the learning rate rising over the first tenth of the steps and falling to zero along a
    cosine; cross-entropy with label smoothing 0.1.

    Parameters
    ----------
    module : nn.Module
        From (n, 3, size, size) to (n, width).
    width : int
    pixels : uint8 tensor of shape (n, 3, size, size)
    labels : int64 tensor of shape (n,)
        0..C-1.
    normalise : callable
        From pixels to what the module takes.
    generator : torch.Generator
        Decides the order and the augmentation; the head starts at zero.
    epochs, batch_size : int
        The batches of an epoch are as equal in size as can be.
    learning_rate : float
        The highest one.
    shift : int
        Images are moved by up to so many pixels.
    flip : bool
        Half of the images are mirrored.
    progress : bool
        Show a bar on stderr, if that is a terminal.
    description : str
        Left of the bar.
    device : torch.device or str, default="cpu"
        Where to train; the module is moved there and stays there.
    """
    n_classes = int(labels.max()) + 1
    module.to(device)
    pixels, labels = pixels.to(device), labels.to(device)
    head = [torch.zeros(shape, device=device, requires_grad=True) for shape in ((n_classes, width), (n_classes,))]
    parameters = [*module.parameters(), *head]
    optimiser = torch.optim.AdamW(parameters, lr=learning_rate, weight_decay=0.05)
    batches = ceil(len(labels) / batch_size)
    steps = epochs * batches
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(10 * (step + 1) / max(steps, 10), (1 + cos(pi * step / max(steps, 1))) / 2)
    )
    module.train()
    with _bar(progress) as bar:
        task = bar.add_task(description, total=steps, loss="")
        for _ in range(epochs):
            # Drawn on the CPU, so that every device trains on the same batches.
            order = torch.randperm(len(labels), generator=generator, device="cpu")
            for rows in order.to(device).tensor_split(batches):
                images = augment(normalise(pixels[rows]), generator, shift=shift, flip=flip)
                loss = cross_entropy(linear(module(images), *head), labels[rows], label_smoothing=0.1)
                optimiser.zero_grad()
                torch.autograd.backward(loss)
                nn.utils.clip_grad_norm_(parameters, 1.0)
                optimiser.step()
                schedule.step()
                bar.update(task, advance=1, loss=f"loss {loss.item():.2f}")
    module.eval()


def augment(images: torch.Tensor, generator: torch.Generator, *, shift: int, flip: bool) -> torch.Tensor:
    """Move every image by up to `shift` pixels, on a ground of zeros, and mirror half of them if asked to.

    Parameters
    ----------
    images : tensor of shape (n, channels, size, size)
    generator : torch.Generator
        Of the CPU, whatever device the images are on.
    shift : int
    flip : bool

    Returns
    -------
    images : tensor of shape (n, channels, size, size)
    """
    n, _, _, size = images.shape
    ground = pad(images, (shift,) * 4).permute(0, 2, 3, 1)
    device = images.device
    top, left = torch.randint(2 * shift + 1, (2, n, 1), generator=generator, device="cpu").to(device)
    places = torch.arange(size, device=device)
    rows, columns = top + places, left + places
    if flip:
        mirrored = torch.rand((n, 1), generator=generator, device="cpu").to(device) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    return ground[torch.arange(n, device=device).view(n, 1, 1), rows[:, :, None], columns[:, None, :]].permute(
        0, 3, 1, 2
    )


def _bar(progress: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=Console(stderr=True),
        disable=not (progress and sys.stderr.isatty()),
    )
