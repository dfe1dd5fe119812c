"""The laws of the engine, each written once and applied to every learner it can hold for.

| law                                   | per-class | pooled                      | shared                           |
|---------------------------------------|-----------|-----------------------------|----------------------------------|
| fit == any split == any order         | yes       | yes, within a phase         | yes                              |
| == Ridge with sample_weight           | yes       | yes                         | uniform weights or equal counts; |
|                                       |           |                             | else its formula approximates    |
| pooled == per-class, disjoint phases  | yes       | yes                         | another formula                  |
| AIR == ACIL on balanced counts        | yes       | yes                         | yes                              |
| shared == per-class on equal counts   | yes       | yes                         | yes                              |
| merge == fit of both                  | yes       | disjoint classes only       | yes                              |
| forget rows == never seen             | yes       | no: folded sums stay folded | yes                              |
| forget classes == never seen          | yes       | no: as above                | no: one scatter for all classes  |
| relabelling permutes coef_            | yes       | yes                         | yes                              |
| a duplicate == sample_weight 2        | yes       | yes                         | yes                              |
| predict changes nothing               | yes       | yes                         | yes                              |
| save/load/continue == never stopped   | yes       | yes                         | yes                              |
| float32 ~ float64                     | yes       | yes                         | yes                              |
| memory within the stated bound        | yes       | yes                         | yes                              |
| unseen classes are never predicted    | yes       | yes                         | yes                              |

A numeric gamma is drawn from 1e-4 of the mean eigenvalue upwards; with gamma="auto" it is the statistics that obey.
Every law is run on NumPy arrays and on torch tensors.
"""

from __future__ import annotations

import copy
import importlib.util
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from aircl import ACILClassifier, AIRClassifier

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

STORES = ("per-class", "shared", "pooled")
EXACT = ("per-class", "pooled")
SCALES = ("mean", "none", "balanced")


def to_the_root(count):
    return count**-0.5


WEIGHTINGS = ("inverse", "uniform", "effective", 0.7, 1.5, to_the_root)
INTEGERS = (-3, 0, 7, 100, 101)  # with gaps
STRINGS = ("b", "aa", "zebra", "c" * 40, "")  # of growing length

without_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def from_tensors(cls):
    """A classifier that learns tensors and answers in arrays, so that one text serves for both."""
    import torch

    def tensor(X):
        return torch.from_numpy(np.array(X))

    class FromTensors(cls):
        coef_ = property(lambda self: cls.coef_.fget(self).numpy())
        class_count_ = property(lambda self: cls.class_count_.fget(self).numpy())
        class_weight_ = property(lambda self: cls.class_weight_.fget(self).numpy())

        def fit(self, X, y, sample_weight=None):
            return super().fit(tensor(X), y, sample_weight)

        def partial_fit(self, X, y, classes=None, sample_weight=None):
            return super().partial_fit(tensor(X), y, classes, sample_weight)

        def forget(self, X=None, y=None, **options):
            return super().forget(X if X is None else tensor(X), y, **options)

        def predict(self, X):
            return np.asarray(super().predict(tensor(X)))

        def predict_proba(self, X):
            return super().predict_proba(tensor(X)).numpy()

        @classmethod
        def load(cls, path):
            return super().load(path, device="cpu")

    return FromTensors


@pytest.fixture(params=["numpy", pytest.param("torch", marks=without_torch)], autouse=True)
def arrays(request, monkeypatch):
    if request.param == "torch":
        for cls in (ACILClassifier, AIRClassifier):
            monkeypatch.setitem(globals(), cls.__name__, from_tensors(cls))


laws = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


@dataclass
class Stream:
    X: np.ndarray
    y: np.ndarray
    w: np.ndarray | None
    cuts: list[int]  # batch boundaries; equal neighbours make an empty batch
    relative_gamma: float

    def batches(self):
        for start, stop in zip([0, *self.cuts], [*self.cuts, len(self.y)], strict=True):
            rows = slice(start, stop)
            yield self.X[rows], self.y[rows], None if self.w is None else self.w[rows]

    def part(self, rows):
        return Stream(self.X[rows], self.y[rows], None if self.w is None else self.w[rows], [], self.relative_gamma)

    def permuted(self, seed):
        return self.part(np.random.default_rng(seed).permutation(len(self.y)))


