"""What all prompt methods have in common."""

from __future__ import annotations

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from aircl.backbones import create_backbone  # noqa: E402
from aircl.methods import METHODS, IncompatibleError, Setup, create_method, resolve_options  # noqa: E402

NAMES = ["coda-prompt", "dap", "dualprompt", "l2p", "mvp", "mvp-r"]
ONLINE = [name for name in NAMES if name != "dap"]
BOTH = [(name, online) for name in NAMES for online in (False, True) if not online or name in ONLINE]


def weights(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


@pytest.mark.parametrize(("name", "online"), BOTH)
def test_prompts_keys_and_head_learn_and_the_backbone_does_not(name, online, digits, make, tiny_vit):
    before = weights(tiny_vit.module)
    method = make(name, backbone=tiny_vit, online=online, **({} if online else {"epochs": 1}))
    drawn = weights(method.student.prompts)
    digits.teach(method, digits.stream(5).phases[0], at_most=32)
    for key, tensor in tiny_vit.module.state_dict().items():
        assert torch.equal(tensor, before[key]), key
        assert torch.equal(method.student.trunk.state_dict()[key], before[key])
    trained = {key for key, p in method.student.named_parameters() if p.requires_grad}
    assert trained == {"head.weight", "head.bias"} | {
        f"prompts.{k}" for k, _ in method.student.prompts.named_parameters()
    }
    for key, parameter in method.student.prompts.named_parameters():
        assert parameter.shape != drawn[key].shape or not torch.equal(parameter, drawn[key]), key
    assert method.student.head.weight.abs().max() > 0
    assert not any(key.startswith("trunk") for key in method.student.state()["weights"])


@pytest.mark.parametrize("name", NAMES)
def test_a_phase_smaller_than_a_batch_is_trained_on(name, digits, make, tiny_vit):
    method = make(
        name, backbone=tiny_vit, epochs=30, **({} if name in ("coda-prompt", "mvp", "mvp-r") else {"rate_batch": 16})
    )
    phase = digits.stream(5).phases[0]
    rows = np.concatenate([phase.train[digits.labels[phase.train] == c][:3] for c in phase.classes])
    assert len(rows) < method.setup.batch_size
    method.learn(digits.images[rows], digits.labels[rows])
    method.end_phase(phase)
    assert (method.predict(method.encode(digits.images[rows])) == digits.labels[rows]).all()


@pytest.mark.parametrize("name", ONLINE)
def test_the_frozen_vit_sees_a_sample_once(name, digits, make, tiny_vit, monkeypatch):
    method = make(name, backbone=tiny_vit, epochs=3)
    asked = []
    query = method.student.query
    monkeypatch.setattr(
        method.student, "query", lambda images, **how: asked.append(len(images)) or query(images, **how)
    )
    digits.teach(method, digits.stream(5).phases[0], at_most=40)
    assert sum(asked) == 40
    encoded = method.encode(digits.test_images[:50])
    assert sum(asked) == 90
    for rows in (slice(None), np.arange(7), np.array([3, 3, 1])):
        method.predict(encoded[rows])
    assert sum(asked) == 90
    images, vit = tiny_vit.prepare(digits.test_images[:50]), tiny_vit.module
    plain = vit.embed(images)
    for block in vit.blocks[:-1] if name.startswith("mvp") else vit.blocks:
        plain = block(plain)
    plain = plain if name.startswith("mvp") else vit.norm(plain)
    np.testing.assert_allclose(encoded["queries"], plain[:, 0].detach(), atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_backbone_that_is_no_vit_is_declined_with_what_is_needed(name, tiny_network):
    identity = create_backbone("identity", example=np.zeros((1, 8, 8, 1), np.uint8))
    for backbone, got in ((tiny_network, "'tiny'"), (identity, "'identity'"), (None, "none")):
        with pytest.raises(IncompatibleError, match=rf"a plain ViT: base:vit-micro.*checkpoint:FILE.*It got {got}\."):
            create_method(name, Setup(0, 64, backbone=backbone))


@pytest.mark.parametrize("name", ["coda-prompt", "dualprompt", "mvp"])
def test_a_vit_of_too_few_blocks_is_declined(name):
    from aircl.backbones.network import Network
    from aircl.backbones.transform import ImageTransform
    from aircl.backbones.vit import VisionTransformer

    vit = VisionTransformer(image_size=8, patch_size=4, width=12, depth=3, heads=3)
    backbone = Network("short", vit, ImageTransform(8), width=12, architecture="short")
    with pytest.raises(IncompatibleError, match=r"prompts enter 5 blocks, but the ViT has 3. Set the options .*blocks"):
        create_method(name, Setup(0, 12, backbone=backbone))


@pytest.mark.parametrize(("name", "online"), BOTH)
def test_the_random_states_of_the_process_are_left_alone(name, online, digits, make, tiny_vit):
    torch.manual_seed(3)
    random.seed(3)
    before = torch.get_rng_state(), random.getstate()
    method = make(name, backbone=tiny_vit, online=online, epochs=1, augment=True)
    digits.teach(method, digits.stream(5).phases[0], at_most=20)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]


@pytest.mark.parametrize("name", ONLINE)
def test_a_stop_between_phases_changes_nothing(name, digits, make, tiny_vit, tmp_path):
    phases = digits.stream(5).phases
    steady = make(name, backbone=tiny_vit, online=True)
    for phase in phases[:2]:
        digits.teach(steady, phase, at_most=16)
    steady.save(tmp_path)
    again = make(name, backbone=tiny_vit, online=True)
    again.restore(tmp_path)
    for method in (steady, again):
        digits.teach(method, phases[2], at_most=32)
    encoded = steady.encode(digits.test_images[:40])
    np.testing.assert_array_equal(steady.logits(encoded), again.logits(encoded))


@pytest.mark.parametrize("name", ["l2p", "dualprompt"])
def test_choosing_for_a_batch_leaks_and_says_so(name, digits, make, tiny_vit):
    notes = METHODS[name].notes_for
    assert notes(resolve_options(name, {}, online=False), online=False) == []
    (note,) = notes(resolve_options(name, {"selection": "batch"}, online=False), online=False)
    assert "leaks" in note
    alone, shared = (
        make(name, backbone=tiny_vit, epochs=1, pool=8, selection=s, **({"top": 2} if name == "l2p" else {}))
        for s in ("sample", "batch")
    )
    for method, depends in ((alone, False), (shared, True)):
        digits.teach(method, digits.stream(2).phases[0], at_most=32)
        encoded = method.encode(digits.test_images[:60])
        apart = np.concatenate([method.logits(encoded[i : i + 1]) for i in range(60)])
        assert np.allclose(method.logits(encoded), apart, atol=1e-4) != depends


def test_defaults_are_those_of_the_setting():
    phased, online = (resolve_options("l2p", {}, online=online) for online in (False, True))
    assert (phased["epochs"], phased["learning_rate"], phased["rate_batch"], phased["compare"]) == (
        5,
        0.03,
        256,
        "phase",
    )
    assert (online["updates"], online["learning_rate"], online["rate_batch"], online["compare"]) == (
        3,
        5e-3,
        None,
        "exposed",
    )
    assert (phased["pool"], phased["length"], phased["top"], phased["selection"]) == (10, 5, 5, "sample")
    phased, online = (resolve_options("dualprompt", {}, online=online) for online in (False, True))
    assert (phased["form"], phased["expert_length"], online["form"], online["expert_length"]) == (
        "prefix",
        5,
        "prompt",
        20,
    )
    assert (phased["assign"], online["assign"]) == ("phase", "nearest")
    coda = resolve_options("coda-prompt", {}, online=False)
    assert [coda[key] for key in ("epochs", "learning_rate", "rate_batch", "blocks", "components", "length")] == [
        20,
        1e-3,
        None,
        5,
        10,
        8,
    ]
    assert resolve_options("mvp-r", {}, online=True)["memory"] == 2000
    dap = resolve_options("dap", {}, online=False)
    assert (dap["clip"], dap["length"], dap["epochs"], dap["compare"]) == (1.0, 25, 5, "phase")
    for name in NAMES:
        assert "unfreeze" not in resolve_options(name, {}, online=False)
        assert METHODS[name].inputs_for({}) == "images"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("coda-prompt", {"length": 7}, "length=7 is odd"),
        ("mvp", {"focus": 1.5}, r"focus=1.5 is not a share"),
        ("l2p", {"selection": "all"}, "selection='all' is not one of sample, batch"),
        ("mvp", {"selection": "batch"}, "there is no option 'selection'"),
        ("l2p", {"unfreeze": True}, "there is no option 'unfreeze'"),
    ],
)
def test_what_is_wrong_is_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        resolve_options(name, options, online=False)
