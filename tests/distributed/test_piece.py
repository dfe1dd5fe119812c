from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aircl import AIRClassifier, RandomReLU
from aircl.distributed.learning import begin, install, learn_part
from aircl.distributed.piece import merge_order
from aircl.distributed.shard import as_shards
from aircl.engine import StoreError

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}


@pytest.fixture(params=["per-class", "shared"])
def parts(request, shards):
    """Return a template, named shards and the piece of each."""
    named = as_shards(shards, "fit")
    template = begin(AIRClassifier(0.1, store=request.param, **PAPER), named, 10)
    return template, named, [learn_part(template, [shard], 10) for shard in named]


def contents(piece):
    return {name: array.tobytes() for name, array in piece.store.arrays().items()}, piece.labels.seen.tolist()


def test_merging_leaves_both_sides_as_they_were(parts):
    _, _, pieces = parts
    before = [contents(piece) for piece in pieces]
    once, again = pieces[0].merged(pieces[2]), pieces[0].merged(pieces[2])
    assert contents(once) == contents(again)
    assert [contents(piece) for piece in pieces] == before


def test_a_shard_is_not_added_twice(parts):
    _, _, pieces = parts
    both = pieces[0].merged(pieces[2])
    before = contents(both)
    for again in (pieces[0], pieces[2], both):
        with pytest.raises(StoreError, match="counted twice"):
            both.merged(again)
    assert contents(both) == before


def test_unlike_statistics_are_refused(parts, stream):
    _, named, pieces = parts
    X, y, _ = stream
    others = [
        AIRClassifier(0.1, store="shared" if pieces[0].kind["store"] == "per-class" else "per-class", **PAPER),
        AIRClassifier(0.1, store=pieces[0].kind["store"], expansion=RandomReLU(12, random_state=0), calibrate=False),
    ]
    strangers = [learn_part(begin(other, named, 10), as_shards([(X, y)]), 10) for other in others]
    strangers.append(
        learn_part(begin(AIRClassifier(store=pieces[0].kind["store"], **PAPER), as_shards([(X[:, :5], y)]), 10), [], 10)
    )
    for stranger in strangers:
        with pytest.raises(StoreError, match="not of the same kind"):
            pieces[0].merged(stranger)


def test_nothing_is_lost_on_the_way(parts, tmp_path):
    _, _, pieces = parts
    for piece in pieces:
        piece.write(tmp_path / "piece")
        for copied in (type(piece).read(tmp_path / "piece", piece.store), pickle.loads(pickle.dumps(piece))):
            assert contents(copied) == contents(piece)
            assert (copied.shards, copied.kind, copied.rows) == (piece.shards, piece.kind, piece.rows)


def test_what_lacks_a_shard_is_not_taken_for_the_whole(parts, stream):
    template, named, pieces = parts
    X, y, _ = stream
    classifier = AIRClassifier(0.1, store=template.store, **PAPER).fit(X, y)
    before = classifier.coef_
    with pytest.raises(RuntimeError, match="6 of 7 shards are missing"):
        install(classifier, template, [pieces[0]], named)
    np.testing.assert_array_equal(classifier.coef_, before)


def test_buckets_hold_every_class_once_and_always_in_the_same_place(shards):
    named = as_shards(shards)
    template = begin(AIRClassifier(0.1, **PAPER), named, 10)
    whole = learn_part(template, named, 10)
    early, late = (learn_part(template, part, 10) for part in (named[:3], named[3:]))
    place = {label: k for k, piece in enumerate(whole.split(3)) for label in piece.labels.seen.tolist()}
    assert sorted(place) == list(range(8))
    for part in (early, late):
        pieces = part.split(3)
        assert sum(piece.rows for piece in pieces) == part.rows
        assert all(place[label] == k for k, piece in enumerate(pieces) for label in piece.labels.seen.tolist())


def test_a_part_that_went_to_disk_is_split_and_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 100)), np.arange(3000) % 30
    named = as_shards([(X, y)])
    template = begin(AIRClassifier(0.1, **PAPER), named, 500)
    in_memory = learn_part(template, named, 500)
    limit = template._learner.state.statistics.space.workspace_bytes + 300_000
    template = begin(AIRClassifier(0.1, memory_limit=limit, **PAPER), named, 500)
    with pytest.warns(UserWarning, match="memory_limit"):
        pieces = learn_part(template, named, 500).split(4)
    assert any(tmp_path.iterdir())
    for piece, expected in zip(pieces, in_memory.split(4), strict=True):
        for slot, moment in enumerate(pickle.loads(pickle.dumps(piece)).store.moments.held):
            np.testing.assert_allclose(moment.stored(), expected.store.moments.held[slot].stored(), atol=1e-9)
    del pieces, piece
    assert not any(tmp_path.iterdir())


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 200))
def test_the_first_takes_in_every_other_once(n):
    holds = [{number} for number in range(n)]
    for left, right in merge_order(n):
        assert left < right
        holds[left] |= holds[right]
        holds[right] = set()
    assert holds[0] == set(range(n))
    assert len(list(merge_order(n))) == n - 1
