"""Every method learns and predicts the same wherever its networks and statistics are."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from aircl.methods import METHODS, Setup, create_method
from aircl.methods.base_phase import BasePhaseMethod
from aircl.methods.classifier import ClassifierMethod
from aircl.methods.gradient.method import GradientMethod
from aircl.methods.gradient.phase_wise import PhaseWise
from aircl.methods.registry import load_methods

load_methods()
SMALL = {
    "epochs": 1,
    "distillation_epochs": 1,
    "memory_epochs": 1,
    "second_epochs": 1,
    "updates": 1,
    "views": 2,
    "blocks": 1,
    "components": 2,
    "general_blocks": 1,
    "expert_blocks": 1,
}
GRADIENT = [name for name in METHODS if issubclass(METHODS[name], GradientMethod)]
ON_FEATURES = [name for name in GRADIENT if METHODS[name].inputs_for({}) == "features"]
ON_IMAGES = [name for name in GRADIENT if name not in ON_FEATURES]
BASE_PHASE = [name for name in METHODS if issubclass(METHODS[name], BasePhaseMethod)]
ON_TENSORS = [
    name
    for name in METHODS
    if issubclass(METHODS[name], ClassifierMethod) and METHODS[name].estimator.takes_tensors and name not in BASE_PHASE
]
ON_ARRAYS = [name for name in METHODS if name not in GRADIENT + BASE_PHASE + ON_TENSORS]


@pytest.fixture(scope="module")
def vit():
    import torch

    from aircl.backbones.network import Network
    from aircl.backbones.transform import ImageTransform
    from aircl.backbones.vit import VisionTransformer

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = VisionTransformer(image_size=8, patch_size=4, width=12, depth=2, heads=3, mlp_width=16)
    return Network("tiny", module, ImageTransform(8), width=12, architecture="tiny")


@pytest.fixture(scope="module")
def base_trained():
    from aircl.backbones.base_trained import BaseTrained, build
    from aircl.backbones.transform import ImageTransform

    return BaseTrained("base:vit-micro", "vit-micro", build("vit-micro", 8, seed=0), ImageTransform(8))


def learn(
    name, digits, tmp_path, *, device, backbone=None, online=False, look=None, buffer=None, gamma="auto", **options
):
    """Return predictions and scores after two phases, between which the method was written and read."""
    images, labels = digits
    if backbone is not None:
        backbone = copy.deepcopy(backbone).to(device)
    known = METHODS[name].resolve_options(options, online=online)
    options |= {key: value for key, value in SMALL.items() if key in known}
    setup = Setup(
        1, 64 if backbone is None else backbone.width,
        online=online, batch_size=4, backbone=backbone, device=device, options=options,
        buffer=buffer, gamma=gamma,
    )  # fmt: skip
    inputs = images.reshape(len(images), -1).astype(np.float32) / 255 if backbone is None else images
    method = create_method(name, setup)
    for phase in range(2):
        rows = np.flatnonzero(labels // 2 == phase)
        for start in range(0, len(rows), 4):
            method.learn(inputs[rows[start : start + 4]], labels[rows[start : start + 4]])
        if not online or method.uses_phase_ends:
            method.end_phase(None)
        if look is not None:
            look(method)
        if not phase:
            tmp_path.mkdir()
            method.save(tmp_path)
            method = create_method(name, setup)
            method.restore(tmp_path)
    encoded = method.encode(inputs)
    method.refresh()
    scores = method.scores(encoded)
    method.weight_norms()
    assert len(method.predict(method.encode(inputs[:0]))) == 0
    return method.predict(encoded), None if scores is None else scores[1]


def check(far, name, digits, tmp_path, **settings):
    near, near_scores = learn(name, digits, tmp_path / "near", device="cpu", **settings)
    away, away_scores = far(learn, name, digits, tmp_path / "far", device=far.device, **settings)
    if near_scores is None:
        np.testing.assert_array_equal(away, near)
    else:  # the last bits may decide between two classes
        np.testing.assert_allclose(away_scores, near_scores, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ON_TENSORS)
def test_statistics_and_solutions(far, name, digits, tmp_path):
    """The engine follows the device of a run: nothing of what it keeps stays behind."""
    kept = []

    def learned(method):
        backend = method._classifier._learner.state.inputs.backend_
        kept.append(getattr(backend, "device", None))

    check(far, name, digits, tmp_path, buffer=9, gamma=0.5, look=learned)
    assert kept == ["cpu", "cpu", str(far.device), str(far.device)]


@pytest.mark.parametrize("name", ON_ARRAYS)
def test_what_has_no_tensors_stays_on_arrays(far, name, digits, tmp_path):
    assert name in ("acil-recursive", "ranpac", "ds-al", "aef-ocl", "fecam", "joint")
    check(far, name, digits, tmp_path, gamma=0.5)


@pytest.mark.parametrize(
    ("name", "online"),
    [
        (n, online)
        for n in ON_FEATURES
        for online in (False, True)
        if not (online and issubclass(METHODS[n], PhaseWise))
    ],
)
def test_a_head_on_features(far, name, digits, tmp_path, online):
    check(far, name, digits, tmp_path, online=online)


@pytest.mark.parametrize(
    "name", [name if name in ("er", "lwf") else pytest.param(name, marks=pytest.mark.slow) for name in ON_FEATURES]
)
def test_a_backbone_that_is_trained(far, name, digits, tmp_path, vit):
    if name == "dmc":
        return  # it declines
    check(far, name, digits, tmp_path, backbone=vit, unfreeze=True)


@pytest.mark.parametrize("name", ON_IMAGES)
def test_prompts(far, name, digits, tmp_path, vit):
    check(far, name, digits, tmp_path, backbone=vit)


@pytest.mark.slow
@pytest.mark.parametrize("name", BASE_PHASE)
def test_a_backbone_that_is_adapted_to_the_first_phase(far, name, digits, tmp_path, base_trained):
    check(far, name, digits, tmp_path, backbone=base_trained)


@pytest.mark.slow
def test_adapters(far, digits, tmp_path, vit):
    check(far, "ranpac", digits, tmp_path, backbone=vit, adapter=True)


def test_no_method_names_a_device_by_itself():
    """Two base classes ask which device a run is on; samples are on `HOST`, and all else is where the network is."""
    from pathlib import Path

    import aircl.methods

    folder = Path(aircl.methods.__file__).parent
    asking = [folder / "classifier.py", folder / "gradient" / "method.py"]
    telling = folder / "method.py"  # the device in `Hints` is the CPU until a run says otherwise
    paths = [path for path in folder.rglob("*.py") if path not in (*asking, telling)]
    assert len(paths) > len({METHODS[name].__module__ for name in METHODS})
    for path in paths:
        for word in ("cuda", '"mps', '"cpu', "choose_device", "AIRCL_DEVICE"):
            assert word not in path.read_text(), path.name
