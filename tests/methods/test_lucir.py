from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from aircl.methods.gradient import CosineHead  # noqa: E402


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def softmax(z):
    p = np.exp(z - z.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def in_second_phase(digits, make, **options):
    """A method at the first step of a phase of three new classes, after one of two, with all exemplars."""
    method = make("lucir", epochs=1, exemplars=3, **options)
    first, second, third, *_ = digits.stream(5).phases
    inputs = digits.inputs_of(method)
    digits.teach(method, first, at_most=40)
    before = method.student.head.weight.detach().clone()
    one = third.train[digits.labels[third.train] == third.classes[0]]
    later = np.concatenate([second.train[:16], one[:4]])
    new = method.rows(inputs[later], digits.labels[later])
    method.meet(new)
    return method, before, new, method.material(new)


def test_cosines_do_not_depend_on_the_length_of_features():
    head, generator = CosineHead(6), torch.Generator().manual_seed(0)
    head.grow([4, 2, 9])
    x = torch.rand(12, 6, generator=generator)
    head.imprint(x, torch.tensor([4, 2, 9] * 4), 0)
    torch.testing.assert_close(head(x), head(7 * x))
    expected = unit(np.stack([unit(x.numpy())[place::3].mean(0) for place in range(3)]))
    np.testing.assert_allclose(head.weight.detach(), expected, atol=1e-6)
    np.testing.assert_allclose(head(x).detach(), unit(x.numpy()) @ expected.T, atol=1e-6)
    assert {name for name, _ in head.named_parameters()} == {"weight", "eta"}


def test_new_rows_are_imprinted_as_long_as_the_old_ones(digits, make):
    method, before, new, _ = in_second_phase(digits, make)
    weight = method.student.head.weight.detach()
    assert torch.equal(weight[:2], before)
    length = np.linalg.norm(before.numpy(), axis=1).mean()
    for column in (2, 3, 4):
        own = new["labels"].numpy() == method.student.head.classes[column]
        mean = unit(new["inputs"].numpy())[own].mean(0)
        np.testing.assert_allclose(weight[column], length * mean / np.linalg.norm(mean), atol=1e-6)


def test_a_step_is_the_published_one(digits, make):
    """CE(eta cos) + mean of max(0, m - cos_y + cos_k) over exemplars of old classes and the K nearest new classes."""
    method, before, _, rows = in_second_phase(digits, make, learning_rate=0.1, momentum=0.0, margin=0.7)
    head = method.student.head
    with torch.no_grad():
        head.eta += 2.0
    W, eta = head.weight.detach().double().clone().requires_grad_(), head.eta.detach().double().requires_grad_()
    X = torch.nn.functional.normalize(rows["inputs"].double())
    cosines = X @ torch.nn.functional.normalize(W).T
    columns = torch.tensor([head.classes.index(label) for label in rows["labels"].tolist()])
    p = torch.log_softmax(eta * cosines, 1)
    loss, terms = -p[torch.arange(len(X)), columns].mean(), []
    for row, column in enumerate(columns.tolist()):
        if column < 2:  # an exemplar, and the K = 2 nearest of the three new classes
            nearest = sorted((2, 3, 4), key=lambda k: -cosines[row, k])[:2]
            terms += [torch.relu(0.7 - cosines[row, column] + cosines[row, k]) for k in nearest]
    assert len(terms) == 12
    loss = loss + torch.stack(terms).mean()
    own, own_eta = torch.autograd.grad(loss, (W, eta))
    own[:2] = 0  # old rows rest
    method.optimiser = method.make_optimiser()
    method.update(rows)
    np.testing.assert_allclose(head.weight.detach(), (W - 0.1 * own).detach(), atol=1e-6)
    assert head.eta.item() == pytest.approx((eta - 0.1 * own_eta).item(), abs=1e-6)
    assert torch.equal(head.weight[:2], before)
    assert own[2:].abs().max() > 1e-4


def test_a_margin_of_minus_two_demands_nothing_and_frozen_features_keep_their_direction(digits, make):
    method, *_, rows = in_second_phase(digits, make, margin=-2.0, less_forget=100.0)
    logits = method.student(rows["inputs"])
    plain = torch.nn.functional.cross_entropy(logits, method.student.head.columns(rows["labels"]))
    torch.testing.assert_close(method.loss(rows), plain)


def test_features_of_a_trained_backbone_are_held_to_their_direction(digits, make, tiny_network):
    method, *_, rows = in_second_phase(
        digits, make, backbone=tiny_network, unfreeze=True, augment=False, margin=-2.0, less_forget=3.0
    )
    with torch.no_grad():
        method.student.trunk[1].weight += 0.05 * torch.randn(64, 192, generator=torch.Generator().manual_seed(0))
    views = method.views.plain(rows["inputs"])
    one, other = (unit(net.features(views).detach().double().numpy()) for net in (method.student, method.teacher))
    z = method.student(views).detach().double().numpy()
    columns = [method.student.head.classes.index(label) for label in rows["labels"].tolist()]
    expected = -np.log(softmax(z)[np.arange(len(z)), columns]).mean()
    expected += 3.0 * np.sqrt(2 / 3) * (1 - (one * other).sum(1)).mean()
    assert method.loss(rows).item() == pytest.approx(expected, abs=1e-5)


def test_the_balanced_pass_trains_all_rows_of_the_head_and_nothing_else(digits, make):
    """As public code does by default: old and new rows; eta and features rest; 0.01, in the second half 0.001."""
    method = make("lucir", epochs=1, exemplars=3, learning_rate=0.1, momentum=0.0, balanced_epochs=2)
    steps, update = [], method.update

    def noted(batch):
        before = [p.detach().double().clone() for p in (method.head.weight, method.head.eta)]
        update(batch)
        after = [p.detach().double().clone() for p in (method.head.weight, method.head.eta)]
        steps.append((method._all_rows, batch, before, after))

    method.update = noted
    first, second, *_ = digits.stream(5).phases
    digits.teach(method, first, at_most=32)
    assert not any(balanced for balanced, *_ in steps)  # the first phase has no old classes
    digits.teach(method, second, at_most=10)
    balanced = [step for step in steps if step[0]]
    assert len(balanced) == 2  # 10 samples and 6 exemplars, twice
    for rate, (_, batch, (weight, eta), (after, eta_after)) in zip((0.01, 0.001), balanced, strict=True):
        counts = torch.bincount(batch["labels"])
        assert counts[counts > 0].tolist() == [4] * 4
        W = weight.clone().requires_grad_()
        cosines = torch.nn.functional.normalize(batch["inputs"].double()) @ torch.nn.functional.normalize(W).T
        columns = torch.tensor([method.head.classes.index(label) for label in batch["labels"].tolist()])
        loss = -torch.log_softmax(eta * cosines, 1)[torch.arange(16), columns].mean()
        old = columns < 2
        own = cosines[old].gather(1, columns[old, None])
        loss = loss + torch.relu(0.5 - own + cosines[old, 2:]).mean()  # both new classes are the K = 2 nearest
        (gradient,) = torch.autograd.grad(loss, W)
        np.testing.assert_allclose(after, weight - rate * gradient, atol=1e-6)
        assert gradient[:2].abs().max() > 1e-4  # old rows do move
        assert eta_after == eta


@pytest.mark.parametrize("classify", ["head", "nearest-mean"])
def test_it_learns_and_forgets_little(classify, take_course):
    course = take_course("lucir", epochs=5, classify=classify, balanced_epochs=2)
    assert course.last > 0.8


def test_one_new_class_and_classes_that_return_are_no_problem(digits, make):
    method = make("lucir", epochs=1, exemplars=3)
    for classes in ([0, 1, 2], [3], [0, 3], [1, 4]):
        rows = np.flatnonzero(np.isin(digits.labels, classes))[:60]
        method.learn(digits.features[rows], digits.labels[rows])
        method.end_phase(None)
    assert torch.isfinite(method.student.head.weight).all()
    assert set(method.predict(digits.test_features)) <= {0, 1, 2, 3, 4}
