"""What is known of a job while it goes on, and what it comes to in the end."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from aircl.benchmark.evaluation import ROWS, Evaluation, Samples, TestSet, squared_errors
from aircl.benchmark.metrics import (
    Labels,
    backward_transfer,
    forgetting,
    forward_transfer,
    group_accuracies,
)
from aircl.benchmark.results import Details
from aircl.methods import Method
from aircl.scenarios import Stream

SUMMARY_PREFIX = {"accuracy": "", "balanced_accuracy": "balanced_"}


class Point(TypedDict):
    """An evaluation: whether it was on the way, the classes that counted, and which test samples were right."""

    periodic: bool
    classes: list[int]
    right: str


@dataclass
class Track:
    """What is known of a job so far, beside the method itself. It is written with the method's state.

    Attributes
    ----------
    phases : int
        Phases done.
    samples : int
        Training samples seen.
    seconds, predict_seconds : float
        Wall time of learning, and of predicting.
    state_bytes : int or None
        What the method wrote after the last phase.
    rows : list of dict
        The rows of the job so far.
    by_phase : list of list of float
        After each phase, the accuracy of every class, nan as None.
    points : list of Point
    """

    phases: int = 0
    samples: int = 0
    seconds: float = 0.0
    predict_seconds: float = 0.0
    state_bytes: int | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    by_phase: list[list[float | None]] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)

    def accuracy_by_phase(self, classes: Labels) -> npt.NDArray[np.float64]:
        """Return the accuracy of some classes after each phase, shape (phases, C)."""
        return np.array(self.by_phase, dtype=np.float64)[:, classes]

    def right(self, n: int) -> npt.NDArray[np.bool_]:
        """Return which of the n test samples were right at each point, shape (points, n)."""
        packed = [np.frombuffer(b64decode(point["right"]), np.uint8) for point in self.points]
        return np.unpackbits(np.array(packed, np.uint8).reshape(len(packed), -1), axis=1, count=n).astype(bool)


def final_values(
    track: Track, evaluation: Evaluation, stream: Stream, test: TestSet, domains: tuple[Labels, Labels] | None
) -> dict[str, float]:
    """Return the metrics of a whole stream, but for calibration."""
    by_phase = track.accuracy_by_phase(evaluation.classes)
    values: dict[str, float] = dict(group_accuracies(by_phase[-1], stream.counts()[:, evaluation.classes].sum(axis=0)))
    values["forgetting"] = forgetting(by_phase)
    by_domain = None if domains is None else accuracy_by_domain(track, stream, test, *domains)
    if by_domain is None:
        values["backward_transfer"] = backward_transfer(by_phase)
    else:
        values["backward_transfer"] = backward_transfer(np.where(np.tri(*by_domain.shape) > 0, by_domain, np.nan))
        values["forward_transfer"] = forward_transfer(by_domain, 1 / len(evaluation.classes))
    for metric, prefix in SUMMARY_PREFIX.items():
        at_ends, on_the_way = (
            [row["value"] for row in track.rows if (row["point"], row["metric"]) == (point, metric)]
            for point in ("phase", "periodic")
        )
        values[f"{prefix}A_avg"] = float(np.mean(at_ends))
        if on_the_way:
            values[f"{prefix}A_auc"] = float(np.mean(on_the_way))
        values[f"{prefix}A_last"] = at_ends[-1]
    return values


def accuracy_by_domain(
    track: Track, stream: Stream, test: TestSet, train_domains: Labels, test_domains: Labels
) -> npt.NDArray[np.float64] | None:
    """Return the accuracy after each phase on the domain of each phase, where phases are domains; None otherwise."""
    of_phase = [np.unique(train_domains[phase.train]) for phase in stream.phases]
    if any(len(own) != 1 for own in of_phase):
        return None
    right = track.right(len(test.labels))
    at_ends = [place for place, point in enumerate(track.points) if not point["periodic"]]
    table = np.full((len(at_ends), len(of_phase)), np.nan)
    for i, place in enumerate(at_ends):
        counted = np.isin(test.labels, track.points[place]["classes"])
        for j, own in enumerate(of_phase):
            if (rows := counted & (test_domains == own[0])).any():
                table[i, j] = right[place, rows].mean()
    return table


def final_details(
    track: Track, method: Method, evaluation: Evaluation, stream: Stream, train: Samples, test: TestSet
) -> Details:
    """Return what figures are drawn from, and which single test samples were right."""
    exposed, norms = evaluation.classes, method.weight_norms()
    by_phase = track.accuracy_by_phase(exposed)
    train_loss, _ = squared_errors(method, _encoded_stream(method, stream, train), exposed)
    new, tested = [np.isin(exposed, phase.new_classes) for phase in stream.phases], ~np.isnan(by_phase)
    by_new_phase = np.full((len(by_phase), len(new)), np.nan)
    for i, j in np.ndindex(by_new_phase.shape):
        if (tested[i] & new[j]).any():
            by_new_phase[i, j] = by_phase[i, tested[i] & new[j]].mean()
    return Details(
        classes=exposed,
        counts=stream.counts()[:, exposed],
        confusion=evaluation.confusion,
        weight_norms=np.zeros(0) if norms is None else norms[1].astype(np.float64)[np.searchsorted(norms[0], exposed)],
        test_loss=test.loss_by_class(method, exposed),
        train_loss=train_loss,
        phase_accuracy=by_new_phase,
        test_labels=test.labels,
        predicted=evaluation.predicted,
        right=np.packbits(track.right(len(test.labels)), axis=1),
        exposed=np.array([np.isin(exposed, point["classes"]) for point in track.points], bool),
        periodic=np.array([point["periodic"] for point in track.points], bool),
    )


def _encoded_stream(method: Method, stream: Stream, train: Samples) -> Iterator[tuple[Any, Labels]]:
    """Yield all training samples of the stream, encoded."""
    rows = np.sort(np.concatenate([phase.train for phase in stream.phases]))
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        yield method.encode(train.inputs[part]), train.labels[part]
