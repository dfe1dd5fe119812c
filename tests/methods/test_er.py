from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("online", [False, True])
def test_it_beats_fine_tuning_by_far(online, take_course):
    settings = {"online": online} | ({} if online else {"epochs": 5})
    replay = take_course("er", memory=200, **settings)
    for compare in ["exposed"] if online else ["phase", "exposed"]:
        baseline = take_course("fine-tuning", compare=compare, **settings)
        assert replay.last > baseline.last + 0.15
    assert replay.last > 0.75
    assert replay.method.samples_kept == 200


@pytest.mark.parametrize("online", [False, True])
def test_more_memory_is_better(online, take_course):
    small, large = (take_course("er", memory=size, online=online, epochs=5) for size in (10, 300))
    assert large.last > small.last + 0.1


def test_every_step_has_the_batch_and_fresh_samples_of_the_memory(digits, make):
    method = make("er", memory=100, online=True, replay=32, updates=3)
    rows = np.arange(160)
    method.learn(digits.features[rows], digits.labels[rows])
    steps = []
    loss = method.loss
    method.loss = lambda batch: steps.append(batch) or loss(batch)
    memory = method.memory.rows["inputs"].clone()
    method.learn(digits.features[160:176], digits.labels[160:176])
    assert [len(batch["labels"]) for batch in steps] == [48, 48, 48]
    replayed = [batch["inputs"][16:] for batch in steps]
    assert not torch.equal(replayed[0], replayed[1])
    for batch in steps:
        assert torch.equal(batch["inputs"][:16], torch.from_numpy(digits.features[160:176]))
        # Labels are those of the samples, as the stream gave them.
        for sample, label in zip(batch["inputs"], batch["labels"], strict=True):
            (place,) = np.flatnonzero((digits.features == sample.numpy()).all(axis=1))[:1]
            assert digits.labels[place] == label
    known = {row.numpy().tobytes() for row in memory}
    assert {row.numpy().tobytes() for row in replayed[0]} <= known


def test_a_phase_is_replayed_only_when_it_is_over(digits, make):
    method = make("er", memory=50, epochs=1)
    first, second, *_ = digits.stream(5).phases
    digits.teach(method, first)
    held = set(method.memory.rows["labels"].tolist())
    assert held == set(first.classes)
    method.learn(digits.features[second.train], digits.labels[second.train])
    assert method.samples_kept == 50
    assert set(method.memory.rows["labels"].tolist()) == held
