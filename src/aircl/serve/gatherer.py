"""Rows that wait at the same time are computed by one product."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np

from aircl.engine.backend import Array
from aircl.inputs import Samples
from aircl.serve.errors import BusyError

# Rows of one product: more would make those who wait for a single one wait longer.
PRODUCT_ROWS = 1024
# To hand a product that takes no longer to a thread, and wait for Python's lock there, would take longer.
SHORT_SECONDS = 0.003

# What the rows were computed with, and one entry per row.
Answer = tuple[Any, Array]
Rows = Array | list[Any]


class Gatherer:
    """Takes rows of many requests, and computes their answers together.

    What arrives in one turn of the event loop is one product, and so is what arrives while a thread makes another;
    nothing waits for a clock. It belongs to one loop at a time.

    Parameters
    ----------
    compute : callable
        Takes rows, and returns what they were computed with and an array of one entry per row.
    max_rows : int
        Rows that may wait.
    short : float
        A product that takes no longer, to go by the last one, is made in the loop itself.
    """

    def __init__(self, compute: Callable[[Any], Answer], max_rows: int, short: float = SHORT_SECONDS) -> None:
        self._compute, self._max_rows, self._short = compute, max_rows, short
        self._asked: list[tuple[Rows, asyncio.Future[Answer]]] = []
        self._rows = 0
        self._busy: asyncio.AbstractEventLoop | None = None  # whose product a thread makes
        self._row_seconds = np.inf  # of the last product
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="aircl-predictor")

    def stop(self) -> None:
        """End, after what is being made."""
        self._thread.shutdown(cancel_futures=True)

    async def ask(self, X: Rows) -> Answer:
        """Return what was used, and the answers to rows X."""
        loop = asyncio.get_running_loop()
        if self._rows + len(X) > self._max_rows:
            raise BusyError("too many rows are waiting for a prediction: ask again later.")
        answer: asyncio.Future[Answer] = loop.create_future()
        self._asked.append((X, answer))
        self._rows += len(X)
        if len(self._asked) == 1 and self._busy is not loop:
            loop.call_soon(self._next, loop)  # after whatever else is ready now
        return await answer

    def later(self, X: Rows, use: Callable[[Answer], None]) -> None:
        """Have answers to rows X used in the thread, where no request waits for them; failures are left alone."""

        def made() -> None:
            with suppress(Exception):
                use(self._compute(X))

        self._thread.submit(made)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make the next product, here or in the thread."""
        self._busy = None
        together: list[tuple[Rows, asyncio.Future[Answer]]] = []
        rows = 0
        while self._asked and (not together or rows + len(self._asked[0][0]) <= PRODUCT_ROWS):
            together.append(self._asked.pop(0))
            rows += len(together[-1][0])
        self._rows -= rows
        if not together:
            return
        parts = [X for X, _ in together]
        if rows * self._row_seconds <= self._short and not isinstance(parts[0], list):
            _settle(together, self._answers(parts))
            if self._asked:
                loop.call_soon(self._next, loop)
            return

        def settle(answers: list[Answer | Exception]) -> None:
            _settle(together, answers)
            self._next(loop)

        def made(future: Future[list[Answer | Exception]]) -> None:
            if not future.cancelled() and not loop.is_closed():
                loop.call_soon_threadsafe(settle, future.result())

        self._busy = loop
        self._thread.submit(self._answers, parts).add_done_callback(made)

    def _answers(self, parts: list[Rows]) -> list[Answer | Exception]:
        began, n = time.thread_time(), sum(map(len, parts))  # not by the clock: others may have the core meanwhile
        try:
            used, values = self._compute(_joined(parts))
        except Exception as error:
            if len(parts) == 1:
                return [error]
            return [self._answers([part])[0] for part in parts]  # only the request that is wrong fails
        self._row_seconds = (time.thread_time() - began) / n
        ends = np.cumsum([len(part) for part in parts])
        return [(used, part) for part in np.split(values, ends[:-1])]


def _joined(parts: list[Any]) -> Any:
    """Put rows below rows: arrays of features, or lists of texts or images."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], list):
        return Samples(sample for part in parts for sample in part)
    return np.concatenate(parts)


def _settle(together: list[tuple[Rows, asyncio.Future[Answer]]], answers: list[Any]) -> None:
    """Answer, in the loop's thread; the client may have closed its connection."""
    for (_, asked), answer in zip(together, answers, strict=True):
        if asked.done():
            continue
        if isinstance(answer, Exception):
            asked.set_exception(answer)
        else:
            asked.set_result(answer)
