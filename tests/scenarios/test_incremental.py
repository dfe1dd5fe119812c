"""Class-, task- and domain-incremental streams."""

from __future__ import annotations

import numpy as np
import pytest

from aircl.scenarios import class_incremental, domain_incremental, task_incremental

LABELS = np.repeat(np.arange(100), 3)


def n_classes(stream):
    return [len(phase.classes) for phase in stream.phases]


@pytest.mark.parametrize(
    ("phases", "base", "expected"),
    [
        (10, 0.0, [10] * 10),
        (1, 0.0, [100]),
        (1, 1.0, [100]),
        (100, 0.0, [1] * 100),
        (3, 0.0, [34, 33, 33]),
        (6, 0.5, [50, 10, 10, 10, 10, 10]),
        (11, 0.5, [50] + [5] * 10),
        (4, 0.29, [29, 24, 24, 23]),
        (2, 0.001, [1, 99]),
    ],
)
def test_b0_and_b50(phases, base, expected):
    stream = class_incremental(LABELS, phases=phases, base=base)
    assert n_classes(stream) == expected
    assert stream.total == 300
    assert not stream.dropped_classes.size


def test_class_order():
    natural = class_incremental(LABELS, order="natural", seed=5)
    assert [phase.classes[0] for phase in natural.phases] == list(range(0, 100, 10))
    orders = {tuple(class_incremental(LABELS, seed=seed).phases[0].classes) for seed in range(4)}
    assert len(orders) == 4


def test_tasks_are_the_phases_of_class_incremental_streams():
    tasks, classes = task_incremental(LABELS, seed=2), class_incremental(LABELS, seed=2)
    assert (tasks.scenario, classes.scenario) == ("task-incremental", "cil")
    for task, phase in zip(tasks.phases, classes.phases, strict=True):
        np.testing.assert_array_equal(task.train, phase.train)
        np.testing.assert_array_equal(task.classes, task.new_classes)


def test_one_phase_a_domain():
    domains = np.arange(300) % 4 * 2
    stream = domain_incremental(LABELS, domains=domains)
    assert [set(domains[phase.train]) for phase in stream.phases] == [{0}, {2}, {4}, {6}]
    assert [len(phase.train) for phase in stream.phases] == [75] * 4
    shuffled = [domain_incremental(LABELS, domains=domains, order="shuffled", seed=seed) for seed in range(5)]
    assert len({tuple(domains[phase.train[0]] for phase in each.phases) for each in shuffled}) > 1
