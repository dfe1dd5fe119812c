"""One HTML page that shows a run, whole in one file: no network, no library, no fonts to fetch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from aircl.benchmark.results import RunDirectory
from aircl.report.experiments import Experiment
from aircl.report.figures.style import COLOURS, DARK_COLOURS
from aircl.report.formats import (
    changes_to_markdown,
    escape_markdown,
    format_estimate,
    to_csv,
    to_latex,
    to_markdown,
)
from aircl.report.page_data import count_tested, embed, experiment_data
from aircl.report.reading import read_experiments
from aircl.report.side_by_side import Change, about_runs, find_changes, join_runs
from aircl.report.significance import contrast, rank_methods
from aircl.report.tables import Comparison, compare
from aircl.storage.writing import check_output, check_own, write_text

# By which a report is known again.
MARK = "written by aircl report"

# A fact: what, its value, and how many items that has if they are to be folded.
Fact = tuple[str, str, int]
# An experiment over samples, and over classes.
Pair = tuple[Comparison, Comparison]
FOLDED = 8


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
        The page; None: report.html in the directory of the run, comparison.html here for several. The others are called
        like the page, or `table` for report.html; they replace nothing that is not an earlier report.
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
    else:
        about, experiments = about_runs(directories), join_runs(directories)
        changes = find_changes(directories)
        page = Path("comparison.html" if output is None else output)
    pairs = [
        (compare(one, False, baselines, extra=True), compare(one, True, baselines, extra=True)) for one in experiments
    ]
    everything = [comparison for pair in pairs for comparison in pair]
    brief = [comparison.brief for comparison in everything]
    # Of two pages in one folder, each has tables of its own.
    tables = "table" if page.stem == "report" else page.stem
    title = str(about.get("name") or directories[0].path.name)
    differences = changes_to_markdown(changes)
    texts = {
        page: render_page(about, pairs, title, changes=changes),
        page.with_suffix(".md"): (
            f"# {escape_markdown(title)}\n\n<!-- {MARK} -->\n\n{differences}{to_markdown(brief)}"
        ),
        page.with_name(f"{tables}.csv"): to_csv(everything),
        page.with_name(f"{tables}.tex"): f"% {MARK}\n{to_latex(brief)}",
    }
    for path in texts:
        check_output(path, baselines)
        if output is None or path != page:  # what was not asked for by name replaces nothing but itself
            check_own(path, MARK, "dataset,backbone,scenario,order,method,")
    for path, text in texts.items():
        write_text(path, text)
    return list(texts)


def render_page(about: Mapping[str, Any], pairs: Sequence[Pair], title: str, *, changes: Sequence[Change] = ()) -> str:
    """Return the page as text.

    Parameters
    ----------
    about : mapping
        What `run.json` says.
    pairs : sequence of (Comparison, Comparison)
        Of each experiment, over samples and over classes, with all columns.
    title : str
    changes : sequence of Change, default=()
        Of several runs.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("aircl.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip

    def source(name: str) -> Markup:
        return Markup(environment.loader.get_source(environment, name)[0])  # type: ignore[union-attr]  # given above

    experiments = [by_sample.experiment for by_sample, _ in pairs]
    ranks = _ranks(experiments)
    methods = {method.name: method.style for experiment in experiments for method in experiment.methods}
    return environment.get_template("report.html").render(
        title=title,
        facts=_facts(about),
        status=_status(about),
        when=[_when(about.get(key)) for key in ("started", "finished")],
        versions=about.get("versions") if isinstance(about.get("versions"), Mapping) else {},
        revision=about.get("revision"),
        sections=[_section(*pair) for pair in pairs],
        changes=list(changes),
        change_metrics=list(dict.fromkeys(change.metric for change in changes)),
        change_lines=_change_lines(changes),
        methods=sorted(methods.items(), key=lambda method: method[1]),
        colours=list(zip(COLOURS, DARK_COLOURS, strict=True)),
        style=source("report.css"),
        script=source("report.js"),
        flow=source("flow.svg"),
        ranks=ranks,
        data=Markup(
            embed(
                {
                    "colours": len(COLOURS),
                    "experiments": list(map(experiment_data, experiments)),
                    "tables": [_files(pair) for pair in pairs],
                    "ranks": ranks,
                }
            )
        ),
    )


# -- what the template shows as text --


def _section(by_sample: Comparison, balanced: Comparison) -> dict[str, Any]:
    return {
        "experiment": by_sample.experiment,
        "headline": _headline(by_sample),
        "columns": by_sample.columns,
        "published": by_sample.published,
        "lines": list(zip(by_sample.lines, balanced.lines, strict=True)),
        "legend": (by_sample.legend or balanced.legend).rstrip("."),
        "extra": any(column.extra for column in by_sample.columns),
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


def _headline(comparison: Comparison) -> str:
    """Return who is best in the end, how far ahead of the next best, and whether that is clear."""
    known = [line for line in comparison.lines if "A_last" in line.cells and not line.method.is_bound]
    if not known:
        return ""
    ranked = sorted(known, key=lambda line: -line.cells["A_last"].value.mean)
    best = ranked[0]
    text = f"{best.method.name} ends at {best.cells['A_last'].text} % accuracy"
    if len(ranked) == 1:
        return f"{text}."
    lead = best.cells["A_last"].value.mean - ranked[1].cells["A_last"].value.mean
    found = contrast(best.method, ranked[1].method, "A_last")
    if found is None:
        return f"{text}, {lead:.1f} points above the runner-up, {ranked[1].method.name}."
    n = count_tested(comparison.experiment)
    told = "a clear difference" if found.is_clear else "no clear difference"
    return (
        f"{text}: it is right about {_count(lead * n / 100)} more of {n:,} test samples than the runner-up, "
        f"{ranked[1].method.name} (95 % interval {_count(found.low * n)} to {_count(found.high * n)}), {told}."
    )


def _count(samples: float) -> str:
    """Return a number of samples, which is a mean over seeds."""
    return f"{round(samples, 1) + 0.0:,.1f}".removesuffix(".0")  # no -0


def _files(pair: Pair) -> dict[str, str]:
    """Return the tables of an experiment as files, for the buttons of the page."""
    brief = [comparison.brief for comparison in pair]
    return {"csv": to_csv(pair), "tex": to_latex(brief), "md": to_markdown(brief)}


def _ranks(experiments: Sequence[Experiment]) -> dict[str, Any] | None:
    ranks = rank_methods(experiments)
    return None if ranks is None else asdict(ranks)


def _facts(about: Mapping[str, Any]) -> list[tuple[str, list[Fact]]]:
    """Return groups of facts: what `run.json` says, nested values by their path; not what tables say already."""
    times = {"started": _when(about.get("started")), "finished": _when(about.get("finished")) or "not yet"}
    general = [
        (key, times.get(key) or _plain(v), 0)
        for key, v in about.items()
        if not isinstance(v, Mapping) and not _is_table(v)
    ]
    groups = [("run", general)]
    for key, value in about.items():
        if key == "methods" and _is_table(value):
            groups += [(f"options, experiment {number}", _options(item)) for number, item in enumerate(value, 1)]
        elif isinstance(value, Mapping):
            groups += _group(key, value)
    return [(name, facts) for name, facts in groups if facts]


def _options(methods: Mapping[str, Any]) -> list[Fact]:
    """Return the options of the methods that have some."""
    known = ((name, method.get("options")) for name, method in methods.items() if isinstance(method, Mapping))
    return [(name, _plain(options), 0) for name, options in known if options]


def _group(name: str, values: Mapping[str, Any]) -> list[tuple[str, list[Fact]]]:
    # The name of the run stands at its head already.
    facts = [(key, _plain(v), _length(v)) for key, v in values.items() if not _is_table(v) and key != "name"]
    groups = [(name, facts)]
    for key, value in values.items():
        if _is_table(value):
            for number, item in enumerate(value, 1):
                groups += _group(f"{key.removesuffix('s')} {number}", item)
    return groups


def _length(value: Any) -> int:
    """Return how many items are to be folded; 0 for what is short."""
    return len(value) if isinstance(value, list | tuple) and len(value) > FOLDED else 0


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
