from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

torch = pytest.importorskip("torch")

from aircl.methods import IncompatibleError, resolve_options  # noqa: E402
from aircl.methods.bic import fit_pair  # noqa: E402


def log_softmax(z):
    z = z - z.max(1, keepdims=True)
    return z - np.log(np.exp(z).sum(1, keepdims=True))


@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_the_pair_is_the_optimum_and_fits_the_share_of_new_classes(l2):
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(60, 7)) * 2, rng.integers(0, 7, 60)
    z[np.arange(60), y] += 1
    z[:, 4:] += 2.5  # new classes have it easier

    def loss(pair):
        logs = log_softmax(np.hstack([z[:, :4], pair[0] * z[:, 4:] + pair[1]]))
        return -logs[np.arange(60), y].mean() + l2 * pair[1] ** 2 / 2

    a, b = fit_pair(z, y, 4, l2)
    best = minimize(loss, [1.0, 0.0], tol=1e-10)
    np.testing.assert_allclose([a, b], best.x, atol=1e-4)
    p = np.exp(log_softmax(np.hstack([z[:, :4], a * z[:, 4:] + b])))
    errors = (p - np.eye(7)[y])[:, 4:]
    slope = [(errors * z[:, 4:]).sum() / 60, errors.sum() / 60 + l2 * b]
    np.testing.assert_allclose(slope, 0, atol=1e-6)
    assert loss([a, b]) < loss([1, 0]) - 0.05
    if not l2:
        shares = np.exp(log_softmax(np.hstack([z[:, :4], a * z[:, 4:] + b])))[:, 4:].sum(1)
        assert shares.mean() == pytest.approx((y >= 4).mean(), abs=1e-6)


def test_stage_1_is_both_losses_by_the_share_of_old_classes_with_earlier_pairs(digits, make):
    method = make("bic", epochs=1, exemplars=6)
    for phase in digits.stream(5).phases[:2]:
        digits.teach(method, phase)
    assert method.scale[:2].tolist() == [1, 1]  # the first phase has nothing to correct
    assert (method.scale[2:] != 1).all()
    third = digits.stream(5).phases[2]
    rows = method.rows(digits.features[third.train[:12]], digits.labels[third.train[:12]])
    method.meet(rows)
    method._grow()
    with torch.no_grad():
        method.student.head.weight += torch.randn(6, 64, generator=torch.Generator().manual_seed(0))
    torch.autograd.backward(method.loss(rows))
    X = rows["inputs"].double().numpy()
    (W, b), (W_old, b_old) = (
        [p.detach().double().numpy() for p in net.head.parameters()] for net in (method.student, method.teacher)
    )
    z = (X @ W.T + b) * method.scale + method.shift
    t = (X @ W_old.T + b_old) * method.scale[:4] + method.shift[:4]
    y = rows["labels"].numpy()[:, None] == method.student.head.classes
    errors = (1 - 4 / 6) * (np.exp(log_softmax(z)) - y)
    errors[:, :4] += 4 / 6 * (np.exp(log_softmax(z[:, :4] / 2)) - np.exp(log_softmax(t / 2))) / 2
    np.testing.assert_allclose(method.student.head.weight.grad, (errors * method.scale).T @ X / 12, atol=1e-6)


def test_samples_to_validate_with_are_never_trained_on(digits, make):
    method = make("bic", epochs=2, exemplars=20)
    trained, loss = set(), method.loss
    method.loss = lambda batch: trained.update(row.numpy().tobytes() for row in batch["inputs"]) or loss(batch)
    stream = digits.stream(5, scenario="long-tail", counts="exp", ratio=1 / 130)
    for phase in stream.phases:
        digits.teach(method, phase)
    counts = stream.counts().sum(axis=0)
    apart = np.bincount(method.held_out["labels"], minlength=10)
    np.testing.assert_array_equal(apart, np.minimum(2, counts - 1))  # a class of one sample has none
    assert not trained & {row.numpy().tobytes() for row in method.held_out["inputs"]}
    kept = np.bincount(method.memory.rows["labels"], minlength=10)
    np.testing.assert_array_equal(kept, np.minimum(18, counts - apart))
    assert method.samples_kept == kept.sum() + apart.sum()


def test_the_pair_helps_old_classes(digits, take_course):
    settings = {"epochs": 10, "exemplars": 10, "phases": 2}
    method = take_course("bic", **settings).method
    corrected = method.predict(digits.test_features)
    scale, shift = method.scale.copy(), method.shift.copy()
    method.scale[:], method.shift[:] = 1, 0  # stage 1 alone
    plain = method.predict(digits.test_features)
    head = [p.detach().numpy() for p in method.student.head.parameters()]
    np.testing.assert_allclose(
        method.logits(digits.test_features), digits.test_features @ head[0].T + head[1], atol=1e-4
    )
    old = np.isin(digits.test_labels, method.student.head.classes[:5])
    right = [(answer == digits.test_labels)[old].mean() for answer in (corrected, plain)]
    assert right[0] > right[1] + 0.02
    assert (scale[5:] == scale[5]).all()
    assert shift[5] < 0


def test_a_phase_without_new_classes_keeps_its_pairs(digits, make):
    method = make("bic", epochs=1, exemplars=4)
    first, second, *_ = digits.stream(5).phases
    for phase in (first, second, first):
        pairs = method.scale.copy()
        digits.teach(method, phase)
    np.testing.assert_array_equal(method.scale, pairs)


def test_what_it_cannot_do(make):
    with pytest.raises(IncompatibleError, match="an online stream shows no phases"):
        make("bic", online=True)
    with pytest.raises(ValueError, match="one to train on and one to validate with"):
        resolve_options("bic", {"exemplars": 1}, online=False)
    with pytest.raises(ValueError, match=r"validation=1\.5 is not a share below 1"):
        resolve_options("bic", {"validation": 1.5}, online=False)
