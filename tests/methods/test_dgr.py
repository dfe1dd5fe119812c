from __future__ import annotations

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")


def softmax(z):
    p = np.exp(z - z.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


@pytest.fixture
def second_phase(digits, make):
    """A method after a first phase, with what the first two steps of the second are to be compared with."""
    method = make("dgr", epochs=1, exemplars=4, learning_rate=0.1, momentum=0.0)
    first, second, *_ = digits.stream(5).phases
    digits.teach(method, first, at_most=50)
    steps, update = [], method.update
    head = method.student.head

    def noted(batch):
        steps.append((batch, [p.detach().double().numpy().copy() for p in head.parameters()]))
        update(batch)

    method.update = noted
    teacher = [p.double().numpy() for p in method.teacher.head.parameters()]
    held = np.bincount(method.memory.rows["labels"], minlength=10)
    digits.teach(method, second, at_most=24)
    steps.append((None, [p.detach().double().numpy().copy() for p in head.parameters()]))
    labels = digits.labels[first.train[:50]]
    return method, steps, teacher, held, labels, digits.labels[second.train[:24]]


def test_a_step_is_the_published_one(second_phase):
    method, steps, (W_t, b_t), held, earlier, present = second_phase
    classes = np.array(method.student.head.classes)
    counts = np.bincount(present, minlength=10) + held
    pi = counts[classes] / counts.sum()
    n_old, n_new = len(earlier), len(present)
    lost = (np.bincount(earlier, minlength=10) - held)[classes[:2]].astype(float)
    q = lost / lost.sum()
    H, v = -(q * np.log(q)).sum() / np.log(2), lost / np.linalg.norm(lost)
    phi = np.zeros(4)
    assert len(steps) == 3
    for number, ((batch, (W, b)), (_, after)) in enumerate(itertools.pairwise(steps)):
        X, y = batch["inputs"].double().numpy(), batch["labels"].numpy()[:, None] == classes
        z, t = X @ W.T + b, X @ W_t.T + b_t
        errors = (softmax(z + np.log(pi)) - y) / len(X)
        own, own_bias = errors.T @ X, errors.sum(0)
        phi += np.linalg.norm(own, axis=1)
        factors = np.concatenate([phi[:2].min() / phi[:2], phi[2:].min() / phi[2:]])
        mu = phi[2:].mean() / phi[:2].mean()
        factors[:2] *= min(1, mu)
        factors[2:] *= min(1, mu * np.exp(-n_old / (n_old + n_new)))
        own, own_bias = own * factors[:, None], own_bias * factors
        target = softmax(t / 2)
        pull = H * (softmax(z[:, :2] / 2) - target) / 2
        pull += (1 - H) * v * (softmax((v * z[:, :2] + (1 - v) * t) / 2) - target) / 2
        taught, taught_bias = np.zeros_like(own), np.zeros(4)
        taught[:2], taught_bias[:2] = pull.T @ X / len(X), pull.sum(0) / len(X)
        lengths = [np.sqrt((w**2).sum() + (c**2).sum()) for w, c in ((own, own_bias), (taught, taught_bias))]
        # In the first step student and teacher agree, and there is nothing to bring to any length.
        assert (lengths[1] < 1e-6) == (number == 0)
        scale = lengths[0] / lengths[1] if lengths[1] > 1e-6 else 0.0
        np.testing.assert_allclose(after[0], W - 0.1 * (own + scale * taught), atol=1e-6)
        np.testing.assert_allclose(after[1], b - 0.1 * (own_bias + scale * taught_bias), atol=1e-6)


def test_equal_losses_make_plain_distillation_and_equal_gradients_factors_of_one(second_phase):
    method = second_phase[0]
    logits, taught = torch.randn(6, 4), torch.randn(6, 2)
    method.seen = {label: 10 + n for label, n in enumerate(np.bincount(method.memory.rows["labels"], minlength=10))}
    target = torch.softmax(taught / 2, 1)
    plain = -(target * torch.log_softmax(logits[:, :2] / 2, 1)).sum(1).mean()
    torch.testing.assert_close(method.lost_distillation(logits, taught), plain)
    method.lengths, method.n_old = torch.zeros(4), 0
    torch.testing.assert_close(method.factors(torch.eye(4, 64)), torch.ones(4))
    method.lengths = torch.zeros(4)
    rows = torch.eye(4, 64) * torch.tensor([[1.0], [2.0], [0.0], [4.0]])  # no gradient at all: it is left alone
    torch.testing.assert_close(method.factors(rows), torch.tensor([1, 0.5, 1, 0.25]))


def test_a_balanced_first_phase_with_like_gradients_is_fine_tuning(digits, make):
    """Uniform shares and factors of 1: nothing of DGR is left."""
    both = [make(name, epochs=2, learning_rate=0.1) for name in ("dgr", "fine-tuning")]
    both[0].factors = lambda rows: torch.ones(len(rows))
    rows = np.concatenate([np.flatnonzero(digits.labels == label)[:20] for label in range(4)])
    for method in both:
        method.learn(digits.features[rows], digits.labels[rows])
        method.end_phase(None)
    torch.testing.assert_close(*(method.student.head.weight for method in both), rtol=0, atol=1e-6)


def test_the_symmetric_form_lifts_new_rows(second_phase):
    method = second_phase[0]
    method.options.__dict__["decay"] = 0.0
    factors = {}
    for ratio in ("published", "symmetric"):
        method.options.__dict__["ratio"] = ratio
        method.lengths = torch.tensor([1.0, 1.0, 0.25, 0.25])
        factors[ratio] = method.factors(torch.zeros(4, 64))
    torch.testing.assert_close(factors["published"], torch.tensor([0.25] * 4))
    torch.testing.assert_close(factors["symmetric"], torch.tensor([0.25, 0.25, 1, 1]))
