"""The laws, applied to the rest of the family.

| law                                 | NCM | SLDA | FeCAM | recursive | AEF-OCL | GKEAL | RanPAC | DS-AL |
|-------------------------------------|-----|------|-------|-----------|---------|-------|--------|-------|
| fit == any split == any order       | yes | yes  | yes   | yes       | yes     | (1)   | (2)    | (2)   |
| merge == fit of both                | yes | yes  | yes   | (3)       | yes     | (1)   | (2)    | (2)   |
| forget rows == never seen           | yes | yes  | yes   | (3)       | yes     | yes   | (2)    | (2)   |
| forget classes == never seen        | yes | (5)  | yes   | (3)       | (5)     | (5)   | (2)    | (2)   |
| relabelling permutes scores         | yes | yes  | yes   | yes       | (4)     | yes   | yes    | yes   |
| a duplicate == sample_weight 2      | yes | yes  | yes   | yes       | (4)     | (1)   | (2)    | yes   |
| predict changes nothing             | yes | yes  | yes   | yes       | yes     | yes   | yes    | yes   |
| save/load/continue == never stopped | yes | yes  | yes   | yes       | yes     | yes   | yes    | yes   |
| float32 ~ float64                   | yes | yes  | yes   | yes       | yes     | yes   | yes    | yes   |
| unseen classes are never predicted  | yes | yes  | yes   | yes       | yes     | yes   | yes    | yes   |

(1) The centres are rows of the first batch, drawn by their numbers. (2) Phases are looked at one after the other, and
every fifth row of a class is held out in RanPAC. (3) Weights are kept, not statistics. (4) Pseudo-features are drawn
class by class, by the number of samples that a class lacks. (5) One scatter for all classes. AIR and ACIL are in
test_laws.py.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.utils.estimator_checks import parametrize_with_checks

from aircl import (
    AEFOCLClassifier,
    DSALClassifier,
    FeCAMClassifier,
    GKEALClassifier,
    NCMClassifier,
    RandomReLU,
    RanPACClassifier,
    RecursiveACILClassifier,
    SLDAClassifier,
    StoreError,
)

FAMILY = {
    "ncm": NCMClassifier(),
    "slda": SLDAClassifier(0.01),
    "fecam": FeCAMClassifier(),
    "recursive": RecursiveACILClassifier(0.5),
    "aef-ocl": AEFOCLClassifier(0.5, expansion=RandomReLU(16, random_state=0)),
    "gkeal": GKEALClassifier(0.5, n_components=16, sigma=5.0, random_state=0),
    "ranpac": RanPACClassifier(n_components=16, random_state=0),
    "ds-al": DSALClassifier(0.5, n_components=16, random_state=0),
}

IN_ANY_ORDER = ("ncm", "slda", "fecam", "recursive", "aef-ocl")
MERGING = ("ncm", "slda", "fecam", "aef-ocl")
FORGETTING = ("ncm", "slda", "fecam", "aef-ocl", "gkeal")
FORGETTING_CLASSES = ("ncm", "fecam")
WEIGHING = ("ncm", "slda", "fecam", "recursive", "ds-al")

laws = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
everyone = pytest.mark.parametrize("name", FAMILY)


def departures(estimator):
    """Return the scikit-learn checks that an estimator is known to fail, with the reason."""
    reasons = {
        "GKEALClassifier": "the centres are rows of the first batch, drawn without regard to weights or repetitions",
    }
    if (reason := reasons.get(type(estimator).__name__)) is None:
        return {}
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [
        *(clone(classifier) for classifier in FAMILY.values()),
        GKEALClassifier(0.01, n_components=64, random_state=0),
        RanPACClassifier(0.1, n_components=64, random_state=0),
    ],
    expected_failed_checks=departures,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@st.composite
def streams(draw):
    """Rows of two to five classes, with a long tail, and where batches end."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes, f, n = draw(st.integers(2, 5)), draw(st.integers(2, 12)), draw(st.integers(8, 60))
    tail = 0.6 ** np.arange(n_classes)
    y = np.concatenate([np.arange(n_classes), rng.choice(n_classes, n, p=tail / tail.sum())])
    rng.shuffle(y)
    X = (3 * rng.normal(size=(n_classes, f)))[y] + rng.normal(size=(len(y), f))
    return X, y, sorted(draw(st.lists(st.integers(0, len(y)), max_size=4)))


