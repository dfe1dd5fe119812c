"""Real processes, really killed at random moments: what they write is old or new, never in between, and the next run
goes on and leaves nothing behind."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import shutil
import signal
import time

import numpy as np
import pytest
from sklearn.datasets import load_digits

from aircl import AIRClassifier
from aircl.benchmark.results import RunDirectory

pytestmark = pytest.mark.slow
KILLS = 20


@pytest.fixture
def place(tmp_path, monkeypatch, forks):
    """A folder with data and models, and one for temporary files and the cache beside it."""
    (work := tmp_path / "work").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(work)
    X, y = load_digits(return_X_y=True)
    for number, part in enumerate(np.array_split(np.random.default_rng(0).permutation(len(y)), 2)):
        np.savez(f"{number}.npz", X=X[part] / 16, y=y[part])
    for number in range(2):
        assert forks.run("learn", f"{number}.npz", "--label", "y", "--expand", 400, "-o", f"m{number}").code == 0
    return work


@pytest.fixture
def kill(place, forks):
    """Return a function that runs a command again and again, and kills it at random moments."""
    environment = {"TMPDIR": str(place.parent / "tmp"), "AIRCL_CACHE": str(place.parent / "cache")}

    def run(*args):
        return forks.run(*args, env=environment)

    def many(args, prepare, check):
        prepare()
        began = time.perf_counter()
        whole = run(*args)
        assert whole.code == 0, whole.stderr
        seconds = time.perf_counter() - began
        rng, killed = random.Random(0), 0
        while killed < KILLS:
            prepare()
            process = forks.start(*args, env=environment)
            pause = rng.uniform(0, seconds)
            time.sleep(pause)
            os.kill(process.pid, signal.SIGKILL)  # it is there at least as one that nobody waited for
            if process.wait() == -signal.SIGKILL:
                killed += 1
            else:
                seconds = pause  # it takes no longer by now
            check()
        return run

    return many


def count(path):
    return AIRClassifier.load(path).class_count_.sum()


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("args", "old", "new"),
    [
        (("learn", "1.npz", "--label", "y", "--append", "m", "-o", "m"), 899, 1797),
        (("merge", "m", "m1", "-o", "m"), 899, 1797),
        (("forget", "m", "--class", "3", "-o", "m"), 899, None),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_models(args, old, new, place, kill):
    if new is None:
        with np.load("0.npz") as rows:
            new = np.count_nonzero(rows["y"] != 3)
    seen = set()

    def prepare():
        shutil.copy("m0", "m")

    def check():
        seen.add(count("m"))
        assert seen <= {old, new}

    run = kill(args, prepare, check)
    prepare()
    assert run(*args).code == 0
    assert count("m") == new
    assert names(place) == {"0.npz", "1.npz", "m0", "m1", "m"}
    assert names(place.parent / "tmp") == set()


@pytest.mark.filterwarnings("ignore::aircl.engine.memory.MemoryLimitWarning")
def test_statistics_that_live_on_disk(place, kill):
    args = ("learn", "0.npz", "1.npz", "--label", "y", "--expand", 400, "--memory-limit", "52MB", "-o", "m")
    run = kill(args, lambda: shutil.copy("m0", "m"), lambda: count("m"))
    last = run(*args)
    assert last.code == 0
    assert "MemoryLimitWarning" in last.stderr
    assert names(place.parent / "tmp") == set()


def test_features(place, kill):
    args = ("features", "digits", "--backbone", "identity", "-o", "f.npz")

    def prepare():
        np.savez("f.npz", X_train=np.zeros(3))

    def check():
        with np.load("f.npz") as arrays:
            assert arrays["X_train"].shape in ((3,), (1438, 64))
        if random.Random(time.perf_counter_ns()).random() < 0.3:
            shutil.rmtree(place.parent / "cache", ignore_errors=True)

    run = kill(args, prepare, check)
    assert run(*args).code == 0
    with np.load("f.npz") as arrays:
        assert arrays["X_train"].shape == (1438, 64)
        assert np.isfinite(arrays["X_train"]).all()
    assert names(place) == {"0.npz", "1.npz", "m0", "m1", "f.npz"}
    assert names(place.parent / "tmp") == set()
    entries = place.parent / "cache" / "features"
    assert len(names(entries)) == 3
    for entry in names(entries) - {"locks"}:
        assert names(entries / entry) == {"about.json", "features.npy", "chunks.txt"}


def timeless(path):
    return [dataclasses.replace(row, seconds=0, predict_seconds=0) for row in RunDirectory(path).rows()]


RUN = (
    "run", "--dataset", "digits", "--backbone", "identity", "--scenario", "cil,phases=5", "--methods", "air,ncm",
    "--gamma", "1", "--batch", "100", "--quiet",
)  # fmt: skip
REPORT = {"report.html", "report.md", "table.csv", "table.tex"}


def test_runs(place, kill):
    """Every kill is followed by a resumption that is killed as well, until one comes to its end."""
    expected = None

    def prepare():
        nonlocal expected
        if expected is None and (place / "r" / "report.html").exists():
            expected = timeless("r")
        if (place / "r" / "rows.jsonl").exists() and json.loads((place / "r" / "run.json").read_text())["finished"]:
            shutil.rmtree("r")

    def check():
        if (place / "r" / "run.json").exists():
            assert json.loads((place / "r" / "run.json").read_text())["name"]
        RunDirectory("r").rows()

    run = kill((*RUN, "-o", "r"), lambda: (prepare(), shutil.rmtree("r", ignore_errors=True)), check)
    again = ("run", "--resume", "r", "--quiet") if (place / "r" / "run.json").exists() else (*RUN, "-o", "r")
    assert run(*again).code == 0
    assert timeless("r") == expected
    assert names(place / "r") == {"run.json", "rows.jsonl", "rows.parquet", "details"} | REPORT
    assert len(names(place / "r" / "details")) == 2
    assert names(place.parent / "tmp") == set()


# Kills its own process a while after it has added rows for the first time.
KILLS_ITSELF = """
import os, signal, sys, threading
import aircl.cli.commands
from aircl.benchmark.results import RunDirectory

