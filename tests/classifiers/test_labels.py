"""Labels: one sortable type, never truncated, numbered in the order they arrive."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning

from aircl.classifiers.labels import check_labels
from aircl.engine.labels import Labels

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
integers = st.integers(-(2**63), 2**63 - 1)
# What a stream brings: batches of labels of one type, some labels known and some new.
streams = st.one_of(*(st.lists(st.lists(kind, min_size=1, max_size=8), max_size=6) for kind in (words, integers)))

VARIABLE_LENGTH = getattr(np.dtypes, "StringDType", lambda: object)()  # NumPy 2 has strings of any length


# -- check_labels --
@pytest.mark.parametrize(
    ("y", "kind", "expected"),
    [
        ([1, 2], "i", [1, 2]),
        ((1, 2), "i", [1, 2]),
        (range(2), "i", [0, 1]),
        ([np.int8(1), 2], "i", [1, 2]),
        (np.array([1, 2], dtype=np.uint8), "i", [1, 2]),
        ([True, np.False_], "b", [True, False]),
        ([1.0, 2], "f", [1.0, 2.0]),
        (np.array([1, 2.0], dtype=object), "f", [1.0, 2.0]),
        (["a", "bcd"], "U", ["a", "bcd"]),
        ([np.str_("a"), "bcd"], "U", ["a", "bcd"]),
        (np.array(["a", "bcd"], dtype=object), "U", ["a", "bcd"]),
        (np.array(["a", "bcd"], dtype=VARIABLE_LENGTH), "U", ["a", "bcd"]),
        (["", "a"], "U", ["", "a"]),
        (pd.Series(["a", "bcd"]), "U", ["a", "bcd"]),
        (pd.Series(["a", "bcd"], dtype="category"), "U", ["a", "bcd"]),
        (pd.Series([1, 2], index=[7, 7]), "i", [1, 2]),
        (pd.Series([True, False], dtype="boolean"), "b", [True, False]),
        (pl.Series(["a", "bcd"]), "U", ["a", "bcd"]),
        (pl.Series([1, 2]), "i", [1, 2]),
    ],
)
def test_labels_of_one_type_pass_as_they_are(y, kind, expected):
    labels = check_labels(y)
    assert labels.dtype.kind == kind
    assert labels.tolist() == expected


@pytest.mark.parametrize("y", [[], (), np.zeros(0, dtype=int), np.zeros(0, dtype="U3"), np.array([], dtype=object)])
def test_no_labels_are_fine(y):
    assert check_labels(y).shape == (0,)


@pytest.mark.parametrize(
    ("y", "phrase"),
    [
        ([1, "a"], "mixes values of the types int, str"),
        (["a", 1], "mixes values of the types int, str"),
        (np.array([1, "a"], dtype=object), "mixes values of the types int, str"),
        ([True, 1], "mixes values of the types bool, int"),
        ([1, True], "mixes values of the types bool, int"),
        ([np.True_, 1], "mixes values of the types bool_?, int"),
        ([True, 1.0], "mixes values of the types bool, float"),
        ([True, "True"], "mixes values of the types bool, str"),
        ([None, None], "NoneType"),
        ([1, None], "NoneType, int"),
        (["a", float("nan")], "float, str"),
        (pd.Series(["a", None]), "mixes values of the types"),
        (pl.Series(["a", None]), "NoneType, str"),
        ([1.0, float("nan")], "NaN or infinity"),
        ([1.0, -float("inf")], "NaN or infinity"),
        (pd.Series([1, None], dtype="Int64"), "NaN or infinity|NAType"),
        ([0.5, 1.0], "continuous"),
        ([1, 2.5], "continuous"),
        ([b"a", b"b"], "bytes"),
        (np.array([b"a", b"b"]), "Unknown label type"),
        (np.array([1 + 1j, 2]), "Unknown label type|Complex"),
        (np.array(["2024-01-01"], dtype="datetime64[D]"), "Unknown label type"),
        ([object(), object()], "object"),
        ([[1, 2], [3, 4]], "1d array"),
        ([1, [2]], "int, list"),
        (np.zeros((3, 2)), "1d array"),
        ("ab", "1d array"),
        (5, "1d array"),
        ({1, 2}, "1d array"),
        ([1, 2**64], "label|y"),
    ],
)
def test_other_labels_are_refused_with_what_is_wrong(y, phrase):
    with pytest.raises(ValueError, match=phrase):
        check_labels(y)


def test_a_column_of_labels_is_taken_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        assert check_labels(np.array([[1], [2]])).tolist() == [1, 2]


@given(st.lists(st.one_of(words, st.integers(-9, 9), st.booleans()), min_size=1, max_size=8))
def test_a_list_is_taken_exactly_if_all_its_labels_have_one_type(y):
    if len(set(map(type, y))) == 1:
        assert check_labels(y).tolist() == y
    else:
        with pytest.raises(ValueError, match="mixes values"):
            check_labels(y)


@given(st.lists(words, min_size=1))
def test_check_labels_is_idempotent(y):
    once = check_labels(y)
    np.testing.assert_array_equal(check_labels(once), once)


# -- Labels --
def learn(labels, batch):
    """Do what a learner does with a batch; return the labels, and the slots of those of the batch."""
    y = labels.cast(check_labels(batch))
    labels, slots = labels.with_slots(np.unique(y))
    np.testing.assert_array_equal(labels.match(np.unique(y)), slots)
    return labels, labels.match(y).tolist()


@given(streams)
def test_a_label_keeps_its_slot_and_its_spelling(stream):
    labels, slot_of = Labels(), {}
    for batch in stream:
        labels, slots = learn(labels, batch)
        for label, slot in zip(batch, slots, strict=True):
            assert slot_of.setdefault(label, slot) == slot
    assert labels.seen.tolist() == sorted(slot_of, key=slot_of.get)
    assert sorted(slot_of.values()) == list(range(len(labels)))


@given(streams)
def test_classes_are_sorted_and_order_sorts_the_slots(stream):
    labels = Labels()
    for batch in stream:
        before, seen = labels, labels.seen.tolist()
        labels, _ = learn(labels, batch)
        assert before.seen.tolist() == seen  # a value: readers that have it keep it
    assert labels.classes.tolist() == sorted({label for batch in stream for label in batch})
    np.testing.assert_array_equal(labels.seen[labels.order], labels.classes)
    np.testing.assert_array_equal(labels.columns, np.arange(len(labels)))


@given(st.lists(words, min_size=1, unique=True), st.lists(words, unique=True), st.data())
def test_dropped_labels_are_gone_and_the_later_slots_move_up(batch, declared, data):
    labels, _ = learn(Labels().declaring(check_labels(declared) if declared else np.zeros(0, dtype=str)), batch)
    before = labels.seen.tolist()
    gone = data.draw(st.lists(st.integers(0, len(batch) - 1), unique=True))
    labels = labels.without(np.array(gone, dtype=np.intp))
    left = [label for slot, label in enumerate(before) if slot not in gone]
    assert labels.seen.tolist() == left
    assert labels.match(np.array(before, dtype=str)).tolist() == [
        left.index(label) if label in left else -1 for label in before
    ]
    forgotten = {before[slot] for slot in gone}
    assert labels.classes.tolist() == sorted(set(left) | (set(declared) - forgotten))


@given(st.lists(words, min_size=1, unique=True), st.data())
def test_some_labels_are_taken_in_an_order(batch, data):
    labels, _ = learn(Labels().declaring(np.array(["declared"])), batch)
    slots = data.draw(st.lists(st.integers(0, len(batch) - 1), unique=True))
    taken = labels.taken(np.array(slots, dtype=np.intp))
    assert taken.seen.tolist() == [labels.seen[slot] for slot in slots]
    assert taken.match(labels.seen[slots]).tolist() == list(range(len(slots)))
    assert taken.classes.tolist() == sorted(taken.seen.tolist())


def test_nothing_matches_before_anything_is_seen():
    assert Labels().match(np.array([0, 1])).tolist() == [-1, -1]
    assert len(Labels()) == 0
    assert Labels().classes.shape == (0,)


def test_an_unknown_label_matches_nothing():
    labels, _ = learn(Labels(), ["b", "d"])
    assert labels.match(np.array(["a", "b", "c", "d", "dd"])).tolist() == [-1, 0, -1, 1, -1]


def test_a_longer_string_is_not_its_prefix():
    labels, _ = learn(Labels(), ["cat"])
    labels, slots = learn(labels, ["caterpillar", "cat"])
    assert slots == [1, 0]
    assert labels.classes.tolist() == ["cat", "caterpillar"]


def test_declared_labels_are_listed_but_not_seen():
    labels = Labels().declaring(np.array(["b", "a"]))
    assert labels.classes.tolist() == ["a", "b"]
    assert len(labels) == 0
    assert labels.columns.tolist() == []
    labels, _ = learn(labels, ["b", "cc"])
    assert labels.classes.tolist() == ["a", "b", "cc"]
    assert labels.columns.tolist() == [1, 2]
    assert labels.match(np.array(["a"])).tolist() == [-1]


def test_declaring_again_adds_and_never_truncates():
    labels = Labels().declaring(np.array(["a"])).declaring(np.array(["a", "aardvark"]))
    assert labels.classes.tolist() == ["a", "aardvark"]
    assert labels.declaring(np.zeros(0, dtype=str)) is labels


@pytest.mark.parametrize("known", [np.array([1, 2]), np.array(["1", "2"]), np.array([True, False])])
@pytest.mark.parametrize("then", [np.array([1, 2]), np.array(["1", "2"]), np.array([True, False])])
@pytest.mark.parametrize("declared", [False, True])
def test_labels_of_another_type_are_refused(known, then, declared):
    labels = Labels().declaring(known) if declared else learn(Labels(), known)[0]
    if known.dtype.kind == then.dtype.kind:
        np.testing.assert_array_equal(labels.cast(then), then)
    else:
        with pytest.raises(ValueError, match="but the labels so far are"):
            labels.cast(then)
        assert labels.cast(then[:0]).shape == (0,)  # no labels have no type


def test_whole_floats_become_the_integers_that_were_seen_before():
    labels, _ = learn(Labels(), [1, 2])
    labels, slots = learn(labels, [2.0, 3.0])
    assert slots == [1, 2]
    assert labels.classes.dtype.kind == "i"


@pytest.mark.parametrize("first", [np.int8, np.int64, np.uint8, np.uint64])
@pytest.mark.parametrize("then", [np.int8, np.int64, np.uint8, np.uint64])
def test_integers_of_any_width_stay_integers(first, then):
    labels, _ = learn(Labels(), np.array([1, 2], dtype=first))
    labels, slots = learn(labels, np.array([2, 100], dtype=then))
    assert slots == [1, 2]
    assert labels.classes.dtype.kind in "iu"
    assert labels.classes.tolist() == [1, 2, 100]


def test_large_integers_are_told_apart():
    labels, _ = learn(Labels(), [2**62, 2**62 + 1])  # equal as floats
    assert len(labels) == 2
    assert learn(labels, [2**62 + 1])[1] == [1]
