from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("online", [False, True])
def test_without_a_penalty_it_is_er_exactly(online, take_course):
    settings = {"memory": 100, "online": online, "epochs": 2, "at_most": 100}
    free, replay = take_course("ewc++", penalty=0.0, **settings), take_course("er", **settings)
    assert torch.equal(free.method.student.head.weight, replay.method.student.head.weight)
    assert torch.equal(free.method.student.head.bias, replay.method.student.head.bias)
    held = take_course("ewc++", penalty=1e3, **settings)
    assert not torch.allclose(held.method.student.head.weight, replay.method.student.head.weight, atol=1e-3)


@pytest.mark.parametrize("online", [False, True])
def test_a_huge_penalty_freezes_what_it_protects_and_nothing_else(online, digits, make):
    method = make("ewc++", penalty=1e12, memory=100, online=online, epochs=5)
    first, second, *_ = digits.stream(5).phases
    digits.teach(method, first)
    weight = method.student.head.weight
    before, importance = weight.detach().clone(), method.anchor.importance["head.weight"].clone()
    assert importance.shape == (2, 64)
    assert (importance > 0).float().mean() > 0.7  # the head is protected, though the backbone is frozen
    digits.teach(method, second)
    moved = (weight[:2].detach() - before).abs()
    assert moved[importance > 1e-6].max() < 1e-4
    assert weight[2:].abs().max() > 0.1


def test_the_backbone_is_protected_when_it_is_trained(digits, make, tiny_network):
    method = make("ewc++", backbone=tiny_network, unfreeze=True, epochs=1, backbone_rate=1.0)
    digits.teach(method, digits.stream(5).phases[0], at_most=64)
    assert set(method.anchor.importance) == {"head.weight", "head.bias", "trunk.1.weight", "trunk.1.bias"}
    assert method.anchor.importance["trunk.1.weight"].max() > 0
