"""A sum that is kept up to date equals one that is made anew."""

import numpy as np
import pytest

from aircl.engine import running
from aircl.engine.per_class import PerClass


@pytest.mark.parametrize("f", [8, 60])
def test_following_the_weights_equals_summing_anew(f, monkeypatch):
    made = []
    original = running.RunningGram.__init__
    monkeypatch.setattr(running.RunningGram, "__init__", lambda self, G: (made.append(1), original(self, G))[1])
    rng = np.random.default_rng(0)
    store, rows, labels = PerClass(f, np.dtype(np.float64)), [], []
    C, refreshes = 10, 150
    for step in range(refreshes):
        slots = rng.integers(0, 1 + step * (C - 1) // (refreshes - 1), size=3)
        if step % 3 == 0:
            slots[:] = step % (1 + slots.max())  # few classes change, so that following pays
        X = rng.normal(size=(3, f))
        store.grow(int(max(slots.max() + 1, store.n_classes)))
        store.update(X, slots, None)
        rows.append(X)
        labels.append(slots)
        X, y = np.concatenate(rows), np.concatenate(labels)
        count = np.bincount(y, minlength=store.n_classes).astype(float)
        if np.any(count == 0):
            continue
        pi = 1 / count if step % 10 else rng.uniform(size=store.n_classes)
        expected = (X * pi[y][:, None]).T @ X
        np.testing.assert_allclose(np.tril(store.gram(pi)), np.tril(expected), atol=1e-12 * np.abs(expected).max())
    assert 2 <= len(made) < refreshes / 2  # it was followed most of the time, and made anew now and then


def test_a_stream_without_predictions_does_not_pay_for_them():
    store = PerClass(4, np.dtype(np.float64))
    store.grow(1)
    store.update(np.ones((10, 4)), np.zeros(10, dtype=int), None)
    store.gram(np.ones(1))
    assert store._running is not None
    for _ in range(5):
        store.update(np.ones((4096, 4)), np.zeros(4096, dtype=int), None)
    assert store._running is None


def test_a_factor_that_is_summed_often_is_packed_while_there_is_room():
    rng = np.random.default_rng(0)
    f, n = 400, 150
    X, y = rng.normal(size=(2 * n, f)), np.repeat([0, 1], n)
    limit = PerClass(f, np.dtype(np.float64)).workspace_bytes + 2 * n * f * 8 + f * f * 8 + 10**5
    roomy, tight = PerClass(f, np.dtype(np.float64)), PerClass(f, np.dtype(np.float64), limit)
    for store in (roomy, tight):
        store.grow(2)
        store.update(X, y, None)
        for step in range(1, 8):
            pi = np.array([1.0, step])
            G = np.tril(store.gram(pi))
            np.testing.assert_allclose(G, np.tril((X * pi[y][:, None]).T @ X), atol=1e-9)
    assert [moment.is_packed for moment in roomy._moments] == [False, True]
    assert [moment.is_packed for moment in tight._moments] == [False, False]


def test_late_rows_of_a_packed_class_are_in_every_answer():
    """Few rows at a time, with sums in between, after the class was packed: nothing is late for a reader."""
    rng = np.random.default_rng(0)
    n_features = 40
    store = PerClass(n_features, np.dtype(np.float64))
    store.grow(2)
    X = np.maximum(rng.normal(size=(400, n_features)), 0)
    slots = rng.integers(0, 2, 400)
    sizes = [60, 3, 1, 2, 30, 1, 1, 100, 5, 5, 190, 2]
    stops = np.cumsum(sizes)
    late = []
    for start, stop in zip(stops - sizes, stops, strict=True):
        store.update(X[start:stop], slots[start:stop])
        pi = 1.0 / store.count
        seen = slice(0, stop)
        expected = (X[seen] * pi[slots[seen], None]).T @ X[seen]
        np.testing.assert_allclose(np.tril(store.gram(pi)), np.tril(expected), rtol=1e-10, atol=1e-10)
        late.append([len(moment._late) for moment in store._moments])
        raw = {row.tobytes() for row in X}
        assert not any(row.tobytes() in raw for m in store._moments if m.is_packed for b in m.blocks() for row in b)
    assert np.max(late) > 10  # rows were late at all
    store.seal()
    assert all(len(moment._late) == 0 for moment in store._moments)
    for slot, moment in enumerate(store._moments):
        own = X[slots == slot]
        with moment.packed() as P:
            A = store.backend.symmetric(store.backend.unpack(P, n_features))
        np.testing.assert_allclose(A, own.T @ own, rtol=1e-10)
