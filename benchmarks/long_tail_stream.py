"""A long-tailed stream made on the fly, for `aircl learn long_tail_stream:shards`.

f = 256 features of C = 1000 classes, class k with a share of k^-1.5, in shards of 100000 rows: 3.9 million rows of the
first class and about 120 of the last among 10 million. ROWS in the environment sets how many rows there are.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

FEATURES, CLASSES, SHARD, BATCH = 256, 1000, 100_000, 4096


@dataclass(frozen=True)
class Rows:
    """One shard; the same rows every time it is called."""

    number: int
    size: int

    def __call__(self):
        means = np.random.default_rng(0).standard_normal((CLASSES, FEATURES), dtype=np.float32)
        tail = np.arange(1, CLASSES + 1) ** -1.5
        rng = np.random.default_rng([1, self.number])
        for start in range(0, self.size, BATCH):
            y = rng.choice(CLASSES, size=min(BATCH, self.size - start), p=tail / tail.sum())
            X = rng.standard_normal((len(y), FEATURES), dtype=np.float32)
            X *= 4
            X += means[y]
            yield X, y


def shards() -> list[Rows]:
    n = int(os.environ.get("ROWS", "10_000_000"))
    return [Rows(number, min(SHARD, n - start)) for number, start in enumerate(range(0, n, SHARD))]
