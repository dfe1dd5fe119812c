"""Methods that adapt their backbone to the first phase: REAL, and RanPAC with adapters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import cosine_similarity  # noqa: E402

from aircl.backbones import create_backbone  # noqa: E402
from aircl.methods import IncompatibleError, create_method, resolve_options  # noqa: E402
from aircl.methods.gradient.adapters import AdaptedViT  # noqa: E402
from aircl.methods.gradient.representation import contrastive_loss  # noqa: E402

OPTIONS = {
    "real": {"epochs": 2, "distillation_epochs": 4, "learning_rate": 2e-3},
    "ranpac": {"adapter": True},
}
both = pytest.mark.parametrize("name", OPTIONS)


@pytest.fixture(scope="module")
def vit(digits):
    rows = digits.stream(5).phases[0].train
    base = digits.images[rows], digits.labels[rows]
    return create_backbone("base:vit-micro", base=base, epochs=2, progress=False)


def weights(module):
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


@pytest.fixture(scope="module")
def courses(digits, take_course, vit):
    return {name: take_course(name, backbone=vit, at_most=120, **options) for name, options in OPTIONS.items()}


@pytest.mark.slow
@both
def test_it_learns_all_digits_from_two(name, courses):
    assert courses[name].last > 0.6


@both
def test_the_backbone_of_the_setup_stays_as_it_was(name, digits, make, vit):
    before = weights(vit.module)
    method = make(name, backbone=vit, **OPTIONS[name])
    digits.teach(method, digits.stream(5).phases[0], at_most=40)
    assert all(torch.equal(tensor, before[key]) for key, tensor in vit.module.state_dict().items())
    assert all(not parameter.requires_grad for parameter in method.trunk.parameters())


def test_it_has_probabilities_after_the_first_phase(digits, make, vit):
    method, images = make("real", backbone=vit, epochs=1, distillation_epochs=1), digits.test_images[:40]
    assert method.probabilities(images) is None
    for phase in digits.stream(5).phases[:2]:
        digits.teach(method, phase, at_most=40)
    classes, probabilities = method.probabilities(images)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(classes[probabilities.argmax(axis=1)], method.predict(method.encode(images)))


@both
def test_only_the_first_phase_moves_the_backbone(name, digits, make, vit):
    method = make(name, backbone=vit, **OPTIONS[name])
    first, second = digits.stream(5).phases[:2]
    assert method.trunk is None
    digits.teach(method, first, at_most=40)
    before = weights(method.trunk)
    digits.teach(method, second, at_most=40)
    assert all(torch.equal(tensor, before[key]) for key, tensor in method.trunk.state_dict().items())
    assert method.samples_kept == 0
    assert method._phase == []


@pytest.mark.slow
@both
@pytest.mark.parametrize("within", [True, False])
def test_it_goes_on_after_a_stop(name, within, digits, make, vit, tmp_path):
    first, second = digits.stream(5).phases[:2]
    rows, later = first.train[:40], second.train[:40]
    straight, stopped = (make(name, backbone=vit, **OPTIONS[name]) for _ in range(2))
    for method in (straight, stopped):
        method.learn(digits.images[rows], digits.labels[rows])
        if not within:
            method.end_phase(first)
    stopped.save(tmp_path)
    resumed = make(name, backbone=vit, **OPTIONS[name])
    resumed.restore(tmp_path)
    for method in (straight, resumed):
        if within:
            method.end_phase(first)
        method.learn(digits.images[later], digits.labels[later])
        method.end_phase(second)
    encoded = straight.encode(digits.test_images)
    for one, other in zip(straight.scores(encoded), resumed.scores(encoded), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@both
def test_a_backbone_that_cannot_be_adapted_is_refused(name, make, tiny_network):
    with pytest.raises(IncompatibleError, match=r"base:vit-micro.* [Ii]t got 'tiny'"):
        make(name, backbone=tiny_network, **OPTIONS[name])
    with pytest.raises(IncompatibleError, match=r"[Ii]t got none"):
        make(name, **OPTIONS[name])


def test_options_that_there_are_not():
    assert resolve_options("real", {}, online=False)["epochs"] == 20
    with pytest.raises(ValueError, match=r"real: there is no option 'epoch'\. Allowed: epochs"):
        resolve_options("real", {"epoch": 3}, online=False)
    with pytest.raises(ValueError, match=r"ranpac: there is no option 'width'\. Allowed: adapter, search"):
        resolve_options("ranpac", {"width": 3}, online=False)


# -- REAL --
@pytest.mark.slow
def test_it_is_taught_the_features_of_the_supervised_network(digits, make, vit):
    first = digits.stream(5).phases[0]
    shown = vit.transform(digits.images[first.train[:100]])

    def likeness(**options):
        method = make("real", backbone=vit, **{**OPTIONS["real"], **options})
        digits.teach(method, first, at_most=160)
        return float(cosine_similarity(method.trunk(shown), vit.module(shown)).mean())

    # One step of the teacher is no teaching yet.
    assert likeness(distillation_epochs=12) > likeness(distillation_epochs=1, learning_rate=1e-6) + 0.2


def test_contrast_brings_views_of_a_sample_together():
    generator = torch.Generator().manual_seed(0)
    samples = torch.randn(12, 5, generator=generator)
    noise = [0.1 * torch.randn(12, 5, generator=generator) for _ in range(2)]
    alike = contrastive_loss(samples + noise[0], samples + noise[1])
    assert alike < contrastive_loss(samples + noise[0], (samples + noise[1]).roll(1, 0)) - 0.5


def test_the_contrastive_loss_is_the_published_one():
    """-log exp(cos(i, j)/T) / sum over k != i of exp(cos(i, k)/T), j the other view of i; the mean over all views."""
    views = np.random.default_rng(0).normal(size=(10, 4))
    unit = views / np.linalg.norm(views, axis=1, keepdims=True)
    losses = []
    for i in range(10):
        shares = [np.exp(unit[i] @ unit[k] / 0.5) for k in range(10)]
        losses.append(-np.log(shares[(i + 5) % 10] / (sum(shares) - shares[i])))
    loss = contrastive_loss(*torch.from_numpy(views).split(5))
    assert loss.item() == pytest.approx(np.mean(losses), abs=1e-6)


def test_fused_features_are_those_of_three_depths_side_by_side(digits, make, vit, tmp_path):
    options = {"backbone": vit, "epochs": 1, "distillation_epochs": 1}
    first = digits.stream(5).phases[0]
    plain, fused = (make("real", fusion=fusion, **options) for fusion in (False, True))
    for method in (plain, fused):
        digits.teach(method, first, at_most=40)
    trunk, images = plain.trunk, vit.transform(digits.images[:5])
    with torch.no_grad():
        tokens, tapped = trunk.embed(images), []
        for number, block in enumerate(trunk.blocks, 1):  # six blocks: after the second, the fourth and all
            tokens = block(tokens)
            tapped += [tokens[:, 0]] if number in (2, 4) else []
        expected = torch.cat([*tapped, trunk.norm(tokens)[:, 0]], 1)
    torch.testing.assert_close(fused.trunk(images), expected)
    fused.save(tmp_path)
    again = make("real", fusion=True, **options)
    again.restore(tmp_path)
    encoded = fused.encode(digits.test_images[:30])
    np.testing.assert_array_equal(again.scores(encoded)[1], fused.scores(encoded)[1])


# -- adapters --
def test_adapters_change_nothing_at_first_and_leave_the_vit_alone(digits, vit, make):
    import copy

    images = vit.transform(digits.images[:6])
    adapted = AdaptedViT(copy.deepcopy(vit.module), torch.Generator().manual_seed(0)).eval()
    torch.testing.assert_close(adapted(images), vit.module(images))
    method = make("ranpac", backbone=vit, adapter=True)
    digits.teach(method, digits.stream(5).phases[0], at_most=60)
    trained = method.trunk
    assert all(torch.equal(tensor, vit.module.state_dict()[key]) for key, tensor in trained.vit.state_dict().items())
    assert all(adapter.up.abs().max() > 0 for adapter in trained.adapters)
    assert not torch.allclose(trained(images), vit.module(images))


@pytest.mark.parametrize(("gamma", "search", "used"), [("auto", True, None), (7.0, True, None), (7.0, False, 7.0)])
def test_a_gamma_of_the_run_replaces_the_search_only_if_it_is_asked_to(gamma, search, used, digits, make):
    setup = replace(make("ncm").setup, buffer=100, gamma=gamma, options={"search": search})
    method = create_method("ranpac", setup)
    digits.teach(method, digits.stream(2).phases[0])
    found = method.facts()["gamma"]
    assert found == used if used else np.log10(found) == round(np.log10(found))  # a power of ten of its grid
    notes = type(method).notes_for({"search": search}, online=False)
    assert any("searched" in note for note in notes) == search


def test_without_an_adapter_it_takes_features(digits, make):
    method = create_method("ranpac", replace(make("ncm").setup, buffer=100))
    assert method.inputs_for({"adapter": False}) == "features"
    assert method.inputs_for({"adapter": True}) == "images"
    digits.teach(method, digits.stream(5).phases[0])
    assert set(method.predict(method.encode(digits.test_features))) <= set(digits.stream(5).phases[0].classes)
