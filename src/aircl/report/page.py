"""One HTML page that shows a run, whole in one file: no network, no library, no fonts to fetch."""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from aircl.benchmark.results import RunDirectory
from aircl.report.estimates import Estimate, Series
from aircl.report.experiments import ClassValue, Experiment, MethodResults, read_experiments
from aircl.report.figures.bars import GROUPS
from aircl.report.figures.style import COLOURS, DARK_COLOURS
from aircl.report.formats import changes_to_markdown, format_estimate, to_csv, to_latex, to_markdown
from aircl.report.side_by_side import Change, about_runs, find_changes, join_runs
from aircl.report.tables import Comparison, compare

CLASS_VALUES: tuple[ClassValue, ...] = ("weight_norms", "test_loss", "train_loss")


def write_report(
    run: RunDirectory | Path | str | Sequence[RunDirectory | Path | str],
    output: Path | str | None = None,
    *,
    baselines: Sequence[Path] = (),
) -> list[Path]:
    """Write the page, and the tables as Markdown, CSV and LaTeX beside it.

    Parameters
    ----------
    run : RunDirectory or path of one, or several of them
        Several are put side by side, with differences to the first.
    output : path, default=None
        The page; None: report.html in the directory of the run, comparison.html here for several.
    baselines : sequence of path, default=()
        CSV files with numbers of others, see `compare`.

    Returns
    -------
    paths : list of Path
        Page, Markdown, CSV and LaTeX; each is written whole or not at all.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
    >>> from aircl.report import write_report
    >>> experiment = Experiment("digits", "identity", "cil", {"phases": 2}, methods=("ncm", "slda"))
    >>> with TemporaryDirectory() as folder:
    ...     Runner(RunConfig("mine", (experiment,)), RunDirectory(folder)).run()
    ...     [path.name for path in write_report(folder)]
    ['report.html', 'report.md', 'table.csv', 'table.tex']
    """
    runs = [run] if isinstance(run, RunDirectory | Path | str) else list(run)
    directories = [one if isinstance(one, RunDirectory) else RunDirectory(Path(one)) for one in runs]
    changes: list[Change] = []
    if len(directories) == 1:
        about, experiments = directories[0].about, read_experiments(directories[0])
        page = directories[0].path / "report.html" if output is None else Path(output)
        names = ["table.csv", "table.tex"]
    else:
        about, experiments = about_runs(directories), join_runs(directories)
        changes = find_changes(directories)
        page = Path("comparison.html" if output is None else output)
        names = [f"{page.stem}.csv", f"{page.stem}.tex"]
    comparisons = [compare(one, balanced, baselines) for one in experiments for balanced in (False, True)]
    everything = [compare(one, kind, baselines, extra=True) for one in experiments for kind in (False, True)]
    title = str(about.get("name") or directories[0].path.name)
    differences = changes_to_markdown(changes)
    texts = {
        page: render_page(about, experiments, title, changes=changes, baselines=baselines),
        page.with_suffix(".md"): f"# {title}\n\n{differences}{to_markdown(comparisons)}",
        page.with_name(names[0]): to_csv(everything),
        page.with_name(names[1]): to_latex(comparisons),
    }
    for path, text in texts.items():
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    return list(texts)


