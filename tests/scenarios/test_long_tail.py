from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aircl.scenarios import long_tail
from aircl.scenarios.long_tail import COUNTS, ORDERS

CIFAR = np.repeat(np.arange(100), 500)


def sizes(stream):
    return [len(phase.train) for phase in stream.phases]


@pytest.mark.parametrize(
    ("counts", "golden", "ones", "H"),
    [
        ("exp", [3828, 2040, 1086, 580, 306, 160, 83, 42, 20, 10], 12, 4.82),
        ("exp_max", [5000, 2660, 1420, 760, 400, 210, 110, 60, 30, 10], 10, 5.92),
    ],
)
def test_golden_cifar_100(counts, golden, ones, H):
    stream = long_tail(CIFAR, counts=counts, ratio=1 / 500)
    assert sizes(stream) == golden
    assert stream.total == {"exp": 8155, "exp_max": 10660}[counts]
    per_class = stream.counts().sum(axis=0)
    assert np.count_nonzero(per_class == 1) == ones
    assert round(100 / (1 / per_class).sum(), 2) == H
    assert sizes(long_tail(CIFAR, counts=counts, order="ascending")) == golden[::-1]
    assert sorted(sizes(long_tail(CIFAR, counts=counts, order="shuffled")), reverse=True) == golden


@pytest.mark.parametrize(("counts", "total"), [("exp", 4909), ("exp_max", 6140)])
def test_golden_imagenet_r_before_clamping(counts, total):
    stream = long_tail(np.repeat(np.arange(200), 120), counts=counts, ratio=1 / 120)
    assert stream.total == total
    assert [len(phase.classes) for phase in stream.phases] == [20] * 10


def test_step_and_natural():
    step = long_tail(np.repeat(np.arange(5), 40), counts="step", ratio=0.1, phases=1)
    assert step.counts().tolist() == [[40, 40, 40, 4, 4]]
    natural = long_tail(np.repeat(np.arange(4), [2, 9, 1, 9]), counts="natural", phases=4)
    assert [phase.classes.tolist() for phase in natural.phases] == [[1], [3], [0], [2]]
    assert sizes(natural) == [9, 9, 2, 1]


def test_the_samples_are_those_of_the_public_code():
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 30))
    rng, expected = np.random.RandomState(0), []
    for label in range(10):
        own = np.flatnonzero(labels == label)
        rng.shuffle(own)
        expected += own[: max(1, int(30 * (1 / 30) ** (label / 9)))].tolist()
    stream = long_tail(labels, counts="exp", ratio=1 / 30, phases=5, seed=7)
    assert sorted(np.concatenate([phase.train for phase in stream.phases])) == sorted(expected)


@settings(max_examples=60, deadline=None)
@given(
    available=st.lists(st.integers(1, 40), min_size=1, max_size=15),
    phases=st.integers(1, 15),
    kind=st.sampled_from(COUNTS),
    ratio=st.floats(0.001, 1),
)
def test_counts_as_specified_and_clamped_to_what_a_class_has(available, phases, kind, ratio):
    n_classes, phases = len(available), min(phases, len(available))
    labels = np.repeat(np.arange(n_classes), available)
    stream = long_tail(labels, counts=kind, ratio=ratio, phases=phases)
    n_max = sum(available) / n_classes
    first = {label: phase.classes[0] for phase in stream.phases for label in phase.classes}
    for label, n in enumerate(stream.counts().sum(axis=0)):
        power = {
            "exp": label / max(1, n_classes - 1),
            "exp_max": first[label] / max(1, n_classes - 1),
            "step": 0 if label < n_classes / 2 else 1,
            "natural": 0,
        }[kind]
        wanted = available[label] if kind == "natural" else max(1, math.floor(n_max * ratio**power))
        assert n == min(wanted, available[label])


@settings(max_examples=40, deadline=None)
@given(
    available=st.lists(st.integers(1, 20), min_size=2, max_size=15),
    kind=st.sampled_from(COUNTS),
    seeds=st.tuples(st.integers(0, 99), st.integers(0, 99)),
    phases=st.integers(1, 15),
)
def test_all_orders_and_seeds_have_the_same_samples(available, kind, seeds, phases):
    labels = np.repeat(np.arange(len(available)), available)
    phases = min(phases, len(available))
    streams = {
        (order, seed): long_tail(labels, counts=kind, ratio=0.05, phases=phases, order=order, seed=seed)
        for order in ORDERS
        for seed in seeds
    }
    samples = [sorted(np.concatenate([phase.train for phase in stream.phases])) for stream in streams.values()]
    assert all(others == samples[0] for others in samples)

    def groups(order):
        return [phase.classes.tolist() for phase in streams[order, seeds[0]].phases]

    assert groups("ascending") == groups("descending")[::-1]
    assert sorted(groups("shuffled")) == sorted(groups("descending"))


def test_shuffled_orders_follow_the_seed():
    def firsts(order):
        return {tuple(long_tail(CIFAR, order=order, seed=seed).phases[0].classes) for seed in range(5)}

    assert len(firsts("descending")) == 1
    assert 1 < len(firsts("shuffled")) <= 5
    assert len(firsts("shuffled-classes")) == 5


def test_exp_max_where_phases_differ_in_size():
    stream = long_tail(np.repeat(np.arange(7), 64), counts="exp_max", ratio=1 / 50, phases=3)
    assert [phase.counts.tolist() for phase in stream.phases] == [[64] * 3, [9] * 2, [2] * 2]
