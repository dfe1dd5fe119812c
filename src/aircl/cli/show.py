"""`aircl show`: a picture of a stream, and its totals."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from aircl.cli.console import print_json, print_rich, reports_problems, say
from aircl.cli.datasets import open_dataset
from aircl.cli.options import DataDirectory, Json
from aircl.cli.pictures import write_figure
from aircl.cli.streams import parse_stream
from aircl.storage.writing import check_output, check_own

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from aircl.scenarios import Preset, Stream

    Integers = npt.NDArray[np.int64]

Counts = Literal["exp_max", "exp", "step", "natural"]
Order = Literal["natural", "shuffled", "descending", "ascending", "shuffled-classes"]

IMAGES = (".png", ".svg", ".pdf")
# By which a picture that was not asked for by name is known again, and may be replaced.
MARK = "aircl show"


def as_fraction(text: str) -> float:
    """Return the number that 0.002 or 1/500 stands for."""
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f"{text!r} is neither a number nor a fraction such as 1/500.") from None


@reports_problems
def show(
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="STREAM",
            help="A name of `aircl list scenarios`, alone or with options as in `aircl run`: cil,base=0.5,phases=6.",
            show_default=False,
        ),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Labels of a dataset: a name of `aircl list datasets`.")
    ] = None,
    data: DataDirectory = None,
    classes: Annotated[int | None, typer.Option(metavar="C", min=1, help="Without a dataset: C classes ..")] = None,
    per_class: Annotated[
        int | None, typer.Option(metavar="N", min=1, help=".. of N training samples each, in class order.")
    ] = None,
    domains: Annotated[
        int | None, typer.Option(metavar="D", min=1, help=".. distributed in turn over D domains (domain-incremental).")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="A column of the paper's tables, such as table2-cifar100.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="S", min=0, help="Seed of the stream.", show_default="0")] = None,
    phases: Annotated[
        int | None, typer.Option(metavar="T", min=1, help="Number of phases.", show_default="10; blurry: 5")
    ] = None,
    order: Annotated[
        Order | None,
        typer.Option(
            help="Which classes or domains come first.",
            show_default="long-tail: descending; domain-incremental: natural; others: shuffled",
        ),
    ] = None,
    base: Annotated[
        float | None, typer.Option(metavar="SHARE", help="cil: share of the classes in phase 1.", show_default="0")
    ] = None,
    counts: Annotated[
        Counts | None, typer.Option(help="long-tail: how many samples a class keeps.", show_default="exp_max")
    ] = None,
    ratio: Annotated[
        float | None,
        typer.Option(
            metavar="R",
            parser=as_fraction,
            help="long-tail: samples of the rarest class over those of the most frequent.",
            show_default="1/500",
        ),
    ] = None,
    disjoint: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="blurry: share of the classes in one phase only.", show_default="0.5; paper: 0.1"
        ),
    ] = None,
    blurry: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="blurry: share of the samples that appear in other phases.",
            show_default="0.1; paper: 0.5",
        ),
    ] = None,
    faithful: Annotated[
        bool | None,
        typer.Option(
            "--faithful/--no-faithful", help="si-blurry: exactly the public code (needs torch).", show_default="no"
        ),
    ] = None,
    resample: Annotated[
        bool | None,
        typer.Option(
            "--resample/--no-resample", help="long-tail: the seed draws which samples are kept.", show_default="no"
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="IMAGE",
            help=f"The picture ({', '.join(IMAGES)}).",
            show_default="SCENARIO.png; none with --json",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Draw how many samples of each class each phase of a stream has, and print the totals."""
    given = {
        "phases": phases,
        "order": order,
        "base": base,
        "counts": counts,
        "ratio": ratio,
        "disjoint": disjoint,
        "blurry": blurry,
        "faithful": faithful,
        "resample": resample,
    }
    scenario, written = (None, {}) if scenario is None else read_stream(scenario)
    own = {name: written.pop(name, None) for name in ("seed", "domains")}
    seed = own["seed"] if seed is None else seed
    domains = own["domains"] if domains is None else domains
    options = written | {name: value for name, value in given.items() if value is not None}
    column = None if preset is None else find_preset(preset, scenario)
    if column is not None:
        scenario = column.scenario
        options = {**column.options, **options}
        seed = column.seeds[0] if seed is None else seed
        dataset = column.dataset if dataset is None and classes is None else dataset
    if scenario is None:
        raise typer.BadParameter("name a scenario, or a --preset.", param_hint="STREAM")
    check_options(scenario, options, domains)
    if dataset is not None and classes is not None:
        raise typer.BadParameter("labels come from a dataset or from --classes, not both.", param_hint="--dataset")
    check_source(scenario, dataset or data, classes, per_class, domains)
    if output is None and not json:
        output = Path(f"{scenario}.png")
        check_own(output, MARK)
    if output is not None:
        if output.suffix.lower() not in IMAGES:
            raise typer.BadParameter(f"{output} should end in one of {', '.join(IMAGES)}.", param_hint="--output")
        check_output(output)

    labels, domain, names = labels_of(dataset, data, classes, per_class, domains)
    stream = make(scenario, labels, domain, seed or 0, options)
    if output is not None:
        draw(stream, output, names)
    if json:
        print_json(describe(stream, names))
    else:
        print_totals(stream, names)
    if output is not None:
        say(f"Drawn in {output}")


