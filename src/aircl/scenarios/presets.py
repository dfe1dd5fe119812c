"""The streams of the paper's two tables: what a run must do to be compared with a column of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from aircl.scenarios.scenario import make_stream
from aircl.scenarios.stream import Stream


@dataclass(frozen=True)
class Preset:
    """One column of a table of the paper.

    Attributes
    ----------
    name : str
    table : int
        1: long-tailed class-incremental learning; 2: Si-blurry.
    dataset : str
        Name of the data source.
    scenario : str
    options : mapping
        Options of the scenario.
    batch_size : int
        Samples of a batch of the stream, which is passed through once.
    buffer_width : int
        Width f of the random ReLU features.
    gamma : float or None
        The ridge of AIR, with class weights of mean 1. None: the paper searched a grid and does not say what it found.
    seeds : tuple of int
        One repetition each: of the buffer, and of whatever is random in the stream.
    evaluate_every : int or None
        Samples between evaluations, for A_auc. None: at the ends of phases only.
    column : tuple of str
        Scenario, dataset and order, as the published numbers are filed.

    Examples
    --------
    The stream of a column of table 1, for a training set of 100 classes with 500 samples each:

    >>> import numpy as np
    >>> from aircl.scenarios import PRESETS
    >>> preset = PRESETS["table1-cifar100-ascending"]
    >>> preset.buffer_width, preset.gamma, preset.phases
    (2048, 1000.0, 10)
    >>> stream = preset.make_stream(np.repeat(np.arange(100), 500), seed=1)
    >>> [len(phase.train) for phase in stream.phases]
    [10, 30, 60, 110, 210, 400, 760, 1420, 2660, 5000]
    """

    name: str
    table: int
    dataset: str
    scenario: str
    options: Mapping[str, Any]
    batch_size: int
    buffer_width: int
    gamma: float | None
    seeds: tuple[int, ...]
    evaluate_every: int | None
    column: tuple[str, str, str]

    @property
    def phases(self) -> int:
        """Number of phases."""
        return int(self.options["phases"])

    def make_stream(self, labels: npt.ArrayLike, seed: int) -> Stream:
        """Return the stream of one repetition."""
        return make_stream(self.scenario, labels, seed=seed, **self.options)


def _table_1(dataset: str, title: str, ratio: float, order: str) -> Preset:
    return Preset(
        name=f"table1-{dataset}-{order}",
        table=1,
        dataset=dataset,
        scenario="long-tail",
        options=MappingProxyType({"phases": 10, "counts": "exp_max", "ratio": ratio, "order": order}),
        batch_size=64,
        buffer_width=2048,
        gamma=1000.0,
        seeds=tuple(range(1, 8)),
        evaluate_every=None,
        column=("LT-CIL", title, order),
    )


def _table_2(dataset: str, title: str, gamma: float | None) -> Preset:
    return Preset(
        name=f"table2-{dataset}",
        table=2,
        dataset=dataset,
        scenario="si-blurry",
        options=MappingProxyType({"phases": 5, "disjoint": 0.5, "blurry": 0.1, "faithful": True}),
        batch_size=64,
        buffer_width=5000,
        gamma=gamma,
        seeds=tuple(range(1, 6)),
        evaluate_every=1000,
        column=("Si-blurry", title, ""),
    )


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        preset.name: preset
        for preset in (
            *(
                _table_1(dataset, title, ratio, order)
                for dataset, title, ratio in (
                    ("cifar100", "CIFAR-100-LT", 1 / 500),
                    ("imagenet-r", "ImageNet-R-LT", 1 / 120),
                )
                for order in ("ascending", "descending", "shuffled")
            ),
            _table_2("cifar100", "CIFAR-100", 1000.0),
            _table_2("imagenet-r", "ImageNet-R", 1000.0),
            _table_2("tiny-imagenet", "Tiny-ImageNet", None),
        )
    }
)
