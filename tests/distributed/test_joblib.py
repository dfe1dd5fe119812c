from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from aircl import AIRClassifier, GaussianKernel, RandomReLU
from aircl.classifiers import (
    ACILClassifier,
    AEFOCLClassifier,
    DSALClassifier,
    FeCAMClassifier,
    GKEALClassifier,
    NCMClassifier,
    RanPACClassifier,
    RecursiveACILClassifier,
    SLDAClassifier,
)
from aircl.distributed import LostWorkersError, NothingToLearnError, Shard, fit_joblib, joblib, piece
from aircl.engine import StoreError

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}


@pytest.mark.parametrize("parts", [1, 2, 5, None])
@pytest.mark.parametrize("store", ["per-class", "shared", "pooled"])
def test_shards_are_learned_as_one_process_learns_them(store, parts, stream, shards, assert_same):
    X, y, _ = stream
    fitted = fit_joblib(AIRClassifier(0.1, store=store, **PAPER), shards, workers=1, parts=parts, batch_size=7)
    assert fitted.store == store
    assert_same(fitted, AIRClassifier(0.1, store=store, **PAPER).fit(X, y))


def test_the_result_is_a_weighted_ridge_regression(stream):
    X, y, weight = stream
    parts = [(X[i::3], y[i::3], weight[i::3]) for i in range(3)]
    fitted = fit_joblib(AIRClassifier(0.1, **PAPER), parts, workers=1, batch_size=10)
    oracle = Ridge(alpha=0.1, fit_intercept=False, solver="cholesky")
    oracle.fit(X, np.eye(8)[y], sample_weight=weight * fitted.class_weight_[y])
    np.testing.assert_allclose(fitted.coef_, oracle.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "expansion", [RandomReLU(40), RandomReLU(40, random_state=3), GaussianKernel(30), StandardScaler()], ids=repr
)
def test_all_workers_have_the_expansion_of_the_first_batch(expansion, stream):
    X, y, _ = stream
    parts = [(X[:90], y[:90]), (X[90:], y[90:])]
    fitted = fit_joblib(AIRClassifier(0.1, expansion=expansion, calibrate=False), parts, workers=1, batch_size=30)
    reference = AIRClassifier(0.1, **PAPER).fit(fitted.expansion_.transform(X), y)
    np.testing.assert_allclose(fitted.coef_, reference.coef_, rtol=1e-9, atol=1e-9 * np.abs(reference.coef_).max())
    if isinstance(expansion, StandardScaler):
        np.testing.assert_array_equal(fitted.expansion_.mean_, StandardScaler().fit(X[:30]).mean_)


def test_the_first_batch_decides_the_precision_as_in_one_process(stream):
    X, y, _ = stream
    first, rest = (X[:50].astype(np.float32), y[:50]), (X[50:], y[50:])
    fitted = fit_joblib(AIRClassifier(0.1, **PAPER), [first, rest], workers=1)
    reference = AIRClassifier(0.1, **PAPER).partial_fit(*first).partial_fit(*rest)
    assert fitted.coef_.dtype == np.float32
    np.testing.assert_allclose(fitted.coef_, reference.coef_, rtol=1e-4, atol=1e-5)


def test_labels_of_any_kind_and_names_of_columns(stream, assert_same):
    pandas = pytest.importorskip("pandas")
    X, y, _ = stream
    words = np.array([f"class {'x' * label}" for label in y])
    table = pandas.DataFrame(X, columns=[f"c{i}" for i in range(12)])
    parts = [(table[:60], words[:60]), (table[60:], words[60:])]
    fitted = fit_joblib(ACILClassifier(0.1, **PAPER), parts, workers=1, batch_size=25)
    assert_same(fitted, ACILClassifier(0.1, **PAPER).fit(table, words))
    assert fitted.feature_names_in_.tolist() == list(table.columns)


