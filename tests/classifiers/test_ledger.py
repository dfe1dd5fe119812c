"""With a ledger: nothing is learned twice, nothing is forgotten that was not learned, in every store."""

import copy
import importlib.util
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from aircl import (
    ACILClassifier,
    AEFOCLClassifier,
    AIRClassifier,
    DSALClassifier,
    FeCAMClassifier,
    GKEALClassifier,
    NCMClassifier,
    RanPACClassifier,
    RecursiveACILClassifier,
    SLDAClassifier,
    StoreError,
)
from aircl.classifiers.rows import check_ids, contents
from aircl.engine.ledger import Ledger, LedgerError, LedgerWarning

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

STORES = ("per-class", "shared", "pooled")
every_store = pytest.mark.parametrize("store", STORES)
without_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 6)), np.arange(60) % 3
IDS = [f"customer {k}" for k in range(60)]


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(bytes(range(32)))
    return path


def ledger_of(clf):
    return clf._learner.state.ledger


def bits(clf):
    """Statistics and ledger, to the bit."""
    state = clf._learner.sealed()
    arrays = {**state.statistics.arrays(), **{f"ledger.{name}": a for name, a in ledger_of(clf).arrays().items()}}
    return {name: np.asarray(array).tobytes() for name, array in arrays.items()}


def refused(clf, call, *words):
    """The call raises, says these words, and leaves everything as it was."""
    before = bits(copy.deepcopy(clf))
    with pytest.raises((LedgerError, StoreError)) as caught:
        call(clf)
    assert all(word in str(caught.value) for word in words), caught.value
    assert bits(clf) == before


@every_store
@pytest.mark.parametrize("named", [False, True])
def test_a_row_is_not_learned_again(store, named):
    def naming(part):
        return {"ids": IDS[part]} if named else {}

    clf = AIRClassifier(0.5, store=store, ledger=True, **PAPER).partial_fit(X[:40], Y[:40], **naming(slice(40)))
    once = copy.deepcopy(clf).partial_fit(X[40:], Y[40:], **naming(slice(40, 60)))
    refused(
        clf,
        lambda clf: clf.partial_fit(X[30:], Y[30:], **naming(slice(30, 60))),
        "10 of 30 rows were learned already",
        "'customer 30'" if named else "rows (from 0) 0, 1",
    )
    clf.partial_fit(X[30:], Y[30:], on_duplicate="skip", **naming(slice(30, 60)))
    assert bits(clf) == bits(once)
    clf.partial_fit(X, Y, on_duplicate="skip", **naming(slice(60)))
    assert bits(clf) == bits(once)


@pytest.mark.parametrize("ids", [IDS, None])
def test_no_rows_need_no_ids(ids):
    clf = AIRClassifier(1.0, ledger=True, **PAPER).fit(X, Y, ids=ids)
    clf.partial_fit(X[:0], Y[:0])
    clf.forget(X[:0], Y[:0])
    assert clf.class_count_.tolist() == [20, 20, 20]


@every_store
def test_equal_rows_of_one_call_count_as_often_as_they_come(store):
    clf = AIRClassifier(0.5, store=store, ledger=True, **PAPER).fit(X[[0, 0, 1, 2, 0]], Y[[0, 0, 1, 2, 0]])
    assert clf.class_count_.tolist() == [3, 1, 1]
    assert len(ledger_of(clf)) == 5
    refused(clf, lambda clf: clf.partial_fit(X[:1], Y[:1]), "learned already")
    if store != "pooled":
        refused(clf, lambda clf: clf.forget(X[[0] * 4], Y[[0] * 4]), "more often than learned")
        clf.forget(X[[0, 0]], Y[[0, 0]])
        assert clf.class_count_.tolist() == [1, 1, 1]
        assert bits(clf).keys() == bits(AIRClassifier(0.5, store=store, ledger=True, **PAPER).fit(X[:3], Y[:3])).keys()


