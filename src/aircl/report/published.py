"""Numbers of others: the paper's two tables, files of one's own, and which of them stand beside ours."""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from aircl.report.estimates import Estimate
from aircl.report.experiments import Experiment, MethodResults
from aircl.scenarios import PRESETS, Preset
from aircl.storage.errors import InputError

# What a file of one's own may hold, and what says of which experiment.
METRICS = {"A_avg", "A_last", "A_auc", "forgetting", "head", "middle", "tail"}
_PLACES = ("dataset", "backbone", "scenario", "order")

# No underscores, digits of other scripts, NaN or infinities, all of which Python would take.
_NUMBER = re.compile(r"\s*[+-]?([0-9]{1,15}(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?\s*", re.ASCII)

# The backbones that the published numbers were measured with, by table.
BACKBONES = {1: "ViT-B/16", 2: "DeiT-S/16 (611 classes)"}

# Names of ours that a table has under another one. On the disjoint phases of table 1, "air-pooled" is AIR exactly.
_ALIASES = {1: {"airpooled": "air", "gacl": "acil", "finetune": "finetuning"}, 2: {"acil": "gacl"}}


@dataclass(frozen=True)
class PublishedMethod:
    """A row of a table of the paper, in one of its columns.

    Attributes
    ----------
    name : str
        As the paper has it.
    memory : str
        Samples kept: "0", "500", "2000", or "20/cls" for 20 a class.
    values : mapping of str to Estimate
        In per cent, by metric.
    """

    name: str
    memory: str
    values: Mapping[str, Estimate]

    @property
    def title(self) -> str:
        """The name, and the memory if there is one."""
        memory = self.memory.replace("/cls", " a class")
        return self.name if memory == "0" else f"{self.name}, {memory} kept"


@dataclass(frozen=True)
class Published:
    """A column of a table of the paper that an experiment of ours can be compared with.

    Attributes
    ----------
    preset : Preset
    methods : tuple of PublishedMethod
    differences : tuple of str
        In what our experiment differs from the published one, apart from the backbone.
    """

    preset: Preset
    methods: tuple[PublishedMethod, ...]
    differences: tuple[str, ...]

    @property
    def label(self) -> str:
        """Says whose numbers these are."""
        return f"published, {BACKBONES[self.preset.table]}"

    @property
    def source(self) -> str:
        """Says where they are from."""
        return f"table {self.preset.table} of the paper, measured with another backbone"

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that the column has."""
        known = {metric for method in self.methods for metric in method.values}
        return tuple(metric for metric in ("A_avg", "A_last", "A_auc") if metric in known)

    def beside(self, method: MethodResults) -> PublishedMethod | None:
        """Return the published row of a method of ours; None if there is none.

        A method that keeps samples is compared with the row that keeps as many.
        """
        key = _key(method.name.partition(" @ ")[0])
        key = _ALIASES[self.preset.table].get(key, key)
        same = [row for row in self.methods if key in map(_key, row.name.split("/"))]
        if len(same) < 2:
            return same[0] if same else None
        kept = method.cost("kept")
        return next((row for row in same if kept is not None and row.memory == f"{kept.mean:.0f}"), None)


@dataclass(frozen=True)
class Baseline:
    """Numbers from a file of one's own that an experiment of ours can be compared with.

    Attributes
    ----------
    label : str
        Name of the file.
    methods : tuple of PublishedMethod
    """

    label: str
    methods: tuple[PublishedMethod, ...]
    differences: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """Says where they are from."""
        return f"the file {self.label}"

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that the file has of this experiment."""
        return tuple(dict.fromkeys(metric for method in self.methods for metric in method.values))

    def beside(self, method: MethodResults) -> PublishedMethod | None:
        """Return the row of a method of the same name, whatever its case and hyphens; None if there is none."""
        name = _key(method.name.partition(" @ ")[0])  # of one of several runs
        return next((row for row in self.methods if _key(row.name) == name), None)


