"""Sums of second moments in whatever form they are held, and the forms that suit how they are used."""

import numpy as np
import pytest

from aircl.engine import Space
from aircl.engine.air import PerClass
from aircl.engine.batch import sort_by_class
from aircl.engine.moments import LATE_ROWS, MANY_ROWS, PACK_AFTER_SUMS


def learned(f, X, y, C, limit=None):
    return PerClass.empty(Space(f, np.float64, memory_limit=limit)).padded(C).plus(sort_by_class(X, y, None))


def expected_sum(X, y, pi):
    return np.tril((X * pi[y][:, None]).T @ X)


@pytest.mark.parametrize("f", [8, 60])
def test_sums_are_exact_while_batches_and_weights_change(f):
    rng = np.random.default_rng(0)
    store, C = PerClass.empty(Space(f, np.float64)).padded(10), 10
    X, y = np.zeros((0, f)), np.zeros(0, dtype=int)
    for step in range(60):
        more, slots = rng.normal(size=(3, f)), rng.integers(0, 1 + step * (C - 1) // 59, size=3)
        store = store.plus(sort_by_class(more, slots, None)).after_sum()
        X, y = np.concatenate([X, more]), np.concatenate([y, slots])
        pi = rng.uniform(size=C) if step % 2 else 1 / np.maximum(store.count, 1)
        expected = expected_sum(X, y, pi)
        np.testing.assert_allclose(np.tril(store.gram(pi)), expected, atol=1e-12 * np.abs(expected).max())


def test_a_factor_that_is_summed_often_is_packed_while_there_is_room():
    rng = np.random.default_rng(0)
    f, n = 400, MANY_ROWS + 50
    X, y = rng.normal(size=(2 * n, f)), np.repeat([0, 1], n)
    limit = Space(f, np.float64).workspace_bytes + 2 * n * f * 8 + 100_000
    for store, packed in ((learned(f, X, y, 2), [True, True]), (learned(f, X, y, 2, limit), [False, False])):
        for step in range(PACK_AFTER_SUMS + 2):
            pi = np.array([1.0, step + 1.0])
            np.testing.assert_allclose(np.tril(store.gram(pi)), expected_sum(X, y, pi), atol=1e-9)
            assert step > 0 or [moment.packed is not None for moment in store.own_moments] == [False, False]
            store = store.after_sum()
        assert [moment.packed is not None for moment in store.own_moments] == packed


def test_late_rows_of_a_packed_class_are_in_every_answer():
    """Few rows at a time, with sums in between, after the class was packed: nothing is late for a reader."""
    rng = np.random.default_rng(0)
    f = 40
    store = PerClass.empty(Space(f, np.float64)).padded(2)
    X = np.maximum(rng.normal(size=(400, f)), 0)
    slots = rng.integers(0, 2, 400)
    raw, late = {row.tobytes() for row in X}, []
    sizes = [60, 3, 1, 2, 30, 1, 1, 100, 5, 5, 190, 2]
    stops = np.cumsum(sizes)
    for start, stop in zip(stops - sizes, stops, strict=True):
        store = store.plus(sort_by_class(X[start:stop], slots[start:stop], None))
        pi = 1.0 / store.count
        expected = expected_sum(X[:stop], slots[:stop], pi)
        np.testing.assert_allclose(np.tril(store.gram(pi)), expected, rtol=1e-10, atol=1e-10)
        packed = [moment for moment in store.own_moments if moment.packed is not None]
        late += [moment.n_rows for moment in packed]
        assert not any(row.tobytes() in raw for moment in packed for row in moment.all_rows())
    assert 10 < np.max(late) <= LATE_ROWS  # rows were late at all
    for slot, moment in enumerate(store.sealed().own_moments):
        own = X[slots == slot]
        assert moment.n_rows == 0
        np.testing.assert_allclose(np.tril(moment.dense()), np.tril(own.T @ own), rtol=1e-10)


def test_nothing_changes_in_place():
    """Whoever holds older statistics still has them, whatever was made of them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 20)), np.arange(60) % 3
    store = learned(20, X, y, 3)
    before = {name: np.array(array) for name, array in store.arrays().items()}
    batch = sort_by_class(rng.normal(size=(50, 20)), np.arange(50) % 3, None)
    for change in (
        lambda: store.plus(batch).plus(batch),
        lambda: store.merged(learned(20, X, y, 3), np.arange(3)),
        lambda: store.minus(sort_by_class(X[:9], y[:9], None)),
        lambda: store.taken(np.array([0, 2])),
        lambda: store.sealed().after_sum().after_sum().after_sum().after_sum(),
        lambda: store.gram(np.ones(3)),
    ):
        change()
        for name, array in store.arrays().items():
            np.testing.assert_array_equal(array, before[name])