@pytest.mark.parametrize(
    "classifier",
    [
        ACILClassifier(0.1, **PAPER),
        NCMClassifier(),
        SLDAClassifier(),
        FeCAMClassifier(),
        GKEALClassifier(0.1, n_components=40, random_state=0),
        AEFOCLClassifier(0.1, expansion=RandomReLU(20, random_state=0)),
    ],
    ids=lambda classifier: type(classifier).__name__,
)
def test_every_classifier_that_can_be_merged(classifier, stream, shards):
    X, y, _ = stream
    one = clone(classifier)
    for rows, labels in shards:
        one.partial_fit(rows, labels)
    apart = fit_joblib(clone(classifier), shards, workers=1)
    np.testing.assert_array_equal(apart.class_count_, one.class_count_)
    scores = one.decision_function(X)
    np.testing.assert_allclose(apart.decision_function(X), scores, rtol=1e-9, atol=1e-9 * np.abs(scores).max())
    assert apart.score(X, y) == one.score(X, y) > 0.3


@pytest.mark.parametrize("classifier", [RanPACClassifier(), DSALClassifier(), RecursiveACILClassifier(0.1)])
def test_a_classifier_that_cannot_be_merged_says_so_before_the_work(classifier, shards):
    read = []

    def noted():
        read.append(True)
        yield shards[1]

    with pytest.raises(StoreError, match="cannot be merged"):
        fit_joblib(classifier, [shards[0], noted], workers=1)
    assert not read


@pytest.mark.parametrize("store", ["per-class", "shared"])
def test_tensors_stay_tensors(store, stream):
    torch = pytest.importorskip("torch")
    X, y = map(torch.from_numpy, stream[:2])
    parts = [(X[:60], y[:60]), (X[60:], y[60:])]
    fitted = fit_joblib(AIRClassifier(0.1, store=store, **PAPER), parts, workers=1, batch_size=25)
    reference = AIRClassifier(0.1, store=store, **PAPER).fit(stream[0], stream[1])
    assert isinstance(fitted.coef_, torch.Tensor)
    np.testing.assert_allclose(fitted.coef_.numpy(), reference.coef_, rtol=1e-9, atol=1e-12)


def test_many_buckets_of_classes_change_no_bit(monkeypatch, stream, shards, assert_same):
    one = fit_joblib(AIRClassifier(0.1, **PAPER), shards, workers=1)
    monkeypatch.setattr(piece, "BUCKET_BYTES", 100_000)
    assert piece.count_buckets(one._learner.state.statistics) == 7
    several = fit_joblib(AIRClassifier(0.1, **PAPER), shards, workers=1)
    assert_same(several, one)
    order = [several._learner.state.labels.seen.tolist().index(label) for label in one._learner.state.labels.seen]
    for slot, theirs in enumerate(order):
        np.testing.assert_array_equal(
            one._learner.sealed().statistics.arrays()[f"moment.{slot}"],
            several._learner.sealed().statistics.arrays()[f"moment.{theirs}"],
        )


def test_statistics_beyond_the_memory_limit(stream, tmp_path, monkeypatch, assert_same):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 100)), np.arange(3000) % 30
    limit = AIRClassifier(0.1, **PAPER).fit(X[:1], y[:1])._learner.state.statistics.space.workspace_bytes + 300_000
    with pytest.warns(UserWarning, match="memory_limit"):
        fitted = fit_joblib(
            AIRClassifier(0.1, memory_limit=limit, **PAPER), [(X[::2], y[::2]), (X[1::2], y[1::2])], workers=1
        )
    assert_same(fitted, AIRClassifier(0.1, **PAPER).fit(X, y))
    del fitted
    assert list(tmp_path.iterdir()) == []


def test_it_begins_anew_as_fit_does_and_goes_on_as_ever(stream, shards, assert_same):
    X, y, _ = stream
    classifier = AIRClassifier(0.1, **PAPER).fit(X + 1, y)
    assert fit_joblib(classifier, shards, workers=1) is classifier
    assert_same(classifier, AIRClassifier(0.1, **PAPER).fit(X, y))
    assert_same(classifier.partial_fit(X, y), AIRClassifier(0.1, **PAPER).fit(np.vstack([X, X]), np.append(y, y)))


def test_progress_counts_shards_and_rows(shards):
    calls = []
    fit_joblib(AIRClassifier(0.1, **PAPER), shards, workers=1, parts=3, progress=lambda *call: calls.append(call))
    assert calls == [(2, 7, 21), (4, 7, 60), (7, 7, 168)]


