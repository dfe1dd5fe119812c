"""Learning by several processes: the engines of `aircl learn`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import typer

from aircl.cli.console import Reading

if TYPE_CHECKING:
    from aircl.classifiers.analytic import AnalyticClassifier
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
    model: AnalyticClassifier,
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

    from aircl.distributed import NothingToLearnError, fit_dask, fit_joblib
    from aircl.distributed.files import file_shards

    goes_on = model.__sklearn_is_fitted__()
    shards = file_shards(reading.sources, kind, str(model._learner.state.statistics.space.dtype) if goes_on else dtype)
    learned = model
    if goes_on:
        if known := [shard.name for shard in shards if shard.id in model._learner.state.lineage]:
            raise ValueError(f"{known[0]} is in the model already, and would be counted twice. Leave it out.")
        learned = clone(model)
        if model.expansion_ is not None:
            learned.set_params(expansion=FrozenEstimator(model.expansion_))
    options: dict[str, Any] = {"parts": parts, "batch_size": batch}
    with _progress(reading, len(shards)) as progress:
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
