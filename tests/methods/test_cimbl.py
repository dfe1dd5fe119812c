from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from aircl.methods import resolve_options  # noqa: E402


@pytest.mark.parametrize("online", [False, True])
def test_training_is_that_of_er_and_logits_are_shifted_by_the_shares(online, digits, take_course):
    settings = {"online": online, "memory": 60, "epochs": 2, "at_most": 80, "phases": 3}
    scaled, plain = take_course("cimbl", **settings).method, take_course("er", **settings).method
    assert torch.equal(scaled.student.head.weight, plain.student.head.weight)
    counts = np.array([scaled.counts[label] for label in plain.student.head.classes])
    expected = plain.logits(digits.test_features) + np.log(1 / len(counts) / (counts / counts.sum()))
    np.testing.assert_allclose(scaled.logits(digits.test_features), expected, atol=1e-5)
    _, scores = scaled.scores(digits.test_features)
    order = np.argsort(plain.student.head.classes)
    shares = np.exp(expected - expected.max(1, keepdims=True))[:, order]
    np.testing.assert_allclose(scores, shares / shares.sum(1, keepdims=True), atol=1e-5)
    assert (scaled.predict(digits.test_features) != plain.predict(digits.test_features)).any()


def test_what_is_counted_is_what_was_trained_on(digits, make):
    method = make("cimbl", online=True, memory=20, updates=2, replay=5, decay=0.9)
    labels, update = [], method.update
    method.update = lambda batch: labels.append(np.bincount(batch["labels"], minlength=10)) or update(batch)
    for start in (0, 16, 32):
        method.learn(digits.features[start : start + 16], digits.labels[start : start + 16])
    assert [counts.sum() for counts in labels] == [16, 16, 21, 21, 21, 21]
    expected = sum(0.9 ** (5 - step) * counts for step, counts in enumerate(labels))
    np.testing.assert_allclose([method.counts[label] for label in range(10)], expected)
    phased = make("cimbl", memory=1, epochs=1)
    first, second, *_ = digits.stream(5).phases
    for phase in (first, second):
        digits.teach(phased, phase)
    assert len(phased.counts) <= 3  # those of the last phase, and of one sample of the memory
    lost = [label for label in phased.student.head.classes if label not in phased.counts]
    offsets = dict(zip(phased.student.head.classes, phased.offsets(), strict=True))
    assert lost
    assert all(offsets[label] == max(offsets.values()) for label in lost)  # as the smallest that was there


def test_equal_counts_change_nothing(digits, make):
    method = make("cimbl", epochs=1, memory=5)
    method.learn(digits.features[:60], np.repeat(np.arange(3), 20))
    method.end_phase(None)
    np.testing.assert_allclose(method.offsets(), 0, atol=1e-12)


def test_one_prior_is_corrected_once():
    with pytest.raises(ValueError, match="adjust='las' is not one of none"):
        resolve_options("cimbl", {"adjust": "las"}, online=True)
    with pytest.raises(ValueError, match="decay=2 is not a share above 0"):
        resolve_options("cimbl", {"decay": 2}, online=True)
