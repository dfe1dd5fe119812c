from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from aircl.scenarios import PRESETS


def test_one_for_every_column_of_the_tables():
    columns = [preset.column for preset in PRESETS.values()]
    orders = ("ascending", "descending", "shuffled")
    assert columns == [
        *(("LT-CIL", "CIFAR-100-LT", order) for order in orders),
        *(("LT-CIL", "ImageNet-R-LT", order) for order in orders),
        ("Si-blurry", "CIFAR-100", ""),
        ("Si-blurry", "ImageNet-R", ""),
        ("Si-blurry", "Tiny-ImageNet", ""),
    ]
    assert all(name == preset.name for name, preset in PRESETS.items())


@pytest.mark.parametrize("name", PRESETS)
def test_protocol(name):
    preset = PRESETS[name]
    assert preset.batch_size == 64
    if preset.table == 1:
        assert (preset.phases, preset.buffer_width, preset.gamma, len(preset.seeds)) == (10, 2048, 1000, 7)
        assert preset.evaluate_every is None
        assert preset.options["ratio"] == {"cifar100": 1 / 500, "imagenet-r": 1 / 120}[preset.dataset]
    else:
        assert (preset.phases, preset.buffer_width, preset.seeds) == (5, 5000, (1, 2, 3, 4, 5))
        assert preset.evaluate_every == 1000
        assert (preset.options["disjoint"], preset.options["blurry"]) == (0.5, 0.1)
        assert preset.gamma == (None if preset.dataset == "tiny-imagenet" else 1000)


def test_totals():
    sizes = {"cifar100": (100, 500), "imagenet-r": (200, 120), "tiny-imagenet": (200, 500)}
    totals = {
        name: preset.make_stream(np.repeat(np.arange(sizes[preset.dataset][0]), sizes[preset.dataset][1]), 1).total
        for name, preset in PRESETS.items()
        if preset.table == 1 or pytest.importorskip("torch")
    }
    assert set(totals.values()) == {10660, 6140, 50000, 24000, 100000}


def test_presets_cannot_be_changed():
    preset = PRESETS["table2-cifar100"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        preset.gamma = 1.0
    with pytest.raises(TypeError):
        preset.options["phases"] = 3
