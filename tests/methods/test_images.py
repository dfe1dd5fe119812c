"""Methods that train their backbone, on images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from aircl.backbones import create_backbone  # noqa: E402
from aircl.benchmark.contract import CHECKS, check_method  # noqa: E402
from aircl.methods import METHODS, IncompatibleError, Setup, create_method, list_methods  # noqa: E402
from aircl.methods.gradient import ImageViews  # noqa: E402

# How much it learns is asked after three epochs, all else after one, as in test_methods.py.
LEARNING = [check for check in CHECKS if check.startswith(("learns", "accepts", "takes new"))]
GRADIENT = ["er", "ewc++", "fine-tuning", "icarl", "lwf", "rm"]
# Of those made for imbalance, the ones that do something of their own with images.
OTHERS = ["bic", "cba", "clib", "dgr", "ewc", "gss", "lfl", "lucir", "si", "two-stage"]
QUICK = {"epochs": 3, "unfreeze": True, "learning_rate": 0.02, "backbone_rate": 0.5}


@pytest.mark.slow
@pytest.mark.parametrize("name", GRADIENT)
def test_the_contract_is_kept_on_images(name, tiny_network):
    list_methods()
    found = []
    for epochs, checks in ((3, LEARNING), (1, [check for check in CHECKS if check not in LEARNING])):
        of_memory = {"memory_epochs": epochs, "views": 4} if name == "rm" else {}
        options = {**QUICK, "epochs": epochs, **of_memory}

        def on_tiny_network(setup, options=options):
            return METHODS[name](replace(setup, backbone=tiny_network, options=options))

        on_tiny_network.consumes = "images"
        found += check_method(on_tiny_network, checks=checks)
    assert len(found) == len(CHECKS)
    assert [f"{f.name}: {f.reason}" for f in found if f.result == "failed"] == []


@pytest.mark.parametrize("name", OTHERS)
def test_a_trained_backbone_learns_and_goes_on_after_a_stop(name, digits, make, tiny_network, tmp_path):
    brief = {"second_epochs": 1} if name == "two-stage" else {}
    settings = {"backbone": tiny_network, **QUICK, **brief, "learning_rate": 0.05}
    methods = [make(name, **settings) for _ in range(2)]
    first, second, *_ = digits.stream(5).phases
    for method in methods:
        digits.teach(method, first, at_most=96)
    asked = np.isin(digits.test_labels, first.classes)
    right = methods[0].predict(methods[0].encode(digits.test_images[asked])) == digits.test_labels[asked]
    assert right.mean() > 0.7
    methods[1].save(tmp_path)
    methods[1] = make(name, **settings)
    methods[1].restore(tmp_path)
    for method in methods:
        digits.teach(method, second, at_most=48)
    one, other = (method.student.state_dict() for method in methods)
    assert all(torch.equal(one[key], other[key]) for key in one)
    assert not torch.equal(one["trunk.1.weight"], tiny_network.module[1].weight)


@pytest.mark.parametrize("unfreeze", [True, False])
def test_the_backbone_learns_if_it_is_to_and_that_of_the_setup_stays(unfreeze, digits, make, tiny_network):
    before = {name: tensor.clone() for name, tensor in tiny_network.module.state_dict().items()}
    method = make("er", backbone=tiny_network, unfreeze=unfreeze, augment=True, epochs=2)
    digits.teach(method, digits.stream(5).phases[0], at_most=64)
    for name, tensor in tiny_network.module.state_dict().items():
        assert torch.equal(tensor, before[name])
        assert torch.equal(method.student.trunk.state_dict()[name], before[name]) != unfreeze
    assert method.student.head.weight.abs().max() > 0


def test_frozen_images_without_augmentation_are_as_good_as_features(digits, tiny_network):
    """The path over images normalises what it learns and what it replays as the feature cache does."""
    features = tiny_network.forward(tiny_network.prepare(digits.images))
    options = {"memory": 30, "epochs": 2}
    on_features = create_method("er", Setup(1, 64, batch_size=16, options=options))
    on_images = create_method(
        "er", Setup(1, 64, batch_size=16, backbone=tiny_network, options={**options, "augment": True})
    )
    on_images.views.augmented = False
    for method, inputs in ((on_features, features), (on_images, digits.images)):
        for phase in digits.stream(5).phases[:2]:
            method.learn(inputs[phase.train], digits.labels[phase.train])
            method.end_phase(phase)
    torch.testing.assert_close(on_images.student.head.weight, on_features.student.head.weight, rtol=1e-3, atol=1e-5)
    test = tiny_network.forward(tiny_network.prepare(digits.test_images))
    np.testing.assert_array_equal(
        on_images.predict(on_images.encode(digits.test_images)), on_features.predict(on_features.encode(test))
    )


def test_training_augments_and_predicting_does_not(tiny_network):
    generator = torch.Generator().manual_seed(0)
    colour = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
    views = ImageViews(tiny_network.transform, augmented=True)
    pixels = views.tensor(colour)
    assert pixels.dtype == torch.uint8
    plain = views.plain(pixels)
    torch.testing.assert_close(plain, tiny_network.prepare(colour))
    first, second = (views.training(pixels, generator) for _ in range(2))
    assert not torch.equal(first, second)
    assert not torch.equal(first, plain)
    assert torch.equal(views.plain(pixels), plain)
    assert views.flip
    grey = ImageViews(tiny_network.transform, augmented=True)
    grey.tensor(colour[..., :1])
    assert grey.flip is False  # digits and letters are not to be mirrored


def test_the_memory_of_images_is_pixels(digits, make, tiny_network):
    method = make("er", backbone=tiny_network, unfreeze=True, online=True, memory=20)
    method.learn(digits.images[:40], digits.labels[:40])
    assert method.memory.rows["inputs"].dtype == torch.uint8
    assert method.memory.rows["inputs"].shape == (20, 3, 8, 8)


def test_images_without_a_network_are_declined():
    identity = create_backbone("identity", example=np.zeros((1, 8, 8, 1), np.uint8))
    with pytest.raises(IncompatibleError, match=r"needs a backbone that is a network.* it got 'identity'"):
        create_method("er", Setup(0, 64, backbone=identity, options={"unfreeze": True}))
    with pytest.raises(IncompatibleError, match="it got none"):
        create_method("er", Setup(0, 64, options={"unfreeze": True}))
