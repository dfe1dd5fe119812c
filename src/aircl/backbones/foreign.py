"""What models of other libraries have in common: they may fail to load, and may be a ViT that prompts can enter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import nn

from aircl.backbones.backbone import BackboneError
from aircl.backbones.checkpoint import vit_from_weights
from aircl.backbones.vit import VisionTransformer


@contextmanager
def advising(name: str, library: str, extra: str) -> Iterator[None]:
    """Turn whatever goes wrong in a library into a `BackboneError` that says what to do."""
    try:
        yield
    except Exception as error:  # libraries raise what they like
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if "torchvision" in str(error):
            advice = (
                "torch and torchvision do not fit together, as when one was built for the CPU and the other for CUDA. "
                f"Install a matching pair from one index: pip install torch=={torch.__version__.partition('+')[0]} "
                "torchvision --index-url https://download.pytorch.org/whl/cpu"
            )
        elif isinstance(error, ImportError):
            advice = f"{library} is incomplete. Install it again: pip install --force-reinstall 'aircl[{extra}]'"
        else:
            advice = f"Is the name right, and can {library} reach its models from here? A file of weights does without"
        raise BackboneError(f"backbone {name!r} cannot be made: {reason}. {advice}.") from error


def own_vit(
    model: nn.Module, weights: Mapping[str, torch.Tensor], *, heads: int | None, size: int, eps: float = 1e-6
) -> VisionTransformer | None:
    """Rebuild a model as the ViT that prompts can enter, if it is one.

    Parameters
    ----------
    model : nn.Module
        From images of shape (n, 3, size, size) to features.
    weights : mapping of str to tensor
        Its state dict with timm's names.
    heads : int or None
        Its number of attention heads.
    size : int
    eps : float, default=1e-6
        Of its layer normalisations.

    Returns
    -------
    vit : VisionTransformer or None
        None if its weights are not those of a plain ViT, or if it computes anything else from a trial image.
    """
    try:
        vit = vit_from_weights(weights, "the model", heads=heads, eps=eps).eval()
        trial = torch.linspace(-2, 2, 3 * size * size).sin().view(1, 3, size, size)
        with torch.inference_mode():
            same = torch.allclose(vit(trial), model(trial), rtol=1e-3, atol=1e-3)
    except (ValueError, RuntimeError):
        return None
    return vit if same else None
