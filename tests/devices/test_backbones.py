"""Frozen backbones give the same features wherever they compute."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from aircl.backbones import create_backbone


def make(name):
    import torch

    from aircl.backbones.base_trained import BaseTrained, build
    from aircl.backbones.bert import BertSentences
    from aircl.backbones.network import Network
    from aircl.backbones.sentences import TextNetwork
    from aircl.backbones.transform import ImageTransform
    from aircl.backbones.vit import VisionTransformer

    torch.manual_seed(0)
    if name == "text":
        config = {"hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 16}
        module = BertSentences({**config, "vocab_size": 128, "max_position_embeddings": 32}, unit_length=True)
        return TextNetwork(name, module, lambda texts: [list(text.encode()) for text in texts], {}, width=8)
    transform = ImageTransform(12)
    if name == "resnet32":
        return BaseTrained(name, name, build(name, 12, seed=0), transform)
    module = VisionTransformer(image_size=8, patch_size=4, width=12, depth=2, heads=3, registers=2, layer_scale=True)
    return Network(name, module, transform, width=12, architecture=name)


@pytest.mark.parametrize("name", ["vit", "resnet32", "text"])
def test_features_are_the_same_elsewhere(far, name):
    near = make(name)
    inputs = ["one", "two", "three"] if name == "text" else np.random.default_rng(0).integers(
        0, 256, (5, 16, 16, 3), dtype=np.uint8
    )  # fmt: skip
    expected = near.forward(near.prepare(inputs))
    away = copy.deepcopy(near)

    def features():
        away.to(far.device)
        assert all(parameter.device == far.device for parameter in away.module.parameters())
        return away.forward(away.prepare(inputs))

    features = far(features)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-6)
    assert away.fingerprint == near.fingerprint


@pytest.mark.slow
def test_a_base_phase_is_trained_elsewhere(far):
    from aircl.backbones.base_trained import train_base

    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (12, 8, 8, 3), dtype=np.uint8), np.repeat([0, 1], 6)
    settings = {"epochs": 1, "batch_size": 12, "progress": False}
    near = train_base("vit-micro", images, labels, device="cpu", **settings)
    away = far(train_base, "vit-micro", images, labels, device=far.device, **settings)
    np.testing.assert_allclose(
        near.forward(near.prepare(images)), away.forward(away.prepare(images)), rtol=1e-3, atol=1e-4
    )


def test_bfloat16_is_other_features_under_another_fingerprint():
    near = make("vit")
    images = np.random.default_rng(0).integers(0, 256, (5, 16, 16, 3), dtype=np.uint8)
    exact, fingerprint = near.forward(near.prepare(images)), near.fingerprint
    half = near.to("cpu", "bfloat16")
    features = half.forward(half.prepare(images))
    assert features.dtype == np.float32
    assert 0 < np.abs(features - exact).max() < 0.1
    assert half.fingerprint != fingerprint
    assert next(half.module.parameters()).dtype.is_floating_point
    with pytest.raises(ValueError, match="precision='half' is neither of float32, bfloat16"):
        near.to("cpu", "half")


def test_the_precision_follows_a_name(tmp_path):
    import torch

    from aircl.backbones.base_trained import BaseTrained, build
    from aircl.backbones.transform import ImageTransform

    torch.manual_seed(0)
    BaseTrained("base:resnet32", "resnet32", build("resnet32", 8, seed=0), ImageTransform(8)).save(
        tmp_path / "net.safetensors"
    )
    name = f"checkpoint:{tmp_path / 'net.safetensors'}"
    exact, half = create_backbone(name, device="cpu"), create_backbone(f"{name},precision=bfloat16,device=cpu")
    assert (exact.precision, half.precision) == ("float32", "bfloat16")
    assert half.name.endswith("precision=bfloat16,device=cpu")
    assert exact.fingerprint != half.fingerprint
    with pytest.raises(ValueError, match="device='gpu' is none"):
        create_backbone(name, device="gpu")
