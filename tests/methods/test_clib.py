from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("online", [False, True])
def test_it_trains_on_the_memory_alone_and_new_samples_are_in_it(online, digits, make):
    method = make("clib", online=online, memory=30, replay=12, updates=2, epochs=1)
    steps, update = [], method.update
    method.update = lambda batch: steps.append((batch, method.memory.rows["inputs"].clone())) or update(batch)
    method.learn(digits.features[:16], digits.labels[:16])
    method.learn(digits.features[16:48], digits.labels[16:48])
    if not online:
        method.end_phase(None)
    assert [len(batch["labels"]) for batch, _ in steps] == [12] * (4 if online else 3)
    for batch, memory in steps:
        assert torch.equal(batch["inputs"], memory[batch["slot"]])
    newest = {row.tobytes() for row in digits.features[16:48]}
    assert any(row.numpy().tobytes() in newest for row in steps[-1][0]["inputs"])
    assert method.samples_kept == 30


def test_a_step_is_adam_on_the_mean_loss_of_the_memory_batch(digits, make):
    """The first step of Adam moves every weight by the rate, against the sign of its gradient."""
    method = make("clib", online=True, memory=30, replay=8, updates=1, learning_rate=3e-4)
    steps, loss = [], method.loss
    method.loss = lambda batch: steps.append(batch) or loss(batch)
    method.learn(digits.features[:30], digits.labels[:30])
    (batch,) = steps
    X = batch["inputs"].double().numpy()
    classes = np.array(method.student.head.classes)
    errors = 1 / len(classes) - (batch["labels"].numpy()[:, None] == classes)  # all rows of the head are 0
    g = errors.T @ X / 8
    np.testing.assert_allclose(method.student.head.weight.detach(), -3e-4 * g / (np.abs(g) + 1e-8), atol=1e-6)


def test_the_rate_follows_the_falls_of_the_loss(digits, make):
    method = make("clib", online=True, memory=40, rate="adaptive", updates=30)
    rates, step = [], method.step
    method.step = lambda optimiser: rates.append(optimiser._optimiser.param_groups[0]["lr"]) or step(optimiser)
    method.learn(digits.features[:40], digits.labels[:40])
    assert rates[:11] == [5e-3] * 11  # the first step has no fall to measure
    assert rates[11:21] == pytest.approx([0.95 * 5e-3] * 10)
    from scipy.stats import ttest_ind

    from aircl.methods.clib import AdaptiveRate

    rng = np.random.default_rng(0)
    for shift, expected in ((0.5, 0.95), (-0.5, 1 / 0.95), (0.0, 1.0)):
        rate, falls = AdaptiveRate(), ([], [])
        noise = rng.normal(size=10) * 0.1
        for step in range(20):
            low = rate.share < 1
            falls[low].append(noise[step % 10] + shift * low)
            rate.note(falls[low][-1])
        assert rate.base == pytest.approx(expected)
        assert (ttest_ind(*falls, equal_var=False).pvalue < 0.05) == (expected != 1)
