from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances_argmin

torch = pytest.importorskip("torch")

from aircl.methods import resolve_options  # noqa: E402
from aircl.methods.icarl import ICaRL  # noqa: E402


@pytest.mark.parametrize("online", [False, True])
def test_it_beats_fine_tuning_by_far(online, take_course):
    settings = {"online": online, "epochs": 3}
    course = take_course("icarl", **settings)
    assert course.last > take_course("fine-tuning", **settings).last + 0.15
    assert course.last > 0.85
    assert course.method.samples_kept == 200


@pytest.mark.parametrize("online", [False, True])
def test_small_classes_are_kept_whole_and_others_by_quota(online, digits, make):
    method = make("icarl", exemplars=20, online=online, epochs=1)
    stream = digits.stream(5, scenario="long-tail", counts="exp", ratio=1 / 130)
    for phase in stream.phases:
        digits.teach(method, phase)
    counts = stream.counts().sum(axis=0)
    assert counts.min() == 1
    kept = np.bincount(method.memory.rows["labels"], minlength=10)
    np.testing.assert_array_equal(kept, np.minimum(counts, 20))


def test_predictions_are_those_of_nearest_means_of_exemplars(digits, make):
    method = make("icarl", exemplars=5, epochs=1)
    for phase in digits.stream(5).phases[:3]:
        digits.teach(method, phase)
    rows, labels = (method.memory.rows[name].numpy() for name in ("inputs", "labels"))

    def unit(x):
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    classes = np.unique(labels)
    means = unit(np.stack([unit(rows)[labels == label].mean(axis=0) for label in classes]))
    expected = classes[pairwise_distances_argmin(unit(digits.test_features), means)]
    assert (method.predict(digits.test_features) == expected).mean() > 0.99
    assert method.scores(digits.test_features) is None


def test_exemplars_of_an_online_stream_are_nearer_to_the_mean_of_all_than_chance(digits, make):
    method = make("icarl", exemplars=10, online=True, updates=1)
    rows = np.flatnonzero(digits.labels < 3)
    for start in range(0, len(rows), 16):
        method.learn(digits.features[rows[start : start + 16]], digits.labels[rows[start : start + 16]])
    features = digits.features / np.linalg.norm(digits.features, axis=1, keepdims=True)
    kept = method.memory.rows["inputs"].numpy()
    kept = kept / np.linalg.norm(kept, axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    for label in range(3):
        own = features[digits.labels == label]
        mean = own.mean(axis=0)
        herded = np.linalg.norm(kept[method.memory.rows["labels"].numpy() == label].mean(axis=0) - mean)
        random = [np.linalg.norm(own[rng.permutation(len(own))[:10]].mean(axis=0) - mean) for _ in range(50)]
        assert herded < np.quantile(random, 0.1)


def test_tables_call_it_what_is_left_of_it_on_a_frozen_backbone():
    def title(**options):
        return ICaRL.title_for("icarl", resolve_options("icarl", options, online=False), online=False)

    assert title() == "icarl (nearest mean of exemplars)"
    assert title(unfreeze=True) == title(classify="head") == "icarl"


def test_the_head_may_predict_instead(digits, make):
    method = make("icarl", classify="head", online=True)
    method.learn(digits.features[:300], digits.labels[:300])
    classes, scores = method.scores(digits.test_features)
    np.testing.assert_array_equal(classes[scores.argmax(axis=1)], method.predict(digits.test_features))
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-5)
