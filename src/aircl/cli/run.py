"""`aircl run`: a benchmark, from the command line or a TOML file, that can be stopped and resumed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl.cli.check_method import as_option
from aircl.cli.console import reports_problems, say
from aircl.cli.options import CacheDirectory, DataDirectory, Device, Json, Quiet
from aircl.cli.report import report
from aircl.storage.text import visible

if TYPE_CHECKING:
    from aircl.benchmark.config import RunConfig
    from aircl.benchmark.listener import Listener

BACKBONE = "efficientnet-lite0"
# What --quick leaves of a run: enough to see whether everything works, nothing to be quoted.
QUICK_BUFFER = 500


@reports_problems
def run(
    config: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE.toml]", help="A configuration; without one, a small default run."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="One of the paper's tables: table1, table2.")
    ] = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STREAM",
            help="A scenario and its options, such as long-tail,counts=exp,phases=10; may be repeated.",
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name of `aircl list datasets`; may be repeated.")
    ] = None,
    data: DataDirectory = None,
    backbone: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name of `aircl list backbones`; may be repeated.", show_default=BACKBONE),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Names of `aircl list methods`, separated by commas; imbalance: those that are made for it.",
        ),
    ] = None,
    module: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE.py", help="A file with a method of your own, which is run; may be repeated."),
    ] = None,
    orders: Annotated[
        str | None, typer.Option(metavar="A,B", help="Orders of the scenario, separated by commas.")
    ] = None,
    seeds: Annotated[str | None, typer.Option(metavar="SEEDS", help="How many (3), or which (1,2,5 or 1-5).")] = None,
    buffer: Annotated[int | None, typer.Option(metavar="F", min=0, help="Width of the random buffer; 0: none.")] = None,
    gamma: Annotated[
        str | None,
        typer.Option(metavar="VALUE|auto|grid", help="The ridge: a number, from the statistics, or from a grid."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="METHOD.KEY=VALUE", help="An option of a method, such as er.memory=500; may be repeated."),
    ] = None,
    unfreeze: Annotated[
        bool, typer.Option("--unfreeze", help="Train the backbone too, in methods that can; they learn from images.")
    ] = False,
    batch: Annotated[int | None, typer.Option(metavar="ROWS", min=1, help="Rows of a batch of the stream.")] = None,
    evaluate_every: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Samples between evaluations, for A_auc; 0: none.")
    ] = None,
    resample: Annotated[
        bool, typer.Option("--resample", help="long-tail: every seed draws again which samples a class keeps.")
    ] = False,
    isolate: Annotated[
        bool, typer.Option("--isolate", help="Every job in a process of its own, to tell its peak memory; slower.")
    ] = False,
    log: Annotated[
        list[str] | None,
        typer.Option(metavar="LOGGER", help="tensorboard or wandb (offline), below the run; may be repeated."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One seed, a small buffer: to see whether it works.")] = False,
    device: Device = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print jobs, sizes and an estimate of the time here; run nothing.")
    ] = False,
    resume: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Go on with a run that was stopped; failed jobs are tried again.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Directory of the run.", show_default="runs/NAME"),
    ] = None,
    cache: CacheDirectory = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods on streams, and write the results, a report and the pictures."""
    changes = {
        "orders": _names(orders),
        "seeds": None if seeds is None else parse_seeds(seeds),
        "gamma": None if gamma is None else _gamma(gamma),
        "batch_size": batch,
    }
    changes = {key: value for key, value in changes.items() if value is not None}
    if buffer is not None:
        changes["buffer"] = buffer or None
    if evaluate_every is not None:
        changes["evaluate_every"] = evaluate_every or None
    if unfreeze:
        changes["unfreeze"] = True
    method_options = parse_method_options(option or [])
    from aircl.benchmark.config import RunConfig
    from aircl.benchmark.results import RunDirectory, file_name

    own = _load(module or [])
    if (names := _names(methods)) is not None:
        from aircl.methods.registry import expand_methods

        changes["methods"] = expand_methods(names)
    if resume is not None:
        if (
            config
            or preset
            or scenario
            or dataset
            or backbone
            or changes
            or method_options
            or resample
            or quick
            or output
        ):
            raise typer.BadParameter(
                "a run is resumed as it was begun: only --data, --device, --cache, --module and --isolate go with it."
            )
        from aircl.benchmark.own_methods import load_sources

        directory = RunDirectory(resume)
        about = directory.about
        for remark in load_sources(about.get("sources", {})):
            if not quiet:
                say(remark)
        configuration = RunConfig.from_mapping(about.get("config", {}))
    else:
        configuration = _configure(config, preset, scenario or [], dataset or [], data, backbone or [])
        if own and methods is None:  # beside those that would run anyway
            configuration = configuration.with_methods(own)
        configuration = configuration.changed(**changes).with_options(method_options)
        configuration = configuration.resampled() if resample else configuration
        configuration = _shortened(configuration) if quick else configuration
        directory = RunDirectory(output or _free_place(Path("runs"), file_name(configuration.name)))
        if (directory.path / "rows.jsonl").exists():
            raise ValueError(
                f"{directory.path} has results already. Go on with it: --resume {directory.path}; or choose another -o."
            )
    if device is not None:
        configuration = configuration.changed(device=device)
    if dry_run:
        from aircl.benchmark.plan import make_plan
        from aircl.cli.plan import show_plan

        show_plan(make_plan(configuration, data=data), json)
        return
    _run(configuration, directory.path, data, cache, quiet, isolate, log or [])
    if json or not quiet:
        report([directory.path], json=json)
    else:
        from aircl.report import write_report

        write_report(directory)
    if not any(row.metric == "A_last" for row in directory.rows()):
        raise typer.Exit(1)  # nothing came of it, as the table says