@every_store
@pytest.mark.parametrize("named", [False, True])
def test_what_was_never_learned_is_not_forgotten(store, named):
    def naming(places):
        return {"ids": [IDS[place] for place in places]} if named else {}

    clf = AIRClassifier(0.5, store=store, ledger=True, **PAPER).fit(X[:50], Y[:50], **naming(range(50)))
    mean = X[:50][Y[:50] == 0].mean(0, keepdims=True)  # no algebra would notice it
    refused(clf, lambda clf: clf.forget(mean, [0], **naming([55])), "1 of 1 rows was never learned")
    refused(clf, lambda clf: clf.forget(X[48:52], Y[48:52], **naming(range(48, 52))), "2 of 4 rows were never learned")
    wrong = "other content, another label or weight" if named else "never learned"
    refused(clf, lambda clf: clf.forget(X[:1], [1], **naming([0])), wrong)
    refused(clf, lambda clf: clf.forget(X[:1], Y[:1], sample_weight=[0.5], **naming([0])), wrong)
    refused(clf, lambda clf: clf.forget(X[:1] + 1e-9, Y[:1], **naming([0])), wrong)
    if store == "pooled":
        with pytest.raises(StoreError, match="pooled"):
            clf.forget(X[:5], Y[:5], **naming(range(5)))
    else:
        clf.forget(X[:20], Y[:20], **naming(range(20)))
        assert len(ledger_of(clf)) == clf.class_count_.sum() == 30
        clf.partial_fit(X[:20], Y[:20], **naming(range(20)))  # it may come back
        assert len(ledger_of(clf)) == clf.class_count_.sum() == 50


@settings(max_examples=25, deadline=None)
@given(data=st.data(), store=st.sampled_from(["per-class", "shared"]))
def test_ledger_and_statistics_agree_on_any_way(data, store):
    """Learn, forget rows and classes, skip, save nothing: the ledger is that of a learner of what is left."""
    clf = AIRClassifier(0.5, store=store, ledger=True, **PAPER).fit(X[:6], Y[:6])
    kept = dict.fromkeys(range(6))
    for _ in range(data.draw(st.integers(1, 6))):
        action = data.draw(st.sampled_from(["learn", "forget", "class", "skip"]))
        places = data.draw(st.lists(st.integers(0, 59), unique=True, max_size=8))
        if action in ("learn", "skip"):
            new = [place for place in places if place not in kept]
            clf.partial_fit(X[places if action == "skip" else new], Y[places if action == "skip" else new],
                            on_duplicate="skip" if action == "skip" else "error")  # fmt: skip
            kept |= dict.fromkeys(new)
        elif action == "forget":
            gone = [place for place in places if place in kept]
            if len(gone) == len(kept):
                continue
            clf.forget(X[gone], Y[gone])
            kept = {place: None for place in kept if place not in gone}
        elif store == "per-class" and len({Y[place] for place in kept}) > 1:
            label = Y[next(iter(kept))]
            clf.forget(classes=[label])
            kept = {place: None for place in kept if Y[place] != label}
    ledger = ledger_of(clf)
    assert len(ledger) == len(kept) == clf.class_count_.sum()
    shown = ledger.shown(contents(X, Y, None))
    assert np.flatnonzero(ledger.count(shown)).tolist() == sorted(kept)
    for run in ledger.runs:  # and every row is of the class that it was learned as
        place = {h: int(p) for p, h in enumerate(shown.row[0])}
        labels = clf._learner.state.labels.seen[run.slot]
        assert labels.tolist() == [Y[place[h]] for h in run.row]


