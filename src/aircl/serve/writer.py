"""The one thread that changes the model: it takes what waits, makes it durable, and answers.

A change is answered when it is durable and made. By default it is durable in the journal: whatever waits is written by
one transaction (group commit), then made. A merge, a rollback, and every change of a service without a journal are
durable by a checkpoint instead: the key is noted, the change is made, and the list of versions is replaced.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any

from aircl.classifiers.analytic import AnalyticClassifier
from aircl.classifiers.persistence import load_any
from aircl.engine import LedgerError
from aircl.serve.changes import REFUSED, Change, HalfMadeError, class_rows, rows_between
from aircl.serve.durable import DurableModel
from aircl.serve.errors import BusyError, RefusedError, StorageError
from aircl.serve.jobs import Job
from aircl.serve.journal import Entry
from aircl.serve.recent import Recent
from aircl.serve.settings import Settings
from aircl.serve.undo import Before, NothingToUndoError
from aircl.serve.versions import Directory
from aircl.storage.errors import InputError

LOG = logging.getLogger("aircl.serve")

# Changes of one transaction, at most: together they are a few hundred megabytes at worst.
GROUP = 64


class Writer:
    """Makes changes, in the order in which they are asked for. The directory is locked by the object that makes one.

    Parameters
    ----------
    directory : Directory
    settings : Settings
    before : callable
        Takes the change before it is made, and returns what is called if all rows of it were: who predicts first and
        learns then, does so here.
    after : callable
        Called after every group of changes.

    Attributes
    ----------
    durable : DurableModel
        What is changed.
    recent : Recent
    """

    def __init__(
        self,
        directory: Directory,
        settings: Settings,
        before: Callable[[Change], Callable[[], None]],
        after: Callable[[], None],
    ) -> None:
        self._directory, self._settings, self._before, self._after = directory, settings, before, after
        self._queue: queue.Queue[Job | None] = queue.Queue(maxsize=settings.max_waiting)
        self._thread = threading.Thread(target=self._run, name="aircl-writer", daemon=True)
        self._half_made: Job | None = None  # a change that was refused too late
        self.durable, self.recent = DurableModel(directory, settings), Recent()

    # -- from outside --
    @property
    def model(self) -> AnalyticClassifier:
        """The model, which only the writer changes."""
        return self.durable.model

    def start(self) -> None:
        """Begin to take changes."""
        self._thread.start()

    def submit(self, job: Job) -> Future[dict[str, Any]]:
        """Have a change made; the answer comes when it is durable."""
        try:
            self._queue.put_nowait(job)
        except queue.Full:
            raise BusyError("too many changes are waiting: ask again later.") from None
        return job.done

    def stop(self) -> None:
        """Make what waits, write a checkpoint, and close the journal."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        self.durable.close()

    # -- the thread --
    def _run(self) -> None:
        ending = False
        while not ending:
            group, ending = self._take()
            try:
                if group:
                    self._make(group)
                    self._after()
                if self.durable.keep_up(ending=ending):
                    self._after()
            except Exception as error:  # whatever it is, the disk knows what was answered
                self.durable.fail(error)
                with suppress(OSError, ValueError):
                    self.durable.recover()
                unknown = BusyError("it is not known whether the change was made: ask again by its key.")
                for job in group:
                    if not job.done.done():
                        job.settle(RefusedError(str(error)) if job is self._half_made else unknown)
                self._half_made = None
                self._after()

    def _take(self) -> tuple[list[Job], bool]:
        """Return the changes that wait, and whether to end; wait for the first one, or until a checkpoint is due."""
        group: list[Job] = []
        try:
            job = self._queue.get(timeout=self.durable.seconds_left())
            while job is not None:
                group.append(job)
                if len(group) == GROUP:
                    return group, False
                job = self._queue.get_nowait()
        except queue.Empty:
            return group, False
        return group, True

    def _make(self, group: Sequence[Job]) -> None:
        """Make changes, in their order, those in a row that are durable by the journal by one transaction."""
        durable = self.durable
        try:
            if durable.journal is None:
                durable.recover()
        except (OSError, ValueError) as error:
            durable.fail(error)
        if durable.journal is None:
            for job in group:
                job.settle(self._not_now())
            return
        waiting: list[Job] = []
        usual = not self._settings.journal
        for job in self._not_made_before(group):
            if job.change is not None and not job.purge:
                waiting.append(job)
                continue
            self._make_together(waiting, by_checkpoint=usual)
            waiting = []
            if job.kind == "rollback" and durable.uncheckpointed and durable.journal is not None:
                durable.checkpoint(spare=1)  # what a rollback leaves can be rolled back to as well
            if job.kind == "undo":
                self._take_back(job)
            elif self._find_rows(job):
                self._make_together([job], by_checkpoint=usual or job.purge or job.change is None)
        self._make_together(waiting, by_checkpoint=usual)

    def _find_rows(self, job: Job) -> bool:
        """Make the change of one that names rows by their ids only, or answer why that is not possible."""
        journal = self.durable.journal
        if job.by_ids is not None and journal is not None:
            assert journal.kept is not None
            try:
                job.change = job.by_ids(journal.kept)
            except (LookupError, RefusedError, InputError) as error:
                status = 404 if isinstance(error, LookupError) else getattr(error, "status", 422)
                job.settle(RefusedError(str(error), status))
                return False
        return True

    def _not_made_before(self, group: Sequence[Job]) -> list[Job]:
        """Answer requests that are repeated, and return the others."""
        journal = self.durable.journal
        assert journal is not None
        fresh: list[Job] = []
        by_key: dict[str, Job] = {}
        for job in group:
            job.digest = journal.digest(job.kind.encode(), *job.request)
            if job.key is not None:
                first = by_key.get(job.key)
                made = journal.find(job.key) if first is None else (first.digest, "")
                if made is not None and made[0] != job.digest:
                    job.settle(RefusedError("this Idempotency-Key was used for another request. Make a new one."))
                elif first is not None:
                    first.repeats.append(job)
                elif made is not None:
                    job.settle({**json.loads(made[1]), "repeated": True})
                else:
                    by_key[job.key] = job
                    fresh.append(job)
            else:
                fresh.append(job)
        return fresh

    def _make_together(self, jobs: Sequence[Job], *, by_checkpoint: bool) -> None:
        """Make changes that become durable together, and answer them."""
        durable, journal = self.durable, self.durable.journal
        if not jobs:
            return
        if journal is None:  # it failed for those before
            for job in jobs:
                job.settle(self._not_now())
            return
        first = durable.moment.version + 1
        numbers = range(first, first + len(jobs))
        answers = [{"version": number, "rows": job.n_rows} for job, number in zip(jobs, numbers, strict=True)]
        try:
            journal.append(
                [
                    Entry(number, job.key, job.digest, json.dumps(answer), job.change, by_checkpoint, job.version)
                    for job, number, answer in zip(jobs, numbers, answers, strict=True)
                ]
            )
            durable.settled = not by_checkpoint
            made = []
            for job, number, answer in zip(jobs, numbers, answers, strict=True):
                try:
                    n_rows = self._apply(job, number)
                except RefusedError as refused:
                    journal.remove([number])
                    durable.moment = replace(durable.moment, version=number)
                    job.settle(refused)
                except Exception as error:
                    journal.remove([number])  # it was never answered; what the model has of it, the disk will say
                    self._half_made = job if isinstance(error, HalfMadeError) else None
                    raise
                else:
                    if n_rows != answer["rows"]:
                        answer["rows"] = n_rows
                        journal.change_answer(number, json.dumps(answer))
                    made.append((job, answer))
                    if not by_checkpoint:
                        self._answer(job, answer)
            if by_checkpoint and made:
                durable.checkpoint(made[-1][0])
            durable.settled = True
            for job, answer in made:
                if by_checkpoint:
                    self._answer(job, answer)
        except OSError as error:
            durable.fail(error)
            for job in jobs:
                if not job.done.done():
                    job.settle(StorageError(durable.problem))

    def _not_now(self) -> StorageError:
        return StorageError(f"changes cannot be made at the moment: {self.durable.problem}")

    def _answer(self, job: Job, answer: dict[str, Any]) -> None:
        """Answer a change that is made and durable."""
        self.recent.note(answer["version"], job.kind, job.change, rows=answer["rows"], target=job.version)
        job.settle(answer)

    def _take_back(self, job: Job) -> None:
        """Take back the last change, by the journal if it is in there, else by a checkpoint."""
        durable, journal = self.durable, self.durable.journal
        if journal is None or job.version is None:
            job.settle(self._not_now())
            return
        try:
            before = durable.undo.find(job.version)
        except NothingToUndoError as error:
            job.settle(RefusedError(str(error), 409))
            return
        answer = {"version": durable.moment.version + 1, "rows": durable.undo.n_rows}
        in_journal = durable.has_in_journal(job.version)
        change = Change("undo") if in_journal else None
        try:
            entry = Entry(answer["version"], job.key, job.digest, json.dumps(answer), change)
            journal.append([entry], undone=job.version)
            durable.settled = in_journal
            durable.go_back(before.restored(), answer["version"])
            if not in_journal:
                durable.checkpoint(job)
                durable.settled = True
        except OSError as error:
            durable.fail(error)
            job.settle(StorageError(durable.problem))
        else:
            LOG.info("change", extra={"fields": {"kind": "undo", **answer}})
            self._answer(job, answer)

    def _apply(self, job: Job, number: int) -> int:
        """Change the model, and return how many rows were changed; what it refuses leaves it as it was."""
        began, model, n_rows = time.monotonic(), self.model, 0
        before = None if job.purge else Before.of(model, job.n_rows)
        try:
            if job.change is not None:
                was_made = self._before(job.change)
                n_rows = job.change.apply(model)
                if n_rows == job.change.n_rows:  # which of them were skipped is not known
                    was_made()
            else:
                known = class_rows(model)
                if job.file is not None:
                    model.merge(load_any(job.file))
                else:
                    assert job.version is not None
                    model = self._directory.load(self.durable.catalogue.find(job.version))
                n_rows = rows_between(known, class_rows(model))
        except LookupError as error:
            raise RefusedError(str(error), 404) from error
        except LedgerError as error:
            raise RefusedError(_in_words_of_requests(str(error)), 409) from error
        except REFUSED as error:
            raise RefusedError(str(error).replace(str(job.file), "what was sent")) from error
        self.durable.go_over(model, number, job.kind, n_rows, before)
        took = round(time.monotonic() - began, 4)
        LOG.info("change", extra={"fields": {"kind": job.kind, "version": number, "rows": n_rows, "seconds": took}})
        return n_rows


def _in_words_of_requests(told: str) -> str:
    """Say what to do about a ledger's refusal in the words of the routes."""
    for words, of_requests in (
        ('on_duplicate="skip"', '"on_duplicate": "skip"'),
        ('"replace" learns', "POST /correct learns"),
        ("ids=, or --id", '"ids"'),
    ):
        told = told.replace(words, of_requests)
    return told
