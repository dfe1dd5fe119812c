"""All commands together, and how the process starts and stops."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from aircl import __version__
from aircl.cli.cache import cache
from aircl.cli.check_method import check_method
from aircl.cli.evaluate import evaluate
from aircl.cli.export_rows import export_rows
from aircl.cli.features import features
from aircl.cli.forget import forget
from aircl.cli.info import info
from aircl.cli.learn import learn
from aircl.cli.listing import list_
from aircl.cli.merge import merge
from aircl.cli.once import OnceCommand
from aircl.cli.predict import predict
from aircl.cli.report import report
from aircl.cli.run import run
from aircl.cli.show import show
from aircl.cli.tune import tune

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
for command in (learn, predict, evaluate, merge, forget, info, features, cache, show, run, report, tune):
    app.command(cls=OnceCommand)(command)
app.command("list", cls=OnceCommand)(list_)
app.command("check-method", cls=OnceCommand)(check_method)
app.command("export-rows", cls=OnceCommand)(export_rows)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"aircl {__version__}")
        raise typer.Exit


@app.callback()
def _aircl(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Classifiers learned from files of embeddings: exactly, in one pass, rare classes heard as much as frequent ones.

    Results go to stdout, messages to stderr. Exit codes: 0 done, 1 a problem with data or a model, 2 wrong usage.
    """


def main() -> None:
    """Run the command line. It clears up after itself when it is told to stop."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        app(prog_name="aircl")
    except KeyboardInterrupt:
        sys.exit(130)
