import numpy as np
import pytest
from scipy.special import erf
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def digits():
    """The 8 x 8 digits as grey images, and their labels."""
    X, y = load_digits(return_X_y=True)
    return (X.reshape(-1, 8, 8, 1) * (255 / 16)).round().astype(np.uint8), y


@pytest.fixture
def images():
    """Twelve colour images of noise, 20 x 20."""
    return np.random.default_rng(0).integers(0, 256, (12, 20, 20, 3), dtype=np.uint8)


@pytest.fixture(scope="session")
def random_weights():
    """A function that makes a ViT's state dict with timm's names and shapes, of arrays."""
    return _random_weights


@pytest.fixture(scope="session")
def written_out_vit():
    """The forward pass of a ViT in plain NumPy: no other implementation of it is at hand."""
    return _written_out_vit


def _random_weights(*, width=24, depth=3, patch=4, grid=3, mlp_width=40, distilled=False, classes=7, seed=0):
    rng = np.random.default_rng(seed)
    shapes = {
        "cls_token": (1, 1, width),
        "pos_embed": (1, 1 + distilled + grid**2, width),
        "patch_embed.proj.weight": (width, 3, patch, patch),
        "patch_embed.proj.bias": (width,),
        "norm.weight": (width,),
        "norm.bias": (width,),
        "head.weight": (classes, width),
        "head.bias": (classes,),
    }
    if distilled:
        shapes |= {"dist_token": (1, 1, width), "head_dist.weight": (classes, width), "head_dist.bias": (classes,)}
    for i in range(depth):
        shapes |= {
            f"blocks.{i}.norm1.weight": (width,),
            f"blocks.{i}.norm1.bias": (width,),
            f"blocks.{i}.attn.qkv.weight": (3 * width, width),
            f"blocks.{i}.attn.qkv.bias": (3 * width,),
            f"blocks.{i}.attn.proj.weight": (width, width),
            f"blocks.{i}.attn.proj.bias": (width,),
            f"blocks.{i}.norm2.weight": (width,),
            f"blocks.{i}.norm2.bias": (width,),
            f"blocks.{i}.mlp.fc1.weight": (mlp_width, width),
            f"blocks.{i}.mlp.fc1.bias": (mlp_width,),
            f"blocks.{i}.mlp.fc2.weight": (width, mlp_width),
            f"blocks.{i}.mlp.fc2.bias": (width,),
        }
    return {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


def _written_out_vit(weights, images, heads, prefixes=None, prompts=None):
    """Return all tokens after the last normalisation, image by image and head by head, in float64.

    images (n, 3, side, side); prefixes {block: (keys, values)} and prompts of shapes (n, length, width).
    """
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    return np.stack(
        [
            _forward_one(
                w,
                image,
                heads,
                {block: (keys[i], values[i]) for block, (keys, values) in (prefixes or {}).items()},
                None if prompts is None else prompts[i],
            )
            for i, image in enumerate(np.asarray(images, dtype=np.float64))
        ]
    )


def _forward_one(w, image, heads, prefixes, prompts):
    kernel = w["patch_embed.proj.weight"]
    width, _, patch, _ = kernel.shape
    tokens = [w["cls_token"][0, 0]] + ([w["dist_token"][0, 0]] if "dist_token" in w else [])
    for top in range(0, image.shape[1], patch):
        for left in range(0, image.shape[2], patch):
            piece = image[:, top : top + patch, left : left + patch]
            tokens.append((kernel * piece).sum((1, 2, 3)) + w["patch_embed.proj.bias"])
    x = np.array(tokens) + w["pos_embed"][0]
    if prompts is not None:
        x = np.concatenate([x[:1], prompts, x[1:]])
    depth = sum(name.endswith("norm1.weight") for name in w)
    for i in range(depth):
        b = {name.removeprefix(f"blocks.{i}."): value for name, value in w.items() if name.startswith(f"blocks.{i}.")}
        qkv = _normalise(x, b["norm1.weight"], b["norm1.bias"]) @ b["attn.qkv.weight"].T + b["attn.qkv.bias"]
        q, k, v = qkv[:, :width], qkv[:, width : 2 * width], qkv[:, 2 * width :]
        if i in prefixes:
            k, v = np.concatenate([prefixes[i][0], k]), np.concatenate([prefixes[i][1], v])
        seen = []
        for h in range(heads):
            part = slice(h * width // heads, (h + 1) * width // heads)
            logits = q[:, part] @ k[:, part].T / np.sqrt(width // heads)
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            seen.append(shares / shares.sum(axis=1, keepdims=True) @ v[:, part])
        x = x + np.concatenate(seen, axis=1) @ b["attn.proj.weight"].T + b["attn.proj.bias"]
        hidden = _normalise(x, b["norm2.weight"], b["norm2.bias"]) @ b["mlp.fc1.weight"].T + b["mlp.fc1.bias"]
        hidden = hidden * (1 + erf(hidden / np.sqrt(2))) / 2
        x = x + hidden @ b["mlp.fc2.weight"].T + b["mlp.fc2.bias"]
    return _normalise(x, w["norm.weight"], w["norm.bias"])


def _normalise(x, weight, bias):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-6) * weight + bias
