"""Several workers: speed-up, what merging costs, and a stream of ten million rows. One BLAS thread a worker.

    python benchmarks/many_workers.py [--only speedup,reduction,stream] [--quick]

`speedup` times the same shards on one and on two workers. `reduction` learns f = 5000, C = 100 into packed class
matrices on two workers, times how they are merged, and watches the memory of each worker; it ends with what these
numbers mean for 64 workers and 10^9 rows. `stream` runs `aircl learn` on long_tail_stream.py, in one process and on two
workers. (A script called distributed.py would hide Dask's package of that name.)
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
import psutil

from aircl import AIRClassifier
from aircl.distributed import fit_dask, fit_joblib

HERE = Path(__file__).parent


def say(what: str, measured: str) -> None:
    print(f"{what:66s} {measured:>40s}", flush=True)


@dataclass(frozen=True)
class Rows:
    """A shard of ReLU features, made on the fly; classes alternate, or come one after the other."""

    seed: int
    n: int
    f: int
    C: int
    by_class: bool = False

    def __call__(self):
        rng = np.random.default_rng(self.seed)
        for start in range(0, self.n, 4096):
            rows = np.arange(start, min(start + 4096, self.n))
            y = rows * self.C // self.n if self.by_class else rows % self.C
            yield np.maximum(rng.standard_normal((len(rows), self.f), dtype=np.float32), 0), y


@contextmanager
def watched(root: int):
    """Watch the resident memory of a process and all below it; give the peak of each, in MiB."""
    peaks: dict[int, float] = {}
    done = Event()

    def watch() -> None:
        while not done.wait(0.05):
            try:
                family = [psutil.Process(root), *psutil.Process(root).children(recursive=True)]
            except psutil.Error:
                continue
            for process in family:
                try:
                    rss = process.memory_info().rss / 2**20
                except psutil.Error:
                    continue
                peaks[process.pid] = max(rss, peaks.get(process.pid, 0.0))

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peaks
    finally:
        done.set()
        watcher.join()


@contextmanager
def local_cluster(workers: int):
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.run(lambda: __import__("aircl.distributed"))  # imports are not what is timed
        yield client


def bench_speedup(quick: bool) -> None:
    n, f, C = (4096 if quick else 32768), 1024, 100
    for store in ("shared", "per-class"):
        shards = [Rows(seed, n, f, C) for seed in range(16)]
        say(f"learn {16 * n} rows made on the fly, f={f}, C={C}, {store}, 16 parts", "")
        seconds = {}
        for name, fit, workers in (("this process", fit_joblib, 1), ("joblib, 2 processes", fit_joblib, 2)):
            began = time.perf_counter()
            fit(AIRClassifier(1.0, store=store), shards, workers=workers)
            seconds[name] = time.perf_counter() - began
        for workers in (1, 2):
            with local_cluster(workers) as client:
                began = time.perf_counter()
                fit_dask(AIRClassifier(1.0, store=store), shards, workers=client)
                seconds[f"dask, {workers} worker{'s' * (workers > 1)}"] = time.perf_counter() - began
        for name, taken in seconds.items():
            one = seconds["dask, 1 worker" if name.startswith("dask") else "this process"]
            say(f"  {name}", f"{taken:.1f} s, speed-up {one / taken:.2f}")


def bench_reduction(quick: bool, width: int = 5000, memory_limit: str = "4GB") -> None:
    f, C = (1000 if quick else width), 100
    n = C * (f // 2 + 10)  # so many rows that every class of every part is a packed matrix
    size = C * f * (f + 1) / 2 * 4 / 2**30
    say(f"f={f}, C={C}, float32, {n} rows a part, 2 parts: statistics of a part", f"{size:.2f} GiB")
    say("  memory_limit of every process", memory_limit)
    rates, reductions = {}, {}
    for name in ("joblib", "dask"):
        learned = []

        def note(*_: int, learned=learned) -> None:
            learned.append(time.perf_counter())

        with watched(os.getpid()) as peaks:
            classifier = AIRClassifier(1.0, memory_limit=memory_limit)
            # Class by class, as it is merging that is measured: a class matrix is then added to once or twice.
            shards = [Rows(seed, n, f, C, by_class=True) for seed in range(2)]
            began = time.perf_counter()
            if name == "joblib":
                fit_joblib(classifier, shards, workers=2, progress=note)
            else:
                with local_cluster(2) as client:
                    began = time.perf_counter()
                    fit_dask(classifier, shards, workers=client, progress=note)
                    ended = time.perf_counter()
            ended = time.perf_counter() if name == "joblib" else ended
        del classifier
        learning, reductions[name] = learned[-1] - began, ended - learned[-1]
        rates[name] = n / learning
        workers = sorted((peak for pid, peak in peaks.items() if pid != os.getpid()), reverse=True)[:2]
        say(f"  {name}: learning and sealing, 2 workers", f"{learning:.1f} s, {rates[name]:,.0f} rows/s a worker")
        say(f"  {name}: merging and fetching", f"{reductions[name]:.1f} s")
        say(
            f"  {name}: peak memory of the workers; of this process, which gets the result",
            f"{' and '.join(f'{peak / 1024:.2f}' for peak in workers)}; {peaks[os.getpid()] / 1024:.2f} GiB",
        )
    learning = 1e9 / (64 * rates["dask"])
    # Measured: one sum of two parts by two workers, and one fetch. Then: 63 sums by 64 workers, a bucket of classes at
    # a time, so each does the work of one sum, twice of what it did here; and one fetch, as here.
    merging = 3 * reductions["dask"]
    say("on paper: 64 workers, 10^9 rows, 64 parts", "")
    say("  learning: 10^9 rows / 64 workers / rows a second", f"{learning / 3600:.2f} h")
    say("  merging: at most three times what was measured", f"{merging:.0f} s = {100 * merging / learning:.2f} %")


def bench_stream(quick: bool) -> None:
    rows = [20_000, 200_000] if quick else [1_000_000, 10_000_000]
    two = [["--engine", engine, "--workers", "2", *parts] for parts in ([], ["--parts", "4"]) for engine in ENGINES]
    for options in ([], *two):
        for n in rows:
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-m", "aircl.cli", "learn", "long_tail_stream:shards", "--json", *options]
                command += ["-o", f"{folder}/model.safetensors"]
                environment = os.environ | {"ROWS": str(n)}
                began = time.perf_counter()
                with (
                    subprocess.Popen(command, cwd=HERE, env=environment, stdout=subprocess.PIPE, text=True) as process,
                    watched(process.pid) as peaks,
                ):
                    summary = json.loads(process.communicate()[0])
                seconds = time.perf_counter() - began
            assert summary["rows"] == n
            highest = sorted(peaks.values(), reverse=True)
            shown = " + ".join(f"{peak:.0f}" for peak in highest[: 3 if options else 1])
            say(f"aircl learn, {n:,} rows, {' '.join(options) or 'one process'}", f"{seconds:.0f} s, {shown} MiB")


ENGINES = ("joblib", "dask")
BENCHES = {"speedup": bench_speedup, "reduction": bench_reduction, "stream": bench_stream}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(BENCHES), help="which, comma-separated")
    parser.add_argument("--quick", action="store_true", help="fewer and narrower rows")
    parser.add_argument("--width", type=int, default=5000, help="f of the reduction")
    parser.add_argument("--memory-limit", default="4GB", help="of the reduction")
    arguments = parser.parse_args()
    for name in arguments.only.split(","):
        options = {"width": arguments.width, "memory_limit": arguments.memory_limit} if name == "reduction" else {}
        BENCHES[name](arguments.quick, **options)


if __name__ == "__main__":
    main()