def read_stream(text: str) -> tuple[str, dict[str, Any]]:
    """Return a scenario and its options as `aircl run` reads them."""
    try:
        return parse_stream(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="STREAM") from None


def find_preset(name: str, scenario: str | None) -> Preset:
    """Return a preset, which must be of the scenario if there is one."""
    from aircl.scenarios import PRESETS

    if name not in PRESETS:
        raise typer.BadParameter(f"there is no {name!r}. Known: {', '.join(PRESETS)}.", param_hint="--preset")
    if scenario not in (None, PRESETS[name].scenario):
        raise typer.BadParameter(f"{name} is of {PRESETS[name].scenario}, not {scenario}.", param_hint="--preset")
    return PRESETS[name]


def check_options(scenario: str, options: dict[str, Any], domains: int | None) -> None:
    """Refuse a scenario that there is not, and options that it does not have."""
    from aircl.scenarios import describe_scenario

    try:
        allowed = [*describe_scenario(scenario).options, "seed"]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="STREAM") from None
    allowed += ["domains"] * (scenario == "domain-incremental")
    wrong = [name for name in (*options, *["domains"] * (domains is not None)) if name not in allowed]
    if wrong:
        raise typer.BadParameter(
            f"{scenario} takes no {_flags(wrong)}. Its options: {_flags(allowed)}.", param_hint=_flags(wrong[:1])
        )


def check_source(
    scenario: str, source: str | None, classes: int | None, per_class: int | None, domains: int | None
) -> None:
    """Refuse labels from nowhere or half described; `source` is a dataset or a directory of one."""
    if (classes is None) != (per_class is None):
        raise typer.BadParameter("--classes and --per-class go together.", param_hint="--classes")
    if source is None and classes is None:
        raise typer.BadParameter(
            "labels of what? Give --dataset NAME, or --classes C and --per-class N.", param_hint="--dataset"
        )
    if domains is not None and classes is None:
        raise typer.BadParameter("a dataset has its own domains: it goes with --classes.", param_hint="--domains")
    if domains is None and classes is not None and scenario == "domain-incremental":
        raise typer.BadParameter("with --classes, say how many domains there are.", param_hint="--domains")


def labels_of(
    dataset: str | None, data: str | None, classes: int | None, per_class: int | None, domains: int | None
) -> tuple[Integers, Integers | None, tuple[str, ...]]:
    """Return the labels and the domains of a training set, real or imagined, and the names of its classes."""
    import numpy as np

    if classes is not None and per_class is not None:
        labels = np.repeat(np.arange(classes), per_class)
        return labels, None if domains is None else np.arange(len(labels)) % domains, ()
    known = open_dataset(dataset, data)
    return known.train.labels, known.train.domains, known.class_names


def make(scenario: str, labels: Integers, domains: Integers | None, seed: int, options: dict[str, Any]) -> Stream:
    """Return the stream; what the scenario refuses is wrong usage."""
    from aircl.scenarios import make_stream

    try:
        return make_stream(scenario, labels, seed=seed, domains=domains, **options)
    except ImportError as error:
        say(f"Error: {error}")
        raise typer.Exit(1) from None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="STREAM") from None


def describe(stream: Stream, names: Sequence[str]) -> dict[str, Any]:
    """Return the totals of a stream, as JSON would hold them; classes by their names where they have some."""

    def named(labels: Integers) -> list[Any]:
        return [names[label] if names else label for label in labels.tolist()]

    return {
        "total": stream.total,
        "left_out": named(stream.dropped_classes),
        "phases": [
            {
                "samples": len(phase.train),
                "classes": named(phase.classes),
                "new_classes": named(phase.new_classes),
            }
            for phase in stream.phases
        ],
    }


def print_totals(stream: Stream, names: Sequence[str]) -> None:
    """Print the totals of a stream as a table, with the names of new classes, and what is worth a remark."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=True)
    table.add_column("phase", "total", justify="right")
    table.add_column("samples", f"{stream.total:,}", justify="right")
    table.add_column("classes", str(len(stream.classes)), justify="right")
    table.add_column("new", justify="right")
    table.add_column("")
    shown = describe(stream, names)
    for number, (phase, told) in enumerate(zip(stream.phases, shown["phases"], strict=True), 1):
        sizes = (len(phase.train), len(phase.classes), len(phase.new_classes))
        new = shortened(told["new_classes"]) if names else ""
        table.add_row(str(number), *(f"{size:,}" for size in sizes), new if len(phase.train) else "empty")
    print_rich(table)
    if dropped := shown["left_out"]:
        kind = "classes" if len(dropped) > 1 else "class"
        typer.echo(f"Left out, as they cannot be dealt evenly: {kind} {', '.join(map(str, dropped))}.")


def shortened(names: Sequence[str], most: int = 5) -> str:
    """Return some names, and how many more there are.

    >>> shortened(["ant", "bee", "cat"], most=2)
    'ant, bee and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def draw(stream: Stream, path: Path, names: Sequence[str]) -> None:
    """Write a picture of a stream."""
    from matplotlib.figure import Figure

    from aircl.report.figures import plot_stream

    # A row of text for each phase, within what fits a page.
    figure = Figure(figsize=(9, min(8.0, max(2.5, 1.5 + 0.25 * len(stream)))), layout="constrained")
    plot_stream(stream, figure.subplots(), class_names=names)
    write_figure(figure, path, MARK)


def _flags(names: list[str]) -> str:
    return ", ".join(f"--{name}" for name in names)
