"""Which samples stay: the policies of memories, by simulation and against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

torch = pytest.importorskip("torch")

from aircl.methods.gradient import (  # noqa: E402
    ClassBalancingReservoir,
    DiverseMemory,
    ImportanceMemory,
    PartitioningReservoir,
    balanced_places,
    fair_shares,
    take,
)


def samples(labels, first=0):
    """Rows whose input is their number in the stream."""
    labels = torch.as_tensor(np.asarray(labels, np.int64))
    return {"inputs": torch.arange(first, first + len(labels), dtype=torch.float32)[:, None], "labels": labels}


def fed(memory, labels, seed=0, batch=7):
    generator, rows = torch.Generator().manual_seed(seed), samples(labels)
    for places in torch.arange(len(labels)).split(batch):
        memory.add(take(rows, places), generator)
    return memory


def held(memory):
    return memory.rows["inputs"][:, 0].long().numpy()


def random_streams(n_streams, seed=0):
    """Streams of several classes of very different sizes, in blocks, mixed, or in between."""
    rng = np.random.default_rng(seed)
    for number in range(n_streams):
        sizes = rng.integers(1, [5, 30, 90, 200][number % 4], rng.integers(1, 9))
        labels = np.repeat(rng.permutation(len(sizes)), sizes)
        if number % 3:
            keys = np.arange(len(labels)) / len(labels) + (number % 3 - 1) * rng.random(len(labels))
            labels = labels[np.argsort(keys, kind="stable")]
        yield labels, int(rng.integers(1, 60))


# -- all policies --
@pytest.mark.parametrize(
    "make",
    [
        ClassBalancingReservoir,
        PartitioningReservoir,
        lambda size: ImportanceMemory(size, lambda rows: rows["inputs"][:, 0]),
        lambda size: DiverseMemory(size, lambda rows: directions(rows)),
    ],
    ids=["cbrs", "prs", "clib", "gss"],
)
def test_a_memory_is_bounded_and_whole_and_goes_on_from_its_state(make):
    labels = np.random.default_rng(0).integers(0, 5, 150) ** 2
    memory = fed(make(40), labels[:30])
    assert held(memory).tolist() == list(range(30))  # all, while there is room
    whole, stopped = fed(make(40), labels[:80]), make(40)
    state = {**whole.get_state(), "rows": {name: tensor.clone() for name, tensor in whole.rows.items()}}
    stopped.set_state(state)
    generators = [torch.Generator().manual_seed(9) for _ in range(2)]
    for one, generator in zip((whole, stopped), generators, strict=True):
        one.add(samples(labels[80:], 80), generator)
        assert len(one) == 40
        np.testing.assert_array_equal(one.rows["labels"], labels[held(one)])  # inputs and labels stay together
        assert len(set(held(one))) == 40
        assert +one.held == {label: n for label, n in enumerate(np.bincount(one.rows["labels"])) if n}
        assert sum(one.seen.values()) == 150
    np.testing.assert_array_equal(held(whole), held(stopped))
    with_slots = whole.draw(9, generators[0])
    np.testing.assert_array_equal(held(whole)[with_slots["slot"]], with_slots["inputs"][:, 0])


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(0, 90))
@settings(max_examples=30, deadline=None)
def test_a_balanced_draw_has_as_many_of_one_class_as_of_another(sizes, n):
    labels = torch.from_numpy(np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)) * 3, sizes)))
    places = balanced_places(labels, n, torch.Generator().manual_seed(0))
    counts = np.bincount(labels[places], minlength=3 * len(sizes))[::3][: len(sizes)]
    assert counts.sum() == n
    assert np.ptp(counts) <= 1


def test_within_a_class_a_balanced_draw_is_uniform():
    labels, drawn = torch.tensor([0] * 4 + [1] * 16), np.zeros(20)
    for seed in range(500):
        np.add.at(drawn, balanced_places(labels, 8, torch.Generator().manual_seed(seed)).numpy(), 1)
    for own, expected in ((slice(0, 4), 500), (slice(4, 20), 125)):
        assert 1e-3 < chi2.sf(((drawn[own] - expected) ** 2 / expected).sum(), own.stop - own.start - 1) < 0.999


# -- CBRS --
def test_cbrs_shares_the_memory_fairly_whatever_the_stream():
    for number, (labels, size) in enumerate(random_streams(400)):
        memory = fed(ClassBalancingReservoir(size), labels, number)
        counts = np.bincount(labels)
        fair = fair_shares({label: int(n) for label, n in enumerate(counts) if n}, size)
        assert all(abs(memory.held[label] - share) <= 1 for label, share in fair.items())
        for label in set(fair) - memory.full:  # it never was largest
            assert memory.held[label] == counts[label] or len(labels) <= size


def test_cbrs_is_the_published_algorithm():
    """Sample by sample, with lists: another program for the same draws."""
    rng = np.random.default_rng(1)
    labels = rng.choice(6, 400, p=[0.5, 0.25, 0.12, 0.06, 0.05, 0.02])
    memory = fed(ClassBalancingReservoir(25), labels, batch=13)
    generator, slots, full, seen = torch.Generator().manual_seed(0), [], set(), dict.fromkeys(range(6), 0)
    for start in range(0, 400, 13):
        part = labels[start : start + 13]
        for i, draws in enumerate(torch.rand(len(part), 3, generator=generator, dtype=torch.float64).tolist(), start):
            c = labels[i]
            seen[c] += 1
            if len(slots) < 25:
                slots.append(i)
            elif c not in full:
                sizes = {k: sum(labels[j] == k for j in slots) for k in range(6)}
                largest = [k for k in range(6) if sizes[k] == max(sizes.values())]
                k = largest[int(draws[0] * len(largest))]
                of_k = [s for s, j in enumerate(slots) if labels[j] == k]
                slots[of_k[int(draws[1] * len(of_k))]] = i
            else:
                own = [s for s, j in enumerate(slots) if labels[j] == c]
                if draws[0] < len(own) / seen[c]:
                    slots[own[int(draws[1] * len(own))]] = i
            if len(slots) == 25:
                sizes = {k: sum(labels[j] == k for j in slots) for k in range(6)}
                full |= {k for k in range(6) if sizes[k] == max(sizes.values())}
    assert held(memory).tolist() == slots
    assert memory.full == full


@pytest.mark.parametrize(("labels", "size"), [([0] * 40, 10), ([0] * 25 + [1] * 15 + [0] * 15, 16)])
def test_within_a_full_class_of_cbrs_each_sample_is_held_equally_often(labels, size):
    """One class only: a reservoir in law. Two classes: each holds its part of the memory as a reservoir would."""
    labels, times, runs = np.array(labels), np.zeros(len(labels)), 700
    for seed in range(runs):
        times[held(fed(ClassBalancingReservoir(size), labels, seed))] += 1
    for label in np.unique(labels):
        own = times[labels == label]
        share = own.mean() / runs
        statistic = (len(own) - 1) / len(own) * ((own - own.mean()) ** 2).sum() / (runs * share * (1 - share))
        assert 1e-3 < chi2.sf(statistic, len(own) - 1) < 0.999
    assert times.sum() == runs * size


# -- PRS --
def test_equal_targets_of_prs_are_nearly_fair():
    for number, (labels, size) in enumerate(random_streams(40, seed=1)):
        labels = np.random.default_rng(number).permutation(labels)
        memory = fed(PartitioningReservoir(size), labels, number)
        fair = fair_shares({label: int(n) for label, n in enumerate(np.bincount(labels)) if n}, size)
        assert max(abs(memory.held[label] - share) for label, share in fair.items()) <= 4


def test_targets_in_proportion_make_prs_like_the_stream():
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(3), [1200, 600, 200]))
    counts = np.mean([np.bincount(fed(PartitioningReservoir(100, 1.0), labels, s).rows["labels"]) for s in range(5)], 0)
    np.testing.assert_allclose(counts, [60, 30, 10], atol=2)
    assert PartitioningReservoir(100, 1.0).targets({0: 6, 1: 3, 2: 1}) == pytest.approx({0: 60, 1: 30, 2: 10})
    assert PartitioningReservoir(90).targets({0: 6, 1: 3, 2: 1}) == pytest.approx({0: 30, 1: 30, 2: 30})


def test_prs_takes_and_evicts_with_the_published_probabilities():
    memory = fed(PartitioningReservoir(20), [0] * 13 + [1] * 7 + [0] * 37)
    memory.rows["labels"][:] = torch.tensor([0] * 13 + [1] * 7)
    memory.held.update({0: 13 - memory.held[0], 1: 7 - memory.held[1]})
    memory._labels[:] = memory.rows["labels"]
    memory.seen[0] += 1  # as `add` does before it asks
    grid = (np.arange(400) + 0.5) / 400
    taken = [memory.choose(0, [u, 0.5, 0.5]) is not None for u in grid]
    assert np.mean(taken) == pytest.approx(min(1, 20 * 0.5 / 50), abs=0.003)  # M q_0 / n_0, 50 samples came before
    slots = [memory.choose(0, [0.0, u, 0.5]) for u in grid]
    softmax = np.exp([13 - 10, 7 - 10.0])
    assert np.mean([slot < 13 for slot in slots]) == pytest.approx(softmax[0] / softmax.sum(), abs=0.003)


@pytest.mark.parametrize("rho", [0.0, -0.5])
def test_prs_is_the_published_algorithm(rho):
    """Sample by sample, with lists: another program for the same draws."""
    labels = np.random.default_rng(2).choice(5, 300, p=[0.55, 0.25, 0.12, 0.06, 0.02])
    memory = fed(PartitioningReservoir(22, rho), labels, batch=13)
    generator, slots, seen = torch.Generator().manual_seed(0), [], [0] * 5
    for start in range(0, 300, 13):
        part = labels[start : start + 13]
        for i, draws in enumerate(torch.rand(len(part), 3, generator=generator, dtype=torch.float64).tolist(), start):
            c, counts = labels[i], list(seen)
            seen[c] += 1
            if len(slots) < 22:
                slots.append(i)
                continue
            if not counts[c]:  # the first of its class: its target is that of one sample
                counts[c] = 1
            shares = np.array([n**rho if n else 0.0 for n in counts])
            shares /= shares.sum()
            if seen[c] > 1 and draws[0] >= min(1, 22 * shares[c] / counts[c]):
                continue
            sizes = np.array([sum(labels[j] == k for j in slots) for k in range(5)])
            chances = np.where(sizes > 0, np.exp(sizes - shares * sizes.sum()), 0.0)
            k = int(np.flatnonzero(draws[1] * chances.sum() < chances.cumsum())[0])
            of_k = [s for s, j in enumerate(slots) if labels[j] == k]
            slots[of_k[int(draws[2] * len(of_k))]] = i
    assert held(memory).tolist() == slots
    assert len(set(labels[slots])) == 5


# -- CLIB --
def test_clib_keeps_classes_balanced_and_drops_the_least_important():
    for number, (labels, size) in enumerate(random_streams(60, seed=2)):
        memory = fed(ImportanceMemory(size, lambda rows: rows["inputs"][:, 0]), labels, number)
        fair = fair_shares({label: int(n) for label, n in enumerate(np.bincount(labels)) if n}, size)
        assert all(abs(memory.held[label] - share) <= 1 for label, share in fair.items())
    memory = fed(ImportanceMemory(6, lambda rows: rows["inputs"][:, 0]), [0, 0, 0, 0, 1, 1])
    memory.importance[:] = [0.3, 0.1, 0.4, 0.2, 0.0, 0.05]
    memory.add(samples([1], 6), torch.Generator())
    assert held(memory).tolist() == [0, 6, 2, 3, 4, 5]  # of the largest class, that of least importance
    assert memory.importance[1] == pytest.approx(0.025)  # the mean of its class
    memory.add(samples([2], 7), torch.Generator())
    (gone,) = {3, 4} - set(held(memory))  # the least of one of the two largest classes
    others = 0.3 + 0.4 + 0.05 + 0.025 + (0.2 if gone == 4 else 0.0)
    assert memory.importance[held(memory) == 7] == pytest.approx([others / 5])  # there is none of its class


def test_the_importance_of_clib_is_a_moving_average_of_the_fall_of_the_loss():
    """H <- H + 0.1 (d - mean H of the batch), d of the samples that were measured before."""
    current = {}
    memory = ImportanceMemory(8, lambda rows: torch.tensor([current[int(i)] for i in rows["inputs"][:, 0]]))
    memory.add(samples([0, 0, 0, 1, 1]), torch.Generator())
    rng, expected, before = np.random.default_rng(0), np.zeros(8), {}
    for step in range(6):
        if step == 3:
            memory.add(samples([1, 2], 5), torch.Generator())
            expected[5], expected[6] = expected[[3, 4]].mean(), 0.0
        n = len(memory)
        current = dict(enumerate(rng.random(n).astype(np.float32)))
        batch = rng.permutation(n)[:3]
        memory.follow({"labels": torch.zeros(5), "slot": torch.tensor([-1, -1, *batch])})
        if before:
            fall = np.mean([before[i] - current[i] for i in before])
            expected[batch] += 0.1 * (fall - expected[batch].mean())
        before = current
        np.testing.assert_allclose(memory.importance, expected, atol=1e-6)
    memory.importance[:] = 1.0
    for _ in range(200):
        memory.follow({"labels": torch.zeros(7), "slot": torch.arange(7)})
    assert abs(memory.importance[:7]).max() < 1e-6  # a constant loss


# -- GSS --
def directions(rows):
    """Factors of gradients at length 1, the same for samples of the same number."""
    angles = rows["inputs"][:, :1] * 2.4
    return torch.cat([angles.cos(), angles.sin()], 1), torch.ones(len(angles), 1)


def test_gss_refuses_a_duplicate_and_takes_what_is_unlike():
    memory = fed(DiverseMemory(3, directions), [0, 1, 2])
    assert memory.scores[0] == 0.1  # there was nothing to compare it with
    cosines = [[np.cos(2.4 * (i - j)) for j in range(i)] for i in (1, 2)]
    np.testing.assert_allclose(memory.scores[1:], [1 + max(c) for c in cosines], atol=1e-6)
    for seed in range(20):
        memory.add({"inputs": torch.tensor([[1.0]]), "labels": torch.tensor([1])}, torch.Generator().manual_seed(seed))
        assert memory._score == pytest.approx(2)
        assert held(memory).tolist() == [0, 1, 2]


def test_gss_is_the_published_algorithm():
    labels = np.random.default_rng(0).integers(0, 4, 60)
    memory = fed(DiverseMemory(9, directions, compared=4), labels, batch=11)
    generator, slots, scores = torch.Generator().manual_seed(0), [], []
    for start in range(0, 60, 11):
        n = len(labels[start : start + 11])
        compared = torch.rand(n, 4, generator=generator, dtype=torch.float64).tolist()
        draws = torch.rand(n, 3, generator=generator, dtype=torch.float64).tolist()
        for i in range(n):
            others = [slots[int(u * len(slots))] for u in compared[i]] if slots else []
            s = 1 + max(np.cos(2.4 * (start + i - j)) for j in others) if others else 0.1
            if len(slots) < 9:
                slots.append(start + i)
                scores.append(s)
            elif s < 1:
                total, k = 0.0, 0
                while (total := total + scores[k]) <= draws[i][0] * sum(scores):
                    k += 1
                if draws[i][1] < scores[k] / (scores[k] + s):
                    slots[k], scores[k] = start + i, s
    assert held(memory).tolist() == slots
    np.testing.assert_allclose(memory.scores, scores, atol=1e-5)
