from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from aircl.methods import METHODS, resolve_options  # noqa: E402


def test_a_network_that_learns_without_forgetting_forgets_less(take_course, tiny_network):
    settings = {
        "backbone": tiny_network, "unfreeze": True, "augment": False, "phases": 2, "epochs": 10,
        "learning_rate": 0.03, "backbone_rate": 1.0, "compare": "phase",
    }  # fmt: skip
    forgetting = {
        name: [take_course(name, seed=seed, **settings, **options).forgetting for seed in (1, 2, 3)]
        for name, options in (("fine-tuning", {}), ("lwf", {"distillation": 0.8}))
    }
    assert np.mean(forgetting["lwf"]) < np.mean(forgetting["fine-tuning"]) - 0.05


def test_on_frozen_features_phase_by_phase_there_is_nothing_to_distil(take_course):
    lwf, baseline = (take_course(name, epochs=2, at_most=100) for name in ("lwf", "fine-tuning"))
    torch.testing.assert_close(lwf.method.student.head.weight, baseline.method.student.head.weight)
    settings = {"epochs": 2, "at_most": 100, "compare": "exposed", "learning_rate": 0.03}
    lwf, baseline = (take_course(name, **settings) for name in ("lwf", "fine-tuning"))
    assert not torch.allclose(lwf.method.student.head.weight, baseline.method.student.head.weight, atol=1e-3)


def test_results_say_that_it_is_fine_tuning_there():
    def notes(online=False, **options):
        return METHODS["lwf"].notes_for(resolve_options("lwf", options, online=online), online=online)

    (note,) = notes()
    assert "fine-tuning exactly" in note
    assert notes(online=True) == notes(compare="exposed") == notes(unfreeze=True, compare="phase") == []


def test_the_teacher_is_the_network_after_the_previous_batch_or_phase(digits, make):
    online = make("lwf", online=True)
    for start in (0, 16):
        before = online.student.head.weight.detach().clone()
        teacher = online.teacher
        online.learn(digits.features[start : start + 16], digits.labels[start : start + 16])
    assert torch.equal(teacher.head.weight, before)
    assert torch.equal(online.teacher.head.weight, online.student.head.weight)
    assert not online.teacher.head.weight.requires_grad

    phased = make("lwf", epochs=1)
    first, second, *_ = digits.stream(5).phases
    digits.teach(phased, first)
    after_first = phased.student.head.weight.detach().clone()
    phased.learn(digits.features[second.train], digits.labels[second.train])
    assert torch.equal(phased.teacher.head.weight, after_first)


def test_a_teacher_shares_a_frozen_backbone_and_copies_one_that_learns(make, tiny_network):
    frozen = make("lwf", backbone=tiny_network, augment=True).student
    assert frozen.teacher().trunk is frozen.trunk
    trained = make("lwf", backbone=tiny_network, unfreeze=True).student
    assert trained.teacher().trunk is not trained.trunk
    assert all(parameter.requires_grad for parameter in trained.parameters())
