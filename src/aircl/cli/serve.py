"""`aircl serve` and `aircl token`: a model that learns and answers over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from aircl.cli.console import reports_problems, say
from aircl.cli.learn import Precision, Store, new_model
from aircl.cli.modelfile import load_model

LogLevel = Literal["debug", "info", "warning", "error"]

TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--tokens",
        metavar="FILE",
        help="The tokens: names, scopes and hashes, as `aircl token` writes them.",
        show_default="tokens.json in DIR",
    ),
]
ServiceDirectory = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of the service.")]


@reports_problems
def serve(
    directory: ServiceDirectory,
    init: Annotated[bool, typer.Option("--init", help="Make the directory first, if it is not there.")] = False,
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="With --init: a model to begin with.", show_default="a new one")
    ] = None,
    store: Annotated[
        Store | None, typer.Option(help="With --init: how second moments are held.", show_default="per-class")
    ] = None,
    expand: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="With --init: expand to N random ReLU features.")
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --init: what makes features of texts or images, such as wordllama."),
    ] = None,
    ledger: Annotated[
        bool, typer.Option("--ledger", help="With --init: keep a hash of every row, which makes /correct possible.")
    ] = False,
    dtype: Annotated[
        Precision | None, typer.Option(help="With --init: precision of features.", show_default="float64")
    ] = None,
    host: Annotated[str, typer.Option(metavar="HOST", help="Where to listen; elsewhere needs tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="0: one that is free.")] = 8000,
    tokens: TokenFile = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Only predict, beside the process that learns.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="With --read-only: load new versions.")] = False,
    no_journal: Annotated[
        bool, typer.Option("--no-journal", help="Write no rows to the disk: answers wait for a checkpoint.")
    ] = False,
    keep_rows: Annotated[
        Path | None,
        typer.Option(
            metavar="KEY",
            help="Keep rows that have ids, encrypted by the key in this file: they can be corrected and forgotten by "
            "their ids alone.",
            show_default="no row is kept",
        ),
    ] = None,
    drop_rows: Annotated[bool, typer.Option("--drop-rows", help="Remove rows that were kept before.")] = False,
    checkpoint_rows: Annotated[int, typer.Option(metavar="N", min=1, help="Rows between two checkpoints.")] = 20_000,
    checkpoint_seconds: Annotated[float, typer.Option(metavar="T", min=0, help="Seconds until a checkpoint.")] = 60.0,
    keep_versions: Annotated[int, typer.Option(metavar="K", min=1, help="Checkpoints to roll back to.")] = 10,
    max_body: Annotated[int, typer.Option(metavar="BYTES", min=1, help="Largest request.")] = 32 * 2**20,
    max_rows: Annotated[int, typer.Option(metavar="N", min=1, help="Most rows of a request.")] = 10_000,
    max_pixels: Annotated[
        int, typer.Option(metavar="N", min=1, help="Most pixels of the images of a request, together.")
    ] = 50_000_000,
    log_level: Annotated[LogLevel, typer.Option(help="What is logged to stderr, as JSON lines.")] = "info",
) -> None:
    """Serve a model that goes on learning. A confirmed change is not lost if the process is killed.

    The address is printed on stdout once it listens. GET /docs shows the routes.
    """
    if follow and not read_only:
        raise typer.BadParameter("only who does not learn can follow: add --read-only.", param_hint="--follow")
    if keep_rows is not None and (no_journal or read_only or drop_rows):
        raise typer.BadParameter(
            "it writes rows: leave --no-journal, --read-only and --drop-rows away.", param_hint="--keep-rows"
        )
    if keep_rows is not None and keep_rows.resolve().is_relative_to(directory.resolve()):
        raise typer.BadParameter(
            "keep it elsewhere: a copy of DIR must not have the key in it.", param_hint="--keep-rows"
        )
    ledger = ledger or (init and model is None and keep_rows is not None)  # rows are kept by their ids
    settings = {"store": store, "backbone": backbone, "ledger": ledger or None}
    settings = {name: value for name, value in settings.items() if value is not None}
    if not init and (model is not None or settings or expand is not None or dtype is not None):
        raise typer.BadParameter("there is a model already, with settings of its own.", param_hint="--init")
    if model is not None and (settings or expand is not None):
        raise typer.BadParameter("the model has settings of its own.", param_hint="--model")
    if read_only and (init or no_journal):
        raise typer.BadParameter(
            "nothing is written then: leave --init and --no-journal away.", param_hint="--read-only"
        )
    try:
        from aircl.serve.run import run
    except ImportError as error:
        raise ValueError(f"{error.name} is not installed: pip install 'aircl[serve]'.") from error
    from aircl.serve.kept import Cipher
    from aircl.serve.settings import Settings
    from aircl.serve.tokens import FILE
    from aircl.serve.versions import Directory

    place, cipher = Directory(directory), None if keep_rows is None else Cipher.of_file(keep_rows)
    if init and not place.exists():
        if backbone is not None:
            from aircl.backbones.catalogue import create_backbone, needs_example

            if not needs_example(backbone):
                create_backbone(backbone)  # what is not known or not installed is told now, not to the first who learns
        begun = new_model(None, settings, expand, None) if model is None else load_model(model)
        place.make(begun, dtype or "float64")
    tokens = directory / FILE if tokens is None else tokens

    def ready(address: str) -> None:
        typer.echo(f"Serving {directory} at {address}")
        if not tokens.exists():
            say("Note: there are no tokens, so everyone on this machine may do everything. See `aircl token`.")

    run(
        place,
        Settings(
            checkpoint_rows=checkpoint_rows, checkpoint_seconds=checkpoint_seconds, keep_versions=keep_versions,
            journal=not no_journal, cipher=cipher, drop_rows=drop_rows,
            max_body=max_body, max_rows=max_rows, max_pixels=max_pixels,
        ),
        host=host, port=port, tokens=tokens, read_only=read_only, follow=follow, log_level=log_level, ready=ready,
    )  # fmt: skip


@reports_problems
def token(
    directory: ServiceDirectory,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose token it is.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="predict|learn|admin", help="What it is for; may be repeated.", show_default="predict"),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Take it back: a running service refuses it at once.")
    ] = False,
    tokens: TokenFile = None,
) -> None:
    """Make a token for a service, and print it: the directory keeps only a hash of it."""
    from aircl.serve.tokens import FILE, SCOPES, add_token, remove_token

    if unknown := [name for name in scope or () if name not in SCOPES]:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(SCOPES)}.", param_hint="--scope")
    if tokens is None and not directory.is_dir():
        raise ValueError(f"{directory} does not exist. Make it: aircl serve {directory} --init.")
    file = directory / FILE if tokens is None else tokens
    if remove:
        remove_token(file, name)
    else:
        typer.echo(add_token(file, name, tuple(scope or ["predict"])))