def _load(modules: list[Path]) -> tuple[str, ...]:
    """Run files of methods, and return the names of these."""
    from aircl.benchmark.contract import load_method_file

    return tuple(name for path in modules for name in load_method_file(path))


def _free_place(runs: Path, name: str) -> Path:
    """Return runs/NAME, or runs/NAME-2 and so on if that was taken by an earlier run."""
    place, number = runs / name, 1
    while (place / "rows.jsonl").exists():
        number += 1
        place = runs / f"{name}-{number}"
    return place


def _configure(
    config: Path | None,
    preset: str | None,
    scenarios: list[str],
    datasets: list[str],
    data: str | None,
    backbones: list[str],
) -> RunConfig:
    """Return what is to be run: a file, a preset, scenarios, or the default; each dataset with each backbone."""
    from aircl.benchmark.config import Experiment, RunConfig, default_config, preset_config
    from aircl.cli.streams import parse_stream

    given = [name for name, value in (("FILE", config), ("--preset", preset), ("--scenario", scenarios)) if value]
    if len(given) > 1:
        raise typer.BadParameter(f"{' and '.join(given)} exclude each other.")
    if not datasets and data is not None and not preset:
        from aircl.data import DATASETS

        if data in DATASETS and not Path(data).exists():
            datasets = [data]
    if config is not None or not given:
        if datasets and config is None:
            raise typer.BadParameter("--dataset goes with --scenario or --preset.", param_hint="--dataset")
        base = default_config() if config is None else RunConfig.from_toml(config)
        changes = [
            {**({"dataset": dataset} if dataset else {}), **({"backbone": backbone} if backbone else {})}
            for dataset in datasets or [""]
            for backbone in backbones or [""]
        ]
        return RunConfig(base.name, tuple(one for change in changes for one in base.changed(**change).experiments))
    experiments: list[Experiment] = []
    for backbone in backbones or [BACKBONE]:
        if preset is not None:
            parts = [preset_config(preset, dataset or None, backbone) for dataset in datasets or [""]]
            experiments += [one for part in parts for one in part.experiments]
            continue
        if not datasets:
            raise typer.BadParameter("a scenario needs data: --dataset NAME.", param_hint="--dataset")
        for dataset in datasets:
            for name, options in map(parse_stream, scenarios):
                order = options.pop("order", "")
                experiments.append(Experiment(dataset, backbone, name, options, (order,)))
    names = list(dict.fromkeys(part for one in experiments for part in (one.dataset, one.scenario)))
    return RunConfig(preset or "-".join(sorted(names, key=lambda name: name not in datasets)), tuple(experiments))


def _shortened(configuration: RunConfig) -> RunConfig:
    """Return what --quick leaves of a run."""
    from aircl.benchmark.config import RunConfig

    experiments = (
        replace(one, seeds=one.seeds[:1], buffer=one.buffer and min(one.buffer, QUICK_BUFFER))
        for one in configuration.experiments
    )
    return RunConfig(f"{configuration.name}-quick", tuple(experiments))


