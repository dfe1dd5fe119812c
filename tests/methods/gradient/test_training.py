"""Heads, masks, steps and teachers."""

from __future__ import annotations

import copy
from collections import Counter, deque

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import cross_entropy  # noqa: E402

from aircl.methods.gradient import (  # noqa: E402
    GrowingHead,
    Optimiser,
    PhaseFisher,
    StepFisher,
    Student,
    distillation_loss,
    mask_logits,
)
from aircl.methods.gradient.state import read_state, write_state  # noqa: E402
from aircl.methods.gradient.stateful import Stateful  # noqa: E402


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def test_a_masked_class_has_no_gradient_at_all(generator):
    head = GrowingHead(6)
    head.grow([5, 2, 9, 0])
    head.weight.data.normal_(generator=generator)
    features = torch.randn(20, 6, generator=generator)
    labels = torch.tensor([5, 9] * 10)
    allowed = head.columns(torch.tensor([9, 5]))
    loss = cross_entropy(mask_logits(head(features), allowed), head.columns(labels))
    torch.autograd.backward(loss)
    assert torch.equal(head.weight.grad[[1, 3]], torch.zeros(2, 6))
    assert torch.equal(head.bias.grad[[1, 3]], torch.zeros(2))
    assert (head.weight.grad[[0, 2]].abs() > 1e-4).all()
    # The others' loss and gradients are those of a head without the masked classes.
    small = GrowingHead(6)
    small.grow([5, 9])
    small.weight.data = head.weight.data[[0, 2]].clone()
    alone = cross_entropy(small(features), small.columns(labels))
    torch.autograd.backward(alone)
    torch.testing.assert_close(alone, loss)
    torch.testing.assert_close(small.weight.grad, head.weight.grad[[0, 2]])


@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_a_class_that_comes_later_is_one_that_was_masked_until_then(kind, generator):
    features = torch.randn(30, 6, generator=generator)
    late, early = GrowingHead(6), GrowingHead(6)
    late.grow([0, 1])
    early.grow([0, 1, 2])
    optimisers = {head: Optimiser([{"params": list(head.parameters()), "lr": 0.1}], kind) for head in (late, early)}

    def steps(labels, allowed):
        for head, optimiser in optimisers.items():
            mask = head.columns(torch.tensor(allowed))
            for _ in range(5):
                optimiser.minimise(cross_entropy(mask_logits(head(features), mask), head.columns(labels)))

    steps(torch.tensor([0, 1] * 15), [0, 1])
    assert torch.equal(early.weight[2], torch.zeros(6))
    late.grow([2, 1])
    optimisers[late].adapt()
    steps(torch.tensor([0, 1, 2] * 10), [0, 1, 2])
    torch.testing.assert_close(late.weight, early.weight)
    assert late.weight[2].abs().max() > 0.05


@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_an_optimiser_goes_on_from_its_state(kind, generator, tmp_path):
    features, labels = torch.randn(30, 6, generator=generator), torch.tensor([0, 1, 2] * 10)

    def fresh():
        student = Student(6)
        student.head.grow([0, 1, 2])
        return student, Optimiser(student.groups(0.1, 0.1), kind)

    def steps(student, optimiser):
        for _ in range(4):
            optimiser.minimise(cross_entropy(student(features), labels))

    student, optimiser = fresh()
    steps(student, optimiser)
    write_state(tmp_path, {"student": student.state(), "optimiser": optimiser.state()})
    steps(student, optimiser)
    again, other = fresh()
    state = read_state(tmp_path)
    again.restore(state["student"])
    forgetful = copy.deepcopy(again)
    other.restore(state["optimiser"])
    steps(again, other)
    assert torch.equal(again.head.weight, student.head.weight)
    steps(forgetful, Optimiser(forgetful.groups(0.1, 0.1), kind))
    assert not torch.allclose(forgetful.head.weight, student.head.weight)


def test_a_long_gradient_is_clipped():
    parameter = torch.nn.Parameter(torch.zeros(2))
    optimiser = Optimiser([{"params": [parameter], "lr": 1.0}], "sgd", momentum=0.0, clip=1.0)
    optimiser.minimise((parameter * torch.tensor([30.0, 40.0])).sum())
    torch.testing.assert_close(parameter.detach(), torch.tensor([-0.6, -0.8]))


def test_distillation_pulls_known_classes_to_the_teacher_and_leaves_new_ones_alone(generator):
    logits = torch.randn(8, 5, generator=generator).requires_grad_()
    taught = torch.randn(8, 3, generator=generator)
    torch.autograd.backward(distillation_loss(logits, taught, 2.0))
    assert torch.equal(logits.grad[:, 3:], torch.zeros(8, 2))
    # d/dz KL(q || p) = (p - q) / T
    expected = 0.5 * ((logits[:, :3] / 2).softmax(1) - (taught / 2).softmax(1)) / 8
    torch.testing.assert_close(logits.grad[:, :3], expected)


