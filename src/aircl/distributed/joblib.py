"""Processes on one machine, by joblib's executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import joblib
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.process_executor import BrokenProcessPool
from threadpoolctl import threadpool_limits

from aircl.classifiers.stream import StreamClassifier
from aircl.distributed.learning import Known, LostWorkersError, Plan, Progress, install, learn_part
from aircl.distributed.piece import Piece, merge_order
from aircl.distributed.shard import Shard, as_shards
from aircl.engine.memory import available_memory
from aircl.storage.leftovers import Scratch

Classifier = TypeVar("Classifier", bound=StreamClassifier)

ATTEMPTS = 4
# As many processes as cores: were each of them to start a thread per core, the threads would fight for the cores.
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


def fit_joblib(
    classifier: Classifier,
    shards: Iterable[Any],
    *,
    workers: int | None = None,
    parts: int | None = None,
    batch_size: int = 4096,
    progress: Progress | None = None,
    known: Known | None = None,
) -> Classifier:
    """Fit a classifier by processes on this machine, exactly as one process would; an expansion sees the first batch.

    Parameters
    ----------
    classifier : AIRClassifier or another of aircl's
        It forgets what it has learned, as with `fit`.
    shards : iterable of Shard, (X, y), (X, y, sample_weight), with ids, or callable() -> iterable of such tuples
        Read by the workers.
    workers : int or None
        How many processes, each with one BLAS thread; 1: this one. None: one per core.
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
        If workers die four times and nothing is done in between; otherwise a lost worker costs time, not data.

    Notes
    -----
    Class matrices travel through files below TMPDIR, a few classes at a time, so no process holds those of several
    workers. Merging moves as many bytes as `parts` statistics have.

    Examples
    --------
    Three shards by one process or by several give what one `fit` gives:

    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from aircl import AIRClassifier
    >>> from aircl.distributed import fit_joblib
    >>> X, y = load_digits(return_X_y=True)
    >>> shards = list(zip(np.array_split(X, 3), np.array_split(y, 3)))
    >>> clf = fit_joblib(AIRClassifier(1.0), shards, workers=1)
    >>> np.allclose(clf.coef_, AIRClassifier(1.0).fit(X, y).coef_, rtol=1e-9, atol=1e-12)
    True
    """
    shards = as_shards(shards)
    plan = Plan.make(classifier, shards, parts, batch_size, known)
    workers = joblib.cpu_count() if workers is None else workers
    if workers < 1:
        raise ValueError(f"workers={workers} is not possible. Give a number, or None for one process per core.")
    with Scratch() as scratch:
        graph = _Graph(plan, scratch, progress)
        _run(graph, plan, workers)
        like = plan.template._learner.state.statistics
        install(classifier, plan.template, (Piece.read(path, like) for path in graph.results()), shards)
    return classifier


@dataclass(frozen=True)
class _Task:
    """Work for one process: `function(*arguments)`, once all tasks that it needs are done."""

    key: tuple[int, ...]
    needs: tuple[tuple[int, ...], ...]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    uses_up: tuple[Path, ...] = ()  # no other task reads these


@dataclass
class _Graph:
    """Which file is made of which: parts, split into buckets of classes, then pairs of them bucket by bucket."""

    plan: Plan
    scratch: Path
    progress: Progress | None
    waiting: list[_Task] = field(default_factory=list)
    done: set[tuple[int, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        plan = self.plan
        self._newest: list[tuple[int, ...]] = [(number,) for number in range(len(plan.parts))]
        learning = [
            _Task((number,), (), _learn, (part, [self._file((number,), k) for k in range(plan.n_buckets)]))
            for number, part in enumerate(plan.parts)
        ]
        merging = []
        for left, right in merge_order(len(plan.parts)):
            node = (left, right)
            for bucket in range(plan.n_buckets):
                sides = [self._newest[left], self._newest[right]]
                files = tuple(self._file(side, bucket) for side in sides)
                needs = tuple(side if len(side) == 1 else (*side, bucket) for side in sides)
                merging.append(_Task((*node, bucket), needs, _merge, (*files, self._file(node, bucket)), files))
            self._newest[left] = node
        # What can be merged is merged before more is learned, so that few intermediates are held.
        self.waiting = merging + learning
        self._shards = self._rows = 0

    def _file(self, node: tuple[int, ...], bucket: int) -> Path:
        return self.scratch / f"{'-'.join(map(str, node))}.{bucket}.safetensors"

    def results(self) -> Iterator[Path]:
        """Yield the files that hold everything, bucket by bucket."""
        for bucket in range(self.plan.n_buckets):
            yield self._file(self._newest[0], bucket)

    def take_ready(self) -> _Task | None:
        """Return a task whose needs are met, and do not return it again."""
        for place, task in enumerate(self.waiting):
            if self.done.issuperset(task.needs):
                return self.waiting.pop(place)
        return None

    def finish(self, task: _Task, rows: int) -> None:
        """Note that a task is done."""
        self.done.add(task.key)
        for path in task.uses_up:
            path.unlink(missing_ok=True)
        if task.function is _learn:
            self._shards += len(self.plan.parts[task.key[0]])
            self._rows += rows
            if self.progress is not None:
                self.progress(self._shards, self.plan.n_shards, self._rows)


def _run(graph: _Graph, plan: Plan, workers: int) -> None:
    """Do all tasks; what a process was doing when it died is done again."""
    work = _Work(plan.template, plan.batch_size, available_memory() // (2 * workers), plan.known)
    if workers == 1:
        with threadpool_limits(1):
            while (task := graph.take_ready()) is not None:
                graph.finish(task, task.function(work, *task.arguments))
        return
    deaths, done = 0, 0  # deaths since a task was done last
    while True:
        running: dict[Future[int], _Task] = {}
        executor = ProcessPoolExecutor(workers, initializer=_prepare, initargs=(work,), env=ONE_THREAD)
        try:
            while True:
                while len(running) < workers and (task := graph.take_ready()) is not None:
                    try:
                        running[executor.submit(_at_work, task.function, *task.arguments)] = task
                    except BrokenProcessPool:
                        graph.waiting.insert(0, task)
                        raise
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    rows = future.result()
                    graph.finish(running.pop(future), rows)
        except BrokenProcessPool as error:
            graph.waiting = [*running.values(), *graph.waiting]
            deaths, done = 1 if len(graph.done) > done else deaths + 1, len(graph.done)
            if deaths == ATTEMPTS:
                raise LostWorkersError(
                    f"worker processes died {deaths} times in a row ({error}). If memory is short, use fewer workers, "
                    "a memory_limit, or store='shared'."
                ) from error
        finally:
            executor.shutdown(kill_workers=True)


# -- what the worker processes do --
@dataclass(frozen=True)
class _Work:
    template: StreamClassifier
    batch_size: int
    memory: int
    known: Known


_work: _Work  # in a worker process


def _prepare(work: _Work) -> None:
    global _work
    _work = work


def _at_work(function: Callable[..., int], *arguments: Any) -> int:
    return function(_work, *arguments)


def _learn(work: _Work, shards: list[Shard], files: list[Path]) -> int:
    piece = learn_part(work.template, shards, work.batch_size, work.memory, work.known)
    rows = piece.rows
    for bucket, path in zip(piece.split(len(files)), files, strict=True):
        bucket.write(path)
    return rows


def _merge(work: _Work, left: Path, right: Path, total: Path) -> int:
    like = work.template._learner.state.statistics
    Piece.read(left, like).merged(Piece.read(right, like)).write(total)
    return 0
