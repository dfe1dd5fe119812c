"""What all engines share: how a fit begins, what a worker does, and how the pieces become the classifier."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from sklearn.base import clone

from aircl.classifiers.fingerprint import fingerprint
from aircl.classifiers.learning import empty_like
from aircl.classifiers.stream import StreamClassifier
from aircl.distributed.piece import Piece, count_buckets, with_classes
from aircl.distributed.shard import Shard
from aircl.engine import Learner, State
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
    """

    template: StreamClassifier
    parts: list[list[Shard]]
    n_buckets: int
    batch_size: int

    @classmethod
    def make(cls, classifier: StreamClassifier, shards: list[Shard], parts: int | None, batch_size: int) -> Plan:
        """Look at the first batch, and deal the shards out in runs of consecutive ones."""
        check_batch_size(batch_size)
        template = begin(classifier, shards, batch_size)
        return cls(template, deal(shards, parts), count_buckets(template._learner.state.statistics), batch_size)

    @property
    def n_shards(self) -> int:
        """The number of all shards."""
        return sum(map(len, self.parts))


def check_batch_size(batch_size: int) -> None:
    """Refuse batches of nothing."""
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size} is not possible. A batch has at least one row.")


def begin(classifier: StreamClassifier, shards: Sequence[Shard], batch_size: int) -> StreamClassifier:
    """Return an empty learner that treats every batch as one process does that has begun with the first one."""
    if classifier._ledger() is not False:
        raise ValueError(
            "a ledger is kept by one process: ledger=False to learn by several, or learn in this process, "
            "partial_fit batch after batch."
        )
    probe = clone(classifier)
    for shard in shards:
        for X, y, weight in shard.batches(batch_size):
            probe.partial_fit(X, y, sample_weight=weight)
            if hasattr(probe, "_learner"):
                template: StreamClassifier = clone(classifier)
                if getattr(template, "store", None) == "pooled":  # fit is one phase, and an open phase is held by class
                    template.set_params(store="per-class")
                template._learner = Learner(empty_like(template, probe._learner.state))
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
    template: StreamClassifier, shards: Sequence[Shard], batch_size: int, memory: int | None = None
) -> Piece:
    """Learn some shards from the beginning; whatever was tried before leaves no trace.

    Parameters
    ----------
    template : StreamClassifier
    shards : sequence of Shard
    batch_size : int
    memory : int or None
        Bytes that statistics may take in this process, unless the classifier has a limit of its own.

    Returns
    -------
    piece : Piece
    """
    classifier = copy.deepcopy(template)
    if memory is not None:
        classifier._learner.change(lambda state: state.with_limits(default_limit=memory))
    rows = 0
    for shard in shards:
        before = 0
        for X, y, weight in shard.batches(batch_size):
            n = X.shape[0] if hasattr(X, "shape") else len(X)
            try:
                classifier.partial_fit(X, y, sample_weight=weight)
            except ValueError as error:
                if not is_refusal(error):
                    raise
                raise InputError(f"{shard.name or shard.id}, rows {before + 1} to {before + n}: {error}") from error
            before += n
        rows += before
    state = classifier._learner.sealed()  # what travels is sealed; what stays must not differ
    ids = frozenset(shard.id for shard in shards)
    return Piece(state.labels, state.statistics, ids, fingerprint(classifier), rows)


def install(
    classifier: StreamClassifier, template: StreamClassifier, pieces: Iterable[Piece], shards: Sequence[Shard]
) -> int:
    """Make a classifier what `fit` would have made of it, from the buckets of all shards; return the number of rows."""
    everything = frozenset(shard.id for shard in shards)
    begun = empty_like(classifier, template._learner.state)
    labels, statistics, rows = State.empty(begun.statistics).labels, begun.statistics, 0
    for piece in pieces:
        if piece.shards != everything:
            missing = len(everything - piece.shards)
            raise RuntimeError(f"{missing} of {len(everything)} shards are missing from what was merged.")
        labels, statistics = with_classes(labels, statistics, piece.labels, piece.store)
        rows += piece.rows
    state = State.empty(statistics, labels=labels, inputs=begun.inputs, lineage=everything)
    kept = {name: value for name, value in classifier.__dict__.items() if name not in ("_learner", "_declared")}
    classifier.__dict__ = {**kept, "_learner": Learner(state)}
    return rows
