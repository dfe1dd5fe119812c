"""LAS: what a prior in the loss does, and every method that can have it."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")


def one_step(method, digits, rows):
    """The gradient of the head in one step on rows, whose loss is as in training."""
    method.meet(rows)
    with torch.no_grad():
        shape = method.student.head.weight.shape
        method.student.head.weight += torch.randn(shape, generator=torch.Generator().manual_seed(0))
    gradients = []
    method.step = lambda optimiser: gradients.extend(p.grad.clone() for p in method.student.head.parameters())
    method.update(rows)
    return gradients


def rows_of(method, digits, counts):
    places = np.concatenate([np.flatnonzero(digits.labels == label)[:n] for label, n in enumerate(counts)])
    return method.rows(digits.features[places], digits.labels[places])


def test_equal_counts_are_er(digits, make):
    las, er = (make(name, online=True) for name in ("las", "er"))
    for one, other in zip(*(one_step(m, digits, rows_of(m, digits, [5] * 4)) for m in (las, er)), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_without_tau_it_is_er_exactly(take_course):
    settings = {"online": True, "memory": 50, "at_most": 60}
    las, er = take_course("las", tau=0.0, **settings), take_course("er", **settings)
    assert torch.equal(las.method.student.head.weight, er.method.student.head.weight)


@pytest.mark.parametrize(("tau", "window"), [(1.0, 1), (0.5, 2)])
def test_the_gradient_is_the_published_one(tau, window, digits, make):
    """CE(z + tau log pi): its gradient at the logits is softmax(z + tau log pi) - y, pi counted in the last steps."""
    method = make("las", online=True, tau=tau, window=window)
    earlier = rows_of(method, digits, [0, 3, 2, 9])
    method.meet(earlier)
    method.update(earlier)
    rows = rows_of(method, digits, [8, 4, 1])
    counts = np.array([0, 3, 2, 9]) * (window > 1) + np.array([8, 4, 1, 0])
    gradient, bias = (g.double().numpy() for g in one_step(method, digits, rows))
    head = method.student.head
    W, b = (p.detach().double().numpy() for p in head.parameters())
    X, labels = rows["inputs"].double().numpy(), rows["labels"].numpy()
    with np.errstate(divide="ignore"):
        z = X @ W.T + b + tau * np.log(counts[head.classes])
    p = np.exp(z - z.max(1, keepdims=True))
    errors = (p / p.sum(1, keepdims=True) - (labels[:, None] == head.classes)) / len(X)
    np.testing.assert_allclose(gradient, errors.T @ X, atol=1e-6)
    np.testing.assert_allclose(bias, errors.sum(0), atol=1e-6)
    if window == 1:
        assert (gradient[head.classes.index(3)] == 0).all()  # a class that was not counted is masked


def test_with_phases_the_prior_is_that_of_the_phase_and_of_what_is_replayed(digits, make):
    method = make("las", memory=30, replay=8, epochs=1)
    first, second, *_ = digits.stream(5).phases
    digits.teach(method, first, at_most=30)
    rows = method.rows(digits.features[second.train[:40]], digits.labels[second.train[:40]])
    counts = method.expected_counts(rows)  # 40 samples in three batches, and 8 of the memory beside each
    stream, memory = (np.bincount(labels, minlength=10) for labels in (rows["labels"], method.memory.rows["labels"]))
    expected = stream / 3 + 8 * memory / 30
    np.testing.assert_allclose([counts.get(label, 0) for label in range(10)], expected)
    balanced = make("las", memory=30, replay=8, epochs=1, draw="balanced", policy="cbrs")
    digits.teach(balanced, first, at_most=30)
    counts = balanced.expected_counts(rows)
    assert [counts[label] for label in first.classes.tolist()] == [4.0, 4.0]


@pytest.mark.parametrize("name", ["las", "cimbl"])
def test_tables_trained_to_the_end_answer_by_n_x_c_over_n_c(name, make):
    """On one-hot features a network can have any p(c | x): both corrections make argmax n(x, c) / n(c) of it."""
    rng = np.random.default_rng(0)
    table = rng.integers(1, 30, (6, 4)) * np.array([8, 1, 3, 1])
    X, y = (np.repeat(index.ravel(), table.ravel()) for index in np.indices(table.shape))
    features = np.eye(64, dtype=np.float32)[X]
    method = make(name, epochs=400, learning_rate=0.5, memory=1)
    for places in np.array_split(rng.permutation(len(X)), 10):
        method.learn(features[places], y[places])
    method.setup.__dict__["batch_size"] = len(X)  # full batches converge
    method.end_phase(None)
    best = (table / table.sum(0)).argmax(1)
    np.testing.assert_array_equal(method.predict(np.eye(64, dtype=np.float32)[:6]), best)
    assert (table.argmax(1) != best).sum() >= 2  # plain cross-entropy would answer otherwise


@pytest.mark.parametrize("name", ["er", "ewc++", "rm", "icarl", "cbrs", "prs", "clib", "gss"])
@pytest.mark.parametrize("online", [False, True])
def test_every_method_with_a_memory_can_have_it(name, online, take_course):
    settings = {"online": online, "epochs": 4, "at_most": 50, "phases": 3} | ({} if online else {"learning_rate": 0.1})
    settings |= {"classify": "head"} if name == "icarl" else {"memory": 60}
    settings |= {"memory_epochs": 2} if name == "rm" else {}
    plain, adjusted = (take_course(name, adjust=adjust, **settings) for adjust in ("none", "las"))
    assert not torch.equal(plain.method.student.head.weight, adjusted.method.student.head.weight)
    assert adjusted.last > 0.6


def test_cbrs_with_las_is_one_line(take_course):
    course = take_course("er", memory=100, policy="cbrs", adjust="las", online=True, at_most=60)
    assert course.last > 0.75
    assert np.ptp(np.bincount(course.method.memory.rows["labels"])) <= 1
