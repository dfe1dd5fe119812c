"""Run by torchrun: every rank fits, the first one saves. Arguments: a file of rows, a folder."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np
import torch.distributed as dist

from aircl import AIRClassifier, RandomReLU
from aircl.distributed import Shard, fit_torch
from aircl.engine import StoreError

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

MODELS = {
    "per-class": {"store": "per-class"},
    "shared": {"store": "shared"},
    "pooled": {"store": "pooled"},
    "expanded": {"expansion": RandomReLU(30), "ledger": True},  # no seed: what rank 0 draws is drawn for all
}


def main(rows: str, folder: str) -> None:
    data = np.load(rows)
    bounds = data["bounds"]
    read = []

    def shard(number: int) -> Shard:
        part = slice(bounds[number], bounds[number + 1])

        def batches(size: int):
            read.append(number)
            yield data["X"][part], data["y"][part]

        return Shard(f"shard {number}", batches)

    shards = [shard(number) for number in range(len(bounds) - 1)]
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for parts, (name, settings) in product((2, 5), MODELS.items()):
        read.clear()
        fitted = fit_torch(AIRClassifier(0.1, **{**PAPER, **settings}), shards, parts=None if parts == 2 else parts)
        if rank == 0:
            fitted.save(Path(folder) / f"{name}-{parts}")
        else:
            assert not fitted.__sklearn_is_fitted__()
            assert 0 < len(read) < len(shards), read  # its own shards, and none twice
            assert len(set(read)) == len(read)
    try:  # what one rank refuses, all refuse: none waits for ever
        fit_torch(AIRClassifier(**PAPER), [*shards, (data["X"][:2], ["a", "b"])])
    except (ValueError, StoreError, RuntimeError) as error:
        Path(folder, f"refused-{rank}").write_text(f"{type(error).__name__}: {error}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
