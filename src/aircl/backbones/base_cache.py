"""Backbones trained on a base phase, trained once and kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from filelock import FileLock

from aircl.inputs import Inputs
from aircl.places import cache_directory

if TYPE_CHECKING:
    from aircl.backbones.base_trained import BaseTrained


def base_backbone(
    name: str,
    inputs: Inputs,
    labels: npt.NDArray[np.int64],
    fingerprint: str,
    base: npt.NDArray[np.intp],
    *,
    directory: Path | None = None,
    training: Callable[[int, int], None] | None = None,
    progress: bool = True,
    device: str | None = None,
    **options: Any,
) -> BaseTrained:
    """Return a backbone trained on the base phase: from the cache, or trained now.

    Parameters
    ----------
    name : {"base:resnet32", "base:vit-micro"}
    inputs : Inputs
        Images of the training set.
    labels : array of shape (n,)
    fingerprint : str
        Of the inputs.
    base : array
        Indices of the samples of the first phase.
    directory : path or None
        None: `backbones` below `aircl.places.cache_directory()`.
    training : callable or None
        Called with the number of images and of classes when training is about to begin.
    progress : bool, default=True
        Show a bar while training, on a terminal.
    device : str, optional
        As for `create_backbone`: where it is trained, and where it computes then.
    **options
        Of `aircl.backbones.base_trained.train_base`.
    """
    from aircl.backbones.base_trained import create, load_base

    base = np.sort(base)  # the order of a stream is not what the backbone is trained on
    y = labels[base]
    told = [name, fingerprint, hashlib.sha256(base.tobytes() + y.tobytes()).hexdigest(), sorted(options.items())]
    key = hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]
    directory = cache_directory() / "backbones" if directory is None else directory
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{key}.safetensors"
    with FileLock(directory / f"{key}.lock"):
        if path.exists():
            return load_base(path).to(device)
        if training is not None:
            training(len(base), len(np.unique(y)))
        backbone = create(name, base=(inputs[base], y), progress=progress, device=device, **options)
        backbone.save(path)
        return backbone.to(device)
