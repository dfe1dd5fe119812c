"""Predictions that wait at the same time are made by one product."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from aircl.engine.backend import Array
from aircl.serve.solver import Solved
from aircl.serve.writer import BusyError

# Rows of one product: more would make those who wait for a single one wait longer.
PRODUCT_ROWS = 1024


@dataclass(eq=False)
class _Asked:
    X: Array | list[str]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[tuple[Solved, Array]]

    def settle(self, answer: tuple[Solved, Array] | Exception) -> None:
        """Answer, in the loop's thread; whoever asked may be gone."""
        if self.answer.done():
            return
        if isinstance(answer, Exception):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class Gatherer:
    """Takes rows of many requests, and predicts them together in a thread of its own.

    While one product is made, the next requests gather; nothing waits for a clock.

    Parameters
    ----------
    solved : callable
        Returns what predictions use now, or None.
    max_rows : int
        Rows that may wait.
    """

    def __init__(self, solved: Callable[[], Solved | None], max_rows: int) -> None:
        self._solved, self._max_rows = solved, max_rows
        self._asked: list[_Asked] = []
        self._rows = 0
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="aircl-predictor", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, after what waits."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        self._thread.join()

    async def log_probabilities(self, X: Array | list[str]) -> tuple[Solved, Array]:
        """Return what was used, and the logarithms of the probabilities of all its classes, shape (n, C)."""
        loop = asyncio.get_running_loop()
        asked = _Asked(X, loop, loop.create_future())
        with self._changed:
            if self._stopped or self._rows + len(X) > self._max_rows:
                raise BusyError("too many rows are waiting for a prediction: ask again later.")
            self._asked.append(asked)
            self._rows += len(X)
            is_first = len(self._asked) == 1
        if is_first:  # after whatever else is ready now: a product of one row costs nearly as much as one of ten
            loop.call_soon(loop.call_soon, self._wake)
        return await asked.answer

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._asked and not self._stopped:
                    self._changed.wait()
                if not self._asked:
                    return
                together: list[_Asked] = []
                rows = 0
                while self._asked and (not together or rows + len(self._asked[0].X) <= PRODUCT_ROWS):
                    together.append(self._asked.pop(0))
                    rows += len(together[-1].X)
                self._rows -= rows
            answers = self._predict(together)
            # One call into the loop for all: they came from one.
            together[0].loop.call_soon_threadsafe(_settle, together, answers)

    def _predict(self, together: list[_Asked]) -> list[tuple[Solved, Array] | Exception]:
        solved = self._solved()
        if solved is None:
            return [BusyError("what was learned last is being solved: ask again in a moment.")] * len(together)
        try:
            X = _joined([asked.X for asked in together])
            log_p = solved.snapshot.predict_log_proba(X)
        except Exception as error:
            if len(together) == 1:
                return [error]
            return [self._predict([asked])[0] for asked in together]  # whoever is to blame fails alone
        ends = np.cumsum([len(asked.X) for asked in together])
        return [(solved, part) for part in np.split(log_p, ends[:-1])]


def _joined(parts: list[Any]) -> Any:
    """Put rows below rows: arrays of features, or lists of texts."""
    if len(parts) == 1:
        return parts[0]
    return [text for part in parts for text in part] if isinstance(parts[0], list) else np.concatenate(parts)


def _settle(together: list[_Asked], answers: list[Any]) -> None:
    for asked, answer in zip(together, answers, strict=True):
        asked.settle(answer)
