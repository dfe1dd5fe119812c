"""timm and transformers are not needed here: small stand-ins have the parts of their interfaces that are used.

So these tests show what is done with what the libraries give, not that the libraries give it.
"""

import importlib.util
import json
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from aircl.backbones import BackboneError, create_backbone

torch = pytest.importorskip("torch", reason="torch is not installed")

from aircl.backbones.huggingface import read_transform, timm_names  # noqa: E402
from aircl.backbones.vit import VisionTransformer  # noqa: E402


def stand_in(monkeypatch, name, **members):
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, loader=None)
    module.__dict__.update(members)
    monkeypatch.setitem(sys.modules, name, module)
    return module


def features_of(backbone, inputs):
    features = backbone.forward(backbone.prepare(inputs))
    assert features.dtype == np.float32
    assert features.shape == (len(inputs), backbone.width)
    return features


def small_vit(seed=0):
    torch.manual_seed(seed)
    return VisionTransformer(image_size=16, patch_size=4, width=24, depth=2, heads=4).eval()


class Convolution(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 5, 4)

    def forward(self, images):
        return self.conv(images).mean((2, 3))


class TimmViT(torch.nn.Module):
    """As timm's, of which `attn.num_heads` is asked; with `layer_scale` it is none that can be rebuilt."""

    def __init__(self, factor=1.0):
        super().__init__()
        vit = small_vit()
        for name, child in vit.named_children():
            self.add_module(name, child)
        self.cls_token, self.pos_embed = vit.cls_token, vit.pos_embed
        for block in self.blocks:
            block.attn.num_heads = 4
        self._call, self.factor = [vit], factor

    def forward(self, images):
        return self.factor * self._call[0](images)


@pytest.fixture
def timm(monkeypatch):
    def create_model(name, *, pretrained, num_classes):
        assert num_classes == 0
        if name == "unknown":
            raise RuntimeError("Unknown model (unknown)")
        torch.manual_seed(int(pretrained))
        return {"conv": Convolution, "vit": TimmViT, "odd-vit": lambda: TimmViT(factor=2.0)}[name]()

    config = {
        "input_size": (3, 16, 16),
        "crop_pct": 0.875,
        "mean": [0.5] * 3,
        "std": [0.25] * 3,
        "interpolation": "bicubic",
    }
    data = SimpleNamespace(resolve_model_data_config=lambda model: config)
    return stand_in(monkeypatch, "timm", create_model=create_model, data=data)


def test_a_timm_model_keeps_its_own_transform(timm, images):
    backbone = create_backbone("timm:conv")
    assert (backbone.name, backbone.width) == ("timm:conv", 5)
    transform = backbone.transform
    assert (transform.size, transform.crop, transform.mean, transform.std) == (16, 0.875, (0.5,) * 3, (0.25,) * 3)
    with torch.inference_mode():
        expected = backbone.module(backbone.prepare(images))
    np.testing.assert_array_equal(features_of(backbone, images), expected)
    assert isinstance(backbone.module, Convolution)
    assert not backbone.module.training
    assert backbone.fingerprint == create_backbone("timm:conv").fingerprint
    assert backbone.fingerprint != create_backbone("timm:conv", pretrained=False).fingerprint


def test_a_vit_of_timm_opens_its_doors_to_prompts(timm, images):
    backbone = create_backbone("timm:vit")
    assert isinstance(backbone.module, VisionTransformer)
    with torch.inference_mode():
        expected = TimmViT().eval()(backbone.prepare(images))
    np.testing.assert_allclose(features_of(backbone, images), expected, atol=1e-5)


def test_a_vit_that_computes_something_else_stays_as_it_is(timm, images):
    assert isinstance(create_backbone("timm:odd-vit").module, TimmViT)


def test_a_name_that_timm_does_not_know_is_reported(timm):
    with pytest.raises(
        BackboneError, match=r"'timm:unknown' cannot be made: Unknown model \(unknown\). Is the name right"
    ):
        create_backbone("timm:unknown")


def huggingface_names(vit):
    """The weights of our ViT under the names of transformers' ViTModel."""
    renamed = {}
    for name, value in vit.state_dict().items():
        for ours, theirs in {
            "cls_token": "embeddings.cls_token",
            "pos_embed": "embeddings.position_embeddings",
            "patch_embed.proj": "embeddings.patch_embeddings.projection",
            "blocks.": "encoder.layer.",
            "attn.proj": "attention.output.dense",
            "mlp.fc1": "intermediate.dense",
            "mlp.fc2": "output.dense",
            "norm1": "layernorm_before",
            "norm2": "layernorm_after",
        }.items():
            name = name.replace(ours, theirs)
        name = name.replace("norm.", "layernorm.") if name.startswith("norm.") else name
        if "attn.qkv" in name:
            for part, third in zip(("query", "key", "value"), value.chunk(3), strict=True):
                renamed[name.replace("attn.qkv", f"attention.attention.{part}")] = third
        else:
            renamed[name] = value
    return {**renamed, "pooler.dense.weight": torch.zeros(24, 24), "pooler.dense.bias": torch.zeros(24)}


class HuggingFaceModel(torch.nn.Module):
    def __init__(self, network, tokens, weights=None):
        super().__init__()
        self.network, self.tokens, self.weights = network, tokens, weights
        self.config = SimpleNamespace(num_attention_heads=4, layer_norm_eps=1e-6)

    def state_dict(self, *args, **kwargs):
        return (
            self.weights
            if self.weights is not None and not args and not kwargs
            else super().state_dict(*args, **kwargs)
        )

    def forward(self, pixel_values):
        return SimpleNamespace(last_hidden_state=self.tokens(pixel_values))


