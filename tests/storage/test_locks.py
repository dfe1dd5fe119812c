"""Locks on files that are replaced."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from aircl.storage.locks import BusyError, locked
from aircl.storage.writing import write_text

HOLDING = """
import sys, time
from pathlib import Path
from aircl.storage.locks import locked
with locked(Path(sys.argv[1]), create=True):
    print("held", flush=True)
    time.sleep(600)
"""


def test_whoever_waits_sees_what_was_written_meanwhile(tmp_path):
    path = tmp_path / "count"
    write_text(path, "0")
    said = []

    def add():
        for _ in range(25):
            with locked(path, waiting=lambda: said.append(1)):
                write_text(path, str(int(path.read_text()) + 1))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == "100"
    assert [entry.name for entry in tmp_path.iterdir()] == ["count"]


def test_a_lock_ends_with_its_process(tmp_path):
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLDING, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(BusyError), locked(path, create=True, wait=False):
            pass
        process.kill()
    with locked(path, create=True, wait=False):
        assert path.exists()
    assert not path.exists()


def test_a_link_and_its_file_have_one_lock(tmp_path):
    (tmp_path / "f").touch()
    (tmp_path / "link").symlink_to("f")
    with locked(tmp_path / "link"), pytest.raises(BusyError), locked(tmp_path / "f", wait=False):
        pass