def read_baseline(path: Path, experiment: Experiment) -> Baseline | None:
    """Return what a file says of an experiment; None if it has nothing for it.

    Parameters
    ----------
    path : path
        CSV with a column `method` and columns of metrics in per cent, such as `A_last`; `A_last_se` is a standard
        error. Columns `dataset`, `backbone`, `scenario` and `order`, where there are some, say which experiment a row
        is of; empty cells fit all.
    experiment : Experiment
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            header, rows = list(table.fieldnames or ()), list(table)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read as a CSV file: {error}") from error
    unknown = [name for name in header if name not in (*_PLACES, "method") and name.removesuffix("_se") not in METRICS]
    if "method" not in header or unknown or not set(header) & METRICS:
        raise InputError(
            f"{path} has the columns {', '.join(header) or 'none'}. It should have method, and metrics in per cent: "
            f"some of {', '.join(sorted(METRICS))}, each with _se for a standard error if you like; and perhaps "
            f"{', '.join(_PLACES)}."
        )
    methods = []
    for number, row in enumerate(rows, 2):
        if all(not (row.get(place) or "") or row[place] == getattr(experiment, place) for place in _PLACES):
            if not row["method"] or None in row:
                raise InputError(f"{path}, line {number}: it has no method, or more cells than the header.")
            given = {name: row[name] for name in header if name not in (*_PLACES, "method") and row[name]}
            if wrong := [text for text in given.values() if not _NUMBER.fullmatch(text)]:
                raise InputError(f"{path}, line {number}: {wrong[0]!r} is not a number. Metrics are, in per cent.")
            known = {name: float(text) for name, text in given.items()}
            values = {
                name: Estimate(value, known.get(f"{name}_se"), 1) for name, value in known.items() if name in METRICS
            }
            methods.append(PublishedMethod(row["method"], "0", values))
    accuracies = [value.mean for row in methods for name, value in row.values.items() if name != "forgetting"]
    if accuracies and max(accuracies) <= 1:
        raise InputError(
            f"{path}: no accuracy is above 1, so they seem to be shares. Write them in per cent: 87.5, not 0.875."
        )
    return Baseline(path.name, tuple(methods)) if methods else None


def find_published(experiment: Experiment) -> Published | None:
    """Return the column of the paper with the dataset, scenario and order of an experiment; None if it has none."""
    for preset in PRESETS.values():
        order = preset.options.get("order", "")
        if (preset.dataset, preset.scenario, order) == (experiment.dataset, experiment.scenario, experiment.order):
            methods = [row for row in read_published() if row[0] == preset.column]
            return Published(preset, tuple(row[1] for row in methods), _differences(experiment, preset))
    return None


@functools.cache
def read_published() -> tuple[tuple[tuple[str, str, str], PublishedMethod], ...]:
    """Return all published rows, each with its column: scenario, dataset and order."""
    values: dict[tuple[str, str, str, str, str], dict[str, Estimate]] = {}
    counts = {preset.column: len(preset.seeds) for preset in PRESETS.values()}
    with (files("aircl.report") / "data" / "paper_results.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            column = (row["scenario"], row["dataset"], row["order"])
            error = float(row["standard_error"]) if row["standard_error"] else None
            cell = Estimate(float(row["mean"]), error, counts.get(column, 1))
            values.setdefault((*column, row["method"], row["memory"]), {})[row["metric"]] = cell
    return tuple((key[:3], PublishedMethod(*key[3:], cells)) for key, cells in values.items())


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", name.lower())


def _differences(experiment: Experiment, preset: Preset) -> tuple[str, ...]:
    config = experiment.config
    options = config.get("options", {})
    wanted = {name: value for name, value in preset.options.items() if name != "order"}
    pairs: dict[str, tuple[Any, Any]] = {
        name: (options[name], value) for name, value in wanted.items() if name in options
    }
    for name, value in (("buffer", preset.buffer_width), ("batch_size", preset.batch_size)):
        if name in config:
            pairs[name] = (config[name], value)
    if "gamma" in config and preset.gamma is not None:
        pairs["gamma"] = (config["gamma"], preset.gamma)
    return tuple(
        f"{name.replace('_', ' ')} {_plain(ours)} here, {_plain(theirs)} there"
        for name, (ours, theirs) in pairs.items()
        if ours != theirs
    )


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
