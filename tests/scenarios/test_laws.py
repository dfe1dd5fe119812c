"""What holds for every scenario."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aircl import scenarios
from aircl.scenarios import SCENARIOS, Stream, describe_scenario, list_scenarios, make_stream

NAMES = sorted(SCENARIOS)
DISJOINT = ["cil", "long-tail", "task-incremental"]
KEEPING_ALL = ["cil", "task-incremental", "domain-incremental", "blurry-m"]
DROPPING = ["si-blurry", "si-blurry-paper", "i-blurry"]


@st.composite
def training_sets(draw):
    """Labels with gaps, classes of 1 to 12 samples, in any order; and domains."""
    sizes = draw(st.lists(st.integers(1, 12), min_size=2, max_size=12))
    names = np.array(draw(st.permutations(range(0, 2 * len(sizes), 2)))) + draw(st.integers(0, 3))
    labels = np.random.default_rng(draw(st.integers(0, 9))).permutation(np.repeat(names, sizes))
    return labels, np.arange(len(labels)) % 3


def stream_of(name, data, seed, phases=2):
    labels, domains = data
    options = {} if name == "domain-incremental" else {"phases": phases}
    return make_stream(name, labels, seed=seed, domains=domains, **options)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=training_sets(), seed=st.integers(0, 2**32), phases=st.integers(1, 4))
def test_a_stream_is_a_partition_of_what_it_keeps(name, data, seed, phases):
    labels = data[0]
    phases = min(phases, len(np.unique(labels)))
    stream = stream_of(name, data, seed, phases)
    trains = np.concatenate([phase.train for phase in stream.phases])
    assert len(stream) == (min(3, len(labels)) if name == "domain-incremental" else phases)
    assert stream.total == len(trains) == len(np.unique(trains))
    assert set(labels[trains]) == set(stream.classes) == set(labels) - set(stream.dropped_classes)
    if name in KEEPING_ALL:
        assert stream.total == len(labels)
    if name in DROPPING:
        kept = labels[~np.isin(labels, stream.dropped_classes)]
        np.testing.assert_array_equal(np.sort(labels[trains]), np.sort(kept))
        assert len(stream.dropped_classes) == len(np.unique(labels)) % phases
    else:
        assert not len(stream.dropped_classes)
    if name in DISJOINT:
        assert sum(len(phase.classes) for phase in stream.phases) == len(stream.classes)
        sizes = [len(phase.classes) for phase in stream.phases]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=10, deadline=None)
@given(data=training_sets(), seed=st.integers(0, 99))
def test_phases_say_what_they_have(name, data, seed):
    labels = data[0]
    stream = stream_of(name, data, seed)
    exposed: set[int] = set()
    for phase, row in zip(stream.phases, stream.counts(), strict=True):
        own = labels[phase.train]
        assert phase.classes.tolist() == sorted(set(own))
        assert phase.counts.tolist() == [np.count_nonzero(own == label) for label in phase.classes]
        assert phase.new_classes.tolist() == sorted(set(own) - exposed)
        exposed |= set(own)
        assert phase.exposed.tolist() == sorted(exposed)
        np.testing.assert_array_equal(row, np.bincount(own, minlength=labels.max() + 1))


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_decides(name):
    data = np.repeat(np.arange(20), 15), np.arange(300) % 3

    def order(seed):
        return np.concatenate([phase.train for phase in stream_of(name, data, seed).phases]).tolist()

    assert order(3) == order(3)
    assert order(3) != order(4)


@pytest.mark.parametrize("name", NAMES)
def test_samples_of_a_phase_are_mixed(name):
    data = np.repeat(np.arange(20), 15), np.arange(300) % 3
    for phase in stream_of(name, data, 0).phases:
        steps = np.diff(phase.train)
        assert 0.3 < np.mean(steps > 0) < 0.7 or len(steps) < 20


@pytest.mark.parametrize("name", NAMES)
def test_no_global_generator_is_touched(name):
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    stream_of(name, (np.repeat(np.arange(6), 5), np.arange(30) % 3), 0)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_names_and_options():
    assert {info.name: list(info.options) for info in list_scenarios()} == {
        "cil": ["phases", "base", "order"],
        "long-tail": ["phases", "counts", "ratio", "order", "resample"],
        "si-blurry": ["phases", "disjoint", "blurry", "faithful"],
        "si-blurry-paper": ["phases", "disjoint", "blurry", "faithful"],
        "i-blurry": ["phases", "disjoint", "blurry"],
        "blurry-m": ["phases", "disjoint"],
        "task-incremental": ["phases", "order"],
        "domain-incremental": ["order"],
    }
    assert all(info.description.endswith(".") for info in list_scenarios())


def test_a_stream_remembers_what_was_asked_for():
    stream = make_stream("si-blurry", np.repeat(np.arange(10), 3), seed=4, blurry=0.2)
    assert stream.scenario == "si-blurry"
    assert stream.options == {"seed": 4, "phases": 5, "disjoint": 0.5, "blurry": 0.2, "faithful": False}
    again = make_stream(stream.scenario, np.repeat(np.arange(10), 3), **stream.options)
    np.testing.assert_array_equal(again.phases[0].train, stream.phases[0].train)


def test_scenarios_can_be_called_by_themselves():
    stream = scenarios.class_incremental([0, 0, 1, 1, 2], phases=3, order="natural")
    assert isinstance(stream, Stream)
    assert [phase.classes.tolist() for phase in stream.phases] == [[0], [1], [2]]
    assert "seed" in inspect.signature(scenarios.class_incremental).parameters


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("cli", {}, "no scenario 'cli'. Did you mean 'cil'"),
        ("cil", {"ratio": 1}, "cil has no option ratio. Allowed: phases, base, order, seed."),
        ("cil", {"phases": 5}, "phases=5 is more than 4: each phase needs at least one class. Ask for fewer"),
        ("cil", {"phases": 0}, "phases=0 is not an integer of at least 1"),
        ("cil", {"phases": 2.0}, "phases=2.0 is not an integer"),
        ("cil", {"phases": 2, "base": 50}, "base=50 is not a share from 0 to 1. For 50 % give 0.5."),
        ("cil", {"phases": 4, "base": 0.5}, "2 of 4 classes into the first phase, which leaves 2 for 3 more"),
        ("cil", {"phases": 1, "base": 0.5}, "leaves 2 for 0 more"),
        ("cil", {"phases": 2, "order": "ascending"}, "order='ascending' is not known. Choose one of shuffled, natural"),
        ("cil", {"phases": 2, "seed": -1}, "seed=-1 is not an integer of at least 0"),
        ("long-tail", {"phases": 2, "ratio": 500}, "ratio=500 is not above 0 and at most 1.*For 1 to 500 give 1/500"),
        ("long-tail", {"phases": 2, "ratio": 0}, "ratio=0 is not above 0"),
        ("long-tail", {"phases": 2, "counts": "pareto"}, "Choose one of exp_max, exp, step, natural"),
        ("long-tail", {"phases": 2, "order": "random"}, "descending, ascending, shuffled, shuffled-classes"),
        ("si-blurry", {"phases": 5}, "phases=5 is more than 4"),
        ("i-blurry", {"phases": 2, "disjoint": "half"}, "disjoint='half' is not a share"),
        ("i-blurry", {"phases": 2, "blurry": -0.1}, "blurry=-0.1 is not a share from 0 to 1.$"),
        ("blurry-m", {"phases": 0}, "phases=0 is not an integer"),
        ("domain-incremental", {}, "needs domains: an array with the domain of each training sample"),
        ("domain-incremental", {"domains": [0, 1]}, "there are 2 domains for 8 labels"),
        ("domain-incremental", {"phases": 2}, "has no option phases. Allowed: order, seed"),
    ],
)
def test_what_is_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        make_stream(name, np.repeat(np.arange(4), 2), **options)


@pytest.mark.parametrize("labels", [[], [[0, 1]], [0.0, 1.0], ["a", "b"], [0, -1], 3, [True, False]])
def test_labels_are_indices(labels):
    with pytest.raises(ValueError, match="labels should be a 1-d array of integers from 0"):
        make_stream("blurry-m", labels)


def test_no_two_scenarios_share_a_description():
    assert len({describe_scenario(name).description for name in NAMES}) == len(NAMES)
