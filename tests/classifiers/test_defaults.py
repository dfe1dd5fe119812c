"""The laws again, on the classifiers as they are without a parameter: with their buffer, gamma and calibration.

| law                                             | tolerance                                                     |
|-------------------------------------------------|---------------------------------------------------------------|
| order, splits, merging, forgetting, duplicates  | probabilities to 1e-3, scores to 1e-6: what the optimiser of  |
| as sample weights, save and load                | the temperature leaves; the chosen gamma is the same          |
| relabelling                                     | permutes coef_; intercept_ but for the simulation's noise     |
| fit twice, whatever the global random state     | the same bits                                                 |
"""

import importlib.util

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from aircl import ACILClassifier, AIRClassifier
from aircl.engine import StoreError
from aircl.expansion import AutoBuffer

every_classifier = pytest.mark.parametrize("cls", [AIRClassifier, ACILClassifier])
STORES = ("per-class", "shared", "pooled")


@pytest.fixture(scope="module")
def wine():
    """A long tail of three named classes, 59, 30 and 12 rows of 13 columns, in random order."""
    X, y = load_wine(return_X_y=True)
    X, names = StandardScaler().fit_transform(X), np.array(["red", "rose", "white"])
    rows = np.concatenate([np.flatnonzero(y == label)[:most] for label, most in enumerate((59, 30, 12))])
    rows = np.random.default_rng(0).permutation(rows)
    return X[rows], names[y[rows]], X


def assert_same(one, other, X):
    assert one.classes_.tolist() == other.classes_.tolist()
    np.testing.assert_allclose(one.class_count_, other.class_count_, rtol=1e-12)
    assert one.gamma_ == pytest.approx(other.gamma_, rel=1e-9)
    scores = other.decision_function(X) - other.intercept_
    np.testing.assert_allclose(one.decision_function(X) - one.intercept_, scores, atol=1e-6)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-3)


@every_classifier
def test_the_defaults_are_a_buffer_and_calibration(cls, wine):
    X, y, X_test = wine
    clf = cls().fit(X, y)
    assert (clf.expansion, clf.calibrate, clf.random_state) == ("auto", True, None)
    assert isinstance(clf.expansion_, AutoBuffer)
    assert clf.coef_.shape == (3, 256)
    assert clf.intercept_.any()
    P = clf.predict_proba(X_test)
    assert np.array_equal(clf.classes_[P.argmax(axis=1)], clf.predict(X_test))
    assert 0.9 < clf.expected_accuracy().overall <= 1.0


@every_classifier
def test_any_order_and_any_split_equals_fit(cls, wine):
    X, y, X_test = wine
    whole = cls().fit(X, y)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        clf, order = cls(), rng.permutation(len(y))
        for rows in np.split(order, np.sort(rng.integers(0, len(y), 5))):
            clf.partial_fit(X[rows], y[rows])
            if seed == 1 and len(rows):
                clf.predict(X_test[:2])  # asking between batches changes nothing in the end
        assert_same(clf.refresh(), whole, X_test)


@every_classifier
def test_models_learned_apart_merge(cls, wine):
    X, y, X_test = wine
    whole = cls().fit(X, y)
    parts = [cls().fit(X[rows], y[rows]) for rows in np.array_split(np.arange(len(y)), 3)]
    assert_same(parts[0].merge(parts[1]).merge(parts[2]), whole, X_test)
    assert_same(cls().merge(whole), whole, X_test)
    with pytest.raises(StoreError, match="random_state"):
        whole.merge(cls(random_state=1).fit(X, y))
    with pytest.raises(StoreError, match="expansion"):
        whole.merge(cls(expansion=None).fit(X, y))


@every_classifier
def test_forgotten_rows_were_never_seen(cls, wine):
    X, y, X_test = wine
    clf = cls().fit(X, y).forget(X[70:], y[70:])
    assert_same(clf, cls().fit(X[:70], y[:70]), X_test)


def test_forgotten_classes_were_never_seen(wine):
    X, y, X_test = wine
    clf = AIRClassifier(store="per-class").fit(X, y).forget(classes=["rose"])
    kept = y != "rose"
    other = AIRClassifier(store="per-class").fit(X[kept], y[kept])
    np.testing.assert_allclose(clf.predict_proba(X_test), other.predict_proba(X_test), atol=1e-3)


@every_classifier
def test_a_duplicate_equals_sample_weight_two(cls, wine):
    X, y, X_test = wine
    times = np.random.default_rng(0).integers(1, 3, size=len(y))
    weighted = cls().fit(X, y, sample_weight=times.astype(float))
    rows = np.repeat(np.arange(len(y)), times)
    assert_same(cls().fit(X[rows], y[rows]), weighted, X_test)


@every_classifier
@pytest.mark.parametrize("asked", [True, False])
def test_save_load_continue_equals_never_stopped(cls, wine, asked, tmp_path):
    X, y, X_test = wine
    running = cls().partial_fit(X[:60], y[:60])
    if asked:
        running.predict(X_test)
    running.save(tmp_path / "m")
    loaded = cls.load(tmp_path / "m")
    assert repr(loaded) == repr(running)
    assert_same(loaded, running, X_test)
    assert_same(loaded.partial_fit(X[60:], y[60:]).refresh(), running.partial_fit(X[60:], y[60:]).refresh(), X_test)


@every_classifier
def test_relabelling_permutes_coefficients_and_intercepts(cls, wine):
    X, y, X_test = wine
    clf, new = cls().fit(X, y), {"red": "c", "rose": "a", "white": "b"}
    other = cls().fit(X, [new[label] for label in y])
    order = [2, 0, 1]  # of red, rose and white among a, b, c: c, a, b
    np.testing.assert_allclose(other.coef_[order], clf.coef_, atol=1e-9)
    deviation = clf.decision_function(X_test).std()
    np.testing.assert_allclose(other.intercept_[order], clf.intercept_, atol=0.1 * deviation)


@every_classifier
def test_fit_twice_has_the_same_bits_whatever_the_global_random_state(cls, wine):
    X, y, X_test = wine
    answers = []
    for seed in (0, 1):
        np.random.seed(seed)  # noqa: NPY002 - the global state, which must not matter
        before = np.random.get_state()[1].tobytes()  # noqa: NPY002
        answers.append(cls().fit(X, y).predict_proba(X_test).tobytes())
        assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002
    assert answers[0] == answers[1]


@pytest.mark.parametrize("store", STORES)
def test_every_store_learns_behind_the_buffer(store, wine):
    X, y, X_test = wine
    clf = AIRClassifier(store=store).fit(X, y)
    truth = load_wine().target
    P = clf.predict_proba(X_test)
    assert log_loss(truth, P) < 0.25
    assert P.argmax(axis=1).tolist().count(1) > 40


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@every_classifier
def test_tensors_give_the_same(cls, wine):
    import torch

    X, y, X_test = wine
    clf, tensors = cls().fit(X, y), cls().fit(torch.from_numpy(X), y)
    P = tensors.predict_proba(torch.from_numpy(X_test)).numpy()
    np.testing.assert_allclose(P, clf.predict_proba(X_test), atol=1e-3)


@every_classifier
def test_an_unknown_word_is_no_expansion(cls, wine):
    X, y, _ = wine
    with pytest.raises(ValueError, match=r"expansion='relu' is unknown. Use 'auto', None or a transformer"):
        cls(expansion="relu").fit(X, y)
