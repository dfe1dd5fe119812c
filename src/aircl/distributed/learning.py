"""What all engines share: how a fit begins, what a worker does, and how the pieces become the classifier."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from sklearn.base import clone

from aircl.classifiers.duplicates import Naming
from aircl.classifiers.fingerprint import fingerprint
from aircl.classifiers.learning import empty_like, learn
from aircl.classifiers.rows import read_keys
from aircl.classifiers.stream import StreamClassifier
from aircl.distributed.piece import Piece, count_buckets, with_classes
from aircl.distributed.shard import Shard
from aircl.engine import Learner, Ledger, LedgerError, State
from aircl.storage.errors import InputError, is_refusal

# Called with the number of shards that are learned, of all shards, and of rows so far.
Progress = Callable[[int, int, int], None]

# Enough for many workers, and for one that is lost to cost little; few enough that merging is cheap.
PARTS = 64


class NothingToLearnError(ValueError):
    """No shard has a row.

    Examples
    --------
    >>> import numpy as np
    >>> from aircl import AIRClassifier
    >>> from aircl.distributed import fit_joblib
    >>> fit_joblib(AIRClassifier(), [(np.zeros((0, 4)), np.zeros(0, int))], workers=1)
    Traceback (most recent call last):
    aircl.distributed.learning.NothingToLearnError: no shard has a row of positive weight, so there is nothing to learn.
    """


class LostWorkersError(OSError):
    """Workers died again and again at the same work.

    Examples
    --------
    A reader that takes its process down, as one does that runs out of memory (it takes seconds until this is given up):

    >>> import os
    >>> import numpy as np
    >>> from aircl import AIRClassifier
    >>> from aircl.distributed import LostWorkersError, fit_joblib
    >>> first, second = (np.eye(4), np.arange(4)), lambda: os._exit(1)
    >>> fit_joblib(AIRClassifier(), [first, second], workers=2)  # doctest: +SKIP
    Traceback (most recent call last):
    aircl.distributed.learning.LostWorkersError: worker processes died 4 times in a row (...). If memory is short, ...

    What to do about it is in the message, and can be tried:

    >>> try:
    ...     clf = fit_joblib(AIRClassifier(0.1), [first], workers=1)
    ... except LostWorkersError:
    ...     clf = fit_joblib(AIRClassifier(0.1, store="shared"), [first], workers=1)
    >>> clf.store, clf.predict(np.eye(4))
    ('per-class', array([0, 1, 2, 3]))
    """


@dataclass(frozen=True)
class Known:
    """Rows that were learned before, elsewhere, as a ledger has them.

    Attributes
    ----------
    ledger : Ledger or None
        With the keys that it needs, or of the keys that the classifier names.
    on_duplicate : {"error", "skip"}
        Whether such a row is refused, with the whole fit, or left out.

    Examples
    --------
    A day that has two rows of the day before:

    >>> import numpy as np
    >>> from aircl import AIRClassifier
    >>> from aircl.distributed import Known, fit_joblib
    >>> X, y, ids = np.eye(6), np.arange(6) % 3, np.arange(6)
    >>> monday = AIRClassifier(1.0, ledger=True).fit(X[:4], y[:4], ids=ids[:4])
    >>> known = Known(monday._learner.state.ledger, "skip")
    >>> rest = fit_joblib(AIRClassifier(1.0, ledger=True), [(X[2:], y[2:], None, ids[2:])], workers=1, known=known)
    >>> monday.merge(rest).class_count_
    array([2., 2., 2.])
    """

    ledger: Ledger | None = None
    on_duplicate: str = "error"

    @property
    def since(self) -> Ledger:
        """The ledger that rows are looked up in: all shards are one call, whichever worker learns them."""
        return Ledger(by_id=False, books=()) if self.ledger is None else self.ledger


@dataclass(frozen=True)
class Plan:
    """What is decided before the work is dealt out, from the first batch: then all workers agree on it.

    Attributes
    ----------
    template : StreamClassifier
        It has learned nothing, but has a fitted expansion and knows width and dtype.
    parts : list of lists of Shard
        Each is learned by one worker, in order.
    n_buckets : int
        Into how many buckets of classes a part is split to be merged.
    batch_size : int
    known : Known
        Which rows are not learned again.
    """

    template: StreamClassifier
    parts: list[list[Shard]]
    n_buckets: int
    batch_size: int
    known: Known

    @classmethod
    def make(
        cls,
        classifier: StreamClassifier,
        shards: list[Shard],
        parts: int | None,
        batch_size: int,
        known: Known | None = None,
    ) -> Plan:
        """Look at the first batch, and deal the shards out in runs of consecutive ones."""
        check_batch_size(batch_size)
        known = known or Known()
        template = begin(classifier, shards, batch_size, known)
        n_buckets = count_buckets(template._learner.state.statistics)
        return cls(template, deal(shards, parts), n_buckets, batch_size, known)

    @property
    def n_shards(self) -> int:
        """The number of all shards."""
        return sum(map(len, self.parts))


def check_batch_size(batch_size: int) -> None:
    """Refuse batches of nothing."""
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size} is not possible. A batch has at least one row.")


def begin(
    classifier: StreamClassifier, shards: Sequence[Shard], batch_size: int, known: Known | None = None
) -> StreamClassifier:
    """Return an empty learner that treats every batch as one process does that has begun with the first one.

    The keys of its ledger are in it: workers may not see the files that these are in.
    """
    probe = clone(classifier)
    for shard in shards:
        for X, y, weight, ids, raw in shard.batches(batch_size):
            learn(probe, X, y, None, weight, Naming(ids, raw=raw))
            if hasattr(probe, "_learner"):
                template: StreamClassifier = clone(classifier)
                if getattr(template, "store", None) == "pooled":  # fit is one phase, and an open phase is held by class
                    template.set_params(store="per-class")
                state = empty_like(template, probe._learner.state)
                ledger = probe._learner.state.ledger if known is None or known.ledger is None else known.ledger
                if ledger is not None:
                    ledger = ledger.emptied().with_keys([*ledger.keys, *read_keys(classifier._ledger())])
                    template.set_params(ledger=True)
                template._learner = Learner(replace(state, ledger=ledger))
                statistics = template._learner.state.statistics
                statistics.check_merge(np.arange(1))  # some statistics cannot be added up at all
                return template
    raise NothingToLearnError("no shard has a row of positive weight, so there is nothing to learn.")


def deal(shards: list[Shard], parts: int | None) -> list[list[Shard]]:
    """Split shards into at most `parts` runs of nearly equal number."""
    if parts is not None and parts < 1:
        raise ValueError(f"parts={parts} is not possible. Give a whole number of at least 1, or None.")
    n = min(len(shards), PARTS if parts is None else parts)
    bounds = [len(shards) * i // n for i in range(n + 1)]
    return [shards[start:stop] for start, stop in pairwise(bounds)]


def learn_part(
    template: StreamClassifier,
    shards: Sequence[Shard],
    batch_size: int,
    memory: int | None = None,
    known: Known | None = None,
) -> Piece:
    """Learn some shards from the beginning; whatever was tried before leaves no trace.

    Parameters
    ----------
    template : StreamClassifier
    shards : sequence of Shard
    batch_size : int
    memory : int or None
        Bytes that statistics may take in this process, unless the classifier has a limit of its own.
    known : Known or None
        Which rows are not learned again.

    Returns
    -------
    piece : Piece
    """
    classifier, known = copy.deepcopy(template), known or Known()
    if memory is not None:
        classifier._learner.change(lambda state: state.with_limits(default_limit=memory))
    rows = 0
    for shard in shards:
        before = 0
        for X, y, weight, ids, raw in shard.batches(batch_size):
            n = X.shape[0] if hasattr(X, "shape") else len(X)
            try:
                learn(classifier, X, y, None, weight, Naming(ids, known.on_duplicate, None, known.since, raw))
            except ValueError as error:
                if not is_refusal(error):
                    raise
                raise InputError(f"{shard.name or shard.id}, rows {before + 1} to {before + n}: {error}") from error
            before += n
        rows += before
    state = classifier._learner.sealed()  # what travels is sealed; what stays must not differ
    ledger = None if state.ledger is None else state.ledger.with_keys(())  # nobody needs them any more
    state = State.empty(state.statistics, labels=state.labels, ledger=ledger)
    return Piece(state, frozenset(shard.id for shard in shards), fingerprint(classifier), rows)


def install(
    classifier: StreamClassifier, template: StreamClassifier, pieces: Iterable[Piece], shards: Sequence[Shard]
) -> int:
    """Make a classifier what `fit` would have made of it, from the buckets of all shards; return the number of rows."""
    everything = frozenset(shard.id for shard in shards)
    begun, ledger = empty_like(classifier, template._learner.state), template._learner.state.ledger
    state, rows = State.empty(begun.statistics, ledger=ledger), 0
    for piece in pieces:
        if piece.shards != everything:
            missing = len(everything - piece.shards)
            raise RuntimeError(f"{missing} of {len(everything)} shards are missing from what was merged.")
        state, rows = with_classes(state, piece.state), rows + piece.rows
    if ledger is not None and state.ledger is not None:
        if torn := state.ledger.count_torn():
            raise LedgerError(f"{torn} ids stand for different rows in different shards or files. An id names one row.")
        outside = read_keys(classifier._ledger())
        ledger = state.ledger.with_keys([key for key in ledger.keys if key not in outside])
    state = State.empty(state.statistics, labels=state.labels, inputs=begun.inputs, lineage=everything, ledger=ledger)
    kept = {name: value for name, value in classifier.__dict__.items() if name not in ("_learner", "_declared")}
    classifier.__dict__ = {**kept, "_learner": Learner(state)}
    return rows
