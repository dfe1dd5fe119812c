"""Ranks of torch.distributed: each learns its shards, then they merge in pairs, class by class."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from aircl.classifiers.fingerprint import check_same_kind
from aircl.classifiers.stream import StreamClassifier
from aircl.distributed.learning import NothingToLearnError, Progress, begin, deal, install, learn_part
from aircl.distributed.piece import Piece, merge_order, with_classes
from aircl.distributed.shard import as_shards
from aircl.engine import State
from aircl.engine.backend import Array
from aircl.engine.memory import OnDisk, available_memory

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup

Classifier = TypeVar("Classifier", bound=StreamClassifier)


def fit_torch(
    classifier: Classifier,
    shards: Iterable[Any],
    *,
    workers: ProcessGroup | None = None,
    parts: int | None = None,
    batch_size: int = 4096,
    progress: Progress | None = None,
) -> Classifier:
    """Fit a classifier by the ranks of a process group, exactly as one process would.

    Every rank calls it with the same arguments, in a script that ``torchrun`` starts. Rank 0 returns the fitted
    classifier; that of the other ranks stays as it was.

    Parameters
    ----------
    classifier : AIRClassifier or another of aircl's
        It forgets what it has learned, as with `fit`.
    shards : iterable of Shard, (X, y), (X, y, sample_weight), with ids, or callable() -> iterable of such tuples
        All shards; a rank reads its own. Their rows are NumPy arrays or tensors in main memory.
    workers : ProcessGroup or None
        gloo or nccl. None: the default group, which is begun with gloo if it is not there yet.
    parts : int or None
        Into how many runs of consecutive shards the work is divided; the bits of the result depend on this alone,
        as long as no rank is so short of memory that it puts class matrices on disk. None: one a rank, which needs the
        least memory.
    batch_size : int, default=4096
        Rows that a rank holds at a time.
    progress : callable(shards learned, all shards, rows learned) or None
        Called on rank 0, for its own shards.

    Returns
    -------
    classifier : the same object

    Raises
    ------
    NothingToLearnError
        If there are no rows.
    RuntimeError
        On every rank, if another one has failed.

    Notes
    -----
    A rank holds its own statistics and one class matrix of another's. torch.distributed does not survive the loss of a
    rank; ``torchrun --max-restarts`` begins again, and nothing is counted twice.

    Examples
    --------
    One rank, here in this process; docs/distributed.md has a script for ``torchrun --nproc-per-node 8``:

    >>> import numpy as np
    >>> import torch.distributed as dist
    >>> from aircl import AIRClassifier
    >>> from aircl.distributed import fit_torch
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> X, y = np.eye(4)[[0, 1, 2, 3, 0, 1]], np.array(list("abcdab"))
    >>> clf = fit_torch(AIRClassifier(0.1), [(X[:3], y[:3]), (X[3:], y[3:])])
    >>> dist.destroy_process_group()
    >>> clf.predict(np.eye(4)).tolist()
    ['a', 'b', 'c', 'd']
    """
    import torch.distributed as dist

    with _group(workers) as group:
        rank, world = dist.get_rank(group), dist.get_world_size(group)
        fit = _agreed(group, lambda: uuid.uuid4().hex)[0]
        shards = as_shards(shards, fit)
        _agreed(group, lambda: _check_parts(len(shards), parts, world))
        # The first rank begins, so that a random expansion is drawn once.
        template = _agreed(group, lambda: begin(classifier, shards, batch_size) if rank == 0 else None)[0]
        dealt = deal(shards, world if parts is None else parts)
        owner = [number * world // len(dealt) for number in range(len(dealt))]
        pieces: dict[int, Piece] = {}

        def learn() -> list[tuple[frozenset[str], dict[str, Any], str]]:
            memory = available_memory() // (2 * int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
            done = rows = 0
            for number, part in enumerate(dealt):
                if owner[number] == rank:
                    pieces[number] = learn_part(template, part, batch_size, memory)
                    done, rows = done + len(part), rows + pieces[number].rows
                    if progress is not None and rank == 0:
                        progress(done, len(shards), rows)
            return [(piece.shards, piece.kind, _label_kind(piece)) for piece in pieces.values()]

        _check_alike([head for heads in _agreed(group, learn) for head in heads])
        for left, right in merge_order(len(dealt)):
            if owner[left] == owner[right] == rank:
                pieces[left] = pieces[left].merged(pieces.pop(right))
            elif owner[right] == rank:
                _send(group, owner[left], pieces.pop(right))
            elif owner[left] == rank:
                pieces[left] = _receive(group, owner[right], pieces[left])
        if rank == 0:
            install(classifier, template, [pieces[0]], shards)
    return classifier


@contextmanager
def _group(workers: ProcessGroup | None) -> Iterator[ProcessGroup | None]:
    """Give the process group, and begin one for this time if there is none."""
    try:
        import torch.distributed as dist
    except ImportError:
        raise ImportError("fit_torch needs torch, which is not installed: pip install 'aircl[torch]'.") from None
    if dist.is_initialized():
        yield workers
        return
    if "RANK" not in os.environ:
        raise RuntimeError("fit_torch runs in a script that torchrun starts: torchrun --nproc-per-node 2 script.py.")
    # A rank may have to wait for another that learns for hours.
    dist.init_process_group("gloo", timeout=timedelta(days=30))
    try:
        yield None
    finally:
        dist.destroy_process_group()


def _agreed(group: ProcessGroup | None, work: Callable[[], Any]) -> list[Any]:
    """Return what every rank has made; if one has failed, all raise."""
    import torch.distributed as dist

    error: BaseException | None = None
    try:
        mine = True, work()
    except Exception as problem:
        error, mine = problem, (False, f"{type(problem).__name__}: {problem}")
    everyone: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(everyone, mine, group)
    if error is not None:
        raise error
    for rank, (is_well, result) in enumerate(everyone):
        if not is_well:
            raise RuntimeError(f"rank {rank} has failed: {result}")
    return [result for _, result in everyone]


def _check_parts(n_shards: int, parts: int | None, world: int) -> None:
    if parts is not None and parts < world:
        raise ValueError(f"parts={parts} leaves some of {world} ranks without work. Give at least {world}, or None.")
    if n_shards < 1:
        raise NothingToLearnError("there are no shards, so there is nothing to learn.")


def _label_kind(piece: Piece) -> str:
    kind = piece.labels.seen.dtype.kind if len(piece.labels) else ""
    return {"": "", "U": "strings", "b": "booleans"}.get(kind, "numbers")


def _check_alike(heads: list[tuple[frozenset[str], dict[str, Any], str]]) -> None:
    """Refuse what could not be merged before anything is sent: all ranks see the same, so all refuse it."""
    for _, kind, _ in heads[1:]:
        check_same_kind(heads[0][1], kind)
    if len(kinds := {labels for _, _, labels in heads if labels}) > 1:
        raise ValueError(f"labels are {' in some shards, '.join(sorted(kinds))} in others. They need one type.")


# -- from rank to rank --
def _send(group: ProcessGroup | None, to: int, piece: Piece) -> None:
    """Send a piece, one class after the other."""
    n_messages = len(piece.labels) if piece.is_divisible else 1
    _send_object(group, to, (n_messages, piece.shards, piece.rows))
    for state in piece.one_by_one():
        arrays = state.statistics.arrays()
        forms = [(name, tuple(array.shape), str(array.dtype)) for name, array in arrays.items()]
        _send_object(group, to, (state.labels, state.ledger, forms))
        for array in arrays.values():
            _send_array(group, to, array.read() if isinstance(array, OnDisk) else array)


def _receive(group: ProcessGroup | None, source: int, into: Piece) -> Piece:
    """Return a piece with another one taken in, one class after the other."""
    n_messages, shards, rows = _receive_object(group, source)
    into.check(shards, into.kind)
    total = into.state
    for _ in range(n_messages):
        labels, ledger, forms = _receive_object(group, source)
        arrays = {name: _receive_array(group, source, shape, dtype) for name, shape, dtype in forms}
        store = type(into.store).restored(arrays, into.store.space)
        total = with_classes(total, State.empty(store, labels=labels, ledger=ledger))
    return replace(into, state=total, shards=into.shards | shards, rows=into.rows + rows)


def _device(group: ProcessGroup | None) -> torch.device:
    """Return where data must be to be sent."""
    import torch
    import torch.distributed as dist

    is_nccl = dist.get_backend(group) == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if is_nccl else torch.device("cpu")


def _global(group: ProcessGroup | None, rank: int) -> int:
    import torch.distributed as dist

    return rank if group is None else dist.get_global_rank(group, rank)


def _send_object(group: ProcessGroup | None, to: int, value: Any) -> None:
    import torch.distributed as dist

    dist.send_object_list([value], _global(group, to), group, _device(group))


def _receive_object(group: ProcessGroup | None, source: int) -> Any:
    import torch.distributed as dist

    values = [None]
    dist.recv_object_list(values, _global(group, source), group, _device(group))
    return values[0]


def _send_array(group: ProcessGroup | None, to: int, array: Array) -> None:
    import torch
    import torch.distributed as dist

    if array.size:
        dist.send(torch.from_numpy(np.array(array, order="C")).to(_device(group)), _global(group, to), group)


def _receive_array(group: ProcessGroup | None, source: int, shape: tuple[int, ...], dtype: str) -> Array:
    import torch
    import torch.distributed as dist

    buffer = torch.empty(shape, dtype=getattr(torch, dtype), device=_device(group))
    if buffer.numel():
        dist.recv(buffer, _global(group, source), group)
    array: Array = buffer.cpu().numpy()
    return array
