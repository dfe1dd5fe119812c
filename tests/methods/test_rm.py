from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from aircl.methods import resolve_options  # noqa: E402
from aircl.methods.gradient import equidistant, vote_uncertainty  # noqa: E402
from aircl.methods.rm import RainbowMemory  # noqa: E402


@pytest.mark.parametrize("online", [False, True])
def test_the_memory_of_a_long_tail_is_balanced_to_within_one_sample(online, digits, make):
    method = make("rm", memory=57, online=online, epochs=1, memory_epochs=1)
    stream = digits.stream(5, scenario="long-tail", counts="exp", ratio=1 / 130)
    for phase in stream.phases:
        digits.teach(method, phase)
    counts = stream.counts().sum(axis=0)
    kept = np.bincount(method.memory.rows["labels"], minlength=10)
    assert kept.sum() == method.samples_kept == 57
    short = kept < counts
    assert kept.max() - kept[short].min() <= 1
    assert (kept[~short] == counts[~short]).all()


def test_it_prefers_uncertain_samples(digits, make):
    """Of each stretch of equally many samples, sorted by uncertainty, the memory has the most uncertain one."""
    method = make("rm", memory=30, epochs=3, memory_epochs=1)
    judged = []
    judge = method._judged
    method._judged = lambda rows: judged.append(judge(rows)) or judged[-1]
    phase = digits.stream(2).phases[0]
    digits.teach(method, phase)
    (all_rows,) = judged
    for label in phase.classes.tolist():
        own = all_rows["labels"] == label
        held = method.memory.rows["labels"] == label
        everything, kept = all_rows["uncertainty"][own], method.memory.rows["uncertainty"][held]
        assert kept.max() == everything.max()
        assert kept.mean() > everything.mean()
        torch.testing.assert_close(kept.sort().values, everything[equidistant(everything, 6)].sort().values)


def test_uncertain_samples_are_those_that_the_network_mistakes(digits, make):
    method = make("rm", online=True)
    method.learn(digits.features, digits.labels)
    uncertainty = vote_uncertainty(
        method.student, method.views, torch.from_numpy(digits.test_features), 12, torch.Generator().manual_seed(0)
    ).numpy()
    right = method.predict(digits.test_features) == digits.test_labels
    assert uncertainty.min() == 0
    assert uncertainty.max() <= 1 - 1 / 10 + 1e-6
    assert uncertainty[~right].mean() > 2 * uncertainty[right].mean()


@pytest.mark.parametrize("online", [False, True])
def test_training_on_the_memory_when_a_phase_is_over_helps_the_classes_that_are_gone(online, take_course):
    # At the rate by default three epochs suffice, and the memory has nothing left to add.
    rate = {} if online else {"learning_rate": 0.01}
    settings = {"memory": 100, "online": online, "epochs": 3, "at_most": 150, **rate}
    with_it, without = (take_course("rm", memory_epochs=epochs, **settings) for epochs in (16, 0))
    assert with_it.last > without.last + 0.02
    assert with_it.last > 0.8


def test_an_empty_phase_trains_nothing(digits, make):
    method = make("rm", memory=50, online=True, memory_epochs=2)
    phase = digits.stream(5).phases[0]
    digits.teach(method, phase)
    weight = method.student.head.weight.detach().clone()
    method.end_phase(phase)
    assert torch.equal(method.student.head.weight, weight)


def test_mixed_images_are_trained_on_with_both_labels(digits, make, tiny_network, monkeypatch):
    """CutMix: share * CE(own label) + (1 - share) * CE(label of the rectangle), in about half of the steps."""
    from aircl.methods import gradient

    method = make("rm", backbone=tiny_network, unfreeze=True, online=True)
    assert (method.options.augment, method.options.cutmix) == ("rand", True)
    rows = method.rows(digits.images[:24], digits.labels[:24])
    method.meet(rows)
    with torch.no_grad():
        method.student.head.weight += torch.randn(10, 64, generator=torch.Generator().manual_seed(0))
    mixes = []
    cut_mix = gradient.cut_mix
    monkeypatch.setattr(gradient, "cut_mix", lambda *arguments: mixes.append(cut_mix(*arguments)) or mixes[-1])
    losses = []
    for _ in range(40):
        before = len(mixes)
        losses.append((method.loss(rows).item(), len(mixes) > before))
    assert 8 < len(mixes) < 32
    columns = np.array([method.student.head.classes.index(label) for label in rows["labels"].tolist()])
    for (loss, _), (views, partners, share) in zip([one for one in losses if one[1]], mixes, strict=True):
        p = method.student(views).softmax(1).detach().double().numpy()
        own, other = (-np.log(p[np.arange(24), c]).mean() for c in (columns, columns[partners.numpy()]))
        assert loss == pytest.approx(share * own + (1 - share) * other, rel=1e-4)


def test_results_say_that_views_of_features_are_noise():
    def notes(**options):
        return RainbowMemory.notes_for(resolve_options("rm", options, online=True), online=True)

    assert notes()[0] == "It is told where phases end."
    assert "features with noise" in notes()[1]
    assert len(notes(unfreeze=True)) == 1
