"""`aircl check-method`: whether a method keeps the contract of the benchmark."""

from __future__ import annotations

import json as json_format
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aircl.cli.console import print_json, print_rich, reports_problems, say
from aircl.cli.options import Json, Quiet
from aircl.storage.text import visible

if TYPE_CHECKING:
    from aircl.benchmark.contract import Finding
    from aircl.methods import Method

COLOURS = {"passed": "green", "failed": "bold red", "skipped": "yellow"}


@reports_problems
def check_method(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A method; with --module, a class in the file.", show_default=False),
    ] = None,
    module: Annotated[
        Path | None, typer.Option(metavar="FILE.py", help="Check a method that this file defines. The file is run.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="An option of the method, as JSON or text; may be repeated."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check on real digits whether a method fulfils the contract of the benchmark.

    Exit code 0 if every check passes or does not apply, 1 if one fails.
    """
    options = dict(map(as_option, option or []))
    method = find_method(name, module)

    from aircl.benchmark import contract

    with showing_progress(len(contract.CHECKS), quiet) as progress:
        findings = contract.check_method(method, options=options, progress=progress)
    failed = [finding for finding in findings if finding.result == "failed"]
    if json:
        checks = [asdict(finding) for finding in findings]
        print_json({"method": name or method.__name__, "passed": not failed, "checks": checks})
    else:
        show(findings)
    if not quiet:
        seconds = sum(finding.seconds for finding in findings)
        counts = Counter(finding.result for finding in findings)
        say(f"{', '.join(f'{count} {result}' for result, count in counts.items())}, in {seconds:.1f} s.")
        if trial := {**getattr(method, "trial_options", {}), **options}:
            say(f"Tried out with {', '.join(f'{key}={value}' for key, value in trial.items())}.")
    if failed:
        raise typer.Exit(1)


def as_option(text: str) -> tuple[str, Any]:
    """Return key and value of KEY=VALUE; a value that is not JSON is text."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise typer.BadParameter(f"{text!r} is not of the form KEY=VALUE.", param_hint="--option")
    try:
        return key, json_format.loads(value)
    except json_format.JSONDecodeError:
        return key, value


def find_method(name: str | None, module: Path | None) -> type[Method]:
    """Return the class of a registered method, or of one in a file."""
    if module is not None:
        from aircl.benchmark.contract import load_method_class

        return load_method_class(module, name)
    from aircl.methods import METHODS, list_methods

    if name is None:
        raise typer.BadParameter(
            f"name a method ({', '.join(list_methods())}), or a file with --module FILE.py.", param_hint="NAME"
        )
    list_methods()  # loads those that other packages bring
    try:
        return METHODS[name]
    except ValueError as error:
        raise typer.BadParameter(f"{error} For one of your own: --module FILE.py.", param_hint="NAME") from None


@contextmanager
def showing_progress(total: int, quiet: bool) -> Iterator[Callable[[int, str], None]]:
    """Show on a terminal which check is under way."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=Console(stderr=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task("preparing", total=total)
        yield lambda done, name: bar.update(task, completed=done, description=name)


def show(findings: list[Finding]) -> None:
    """Print findings as a table."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("check", "result", "reason"):
        table.add_column(column)
    for finding in findings:
        table.add_row(finding.name, Text(finding.result, COLOURS[finding.result]), Text(visible(finding.reason)))
    print_rich(table)
