"""Who hears what goes on in a run: a job begins, a phase is measured, a job ends."""

from __future__ import annotations

from dataclasses import dataclass

from aircl.backbones.cache import Progress as ExtractionProgress
from aircl.benchmark.config import Experiment
from aircl.benchmark.job import Progress
from aircl.benchmark.results import Row, file_name


@dataclass(frozen=True)
class Spec:
    """Which method on which stream a job is.

    Attributes
    ----------
    experiment : Experiment
    order : str
    method : str
    seed : int
    stream : str
        What rows call the scenario.
    """

    experiment: Experiment
    order: str
    method: str
    seed: int
    stream: str

    @property
    def name(self) -> str:
        """The name of the job: files are named after it."""
        e = self.experiment
        return file_name(e.dataset, e.backbone, self.stream, self.order, self.method, f"seed{self.seed}")


class Listener:
    """What a run reports while it goes on; by default, nothing listens.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.benchmark import Experiment, Listener, RunConfig, RunDirectory, Runner
    >>> class Printer(Listener):
    ...     def done(self, spec, row):
    ...         print(spec.method, row.metric, round(row.value, 2))
    >>> config = RunConfig("mine", (Experiment("digits", "identity", "cil", {"phases": 2}, methods=("ncm", "slda")),))
    >>> with TemporaryDirectory() as folder:
    ...     Runner(config, RunDirectory(folder), listener=Printer()).run()
    ncm A_last 0.91
    slda A_last 0.94
    """

    def extracting(self, what: str) -> ExtractionProgress | None:
        """Return what to call with rows done and all rows while features of `what` are extracted."""
        return None

    def training(self, backbone: str, n_images: int, n_classes: int) -> None:
        """Hear that a backbone is about to be trained on a first phase."""

    def left_out(self, dataset: str, remark: str) -> None:
        """Hear which classes of a dataset a stream has no sample of."""

    def job(self, spec: Spec, number: int, total: int) -> Progress | None:
        """Return what to call with samples done and all samples while a job goes on."""
        return None

    def rows(self, spec: Spec, rows: list[Row]) -> None:
        """Hear what was measured: the rows of a phase, when it is over and they are written."""

    def done(self, spec: Spec, row: Row) -> None:
        """Hear how a job ended: its A_last, or the row that says why it failed."""

    def close(self) -> None:
        """Hear that the run is over, or was stopped."""


class Together(Listener):
    """Several listeners as one.

    Parameters
    ----------
    *listeners : Listener
    """

    def __init__(self, *listeners: Listener) -> None:
        self.listeners = listeners

    def extracting(self, what: str) -> ExtractionProgress | None:
        """Ask all."""
        return _all([listener.extracting(what) for listener in self.listeners])

    def training(self, backbone: str, n_images: int, n_classes: int) -> None:
        """Tell all."""
        for listener in self.listeners:
            listener.training(backbone, n_images, n_classes)

    def left_out(self, dataset: str, remark: str) -> None:
        """Tell all."""
        for listener in self.listeners:
            listener.left_out(dataset, remark)

    def job(self, spec: Spec, number: int, total: int) -> Progress | None:
        """Ask all."""
        return _all([listener.job(spec, number, total) for listener in self.listeners])

    def rows(self, spec: Spec, rows: list[Row]) -> None:
        """Tell all."""
        for listener in self.listeners:
            listener.rows(spec, rows)

    def done(self, spec: Spec, row: Row) -> None:
        """Tell all."""
        for listener in self.listeners:
            listener.done(spec, row)

    def close(self) -> None:
        """Tell all."""
        for listener in self.listeners:
            listener.close()


def _all(calls: list[Progress | None]) -> Progress | None:
    """Return a function that calls all that there are; None if there is none."""
    wanted = [call for call in calls if call is not None]

    def call(done: int, total: int) -> None:
        for one in wanted:
            one(done, total)

    return call if wanted else None
