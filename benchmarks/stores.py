"""What the stores cost behind the default buffer: memory, file and seconds for 77, 1000 and 10000 classes.

    python benchmarks/stores.py [--classes 77 1000 10000] [--stores per-class shared]
    python benchmarks/stores.py --sparse

Rows are random, 256 columns in float32, which the buffer makes 2048: 130, 20 and 5 of a class. Every line is a process
of its own. "state" is what the statistics take in memory, "peak" the most that the process took, both in MB; seconds
are of the processor (set OMP_NUM_THREADS=1): to learn all rows, to answer for the first time with probabilities, and to
take in 100 more rows, of a new class among others, and answer again. `--sparse` learns 10000 rows of 50000 columns, 60
of them not zero, of 20 classes, and answers for 1000.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from aircl import AIRClassifier

ROWS = {77: 130, 1000: 20, 10000: 5}


def measure(n_classes: int, store: str) -> str:
    """Return a line of the table."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(n_classes), ROWS.get(n_classes, 10)))
    means = rng.normal(size=(n_classes + 1, 256)).astype(np.float32)
    X = means[y] + rng.normal(size=(len(y), 256), scale=2.0).astype(np.float32)
    times, clf = [time.process_time()], AIRClassifier(store=store)
    clf.fit(X, y)
    times.append(time.process_time())
    clf.predict_proba(X[:100])
    times.append(time.process_time())
    new = np.append(y[:80], np.full(20, n_classes))
    clf.partial_fit(means[new] + rng.normal(size=(100, 256), scale=2.0).astype(np.float32), new).predict_proba(X[:100])
    times.append(time.process_time())
    with tempfile.TemporaryDirectory() as folder:
        clf.save(Path(folder) / "model.safetensors")
        file = (Path(folder) / "model.safetensors").stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sizes = f"{clf.nbytes_ / 2**20:8.0f} {peak:8.0f} {file / 2**20:8.0f}"
    return f"{n_classes:6} {len(y):6} {store:10} {sizes} " + " ".join(f"{s:8.1f}" for s in np.diff(times))


def measure_sparse(n: int = 10000, n_columns: int = 50000, n_words: int = 60, n_classes: int = 20) -> str:
    """Return seconds and memory of wide sparse rows, whose columns are as frequent as words are."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    own = 101 * y[:, None] * (rng.random((n, n_words)) < 0.3)  # a third of the words tells the class
    columns = (37 * rng.zipf(1.3, (n, n_words)) + own) % n_columns
    value = np.abs(rng.normal(size=columns.size)).astype(np.float32)
    X = csr_matrix((value, (np.repeat(np.arange(n), n_words), columns.ravel())), shape=(n, n_columns))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.process_time()
    AIRClassifier().fit(X, y).predict_proba(X[:1000])
    seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"{n} sparse rows of {n_columns} columns: {seconds:.1f} s, peak {peak:.0f} MB, {before:.0f} MB before"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", type=int, nargs="*", default=list(ROWS))
    parser.add_argument("--stores", nargs="*", default=["per-class", "shared"])
    parser.add_argument("--sparse", action="store_true")
    arguments = parser.parse_args()
    if arguments.sparse:
        print(measure_sparse())
    elif len(arguments.classes) == len(arguments.stores) == 1:
        print(measure(arguments.classes[0], arguments.stores[0]), flush=True)
    else:
        print("     C   rows store         state     peak     file    learn   answer  100 more", flush=True)
        for n_classes in arguments.classes:
            for store in arguments.stores:
                one = [sys.executable, __file__, "--classes", str(n_classes), "--stores", store]
                subprocess.run(one, check=True)
