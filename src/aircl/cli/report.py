"""`aircl report`: a page, and tables, of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl.cli.console import print_json, print_rich, reports_problems, say
from aircl.cli.options import Json
from aircl.storage.text import visible
from aircl.storage.writing import check_output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from aircl.report.side_by_side import Change
    from aircl.report.tables import Comparison

# What a narrow terminal does not show, the first to go first; the page has it all.
EXPENDABLE = (
    "buffer",
    "gamma",
    "kept",
    "peak_memory",
    "predict_seconds",
    "state_bytes",
    "seconds",
    "forgetting",
    "middle",
    "published",
    "head",
    "tail",
)


@reports_problems
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="DIR..", help="Directories that `aircl run` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="HTML",
            help="The page; Markdown, CSV and LaTeX are written beside it.",
            show_default="DIR/report.html; comparison.html for several",
        ),
    ] = None,
    baseline: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE.csv",
            help="Numbers of others beside ours: method, A_last, .. in per cent; may be repeated.",
            show_default=False,
        ),
    ] = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Print class-balanced accuracies, not those per sample.")
    ] = False,
    more: Annotated[bool, typer.Option("--more", help="Print transfer and calibration too.")] = False,
    json: Json = False,
) -> None:
    """Write a page with the tables and figures of a run, and print the tables; several runs are shown side by side."""
    if output is not None:
        if output.suffix.lower() not in (".html", ".htm"):
            raise typer.BadParameter(f"{output} should end in .html.", param_hint="--output")
        check_output(output, baseline or [])
    write_and_show(runs, output=output, balanced=balanced, json=json, baselines=baseline or [], more=more)


def write_and_show(
    paths: Sequence[Path],
    *,
    output: Path | None = None,
    balanced: bool = False,
    json: bool = False,
    quiet: bool = False,
    baselines: Sequence[Path] = (),
    more: bool = False,
) -> None:
    """Write the report of runs, print its tables, and say where it is unless that should be quiet.

    Parameters
    ----------
    paths : sequence of Path
        Directories of the runs.
    output : Path, default=None
        The page; None: in that directory, or here for several.
    balanced : bool, default=False
        Print class-balanced accuracies.
    json : bool, default=False
        Print JSON in place of tables.
    quiet : bool, default=False
    baselines : sequence of Path, default=()
        CSV files with numbers of others.
    more : bool, default=False
        Print transfer and calibration too.
    """
    from aircl.benchmark.results import RunDirectory
    from aircl.report import compare, read_experiments, write_report
    from aircl.report.side_by_side import find_changes, join_runs

    runs = [RunDirectory(path) for path in paths]
    experiments = read_experiments(runs[0]) if len(runs) == 1 else join_runs(runs)
    changes = find_changes(runs, balanced) if len(runs) > 1 else []
    comparisons = [compare(experiment, balanced, baselines, extra=more or json) for experiment in experiments]
    written = write_report(runs, output, baselines=baselines)
    if json:
        differences = [
            {"method": change.method, "run": change.run, "metric": change.metric, "difference": change.text}
            for change in changes
        ]
        described = [describe(one) for one in comparisons]
        print_json({"files": list(map(str, written)), "experiments": described, "differences": differences})
        return
    print_comparisons(comparisons)
    print_changes(changes)
    if not quiet:
        say(f"Report: {written[0]}")


def print_changes(changes: Sequence[Change]) -> None:
    """Print the differences between runs as tables."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Text | Table] = []
    for experiment in {id(change.experiment): change.experiment for change in changes}.values():
        own = [change for change in changes if change.experiment is experiment]
        metrics = list(dict.fromkeys(change.metric for change in own))
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for title in ("method", "run", *(f"{metric}, points" for metric in metrics)):
            table.add_column(title, no_wrap=True)
        for method, run in dict.fromkeys((change.method, change.run) for change in own):
            texts = {c.metric: c.text for c in own if (c.method, c.run) == (method, run)}
            cells = (method, run, *(texts.get(metric, "-") for metric in metrics))
            table.add_row(*(Text(visible(cell)) for cell in cells))
        parts += [Text(visible(f"{experiment.title}: against the first run that has the method"), style="bold"), table]
    if parts:
        print_rich(Group(*parts))