def parse_seeds(text: str) -> tuple[int, ...]:
    """Return the seeds that a text stands for.

    >>> parse_seeds("3"), parse_seeds("1,4,1"), parse_seeds("2-5")
    ((1, 2, 3), (1, 4), (2, 3, 4, 5))
    """
    try:
        if "," in text:
            return tuple(dict.fromkeys(int(part) for part in text.split(",") if part.strip()))
        first, dash, last = text.partition("-")
        return tuple(range(int(first), int(last) + 1)) if dash else tuple(range(1, int(first) + 1))
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is neither a number of seeds (3) nor a list (1,2,5) nor a range (1-5).", param_hint="--seeds"
        ) from None


def parse_method_options(texts: list[str]) -> dict[str, dict[str, Any]]:
    """Return the options of each method that is named.

    >>> parse_method_options(["er.memory=500", "ewc++.penalty=10", "er.optimiser=adam"])
    {'er': {'memory': 500, 'optimiser': 'adam'}, 'ewc++': {'penalty': 10}}
    """
    options: dict[str, dict[str, Any]] = {}
    for text in texts:
        key, value = as_option(text)
        method, _, name = key.rpartition(".")
        if not method or not name:
            raise typer.BadParameter(
                f"{text!r} is not of the form METHOD.KEY=VALUE, such as er.memory=500.", param_hint="--option"
            )
        options.setdefault(method, {})[name] = value
    return options


def _names(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def _gamma(text: str) -> float | str:
    if text in ("auto", "grid"):
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number nor auto nor grid.", param_hint="--gamma") from None


def _run(
    configuration: RunConfig,
    path: Path,
    data: str | None,
    cache: Path | None,
    quiet: bool,
    isolate: bool,
    loggers: list[str],
) -> None:
    from aircl.benchmark.loggers import make_logger
    from aircl.benchmark.results import RunDirectory
    from aircl.benchmark.runner import Runner

    sinks = [make_logger(name, path) for name in loggers]
    with _watching(quiet) as watcher:
        listeners = [watcher, *sinks]
        runner = Runner(configuration, RunDirectory(path), data=data, cache=cache, listener=listeners, isolate=isolate)
        try:
            runner.run()
        except KeyboardInterrupt:
            say(f"Stopped. Go on with: aircl run --resume {path}")
            raise


@contextmanager
def _watching(quiet: bool) -> Iterator[Listener]:
    """Show on a terminal how far a run is: jobs, the phases of the present one, time left; else a line for each job."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from aircl.benchmark.listener import Listener, Spec
    from aircl.benchmark.results import Row

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    ) as bar:
        jobs = bar.add_task("jobs", total=0)
        samples = bar.add_task("", total=0)

        class Watcher(Listener):
            def extracting(self, what: str) -> Any:
                bar.update(samples, description=f"features of {what}")
                return self._advance

            def training(self, backbone: str, n_images: int, n_classes: int) -> None:
                if not quiet:
                    text = f"{backbone}: training on {n_images:,} images of {n_classes} classes of phase 1."
                    bar.console.print(visible(text), highlight=False, markup=False, soft_wrap=True)

            def left_out(self, dataset: str, remark: str) -> None:
                if not quiet:
                    bar.console.print(visible(f"{dataset}: {remark}"), highlight=False, markup=False, soft_wrap=True)

            def job(self, spec: Spec, number: int, total: int) -> Any:
                bar.update(jobs, completed=number - 1, total=total)
                bar.update(samples, description=f"{spec.method}, {spec.order or spec.experiment.scenario}, {spec.seed}")
                return self._advance

            def done(self, spec: Spec, row: Row) -> None:
                bar.update(jobs, advance=1)
                if not quiet:
                    result = (
                        f"A_last {100 * row.value:.2f} %" if row.value is not None else f"{row.status}: {row.reason}"
                    )
                    bar.console.print(
                        visible(f"{spec.name}: {result} ({row.seconds:.1f} s)"),
                        highlight=False,
                        markup=False,
                        soft_wrap=True,
                    )

            def _advance(self, done: int, total: int) -> None:
                bar.update(samples, completed=done, total=total)

        yield Watcher()
