"""What a service is like now, and was in the last half hour.

A point is taken every two seconds if anything has changed: rows, accuracies, novelty, latency.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from aircl import __version__
from aircl.serve.metrics import Metrics
from aircl.serve.service import Service

LOG = logging.getLogger("aircl.serve")

POINT_SECONDS, POINTS = 2.0, 900
# Of many classes a state takes milliseconds, and many may listen.
FRESH_SECONDS = 0.2


class Watch:
    """Takes points of a service in a thread of its own.

    Parameters
    ----------
    service : Service
    metrics : Metrics

    Attributes
    ----------
    points : deque of dict
    listeners : int
    is_ending : callable
        Tells whether streams are to end, because the process is.
    """

    def __init__(self, service: Service, metrics: Metrics) -> None:
        self._service, self._metrics = service, metrics
        self.points: deque[dict[str, Any]] = deque(maxlen=POINTS)
        self.listeners = 0
        self._started, self._began = time.time(), time.monotonic()
        self._state: dict[str, Any] | None = None
        self._state_until = 0.0
        self.is_ending: Callable[[], bool] = lambda: False
        self._stopped = threading.Event()

    @contextmanager
    def running(self, is_ending: Callable[[], bool]) -> Iterator[None]:
        """Take points meanwhile."""
        self.is_ending = is_ending
        thread = threading.Thread(target=self._run, name="aircl-watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(POINT_SECONDS):
            try:
                point = self.now()
            except Exception as error:  # the next one may be better
                LOG.error("watch-failed", exc_info=error)
                continue
            if not self.points or point != {**self.points[-1], "at": point["at"]}:
                self.points.append(point)

    def now(self) -> dict[str, Any]:
        """Return a point: what charts are drawn of."""
        service, moment = self._service, self._service.moment()
        figures, seconds = service.drift.figures(), list(self._metrics.predict_seconds)
        counts = [count for _, count in service.class_rows()]
        return {
            "at": round(self._started + time.monotonic() - self._began, 1),  # a clock that is set makes no gap
            "version": moment.version,
            "classes": len(counts),
            "rows": sum(counts),
            "behind": service.rows_behind,
            **{name: figures[name] for name in ("progressive", "progressive_rows", "expected", "novel")},
            "latency": [float(q) for q in np.quantile(seconds, (0.5, 0.95))] if seconds else None,
        }

    def state(self) -> dict[str, Any]:
        """Return a point, and what else is of interest now; all requests at the same time get the same."""
        now = time.monotonic()
        if self._state is None or now >= self._state_until:
            self._state, self._state_until = self._made(), now + FRESH_SECONDS
        return self._state

    def _made(self) -> dict[str, Any]:
        service, writer = self._service, self._service.writer
        changes = [] if writer is None else writer.recent.listed()  # first: all that is told has these changes
        solved = service.solved
        model = service.moment().model
        return {
            **self.now(),
            "solved": None if solved is None else solved.moment.version,
            "features": getattr(model, "n_features_in_", None),
            "ids": _takes_ids(model),
            "problem": service.problem,
            "checkpoint": service.catalogue.current.version,
            "last_learned": (None if writer is None else writer.recent.last_learned) or service.catalogue.last_learned,
            "undo": None if writer is None else writer.durable.undo.version,
            "changes": changes,
        }

    def about(self) -> dict[str, Any]:
        """Return what is served: what does not change while it is."""
        service, model = self._service, self._service.moment().model
        parameters = {name: _told(value) for name, value in model.get_params(deep=False).items()}
        return {
            "started": self._started,
            "name": service.directory.path.resolve().name,
            "aircl": __version__,
            "model": type(model).__name__,
            "parameters": parameters,
            "rows": service.kinds[0],
            "backbone": service.backbone,
            "read_only": service.writer is None,
            "max_rows": service.settings.max_rows,
            "max_body": service.settings.max_body,
            "keep_versions": service.settings.keep_versions,
        }


def _takes_ids(model: Any) -> bool:
    """Tell whether rows are known by ids; a ledger that has no row yet may become either."""
    ledger = model._learner.state.ledger if model.__sklearn_is_fitted__() else None
    return model.ledger is not False and (ledger is None or ledger.by_id)


def _told(value: Any) -> Any:
    """Return a parameter as it is, or its name, if it is an object."""
    return value if isinstance(value, str | int | float | bool | None) else str(getattr(value, "name", value))[:200]
