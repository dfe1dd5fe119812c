from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aircl.scenarios import blurry_m, i_blurry, make_stream, si_blurry, si_blurry_paper
from aircl.scenarios.si_blurry import TorchDraw, divide_classes

GOLDEN = {
    1: ([3, 0, 20, 14, 13], [10, 6, 0, 30, 4]),
    2: ([0, 16, 9, 5, 20], [9, 3, 18, 16, 4]),
    3: ([29, 13, 0, 1, 7], [13, 13, 5, 14, 5]),
    4: ([1, 2, 34, 9, 4], [7, 0, 2, 25, 16]),
    5: ([12, 14, 15, 0, 9], [1, 41, 0, 7, 1]),
}


def public_si_blurry(labels, n_classes, T, n, m, seed):
    """Si-blurry step by step, sample by sample; n and m in percent."""
    torch = pytest.importorskip("torch")
    g = torch.Generator().manual_seed(seed)

    def cuts(high):
        if not high:
            return [0] * (T + 1)
        return [0, *sorted(torch.randint(0, high, (T - 1,), generator=g).tolist()), high]

    D = T * (n_classes * n // 100 // T)
    B = T * ((n_classes - D) // T)
    order = torch.randperm(n_classes, generator=g).tolist()
    disjoint_list, blurry_list = order[:D], order[D : D + B]
    at = cuts(D)
    disjoint = [set(disjoint_list[at[t] : at[t + 1]]) for t in range(T)]
    at = cuts(B)
    blurry = [set(blurry_list[at[t] : at[t + 1]]) for t in range(T)]
    own, mixed = [[] for _ in range(T)], [[] for _ in range(T)]
    for index, label in enumerate(labels):
        for t in range(T):
            if label in disjoint[t]:
                own[t].append(index)
            elif label in blurry[t]:
                mixed[t].append(index)
    M = m * sum(len(part) for part in mixed) // 100
    if M:
        at = cuts(M)
        size = [at[t + 1] - at[t] for t in range(T)]
        pool = []
        for t in range(T):
            pool += mixed[t][: size[t]]
            mixed[t] = mixed[t][size[t] :]
        pool = [pool[i] for i in torch.randperm(len(pool), generator=g).tolist()]
        for t in range(T):
            mixed[t] += pool[: size[t]]
            pool = pool[size[t] :]
    tasks = [own[t] + mixed[t] for t in range(T)]
    return [[task[i] for i in torch.randperm(len(task), generator=g).tolist()] for task in tasks]


@pytest.mark.parametrize("seed", GOLDEN)
def test_golden_class_splits(seed):
    pytest.importorskip("torch")
    disjoint, blurry = divide_classes(TorchDraw(seed), np.arange(100), 5, 0.5)
    assert ([len(part) for part in disjoint], [len(part) for part in blurry]) == GOLDEN[seed]
    # Without strays, the phases of the stream itself show the sums.
    stream = si_blurry(np.repeat(np.arange(100), 2), seed=seed, blurry=0.0, faithful=True)
    assert [len(phase.classes) for phase in stream.phases] == np.sum(GOLDEN[seed], axis=0).tolist()


@settings(max_examples=60, deadline=None)
@given(
    n_classes=st.integers(1, 24),
    per_class=st.integers(1, 12),
    T=st.integers(1, 6),
    n=st.integers(0, 100),
    m=st.integers(0, 100),
    seed=st.integers(0, 2**40),
    mixed=st.booleans(),
)
def test_faithful_is_the_public_code(n_classes, per_class, T, n, m, seed, mixed):
    pytest.importorskip("torch")
    T = min(T, n_classes)
    labels = np.repeat(np.arange(n_classes), per_class)
    if mixed:
        labels = np.random.default_rng(0).permutation(labels)
    stream = si_blurry(labels, seed=seed, phases=T, disjoint=n / 100, blurry=m / 100, faithful=True)
    expected = public_si_blurry(labels, n_classes, T, n, m, seed)
    assert [phase.train.tolist() for phase in stream.phases] == expected


def test_torch_is_named_where_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    labels = np.repeat(np.arange(10), 3)
    with pytest.raises(ImportError, match=r"pip install 'aircl\[torch\]'"):
        si_blurry(labels, faithful=True)
    assert si_blurry(labels).total == 30


def home(stream):
    """Return the phase that has most samples of each class, and how many are elsewhere."""
    counts = stream.counts()
    return counts.argmax(axis=0), counts.sum(axis=0) - counts.max(axis=0)


@pytest.mark.parametrize("seed", range(5))
def test_default_shares_and_strays(seed):
    strays = home(si_blurry(np.repeat(np.arange(100), 50), seed=seed))[1]
    assert np.count_nonzero(strays == 0) >= 50
    assert 0 < strays.sum() <= 0.1 * 50 * 50


def test_the_paper_has_the_shares_the_other_way_round():
    labels = np.repeat(np.arange(100), 20)
    swapped = si_blurry_paper(labels, seed=3)
    expected = si_blurry(labels, seed=3, disjoint=0.1, blurry=0.5)
    assert [p.train.tolist() for p in swapped.phases] == [p.train.tolist() for p in expected.phases]


def test_only_the_default_takes_strays_at_random_from_sorted_data():
    pytest.importorskip("torch")
    labels = np.repeat(np.arange(100), 50)

    def partly_strayed(**options):
        strays = [home(si_blurry(labels, seed=seed, **options))[1] for seed in range(1, 4)]
        return np.count_nonzero(strays)

    assert partly_strayed() > 2 * partly_strayed(faithful=True)


def test_remainders_are_reported():
    labels = np.repeat(np.arange(13), 4)
    for name in ("si-blurry", "i-blurry"):
        stream = make_stream(name, labels, disjoint=0.5)  # 6 -> 5 disjoint, 8 -> 5 blurry
        assert len(stream.classes) == 10
        assert sorted([*stream.classes, *stream.dropped_classes]) == list(range(13))
        assert stream.total == 40


def test_phases_may_be_empty():
    labels = np.arange(10)
    streams = [si_blurry(labels, seed=seed) for seed in range(40)]
    empty = [phase for stream in streams for phase in stream.phases if not len(phase.train)]
    assert empty
    for phase in empty:
        assert (phase.train.dtype, phase.classes.size, phase.new_classes.size) == (np.intp, 0, 0)
    assert all(stream.total == 10 for stream in streams)


@settings(max_examples=40, deadline=None)
@given(
    n_classes=st.integers(4, 30),
    per_class=st.integers(1, 30),
    phases=st.integers(1, 4),
    disjoint=st.integers(0, 100),
    blurry=st.integers(0, 100),
    seed=st.integers(0, 99),
)
def test_i_blurry_has_equal_slices_and_parts(n_classes, per_class, phases, disjoint, blurry, seed):
    labels = np.repeat(np.arange(n_classes), per_class)
    stream = i_blurry(labels, seed=seed, phases=phases, disjoint=disjoint / 100, blurry=blurry / 100)
    n_disjoint = n_classes * disjoint // 100 // phases * phases
    n_blurry = (n_classes - n_disjoint) // phases * phases
    assert len(stream.classes) == n_disjoint + n_blurry
    sizes = [len(phase.train) for phase in stream.phases]
    assert max(sizes) - min(sizes) <= 1
    pooled = n_blurry // phases * per_class * blurry // 100 * phases
    assert home(stream)[1].sum() <= pooled
    if blurry == 0:
        assert [len(phase.classes) for phase in stream.phases] == [(n_disjoint + n_blurry) // phases] * phases


def test_i_blurry_50_10():
    stream = i_blurry(np.repeat(np.arange(100), 500), seed=1)
    where, strays = home(stream)
    blurry = strays > 0
    assert np.count_nonzero(blurry) == 50
    np.testing.assert_array_equal(np.bincount(where[blurry]), [10] * 5)
    np.testing.assert_array_equal(np.bincount(where[~blurry]), [10] * 5)
    # 10 % are dealt anew, a fifth of them to where they come from.
    assert abs(strays.sum() / (50 * 500) - 0.1 * 4 / 5) < 0.005
    assert [len(phase.train) for phase in stream.phases] == [10000] * 5


@settings(max_examples=40, deadline=None)
@given(
    available=st.lists(st.integers(1, 25), min_size=1, max_size=15),
    phases=st.integers(1, 8),
    disjoint=st.integers(0, 100),
    seed=st.integers(0, 99),
)
def test_blurry_m_proportions(available, phases, disjoint, seed):
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(len(available)), available))
    counts = blurry_m(labels, seed=seed, phases=phases, disjoint=disjoint / 100).counts()
    np.testing.assert_array_equal(counts.sum(axis=0), available)
    n_disjoint = len(available) * disjoint // 100
    spread = (counts.max(axis=0) - counts.min(axis=0)) <= 1  # dealt evenly over all phases
    alone = np.count_nonzero(counts, axis=0) == 1
    assert np.all(spread | alone)
    assert np.count_nonzero(~spread) <= n_disjoint <= np.count_nonzero(alone)


def test_blurry_m_deals_disjoint_classes_evenly():
    stream = blurry_m(np.repeat(np.arange(22), 10), phases=5, disjoint=0.5)
    counts = stream.counts()
    alone = np.count_nonzero(counts, axis=0) == 1
    assert np.count_nonzero(alone) == 11
    assert sorted(np.bincount(counts[:, alone].argmax(axis=0))) == [2, 2, 2, 2, 3]
    np.testing.assert_array_equal(counts[:, ~alone], 2)