def test_the_new_row_of_an_id_takes_the_place_of_the_old_one():
    clf = AIRClassifier(0.5, ledger=True, **PAPER).fit(X[:30], Y[:30], ids=IDS[:30])
    new, labels = X[20:40] + 1.0, (Y[20:40] + 1) % 3
    same = slice(25, 30)  # five of them are what they were
    new[5:10], labels[5:10] = X[same], Y[same]

    def learn(clf, **options):
        clf.partial_fit(new, labels, ids=IDS[20:40], on_duplicate="replace", **options)

    refused(clf, learn, "5 of 20 rows", "old rows have to be shown")
    shown = {"X": X[:24], "y": Y[:24], "ids": IDS[:24]}
    refused(clf, lambda clf: learn(clf, replaced=shown), "the old row is not shown", "'customer 24'")
    refused(
        clf,
        lambda clf: learn(clf, replaced={"X": X[:30] + 1, "y": Y[:30], "ids": IDS[:30]}),
        "5 of 5 rows were learned with other content",
    )
    learn(clf, replaced={"X": X, "y": Y, "ids": IDS})  # others are left alone
    expected = AIRClassifier(0.5, **PAPER).fit(np.concatenate([X[:20], new]), np.concatenate([Y[:20], labels]))
    np.testing.assert_allclose(clf.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    ledger = ledger_of(clf)
    assert len(ledger) == 40
    assert ledger.is_same(ledger.shown(contents(new, labels, None), check_ids(IDS[20:40], 20))).all()
    learn(clf)  # the same call again has nothing left to do
    assert len(ledger_of(clf)) == 40
    assert clf.class_count_.sum() == 40


def test_a_store_that_cannot_forget_cannot_replace():
    clf = AIRClassifier(0.5, store="pooled", ledger=True, **PAPER).fit(X[:30], Y[:30], ids=IDS[:30])
    shown = {"X": X, "y": Y, "ids": IDS}
    refused(
        clf,
        lambda clf: clf.partial_fit(X[:3] + 1, Y[:3], ids=IDS[:3], on_duplicate="replace", replaced=shown),
        "pooled",
    )


def test_an_id_names_one_row():
    clf = AIRClassifier(0.5, ledger=True, **PAPER)
    with pytest.raises(LedgerError, match="an id stands for different rows: ids 'b'"):
        clf.fit(X[:4], Y[:4], ids=["a", "b", "b", "c"])
    clf.fit(X[[0, 1, 1, 2]], Y[[0, 1, 1, 2]], ids=["a", "b", "b", "c"])  # as often as it comes
    assert clf.class_count_.tolist() == [1, 2, 1]
    with pytest.raises(LedgerError, match="not as often as it was learned, of ids 'b'"):
        clf.partial_fit(X[5:6], Y[5:6], ids=["b"], on_duplicate="replace",
                        replaced={"X": X[1:2], "y": Y[1:2], "ids": ["b"]})  # fmt: skip
    with pytest.raises(LedgerError, match="knows rows by their ids"):
        clf.partial_fit(X[5:], Y[5:])
    with pytest.raises(LedgerError, match="knows rows by their contents"):
        AIRClassifier(0.5, ledger=True, **PAPER).fit(X, Y).partial_fit(X, Y, ids=IDS)


def test_rows_are_the_same_in_every_shape_they_come_in():
    rows = np.round(RNG.normal(size=(5, 7)), 1).astype(np.float32) * (RNG.random((5, 7)) < 0.5)
    labels = np.arange(5) % 2

    def known(X, y=labels):
        return [bytes(content) for content in contents(X, np.asarray(y), None)]

    expected = known(rows)
    assert len(set(expected)) == 5
    assert known(rows.astype(np.float64)) == expected
    assert known(np.asfortranarray(rows)) == expected
    assert known(np.where(rows == 0, np.float32(-0.0), rows)) == expected
    assert known(sparse.csr_matrix(rows)) == expected
    assert known(rows, labels.astype(float)) == expected  # the class 1.0 is the class 1
    assert known(rows, 1 - labels) != expected
    assert [bytes(c) for c in contents(rows, labels, np.full(5, 2.0))] != expected
    assert [bytes(c) for c in contents(rows, labels, np.ones(5))] == expected
    assert len(set(known(["a text", "another", "a text ", "", "ä"]))) == 5


@without_torch
def test_a_tensor_is_the_row_that_its_array_is():
    import torch

    clf = AIRClassifier(0.5, ledger=True, **PAPER).fit(torch.from_numpy(X[:30]), Y[:30])
    clf.partial_fit(torch.from_numpy(X[20:40]), Y[20:40], on_duplicate="skip")
    assert clf.class_count_.sum() == 40
    clf.forget(torch.from_numpy(X[:10]), Y[:10])
    shown = ledger_of(clf).shown(contents(X, Y, None))
    assert np.flatnonzero(ledger_of(clf).count(shown)).tolist() == list(range(10, 40))


def test_weights_of_zero_are_not_noted():
    weight = np.where(np.arange(20) < 5, 0.0, 2.0)
    clf = ACILClassifier(0.5, ledger=True, **PAPER).fit(X[:20], Y[:20], sample_weight=weight, ids=IDS[:20])
    assert len(ledger_of(clf)) == 15
    clf.partial_fit(X[:5], Y[:5], ids=IDS[:5])
    clf.forget(X[4:20], Y[4:20], sample_weight=np.append(1.0, weight[5:]), ids=IDS[4:20])
    assert len(ledger_of(clf)) == 4


# -- merging --
@every_store
def test_rows_in_common_are_not_merged(store, key):
    def learned(rows):
        return AIRClassifier(0.5, store=store, ledger=key, **PAPER).fit(X[rows], Y[rows] + (100 if rows.start else 0))

    one, two = learned(slice(0, 30)), learned(slice(30, 60))
    refused(one, lambda clf: clf.merge(learned(slice(0, 10))), "10 rows were learned by both")
    one.merge(two)
    assert len(ledger_of(one)) == 60
    refused(one, lambda clf: clf.partial_fit(X[35:36], [Y[35] + 100]), "learned already")
    empty = AIRClassifier(0.5, store=store, ledger=key, **PAPER).merge(one)
    assert bits(empty)["ledger.0.row"] == bits(one)["ledger.0.row"]
    assert len(ledger_of(one).keys) == len(ledger_of(empty).keys) == 1


def test_ledgers_of_different_keys_say_that_they_cannot_tell(key):
    one = AIRClassifier(0.5, ledger=True, **PAPER).fit(X[:30], Y[:30])
    two = AIRClassifier(0.5, ledger=True, **PAPER).fit(X[20:50], Y[20:50])
    with pytest.warns(LedgerWarning, match="nothing tells whether they have rows in common"):
        one.merge(two)
    assert one.class_count_.sum() == len(ledger_of(one)) == 60
    refused(one, lambda clf: clf.partial_fit(X[40:41], Y[40:41]), "learned already")  # both are asked
    one.forget(X[20:50], Y[20:50]).forget(X[20:30], Y[20:30])  # twice, as it was learned
    assert one.class_count_.sum() == len(ledger_of(one)) == 20
    refused(one, lambda clf: clf.forget(X[20:21], Y[20:21]), "never learned")


def test_with_and_without_a_ledger_do_not_merge():
    kept, bare = (
        AIRClassifier(0.5, ledger=True, **PAPER).fit(X[:30], Y[:30]),
        AIRClassifier(0.5, **PAPER).fit(X[30:], Y[30:]),
    )
    for one, other in (
        (kept, bare),
        (bare, kept),
        (AIRClassifier(0.5, ledger=True, **PAPER), bare),
        (AIRClassifier(0.5, **PAPER), kept),
    ):
        with pytest.raises(StoreError, match="the other has none"):
            one.merge(other)
    named = AIRClassifier(0.5, ledger=True, **PAPER).fit(X[30:], Y[30:], ids=IDS[30:])
    with pytest.raises(StoreError, match="by their ids, the other by their contents"):
        kept.merge(named)


# -- files and keys --
@every_store
@pytest.mark.parametrize("named", [False, True])
def test_it_travels_with_the_file(store, named, tmp_path):
    naming = {"ids": IDS[:40]} if named else {}
    clf = AIRClassifier(0.5, store=store, ledger=True, **PAPER).fit(X[:40], Y[:40], **naming)
    clf.save(tmp_path / "m")
    for again in (AIRClassifier.load(tmp_path / "m"), pickle.loads(pickle.dumps(clf)), copy.deepcopy(clf)):
        assert again.ledger is True
        assert bits(again) == bits(clf)
        refused(again, lambda clf: clf.partial_fit(X[:1], Y[:1], **({"ids": IDS[:1]} if named else {})), "already")


def test_a_key_of_ones_own_is_in_no_file(key, tmp_path):
    clf = AIRClassifier(0.5, ledger=key, **PAPER).fit(X[:40], Y[:40])
    clf.save(tmp_path / "m")
    text = (tmp_path / "m").read_bytes()
    drawn = Ledger.begun(by_id=False).header()["keys"][0]["key"]
    assert drawn is not None
    assert str(key).encode() not in text
    assert b'\\"key\\": null' in text
    again = AIRClassifier.load(tmp_path / "m")
    assert again.predict(X).tolist() == clf.predict(X).tolist()  # to predict, nobody needs it
    with pytest.raises(LedgerError, match="no key was given"):
        again.partial_fit(X[40:], Y[40:])
    other = tmp_path / "other"
    other.write_bytes(b"another secret of mine")
    with pytest.raises(LedgerError, match="the key given is"):
        again.set_params(ledger=other).forget(X[:3], Y[:3])
    again.set_params(ledger=str(key)).partial_fit(X[40:], Y[40:]).forget(X[:3], Y[:3])
    assert len(ledger_of(again)) == 57


def test_a_file_from_before_ledgers_and_one_without_have_none(tmp_path):
    AIRClassifier(0.5, **PAPER).fit(X, Y).save(tmp_path / "m")
    again = AIRClassifier.load(tmp_path / "m")
    assert again.ledger is False
    assert ledger_of(again) is None
    again.partial_fit(X, Y)  # nothing tells that this is the second time


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda clf: clf.partial_fit(X, Y, ids=IDS), r"ids= is for classifiers that keep a ledger: AIRClassifier"),
        (lambda clf: clf.partial_fit(X, Y, on_duplicate="skip"), "on_duplicate= is for classifiers that keep a ledger"),
        (lambda clf: clf.forget(X[:2], Y[:2], ids=IDS[:2]), "ids= is for classifiers"),
        (lambda clf: clf.set_params(ledger=True).partial_fit(X, Y), "has learned without a ledger"),
        (
            lambda clf: clf.partial_fit(X, Y, on_duplicate="ignore"),
            "'ignore' is unknown. Choose one of 'error', 'skip'",
        ),
    ],
)
def test_without_a_ledger_nothing_pretends_to_be_one(call, words):
    clf = AIRClassifier(0.5, **PAPER).fit(X, Y)
    with pytest.raises(ValueError, match=words):
        call(clf)
    assert clf.class_count_.sum() == 60


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (IDS[:59], "59 ids for 60 rows"),
        (np.arange(60) / 2, "0.0 is neither a text nor a whole number"),
        ([*IDS[:59], None], "None is neither"),
        ([[k] for k in range(60)], "one-dimensional"),
        (np.arange(60) > 3, "False is neither"),
    ],
)
def test_ids_are_texts_or_whole_numbers(ids, words):
    with pytest.raises(ValueError, match=words):
        AIRClassifier(0.5, ledger=True, **PAPER).fit(X, Y, ids=ids)
    assert check_ids([17, 18], 2) == check_ids(np.array(["17", "18"]), 2)


