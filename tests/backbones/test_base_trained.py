import json

import numpy as np
import pytest

from aircl import AIRClassifier
from aircl.backbones import BackboneError, create_backbone

torch = pytest.importorskip("torch", reason="torch is not installed")

from aircl.backbones.base_trained import load_base, train_base  # noqa: E402
from aircl.backbones.resnet import ResNet32  # noqa: E402
from aircl.backbones.training import augment  # noqa: E402
from aircl.backbones.vit import VisionTransformer  # noqa: E402
from aircl.classifiers.file import read, write  # noqa: E402

NAMES = ["base:resnet32", "base:vit-micro"]
WIDTHS = {"base:resnet32": 64, "base:vit-micro": 128}


def features_of(backbone, inputs):
    features = backbone.forward(backbone.prepare(inputs))
    assert features.dtype == np.float32
    assert features.shape == (len(inputs), backbone.width)
    return features


@pytest.fixture(scope="module", params=NAMES)
def trained(request, digits):
    """A backbone trained on half of the digits 0 to 4."""
    X, y = digits
    base = (np.arange(len(y)) % 2 == 0) & (y < 5)
    # Still images are learned sooner.
    return create_backbone(request.param, base=(X[base], y[base]), epochs=4, batch_size=32, shift=0)


def score(backbone, digits, classes):
    """Accuracy on one half of what a closed-form head learned of the other, the one that holds the base phase."""
    X, y = digits
    train, test = (np.flatnonzero((np.arange(len(y)) % 2 == half) & (y < classes)) for half in (0, 1))
    head = AIRClassifier().fit(features_of(backbone, X[train]), y[train])
    return head.score(features_of(backbone, X[train]), y[train]), head.score(features_of(backbone, X[test]), y[test])


def test_it_learns_the_base_classes_and_its_features_serve_new_ones(trained, digits):
    train, test = score(trained, digits, classes=5)
    assert train > 0.95
    assert test > 0.9
    assert score(trained, digits, classes=10)[1] > 0.7
    assert trained.width == WIDTHS[trained.name]


def test_training_gathers_the_samples_of_a_class_around_their_mean(trained, digits):
    """A closed-form head does well on random features too; the nearest mean does not."""

    def nearest_mean(backbone):
        X, y = digits[0][digits[1] < 5], digits[1][digits[1] < 5]
        features = features_of(backbone, X)
        means = np.stack([features[::2][y[::2] == label].mean(axis=0) for label in range(5)])
        return (((features[1::2, None] - means) ** 2).sum(-1).argmin(1) == y[1::2]).mean()

    untrained = create_backbone(trained.name, base=(digits[0][:100], digits[1][:100]), epochs=0)
    assert nearest_mean(untrained) < 0.9
    assert nearest_mean(trained) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_defaults_learn_digits(name, digits):
    X, y = digits
    base = (np.arange(len(y)) % 2 == 0) & (y < 5)
    backbone = create_backbone(name, base=(X[base], y[base]))
    train, test = score(backbone, digits, classes=5)
    assert train > 0.97
    assert test > 0.95
    assert score(backbone, digits, classes=10)[1] > 0.8


def test_it_is_frozen_and_its_module_can_be_had(trained, digits):
    assert not trained.module.training
    assert not any(parameter.requires_grad for parameter in trained.module.parameters())
    images = trained.prepare(digits[0][:3])
    np.testing.assert_array_equal(trained.module(images), features_of(trained, digits[0][:3]))
    if trained.name == "base:vit-micro":
        assert isinstance(trained.module, VisionTransformer)
        assert len(trained.module.blocks) >= 6
    else:
        assert isinstance(trained.module, ResNet32)


def test_a_row_depends_on_its_image_alone(trained, digits):
    images = digits[0][:9]
    np.testing.assert_allclose(features_of(trained, images[4:5])[0], features_of(trained, images)[4], atol=1e-5)


