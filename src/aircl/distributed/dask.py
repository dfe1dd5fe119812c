"""A Dask cluster: its scheduler finds workers for the tasks, and others for those that are lost."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from aircl.classifiers.stream import StreamClassifier
from aircl.distributed.learning import Known, LostWorkersError, Plan, Progress, install, learn_part
from aircl.distributed.piece import Piece, merge_order
from aircl.distributed.shard import Shard, as_shards

if TYPE_CHECKING:
    from distributed import Client

Classifier = TypeVar("Classifier", bound=StreamClassifier)

# What can be merged is merged before more is learned, so that the workers hold few intermediates.
LEARN, SPLIT, MERGE = 0, 1, 2


def fit_dask(
    classifier: Classifier,
    shards: Iterable[Any],
    *,
    workers: int | str | Client | None = None,
    parts: int | None = None,
    batch_size: int = 4096,
    progress: Progress | None = None,
    known: Known | None = None,
) -> Classifier:
    """Fit a classifier on a Dask cluster, exactly as one process would; an expansion sees the first batch.

    Parameters
    ----------
    classifier : AIRClassifier or another of aircl's
        It forgets what it has learned, as with `fit`.
    shards : iterable of Shard, (X, y), (X, y, sample_weight), with ids, or callable() -> iterable of such tuples
        Read by the workers: files must be where they can see them. Arrays are sent along, which a few can be.
    workers : Client, str, int or None
        A Dask client, the address of a scheduler such as "tcp://10.0.0.1:8786", or the number of processes of a cluster
        that is started on this machine for the time of the fit. None: one process per core.
    parts : int or None
        Into how many runs of consecutive shards the work is divided. The bits of the result depend on this, not
        on the workers or on who is ready first, as long as none is so short of memory that it puts class matrices on
        disk. None: 64, or one a shard if there are fewer.
    batch_size : int, default=4096
        Rows that a worker holds at a time.
    progress : callable(shards learned, all shards, rows learned) or None
    known : Known or None
        Rows that are not learned again, for a classifier with a ledger. Rows of the shards that are equal are learned
        as often as they come, as within one call.

    Returns
    -------
    classifier : the same object

    Raises
    ------
    NothingToLearnError
        If there are no rows.
    LostWorkersError
        If one part of the work is lost with its worker again and again (``distributed.scheduler.allowed-failures``, 3);
        a worker that is lost less often costs time, not data.

    Notes
    -----
    Class matrices are merged a few classes at a time, each on the worker that has most of them, and fetched in the same
    way. Workers need the packages that this process has, in the same versions.

    Examples
    --------
    Two processes of this machine; docs/distributed.md tells of clusters:

    >>> import numpy as np
    >>> from aircl import AIRClassifier
    >>> from aircl.distributed import fit_dask
    >>> X, y = np.eye(4)[[0, 1, 2, 3, 0, 1]], np.array(list("abcdab"))
    >>> clf = fit_dask(AIRClassifier(0.1), [(X[:3], y[:3]), (X[3:], y[3:])], workers=2)  # doctest: +SKIP
    >>> clf.predict(np.eye(4)).tolist()  # doctest: +SKIP
    ['a', 'b', 'c', 'd']
    """
    shards = as_shards(shards)
    plan = Plan.make(classifier, shards, parts, batch_size, known)
    with _connected(workers) as client:
        from distributed import KilledWorker

        try:
            install(classifier, plan.template, _merged(client, plan, progress), shards)
        except KilledWorker as error:
            raise LostWorkersError(
                f"a part of the work was lost with its worker too often ({error}). If memory is short, use fewer "
                "threads a worker, a memory_limit, more parts, or store='shared'."
            ) from error
    return classifier


@contextmanager
def _connected(workers: int | str | Client | None) -> Iterator[Client]:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise ImportError("fit_dask needs Dask, which is not installed: pip install 'aircl[dask]'.") from None
    if isinstance(workers, Client):
        yield workers
    elif isinstance(workers, str):
        with Client(workers, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            yield client
    else:
        if workers is not None and workers < 1:
            raise ValueError(f"workers={workers} is not possible. Give a number, or None for one process per core.")
        with (
            LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address=":0",
                silence_logs=logging.CRITICAL,  # what fails is raised; the rest is the noise of closing down
            ) as cluster,
            Client(cluster, set_as_default=False) as client,  # type: ignore[no-untyped-call]
        ):
            yield client


def _merged(client: Client, plan: Plan, progress: Progress | None) -> Iterator[Piece]:
    """Yield the pieces of all shards, bucket by bucket."""
    from distributed import as_completed

    fit = uuid.uuid4().hex

    def submit(priority: int, name: str, function: Any, *arguments: Any) -> Any:
        return client.submit(function, *arguments, key=f"aircl-{name}-{fit}", priority=priority)

    # A task rather than scattered data: if all workers that have it are lost, it is made again.
    template = submit(MERGE, "template", _itself, (plan.template, plan.known))
    rows, buckets = {}, []
    for number, part in enumerate(plan.parts):
        pieces = submit(LEARN, f"learn-{number}", _learn, template, part, plan.batch_size, plan.n_buckets)
        rows[submit(SPLIT, f"rows-{number}", _count_rows, pieces)] = len(part)
        buckets.append([submit(SPLIT, f"bucket-{number}-{k}", itemgetter(k), pieces) for k in range(plan.n_buckets)])
        del pieces  # the cluster keeps it no longer than its tasks need it
    for left, right in merge_order(len(plan.parts)):
        both = zip(buckets[left], buckets[right], strict=True)
        buckets[left] = [submit(MERGE, f"merge-{left}-{right}-{k}", Piece.merged, *ab) for k, ab in enumerate(both)]
        buckets[right] = []
    n_shards = n_rows = 0
    learned: Any = as_completed(list(rows), loop=client.loop, with_results=True)  # type: ignore[no-untyped-call]
    for future, count in learned:
        n_shards, n_rows = n_shards + rows[future], n_rows + count
        if progress is not None:
            progress(n_shards, plan.n_shards, n_rows)
    rows.clear()
    results = buckets[0]
    while results:
        yield results.pop(0).result()


# -- on the workers --
Template = tuple[StreamClassifier, Known]


def _itself(template: Template) -> Template:
    return template


def _learn(template: Template, shards: list[Shard], batch_size: int, n_buckets: int) -> list[Piece]:
    from distributed import get_worker

    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    memory = None if limit is None else limit // (2 * worker.state.nthreads)
    return learn_part(template[0], shards, batch_size, memory, template[1]).split(n_buckets)


def _count_rows(pieces: list[Piece]) -> int:
    return sum(piece.rows for piece in pieces)
