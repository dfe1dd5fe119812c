"""Models of the Hugging Face hub, of images and of texts, by name or by folder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from aircl.backbones.foreign import advising, own_vit
from aircl.backbones.network import Network
from aircl.backbones.sentences import TextNetwork
from aircl.backbones.transform import IMAGENET_MEAN, IMAGENET_STD, ImageTransform

# From the names of transformers' ViT, DeiT and DINOv2 to timm's; query, key and value are joined after that.
NAMES = (
    (r"^(vit|deit|dinov2|dinov2_with_registers)\.", ""),
    (r"^embeddings\.(mask_token|register_tokens)$", r"\1"),
    (r"\.layer_scale(\d)\.lambda1$", r".ls\1.gamma"),
    (r"^embeddings\.cls_token$", "cls_token"),
    (r"^embeddings\.distillation_token$", "dist_token"),
    (r"^embeddings\.position_embeddings$", "pos_embed"),
    (r"^embeddings\.patch_embeddings\.projection\.", "patch_embed.proj."),
    (r"^(encoder\.)?layers?\.(\d+)\.", r"blocks.\2."),
    (r"\.attention\.attention\.(query|key|value)\.", r".attn.\1."),
    (r"\.attention\.output\.dense\.", ".attn.proj."),
    # Since version 5 of transformers.
    (r"\.attention\.q_proj\.", ".attn.query."),
    (r"\.attention\.k_proj\.", ".attn.key."),
    (r"\.attention\.v_proj\.", ".attn.value."),
    (r"\.attention\.o_proj\.", ".attn.proj."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"\.output\.dense\.", ".mlp.fc2."),
    (r"\.layernorm_before\.", ".norm1."),
    (r"\.layernorm_after\.", ".norm2."),
    (r"^layernorm\.", "norm."),
    (r"^pooler\.", "head."),
)


def load_huggingface(name: str) -> Network | TextNetwork:
    """Make a backbone of a model of transformers.

    Parameters
    ----------
    name : str
        "hf:NAME", a model of the hub (downloaded when it is not in the cache) or a folder.

    Returns
    -------
    backbone : Network or TextNetwork
        Of images, the features are the first token of the last layer for transformers, the mean over places for
        others; a plain ViT is rebuilt as a `VisionTransformer`. Of texts, they are the mean of the last layer's tokens.

    Notes
    -----
    Size, crop, mean and std are read from the model's ``preprocessor_config.json``, so torchvision is not needed;
    images are always resized with bicubic interpolation.
    """
    source = name.removeprefix("hf:")
    with advising(name, "transformers", extra="hf"):
        from transformers import AutoModel
        from transformers.utils import cached_file

        model = AutoModel.from_pretrained(source).eval()
        if getattr(model, "main_input_name", "pixel_values") == "input_ids":
            return _of_texts(name, source, model)
        transform = read_transform(json.loads(Path(cached_file(source, "preprocessor_config.json")).read_text()))
        features = FirstTokenOrMean(model)
        heads = getattr(model.config, "num_attention_heads", None)
        eps = getattr(model.config, "layer_norm_eps", 1e-6)
        weights = timm_names(model.state_dict())
        module = own_vit(features, weights, heads=heads, size=transform.size, eps=eps) or features
        with torch.inference_mode():
            width = module(torch.zeros(1, 3, transform.size, transform.size)).shape[-1]
    return Network(name, module, transform, width=width, architecture=name)


def _of_texts(name: str, source: str, model: nn.Module) -> TextNetwork:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source)
    config: Any = model.config
    length = min(tokenizer.model_max_length, getattr(config, "max_position_embeddings", tokenizer.model_max_length))

    def tokenize(texts: list[str]) -> list[list[int]]:
        ids: list[list[int]] = tokenizer(texts, truncation=True, max_length=length)["input_ids"]
        return ids

    parts = {"backbone": name, "tokenizer": tokenizer.backend_tokenizer.to_str(), "length": length}
    return TextNetwork(name, MeanToken(model), tokenize, parts, width=config.hidden_size)


class MeanToken(nn.Module):
    """The features of a text model of transformers.

    Parameters
    ----------
    model : nn.Module
        Its output has a ``last_hidden_state``.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return features of shape (n, width) for texts of one length, int64 tokens of shape (n, t)."""
        last: torch.Tensor = self.model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        return last.mean(1)


class FirstTokenOrMean(nn.Module):
    """The features of a vision model of transformers.

    Parameters
    ----------
    model : nn.Module
        Its output has a ``last_hidden_state``.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return features of shape (n, width) for images of shape (n, 3, size, size)."""
        last: torch.Tensor = self.model(pixel_values=images).last_hidden_state
        return last[:, 0] if last.ndim == 3 else last.mean((2, 3))


def read_transform(config: Mapping[str, Any]) -> ImageTransform:
    """Turn a ``preprocessor_config.json`` into a transform."""
    resized = _shortest_side(config.get("size", 224))
    size = _shortest_side(config["crop_size"]) if config.get("do_center_crop") and "crop_size" in config else resized
    return ImageTransform(
        size,
        min(size / resized, 1.0),
        tuple(config.get("image_mean") or IMAGENET_MEAN),
        tuple(config.get("image_std") or IMAGENET_STD),
    )


def timm_names(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Give the weights of a ViT or DeiT of transformers the names that timm gives them; others stay as they are."""
    renamed = {}
    for key, value in weights.items():
        for pattern, replacement in NAMES:
            key = re.sub(pattern, replacement, key)
        renamed[key] = value
    for key in [key for key in renamed if ".attn.query." in key]:
        parts = [key.replace(".query.", f".{part}.") for part in ("query", "key", "value")]
        if all(part in renamed for part in parts):
            renamed[key.replace(".query.", ".qkv.")] = torch.cat([renamed.pop(part) for part in parts])
    return renamed


def _shortest_side(size: int | Mapping[str, int]) -> int:
    if isinstance(size, Mapping):
        return size["shortest_edge"] if "shortest_edge" in size else min(size["height"], size["width"])
    return size