def describe(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON would hold it; accuracies are in per cent."""
    experiment = comparison.experiment
    return {
        "dataset": experiment.dataset,
        "backbone": experiment.backbone,
        "scenario": experiment.scenario,
        "order": experiment.order,
        "remarks": list(experiment.remarks),
        "balanced": comparison.balanced,
        "methods": [
            {
                "method": line.method.name,
                "seeds": line.method.n_seeds,
                "note": line.note,
                **{
                    key: {"mean": cell.value.mean, "standard_error": cell.value.standard_error}
                    for key, cell in line.cells.items()
                },
                "published": {
                    source.label: {key: value.mean for key, value in row.values.items()}
                    for source, row in zip(comparison.published, line.published, strict=True)
                    if row is not None
                },
            }
            for line in comparison.lines
        ],
    }


def print_comparisons(comparisons: Sequence[Comparison]) -> None:
    """Print comparisons as tables, best in bold and second best underlined, and say what went wrong."""
    from rich.console import Console, Group
    from rich.text import Text

    width = Console().width if sys.stdout.isatty() else None
    parts: list[Text | Table] = []
    for comparison in comparisons:
        kind = "class-balanced" if comparison.balanced else "per sample"
        parts += [Text(visible(f"{comparison.experiment.title} ({kind})"), style="bold"), make_table(comparison, width)]
        parts += [Text(visible(f"{line.method.name}: {line.note}")) for line in comparison.lines if line.note]
        parts += [Text(comparison.legend)] if comparison.legend else []
        parts += [Text(visible(remark)) for remark in comparison.experiment.remarks]
        notes = comparison.experiment.all_notes
        parts += [Text(visible(f"{name}: {' '.join(own)}")) for name, own in notes.items()]
        parts += [
            Text(visible(f"Published with other settings: {'; '.join(source.differences)}."))
            for source in comparison.published
            if source.differences
        ]
        parts.append(Text(""))
    print_rich(Group(*(parts or [Text("The run has no results yet.")])))


def make_table(comparison: Comparison, width: int | None = None) -> Table:
    """Return a comparison as rich draws it; where it is too wide, without the columns that matter least.

    Parameters
    ----------
    comparison : Comparison
    width : int, default=None
        Characters of a line; None: as many as it takes.
    """
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(width=1000)
    left_out = 0
    table = _draw(comparison, set())
    while width is not None and left_out < len(EXPENDABLE) and Measurement.get(
        console, console.options, table
    ).maximum > width:  # fmt: skip
        left_out += 1
        table = _draw(comparison, set(EXPENDABLE[:left_out]))
    return table


def _draw(comparison: Comparison, left_out: set[str]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from aircl.report.formats import format_estimate

    columns = [column for column in comparison.columns if column.key not in left_out]
    published = () if "published" in left_out else comparison.published
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for column in columns:
        table.add_column(f"{column.title} {column.unit}".strip(), justify="right", vertical="bottom")
    for source in published:
        whose = visible(source.label).replace(", ", ",\n").replace(" (", "\n(")
        for metric in source.metrics:
            table.add_column(Text(f"{metric} %\n{whose}"), justify="right", style="italic")
    styles = {0: "", 1: "bold", 2: "underline"}
    for line in comparison.lines:
        if not line.method.jobs and not published:
            continue
        cells = [Text(visible(line.method.label))]
        for column in columns:
            cell = line.cells.get(column.key)
            cells.append(Text("-"))
            if cell is not None:
                error = (f" ±{cell.error}", "dim") if cell.error else ""
                mean = ("≈" + cell.text, "") if cell.tied else (cell.text, styles[cell.place])
                cells[-1] = Text.assemble(mean, error)
        for source, row in zip(published, line.published, strict=False):
            for metric in source.metrics:
                value = None if row is None else row.values.get(metric)
                cells.append(Text("-" if value is None else format_estimate(value)))
        table.add_row(*cells)
    return table