def render_page(
    about: Mapping[str, Any],
    experiments: Sequence[Experiment],
    title: str,
    *,
    changes: Sequence[Change] = (),
    baselines: Sequence[Path] = (),
) -> str:
    """Return the page as text.

    Parameters
    ----------
    about : mapping
        What `run.json` says.
    experiments : sequence of Experiment
    title : str
    changes : sequence of Change, default=()
        Of several runs.
    baselines : sequence of path, default=()
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("aircl.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip

    def source(name: str) -> Markup:
        return Markup(environment.loader.get_source(environment, name)[0])  # type: ignore[union-attr]  # given above

    methods = {method.name: method.style for experiment in experiments for method in experiment.methods}
    return environment.get_template("report.html").render(
        title=title,
        facts=_facts(about),
        status=_status(about),
        when=[_when(about.get(key)) for key in ("started", "finished")],
        versions=about.get("versions") if isinstance(about.get("versions"), Mapping) else {},
        revision=about.get("revision"),
        sections=[_section(experiment, baselines) for experiment in experiments],
        changes=list(changes),
        change_metrics=list(dict.fromkeys(change.metric for change in changes)),
        change_lines=_change_lines(changes),
        methods=sorted(methods.items(), key=lambda method: method[1]),
        colours=list(zip(COLOURS, DARK_COLOURS, strict=True)),
        style=source("report.css"),
        script=source("report.js"),
        flow=source("flow.svg"),
        data=Markup(embed({"colours": len(COLOURS), "experiments": list(map(experiment_data, experiments))})),
    )


def embed(data: Any) -> str:
    r"""Return JSON that can stand inside a script element, whatever its strings hold.

    Examples
    --------
    >>> print(embed({"name": "</script><b>"}))
    {"name":"\u003c/script\u003e\u003cb\u003e"}
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def experiment_data(experiment: Experiment) -> dict[str, Any]:
    """Return what the charts of an experiment are drawn from, as JSON can hold it; accuracies are in per cent."""
    classes = experiment.classes
    stream = experiment.stream
    return {
        "title": experiment.title,
        "classes": [experiment.name_of(label) for label in classes.tolist()],
        "counts": [_number(experiment.class_counts[label]) for label in classes.tolist()],
        "groups": list(GROUPS),
        "stream": None
        if stream is None
        else {
            "classes": [experiment.name_of(label) for label in stream[0].tolist()],
            "phases": len(stream[1]),
            "cells": run_lengths(stream[1]),
        },
        "methods": [
            data for method in experiment.methods if (data := _method_data(method, classes))["phases"]["accuracy"]
        ],
    }


def _method_data(method: MethodResults, classes: npt.NDArray[np.int64]) -> dict[str, Any]:
    confusion = method.confusion(classes)
    metrics = ("accuracy", "balanced_accuracy")
    return {
        "name": method.name,
        "style": method.style,
        "anytime": {metric: _series(method.anytime(metric), 100) for metric in metrics},
        "phases": {metric: _series(method.phases(metric), 100) for metric in metrics},
        "class_phases": _series(method.class_phases(), 100),
        "groups": [_estimate(method.final(group), 100) for group in GROUPS],
        "seconds": _estimate(method.cost("seconds"), 1),
        "memory": _estimate(method.cost("state_bytes"), 1e-6),
        "confusion": None if confusion is None else run_lengths(confusion),
        **{what: _series(method.per_class(what, classes), 1, x=False) for what in CLASS_VALUES},
    }


def run_lengths(table: npt.NDArray[np.int64]) -> list[int]:
    """Return the numbers of a table row by row, runs of n zeros as -n: most cells of confusion matrices are zero.

    Examples
    --------
    >>> run_lengths(np.array([[5, 0, 0], [0, 7, 0]]))
    [5, -3, 7, -1]
    """
    flat = table.ravel()
    places = np.flatnonzero(flat)
    gaps = np.diff(places, prepend=-1) - 1
    out: list[int] = []
    for gap, value in zip(gaps.tolist(), flat[places].tolist(), strict=True):
        out += [-gap, value] if gap else [value]
    rest = len(flat) - (int(places[-1]) + 1 if len(places) else 0)
    return [*out, -rest] if rest else out


def _series(series: Series | None, scale: float, x: bool = True) -> dict[str, list[float | None]] | None:
    if series is None or not len(series.mean):
        return None
    data = {"mean": [_number(value * scale) for value in series.mean.tolist()]}
    if not np.isnan(series.standard_error).all():
        data["error"] = [_number(value * scale) for value in series.standard_error.tolist()]
    return {"x": [_number(value) for value in series.x.tolist()], **data} if x else data


