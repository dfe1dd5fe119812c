"""The ledger beside a Counter: whatever is added, removed, merged or renumbered, both hold the same rows."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aircl.engine.ledger import Ledger, LedgerError, Shown, hashes, id_of_key, occurrence

KEY = b"k" * 32

steps = st.lists(st.tuples(st.sampled_from("+-"), st.lists(st.integers(0, 12), max_size=12)), max_size=15)


def names(values):
    return [b"row %d" % value for value in values]


def held(ledger, slots=lambda value: value % 3):
    """What the ledger says about every row there may be."""
    count = ledger.count(ledger.shown(names(range(13)), given=[KEY]))
    return Counter({value: int(n) for value, n in enumerate(count) if n})


def bits(ledger):
    return {name: array.tobytes() for name, array in ledger.arrays().items()}


def plus(ledger, values):
    return ledger.plus(ledger.shown(names(values), given=[KEY]), np.array([value % 3 for value in values], dtype=int))


@settings(max_examples=60, deadline=None)
@given(steps=steps)
def test_it_counts_as_a_counter_does(steps):
    ledger, counter = Ledger.begun(by_id=False, key=KEY), Counter()
    for sign, values in steps:
        if sign == "+":
            ledger, counter = plus(ledger, values), counter + Counter(values)
        else:
            values = list((Counter(values) & counter).elements())
            ledger, counter = ledger.minus(ledger.shown(names(values), given=[KEY])), counter - Counter(values)
        assert held(ledger) == counter
        assert len(ledger) == counter.total()
    straight = plus(Ledger.begun(by_id=False, key=KEY), list(counter.elements()))
    assert bits(ledger) == bits(straight)  # the way does not matter


@settings(max_examples=40, deadline=None)
@given(first=st.lists(st.integers(0, 12)), second=st.lists(st.integers(0, 12)), gone=st.sets(st.integers(0, 2)))
def test_it_merges_and_drops_classes(first, second, gone):
    one, two = (plus(Ledger.begun(by_id=False, key=KEY), values) for values in (first, second))
    found, complete = one.common(two)
    assert complete
    assert found == sum(value in second for value in first)
    # The classes of the second have their slots turned around here.
    turned = two.with_slots(np.array([2, 1, 0])) if len(two) else two
    merged = one.merged(turned, np.array([2, 1, 0]))
    assert bits(merged) == bits(plus(Ledger.begun(by_id=False, key=KEY), first + second))
    kept = [slot for slot in range(3) if slot not in gone]
    left = merged.of_classes(np.array(kept, dtype=int), 3)
    assert held(left) == Counter(value for value in first + second if value % 3 not in gone)
    for run in left.runs:
        assert set(run.slot.tolist()) <= set(range(len(kept)))


def test_keys_that_differ_cannot_be_compared_but_both_are_kept():
    one = plus(Ledger.begun(by_id=False, key=KEY), [1, 1, 2])
    two = Ledger.begun(by_id=False)
    two = two.plus(two.shown(names([2, 2, 3])), np.array([2, 2, 0]))
    assert one.common(two) == (0, False)
    merged = one.merged(two, np.arange(3))
    assert held(merged) == Counter([1, 1, 2, 2, 2, 3])
    # Equal rows are taken out of one book first, then out of the other.
    assert held(merged.minus(merged.shown(names([2, 2]), given=[KEY]))) == Counter([1, 1, 2, 3])
    assert held(merged.minus(merged.shown(names([3, 2, 1, 2, 2, 1]), given=[KEY]))) == Counter()
    assert merged.common(one) == (3, False)


def test_content_is_known_beside_the_id():
    ledger = Ledger.begun(by_id=True, key=KEY)
    ledger = ledger.plus(ledger.shown([b"x", b"y"], [b"ann", b"bob"], given=[KEY]), np.zeros(2, int))
    asked = ledger.shown([b"x", b"x", b"y"], [b"ann", b"bob", b"eve"], given=[KEY])
    assert ledger.count(asked).tolist() == [1, 1, 0]
    assert ledger.is_same(asked).tolist() == [True, False, False]


def test_a_key_that_is_kept_elsewhere_is_needed_and_recognised():
    ledger = plus(Ledger.begun(by_id=False, key=KEY), [1])
    assert ledger.header()["keys"] == [{"id": id_of_key(KEY), "key": None}]
    with pytest.raises(LedgerError, match="no key was given"):
        ledger.shown([b"x"])
    with pytest.raises(LedgerError, match="the key given is"):
        ledger.shown([b"x"], given=[b"another key of mine"])


@pytest.mark.parametrize("by_id", [False, True])
def test_it_comes_back_from_arrays(by_id):
    ledger = Ledger.begun(by_id=by_id)
    shown = ledger.shown(names(range(300)), names(range(300)) if by_id else None)
    for start in range(0, 300, 7):
        part = np.arange(start, min(start + 7, 300))
        ledger = ledger.plus(shown.taken(part), part % 5)
    again = Ledger.restored(ledger.header(), ledger.arrays(), 5)
    assert bits(again) == bits(ledger)
    assert again.count(again.shown(names([299, 300]), names([299, 300]) if by_id else None)).tolist() == [1, 0]
    arrays = ledger.arrays()
    for wrong, what in (
        ({"0.slot": arrays["0.slot"] + 5}, "not among the 5"),
        ({"0.row": arrays["0.row"][::-1].copy()}, "not sorted"),
        ({"0.row": arrays["0.row"][:, :1].copy()}, "of shape"),
        ({"0.slot": arrays["0.slot"][:-1]}, "classes of shape"),
    ):
        with pytest.raises(ValueError, match=what):
            Ledger.restored(ledger.header(), arrays | wrong, 5)


def test_a_million_rows_take_less_than_40_mb_however_they_come():
    rng = np.random.default_rng(0)
    n = 10**6
    ledger = Ledger.begun(by_id=True, key=KEY)
    row, content = (rng.integers(0, 256, (n, 16), dtype=np.uint8).view("S16").reshape(-1) for _ in range(2))
    for part in np.array_split(np.arange(n), 130):
        ledger = ledger.plus(Shown((row[part],), (content[part],)), part % 100)
    assert len(ledger) == n
    assert ledger.nbytes <= 40e6
    assert sum(array.nbytes for array in ledger.arrays().values()) <= 40e6
    assert len(ledger.runs) < 12  # few arrays to look into
    some = rng.choice(n, 1000, replace=False)
    assert ledger.is_same(Shown((row[some],), (content[some],))).all()


def test_hashes_depend_on_the_key_and_on_what_they_are_for():
    assert len({hashes([b"x"], key, what)[0] for key in (KEY, b"j" * 32) for what in (b"id", b"content")}) == 4
    # A hash that ends in zeros is not the shorter one.
    zeros = np.frombuffer(b"a" * 15 + b"\0" + b"a" * 14 + b"\0\0", "S16")
    assert zeros[0] != zeros[1]
    assert occurrence(zeros).tolist() == [0, 0]
