"""Reservoir, balanced memory and exemplars: what stays, and what does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

torch = pytest.importorskip("torch")

from aircl.methods.gradient import (  # noqa: E402
    BalancedMemory,
    Exemplars,
    Reservoir,
    equidistant,
    fair_shares,
    herd,
    join,
    take,
)


def samples(labels, first=0, **more):
    """Rows whose input is their number in the stream."""
    labels = torch.as_tensor(labels)
    inputs = torch.arange(first, first + len(labels), dtype=torch.float32)[:, None].repeat(1, 3)
    return {"inputs": inputs, "labels": labels, **more}


# -- reservoir --
def test_every_sample_of_the_stream_is_held_equally_often():
    n, size, runs = 40, 10, 3000
    stream = samples(torch.arange(n))
    held = np.zeros(n)
    for seed in range(runs):
        generator = torch.Generator().manual_seed(seed)
        memory = Reservoir(size)
        for places in torch.arange(n).split(7):
            memory.add(take(stream, places), generator)
        assert len(memory) == size
        held[memory.rows["labels"].numpy()] += 1
    share = size / n
    # Each run holds `size` of n without replacement, so one degree of freedom is gone.
    statistic = (n - 1) / n * np.sum((held - runs * share) ** 2) / (runs * share * (1 - share))
    assert chi2.cdf(statistic, n - 1) < 0.999
    assert chi2.sf(statistic, n - 1) < 0.999  # too even would be no chance either


def test_inputs_and_labels_stay_together():
    memory, generator = Reservoir(25), torch.Generator().manual_seed(0)
    for first in range(0, 300, 11):
        memory.add(samples(torch.arange(first, first + 11), first), generator)
    torch.testing.assert_close(memory.rows["inputs"][:, 0].long(), memory.rows["labels"])
    assert len(set(memory.rows["labels"].tolist())) == 25


def test_a_reservoir_larger_than_the_stream_has_all_of_it():
    memory, generator = Reservoir(100), torch.Generator().manual_seed(0)
    assert memory.draw(5, generator) == {}
    for first in (0, 4):
        memory.add(samples([first] * 4, first), generator)
    assert memory.rows["inputs"][:, 0].tolist() == list(range(8))
    drawn = memory.draw(32, generator)
    assert sorted(drawn["inputs"][:, 0].tolist()) == list(range(8))  # none twice


def test_a_draw_is_a_fresh_one_and_leaves_the_memory_alone():
    memory, generator = Reservoir(100), torch.Generator().manual_seed(0)
    memory.add(samples(range(100)), generator)
    first, second = (memory.draw(10, generator)["labels"].tolist() for _ in range(2))
    assert first != second
    assert len({*first}) == 10
    assert memory.rows["labels"].tolist() == list(range(100))


# -- balanced memory --
@given(st.lists(st.integers(1, 60), min_size=1, max_size=12), st.integers(1, 200))
def test_shares_are_fair(counts, size):
    shares = fair_shares(dict(enumerate(counts)), size)
    assert sum(shares.values()) == min(size, sum(counts))
    short = [share for label, share in shares.items() if share < counts[label]]
    assert all(share <= counts[label] for label, share in shares.items())
    if short:
        assert max(shares.values()) <= min(short) + 1


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=40), st.integers(1, 40))
def test_each_pick_is_the_most_uncertain_of_its_stretch(values, n):
    values, n = torch.tensor(values), min(n, len(values))
    picks = equidistant(values, n)
    assert len(set(picks.tolist())) == n
    assert values[picks].max() == values.max()
    assert values[picks].mean() >= values.mean() - 1e-6


def test_the_memory_is_balanced_to_within_one_sample_whatever_the_stream():
    memory, rng, generator = BalancedMemory(31), np.random.default_rng(0), torch.Generator()
    labels = rng.permutation(np.repeat(np.arange(5), [300, 100, 40, 20, 3]))
    for start in range(0, len(labels), 8):
        part = labels[start : start + 8]
        memory.add(samples(part, start, uncertainty=torch.from_numpy(rng.random(len(part)))), generator)
        assert len(memory) == min(31, start + len(part))
    counts = np.bincount(memory.rows["labels"])
    assert counts[4] == 3  # the small class keeps all it has
    assert counts[:4].sum() == 28
    assert np.ptp(counts[:4]) <= 1


# -- herding --
@pytest.mark.parametrize("label", range(10))
def test_herding_approaches_the_mean_of_a_class_faster_than_chance(label, digits):
    features = torch.from_numpy(digits.features[digits.labels == label])
    mean, rng = features.mean(0), np.random.default_rng(0)

    def distances(order):
        steps = torch.arange(1, 21)[:, None]
        return (features[order][:20].cumsum(0) / steps - mean).norm(dim=1).numpy()

    herded = distances(herd(features, mean, 20))
    random = np.mean([distances(torch.from_numpy(rng.permutation(len(features)))) for _ in range(30)], axis=0)
    assert (herded < random).all()
    assert herded[5:].mean() < 0.5 * random[5:].mean()


def test_a_quota_larger_than_the_class_is_the_whole_class():
    features = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    assert sorted(herd(features, features.mean(0), 20).tolist()) == [0, 1, 2]
    assert len(herd(features[:0], features.mean(0), 20)) == 0


def test_exemplars_of_classes_that_come_back_are_chosen_anew_and_others_stay():
    exemplars = Exemplars(4, lambda inputs: inputs)
    generator = torch.Generator().manual_seed(0)
    first = {"inputs": torch.rand(12, 6, generator=generator), "labels": torch.tensor([0] * 10 + [1, 2])}
    exemplars.add(first, generator)
    assert exemplars.rows["labels"].bincount().tolist() == [4, 1, 1]
    before = take(exemplars.rows, torch.nonzero(exemplars.rows["labels"] == 0).flatten())
    again = {"inputs": torch.rand(9, 6, generator=generator), "labels": torch.tensor([1] * 9)}
    exemplars.add(again, generator)
    assert exemplars.rows["labels"].bincount().tolist() == [4, 4, 1]
    stayed = take(exemplars.rows, torch.nonzero(exemplars.rows["labels"] == 0).flatten())
    torch.testing.assert_close(stayed, before)
    classes, means = exemplars.means()
    assert classes == [0, 1, 2]
    torch.testing.assert_close(means.norm(dim=1), torch.ones(3))


def test_joined_rows_have_what_all_parts_have():
    joined = join([samples([1], uncertainty=torch.ones(1)), {}, samples([2, 3], 1)])
    assert set(joined) == {"inputs", "labels"}
    assert joined["labels"].tolist() == [1, 2, 3]