append, kill = RunDirectory.append, threading.Timer(float(os.environ["LATER"]), os.kill, (os.getpid(), signal.SIGKILL))

def appended(*args):
    append(*args)
    if kill.ident is None:
        kill.start()

RunDirectory.append, kill.daemon, sys.argv[0] = appended, True, "aircl"
aircl.cli.commands.main()
"""


def test_resumed_runs(place, forks):
    """Each run adds some rows and is killed, later than the one before it, and the next one goes on from there."""
    environment = {"AIRCL_CACHE": str(place.parent / "cache"), "TMPDIR": str(place.parent / "tmp")}
    assert forks.run(*RUN, "-o", "whole", env=environment).code == 0
    ends = []
    while 0 not in ends:
        args = ("run", "--resume", "r", "--quiet") if ends else (*RUN, "-o", "r")
        later = {"LATER": str(0.005 * 2 ** len(ends))}
        run = forks.run(*args, env=environment | later, code=KILLS_ITSELF)
        ends.append(run.code)
        assert ends[-1] in (0, -signal.SIGKILL), run.stderr
        RunDirectory("r").rows()
    assert len(ends) > 2
    assert timeless("r") == timeless("whole")
    assert names(place / "r") == names(place / "whole")
    assert names(place.parent / "tmp") == set()


def test_reports(place, kill, forks):
    assert forks.run(*RUN, "-o", "r", env={"AIRCL_CACHE": str(place.parent / "cache")}).code == 0
    whole = {name: (place / "r" / name).read_bytes() for name in REPORT}

    def check():
        for name in REPORT & names(place / "r"):
            assert (place / "r" / name).read_bytes() == whole[name]

    def prepare():
        for name in REPORT:
            (place / "r" / name).unlink(missing_ok=True)

    run = kill(("report", "r"), prepare, check)
    assert run("report", "r").code == 0
    check()
    assert names(place / "r") == {"run.json", "rows.jsonl", "rows.parquet", "details"} | REPORT
    assert names(place.parent / "tmp") == set()