@pytest.fixture
def transformers(monkeypatch, tmp_path):
    def from_pretrained(source):
        if source == "vit":
            vit = small_vit()
            return HuggingFaceModel(vit, lambda x: vit.forward_tokens(vit.embed(x)), huggingface_names(vit))
        if source == "conv":
            torch.manual_seed(0)
            network = torch.nn.Conv2d(3, 5, 4)
            return HuggingFaceModel(network, network)
        raise OSError(f"{source} is not a local folder and is not a valid model identifier")

    def cached_file(source, filename):
        config = {"size": {"height": 16, "width": 16}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
        (tmp_path / filename).write_text(json.dumps(config))
        return str(tmp_path / filename)

    stand_in(monkeypatch, "transformers.utils", cached_file=cached_file)
    return stand_in(monkeypatch, "transformers", AutoModel=SimpleNamespace(from_pretrained=from_pretrained))


def test_a_vit_of_transformers_opens_its_doors_to_prompts(transformers, images):
    backbone = create_backbone("hf:vit")
    assert isinstance(backbone.module, VisionTransformer)
    assert (backbone.name, backbone.width, backbone.transform.size) == ("hf:vit", 24, 16)
    with torch.inference_mode():
        expected = small_vit()(backbone.prepare(images))
    np.testing.assert_allclose(features_of(backbone, images), expected, atol=1e-5)


def test_maps_of_transformers_are_averaged_over_places(transformers, images):
    backbone = create_backbone("hf:conv")
    with torch.inference_mode():
        expected = backbone.module.model.network(backbone.prepare(images)).mean((2, 3))
    np.testing.assert_allclose(features_of(backbone, images), expected, atol=1e-6)
    assert backbone.width == 5


def test_a_model_that_cannot_be_had_is_reported(transformers):
    with pytest.raises(
        BackboneError, match=r"'hf:none' cannot be made: none is not a local folder.* Is the name right"
    ):
        create_backbone("hf:none")


def test_all_names_of_a_vit_of_transformers_have_one_in_timm():
    vit = small_vit()
    renamed = timm_names(huggingface_names(vit))
    ours = vit.state_dict()
    assert renamed.keys() == ours.keys() | {"head.dense.weight", "head.dense.bias"}
    assert all(torch.equal(renamed[name], value) for name, value in ours.items())


@pytest.mark.parametrize(
    ("options", "blocks", "norm1"),
    [({}, "layers.", "layernorm_before"), ({"registers": 4, "layer_scale": True}, "encoder.layer.", "norm1")],
    ids=["ViT", "DINOv2 with registers"],
)
def test_names_since_version_5_of_transformers_have_one_in_timm(options, blocks, norm1):
    vit = VisionTransformer(image_size=8, patch_size=4, width=24, depth=2, heads=4, **options)
    theirs = {"embeddings.mask_token": torch.zeros(1, 24)}
    for name, value in vit.state_dict().items():
        for ours, other in {
            "blocks.": blocks,
            "attn.proj": "attention.o_proj",
            "norm1": norm1,
            "norm2": norm1.replace("1", "2").replace("before", "after"),
            "ls1.gamma": "layer_scale1.lambda1",
            "ls2.gamma": "layer_scale2.lambda1",
            "cls_token": "embeddings.cls_token",
            "register_tokens": "embeddings.register_tokens",
            "pos_embed": "embeddings.position_embeddings",
            "patch_embed.proj": "embeddings.patch_embeddings.projection",
        }.items():
            name = name.replace(ours, other)
        name = f"layer{name}" if name.startswith("norm.") else name
        if "attn.qkv" in name:
            for part, third in zip("qkv", value.chunk(3), strict=True):
                theirs[name.replace("attn.qkv", f"attention.{part}_proj")] = third
        else:
            theirs[name] = value
    renamed = timm_names(theirs)
    assert renamed.keys() == vit.state_dict().keys() | {"mask_token"}
    assert all(torch.equal(renamed[name], value) for name, value in vit.state_dict().items())


@pytest.mark.parametrize(
    ("config", "size", "crop"),
    [
        ({}, 224, 1.0),
        ({"size": 384}, 384, 1.0),
        ({"size": {"height": 224, "width": 224}}, 224, 1.0),
        (
            {"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}, "do_center_crop": True},
            224,
            0.875,
        ),
        ({"size": {"shortest_edge": 256}, "crop_size": 224, "do_center_crop": False}, 256, 1.0),
    ],
)
def test_preprocessor_configurations_are_understood(config, size, crop):
    transform = read_transform(config)
    assert (transform.size, transform.crop) == (size, crop)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (
            RuntimeError("operator torchvision::nms does not exist"),
            r"Install a matching pair .* torchvision --index-url",
        ),
        (ImportError("cannot import name 'x' from 'timm'"), r"Install it again: .*'aircl\[timm\]'"),
    ],
)
def test_a_library_that_cannot_be_imported_is_explained(monkeypatch, error, advice):
    class Broken:
        def find_spec(self, name, path=None, target=None):
            return ModuleSpec(name, self) if name == "timm" else None

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            raise error

    monkeypatch.delitem(sys.modules, "timm", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(BackboneError, match=advice):
        create_backbone("timm:resnet50")


@pytest.mark.parametrize(("name", "package"), [("timm:resnet50", "timm"), ("hf:google/vit", "transformers")])
def test_a_library_that_is_not_installed_is_advised(name, package):
    if importlib.util.find_spec(package) is not None:
        pytest.skip(f"{package} is installed")
    extra = name.partition(":")[0]
    with pytest.raises(BackboneError, match=rf"'{name}' needs {package}. Install it: pip install 'aircl\[{extra}\]'"):
        create_backbone(name)
