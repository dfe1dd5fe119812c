"""Models of timm, by name."""

from __future__ import annotations

import torch

from aircl.backbones.foreign import advising, own_vit
from aircl.backbones.network import Network
from aircl.backbones.transform import ImageTransform


def load_timm(name: str, *, pretrained: bool = True) -> Network:
    """Make a backbone of a timm model.

    Parameters
    ----------
    name : str
        "timm:NAME", as in ``timm.list_models(pretrained=True)``.
    pretrained : bool, default=True
        Whether to load weights; they are downloaded when they are not in timm's cache.

    Returns
    -------
    backbone : Network
        The features are what the model gives to its classifier. A plain ViT is rebuilt as a `VisionTransformer`.

    Notes
    -----
    Size, crop, mean and std are the model's own; images are always resized with bicubic interpolation.
    """
    with advising(name, "timm", extra="timm"):
        import timm

        model = timm.create_model(name.removeprefix("timm:"), pretrained=pretrained, num_classes=0).eval()
        config = timm.data.resolve_model_data_config(model)
        size = int(config["input_size"][-1])
        transform = ImageTransform(size, float(config["crop_pct"]), tuple(config["mean"]), tuple(config["std"]))
        heads = getattr(getattr(next(iter(getattr(model, "blocks", [])), None), "attn", None), "num_heads", None)
        module = own_vit(model, model.state_dict(), heads=heads, size=size) or model
        with torch.inference_mode():
            width = module(torch.zeros(1, 3, size, size)).shape[-1]
    return Network(name, module, transform, width=width, architecture=name)
