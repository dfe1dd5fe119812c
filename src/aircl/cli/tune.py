"""`aircl tune`: options of methods, chosen on held-out training samples, as a file for `aircl run`."""

from __future__ import annotations

import json as json_format
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl.cli.check_method import as_option
from aircl.cli.console import print_json, reports_problems, say
from aircl.cli.options import CacheDirectory, DataDirectory, Device, Json, Quiet
from aircl.storage.writing import check_output, check_own, write_text

if TYPE_CHECKING:
    from aircl.benchmark.config import RunConfig, Tuning
    from aircl.benchmark.tuning import Tuned
    from aircl.methods import Range

# By which a file that was not asked for by name is known again, and may be replaced.
MARK = "# Written by `aircl tune`."


@reports_problems
def tune(
    methods: Annotated[str, typer.Argument(metavar="A,B", help="Methods, separated by commas.")],
    dataset: Annotated[str, typer.Option(metavar="NAME", help="A name of `aircl list datasets`.")],
    scenario: Annotated[str, typer.Option(metavar="STREAM", help="A scenario and its options, as for `aircl run`.")],
    backbone: Annotated[str, typer.Option(metavar="NAME", help="A name of `aircl list backbones`.")] = "identity",
    data: DataDirectory = None,
    trials: Annotated[int, typer.Option(metavar="N", min=1, help="Trials of every method, the same for all.")] = 20,
    range_: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="METHOD.KEY=LOW:HIGH",
            help="Values to choose from: 1e-4:1e-1:log, 1:40:int, or sgd|adam; may be repeated.",
        ),
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="SEEDS", help="Of the run that follows; the first is tuned on.")] = "3",
    buffer: Annotated[int, typer.Option(metavar="F", min=0, help="Width of the random buffer; 0: none.")] = 0,
    module: Annotated[
        list[Path] | None, typer.Option(metavar="FILE.py", help="A file with a method of your own, which is run.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.toml",
            help="The configuration, for `aircl run FILE.toml`.",
            show_default="tuned.toml",
        ),
    ] = None,
    device: Device = None,
    cache: CacheDirectory = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Choose options of methods on a fifth of the TRAINING samples, held out for it; no test sample is used."""
    from aircl.benchmark.config import Experiment, RunConfig
    from aircl.benchmark.contract import load_method_file
    from aircl.benchmark.results import RunDirectory
    from aircl.benchmark.runner import Runner
    from aircl.benchmark.tuning import search_space
    from aircl.benchmark.tuning import tune as search
    from aircl.cli.run import parse_seeds
    from aircl.cli.streams import parse_stream
    from aircl.methods.registry import expand_methods, load_methods

    load_methods()
    for path in module or []:
        load_method_file(path)
    if output is None:
        output = Path("tuned.toml")
        check_own(output, MARK)
    check_output(output, module or [])
    ranges = parse_ranges(range_ or [])
    names = expand_methods(name.strip() for name in methods.split(",") if name.strip())
    if unknown := [method for method in ranges if method not in names]:
        raise typer.BadParameter(f"{unknown[0]} is not among the methods, {', '.join(names)}.", param_hint="--range")
    name, options = parse_stream(scenario)
    order = options.pop("order", "")
    experiment = Experiment(
        dataset, backbone, name, options, (order,), names, parse_seeds(seeds), buffer=buffer or None, device=device
    )
    runner = Runner(RunConfig(output.stem, (experiment,)), RunDirectory(output.parent), data=data, cache=cache)
    # All are checked before the first search, which may take long.
    spaces = {one: search_space(one, online=experiment.online, ranges=ranges.get(one)) for one in names}
    if not any(spaces.values()):
        raise ValueError(f"{names[0]} declares no ranges. Give some: --range {names[0]}.OPTION=LOW:HIGH.")
    found = []
    for method in names:
        if not spaces[method]:
            if not quiet:
                say(f"{method}: it has nothing to search, and stays as it is")
            continue
        found.append(search(runner, method, trials=trials, ranges=ranges.get(method)))
        if not quiet:
            say(describe(found[-1]))
    configuration = with_choices(runner.config, found)
    write_text(output, to_toml(configuration))
    if json:
        print_json({"file": str(output), "methods": [asdict(one) for one in found]})
    elif not quiet:
        own = (f"--module {shlex.quote(str(path))}" for path in module or [])
        say(f"Run it: {' '.join(['aircl run', shlex.quote(str(output)), *own])}")


def parse_ranges(texts: list[str]) -> dict[str, dict[str, Range]]:
    """Return the ranges of each method that is named.

    >>> parse_ranges(["er.learning_rate=1e-4:1e-1:log", "er.optimiser=sgd|adam"])["er"]["optimiser"].choices
    ('sgd', 'adam')
    """
    from aircl.methods import Range

    ranges: dict[str, dict[str, Range]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        method, _, option = key.rpartition(".")
        low, colon, rest = value.partition(":")
        high, _, kind = rest.partition(":")
        try:
            if not (method and option and equals) or kind not in ("", "log", "int"):
                raise ValueError
            if colon:
                found = Range(float(low), float(high), log=kind == "log", integer=kind == "int")
            else:
                found = Range(choices=tuple(as_option(f"x={part}")[1] for part in value.split("|")))
        except ValueError as error:
            advice = (
                str(error) or f"{text!r} is not of the form METHOD.KEY=LOW:HIGH, LOW:HIGH:log, LOW:HIGH:int or A|B."
            )
            raise typer.BadParameter(advice, param_hint="--range") from None
        ranges.setdefault(method, {})[option] = found
    return ranges


def describe(tuned: Tuned) -> str:
    """Return what was chosen, in one line."""
    chosen = ", ".join(f"{name}={_plain(value)}" for name, value in tuned.values.items()) or "the defaults"
    return (
        f"{tuned.method}: {chosen} ({tuned.score:.1%} of held-out training samples, {tuned.default_score:.1%} with the "
        f"defaults; {tuned.trials} trials, {tuned.seconds:.1f} s)"
    )


def with_choices(configuration: RunConfig, found: list[Tuned]) -> RunConfig:
    """Return a configuration with what was chosen, and what it took."""
    (base,) = configuration.experiments
    cost: dict[str, Tuning] = {
        one.method: {
            "trials": one.trials,
            "seconds": one.seconds,
            "score": one.score,
            "default_score": one.default_score,
        }
        for one in found
    }
    options = {one.method: one.values for one in found if one.values}
    return replace(configuration, experiments=(replace(base, method_options=options, tuning=cost),))


def to_toml(configuration: RunConfig) -> str:
    """Return a configuration as a TOML file holds it."""
    lines = [MARK, f"name = {_toml(configuration.name)}"]
    for experiment in configuration.to_mapping()["experiments"]:
        tables = {key: experiment.pop(key) for key in ("options", "method_options", "tuning")}
        lines += ["", "[[experiments]]"]
        lines += [f"{key} = {_toml(value)}" for key, value in experiment.items() if value is not None]
        lines.append(f"options = {_toml(tables.pop('options'))}")
        for table, values in tables.items():
            lines += [f"{table}.{_toml(name)} = {_toml(of)}" for name, of in values.items()]
    return "\n".join([*lines, ""])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    # Strings, numbers and booleans look the same, but TOML has no halves of characters, and no DEL.
    return json_format.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _plain(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
