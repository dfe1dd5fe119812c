"""All commands together, and how the process starts and stops."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated

import typer

from aircl import __version__
from aircl.cli import console
from aircl.cli.cache import cache
from aircl.cli.check_method import check_method
from aircl.cli.diff import diff
from aircl.cli.evaluate import evaluate
from aircl.cli.export import export
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
from aircl.cli.serve import serve, token
from aircl.cli.show import show
from aircl.cli.tune import tune
from aircl.cli.weights import weights

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
for command in (
    learn,
    predict,
    evaluate,
    merge,
    forget,
    info,
    diff,
    export,
    features,
    weights,
    cache,
    show,
    run,
    report,
    tune,
    serve,
    token,
):
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
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Classifiers learned from files of embeddings: exactly, in one pass, with equal weight for rare classes.

    Results go to stdout, messages to stderr. Exit codes: 0 done, 1 a problem with data, files or a model, 2 wrong
    usage, 70 a fault of aircl.
    """
    console.debugging = debug


def main() -> None:
    """Run the command line. It clears up after itself when it is told to stop."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    _open_streams()
    try:
        console.reports_problems(app)(prog_name="aircl")  # what goes wrong outside the commands
    except typer.Exit as end:
        sys.exit(end.exit_code)


def _open_streams() -> None:
    """Have something in place of closed streams: else the next file that is opened would be taken for one."""
    if sys.stdout is None:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 1)  # writing to it fails, as it should
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 (for the rest of the process)
    if sys.stderr is None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a letter gets its number
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