def _estimate(value: Estimate | None, scale: float) -> list[float | None] | None:
    if value is None:
        return None
    return [
        _number(value.mean * scale),
        None if value.standard_error is None else _number(value.standard_error * scale),
    ]


def _number(value: float) -> float | None:
    """Return a number of six digits, which no chart can show more of; None for nan."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


# -- what the template shows as text --


def _section(experiment: Experiment, baselines: Sequence[Path]) -> dict[str, Any]:
    by_sample, balanced = (compare(experiment, kind, baselines, extra=True) for kind in (False, True))
    return {
        "experiment": experiment,
        "headline": _headline(by_sample),
        "columns": by_sample.columns,
        "published": by_sample.published,
        "lines": list(zip(by_sample.lines, balanced.lines, strict=True)),
        "problems": [line for line in by_sample.lines if line.note],
        "format": format_estimate,
    }


def _change_lines(changes: Sequence[Change]) -> list[tuple[Experiment, str, str, dict[str, Change]]]:
    """Return the differences between runs, one line for each experiment, method and run."""
    lines: dict[tuple[int, str, str], tuple[Experiment, str, str, dict[str, Change]]] = {}
    for change in changes:
        key = (id(change.experiment), change.method, change.run)
        lines.setdefault(key, (change.experiment, change.method, change.run, {}))[3][change.metric] = change
    return list(lines.values())


def _headline(comparison: Comparison) -> dict[str, Any] | None:
    """Return who is best in the end, and how far ahead of ACIL, or of the next best."""
    known = [line for line in comparison.lines if "A_last" in line.cells]
    if not known:
        return None
    ranked = sorted(known, key=lambda line: -line.cells["A_last"].value.mean)
    best = ranked[0]
    others = [line for line in ranked[1:] if line.method.name == "acil"] or ranked[1:]
    other = others[0] if others else None
    return {
        "best": best.method.name,
        "value": best.cells["A_last"].text,
        "other": None if other is None else other.method.name,
        "other_value": None if other is None else other.cells["A_last"].text,
        "lead": None if other is None else f"{best.cells['A_last'].value.mean - other.cells['A_last'].value.mean:.1f}",
    }


def _facts(about: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return groups of facts: what `run.json` says, nested values by their path."""
    times = {"started": _when(about.get("started")), "finished": _when(about.get("finished")) or "not yet"}
    general = [
        (key, times.get(key) or _plain(v))
        for key, v in about.items()
        if not isinstance(v, Mapping) and not _is_table(v)
    ]
    groups = [("run", general)]
    for key, value in about.items():
        if isinstance(value, Mapping):
            groups += _group(key, value)
        elif _is_table(value):
            groups += [(f"{key} of experiment {number}", _told(item)) for number, item in enumerate(value, 1)]
    return [(name, facts) for name, facts in groups if facts]


def _group(name: str, values: Mapping[str, Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    # The name of the run stands at its head already.
    groups = [(name, [(key, _plain(v)) for key, v in values.items() if not _is_table(v) and key != "name"])]
    for key, value in values.items():
        if _is_table(value):
            for number, item in enumerate(value, 1):
                groups += _group(f"{key.removesuffix('s')} {number}", item)
    return groups


def _told(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, _plain(value)) for key, value in values.items()]


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _plain(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}\u00a0{_plain(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(_plain(item) or '""' for item in value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _status(about: Mapping[str, Any]) -> str:
    return "" if about.get("finished") or "finished" not in about else "unfinished"


def _when(text: Any) -> str:
    """Return a time as people write it; whatever else it is, as it is."""
    try:
        time = datetime.fromisoformat(str(text))
    except ValueError:
        return "" if text is None else str(text)
    return f"{time.day} {time:%B %Y, %H:%M %Z}".strip()
