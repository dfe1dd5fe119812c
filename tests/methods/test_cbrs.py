"""CBRS, PRS and GSS as methods; their memories are in gradient/test_policies.py."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")


def test_a_step_of_cbrs_weighs_stream_and_memory_by_the_number_of_classes(digits, make):
    """(1/K) CE(stream) + (1 - 1/K) CE(memory), both means."""
    method = make("cbrs", memory=30, replay=9, online=True, updates=1, optimiser="sgd", learning_rate=0.1, momentum=0.0)
    method.learn(digits.features[:40], digits.labels[:40])
    steps, loss = [], method.loss
    method.loss = lambda batch: steps.append(batch) or loss(batch)
    W, b = (p.detach().double().numpy().copy() for p in method.student.head.parameters())
    method.learn(digits.features[40:56], digits.labels[40:56])
    (batch,) = steps
    assert (batch["slot"] >= 0).tolist() == [False] * 16 + [True] * 9
    X = batch["inputs"].double().numpy()
    z = X @ W.T + b
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    errors = p - (batch["labels"].numpy()[:, None] == method.student.head.classes)
    K = len(method.student.head.classes)
    errors[:16] *= 1 / K / 16
    errors[16:] *= (1 - 1 / K) / 9
    np.testing.assert_allclose(method.student.head.weight.detach(), W - 0.1 * errors.T @ X, atol=1e-6)
    np.testing.assert_allclose(method.student.head.bias.detach(), b - 0.1 * errors.sum(0), atol=1e-6)


def test_without_a_memory_yet_the_stream_is_all(digits, make):
    settings = {"online": True, "updates": 1}
    both = [make(name, **settings) for name in ("cbrs", "er")]
    for method in both:
        method.learn(digits.features[:16], digits.labels[:16])
    assert torch.equal(*(method.student.head.weight for method in both))


@pytest.mark.parametrize("policy", ["cbrs", "prs", "clib"])
def test_small_classes_stay_in_memory(policy, digits, make):
    """On a long tail a reservoir is as imbalanced as the stream; these are not."""
    kept = {}
    for name in ("reservoir", policy):
        method = make("er", online=True, memory=100, policy=name, updates=1)
        stream = digits.stream(5, scenario="long-tail", counts="exp", ratio=1 / 40)
        for phase in stream.phases:
            digits.teach(method, phase)
        kept[name] = np.bincount(method.memory.rows["labels"], minlength=10)
    counts = stream.counts().sum(axis=0)
    smallest = counts.argsort()[:3]
    assert kept[policy][smallest].sum() > 2 * kept["reservoir"][smallest].sum()
    assert kept[policy].max() < 0.5 * kept["reservoir"].max()


def test_the_gradients_that_gss_compares_are_those_of_the_head(digits, make):
    """(p - y) (x, 1)' of each sample, against autograd sample by sample."""
    method = make("gss", online=True, memory=30)
    method.learn(digits.features[:48], digits.labels[:48])
    rows = method.rows(digits.features[100:106], digits.labels[100:106])
    errors, inputs = (factor.double() for factor in method.directions(rows))
    head, gradients = method.student.head, []
    for x, label in zip(rows["inputs"], rows["labels"].tolist(), strict=True):
        loss = torch.nn.functional.cross_entropy(head(x[None]), torch.tensor([head.classes.index(label)]))
        weight, bias = torch.autograd.grad(loss, (head.weight, head.bias))
        gradients.append(torch.cat([weight, bias[:, None]], 1).double().flatten())
    gradients = torch.nn.functional.normalize(torch.stack(gradients))
    torch.testing.assert_close((errors @ errors.T) * (inputs @ inputs.T), gradients @ gradients.T, rtol=0, atol=1e-5)
