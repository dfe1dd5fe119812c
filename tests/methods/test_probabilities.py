"""Probabilities of methods that are trained: the softmax of what they predict by."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from aircl.benchmark.evaluation import TestSet

PROMPTS = ("coda-prompt", "dap", "dualprompt", "l2p", "mvp", "mvp-r")


def taught(method, digits, n_phases=2, at_most=32):
    for phase in digits.stream(5).phases[:n_phases]:
        digits.teach(method, phase, at_most)
    return method


def check(method, inputs):
    classes, probabilities = method.probabilities(inputs)
    assert probabilities.shape == (len(inputs), 4)
    assert np.all(np.diff(classes) > 0)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(classes[probabilities.argmax(axis=1)], method.predict(method.encode(inputs)))
    assert len(np.unique(probabilities.max(axis=1).round(6))) > 10  # of every sample its own


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize("name", ["er", "ewc++", "fine-tuning", "lwf", "rm"])
def test_the_class_that_is_predicted_is_the_most_probable(name, online, digits, make):
    method = make(name, online=online)
    assert method.probabilities(digits.test_features[:3]) is None  # there is no class yet
    check(taught(method, digits), digits.test_features[:100])


@pytest.mark.parametrize("name", PROMPTS)
def test_prompts_have_probabilities(name, digits, make, tiny_vit):
    options = {"epochs": 1} if name == "dap" else {"online": True}
    method = make(name, backbone=tiny_vit, **options)
    check(taught(method, digits, at_most=16), digits.test_images[:40])


def test_the_benchmark_measures_their_calibration(digits, make):
    method = taught(make("fine-tuning", epochs=3), digits)
    exposed, test = np.sort(method.student.head.classes), TestSet(digits.test_features, digits.test_labels)
    found, accuracy = test.calibrate(method, exposed), test.evaluate(method, exposed).confusion
    assert abs(found["expected_accuracy"] - np.trace(accuracy) / accuracy.sum()) <= found["ECE"] + 1e-9
    assert found["NLL"] > 0


def test_nearest_means_have_none_and_a_head_has(digits, make):
    assert taught(make("icarl", epochs=1), digits).probabilities(digits.test_features[:9]) is None
    check(taught(make("icarl", epochs=1, classify="head"), digits), digits.test_features[:100])
