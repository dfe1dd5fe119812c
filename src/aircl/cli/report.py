"""`aircl report`: a page, and tables, of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl.cli.console import print_json, print_rich, reports_problems, say
from aircl.cli.modelfile import check_output
from aircl.cli.options import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from aircl.report.tables import Comparison


@reports_problems
def report(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="A directory that `aircl run` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="HTML",
            help="The page; Markdown, CSV and LaTeX are written beside it.",
            show_default="DIR/report.html",
        ),
    ] = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Print class-balanced accuracies, not those per sample.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a page with the tables and figures of a run, and print the tables."""
    from aircl.benchmark.results import RunDirectory
    from aircl.report import compare, read_experiments, write_report

    if output is not None:
        if output.suffix.lower() not in (".html", ".htm"):
            raise typer.BadParameter(f"{output} should end in .html.", param_hint="--output")
        check_output(output)
    directory = RunDirectory(run)
    comparisons = [compare(experiment, balanced) for experiment in read_experiments(directory)]
    paths = write_report(directory, output)
    if json:
        print_json({"files": list(map(str, paths)), "experiments": [describe(one) for one in comparisons]})
        return
    print_comparisons(comparisons)
    say(f"Report: {paths[0]}")


def describe(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON would hold it; accuracies are in per cent."""
    experiment = comparison.experiment
    return {
        "dataset": experiment.dataset,
        "backbone": experiment.backbone,
        "scenario": experiment.scenario,
        "order": experiment.order,
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
                "published": {}
                if line.published is None
                else {key: value.mean for key, value in line.published.values.items()},
            }
            for line in comparison.lines
        ],
    }


def print_comparisons(comparisons: Sequence[Comparison]) -> None:
    """Print comparisons as tables, best in bold and second best underlined, and say what went wrong."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Text | Table] = []
    for comparison in comparisons:
        kind = "class-balanced" if comparison.balanced else "per sample"
        parts += [Text(f"{comparison.experiment.title} ({kind})", style="bold"), make_table(comparison)]
        parts += [Text(f"{line.method.name}: {line.note}") for line in comparison.lines if line.note]
        if comparison.published is not None and comparison.published.differences:
            parts.append(Text(f"Published with other settings: {'; '.join(comparison.published.differences)}."))
        parts.append(Text(""))
    print_rich(Group(*(parts or [Text("The run has no results yet.")])))


def make_table(comparison: Comparison) -> Table:
    """Return a comparison as rich draws it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from aircl.report.tables import format_estimate

    published = comparison.published
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for column in comparison.columns:
        table.add_column(f"{column.title} {column.unit}".strip(), justify="right")
    for metric in () if published is None else published.metrics:
        table.add_column(f"{metric}\n{published.label}" if published else metric, justify="right", style="italic")
    styles = {0: "", 1: "bold", 2: "underline"}
    for line in comparison.lines:
        cells = [Text(line.method.name)]
        for column in comparison.columns:
            cell = line.cells.get(column.key)
            text = Text("-") if cell is None else Text(cell.text, styles[cell.place])
            cells.append(
                text if cell is None or not cell.error else text.append(f" ±{cell.error}", "not bold not underline dim")
            )
        for metric in () if published is None else published.metrics:
            value = None if line.published is None else line.published.values.get(metric)
            cells.append(Text("-" if value is None else format_estimate(value)))
        table.add_row(*cells)
    return table
