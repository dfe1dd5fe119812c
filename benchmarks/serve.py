"""Speed of `aircl serve`, against the floor of the same server in one run; everything on the cores of one machine.

    python benchmarks/serve.py [--seconds S] [--rounds N] [--rows ROWS] [--no-journal] [--no-calibrate] [--store shared]

The floor is a route that reads, parses and checks the same body and answers. 100 classes, 256 features, a buffer of
2048, float32, calibrated as by default. One process serves, another asks: 32 connections, each with one request at a
time. With --rows, so many rows are learned at the end and the memory of the server is looked at meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
from fastapi import Request, Response

WIDTH, CLASSES, BUFFER, CONNECTIONS, BATCH = 256, 100, 2048, 32, 100


def say(what: str, measured: str, target: str = "") -> None:
    print(f"{what:70s} {measured:>30s}   {target}", flush=True)


# -- the server --
def serve(directory: str, journal: bool) -> None:
    """Serve a directory, with the floor as one more route."""
    from unittest import mock

    from aircl.serve import app, run, schemas
    from aircl.serve.limits import feature_rows, parse, read_body
    from aircl.serve.settings import Settings
    from aircl.serve.versions import Directory

    def make_app(service, tokens):
        guard = app.make_app(service, tokens)

        @guard.app.post("/floor")
        async def floor(request: Request) -> Response:
            asked = parse(schemas.Predict, await read_body(request, 2**25))
            X = feature_rows(asked.features or [], "float32", 10_000, WIDTH)
            return Response(b'{"rows": %d}' % len(X), media_type="application/json")

        return guard

    with mock.patch.object(run, "make_app", make_app):
        run.run(
            Directory(Path(directory)), Settings(journal=journal), host="127.0.0.1", port=0,
            tokens=Path(directory, "tokens.json"),
            read_only=False, follow=False, log_level="error", ready=lambda address: print(address, flush=True),
        )  # fmt: skip


# -- the load --
class Load:
    """Connections that ask, each one request after the other."""

    def __init__(self, url: str) -> None:
        self.host, port = re.fullmatch(r"http://(.*):(\d+)", url).groups()
        self.port = int(port)
        rng = np.random.default_rng(0)
        self.centres = rng.standard_normal((CLASSES, WIDTH))
        rows = self.rows(1000)[0]
        self.single = [self.request("/predict", {"features": row.round(4).tolist()}) for row in rows[:200]]
        self.floor = [body.replace(b"/predict", b"/floor", 1) for body in self.single]
        self.batches = [self.batch(seed) for seed in range(20)]

    def rows(self, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, CLASSES, n)
        return self.centres[labels] + 2 * rng.standard_normal((n, WIDTH)), labels

    def batch(self, seed: int, n: int = BATCH) -> bytes:
        X, y = self.rows(n, seed)
        return self.request("/learn", {"features": X.round(4).tolist(), "labels": [f"class {label}" for label in y]})

    def request(self, path: str, body: dict) -> bytes:
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content

    async def connection(self, requests: list[bytes], until: float, first: int, rate: float | None) -> list[float]:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        taken, number, began = [], first, time.perf_counter()
        while (now := time.perf_counter()) < until:
            if rate is not None and (early := began + (number - first) / rate - now) > 0:
                await asyncio.sleep(early)
                now = time.perf_counter()
            writer.write(requests[number % len(requests)])
            head = await reader.readuntil(b"\r\n\r\n")
            body = await reader.readexactly(int(re.search(rb"content-length: (\d+)", head)[1]))
            if b" 200 " not in head[:16]:
                raise RuntimeError((head + body).decode())
            taken.append(time.perf_counter() - now)
            number += 1
        writer.close()
        return taken

    async def measure(self, *loads: tuple[list[bytes], int, float | None], seconds: float) -> list[np.ndarray]:
        """Return the seconds of every answer, for loads of requests, connections and rate, side by side."""
        until = time.perf_counter() + seconds
        tasks = [
            [asyncio.create_task(self.connection(requests, until, 7 * i, rate)) for i in range(connections)]
            for requests, connections, rate in loads
        ]
        return [np.concatenate([np.array(await task) for task in group]) for group in tasks]


@contextmanager
def peak_memory(process: psutil.Process) -> Iterator[Callable[[], int]]:
    """Give a function that returns the most resident memory since it was asked before."""
    found, stopped = [0], threading.Event()

    def watch() -> None:
        while not stopped.wait(0.05):
            found.append(process.memory_info().rss)

    def peak() -> int:
        most = max(found)
        del found[:-1]
        return most

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        stopped.set()
        thread.join()


def busy_seconds(*processes: psutil.Process) -> tuple[float, float, float]:
    """Return the seconds by the clock, those of all cores that were used, and those that some processes used."""
    times = psutil.cpu_times()
    own = sum(sum(process.cpu_times()[:2]) for process in processes)
    return time.perf_counter(), sum(times) - times.idle - getattr(times, "iowait", 0.0), own


def load(url: str, arguments: argparse.Namespace, server: psutil.Process) -> None:
    asked, seconds = Load(url), arguments.seconds
    began = busy_seconds(server, psutil.Process())

    def ask(*loads, seconds=seconds):
        return asyncio.run(asked.measure(*loads, seconds=seconds))

    def p99(taken):
        return 1000 * float(np.percentile(taken, 99))

    learned = ask((asked.batches, 4, None), seconds=max(seconds, 3))[0]  # until there is something to predict with
    wait_until_solved(url)
    ask((asked.single, CONNECTIONS, None), (asked.floor, 4, None), seconds=max(seconds, 5))  # novelty is made as well
    rates, work = {"floor": [], "predict": []}, {"floor": [], "predict": []}
    idle, busy = [], []
    for _ in range(arguments.rounds):
        wait_until_solved(url)  # or the floor would pay for what the last round has learned
        for name, requests in (("floor", asked.floor), ("predict", asked.single)):
            before = sum(server.cpu_times()[:2])
            (taken,) = ask((requests, CONNECTIONS, None))
            rates[name].append(len(taken) / seconds)
            work[name].append((sum(server.cpu_times()[:2]) - before) / len(taken))
        idle.append(p99(taken))
        rate = 1000 / BATCH / 2  # two connections
        taken, batches = ask((asked.single, CONNECTIONS, None), (asked.batches, 2, rate))
        busy.append(p99(taken))
        learning = BATCH * len(batches) / seconds
    floor, predict = (float(np.median(rates[name])) for name in ("floor", "predict"))
    say("single rows from 32 connections: floor", f"{floor:,.0f} requests/s")
    say("  predictions", f"{predict:,.0f} requests/s = {predict / floor:.0%}", ">= 60 % of the floor")
    least = {name: 1e6 * float(np.median(cost)) for name, cost in work.items()}
    say("  processor time of a request, floor and prediction",
        f"{least['floor']:.0f} and {least['predict']:.0f} us = {least['floor'] / least['predict']:.0%}")  # fmt: skip
    say("  p99, nothing is learned", f"{np.median(idle):.1f} ms")
    ratio = float(np.median(np.array(busy) / np.array(idle)))
    say(f"  p99, {learning:,.0f} rows/s are learned and solved", f"{np.median(busy):.1f} ms = {ratio:.1f}x", "<= 5x")
    before = sum(server.cpu_times()[:2])
    (learned,) = ask((asked.batches, 4, None), seconds=2 * seconds)
    cost = (sum(server.cpu_times()[:2]) - before) / (BATCH * len(learned))
    say("learning, durable answers, batches of 100, 4 connections",
        f"{BATCH * len(learned) / (2 * seconds):,.0f} rows/s", ">= 2000 rows/s")  # fmt: skip
    say("  processor time of a row, solutions meanwhile included", f"{1e6 * cost:.0f} us")
    if arguments.rows:
        large = [asked.batch(seed, 10 * BATCH) for seed in range(5)]  # the same rows in fewer requests
        done, began, peaks = 0, time.perf_counter(), []
        with peak_memory(server) as peak:
            while done < arguments.rows:
                (learned,) = ask((large, 4, None), seconds=1)
                done += 10 * BATCH * len(learned)
                if done >= len(peaks) * arguments.rows / 10 + arguments.rows / 10:
                    peaks.append(peak())
                    say(f"most memory of the server until {done:,} rows", f"{peaks[-1] / 2**20:.0f} MiB", "flat")
        rate = done / (time.perf_counter() - began)
        say("learning, durable answers, batches of 1000, 4 connections", f"{rate:,.0f} rows/s")
        size = sum(path.stat().st_size for path in Path(arguments.directory).glob("journal*"))
        say("journal on the disk", f"{size / 2**20:.0f} MiB", "flat")

    took, used, own = np.array(busy_seconds(server, psutil.Process())) - began
    others = max(0.0, used - own) / took
    say("what other processes used of the machine meanwhile", f"{others:.2f} of {psutil.cpu_count()} cores", "0")


def wait_until_solved(url: str) -> None:
    from aircl import Client

    with Client(url) as client:
        while (status := client.health())["solved"] is None or status["rows_behind"]:
            time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of every measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=0, help="learned at the end, to look at the memory")
    parser.add_argument("--no-journal", action="store_true")
    parser.add_argument("--no-calibrate", action="store_true")
    parser.add_argument("--store", default="shared")
    parser.add_argument("--serve", metavar="DIR", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, not arguments.no_journal)
        return

    from aircl import AIRClassifier, RandomReLU
    from aircl.serve.versions import Directory

    with tempfile.TemporaryDirectory() as folder:
        arguments.directory = f"{folder}/service"
        model = AIRClassifier(
            store=arguments.store, expansion=RandomReLU(BUFFER, random_state=0), calibrate=not arguments.no_calibrate
        )
        Directory(Path(arguments.directory)).make(model, "float32")
        command = [sys.executable, __file__, "--serve", arguments.directory]
        command += ["--no-journal"] if arguments.no_journal else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            load(process.stdout.readline().strip(), arguments, psutil.Process(process.pid))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


if __name__ == "__main__":
    main()