def test_a_saved_backbone_is_the_same_backbone(trained, digits, tmp_path):
    path = tmp_path / "base.safetensors"
    trained.save(path)
    for restored in (load_base(path), create_backbone(f"checkpoint:{path}")):
        assert restored.fingerprint == trained.fingerprint
        assert restored.transform == trained.transform
        np.testing.assert_array_equal(features_of(restored, digits[0][:50]), features_of(trained, digits[0][:50]))
    assert load_base(path).name == trained.name
    assert [file.name for file in tmp_path.iterdir()] == ["base.safetensors"]
    with pytest.raises(ValueError, match=r"saved to a .safetensors file, got .*base.pth"):
        trained.save(tmp_path / "base.pth")


def test_a_damaged_or_edited_file_is_refused(trained, tmp_path):
    path = tmp_path / "base.safetensors"
    trained.save(path)
    whole = path.read_bytes()
    for content in (whole[:-100], whole[:20], whole[:-1] + bytes([whole[-1] ^ 64])):
        path.write_bytes(content)
        with pytest.raises(BackboneError, match=r"base.safetensors is not a whole"):
            create_backbone(f"checkpoint:{path}")
    path.write_bytes(whole)
    with read(path) as (header, stored):
        arrays = dict(stored)
    for change in (
        {"backbone": "vit-giga"},
        {"backbone": None},
        {"transform": {**header["transform"], "crop": 2.0}},
        {"transform": 3},
    ):
        write(path, json.dumps({**header, **change}), arrays)
        with pytest.raises(BackboneError, match=r"base.safetensors is not a whole"):
            create_backbone(f"checkpoint:{path}")
    write(path, json.dumps(header), {name: arrays[name] for name in list(arrays)[1:]})
    with pytest.raises(BackboneError, match="Missing key"):
        load_base(path)


def test_a_saved_classifier_is_no_backbone(tmp_path):
    path = tmp_path / "classifier.safetensors"
    AIRClassifier(gamma=1.0).fit([[0.0], [1.0]], [0, 1]).save(path)
    with pytest.raises(BackboneError, match="is not a whole file of a base-trained backbone"):
        create_backbone(f"checkpoint:{path}")


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_decides_every_bit_and_the_global_one_is_left_alone(name, digits):
    X, y = digits[0][:100], digits[1][:100]
    torch.manual_seed(7)
    state = torch.random.get_rng_state()
    first = create_backbone(name, base=(X, y), seed=3, epochs=2)
    assert torch.equal(state, torch.random.get_rng_state())
    torch.manual_seed(8)
    again = create_backbone(name, base=(X, y), seed=3, epochs=2)
    assert again.fingerprint == first.fingerprint
    np.testing.assert_array_equal(features_of(again, X), features_of(first, X))
    assert create_backbone(name, base=(X, y), seed=4, epochs=2).fingerprint != first.fingerprint


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("labels", [["a"], ["a", "a", "a"], ["b", "a", "c"], [7, -3, 7, 7, 7]])
def test_few_samples_and_one_class_are_enough_to_train(name, labels, digits):
    X = digits[0][: len(labels)]
    features = features_of(create_backbone(name, base=(X, np.array(labels)), epochs=2, batch_size=4), X)
    assert np.isfinite(features).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(1, 1, 1), (4, 4, 3), (9, 9, 3), (28, 28, 1), (32, 40, 3), (100, 70, 3)])
def test_any_image_size_will_do(name, shape):
    images = np.random.default_rng(0).integers(0, 256, (3, *shape), dtype=np.uint8)
    backbone = create_backbone(name, base=(images, [0, 1, 1]), epochs=1)
    assert backbone.transform.size <= 64
    assert np.isfinite(features_of(backbone, images)).all()


def test_patches_follow_the_image_size():
    patches = {}
    for side in (8, 28, 32, 64, 200):
        images = np.zeros((1, side, side, 1), dtype=np.uint8)
        backbone = create_backbone("base:vit-micro", base=(images, [0]), epochs=0)
        patches[side] = (backbone.transform.size, backbone.module.patch_size)
    assert patches == {8: (8, 2), 28: (28, 4), 32: (32, 4), 64: (64, 8), 200: (64, 8)}
    small = create_backbone("base:vit-micro", base=(images, [0]), epochs=0, size=32)
    assert small.transform.size == 32


