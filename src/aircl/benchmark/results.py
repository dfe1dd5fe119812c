"""A run's directory: what was asked for, what was measured, and what is worth a picture.

    run.json           the resolved configuration, versions, revision, machine, when it began and ended
    rows.jsonl         one flat row per measured value, see `Row`
    rows.parquet       the same, of a finished run, where pyarrow is installed
    details/JOB.npz    of a finished job: confusion matrix, losses, norms, counts, see `Details`
    state/JOB/PHASE/   of an unfinished job: the method after its last phase
    report.html ..     written by `aircl report`

A job is one method on one stream: its name is made of dataset, backbone, scenario, order, method and seed. Rows of a
job are appended when a phase is over, in one write, so a kill loses the phase at most.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt

from aircl.data.arrays.npz import read_arrays, write_arrays
from aircl.storage.errors import InputError
from aircl.storage.locks import BusyError, locked
from aircl.storage.records import build, check, parse_json
from aircl.storage.writing import replacing, write_text

Status = Literal["ok", "failed", "incompatible"]

# What details of earlier versions lack.
ADDED = ("test_labels", "predicted", "right", "exposed", "periodic")


def file_name(*parts: str) -> str:
    """Return a name that files may have everywhere, of those parts that are not empty.

    >>> file_name("features:a/train.npz", "", "long-tail")
    'features_a_train.npz-long-tail'
    """
    return "-".join("".join(c if c.isalnum() or c in "+-." else "_" for c in part) for part in parts if part)


@dataclass(frozen=True)
class Row:
    """One measured value, or one method that gave none.

    Attributes
    ----------
    run : str
        Name of the run.
    job : str
    dataset, backbone, scenario, order, method : str
        `order` is "" for scenarios that have none.
    seed : int
    phase : int
        From 1; the phase in which, or at whose end, the value was measured. 0: of the whole stream.
    samples : int
        Training samples seen until then.
    point : {"phase", "periodic", "final", ""}
        At the end of a phase, on the way, or a summary of the whole stream; "" where there is no value.
    metric : str
        Such as "accuracy", "balanced_accuracy", "A_avg", "A_last", "A_auc", "forgetting", "backward_transfer", "head",
        "middle", "tail", "ECE", "NLL"; summaries of balanced accuracies have the prefix "balanced_".
    value : float or None
        Accuracies are shares from 0 to 1. None where a method gave no value.
    seconds : float
        Wall time of the job until then: learning and solving, without evaluation. The clock starts after a warm-up.
    state_bytes : int or None
        Bytes that `Method.save` wrote after the last phase, without weights of the backbone. None: not known yet.
    predict_seconds : float or None
        Wall time until then of encoding and predicting test samples. None: not known.
    peak_memory : int or None
        Bytes of the process of the job, at most; None unless every job had a process of its own.
    gamma : float or None
        Of analytic methods, as used at this point.
    buffer : int or None
        Width of the random buffer that an analytic method used; None: none.
    kept : int
        Training samples that the method holds.
    told : str
        What of the future the method asked for, separated by commas: "n_classes", "n_phases"; "" if nothing.
    status : {"ok", "failed", "incompatible"}
    reason : str
        Why a method failed or is incompatible; "" if it is not.

    Examples
    --------
    >>> from aircl.benchmark import Row
    >>> row = Row(
    ...     run="mine", job="digits-air-seed1", dataset="digits", backbone="identity", scenario="cil", order="",
    ...     method="air", seed=1, phase=2, samples=1438, point="phase", metric="accuracy", value=0.97, seconds=0.3,
    ...     state_bytes=33_000,
    ... )
    >>> row.status, row.kept, row.gamma
    ('ok', 0, None)
    """

    run: str
    job: str
    dataset: str
    backbone: str
    scenario: str
    order: str
    method: str
    seed: int
    phase: int
    samples: int
    point: str
    metric: str
    value: float | None
    seconds: float
    state_bytes: int | None = None
    predict_seconds: float | None = None
    peak_memory: int | None = None
    gamma: float | None = None
    buffer: int | None = None
    kept: int = 0
    told: str = ""
    status: Status = "ok"
    reason: str = ""


@dataclass(frozen=True)
class Details:
    """What the figures are drawn from, after the last phase of a job.

    Attributes
    ----------
    classes : array of shape (C,)
        The exposed classes, sorted; all arrays below follow their order.
    counts : array of shape (phases, C)
        Training samples of each class in each phase.
    confusion : array of shape (C, C)
        Test samples by true class (row) and predicted class (column).
    weight_norms, test_loss, train_loss : arrays of shape (C,), or empty
        L2 norm of the class's weights; mean squared error over the class's test samples (summed over outputs); the same
        summed over the class's training samples. Empty where a method has none.
    phase_accuracy : array of shape (phases, phases)
        Test accuracy, after phase i (row), on the classes that were new in phase j (column); nan where there are none.
    test_labels, predicted : arrays of shape (n,), or empty
        True and predicted class of every test sample, after the last phase; -1 where the class was never exposed.
    right : array of shape (points, n / 8), or empty
        Whether each test sample was right at each evaluation, as bits (`np.unpackbits(right, axis=1, count=n)`).
    exposed : array of bool of shape (points, C), or empty
        Which classes counted at each evaluation.
    periodic : array of bool of shape (points,), or empty
        Whether an evaluation was on the way, and not at the end of a phase.

    Examples
    --------
    Of a method that takes half of class 1 for class 0:

    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from aircl.benchmark import Details
    >>> none, classes = np.zeros(0), np.arange(2)
    >>> details = Details(classes, np.array([[9, 1]]), np.array([[4, 0], [2, 2]]), none, none, none, np.array([[0.75]]))
    >>> with TemporaryDirectory() as folder:
    ...     details.save(f"{folder}/job.npz")
    ...     Details.load(f"{folder}/job.npz").confusion.tolist()
    [[4, 0], [2, 2]]
    """

    classes: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    confusion: npt.NDArray[np.int64]
    weight_norms: npt.NDArray[np.float64]
    test_loss: npt.NDArray[np.float64]
    train_loss: npt.NDArray[np.float64]
    phase_accuracy: npt.NDArray[np.float64]
    test_labels: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    predicted: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    right: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, 0), np.uint8))
    exposed: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), bool))
    periodic: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an npz file, whole or not at all."""
        with replacing(path) as temporary:
            write_arrays(temporary, {f.name: getattr(self, f.name) for f in fields(self)}, compressed=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Details:
        """Read what `save` wrote."""
        given = read_arrays(Path(path), [f.name for f in fields(cls)], optional=ADDED)
        details = cls(**given)
        details._check(path)
        return details

    def _check(self, path: str | os.PathLike[str]) -> None:
        """Refuse arrays that do not belong together."""
        n, phases = self.classes.size, int(self.counts.shape[0]) if self.counts.ndim else -1
        tested, points = self.test_labels.size, self.periodic.size
        wanted: dict[str, set[tuple[int, ...]]] = {
            "classes": {(n,)},
            "counts": {(phases, n)},
            "confusion": {(n, n)},
            **{name: {(n,), (0,)} for name in ("weight_norms", "test_loss", "train_loss")},
            "phase_accuracy": {(phases, phases)},
            "test_labels": {(tested,)},
            "predicted": {(tested,)},
            "right": {(points, (tested + 7) // 8)} if points else {(0, 0)},
            "exposed": {(points, n)} if points else {(0, 0)},
            "periodic": {(points,)},
        }
        kinds = {"predicted": "i", "right": "u", "exposed": "b", "periodic": "b"}
        kinds |= dict.fromkeys(("classes", "counts", "confusion", "test_labels"), "iu")
        for f in fields(self):
            array, kind = getattr(self, f.name), kinds.get(f.name, "iuf")
            if array.shape not in wanted[f.name] or array.dtype.kind not in kind or (
                kind in ("iu", "i") and array.size and array.min() < (-1 if f.name == "predicted" else 0)
            ) or (kind == "u" and array.dtype != np.uint8):  # fmt: skip
                raise InputError(f"{path}: {f.name} is {array.dtype} of shape {array.shape}, which does not fit.")


class MethodAbout(TypedDict, total=False):
    """A method in `run.json`."""

    options: dict[str, Any]
    title: str
    notes: list[str]
    is_bound: bool


class StreamAbout(TypedDict):
    """The streams of an experiment in `run.json`."""

    scenario: str
    between_seeds: str
    left_out: dict[str, list[str]]


class SourceAbout(TypedDict):
    """Where a method that is not of this package was defined, in `run.json`."""

    file: str | None
    sha256: str | None
    script: bool


class About(TypedDict, total=False):
    """What of `run.json` is relied on where it is there; the page shows the rest as it is."""

    classes: dict[str, list[str]]
    methods: list[dict[str, MethodAbout]]
    streams: list[StreamAbout]
    sources: dict[str, SourceAbout]


class RunDirectory:
    """The files of a run.

    Parameters
    ----------
    path : path
        The directory; `Runner.run` makes it.

    Attributes
    ----------
    path : Path
    about : dict
        What `run.json` says.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
    >>> experiment = Experiment("digits", "identity", "cil", {"phases": 2}, methods=("ncm",))
    >>> with TemporaryDirectory() as folder:
    ...     run = RunDirectory(folder)
    ...     Runner(RunConfig("mine", (experiment,)), run).run()
    ...     {row.metric: round(row.value, 2) for row in run.rows() if row.metric in ("A_avg", "A_last", "forgetting")}
    {'forgetting': 0.06, 'A_avg': 0.93, 'A_last': 0.91}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def about(self) -> dict[str, Any]:
        """What `run.json` says."""
        if not (self.path / "run.json").is_file():
            raise ValueError(f"{self.path} is not a directory of a run: it has no run.json. `aircl run` makes one.")
        path = self.path / "run.json"
        about: dict[str, Any] = parse_json(path.read_bytes(), str(path))
        check(about, About, str(path))
        return about

    def write_about(self, about: dict[str, Any]) -> None:
        """Write `run.json`."""
        write_text(self.path / "run.json", json.dumps(about, indent=2))

    def rows(self) -> list[Row]:
        """Return all rows; a line that a kill cut short is none."""
        return list(self._read())

    def _read(self) -> Iterator[Row]:
        path = self.path / "rows.jsonl"
        if not path.exists():
            return
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.endswith(b"\n"):
                    what = f"{path}, line {number}"
                    yield build(Row, parse_json(line, what), what)

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows, in one write."""
        text = _lines(rows)
        with (self.path / "rows.jsonl").open("a") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def rewrite(self, rows: Iterable[Row]) -> None:
        """Replace all rows."""
        write_text(self.path / "rows.jsonl", _lines(rows))

    def details(self, job: str) -> Details | None:
        """Return the details of a job; None if it has none."""
        if job != Path(job).name:
            raise InputError(f"{self.path}: {job!r} is not a name of a job.")
        path = self.path / "details" / f"{job}.npz"
        return Details.load(path) if path.exists() else None

    def details_path(self, job: str) -> Path:
        """Return where the details of a job belong."""
        (self.path / "details").mkdir(exist_ok=True)
        return self.path / "details" / f"{job}.npz"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from running in the directory: two that add rows would mix them up.

        The system lets go of the lock when a process ends, however it ends.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(self.path / "run.lock", create=True, wait=False))
            except BusyError:
                raise ValueError(
                    f"another process is at work in {self.path}. Wait until it ends, or choose another directory: -o."
                ) from None
            yield

    def tidy(self) -> None:
        """Remove what only an unfinished run needs, and write the rows as parquet too where pyarrow is installed."""
        for job in {row.job for row in self.rows() if row.metric == "A_last"}:  # a kill may have come before this
            shutil.rmtree(self.state_path(job), ignore_errors=True)
        if (self.path / "state").is_dir() and not any((self.path / "state").iterdir()):
            (self.path / "state").rmdir()
        if find_spec("pyarrow") is not None:
            import pyarrow
            from pyarrow import parquet

            table = pyarrow.Table.from_pylist(list(map(asdict, self.rows())))
            with replacing(self.path / "rows.parquet") as temporary:
                parquet.write_table(table, temporary)

    def state_path(self, job: str) -> Path:
        """Return where the state of a job belongs."""
        return self.path / "state" / job


def _lines(rows: Iterable[Row]) -> str:
    return "".join(json.dumps(asdict(row), allow_nan=False) + "\n" for row in rows)
