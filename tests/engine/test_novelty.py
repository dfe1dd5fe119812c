"""Distances against plain NumPy, and what the simulated rows promise."""

import numpy as np
import pytest

from aircl import AIRClassifier
from aircl.engine import novelty as module
from aircl.engine.novelty import novelty

STORES = ("per-class", "shared", "pooled")


def classes(counts, f=6, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    means = np.random.default_rng(99).normal(size=(len(counts), f)) * 2.0 + 1.0
    return means[y] + rng.normal(size=(len(y), f)), y


def problem_of(X, y, store="per-class"):
    return AIRClassifier(0.1, store=store, weighting="uniform", expansion=None).fit(X, y)._solution().problem


def plain(X, y, rows):
    """The formula at the head of the module, with dense matrices."""
    count, f = np.bincount(y), X.shape[1]
    means = np.array([X[y == c].mean(axis=0) for c in range(len(count))])
    S = (X - means[y]).T @ (X - means[y]) / (len(y) - len(count))
    A = S + np.trace(S) / min(f, len(y) - len(count)) * np.eye(f)
    centre = means.mean(axis=0)
    B = (means - centre).T @ (means - centre) / len(count)
    tau = 0.2 * np.trace(np.linalg.solve(A, B)) / f
    to_class = [np.einsum("nf,fg,ng->n", rows - m, np.linalg.inv(A), rows - m) for m in means]
    from_all = np.einsum("nf,fg,ng->n", rows - centre, np.linalg.inv((1 + tau) * A + B), rows - centre)
    return np.min(to_class, axis=0) - from_all


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("counts", [[30, 30, 30], [40, 12, 5, 2, 9, 20, 8, 7, 6]])
def test_distances_are_the_formula(store, counts):
    X, y = classes(counts)
    rows = np.random.default_rng(1).normal(size=(20, 6)) * 3.0
    model = novelty(problem_of(X, y, store))
    np.testing.assert_allclose(model.distance(rows), plain(X, y, rows), rtol=1e-9, atol=1e-9)


def test_shares_fall_with_the_distance_and_never_reach_zero_at_once():
    model = novelty(problem_of(*classes([30, 20, 10])))
    r = np.linspace(model.distances.min() - 1.0, 3.0 * model.distances.max(), 500)
    share = model.share(r, np.ones(3))
    assert np.all(np.diff(share) <= 0.0)
    assert share[0] == 1.0
    assert np.all(np.diff(share[r > model.distances.max()]) < 0.0)
    middle = np.median(model.distances)
    assert model.share(np.array([middle]), np.ones(3))[0] == pytest.approx(0.5, abs=0.01)


def test_classes_weigh_as_told():
    model = novelty(problem_of(*classes([200, 3, 50])))
    by_class = np.sort(model.distances, axis=1)
    for slot, weight in enumerate(np.eye(3)):
        r = np.quantile(by_class[slot], 0.8)
        assert model.share(np.array([r]), weight)[0] == pytest.approx(0.2, abs=0.02)


def test_of_normal_classes_no_more_are_flagged_than_promised():
    counts = [60] * 8
    X, y = classes(counts, f=20)
    new, _ = classes([500] * 8, f=20, seed=1)
    model = novelty(problem_of(X, y))
    share = model.share(model.distance(new), np.ones(8))
    for promised, least, most in ((0.5, 0.35, 0.65), (0.2, 0.1, 0.25), (0.05, 0.004, 0.06)):
        assert least < (share < promised).mean() < most


def test_some_classes_and_directions_stand_for_many(monkeypatch):
    X, y = classes([10] * 60, f=30)
    rows = np.random.default_rng(1).normal(size=(300, 30)) * 3.0
    problem = problem_of(X, y)
    every = novelty(problem)
    monkeypatch.setattr(module, "MANY_CLASSES", 12)
    some = novelty(problem)
    assert len(some.slots) == 12
    np.testing.assert_allclose(some.distance(rows), every.distance(rows))
    r = every.distance(rows)
    assert np.abs(some.share(r, np.ones(60)) - every.share(r, np.ones(60))).max() < 0.1
    monkeypatch.setattr(module, "MANY_DIRECTIONS", 20)
    fewer = novelty(problem)
    assert fewer.V.shape == (30, 20)
    assert np.corrcoef(fewer.distance(rows), r)[0, 1] > 0.7


def test_one_class_is_told_from_what_it_is_not():
    X, y = classes([50], f=4)
    model = novelty(problem_of(X, y))
    new, _ = classes([200], f=4, seed=1)
    share = model.share(model.distance(np.concatenate([new, new + 10.0])), np.ones(1))
    assert (share[:200] < 0.05).mean() < 0.15
    assert np.all(share[200:] < 0.01)


@pytest.mark.parametrize("store", STORES)
def test_without_any_scatter_it_says_so(store):
    with pytest.raises(ValueError, match="one sample of every class"):
        novelty(problem_of(*classes([1, 1, 1]), store))