def learn(name, X, y, cuts=(), weight=None):
    clf = clone(FAMILY[name])
    for rows in np.split(np.arange(len(y)), list(cuts)):
        clf.partial_fit(X[rows], y[rows], sample_weight=None if weight is None else weight[rows])
    return clf


def scores(clf, X):
    """Scores of all classes, also of two."""
    return np.concatenate(list(clf._current()._scores(np.asarray(X))))


def assert_same(left, right, X, rtol=1e-7):
    np.testing.assert_array_equal(left.classes_, right.classes_)
    np.testing.assert_allclose(left.class_count_, right.class_count_, rtol=1e-9)
    expected = scores(right, X)
    np.testing.assert_allclose(scores(left, X), expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@pytest.mark.parametrize("name", IN_ANY_ORDER)
@laws
@given(stream=streams(), seed=st.integers(0, 100))
def test_any_split_and_any_order_equals_fit(name, stream, seed):
    X, y, cuts = stream
    whole = clone(FAMILY[name]).fit(X, y)
    assert_same(learn(name, X, y, cuts), whole, X)
    order = np.random.default_rng(seed).permutation(len(y))
    assert_same(learn(name, X[order], y[order]), whole, X)


@pytest.mark.parametrize("name", MERGING)
@laws
@given(stream=streams(), cut=st.floats(0.1, 0.9))
def test_merge_equals_fit_of_both(name, stream, cut):
    X, y, _ = stream
    first = round(cut * len(y))
    whole = clone(FAMILY[name]).fit(X, y)
    a, b = learn(name, X[:first], y[:first]), learn(name, X[first:], y[first:])
    assert_same(copy.deepcopy(a).merge(b), whole, X)
    assert_same(copy.deepcopy(b).merge(a), whole, X)
    assert_same(clone(FAMILY[name]).merge(a).merge(b), whole, X)


@pytest.mark.parametrize("name", sorted(set(FAMILY) - set(MERGING) - {"gkeal"}))
def test_what_cannot_be_merged_or_forgotten_is_refused(name):
    X, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 3
    a, b = learn(name, X[:15], y[:15]), learn(name, X[15:], y[15:])
    before = scores(a, X)
    with pytest.raises(StoreError, match="cannot be merged"):
        a.merge(b)
    with pytest.raises(StoreError, match="cannot forget"):
        a.forget(X[:2], y[:2])
    with pytest.raises(StoreError, match="cannot forget"):
        a.forget(classes=[1])
    np.testing.assert_array_equal(scores(a, X), before)


def test_other_centres_cannot_be_merged():
    X, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 3
    with pytest.raises(StoreError, match="same expansion"):
        learn("gkeal", X[:15], y[:15]).merge(learn("gkeal", X[15:], y[15:]))


@pytest.mark.parametrize("name", FORGETTING)
@laws
@given(stream=streams(), kept=st.floats(0.3, 0.9))
def test_forget_rows_equals_never_having_seen_them(name, stream, kept):
    X, y, _ = stream
    first = round(kept * len(y))
    clf = clone(FAMILY[name]).partial_fit(X[:first], y[:first])
    never = copy.deepcopy(clf)
    clf.partial_fit(X[first:], y[first:]).forget(X[first:], y[first:])
    # FeCAM divides by the smallest eigenvalues, and what is left of a class may have very small ones.
    assert_same(clf, never, X, rtol=1e-4 if name == "fecam" else 1e-6)


@pytest.mark.parametrize("name", ["ncm", "aef-ocl"])
def test_rows_that_were_never_learned_cannot_be_forgotten(name):
    X, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 3
    clf = learn(name, X, y)
    before = scores(clf, X)
    with pytest.raises(StoreError, match="cannot forget"):
        clf.forget(X[y == 1] + 5.0, y[y == 1])
    np.testing.assert_array_equal(scores(clf, X), before)


@pytest.mark.parametrize("name", FORGETTING_CLASSES)
@laws
@given(stream=streams())
def test_forget_classes_equals_never_having_seen_them(name, stream):
    X, y, _ = stream
    keep = y != 0
    assert_same(learn(name, X, y).forget(classes=[0]), learn(name, X[keep], y[keep]), X)


@pytest.mark.parametrize("name", sorted(set(FAMILY) - {"aef-ocl"}))
@laws
@given(stream=streams(), seed=st.integers(0, 100))
def test_relabelling_permutes_the_scores(name, stream, seed):
    X, y, _ = stream
    new = np.random.default_rng(seed).permutation(y.max() + 1)
    expected = scores(learn(name, X, y), X)
    relabelled = scores(learn(name, X, new[y]), X)
    np.testing.assert_allclose(relabelled[:, new], expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("name", WEIGHING)
@laws
@given(stream=streams(), chosen=st.integers(0, 2**32 - 1))
def test_a_duplicate_equals_sample_weight_two(name, stream, chosen):
    X, y, _ = stream
    times = np.random.default_rng(chosen).integers(1, 3, size=len(y))
    rows = np.repeat(np.arange(len(y)), times)
    assert_same(learn(name, X, y, weight=times.astype(float)), learn(name, X[rows], y[rows]), X)


@everyone
def test_it_is_solved_once(name):
    X, y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 3
    clf = learn(name, X, y)
    clf.predict(X)
    solution = clf._solution()
    clf.decision_function(X)
    assert clf._solution() is solution
    assert clf.partial_fit(X[:3], y[:3])._solution() is not solution


@everyone
@laws
@given(stream=streams())
def test_predict_changes_nothing(name, stream):
    X, y, cuts = stream
    watched, alone = clone(FAMILY[name]), clone(FAMILY[name])
    for rows in np.split(np.arange(len(y)), cuts):
        for clf in (watched, alone):
            clf.partial_fit(X[rows], y[rows])
        if hasattr(watched, "classes_"):
            watched.predict(X)
    assert_same(watched, alone, X, rtol=1e-9)


@everyone
@laws
@given(stream=streams(), cut=st.floats(0.1, 0.9), closed=st.booleans())
def test_save_load_continue_equals_never_stopped(name, stream, cut, closed, tmp_path_factory):
    X, y, _ = stream
    first = round(cut * len(y))
    running = learn(name, X[:first], y[:first])
    if closed:
        running.end_phase()
    path = tmp_path_factory.mktemp("save") / "clf.safetensors"
    running.save(path)
    loaded = type(running).load(path)
    assert_same(loaded, running, X)
    for clf in (loaded, running):
        clf.partial_fit(X[first:], y[first:]).end_phase()
    assert_same(loaded, running, X)
    assert_same(pickle.loads(pickle.dumps(running)), running, X)


@everyone
def test_unseen_classes_are_never_predicted(name):
    X, y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 3
    clf = clone(FAMILY[name]).partial_fit(X, y, classes=[0, 1, 2, 9])
    assert 9 in clf.classes_
    assert 9 not in clf.predict(np.concatenate([X, -X, 100 * X]))


@everyone
def test_float32_is_close_to_float64(name):
    X, y = load_digits(return_X_y=True)
    X = X[:400] / 16
    double, single = learn(name, X, y[:400]), learn(name, X.astype(np.float32), y[:400])
    assert np.mean(double.predict(X) == single.predict(X.astype(np.float32))) > 0.98


@everyone
def test_tensors_are_taken_or_refused_with_the_way_out(name):
    torch = pytest.importorskip("torch")
    X, y = np.random.default_rng(0).normal(size=(40, 5)), np.arange(40) % 3
    clf = clone(FAMILY[name])
    if not clf.takes_tensors:
        with pytest.raises(TypeError, match=r"X\.numpy\(force=True\)"):
            clf.fit(torch.from_numpy(X), y)
        return
    ours = clf.fit(torch.from_numpy(X), y).predict(torch.from_numpy(X))
    np.testing.assert_array_equal(ours.numpy(), clone(FAMILY[name]).fit(X, y).predict(X))


@everyone
@pytest.mark.parametrize("end_phases", [False, True])
def test_it_learns_digits_class_by_class(name, end_phases):
    X, y = load_digits(return_X_y=True)
    options = {"n_components": 300} if "n_components" in FAMILY[name].get_params() else {}
    if name == "gkeal":
        options |= {"sigma": 20.0, "gamma": "auto"}
    if name == "aef-ocl":
        options = {"expansion": RandomReLU(300, random_state=0)}
    clf = clone(FAMILY[name]).set_params(**options)
    for digits in ([0, 1, 2, 3, 4], [5, 6], [7], [8, 9]):
        rows = np.flatnonzero(np.isin(y[:1200], digits))
        clf.partial_fit(X[rows], y[rows])
        if end_phases:
            clf.end_phase()
    assert clf.score(X[1200:], y[1200:]) > 0.8
