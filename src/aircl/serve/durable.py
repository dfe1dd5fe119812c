"""A model that the disk has as well: its last version, and the journal of the changes since.

A process that is killed at any moment leaves both, of which `recover` makes the model as it was answered for.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from dataclasses import replace

from aircl.classifiers.analytic import AnalyticClassifier
from aircl.serve.changes import REFUSED, TAKEN_BACK
from aircl.serve.errors import StorageError
from aircl.serve.jobs import Job
from aircl.serve.journal import Journal
from aircl.serve.settings import Settings
from aircl.serve.solver import Moment
from aircl.serve.undo import Before, Undo
from aircl.serve.versions import Directory
from aircl.storage.errors import InputError

LOG = logging.getLogger("aircl.serve")

# After a failure, the disk is looked at again this often, and by every change.
RETRY_SECONDS = 5.0


class DurableModel:
    """The model, its versions and its journal; the writer's thread alone changes it.

    Parameters
    ----------
    directory : Directory
    settings : Settings

    Attributes
    ----------
    catalogue : Catalogue
        The versions that there are.
    moment : Moment
        The model, the last change that is in it, and the rows that were learned or forgotten since the start.
    journal : Journal or None
        None after a failure, until the disk was read again.
    problem : str or None
        Why changes cannot be made durable at the moment.
    settled : bool
        False while there are changes in the model that are not durable yet.
    undo : Undo
    uncheckpointed : int
        Rows of the changes that are in no version.
    """

    def __init__(self, directory: Directory, settings: Settings) -> None:
        self._directory, self._settings = directory, settings
        self.catalogue = directory.read()
        self.moment: Moment
        self.journal: Journal | None = None
        self.problem: str | None = None
        self.settled = True
        self.undo = Undo()
        self.uncheckpointed = 0
        self._changed: Counter[str] = Counter()  # rows since the last version, by what was done with them
        self._due: float | None = None  # when a checkpoint is, or another look at the disk
        self.recover()

    @property
    def model(self) -> AnalyticClassifier:
        """The model as it is now."""
        return self.moment.model

    def close(self) -> None:
        """Close the journal."""
        if self.journal is not None:
            self.journal.close()
            self.journal = None

    # -- what is due --
    def seconds_left(self) -> float | None:
        """Return after how many seconds something is due; None if nothing is."""
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def keep_up(self, *, ending: bool) -> bool:
        """Do what is due, or will be if this is the end, and tell whether the model was read from the disk again."""
        due = self._due is not None and (ending or time.monotonic() >= self._due)
        if self.journal is None:  # a model that may have what was turned away is not made a version
            if due:
                self.recover()
            return due
        if due or self.uncheckpointed >= self._settings.checkpoint_rows:
            self.checkpoint()
        return False

    # -- the model changes --
    def go_over(self, model: AnalyticClassifier, number: int, kind: str, n_rows: int, before: Before | None) -> None:
        """Go over to a model after a change, which a checkpoint is due for; `before` is what undo goes back to."""
        self._count(model, number, n_rows)
        self._changed[kind] += n_rows
        self.undo.hold(number, kind, n_rows, before)

    def go_back(self, model: AnalyticClassifier, number: int) -> None:
        """Go over to the model as it was before the last change, which has a version already or has none."""
        undo = self.undo
        assert undo.version is not None
        in_journal = self.has_in_journal(undo.version)
        self._changed += Counter({undo.kind: -undo.n_rows} if in_journal else {"undo": undo.n_rows})
        self._count(model, number, undo.n_rows)
        undo.clear()

    def has_in_journal(self, number: int) -> bool:
        """Tell whether a change is in no version yet."""
        return number > self.catalogue.current.version

    def _count(self, model: AnalyticClassifier, number: int, n_rows: int) -> None:
        self.moment = Moment(model, number, self.moment.rows + n_rows)
        self.uncheckpointed += max(1, n_rows)
        if self._due is None:
            self._due = time.monotonic() + self._settings.checkpoint_seconds

    # -- what is on the disk --
    def checkpoint(self, job: Job | None = None, *, spare: int = 0) -> None:
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
            self.uncheckpointed = 0
            self.problem = _told(error)
            LOG.error("checkpoint-failed", exc_info=error)
            return
        self.catalogue, self._due, self.uncheckpointed, self.problem = catalogue, None, 0, None
        self._changed.clear()
        self._tidy()
        LOG.info("checkpoint", extra={"fields": {"version": version.version, "reason": version.reason}})

    def _tidy(self) -> None:
        """Erase what the journal has of changes that are in a version, and remove versions that are not kept."""
        catalogue = self.catalogue
        if self.journal is not None:
            try:
                oldest = catalogue.versions[0].version
                self.journal.erase(catalogue.current.version, keep_keys=self._settings.keep_keys, oldest=oldest)
            except StorageError as error:  # the version counts; what is in it is erased when the disk is read again
                self.fail(error)
        self._directory.remove_unlisted(catalogue)

    def fail(self, error: BaseException) -> None:
        """Trust nothing but the disk from here on: the next change begins by reading it."""
        self.problem = _told(error)
        self._due = time.monotonic() + RETRY_SECONDS
        LOG.error("storage-failed", exc_info=error)
        self.close()

    def recover(self) -> None:
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
        self.journal, self.uncheckpointed, self._changed, self.problem = journal, rows, changed, None
        self._due = time.monotonic() + settings.checkpoint_seconds if self.has_in_journal(version) else None
        LOG.info("recovered", extra={"fields": {"version": version, "replayed_rows": rows}})
        self._tidy()  # it may have been killed before it did


def _told(error: BaseException) -> str:
    """Return what went wrong, for a client: without paths of the machine, and without anything of a row."""
    if isinstance(error, StorageError | InputError):
        return str(error)
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