@st.composite
def streams(draw, min_rows=1, max_rows=40, equal_counts=False):
    """Long-tailed streams of few or many rows for the number of features, in batches that may be empty."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = np.array(draw(st.sampled_from([INTEGERS, STRINGS])))[: draw(st.integers(1, 5))]
    n_features = draw(st.integers(1, 24))
    if equal_counts:
        code = np.repeat(np.arange(len(labels)), draw(st.integers(1, max_rows // 5)))
        rng.shuffle(code)
    else:
        tail = 0.4 ** np.arange(len(labels))
        code = rng.choice(len(labels), size=draw(st.integers(min_rows, max_rows)), p=tail / tail.sum())
    means = 2 * rng.normal(size=(len(labels), n_features))
    X = means[code] + rng.normal(size=(len(code), n_features))
    if draw(st.booleans()):
        X = np.maximum(X, 0.0)  # as after a random ReLU: exact zeros, a common direction
        X[:, 0] += 0.1
    w = rng.choice([0.5, 1.0, 2.0, 3.7], size=len(code)) if draw(st.booleans()) and not equal_counts else None
    cuts = sorted(draw(st.lists(st.integers(0, len(code)), max_size=5)))
    return Stream(X, labels[code], w, cuts, 10 ** draw(st.floats(-4, 1)))


def class_weights(y, w, weighting, scale):
    """The oracle's own computation of counts and scaled weights, by label."""
    labels, code = np.unique(y, return_inverse=True)
    n = np.bincount(code, w)
    pi = {
        "inverse": lambda: 1 / n,
        "uniform": lambda: np.ones(len(n)),
        "effective": lambda: (1 - 0.999) / (1 - 0.999**n),
        to_the_root: lambda: 1 / np.sqrt(n),
    }.get(weighting, lambda: n ** -float(weighting))()
    pi *= {"mean": len(pi) / pi.sum(), "none": 1.0, "balanced": n.sum() / (pi * n).sum()}[scale]
    return labels, code, pi


def gamma_for(stream, weighting="inverse", scale="mean"):
    _, code, pi = class_weights(stream.y, stream.w, weighting, scale)
    weight = pi[code] if stream.w is None else pi[code] * stream.w
    return stream.relative_gamma * float((weight[:, None] * stream.X**2).sum()) / stream.X.shape[1]


def learn(clf, *parts):
    for part in parts:
        for X, y, w in part.batches():
            clf.partial_fit(X, y, sample_weight=w)
    return clf


def fit(clf, stream):
    return clf.fit(stream.X, stream.y, sample_weight=stream.w)


def assert_same(left, right, rtol=1e-9):
    np.testing.assert_array_equal(left.classes_, right.classes_)
    np.testing.assert_allclose(left.class_count_, right.class_count_, rtol=rtol)
    np.testing.assert_allclose(left.class_weight_, right.class_weight_, rtol=rtol)
    np.testing.assert_allclose(left.coef_, right.coef_, rtol=rtol, atol=rtol * np.abs(right.coef_).max())


def statistics(clf):
    """What was learned, in the order of the labels, whatever the order of arrival."""
    store = clf._learner.absorb().statistics
    ones = np.ones(store.n_classes)
    G = np.tril(np.asarray(store.gram(ones))) if store.name != "pooled" else None  # folded, it knows its own weights
    return clf.classes_, clf.class_count_, np.asarray(store.sums)[clf._learner.state.labels.order], G


def assert_same_statistics(left, right, rtol=1e-9):
    for a, b in zip(statistics(left), statistics(right), strict=True):
        if a is None or a.dtype.kind not in "f":
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max())


def two_phases(stream):
    """Split a stream into two parts that share no class."""
    labels = np.unique(stream.y)
    first = np.isin(stream.y, labels[::2])
    return stream.part(first), stream.part(~first)


