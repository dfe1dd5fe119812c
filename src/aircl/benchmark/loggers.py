"""Rows of a run, sent to TensorBoard or Weights & Biases while it goes on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from aircl.benchmark.listener import Listener, Spec
from aircl.benchmark.results import Row

LOGGERS = ("tensorboard", "wandb")
# What every row has beside its value, and is worth a curve.
COSTS = ("seconds", "predict_seconds", "state_bytes", "kept", "gamma")


def curves(rows: list[Row]) -> list[tuple[str, int, float]]:
    """Return names, samples seen and values: what a logger draws of rows.

    Names are "phase/accuracy", "periodic/accuracy", "final/A_last" and so on, and "cost/seconds".

    Examples
    --------
    >>> from aircl.benchmark import Row
    >>> row = Row("run", "job", "digits", "identity", "cil", "", "air", 1, 2, 900, "phase", "accuracy", 0.9, 1.5, 3000)
    >>> curves([row])[:3]
    [('phase/accuracy', 900, 0.9), ('cost/seconds', 900, 1.5), ('cost/state_bytes', 900, 3000.0)]
    """
    points = [(f"{row.point}/{row.metric}", row.samples, float(row.value)) for row in rows if row.value is not None]
    last = {row.samples: row for row in rows if row.point == "phase"}
    for samples, row in last.items():
        known = [(name, getattr(row, name)) for name in COSTS]
        points += [(f"cost/{name}", samples, float(value)) for name, value in known if value is not None]
    return points


class TensorBoardLogger(Listener):
    """Writes event files, one directory a job: ``tensorboard --logdir DIR`` draws their curves over samples seen.

    Parameters
    ----------
    directory : path
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ValueError("tensorboard is not installed: pip install 'aircl[torch,loggers]'.") from error
        self._make, self._directory = SummaryWriter, Path(directory)
        self._writers: dict[str, Any] = {}

    def rows(self, spec: Spec, rows: list[Row]) -> None:
        """Add points to the curves of a job."""
        if spec.name not in self._writers:
            self._writers[spec.name] = self._make(str(self._directory / spec.name))
        for name, samples, value in curves(rows):
            self._writers[spec.name].add_scalar(name, value, samples)
        self._writers[spec.name].flush()

    def done(self, spec: Spec, row: Row) -> None:
        """Close the file of a job."""
        if writer := self._writers.pop(spec.name, None):
            writer.close()

    def close(self) -> None:
        """Close all files."""
        for writer in self._writers.values():
            writer.close()


class WandbLogger(Listener):
    """Writes a run of Weights & Biases for every job, in offline mode unless WANDB_MODE says otherwise.

    Its curves are over samples seen, and nothing is printed: the run itself tells how its jobs go on.

    Parameters
    ----------
    directory : path
        ``wandb sync DIR/wandb/*`` uploads what was written offline.
    project : str, default="aircl"
    """

    def __init__(self, directory: str | os.PathLike[str], project: str = "aircl") -> None:
        try:
            import wandb
        except ImportError as error:
            raise ValueError("wandb is not installed: pip install 'aircl[loggers]'.") from error
        self._wandb, self._directory, self._project = wandb, Path(directory), project
        self._runs: dict[str, Any] = {}

    def rows(self, spec: Spec, rows: list[Row]) -> None:
        """Add points to the run of a job."""
        if spec.name not in self._runs:
            self._directory.mkdir(parents=True, exist_ok=True)
            mode: Any = os.environ.get("WANDB_MODE", "offline")
            run = self._runs[spec.name] = self._wandb.init(
                project=self._project,
                name=spec.name,
                group=spec.method,
                dir=str(self._directory),
                mode=mode,
                config={"method": spec.method, "seed": spec.seed, "order": spec.order, "stream": spec.stream},
                reinit="create_new",
                settings=self._wandb.Settings(silent=True, console="off"),
            )
            run.define_metric("*", step_metric="samples")
        by_samples: dict[int, dict[str, float]] = {}
        for name, samples, value in curves(rows):
            by_samples.setdefault(samples, {"samples": samples})[name] = value
        for values in by_samples.values():
            self._runs[spec.name].log(values)

    def done(self, spec: Spec, row: Row) -> None:
        """Close the run of a job."""
        if run := self._runs.pop(spec.name, None):
            run.finish()

    def close(self) -> None:
        """Close all runs."""
        for run in self._runs.values():
            run.finish()


def make_logger(name: str, directory: Path) -> Listener:
    """Return a logger by its name, which writes below the directory of a run."""
    if name not in LOGGERS:
        raise ValueError(f"there is no logger {name!r}. Known: {', '.join(LOGGERS)}.")
    # Weights & Biases makes a folder of its name itself.
    return TensorBoardLogger(directory / name) if name == "tensorboard" else WandbLogger(directory)
