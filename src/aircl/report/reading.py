"""From the rows of a run to its experiments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aircl.benchmark.results import Row, RunDirectory
from aircl.benchmark.streams import left_out_remarks
from aircl.report.experiments import Experiment, Job, MethodResults

# What the paper compares comes first, in the order that its figures have them; other methods follow as they ran.
_LEADING = ("air", "acil")

_NAMES = ("dataset", "backbone", "scenario")

Results = RunDirectory | Experiment | Iterable[Row] | Path | str


def read_experiments(run: RunDirectory | Iterable[Row] | Path | str) -> list[Experiment]:
    """Sort a run into experiments.

    Parameters
    ----------
    run : RunDirectory, path of one, or iterable of Row
        Rows alone have no details: figures of single classes cannot be drawn from them.

    Returns
    -------
    experiments : list of Experiment
        In the order in which they ran.

    Examples
    --------
    A run of two experiments, read from its directory:

    >>> from tempfile import TemporaryDirectory
    >>> from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
    >>> from aircl.report import read_experiments
    >>> both = [Experiment("digits", "identity", name, {"phases": 2}, methods=("ncm",)) for name in ("cil", "i-blurry")]
    >>> with TemporaryDirectory() as folder:
    ...     Runner(RunConfig("mine", tuple(both)), RunDirectory(folder)).run()
    ...     for experiment in read_experiments(folder):
    ...         print(experiment.title, round(experiment.method("ncm").final("A_last").mean, 2))
    digits · cil · identity 0.91
    digits · i-blurry · identity 0.91
    """
    directory = RunDirectory(Path(run)) if isinstance(run, Path | str) else run
    if isinstance(directory, RunDirectory):
        about = directory.about
        configs = list(zip(_configs(about), _described(about), _remarks(about), strict=False))
        names, rows, bounds = about.get("classes", {}), directory.rows(), _bounds(about)
    else:
        configs, names, rows, bounds = [], {}, list(directory), set()
    styles = {name: place for place, name in enumerate(_in_order(row.method for row in rows))}
    jobs: dict[tuple[str, str, str, str], dict[str, dict[str, list[Row]]]] = {}
    for row in rows:
        experiment = jobs.setdefault((row.dataset, row.backbone, row.scenario, row.order), {})
        experiment.setdefault(row.method, {}).setdefault(row.job, []).append(row)

    def make_job(name: str, own: Sequence[Row]) -> Job:
        # A phase that was measured again, after a stop, replaces what was known of it; the order of time stays.
        latest = {(row.point, row.phase, row.samples, row.metric): place for place, row in enumerate(own)}
        kept = tuple(own[place] for place in sorted(latest.values()))
        load = (lambda: directory.details(name)) if isinstance(directory, RunDirectory) else lambda: None
        return Job(name, own[0].seed, kept, load)

    def make_experiment(key: tuple[str, str, str, str], methods: Mapping[str, dict[str, list[Row]]]) -> Experiment:
        config, described, remarks = next((one for one in configs if _is_of(one[0], key)), ({}, {}, []))
        results = (
            MethodResults(
                method,
                styles[method],
                tuple(sorted((make_job(*job) for job in methods[method].items()), key=lambda job: job.seed)),
                described.get(method, {}).get("title", ""),
                method in bounds,
            )
            for method in _in_order(methods)
        )
        notes = {name: about["notes"] for name, about in described.items() if about.get("notes")}
        return Experiment(*key, tuple(results), config, notes, names.get(key[0], ()), remarks)

    return [make_experiment(key, methods) for key, methods in jobs.items()]


def _is_of(config: Mapping[str, Any], key: tuple[str, ...]) -> bool:
    return all(config.get(name) == value for name, value in zip(_NAMES, key, strict=False))


def as_experiment(results: Results) -> Experiment:
    """Return the one experiment that there is to draw.

    Parameters
    ----------
    results : Experiment, RunDirectory, path of one, or iterable of Row
    """
    if isinstance(results, Experiment):
        return results
    experiments = read_experiments(results)
    if len(experiments) != 1:
        titles = "; ".join(experiment.title for experiment in experiments) or "none"
        raise ValueError(
            f"a figure shows one experiment, the run has {len(experiments)}: {titles}. "
            "Choose one of `read_experiments(run)`."
        )
    return experiments[0]


def _configs(about: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the experiments that `run.json` tells of, with the scenario as rows call it."""
    config = about.get("config")
    experiments = config.get("experiments") if isinstance(config, Mapping) else None
    if not isinstance(experiments, list):
        return []
    known = [one for one in experiments if isinstance(one, Mapping)]
    streams = [*about.get("streams", []), *[{}] * len(known)]
    return [
        {**one, **{k: v for k, v in stream.items() if k == "scenario"}}
        for one, stream in zip(known, streams, strict=False)
    ]


def _remarks(about: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield what `run.json` says of the streams of each experiment, without end."""
    for stream in about.get("streams", []):
        yield [stream["between_seeds"], *left_out_remarks(stream["left_out"])]
    while True:
        yield []


def _described(about: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield what `run.json` says of methods, by name, experiment by experiment, without end."""
    described = about.get("methods")
    yield from described if isinstance(described, list) else []
    while True:
        yield {}


def _bounds(about: Mapping[str, Any]) -> set[str]:
    """Return the methods that `run.json` says are bounds."""
    described = about.get("methods")
    known = [pair for methods in (described if isinstance(described, list) else []) for pair in methods.items()]
    return {name for name, method in known if method.get("is_bound")}


def _in_order(names: Iterable[str]) -> list[str]:
    found = list(dict.fromkeys(names))
    return [name for name in _LEADING if name in found] + [name for name in found if name not in _LEADING]