@pytest.mark.parametrize(
    ("ledger", "words"),
    [(3, "ledger=3 is not possible"), ("nowhere/key", "head -c 32 /dev/urandom"), (None, "ledger=None")],
)
def test_a_ledger_is_true_false_or_a_key(ledger, words):
    with pytest.raises(ValueError, match=words):
        AIRClassifier(0.5, ledger=ledger, **PAPER).fit(X, Y)


def test_a_short_key_is_refused(tmp_path):
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(ValueError, match=r"5 bytes\. A key needs at least 16"):
        AIRClassifier(0.5, ledger=tmp_path / "key", **PAPER).fit(X, Y)


OTHERS = [
    AEFOCLClassifier(ledger=True),
    DSALClassifier(n_components=8, ledger=True),
    FeCAMClassifier(ledger=True),
    GKEALClassifier(n_components=8, ledger=True),
    NCMClassifier(ledger=True),
    RanPACClassifier(n_components=8, ledger=True),
    RecursiveACILClassifier(ledger=True),
    SLDAClassifier(ledger=True),
]


@pytest.mark.parametrize("clf", OTHERS, ids=lambda clf: type(clf).__name__)
def test_every_classifier_can_keep_one(clf, tmp_path):
    cls, clf = type(clf), clone(clf).partial_fit(X[:30], Y[:30])
    refused(clf, lambda clf: clf.partial_fit(X[20:40], Y[20:40]), "10 of 20 rows were learned already")
    clf.partial_fit(X[20:40], Y[20:40], on_duplicate="skip")
    refused(clf, lambda clf: clf.forget(X[50:], Y[50:]), "never learned")
    clf.save(tmp_path / "m")
    assert bits(cls.load(tmp_path / "m")) == bits(clf)
    assert len(ledger_of(clf)) == clf.class_count_.sum() == 40