# -- anchors --
def anchored(kind, generator):
    student = Student(6).double()
    student.head.grow([0, 1])
    optimiser = Optimiser(student.groups(0.01, 0.1), kind)
    anchor = StepFisher()
    features = torch.randn(40, 6, generator=generator, dtype=torch.float64)
    for _ in range(10):
        optimiser.compute_gradients(cross_entropy(student(features), torch.tensor([0, 1] * 20)))
        anchor.note(student.trained_parameters())
        optimiser.step()
    anchor.drop(student.trained_parameters())
    return student, optimiser, anchor


@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_a_light_pull_is_the_gradient_step_on_the_penalty(kind, generator):
    student, optimiser, anchor = anchored(kind, generator)
    weight = student.head.weight
    with torch.no_grad():
        weight += torch.randn(weight.shape, generator=generator, dtype=torch.float64)
    before = weight.detach().clone()
    anchor.pull(student.trained_parameters(), optimiser, 1e-3)
    gradient = 2 * 1e-3 * anchor.importance["head.weight"] * (before - anchor.place["head.weight"])
    change = weight.detach() - before
    torch.testing.assert_close(change, -optimiser.step_sizes(weight) * gradient, rtol=1e-2, atol=0.0)


@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_a_heavy_pull_brings_back_what_mattered_and_lets_new_rows_go(kind, generator):
    student, optimiser, anchor = anchored(kind, generator)
    student.head.grow([2])
    optimiser.adapt()
    with torch.no_grad():
        student.head.weight += 1.0
    anchor.pull(student.trained_parameters(), optimiser, 1e12)
    torch.testing.assert_close(student.head.weight[:2].detach(), anchor.place["head.weight"], rtol=0, atol=1e-5)
    assert torch.equal(student.head.weight[2], torch.ones(6, dtype=torch.float64))


def test_importance_is_a_moving_average_over_phases():
    parameter = torch.nn.Parameter(torch.zeros(2))
    anchor = PhaseFisher(keep=0.25)
    for gradients in ([1.0, 3.0], [2.0]):
        for value in gradients:
            parameter.grad = torch.tensor([value, 0.0])
            anchor.note({"p": parameter})
        anchor.drop({"p": parameter})
    # (1 + 9) / 2 after the first phase, then a quarter of it and three quarters of 4
    torch.testing.assert_close(anchor.importance["p"], torch.tensor([0.25 * 5 + 0.75 * 4, 0.0]))
    anchor.drop({"p": parameter})  # an empty phase changes nothing
    assert anchor.importance["p"][0] == 4.25


def test_a_state_is_safetensors_and_json_and_nothing_else(tmp_path, generator):
    weights = torch.randn(4, 3, generator=generator)
    state = {
        "a": {"pixels": torch.arange(6, dtype=torch.uint8), "view": weights[1:], "transposed": weights.T},
        "list": [1, 2.5, None, True, "text", {"count": torch.tensor(3.0)}],
        "empty": {},
        "generator": generator.get_state(),
    }
    write_state(tmp_path, state)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".safetensors"]
    again = read_state(tmp_path)
    assert again["a"]["pixels"].dtype == torch.uint8
    assert torch.equal(again["a"]["view"], weights[1:])
    assert torch.equal(again["a"]["transposed"], weights.T)
    assert again["list"][:5] == [1, 2.5, None, True, "text"]
    assert again["list"][5]["count"] == 3
    assert again["empty"] == {}
    other = torch.Generator()
    other.set_state(again["generator"])
    assert torch.equal(torch.rand(3, generator=other), torch.rand(3, generator=generator))


def test_a_state_keeps_numbers_as_keys_sets_arrays_and_windows(tmp_path):
    class Inner(Stateful):
        kept = "seen window"

        def __init__(self):
            self.seen, self.window = Counter(), deque(maxlen=2)

    class Outer(Inner):
        kept = "full scores inner"

        def __init__(self):
            super().__init__()
            self.full, self.scores, self.inner = set(), np.zeros(2), Inner()

    one, other = Outer(), Outer()
    one.seen[7] += 3
    one.window.extend([{1: 0.5}, {2: 1.5}])
    one.full.update({4, 2})
    one.scores[:] = 0.1, np.nan
    one.inner.seen[1] = 1
    write_state(tmp_path, one.get_state())
    other.set_state(read_state(tmp_path))
    assert other.seen == {7: 3}
    assert other.seen[8] == 0  # it counts on
    other.window.append({3: 2.5})
    assert list(other.window) == [{2: 1.5}, {3: 2.5}]
    assert other.full == {2, 4}
    np.testing.assert_array_equal(other.scores, one.scores)
    assert other.inner.seen == {1: 1}
