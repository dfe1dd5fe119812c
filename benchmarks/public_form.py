"""One batch of 64 rows by the authors' public form of generalized AIR and by ours, in processor time of one thread.

    OMP_NUM_THREADS=1 python benchmarks/public_form.py [--rows 50000] [--features 2048] [--classes 100]

The public form, written again from its description in torch (and in NumPy, for what is not torch's), holds one dense
float64 matrix per class, and every batch adds X_y'X_y for ALL classes, those without a row as well. It is measured for
three batches, without a solution. Ours learns all rows in batches of 64 and solves once: the time of a batch is that of
the whole over the number of batches. "one product" is X'X of all rows at once in float32: no method learns for less.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from engine import RULE, features, learner_of

from aircl.engine.backend import NUMPY

BATCH, BATCHES = 64, 3


def seconds(work: Callable[[], Any]) -> float:
    """Return the processor seconds of some work."""
    began = time.process_time()
    work()
    return time.process_time() - began


def public_batch(A: Any, B: Any, count: Any, X: Any, y: Any) -> None:
    """Learn one batch as the public classifier does; arrays or tensors, X in float64."""
    C = len(A)
    one_hot = torch.nn.functional.one_hot(y, C).double() if torch.is_tensor(y) else np.eye(C)[y]
    B += X.T @ one_hot
    count += one_hot.sum(0)
    for c in range(C):
        own = X[y == c]
        A[c] += own.T @ own


def of_the_public_form(X: np.ndarray, y: np.ndarray, C: int, make: Callable[[Any], Any]) -> float:
    """Return the seconds of a batch, of arrays or tensors that `make` makes."""
    f = X.shape[1]
    A = make(np.full((C, f, f), 1e-9))  # not zeros: have the pages now, not while timing
    B, count = make(np.zeros((f, C))), make(np.zeros(C))
    batches = [(X[k : k + BATCH].astype(np.float64), y[k : k + BATCH]) for k in range(0, (BATCHES + 1) * BATCH, BATCH)]
    public_batch(A, B, count, *map(make, batches[0]))
    return seconds(lambda: [public_batch(A, B, count, *map(make, batch)) for batch in batches[1:]]) / BATCHES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--features", type=int, default=2048)
    parser.add_argument("--classes", type=int, default=100)
    arguments = parser.parse_args()
    n, f, C = arguments.rows, arguments.features, arguments.classes
    torch.set_num_threads(1)
    X, y = features(n, f), np.random.default_rng(1).integers(0, C, n)
    batches = [slice(start, start + BATCH) for start in range(0, n, BATCH)]
    print(f"n={n}, f={f}, C={C}; ms of processor time for a batch of {BATCH}, one thread", flush=True)
    theirs = {"torch": of_the_public_form(X, y, C, torch.from_numpy), "NumPy": of_the_public_form(X, y, C, np.asarray)}
    for name, own in theirs.items():
        print(f"public form, {name:22} {1e3 * own:8.2f}   ({C * f * f * 8 / 2**30:.1f} GiB)", flush=True)
    product = NUMPY.lower_zeros(f, np.float32)
    floor = seconds(lambda: NUMPY.add_gram(product, X)) / len(batches)
    print(f"one product                         {1e3 * floor:8.2f}", flush=True)
    for store in ("shared", "per-class"):

        def learn(rows: list[slice], store: str = store) -> None:
            learner = learner_of(store, f)
            for batch in rows:
                learner.learn(X[batch], y[batch])
            learner.solution(RULE)

        learn(batches[:128])  # memory that the process has not touched before is slow
        own = seconds(lambda learn=learn: learn(batches)) / len(batches)
        times = ", ".join(f"{theirs[name] / own:.0f} times ({name})" for name in theirs)
        print(f"ours, {store:9}, with the solution {1e3 * own:8.2f}   {times}; {own / floor:.2f} products", flush=True)


if __name__ == "__main__":
    main()
