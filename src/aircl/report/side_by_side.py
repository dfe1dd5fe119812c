"""Runs side by side: two versions, two backbones, two settings, and by how much they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aircl.benchmark.results import RunDirectory
from aircl.report.estimates import Estimate
from aircl.report.experiments import Experiment, MethodResults
from aircl.report.reading import read_experiments
from aircl.report.significance import TESTED, Contrast, contrast

METRICS = ("A_avg", "A_last", "A_auc", "forgetting")
# What of `run.json` tells two runs apart.
_FACTS = ("started", "revision", "versions", "machine")


@dataclass(frozen=True)
class Change:
    """A metric of a method in one run, and in the first that has the method on this stream.

    Attributes
    ----------
    experiment : Experiment
        The joint one.
    method : str
    run : str
    metric : str
    first, value : Estimate
        In the first run, and in this one; shares.
    contrast : Contrast or None
        This run minus the first; None where single test samples are not known, or differ.
    """

    experiment: Experiment
    method: str
    run: str
    metric: str
    first: Estimate
    value: Estimate
    contrast: Contrast | None

    @property
    def text(self) -> str:
        """The difference in points, its 95 % interval where it is known, and whether it is clear.

        Examples
        --------
        >>> found = Contrast(0.02, 0.01, 0.03, 1, 0.01, 0.03, 0.001)
        >>> Change(None, "air", "new", "A_last", Estimate(0.8, None, 1), Estimate(0.82, None, 1), found).text
        '+2.00 (+1.00 to +3.00)'
        """
        points = f"{100 * (self.value.mean - self.first.mean):+.2f}"
        if self.contrast is None:
            return points
        interval = f"({100 * self.contrast.low:+.2f} to {100 * self.contrast.high:+.2f})"
        return f"{'' if self.contrast.is_clear else '≈'}{points} {interval}"


def join_runs(runs: Sequence[RunDirectory]) -> list[Experiment]:
    """Return the experiments of several runs, those on the same data and stream as one.

    Parameters
    ----------
    runs : sequence of RunDirectory

    Returns
    -------
    experiments : list of Experiment
        Methods of a joint one are called "METHOD @ RUN". Backbones may differ; both are named then. Those that only
        one of the runs has come last, and say so.
    """
    names = run_names(runs)
    by_place: dict[tuple[str, str, str], dict[str, Experiment]] = {}
    for name, run in zip(names, runs, strict=True):
        for own in read_experiments(run):
            place = (own.dataset, own.scenario, own.order)
            if name in by_place.get(place, {}):
                raise ValueError(
                    f"{run.path} has {own.dataset}, {own.scenario} with several backbones. Give runs of one backbone."
                )
            by_place.setdefault(place, {})[name] = own
    styles: dict[str, int] = {}
    for found in by_place.values():
        for method in _methods(found):
            for name, own in found.items():
                if any(one.name == method for one in own.methods):
                    styles.setdefault(f"{method} @ {name}", len(styles))
    joined = [_join(found, len(runs), styles) for found in by_place.values()]
    return sorted(joined, key=lambda one: any("Only in" in remark for remark in one.remarks))


def find_changes(runs: Sequence[RunDirectory], balanced: bool = False) -> list[Change]:
    """Return how methods do in later runs, against the first that has them on the same stream.

    Parameters
    ----------
    runs : sequence of RunDirectory
    balanced : bool, default=False
        Class-balanced accuracies in place of those per sample.
    """
    names = run_names(runs)
    changes = []
    for experiment in join_runs(runs):
        known = {method.name: method for method in experiment.methods}
        for name in known:
            method, _, run = name.rpartition(" @ ")
            before = next(known[f"{method} @ {one}"] for one in names if f"{method} @ {one}" in known)
            if before is known[name]:
                continue
            for metric in METRICS:
                key = f"balanced_{metric}" if balanced and metric in TESTED else metric
                pair = before.final(key), known[name].final(key)
                if pair[0] is not None and pair[1] is not None:
                    found = contrast(known[name], before, metric, balanced) if metric in TESTED else None
                    changes.append(Change(experiment, method, run, metric, pair[0], pair[1], found))
    return changes


def run_names(runs: Sequence[RunDirectory]) -> list[str]:
    """Return a name for each run: its own, or that of its directory where runs have the same, or its path."""
    for names in (
        [str(run.about.get("name") or run.path.name) for run in runs],
        [run.path.resolve().name for run in runs],
    ):
        if len(set(names)) == len(names):
            return names
    return [str(run.path) for run in runs]


def about_runs(runs: Sequence[RunDirectory]) -> dict[str, Any]:
    """Return what the page says of the runs, in the form of `run.json`."""
    names = run_names(runs)
    about: dict[str, Any] = {"name": " and ".join(names)}
    for name, run in zip(names, runs, strict=True):
        facts = {key: run.about[key] for key in _FACTS if run.about.get(key) is not None}
        about[name] = {"directory": str(run.path), **facts}
    return about


def _methods(found: Mapping[str, Experiment]) -> list[str]:
    return list(dict.fromkeys(method.name for own in found.values() for method in own.methods))


def _join(found: Mapping[str, Experiment], n_runs: int, styles: Mapping[str, int]) -> Experiment:
    first = next(iter(found.values()))
    methods: list[MethodResults] = []
    for method in _methods(found):
        for run, own in found.items():
            mine = next((one for one in own.methods if one.name == method), None)
            if mine is not None:
                name, title = f"{method} @ {run}", f"{mine.title} @ {run}" if mine.title else ""
                methods.append(replace(mine, name=name, title=title, style=styles[name]))
    remarks = [f"{run}: {remark}" for run, own in found.items() for remark in own.remarks]
    if len(set(remark.partition(": ")[2] for remark in remarks)) == 1:
        remarks = [remarks[0].partition(": ")[2]]
    if len(found) < n_runs:
        remarks.append(f"Only in {', '.join(found)}.")
    return replace(
        first,
        backbone=" / ".join(dict.fromkeys(own.backbone for own in found.values())),
        methods=tuple(methods),
        notes={f"{name} @ {run}": notes for run, own in found.items() for name, notes in own.notes.items()},
        remarks=remarks,
    )