# -- what is counted twice, unlike or not there --
def test_shards_are_counted_once(stream, shards, assert_same):
    X, y, _ = stream
    named = [Shard(f"day {i}", lambda size, rows=rows: [rows]) for i, rows in enumerate(shards)]
    with pytest.raises(ValueError, match="day 2 is given more than once"):
        fit_joblib(AIRClassifier(0.1, **PAPER), [*named, named[2]], workers=1)
    early, late = (fit_joblib(AIRClassifier(0.1, **PAPER), part, workers=1) for part in (named[:4], named[3:]))
    with pytest.raises(StoreError, match="counted twice"):
        early.merge(late)
    assert_same(
        early.merge(fit_joblib(AIRClassifier(0.1, **PAPER), named[4:], workers=1)),
        AIRClassifier(0.1, **PAPER).fit(X, y),
    )


def test_a_problem_in_a_shard_changes_nothing(stream, shards):
    X, y, _ = stream
    classifier = AIRClassifier(0.1, **PAPER).fit(X, y)
    before = classifier.coef_
    for bad, words in [
        ((X[:3, :5], y[:3]), "features"),
        ((X[:3], list("abc")), "labels|Labels"),
        ((np.full((3, 12), np.nan), y[:3]), "NaN"),
        ((X[:3], y[:2]), "3 rows"),
        (lambda: [X], "expected"),
        ("file.csv", "a shard is"),
    ]:
        with pytest.raises(ValueError, match=words):
            fit_joblib(classifier, [*shards, bad], workers=1)
        np.testing.assert_array_equal(classifier.coef_, before)


@pytest.mark.parametrize("nothing", [[], [(np.zeros((0, 3)), [])], [(np.ones((2, 3)), [0, 1], [0, 0])]])
def test_nothing_to_learn(nothing):
    with pytest.raises(NothingToLearnError, match="nothing to learn"):
        fit_joblib(AIRClassifier(**PAPER), nothing, workers=1)


def test_impossible_numbers(shards):
    for wrong in ({"workers": 0}, {"parts": 0}, {"batch_size": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            fit_joblib(AIRClassifier(**PAPER), shards, **{"workers": 1} | wrong)


# -- with processes --
@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_two_processes_of_which_one_is_killed_give_the_bits_of_one(
    stream, shards, tmp_path, assert_same, assert_same_bits
):
    X, y, _ = stream
    reads = tmp_path / "reads"

    def shard(number):
        def read():
            with reads.open("a") as log:
                log.write(f"{number}\n")
            rows, labels = shards[number]
            yield rows[:5], labels[:5]
            if number == 5 and os.getpid() != test_process and not (tmp_path / "killed").exists():
                (tmp_path / "killed").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield rows[5:], labels[5:]

        return read

    test_process = os.getpid()
    readers = [shard(number) for number in range(len(shards))]
    fitted = fit_joblib(AIRClassifier(0.1, **PAPER), readers, workers=2)
    assert (tmp_path / "killed").exists()
    assert reads.read_text().split().count("5") == 2
    assert_same_bits(fitted, fit_joblib(AIRClassifier(0.1, **PAPER), readers, workers=1))
    assert_same(fitted, AIRClassifier(0.1, **PAPER).fit(X, y))


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no such signal")
def test_workers_that_always_die_are_given_up(monkeypatch, shards):
    monkeypatch.setattr(joblib, "ATTEMPTS", 1)
    test_process = os.getpid()

    def deadly():
        if os.getpid() != test_process:
            os.kill(os.getpid(), signal.SIGKILL)
        yield shards[0]

    with pytest.raises(LostWorkersError, match="died 1 times in a row"):
        fit_joblib(AIRClassifier(0.1, **PAPER), [shards[0], deadly], workers=2)


def test_parts_with_the_defaults_of_the_classifier_add_up(stream):
    X, y = stream[0], stream[1]
    fitted = fit_joblib(AIRClassifier(), [(X[::2], y[::2]), (X[1::2], y[1::2])], workers=1)
    reference = AIRClassifier().fit(X, y)
    assert fitted.expansion == "auto"
    assert fitted.gamma_ == pytest.approx(reference.gamma_, rel=1e-6)
    np.testing.assert_allclose(fitted.predict_proba(X), reference.predict_proba(X), atol=1e-3)
