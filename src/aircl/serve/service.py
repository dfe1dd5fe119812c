"""The parts of a service together: a writer or a follower, a solver, a gatherer of predictions, and what is counted."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from aircl.inputs import Kind
from aircl.serve.changes import Change, class_rows
from aircl.serve.drift import Drift
from aircl.serve.errors import BusyError, RefusedError
from aircl.serve.gatherer import Answer, Gatherer
from aircl.serve.samples import kinds_of
from aircl.serve.settings import Settings
from aircl.serve.solver import Moment, Solved, Solver, solve
from aircl.serve.versions import Catalogue, Directory
from aircl.serve.writer import Writer

LOG = logging.getLogger("aircl.serve")

# Seconds between two looks of a follower.
FOLLOW_SECONDS = 1.0


class Service:
    """What the routes use. Use `serving` to make one.

    Attributes
    ----------
    solved : Solved or None
        What predictions use.
    gatherer : Gatherer
        Of predictions: logarithms of the probabilities of all classes.
    drift : Drift
    """

    def __init__(self, directory: Directory, settings: Settings) -> None:
        self.directory, self.settings = directory, settings
        self.solved: Solved | None = None
        self._solved_rows = 0
        self.gatherer = Gatherer(self._log_probabilities, settings.max_waiting * 1000)
        self.drift = Drift(lambda: self.solved, settings.max_waiting * 1000)

    def _log_probabilities(self, X: Any) -> Answer:
        solved = self.solved
        if solved is None:
            raise BusyError("what was learned last is being solved: ask again in a moment.")
        # Features were checked when they came, but a model that was rolled back may be of another width by now.
        is_checked = solved.width is not None and X.shape[1] == solved.width
        try:
            return solved, solved.snapshot.predict_log_proba(X, is_checked=is_checked)
        except ValueError as error:  # such as features beyond what can be squared
            raise RefusedError(str(error)) from None

    @property
    def writer(self) -> Writer | None:
        """Who makes changes, if this process may."""
        return None

    @property
    def catalogue(self) -> Catalogue:
        """The versions that there are."""
        raise NotImplementedError

    def moment(self) -> Moment:
        """Return the model as it is now."""
        raise NotImplementedError

    def publish(self, moment: Moment, solved: Solved | None) -> None:
        """Have predictions use another solution; None if nothing is learned."""
        self.solved, self._solved_rows = solved, moment.rows

    @property
    def problem(self) -> str | None:
        """What does not work at the moment, while predictions go on."""
        raise NotImplementedError

    @property
    def rows_behind(self) -> int:
        """Rows that were learned or forgotten since what predictions use was solved."""
        return self.moment().rows - self._solved_rows

    def class_rows(self) -> list[tuple[Any, float]]:
        """Return the labels, with the rows learned of each."""
        return [(label, count) for (_, label), count in class_rows(self.moment().model).items()]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """What is sent: features, texts or images."""
        return kinds_of(self.moment().model.backbone)

    @property
    def width(self) -> int | None:
        """The number of features of a row; None if that is not known yet, or a backbone makes them."""
        model = self.moment().model
        return getattr(model, "n_features_in_", None) if model.backbone is None else None

    @property
    def backbone(self) -> str | None:
        """What makes features of texts or images; None if features are sent."""
        backbone = self.moment().model.backbone
        return None if backbone is None else str(getattr(backbone, "name", backbone))

    def status(self) -> dict[str, Any]:
        """Return how it is, without anything that was learned."""
        return {
            "status": "ok" if self.problem is None else "degraded",
            "problem": self.problem,
            "read_only": self.writer is None,
            "version": self.moment().version,
            "features": getattr(self.moment().model, "n_features_in_", None),
            "backbone": self.backbone,
            "takes": self.kinds,
            "ledger": self.moment().model.ledger is not False,
            "keeps_rows": self.settings.cipher is not None,
            "solved": None if self.solved is None else self.solved.moment.version,
            "rows_behind": self.rows_behind,
        }

    def close(self) -> None:
        """End what was begun."""


class WritingService(Service):
    """The one service of a directory that makes changes."""

    def __init__(self, directory: Directory, settings: Settings) -> None:
        super().__init__(directory, settings)
        self._solver = Solver(self.moment, self.publish)
        self._writer = Writer(directory, settings, self._predict_first, self._solver.wake)
        self.solved = solve(self.moment())
        self._solver.start()
        self._writer.start()

    @property
    def writer(self) -> Writer | None:
        """Who makes changes."""
        return self._writer

    @property
    def catalogue(self) -> Catalogue:
        """The versions that there are."""
        return self._writer.durable.catalogue

    @property
    def problem(self) -> str | None:
        """Why changes cannot be made durable, or why predictions do not know of them."""
        return self._writer.durable.problem or self._solver.problem

    def moment(self) -> Moment:
        """Return the model as it is now."""
        return self._writer.durable.moment

    def publish(self, moment: Moment, solved: Solved | None) -> None:
        """Have predictions use another solution, unless what it is made of may still be taken back."""
        if moment.model is self._writer.model and self._writer.durable.settled:
            super().publish(moment, solved)

    def _predict_first(self, change: Change) -> Callable[[], None]:
        """Predict rows that are learned next, and return what counts how well, if they are."""
        solved, rows, right = self.solved, change.rows, list[bool]()
        if change.kind == "learn" and solved is not None and rows is not None:
            with suppress(ValueError):  # the model will say what is wrong with them
                found = solved.snapshot.predict(rows.X) == np.asarray(rows.labels)
                right = np.broadcast_to(found, len(rows.labels)).tolist()
        return lambda: self.drift.count(right)

    def close(self) -> None:
        """Make what waits, write a checkpoint, and end."""
        self._writer.stop()
        self._solver.stop()


class ReadingService(Service):
    """A service that answers from the versions that another process makes.

    Parameters
    ----------
    directory : Directory
    settings : Settings
    follow : bool
        Whether to take up new versions.
    """

    def __init__(self, directory: Directory, settings: Settings, follow: bool) -> None:
        super().__init__(directory, settings)
        self._stopped = threading.Event()
        self._stamp = directory.stamp()
        self._problem: str | None = None
        self._read()
        self._thread = threading.Thread(target=self._run, name="aircl-follower", daemon=True)
        if follow:
            self._thread.start()

    @property
    def catalogue(self) -> Catalogue:
        """The versions that there were at the last look."""
        return self._catalogue

    @property
    def problem(self) -> str | None:
        """Why it does not follow."""
        return self._problem

    def moment(self) -> Moment:
        """Return the model of the last look."""
        return self._moment

    def _read(self) -> None:
        catalogue = self.directory.read()
        while True:
            try:
                model = self.directory.load(catalogue.current)
                break
            except (OSError, ValueError):
                newer = self.directory.read()
                if newer.current == catalogue.current:
                    raise
                catalogue = newer  # it was removed while it was read
        moment = Moment(model, catalogue.current.version, 0)
        self.solved, self._catalogue, self._moment = solve(moment), catalogue, moment

    def _run(self) -> None:
        while not self._stopped.wait(FOLLOW_SECONDS):
            try:
                if (stamp := self.directory.stamp()) != self._stamp:
                    self._read()
                    self._stamp, self._problem = stamp, None
                    LOG.info("followed", extra={"fields": {"version": self._moment.version}})
            except Exception as error:  # predictions go on with what there is
                self._problem = f"a new version cannot be taken up ({type(error).__name__})."
                LOG.error("follow-failed", exc_info=error)

    def close(self) -> None:
        """End."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()


@contextmanager
def serving(
    directory: Directory, settings: Settings, *, read_only: bool = False, follow: bool = False
) -> Iterator[Service]:
    """Give a service of a directory, which is locked meanwhile unless it is only read."""
    if read_only:
        with _running(ReadingService(directory, settings, follow)) as service:
            yield service
    else:
        directory.read()
        with directory.locked(), _running(WritingService(directory, settings)) as service:
            yield service


@contextmanager
def _running(service: Service) -> Iterator[Service]:
    try:
        yield service
    finally:
        service.gatherer.stop()
        service.drift.gatherer.stop()
        service.close()
