"""Whether rows are still like those that were learned: the share of novel ones, and accuracy against expectation."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from aircl.engine.backend import Array
from aircl.serve.errors import BusyError, RefusedError
from aircl.serve.gatherer import Answer, Gatherer
from aircl.serve.solver import Solved

# A row of less novelty is novel: so many of new rows would be, if they were like those that were learned.
NOVEL = 0.01
# Rows over which shares are counted; those of predictions that are looked at, at once and in between at least.
LAST_ROWS = 1000
SAMPLE_ROWS, SAMPLE_SECONDS = 64, 1.0
# What novelty is measured by costs more than a solution: it is made again at most this part of the time.
PART_OF_TIME = 0.1


class Drift:
    """Counts what was predicted rightly before it was learned, and which of the rows that are predicted are novel.

    Novelty has its own thread, and costs more than a prediction: unless a request asks for it, some rows per second are
    looked at. What it is measured by may be of an older version than predictions are.

    Parameters
    ----------
    solved : callable
        Returns what predictions use now, or None.
    max_rows : int
        Rows that may wait for their novelty.

    Attributes
    ----------
    gatherer : Gatherer
        Of novelty.
    """

    def __init__(self, solved: Callable[[], Solved | None], max_rows: int) -> None:
        self._now = solved
        self._right: deque[bool] = deque(maxlen=LAST_ROWS)
        self._novel: deque[bool] = deque(maxlen=LAST_ROWS)
        self._used: Solved | None = None
        self._not_before = self._next_sample = 0.0
        self.gatherer = Gatherer(self._novelty, max_rows, short=0)  # never in the loop

    def count(self, right: list[bool]) -> None:
        """Note which rows had been predicted rightly just before they were learned."""
        self._right.extend(right)

    def is_due(self) -> bool:
        """Tell whether rows that are predicted now should be looked at."""
        return time.monotonic() >= self._next_sample

    def look(self, X: Array | list[Any]) -> None:
        """Count the novel ones among rows that are predicted, later and elsewhere."""
        self._next_sample = time.monotonic() + SAMPLE_SECONDS
        self.gatherer.later(X[:SAMPLE_ROWS], lambda answer: self.see(answer[1]))

    def see(self, novelty: Array) -> None:
        """Count the novel ones among rows whose novelty is known."""
        self._novel.extend((novelty < NOVEL).tolist())

    def _novelty(self, X: Any) -> Answer:
        """Return what novelty is measured by now, and that of rows X."""
        solved, began = self._now(), time.monotonic()
        is_new = solved is not None and solved is not self._used and solved.snapshot.solution.problem is not None
        if solved is not None and is_new and began >= self._not_before:
            try:
                solved.snapshot.solution.novelty  # noqa: B018 (makes it)
            except ValueError as error:
                raise RefusedError(str(error), 409) from None
            self._used, done = solved, time.monotonic()
            self._not_before = done + (done - began) * (1 / PART_OF_TIME - 1)
        if solved is None or self._used is None or self._used.width != solved.width:
            raise BusyError("what was learned is still being solved: ask again later.")
        return self._used, self._used.snapshot.novelty(X)

    def figures(self) -> dict[str, Any]:
        """Return everything that is known of drift."""
        solved, right, novel = self._now(), list(self._right), list(self._novel)
        expected = None if solved is None else solved.expected_accuracy
        progressive = sum(right) / len(right) if right else None
        known = expected is not None and progressive is not None
        return {
            "expected": expected,
            "progressive": progressive,
            "progressive_rows": len(right),
            "shortfall": expected - progressive if known else None,  # type: ignore[operator]
            "novel": sum(novel) / len(novel) if novel else None,
            "novel_rows": len(novel),
            "novel_usual": NOVEL,
        }