every_store = pytest.mark.parametrize("store", STORES)
every_weighting = pytest.mark.parametrize("weighting", WEIGHTINGS, ids=lambda w: getattr(w, "__name__", str(w)))
every_scale = pytest.mark.parametrize("scale", SCALES)


@every_store
@every_weighting
@laws
@given(stream=streams(), seed=st.integers(0, 100))
def test_any_split_and_any_order_equals_fit(store, weighting, stream, seed):
    options = {"gamma": gamma_for(stream, weighting), "weighting": weighting, "store": store}
    whole = fit(AIRClassifier(**options, **PAPER), stream)
    assert_same(learn(AIRClassifier(**options, **PAPER), stream), whole)
    assert_same(fit(AIRClassifier(**options, **PAPER), stream.permuted(seed)), whole)


@pytest.mark.parametrize("store", EXACT)
@every_weighting
@every_scale
@laws
@given(stream=streams())
def test_equals_ridge_with_sample_weight(store, weighting, scale, stream):
    gamma = gamma_for(stream, weighting, scale)
    clf = learn(AIRClassifier(gamma, weighting=weighting, scale=scale, store=store, **PAPER), stream)
    labels, code, pi = class_weights(stream.y, stream.w, weighting, scale)
    weight = pi[code] if stream.w is None else pi[code] * stream.w
    oracle = Ridge(alpha=gamma, fit_intercept=False, solver="svd")
    oracle.fit(stream.X, np.eye(len(labels))[code], sample_weight=weight)
    expected = oracle.coef_.reshape(clf.coef_.shape)
    np.testing.assert_array_equal(clf.classes_, labels)
    np.testing.assert_allclose(clf.class_weight_, pi, rtol=1e-9)
    np.testing.assert_allclose(clf.coef_, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@every_scale
@laws
@given(stream=streams())
def test_shared_with_uniform_weights_equals_ridge(scale, stream):
    gamma = gamma_for(stream, "uniform", scale)
    clf = learn(AIRClassifier(gamma, weighting="uniform", scale=scale, store="shared", **PAPER), stream)
    labels, code, _ = class_weights(stream.y, stream.w, "uniform", scale)
    oracle = Ridge(alpha=gamma, fit_intercept=False, solver="svd")
    oracle.fit(stream.X, np.eye(len(labels))[code], sample_weight=stream.w)
    expected = oracle.coef_.reshape(clf.coef_.shape)
    np.testing.assert_allclose(clf.coef_, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@every_weighting
@every_scale
@laws
@given(stream=streams())
def test_shared_is_its_formula(weighting, scale, stream):
    """sum pi_y A_y replaced by (sum pi_y n_y) S_w + sum pi_y n_y m_y'm_y, computed from all rows at once."""
    gamma = gamma_for(stream, weighting, scale)
    clf = learn(AIRClassifier(gamma, weighting=weighting, scale=scale, store="shared", **PAPER), stream)
    _, code, pi = class_weights(stream.y, stream.w, weighting, scale)
    w = np.ones(len(code)) if stream.w is None else stream.w
    n = np.bincount(code, w)
    M = np.stack([np.average(stream.X[code == c], axis=0, weights=w[code == c]) for c in range(len(n))])
    Z = stream.X - M[code]
    S_w = (Z * w[:, None]).T @ Z / n.sum()
    G = (pi @ n) * S_w + (M * (pi * n)[:, None]).T @ M
    W = np.linalg.solve(G + gamma * np.eye(len(G)), (M * (pi * n)[:, None]).T)
    np.testing.assert_allclose(clf.coef_, W.T, rtol=1e-9, atol=1e-9 * np.abs(W).max())


@every_weighting
@every_scale
@laws
@given(stream=streams(min_rows=6))
def test_pooled_equals_per_class_on_disjoint_phases(weighting, scale, stream):
    gamma = gamma_for(stream, weighting, scale)
    pooled = AIRClassifier(gamma, weighting=weighting, scale=scale, store="pooled", **PAPER)
    exact = AIRClassifier(gamma, weighting=weighting, scale=scale, store="per-class", **PAPER)
    for phase in two_phases(stream):
        if len(phase.y):
            assert_same(learn(pooled, phase), learn(exact, phase))  # the open phase counts
            assert_same(pooled.end_phase(), exact.end_phase())


@every_store
@laws
@given(stream=streams(equal_counts=True))
def test_air_equals_acil_on_balanced_counts(store, stream):
    gamma = gamma_for(stream, "uniform")
    assert_same(
        learn(AIRClassifier(gamma, store=store, **PAPER), stream), learn(ACILClassifier(gamma, **PAPER), stream)
    )


@every_weighting
@laws
@given(stream=streams(equal_counts=True))
def test_shared_equals_per_class_on_equal_counts(weighting, stream):
    gamma = gamma_for(stream, weighting)
    shared, exact = (
        AIRClassifier(gamma, weighting=weighting, store=store, **PAPER) for store in ("shared", "per-class")
    )
    assert_same(learn(shared, stream), learn(exact, stream))


@every_store
@laws
@given(stream=streams(min_rows=6), cut=st.floats(0, 1))
def test_merge_is_commutative_associative_and_equals_fit_of_both(store, stream, cut):
    gamma = gamma_for(stream)

    def learned(*parts):
        return learn(AIRClassifier(gamma, store=store, **PAPER), *parts)

    if store == "pooled":
        parts = [stream.part(stream.y == label) for label in np.unique(stream.y)]
        parts = [parts[0], *parts[1:2], stream.part(~np.isin(stream.y, np.unique(stream.y)[:2]))]
    else:
        first = round(cut * len(stream.y))
        second = (first + len(stream.y)) // 2
        parts = [stream.part(slice(0, first)), stream.part(slice(first, second)), stream.part(slice(second, None))]
    whole = fit(AIRClassifier(gamma, store=store, **PAPER), stream)
    a, b, c = (learned(part) for part in [*parts, stream.part(slice(0, 0))][:3])
    left = copy.deepcopy(a).merge(copy.deepcopy(b)).merge(copy.deepcopy(c))
    right = copy.deepcopy(a).merge(copy.deepcopy(b).merge(copy.deepcopy(c)))
    turned = copy.deepcopy(c).merge(b).merge(a)
    for merged in (left, right, turned):
        assert_same(merged, whole)
        assert_same(merged.merge(AIRClassifier(gamma, store=store, **PAPER)), whole)  # empty is neutral, on either side
        assert_same(AIRClassifier(gamma, store=store, **PAPER).merge(merged), whole)


@every_store
@laws
@given(stream=streams(min_rows=6))
def test_merge_leaves_the_other_learner_as_it_was(store, stream):
    first, second = two_phases(stream)
    assume(len(first.y) and len(second.y))
    a, b = (learn(AIRClassifier(1.0, store=store, **PAPER), part) for part in (first, second))
    a.merge(b)
    assert_same(b, learn(AIRClassifier(1.0, store=store, **PAPER), second))


@pytest.mark.parametrize("store", ["per-class", "shared"])
@laws
@given(stream=streams(min_rows=2), kept=st.floats(0, 1), seed=st.integers(0, 100))
def test_forget_rows_equals_never_having_seen_them(store, stream, kept, seed):
    stream = stream.permuted(seed)
    first = min(max(1, round(kept * len(stream.y))), len(stream.y) - 1)
    keep, gone = stream.part(slice(0, first)), stream.part(slice(first, None))
    gamma = gamma_for(keep)
    clf = learn(AIRClassifier(gamma, store=store, **PAPER), stream)
    clf.forget(gone.X, gone.y, sample_weight=gone.w)
    assert_same(clf, learn(AIRClassifier(gamma, store=store, **PAPER), keep))
    again = learn(clf, gone)
    assert_same(again, fit(AIRClassifier(gamma, store=store, **PAPER), stream))


@laws
@given(stream=streams(min_rows=6))
def test_forget_classes_equals_never_having_seen_them(stream):
    keep, gone = two_phases(stream)
    assume(len(keep.y) and len(gone.y))
    gamma = gamma_for(keep)
    clf = learn(AIRClassifier(gamma, **PAPER), stream).forget(classes=np.unique(gone.y))
    assert_same(clf, learn(AIRClassifier(gamma, **PAPER), keep))


@every_store
@laws
@given(stream=streams(), seed=st.integers(0, 100))
def test_relabelling_permutes_the_rows_of_coef(store, stream, seed):
    gamma = gamma_for(stream)
    labels, code = np.unique(stream.y, return_inverse=True)
    new = np.random.default_rng(seed).permutation(len(labels))
    clf = learn(AIRClassifier(gamma, store=store, **PAPER), stream)
    relabelled = AIRClassifier(gamma, store=store, **PAPER).fit(stream.X, new[code], sample_weight=stream.w)
    np.testing.assert_allclose(relabelled.coef_[new], clf.coef_, rtol=1e-9, atol=1e-9 * np.abs(clf.coef_).max())


@every_store
@every_weighting
@laws
@given(stream=streams(), chosen=st.integers(0, 2**32 - 1))
def test_a_duplicate_equals_sample_weight_two(store, weighting, stream, chosen):
    gamma = gamma_for(stream, weighting)
    times = np.random.default_rng(chosen).integers(1, 3, size=len(stream.y))
    w = np.ones(len(times)) if stream.w is None else stream.w
    options = {"gamma": gamma, "weighting": weighting, "store": store}
    weighted = AIRClassifier(**options, **PAPER).fit(stream.X, stream.y, sample_weight=w * times)
    rows = np.repeat(np.arange(len(times)), times)
    assert_same(AIRClassifier(**options, **PAPER).fit(stream.X[rows], stream.y[rows], sample_weight=w[rows]), weighted)


@every_store
@laws
@given(stream=streams())
def test_rows_of_weight_zero_are_not_seen(store, stream):
    gamma = gamma_for(stream)
    stranger = np.array(["stranger"] if stream.y.dtype.kind == "U" else [12345])
    X, y = np.concatenate([stream.X, stream.X[:1]]), np.concatenate([stream.y, stranger])
    w = np.append(np.ones(len(stream.y)) if stream.w is None else stream.w, 0.0)
    assert_same(
        AIRClassifier(gamma, store=store, **PAPER).fit(X, y, sample_weight=w),
        learn(AIRClassifier(gamma, store=store, **PAPER), stream),
    )


@every_store
@laws
@given(stream=streams())
def test_predict_changes_nothing(store, stream):
    for gamma in (gamma_for(stream), "auto"):
        watched, alone = AIRClassifier(gamma, store=store, **PAPER), AIRClassifier(gamma, store=store, **PAPER)
        for X, y, w in stream.batches():
            watched.partial_fit(X, y, sample_weight=w)
            alone.partial_fit(X, y, sample_weight=w)
            if len(watched.classes_ if hasattr(watched, "classes_") else ()):
                watched.predict(stream.X)
                watched.predict_proba(stream.X)
        assert_same_statistics(watched, alone)
        if gamma != "auto":
            assert_same(watched, alone)


@every_store
@laws
@given(stream=streams(), cut=st.floats(0, 1), with_auto=st.booleans(), asked=st.booleans())
def test_save_load_continue_equals_never_stopped(store, stream, cut, with_auto, asked):
    gamma = "auto" if with_auto else gamma_for(stream)
    first = max(1, round(cut * len(stream.y)))
    before, after = stream.part(slice(0, first)), stream.part(slice(first, None))
    running = learn(AIRClassifier(gamma, store=store, **PAPER), before)
    if asked:  # else rows still wait to be absorbed
        running.predict(stream.X)
    with tempfile.TemporaryDirectory() as directory:
        running.save(Path(directory) / "clf.safetensors")
        loaded = AIRClassifier.load(Path(directory) / "clf.safetensors")
    assert_same(loaded, running)
    assert_same(learn(loaded, after), learn(running, after))


@every_store
@laws
@given(stream=streams(min_rows=10))
def test_float32_is_close_to_float64(store, stream):
    # Rounding is relative to the largest eigenvalue, up to f times the mean one: the smallest gammas ask for more
    # digits than float32 has.
    stream.relative_gamma = max(stream.relative_gamma, 0.05)
    gamma = gamma_for(stream)
    double = learn(AIRClassifier(gamma, store=store, **PAPER), stream)
    stream.X = stream.X.astype(np.float32)
    single = learn(AIRClassifier(gamma, store=store, **PAPER), stream)
    assert single.coef_.dtype == np.float32
    scale = np.abs(double.coef_).max()
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-4, atol=1e-4 * scale)


@every_store
@laws
@given(stream=streams())
def test_statistics_obey_with_auto_gamma(store, stream):
    whole = fit(AIRClassifier(store=store, **PAPER), stream)
    assert_same_statistics(learn(AIRClassifier(store=store, **PAPER), stream), whole)
    assert_same_statistics(fit(AIRClassifier(store=store, **PAPER), stream.permuted(0)), whole)
    assert whole.gamma_ > 0


@every_store
@laws
@given(stream=streams())
def test_unseen_classes_are_never_predicted(store, stream):
    extra = ["zz-unseen"] if stream.y.dtype.kind == "U" else [999]
    clf = AIRClassifier(gamma_for(stream), store=store, **PAPER)
    clf.partial_fit(stream.X, stream.y, classes=[*np.unique(stream.y).tolist(), *extra], sample_weight=stream.w)
    far = np.concatenate([stream.X, -stream.X, 100 * stream.X])
    assert extra[0] in clf.classes_
    assert extra[0] not in clf.predict(far)
    assert np.all(clf.predict_proba(far)[:, clf.classes_ == extra[0]] == 0)


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_stays_within_the_stated_bound(store, dtype):
    f, C = 40, 6
    rng = np.random.default_rng(0)
    clf = AIRClassifier(1.0, store=store, **PAPER)
    size, waiting = np.dtype(dtype).itemsize, 4096 * (2 * 40 * np.dtype(dtype).itemsize + 24)
    sums = 2 * C * (f + 2) * 8  # capacity doubles
    bound = {
        "per-class": lambda n: min(n * f, C * f * (f + 1) // 2) * size,
        "pooled": lambda n: (f * f + min(n * f, C * f * (f + 1) // 2)) * size,
        "shared": lambda n: f * f * size,
    }[store]
    for step in range(300):
        clf.partial_fit(rng.normal(size=(50, f)).astype(dtype), rng.integers(0, C, 50))
        assert clf.nbytes_ <= bound(50 * (step + 1)) + sums + waiting
    clf.end_phase()
    assert clf.nbytes_ <= bound(15000) + sums


@every_store
@laws
@given(stream=streams(min_rows=5))
def test_gamma_is_chosen_anew_for_other_weights(store, stream):
    clf = learn(AIRClassifier(store=store, **PAPER), stream)
    clf.predict(stream.X)
    clf.set_params(weighting="uniform", scale="none")
    fresh = learn(AIRClassifier(weighting="uniform", scale="none", store=store, **PAPER), stream)
    assert clf.gamma_ == pytest.approx(fresh.gamma_)


@every_store
def test_gamma_lags_until_the_counts_double_or_a_class_is_new(store):
    rng = np.random.default_rng(0)

    def batch(n, label=None):
        y = rng.integers(0, 3, n) if label is None else np.full(n, label)
        return rng.normal(size=(n, 8)) + y[:, None], y

    clf = AIRClassifier(store=store, **PAPER).partial_fit(*batch(40))
    first = clf.gamma_
    assert clf.partial_fit(*batch(39)).gamma_ == first
    second = clf.partial_fit(*batch(1)).gamma_
    assert second != first
    assert clf.partial_fit(*batch(10)).gamma_ == second
    assert clf.refresh().gamma_ != second
    third = clf.gamma_
    assert clf.partial_fit(*batch(1, label=9)).gamma_ != third
    fourth = clf.gamma_
    assert clf.partial_fit(*batch(30)).gamma_ == fourth
    assert clf.end_phase().gamma_ != fourth
