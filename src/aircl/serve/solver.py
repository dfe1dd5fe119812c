"""What predictions use, made again in the background whenever the model has changed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from aircl.classifiers.analytic import AnalyticClassifier
from aircl.classifiers.snapshot import Snapshot
from aircl.engine import ExpectedAccuracy

LOG = logging.getLogger("aircl.serve")


@dataclass(frozen=True, eq=False)
class Moment:
    """The model as of one moment.

    Attributes
    ----------
    model : AnalyticClassifier
    version : int
        The last change that is in the model for certain.
    rows : int
        Rows that were learned or forgotten since the service was started.
    """

    model: AnalyticClassifier
    version: int
    rows: int


@dataclass(frozen=True, eq=False)
class Solved:
    """What predictions use: a snapshot of the model, of which nothing changes any more.

    Attributes
    ----------
    snapshot : Snapshot
    moment : Moment
        When it was solved.
    classes : list
        Labels, in the order of the columns of a prediction.
    width : int or None
        The number of features; None if rows are texts or images.
    expected : ExpectedAccuracy or None
        What to expect of it, if the model is calibrated.
    """

    snapshot: Snapshot
    moment: Moment
    classes: list[Any]
    width: int | None
    expected: ExpectedAccuracy | None = None

    @property
    def expected_accuracy(self) -> float | None:
        """The accuracy to expect of new rows, if it is known."""
        known = self.expected is not None and np.isfinite(self.expected.overall)
        return self.expected.overall if known and self.expected is not None else None


def solve(moment: Moment) -> Solved | None:
    """Return what predictions use; None if nothing was learned, or all of it forgotten."""
    model = moment.model
    if not model.__sklearn_is_fitted__():
        return None
    expected = None
    if model.calibrate:
        expected = model.expected_accuracy()
    else:
        model.temperature_  # noqa: B018 (solves, and leaves nothing to be computed by a prediction)
    snapshot = model.snapshot()
    width = model.n_features_in_ if model.backbone is None else None
    return Solved(snapshot, moment, snapshot.classes_.tolist(), width, expected)


class Solver:
    """Solves in a thread of its own, at most half of the time.

    Parameters
    ----------
    now : callable
        Returns the `Moment` to solve.
    publish : callable
        Takes the `Moment` and what was made of it.

    Attributes
    ----------
    problem : str or None
        Why predictions do not know what was learned last, and will not.
    """

    def __init__(self, now: Callable[[], Moment], publish: Callable[[Moment, Solved | None], None]) -> None:
        self._now, self._publish = now, publish
        self.problem: str | None = None
        self._due, self._stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="aircl-solver", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Say that the model has changed."""
        self._due.set()

    def stop(self) -> None:
        """End, after what is being solved."""
        self._stopped.set()
        self._due.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            if self._stopped.is_set():
                return
            began = time.monotonic()
            moment = self._now()
            try:
                self._publish(moment, solve(moment))
                self.problem = None
            except Exception as error:  # predictions go on with what there is
                self.problem = f"version {moment.version} cannot be solved ({type(error).__name__})."
                LOG.error("solve-failed", exc_info=error)
            took = time.monotonic() - began
            LOG.debug("solved", extra={"fields": {"version": moment.version, "seconds": round(took, 3)}})
            self._stopped.wait(took)
