"""Learning by several processes: the engines of `aircl learn`."""

from __future__ import annotations

import sys
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import typer

from aircl.cli.console import Reading
from aircl.cli.ledger import Command, in_options

if TYPE_CHECKING:
    from aircl.data.arrays import LabelKind
    from aircl.distributed import Progress

Engine = Literal["joblib", "dask"]


def check_engine(engine: Engine | None, scheduler: str | None, workers: int | None, parts: int | None) -> None:
    """Refuse options that need an engine which is not asked for."""
    if scheduler is not None and engine != "dask":
        raise typer.BadParameter("it is the address of a Dask scheduler: add --engine dask.", param_hint="--scheduler")
    if scheduler is not None and workers is not None:
        raise typer.BadParameter("the cluster at --scheduler has the workers that it has.", param_hint="--workers")
    for option, value in (("--workers", workers), ("--parts", parts)):
        if value is not None and engine is None:
            raise typer.BadParameter("say who works: add --engine joblib or --engine dask.", param_hint=option)


def learn_apart(
    command: Command,
    reading: Reading,
    kind: LabelKind,
    dtype: str | None,
    batch: int,
    engine: Engine,
    scheduler: str | None,
    workers: int | None,
    parts: int | None,
) -> None:
    """Have the workers of an engine learn all files, and add what they have learned to the model."""
    from sklearn.base import clone
    from sklearn.frozen import FrozenEstimator

    from aircl.distributed import Known, NothingToLearnError, fit_dask, fit_joblib
    from aircl.distributed.files import file_shards
    from aircl.engine import LedgerWarning

    model, known = command.model, Known(on_duplicate=command.on_duplicate)
    goes_on = model.__sklearn_is_fitted__()
    precision = str(model._learner.state.statistics.space.dtype) if goes_on else dtype
    shards = file_shards(reading.sources, kind, precision, by_id=command.by_id and model._ledger() is not False)
    learned = model
    if goes_on:
        state = model._learner.state
        known = replace(known, ledger=state.ledger)
        if state.ledger is not None:  # which knows better than by the file what was learned
            shards = [replace(shard, id=uuid.uuid4().hex) for shard in shards]
        elif twice := [shard.name for shard in shards if shard.id in state.lineage]:
            raise ValueError(f"{twice[0]} is in the model already, and would be counted twice. Leave it out.")
        learned = clone(model)
        if model.expansion_ is not None:
            learned.set_params(expansion=FrozenEstimator(model.expansion_))
    options: dict[str, Any] = {"parts": parts, "batch_size": batch, "known": known}
    with _progress(reading, len(shards)) as progress, in_options():
        try:
            if engine == "dask":
                fit_dask(learned, shards, workers=scheduler or workers, progress=progress, **options)
            else:
                fit_joblib(learned, shards, workers=workers, progress=progress, **options)
        except NothingToLearnError:
            return
        except ImportError as error:
            raise ValueError(str(error)) from error
    if learned is not model:
        if hasattr(model, "backbone_"):
            learned.backbone_ = model.backbone_
        with warnings.catch_warnings(action="ignore", category=LedgerWarning):  # it was looked up in all ledgers
            model.merge(learned)


@contextmanager
def _progress(reading: Reading, n_shards: int) -> Iterator[Progress]:
    """Show on a terminal how many shards are learned, and count their rows."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.completed:,} of {task.total:,} shards"),
        BarColumn(),
        TextColumn("{task.fields[rows]:,} rows  {task.fields[rate]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=reading.quiet or not sys.stderr.isatty(),
    ) as bar:
        task = bar.add_task("", total=n_shards, rows=0, rate="")

        def show(shards: int, of: int, rows: int) -> None:
            reading.count(rows)
            bar.update(task, completed=shards, rows=rows, rate=reading.rate)

        yield show
