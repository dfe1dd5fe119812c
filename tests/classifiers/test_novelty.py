"""Novelty and decisions of the classifiers: the laws, and what they find on data."""

import importlib.util

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from aircl import ACILClassifier, AIRClassifier, RandomReLU

every_store = pytest.mark.parametrize("store", ["per-class", "shared", "pooled"])


def halves(load, seed=0):
    X, y = load(return_X_y=True)
    X = X / (X.std(axis=0).max() if load is load_digits else X.std(axis=0))
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=seed)
    return X, y, X_test, y_test


def stream():
    X, y, X_test, _ = halves(load_digits)
    keep = np.concatenate([np.flatnonzero(y == digit)[: 80 >> digit // 2] for digit in range(10)])
    return X[keep], np.array([f"digit {label}" for label in y[keep]]), X_test


@every_store
@pytest.mark.parametrize("load", [load_digits, load_iris, load_wine])
def test_about_a_share_of_a_of_what_is_known_is_below_a(load, store):
    flagged = []
    for seed in range(4):
        X, y, X_test, _ = halves(load, seed)
        flagged.append((AIRClassifier(store=store, expansion=None).fit(X, y).novelty(X_test) < 0.05).mean())
    assert 0.02 <= np.mean(flagged) <= 0.1, flagged


@pytest.mark.parametrize("expansion", [None, RandomReLU(300, random_state=0)], ids=["plain", "buffer"])
def test_unknown_classes_are_found_as_well_as_logistic_regression_finds_them(expansion):
    X, y, X_test, y_test = halves(load_digits)
    ours, theirs = [], []
    for unknown in ((8, 9), (0, 3), (1, 6)):
        known, new = ~np.isin(y, unknown), np.isin(y_test, unknown)
        clf = AIRClassifier(expansion=expansion).fit(X[known], y[known])
        # C is what cross-validation on the log-loss chooses.
        other = LogisticRegression(C=10, class_weight="balanced", max_iter=500).fit(X[known], y[known])
        ours.append(roc_auc_score(new, -clf.novelty(X_test)))
        theirs.append(roc_auc_score(new, -other.predict_proba(X_test).max(axis=1)))
    assert np.mean(ours) > np.mean(theirs)
    assert min(ours) > 0.9, (ours, theirs)


@every_store
def test_order_split_and_merge_change_nothing(store):
    X, y, X_test = stream()
    once = AIRClassifier(0.1, store=store, expansion=None).fit(X, y).novelty(X_test)
    clf = AIRClassifier(0.1, store=store, expansion=None)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(X)), 7):
        clf.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(clf.novelty(X_test), once, atol=1e-6)
    cut = np.isin(y, [f"digit {digit}" for digit in (1, 4, 9)])
    parts = [AIRClassifier(0.1, store=store, expansion=None).fit(X[part], y[part]) for part in (cut, ~cut)]
    np.testing.assert_allclose(parts[0].merge(parts[1]).novelty(X_test), once, atol=1e-6)


def test_forgetting_saving_and_other_labels_change_nothing(tmp_path):
    X, y, X_test = stream()
    kept = y != "digit 3"
    never = AIRClassifier(0.1, expansion=None).fit(X[kept], y[kept]).novelty(X_test)
    clf = AIRClassifier(0.1, expansion=None).fit(X, y).forget(classes=["digit 3"])
    np.testing.assert_allclose(clf.novelty(X_test), never, atol=1e-6)
    clf.save(tmp_path / "model.safetensors")
    np.testing.assert_allclose(AIRClassifier.load(tmp_path / "model.safetensors").novelty(X_test), never, atol=1e-6)
    names = dict(zip(np.unique(y), np.random.default_rng(0).permutation(10), strict=True))
    other = AIRClassifier(0.1, expansion=None).fit(X[kept], np.array([names[label] for label in y[kept]]))
    np.testing.assert_allclose(other.novelty(X_test), never, atol=1e-6)


def test_fit_twice_has_the_same_bits():
    X, y, X_test = stream()
    np.random.seed(0)  # noqa: NPY002 - the global state, which must not matter
    one = AIRClassifier(0.1, expansion=None).fit(X, y).novelty(X_test)
    np.random.seed(1)  # noqa: NPY002
    assert one.tobytes() == AIRClassifier(0.1, expansion=None).fit(X, y).novelty(X_test).tobytes()


def test_priors_weigh_the_classes_and_nothing_is_made_again():
    X, y, X_test = stream()
    clf = AIRClassifier(0.1, expansion=None).fit(X, y)
    alike = clf.novelty(X_test)
    model = clf._learner.solved(clf._rule()).solution.novelty
    by_count = clf.set_params(priors="count").novelty(X_test)
    assert clf._learner.solved(clf._rule()).solution.novelty is model
    assert by_count.mean() < alike.mean()  # large classes are known better, so fewer of their samples are far away
    assert np.array_equal(np.argsort(by_count), np.argsort(alike))


def test_what_is_learned_is_no_longer_novel():
    X, y, X_test, y_test = halves(load_digits)
    known = y < 8
    clf = AIRClassifier(0.1, expansion=None).fit(X[known], y[known])
    new = X_test[y_test >= 8]
    before = (clf.novelty(new) < 0.05).mean()
    after = (clf.partial_fit(X[~known], y[~known]).novelty(new) < 0.05).mean()
    assert before > 0.5
    assert after < 0.15


def test_sparse_rows():
    X, y, X_test = stream()
    clf = AIRClassifier(0.1, expansion=None).fit(X, y)
    np.testing.assert_allclose(clf.novelty(csr_array(X_test[:50])), clf.novelty(X_test[:50]), atol=1e-9)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_tensors_give_the_same():
    import torch

    X, y, X_test = stream()
    tensors = AIRClassifier(0.1, calibrate=True, expansion=None).fit(torch.from_numpy(X), y)
    arrays = AIRClassifier(0.1, calibrate=True, expansion=None).fit(X, y)
    np.testing.assert_allclose(tensors.novelty(torch.from_numpy(X_test)), arrays.novelty(X_test), atol=1e-6)
    decided, expected = tensors.decide(torch.from_numpy(X_test)), arrays.decide(X_test)
    assert np.array_equal(decided.reason, expected.reason)


# -- decisions --
@pytest.mark.parametrize("labels", [int, str])
@pytest.mark.parametrize("cls", [AIRClassifier, ACILClassifier])
def test_decisions_say_why_there_is_no_answer(cls, labels):
    X, y, X_test, y_test = halves(load_digits)
    known = y < 8
    clf = cls(calibrate=True, expansion=None).fit(X[known], y[known].astype(labels))
    decided = clf.decide(X_test, confidence=0.9, novelty=0.05)
    P = clf.predict_proba(X_test)
    unknown = clf.novelty(X_test) < 0.05
    assert np.array_equal(decided.labels.data, clf.predict(X_test))
    assert np.array_equal(decided.reason == "unknown", unknown)
    assert np.array_equal(decided.reason == "doubtful", ~unknown & (P.max(axis=1) < 0.9))
    assert np.array_equal(decided.answered, ~np.ma.getmaskarray(decided.labels))
    assert np.array_equal(decided.probability, P.max(axis=1))
    right = clf.predict(X_test) == y_test.astype(labels)
    assert right[decided.answered].mean() > 0.94 > 0.8 > right.mean()
    filled = decided.labels.filled(clf.classes_.dtype.type("-1"))
    assert set(filled[~decided.answered].tolist()) == {labels(-1)}


def test_what_is_not_asked_for_is_not_computed():
    X, y, X_test, _ = halves(load_digits)
    clf = AIRClassifier(0.1, calibrate=True, expansion=None).fit(X, y)
    decided = clf.decide(X_test, confidence=None, novelty=None)
    assert decided.answered.all()
    assert decided.novelty is None
    assert "novelty" not in clf._learner.solved(clf._rule()).solution.__dict__


def test_bad_thresholds_are_refused():
    X, y, X_test, _ = halves(load_iris)
    clf = AIRClassifier(0.1, expansion=None, calibrate=False).fit(X, y)
    with pytest.raises(ValueError, match=r"set_params\(calibrate=True\)"):
        clf.decide(X_test)
    clf.set_params(calibrate=True)
    for name, value in (("confidence", 1.5), ("novelty", -0.1), ("confidence", "high")):
        with pytest.raises(ValueError, match=f"{name}={value!r}"):
            clf.decide(X_test, **{name: value})
    assert clf.decide(X_test[:0]).labels.shape == (0,)
