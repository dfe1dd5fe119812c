import argparse
import pickle

import numpy as np
import pytest

from aircl.backbones import BackboneError, create_backbone

torch = pytest.importorskip("torch", reason="torch is not installed")

from safetensors.torch import save_file  # noqa: E402

from aircl.backbones.vit import VisionTransformer  # noqa: E402

HEADS = 4


@pytest.fixture
def weights(random_weights):
    return {name: torch.from_numpy(value) for name, value in random_weights().items()}


def load(path, weights=None, **options):
    if weights is not None:
        save_file(weights, path) if path.suffix == ".safetensors" else torch.save(weights, path)
    return create_backbone(f"checkpoint:{path}", heads=HEADS, **options)


def features_of(backbone, inputs):
    features = backbone.forward(backbone.prepare(inputs))
    assert features.dtype == np.float32
    assert features.shape == (len(inputs), backbone.width)
    return features


@pytest.mark.parametrize("name", ["vit.pth", "vit.pt", "vit.safetensors"])
def test_features_are_the_class_token_of_the_normalised_image(tmp_path, weights, random_weights, written_out_vit, name):
    backbone = load(tmp_path / name, weights)
    images = np.random.default_rng(0).integers(0, 256, (3, 12, 12, 3), dtype=np.uint8)
    pixels = (images / 255 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
    # At a crop of 1 images of this size are taken as they are.
    whole = load(tmp_path / name, crop=1.0)
    expected = written_out_vit(random_weights(), pixels.transpose(0, 3, 1, 2), HEADS)[:, 0]
    np.testing.assert_allclose(features_of(whole, images), expected, rtol=1e-4, atol=1e-4)
    assert isinstance(backbone.module, VisionTransformer)
    assert (backbone.width, backbone.transform.size, backbone.transform.crop) == (24, 12, 0.9)
    assert backbone.name == f"checkpoint:{tmp_path / name}"


def test_wrappers_prefixes_heads_and_half_precision_make_no_difference(tmp_path, weights, images):
    expected = load(tmp_path / "bare.pth", weights)
    spread = {f"module.{name}": value for name, value in weights.items()}
    headless = {name: value for name, value in weights.items() if not name.startswith("head.")}
    arguments = argparse.Namespace(model="deit_small_patch16_224", lr=5e-4)
    for number, content in enumerate(
        [
            {"model": weights},
            {"state_dict": spread, "epoch": 3},
            {"model": weights, "args": arguments, "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]}},
            headless,
            {**headless, "head.weight": torch.zeros(611, 24), "pre_logits.fc.weight": torch.zeros(24, 24)},
        ]
    ):
        backbone = load(tmp_path / f"{number}.pth", content)
        assert backbone.fingerprint == expected.fingerprint
        np.testing.assert_array_equal(features_of(backbone, images), features_of(expected, images))
    half = load(tmp_path / "half.pth", {name: value.half() for name, value in weights.items()})
    np.testing.assert_allclose(features_of(half, images), features_of(expected, images), atol=0.05)


def test_distilled_deit_is_read(tmp_path, random_weights, images):
    weights = {name: torch.from_numpy(value) for name, value in random_weights(distilled=True).items()}
    assert features_of(load(tmp_path / "deit.pth", weights), images).shape == (12, 24)


def test_heads_are_64_wide_unless_told(tmp_path, random_weights):
    weights = {name: torch.from_numpy(value) for name, value in random_weights(width=192).items()}
    torch.save(weights, tmp_path / "vit.pth")
    assert create_backbone(f"checkpoint:{tmp_path / 'vit.pth'}").module.heads == 3
    with pytest.raises(BackboneError, match="5 heads do not divide a width of 192"):
        create_backbone(f"checkpoint:{tmp_path / 'vit.pth'}", heads=5)


def test_options_change_the_transform_and_the_fingerprint(tmp_path, weights, images):
    backbones = [
        load(tmp_path / "vit.pth", weights),
        load(tmp_path / "vit.pth", mean=(0.5, 0.5, 0.5), std=[0.5, 0.5, 0.5]),
        load(tmp_path / "vit.pth", image_size=24),
        load(tmp_path / "vit.pth", crop=1.0),
    ]
    assert len({backbone.fingerprint for backbone in backbones}) == 4
    other_heads = create_backbone(f"checkpoint:{tmp_path / 'vit.pth'}", heads=2)
    assert other_heads.fingerprint != backbones[0].fingerprint
    assert backbones[2].prepare(images).shape == (12, 3, 24, 24)
    assert features_of(backbones[2], images).shape == (12, 24)
    with pytest.raises(ValueError, match="image_size is a multiple of the 4 px of a patch, got 30"):
        load(tmp_path / "vit.pth", image_size=30)


def test_missing_unknown_and_misshapen_weights_are_named(tmp_path, weights):
    path = tmp_path / "vit.pth"
    without = {name: value for name, value in weights.items() if name != "blocks.1.attn.qkv.bias"}
    with pytest.raises(BackboneError, match=r"vit.pth is not a plain .*: missing: blocks.1.attn.qkv.bias"):
        load(path, without)
    with pytest.raises(BackboneError, match=r"unknown: blocks.0.attn.q_norm.weight"):
        load(path, {**weights, "blocks.0.attn.q_norm.weight": torch.ones(6)})
    with pytest.raises(BackboneError, match=r"missing: blocks.0.ls2.gamma, blocks.1.ls2.gamma, blocks.2"):
        load(path, {**weights, "blocks.0.ls1.gamma": torch.ones(24), "blocks.1.ls1.gamma": torch.ones(24)})
    with pytest.raises(BackboneError, match=r"of another shape: norm.bias \(5,\) instead of \(24,\)"):
        load(path, {**weights, "norm.bias": torch.zeros(5)})
    with pytest.raises(BackboneError, match=r"pos_embed \(1, 12, 24\) instead of \(1, 10, 24\)"):
        load(path, {**weights, "pos_embed": torch.zeros(1, 12, 24)})
    with pytest.raises(BackboneError, match=r"has no 'cls_token'. Its first names are conv1.weight"):
        load(path, {"conv1.weight": torch.zeros(3)})


@pytest.mark.parametrize("content", [[1, 2], {"model": 3}, {"epoch": 3, "lr": 0.1}])
def test_what_is_no_state_dict_is_refused(tmp_path, content):
    with pytest.raises(BackboneError, match="does not hold a state dict"):
        load(tmp_path / "vit.pth", content)


@pytest.mark.parametrize("name", ["vit.pth", "vit.safetensors"])
@pytest.mark.parametrize("kept", [0, 10, 0.5, 0.99])
def test_a_truncated_file_is_refused(tmp_path, weights, name, kept):
    path = tmp_path / name
    load(path, weights)
    content = path.read_bytes()
    path.write_bytes(content[: kept if isinstance(kept, int) else int(kept * len(content))])
    with pytest.raises(BackboneError, match=rf"{name} (cannot be read|is not a whole)"):
        load(path)


class Trap:
    def __reduce__(self):
        return (print, ("executed",))


def test_a_file_that_would_run_code_is_refused(tmp_path, capsys):
    path = tmp_path / "trap.pth"
    torch.save({"model": Trap()}, path)
    with pytest.raises(BackboneError, match="which might run code"):
        load(path)
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(BackboneError, match="which might run code"):
        load(path)
    assert "executed" not in capsys.readouterr().out


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(BackboneError, match=r"none.pth does not exist"):
        load(tmp_path / "none.pth")
    with pytest.raises(BackboneError, match="is not a file"):
        load(tmp_path)
