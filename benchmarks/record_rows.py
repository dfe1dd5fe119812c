"""What is kept of the runs of docs/results.md: docs/results/rows/NAME.csv, one line for each finished job.

The directory of a run is large and stays on the machine that made it. A line has what tables and most figures need, the
revision and the options that the job ran with; lines that are kept stay, so a later call runs what is missing.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aircl.benchmark.results import Row, RunDirectory
from aircl.report import Experiment, read_experiments

ROWS = Path(__file__).parent.parent / "docs" / "results" / "rows"
# What a line says of a job beside its metrics, and how each is read again.
OF_A_ROW = (
    *("job", "dataset", "backbone", "scenario", "order", "method", "seed", "samples", "seconds", "predict_seconds"),
    *("state_bytes", "peak_memory", "gamma", "buffer", "kept", "told", "status", "reason"),
)
INTEGERS = ("seed", "samples", "state_bytes", "peak_memory", "buffer", "kept")
FLOATS = ("seconds", "predict_seconds", "gamma")
OWN = ("title", "revision", "options", "phases", "periodic")
Line = dict[str, str]


def lines_of(directory: RunDirectory) -> list[Line]:
    """Return a line for each job of a run that came to its end or declined; nothing of those that failed."""
    about = directory.about
    found = []
    for experiment in read_experiments(directory):
        for method in experiment.methods:
            for job in method.jobs:
                if job.status in ("ok", "incompatible"):
                    last = job.rows[-1]
                    options = experiment.config.get("method_options", {}).get(method.name, {})
                    line = {name: _text(getattr(last, name)) for name in OF_A_ROW}
                    line |= {
                        "title": method.title,
                        "revision": about.get("revision") or "",
                        "options": json.dumps(options),
                    }
                    line |= {row.metric: _text(row.value) for row in job.rows if row.point == "final"}
                    for column, point in (("phases", "phase"), ("periodic", "periodic")):
                        course = job.course(point, "accuracy")
                        line[column] = " ".join(f"{row.samples}:{_text(row.value)}" for row in course)
                    found.append(line)
    return found


def rows_of(line: Line) -> list[Row]:
    """Return the rows that a line was made of, as far as it has them: A_last is the last one."""
    known: dict[str, Any] = {name: line[name] for name in OF_A_ROW}
    known |= {name: int(line[name]) if line[name] else None for name in INTEGERS}
    known |= {name: float(line[name]) if line[name] else None for name in FLOATS}
    whole = Row(run="", phase=0, point="", metric="", value=None, **known)
    if whole.status != "ok":
        return [whole]
    rows = []
    for column, point in (("phases", "phase"), ("periodic", "periodic")):
        for number, pair in enumerate(line[column].split(), 1):
            samples, value = pair.split(":")
            phase = number if point == "phase" else 0
            place = {"point": point, "phase": phase, "samples": int(samples)}
            rows.append(replace(whole, **place, metric="accuracy", value=float(value)))
    metrics = [name for name in line if name not in (*OF_A_ROW, *OWN) and line[name]]
    metrics.sort(key=lambda name: name == "A_last")
    return rows + [replace(whole, point="final", metric=name, value=float(line[name])) for name in metrics]


def read(path: Path) -> dict[str, Line]:
    """Return the lines of a file by their jobs; none if there is no such file."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {line["job"]: line for line in csv.DictReader(file)}


def keep(path: Path, lines: Iterable[Line]) -> None:
    """Add lines to a file; a job that it has already is replaced."""
    known = read(path) | {line["job"]: line for line in lines}
    if known:
        _write(path, known)


def forget(path: Path, methods: Iterable[str]) -> None:
    """Drop the lines of methods from a file, so that they are run again."""
    _write(path, {job: line for job, line in read(path).items() if line["method"] not in set(methods)})


def _write(path: Path, known: Mapping[str, Line]) -> None:
    metrics = sorted({name for line in known.values() for name in line if name not in (*OF_A_ROW, *OWN)})
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*OF_A_ROW, *OWN, *metrics], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(known[job] for job in sorted(known))


def experiments_of(lines: Mapping[str, Line], runs: Iterable[RunDirectory] = ()) -> list[Experiment]:
    """Return lines sorted into experiments, with details for figures where one of the runs still has them."""
    runs = list(runs)
    titles = {(line["method"], line["scenario"]): line["title"] for line in lines.values()}

    def load(name: str) -> Any:
        return next((details for run in runs if (details := run.details(name)) is not None), None)

    return [
        replace(
            experiment,
            methods=tuple(
                replace(
                    method,
                    title=titles[method.name, experiment.scenario],
                    jobs=tuple(replace(job, load=lambda name=job.name: load(name)) for job in method.jobs),
                )
                for method in experiment.methods
            ),
        )
        for experiment in read_experiments([row for line in lines.values() for row in rows_of(line)])
    ]


def _text(value: float | str | None) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
