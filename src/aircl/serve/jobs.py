"""A change that is asked for, and who waits for its answer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aircl.serve.changes import Change
from aircl.serve.kept import Kept


@dataclass(eq=False)
class Job:
    """A change that is asked for.

    Attributes
    ----------
    kind : {"learn", "forget", "correct", "forget-classes", "merge", "rollback", "undo"}
    key : str or None
        By which a repeated request is known.
    request : tuple of bytes
        What the digest is made of.
    change : Change or None
    file : Path or None
        The model to merge.
    version : int or None
        To roll back to, or the change to take back.
    purge : bool
        Whether older versions are removed, as they hold what is forgotten.
    by_ids : callable or None
        Makes the change of the rows that are kept, when it is this one's turn.
    """

    kind: str
    key: str | None = None
    request: tuple[bytes, ...] = ()
    change: Change | None = None
    file: Path | None = None
    version: int | None = None
    purge: bool = False
    by_ids: Callable[[Kept], Change] | None = None
    done: Future[dict[str, Any]] = field(default_factory=Future)
    digest: bytes = b""
    repeats: list[Job] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        """How many rows it brings or takes."""
        return 0 if self.change is None else self.change.n_rows

    def settle(self, answer: dict[str, Any] | BaseException) -> None:
        """Answer the request that waits."""
        for job in (self, *self.repeats):
            if job.done.cancelled() or not job.done.set_running_or_notify_cancel():
                continue
            if isinstance(answer, BaseException):
                job.done.set_exception(answer)
            else:
                job.done.set_result(answer if job is self else {**answer, "repeated": True})