def test_images_of_several_sizes_train_together(images):
    mixed = [images[0], images[1][:10], images[2][:, :15, :1]]
    backbone = create_backbone("base:resnet32", base=(mixed, [0, 1, 0]), epochs=1)
    assert features_of(backbone, mixed).shape == (3, 64)


def test_mean_and_std_are_those_of_the_base_phase(images):
    transform = create_backbone("base:resnet32", base=(images, np.arange(12)), epochs=0).transform
    np.testing.assert_allclose(transform.mean, images.mean((0, 1, 2)) / 255, atol=1e-4)
    np.testing.assert_allclose(transform.std, images.std((0, 1, 2)) / 255, atol=1e-4)


@pytest.mark.parametrize("flip", [False, True])
def test_augmented_images_are_shifted_and_mirrored_copies(flip):
    images = torch.arange(1.0, 2 * 64 + 1).view(2, 1, 8, 8).repeat(40, 3, 1, 1)
    shifted = augment(images, torch.Generator().manual_seed(0), shift=1, flip=flip)
    assert shifted.shape == images.shape
    seen = set()
    for image, copy in zip(images, shifted, strict=True):
        ground = torch.nn.functional.pad(image, (1, 1, 1, 1))
        matches = [
            (top, left, mirrored)
            for top in range(3)
            for left in range(3)
            for mirrored in (False, True)
            if torch.equal(copy.flip(2) if mirrored else copy, ground[:, top : top + 8, left : left + 8])
        ]
        assert len(matches) == 1
        seen.update(matches)
    assert {mirrored for _, _, mirrored in seen} == ({False, True} if flip else {False})
    assert len({(top, left) for top, left, _ in seen}) == 9


@pytest.mark.parametrize(("channels", "flip", "mirrored"), [(1, None, False), (3, None, True), (3, False, False)])
def test_colour_images_are_mirrored_unless_told(channels, flip, mirrored, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "aircl.backbones.training.augment",
        lambda images, generator, *, shift, flip: (asked.append((shift, flip)), images)[1],
    )
    images = np.zeros((2, 8, 8, channels), dtype=np.uint8)
    create_backbone("base:resnet32", base=(images, [0, 1]), epochs=1, flip=flip)
    assert asked == [(1, mirrored)]


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("progress", [False, True])
def test_progress_is_shown_on_a_terminal_if_wanted(digits, capsys, monkeypatch, terminal, progress):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "xterm")
    create_backbone("base:resnet32", base=(digits[0][:8], digits[1][:8]), epochs=1, progress=progress)
    shown = capsys.readouterr()
    assert ("base:resnet32 on 8 images of 8 classes" in shown.err) == (terminal and progress)
    assert shown.out == ""


def test_what_cannot_be_trained_on_is_refused(digits):
    X, y = digits[0][:5], digits[1][:5]
    with pytest.raises(ValueError, match=r"'base:resnet32' is trained on the first phase. .*base=\(images, labels\)"):
        create_backbone("base:resnet32")
    with pytest.raises(ValueError, match="images and as many labels, at least one; got 5 and 4"):
        create_backbone("base:resnet32", base=(X, y[:4]))
    with pytest.raises(ValueError, match="got 0 and 0"):
        create_backbone("base:resnet32", base=(X[:0], y[:0]))
    with pytest.raises(ValueError, match=r"no architecture 'resnet18'.* Known: resnet32, vit-micro"):
        train_base("resnet18", X, y)
    with pytest.raises(ValueError, match="epochs is at least 0 and batch_size at least 1, got 1 and 0"):
        train_base("resnet32", X, y, epochs=1, batch_size=0)
    with pytest.raises(ValueError, match="images are uint8 arrays"):
        train_base("resnet32", X / 255, y)
