"""The command line as a process of its own: exit codes, streams, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

AIRCL = [sys.executable, "-m", "aircl.cli"]
QUICK = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def aircl(*args, **kwargs):
    return subprocess.run([*AIRCL, *args], env=QUICK, capture_output=True, text=True, timeout=600, **kwargs)


def test_help_needs_nothing_that_is_slow_to_import():
    script = "import sys; from aircl.cli import app; app(['--help'], standalone_mode=False); print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], env=QUICK, capture_output=True, text=True, check=True)
    loaded = set(result.stdout.split())
    assert "typer" in loaded
    assert not loaded & {"numpy", "scipy", "sklearn", "matplotlib", "pyarrow", "safetensors"}


def test_exit_codes_and_streams(files):
    learned = aircl("learn", "train.npz", "--label", "y", "-o", "m", "--json")
    assert learned.returncode == 0
    assert json.loads(learned.stdout)["rows"] == 310
    assert learned.stderr.startswith("Learned 310 rows")
    problem = aircl("predict", "m", "absent.csv")
    assert (problem.returncode, problem.stdout, problem.stderr) == (1, "", "Error: absent.csv does not exist.\n")
    usage = aircl("learn", "train.npz", "-o", "x")
    assert usage.returncode == 2
    assert usage.stdout == ""
    assert "--label" in usage.stderr


def test_a_closed_pipe_ends_quietly(files, run):
    run("learn", "train.npz", "--label", "y", "-o", "m")
    command = [*AIRCL, "predict", "m", lengthened(files / "test.csv"), "--label", "y", "--batch", "100"]
    with subprocess.Popen(command, env=QUICK, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"4\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(600) == 141


@pytest.mark.skipif(os.name == "nt", reason="no such signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_partial_output(number, code, files, run):
    run("learn", "train.npz", "--label", "y", "-o", "m")
    long = lengthened(files / "test.csv")
    before = set(files.iterdir())
    command = [*AIRCL, "predict", "m", long, "--label", "y", "--batch", "1", "-o", "out.csv"]
    with subprocess.Popen(command, env=QUICK, stderr=subprocess.PIPE) as process:
        while set(files.iterdir()) == before:  # until it has begun to write
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(600) == code
        assert b"Traceback" not in process.stderr.read()
    assert set(files.iterdir()) == before


def lengthened(path):
    """Write the rows of a csv file two hundred times over: enough to be interrupted in the midst of them."""
    header, *rows = path.read_text().splitlines(keepends=True)
    long = path.with_name("long.csv")
    long.write_text("".join([header] + rows * 200))
    return str(long)
