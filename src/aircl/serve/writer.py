"""The one thread that changes the model, and what makes its changes durable.

A change is answered when it is durable and made. By default it is durable in the journal: whatever waits is written by
one transaction (group commit), then made. A merge, a rollback, and every change of a service without a journal are
durable by a checkpoint instead: the key is noted, the change is made, and the list of versions is replaced. Either way
a process that is killed leaves a version and a journal of which `recover` makes the model as it was answered for.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any

from aircl.classifiers.analytic import AnalyticClassifier
from aircl.classifiers.persistence import load_any
from aircl.engine import LedgerError
from aircl.serve.changes import REFUSED, TAKEN_BACK, Change, HalfMadeError, class_rows, rows_between
from aircl.serve.errors import BusyError, RefusedError, StorageError
from aircl.serve.jobs import Job
from aircl.serve.journal import Entry, Journal
from aircl.serve.recent import Recent
from aircl.serve.settings import Settings
from aircl.serve.solver import Moment
from aircl.serve.undo import Before, NothingToUndoError, Undo
from aircl.serve.versions import Directory
from aircl.storage.errors import InputError

LOG = logging.getLogger("aircl.serve")

# After a failure, the disk is looked at again this often, and by every change.
RETRY_SECONDS = 5.0

# Changes of one transaction, at most: together they are a few hundred megabytes at worst.
GROUP = 64


class Writer:
    """Owns the model, its versions and its journal. The directory is locked by whoever makes one.

    Parameters
    ----------
    directory : Directory
    settings : Settings
    before : callable
        Takes the change before it is made: who predicts first and learns then, does so here.
    after : callable
        Called after every group of changes.

    Attributes
    ----------
    moment : Moment
        The model, the last change that is in it, and the rows that were learned or forgotten since the start.
    problem : str or None
        Why changes cannot be made durable at the moment.
    settled : bool
        False while there are changes in the model that are not durable yet.
    undo : Undo
    recent : Recent
    """

    def __init__(
        self, directory: Directory, settings: Settings, before: Callable[[Change], None], after: Callable[[], None]
    ) -> None:
        self._directory, self._settings, self._before, self._after = directory, settings, before, after
        self._queue: queue.Queue[Job | None] = queue.Queue(maxsize=settings.max_waiting)
        self._thread = threading.Thread(target=self._run, name="aircl-writer", daemon=True)
        self.catalogue = directory.read()
        self.problem: str | None = None
        self.undo, self.recent = Undo(), Recent()
        self.settled = True
        self._half_made: Job | None = None  # a change that was refused too late
        self._due: float | None = None  # when a checkpoint is
        self._uncheckpointed = 0  # rows
        self._changed: Counter[str] = Counter()  # rows since the last version, by what was done with them
        self._journal: Journal | None = None
        self.moment: Moment
        self._recover()

    # -- from outside --
    @property
    def model(self) -> AnalyticClassifier:
        """The model, which only the writer changes."""
        return self.moment.model

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
        if self._journal is not None:
            self._journal.close()

    # -- the thread --
    def _run(self) -> None:
        ending = False
        while not ending:
            group, ending = self._take()
            try:
                if group:
                    self._make(group)
                    self._after()
                due = self._due is not None and (ending or time.monotonic() >= self._due)
                if self._journal is None and due:
                    self._recover()
                    self._after()
                elif due or self._uncheckpointed >= self._settings.checkpoint_rows:
                    self._checkpoint()
            except Exception as error:  # whatever it is, the disk knows what was answered
                self._fail(error)
                with suppress(OSError, ValueError):
                    self._recover()
                unknown = BusyError("it is not known whether the change was made: ask again by its key.")
                for job in group:
                    if not job.done.done():
                        job.settle(RefusedError(str(error)) if job is self._half_made else unknown)
                self._half_made = None
                self._after()

    def _take(self) -> tuple[list[Job], bool]:
        """Return the changes that wait, and whether to end; wait for the first one, or until a checkpoint is due."""
        wait = None if self._due is None else max(0.0, self._due - time.monotonic())
        group: list[Job] = []
        try:
            job = self._queue.get(timeout=wait)
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
        try:
            if self._journal is None:
                self._recover()
        except (OSError, ValueError) as error:
            self._fail(error)
            for job in group:
                job.settle(StorageError(f"changes cannot be made at the moment: {self.problem}"))
            return
        waiting: list[Job] = []
        usual = not self._settings.journal
        for job in self._not_made_before(group):
            if job.change is not None and not job.purge:
                waiting.append(job)
                continue
            self._make_together(waiting, by_checkpoint=usual)
            waiting = []
            if job.kind == "rollback" and self._uncheckpointed:
                self._checkpoint(spare=1)  # what a rollback leaves can be rolled back to as well
            if job.kind == "undo":
                self._take_back(job)
            elif self._find_rows(job):
                self._make_together([job], by_checkpoint=usual or job.purge or job.change is None)
        self._make_together(waiting, by_checkpoint=usual)

    def _find_rows(self, job: Job) -> bool:
        """Make the change of one that names rows by their ids only, or answer why that is not possible."""
        if job.by_ids is not None and self._journal is not None:
            assert self._journal.kept is not None
            try:
                job.change = job.by_ids(self._journal.kept)
            except (LookupError, RefusedError, InputError) as error:
                status = 404 if isinstance(error, LookupError) else getattr(error, "status", 422)
                job.settle(RefusedError(str(error), status))
                return False
        return True

    def _not_made_before(self, group: Sequence[Job]) -> list[Job]:
        """Answer requests that are repeated, and return the others."""
        assert self._journal is not None
        fresh: list[Job] = []
        by_key: dict[str, Job] = {}
        for job in group:
            job.digest = self._journal.digest(job.kind.encode(), *job.request)
            if job.key is not None:
                first = by_key.get(job.key)
                made = self._journal.find(job.key) if first is None else (first.digest, "")
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
        journal = self._journal
        if not jobs:
            return
        if journal is None:  # it failed for those before
            for job in jobs:
                job.settle(StorageError(f"changes cannot be made at the moment: {self.problem}"))
            return
        numbers = range(self.moment.version + 1, self.moment.version + 1 + len(jobs))
        answers = [{"version": number, "rows": job.n_rows} for job, number in zip(jobs, numbers, strict=True)]
        try:
            journal.append(
                [
                    Entry(number, job.key, job.digest, json.dumps(answer), job.change, by_checkpoint, job.version)
                    for job, number, answer in zip(jobs, numbers, answers, strict=True)
                ]
            )
            self.settled = not by_checkpoint
            made = []
            for job, number, answer in zip(jobs, numbers, answers, strict=True):
                try:
                    n_rows = self._apply(job, number)
                except RefusedError as refused:
                    journal.remove([number])
                    self.moment = replace(self.moment, version=number)
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
                self._checkpoint(made[-1][0])
            self.settled = True
            for job, answer in made:
                if by_checkpoint:
                    self._answer(job, answer)
        except (StorageError, OSError) as error:
            self._fail(error)
            for job in jobs:
                if not job.done.done():
                    job.settle(StorageError(self.problem))

    def _answer(self, job: Job, answer: dict[str, Any]) -> None:
        """Answer a change that is made and durable."""
        self.recent.note(answer["version"], job.kind, job.change, rows=answer["rows"], target=job.version)
        job.settle(answer)

    def _take_back(self, job: Job) -> None:
        """Take back the last change, by the journal if it is in there, else by a checkpoint."""
        journal, undo = self._journal, self.undo
        if journal is None or job.version is None:
            job.settle(StorageError(f"changes cannot be made at the moment: {self.problem}"))
            return
        try:
            before = undo.find(job.version)
        except NothingToUndoError as error:
            job.settle(RefusedError(str(error), 409))
            return
        answer = {"version": self.moment.version + 1, "rows": undo.n_rows}
        in_journal = job.version > self.catalogue.current.version
        change = Change("undo") if in_journal else None
        try:
            entry = Entry(answer["version"], job.key, job.digest, json.dumps(answer), change)
            journal.append([entry], undone=job.version)
            self.settled = in_journal
            self._go_over(before.restored(), answer["version"], answer["rows"])
            self._changed += Counter({undo.kind: -undo.n_rows}) if in_journal else Counter(undo=undo.n_rows)
            undo.clear()
            if not in_journal:
                self._checkpoint(job)
                self.settled = True
        except (StorageError, OSError) as error:
            self._fail(error)
            job.settle(StorageError(self.problem))
        else:
            LOG.info("change", extra={"fields": {"kind": "undo", **answer}})
            self._answer(job, answer)

    def _go_over(self, model: AnalyticClassifier, number: int, n_rows: int) -> None:
        """Go over to a model after a change, which a checkpoint is due for."""
        self.moment = Moment(model, number, self.moment.rows + n_rows)
        self._uncheckpointed += max(1, n_rows)
        if self._due is None:
            self._due = time.monotonic() + self._settings.checkpoint_seconds

    def _apply(self, job: Job, number: int) -> int:
        """Change the model, and return how many rows were changed; what it refuses leaves it as it was."""
        began, model, n_rows = time.monotonic(), self.model, 0
        before = None if job.purge else Before.of(model, job.n_rows)
        try:
            if job.change is not None:
                self._before(job.change)
                n_rows = job.change.apply(model)
            else:
                known = class_rows(model)
                if job.file is not None:
                    model.merge(load_any(job.file))
                else:
                    assert job.version is not None
                    model = self._directory.load(self.catalogue.find(job.version))
                n_rows = rows_between(known, class_rows(model))
        except LookupError as error:
            raise RefusedError(str(error), 404) from error
        except LedgerError as error:
            raise RefusedError(_in_words_of_requests(str(error)), 409) from error
        except REFUSED as error:
            raise RefusedError(str(error).replace(str(job.file), "what was sent")) from error
        self._go_over(model, number, n_rows)
        self._changed[job.kind] += n_rows
        self.undo.hold(number, job.kind, n_rows, before)
        took = round(time.monotonic() - began, 4)
        LOG.info("change", extra={"fields": {"kind": job.kind, "version": number, "rows": n_rows, "seconds": took}})
        return n_rows

    # -- what is on the disk --
    def _checkpoint(self, job: Job | None = None, *, spare: int = 0) -> None:
        """Make the model a version, and erase the journal up to it.

        `job` is a change that becomes durable by it; `spare` versions more than usual are kept.
        """
        try:
            if job is not None and job.kind == "rollback":
                assert job.version is not None
                version = self._directory.again(self.catalogue.find(job.version), self.moment.version)
            else:
                reason = "checkpoint" if job is None or job.kind == "learn" else job.kind
                version = self._directory.save(self.model, self.moment.version, reason, self._changed)
            keep = 1 if job is not None and job.purge else self._settings.keep_versions + spare
            versions = (*self.catalogue.versions, version)[-keep:]
            catalogue = replace(self.catalogue, versions=versions)
            self._directory.write(catalogue)  # from here on it counts
        except OSError as error:
            if job is not None:
                raise
            self._due = time.monotonic() + self._settings.checkpoint_seconds  # the journal has everything
            self._uncheckpointed = 0
            self.problem = _told(error)
            LOG.error("checkpoint-failed", exc_info=error)
            return
        self.catalogue, self._due, self._uncheckpointed, self.problem = catalogue, None, 0, None
        self._changed.clear()
        if self._journal is not None:
            try:
                oldest = catalogue.versions[0].version
                self._journal.erase(version.version, keep_keys=self._settings.keep_keys, oldest=oldest)
            except StorageError as error:  # the version counts; what is in it is erased with the next one
                self._fail(error)
        self._directory.remove_unlisted(catalogue)
        LOG.info("checkpoint", extra={"fields": {"version": version.version, "reason": version.reason}})

    def _fail(self, error: BaseException) -> None:
        """Trust nothing but the disk from here on: the next change begins by reading it."""
        self.problem = _told(error)
        self._due = time.monotonic() + RETRY_SECONDS
        LOG.error("storage-failed", exc_info=error)
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _recover(self) -> None:
        """Make the model of the current version and of the journal, each change exactly once."""
        catalogue = self._directory.read()
        settings = self._settings
        journal = Journal(self._directory.path, catalogue.id, settings.cipher, drop=settings.drop_rows)
        try:
            model = self._directory.load(catalogue.current)
            if settings.cipher is not None and model.ledger is False:
                raise InputError("rows are kept by their ids, which a model with a ledger has: --init --ledger.")
            version, changed, refused = catalogue.current.version, Counter[str](), list[int]()
            short: dict[int, int] = {}
            self.undo.clear()
            for number, change in journal.after(version):
                before = Before.of(model, change.n_rows)
                try:
                    n_rows = change.apply(model)
                except REFUSED:  # as it was before the kill, and not answered yet
                    refused.append(number)
                else:
                    if change.kind in TAKEN_BACK:
                        self.undo.clear()
                    else:
                        self.undo.hold(number, change.kind, n_rows, before)
                        changed[change.kind] += n_rows
                        if n_rows != change.n_rows:  # it may have been killed before this was noted
                            short[number] = n_rows
                version = number
            known = self.moment.rows if hasattr(self, "moment") else 0
            self.catalogue, self.moment, self.settled = catalogue, Moment(model, version, known), True
            for number, n_rows in short.items():
                journal.change_answer(number, json.dumps({"version": number, "rows": n_rows}))
            journal.remove(refused)
            journal.remove_unmade(catalogue.current.version)
        except BaseException:
            journal.close()
            raise
        rows = changed.total()
        self._journal, self._uncheckpointed, self._changed, self.problem = journal, rows, changed, None
        self._due = (
            time.monotonic() + self._settings.checkpoint_seconds if version > catalogue.current.version else None
        )
        LOG.info("recovered", extra={"fields": {"version": version, "replayed_rows": rows}})


def _told(error: BaseException) -> str:
    """Say what went wrong to whoever asks, without paths of the machine, and without anything of a row."""
    if isinstance(error, StorageError | InputError):
        return str(error)
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


def _in_words_of_requests(told: str) -> str:
    """Say what to do about a ledger's refusal in the words of the routes."""
    for words, of_requests in (
        ('on_duplicate="skip"', '"on_duplicate": "skip"'),
        ('"replace" learns', "POST /correct learns"),
        ("ids=, or --id", '"ids"'),
    ):
        told = told.replace(words, of_requests)
    return told
