"""What a killed process leaves is removed, what a living one works on is not."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time

import pytest

from aircl.storage import leftovers
from aircl.storage.leftovers import Scratch, remove_leftovers, scratch_directory
from aircl.storage.writing import write_text

WRITING = """
import sys, time
from pathlib import Path
from aircl.storage.writing import new_directory, replacing
with {what}(Path(sys.argv[1]) / "f") as temporary:
    print(temporary.name, flush=True)
    time.sleep(600)
"""
SPILLING = """
import time
from aircl.storage.leftovers import Scratch
scratch = Scratch()
(scratch.path / "0.bin").write_bytes(bytes(1000))
print(scratch.path.name, flush=True)
time.sleep(600)
"""
PROGRAMS = {
    "file": WRITING.format(what="replacing"),
    "directory": WRITING.format(what="new_directory"),
    "spill": SPILLING,
}


@pytest.fixture(autouse=True)
def _nothing_tidied_yet(monkeypatch, tmp_path):
    monkeypatch.setattr(leftovers, "_tidied", set())
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(leftovers.tempfile, "tempdir", str(tmp_path))


@pytest.fixture(params=PROGRAMS)
def process(request, tmp_path):
    """A process in the midst of its work, and what it is working on."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAMS[request.param], str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        yield process, process.stdout.readline().strip()
        process.kill()


def test_a_living_process_is_left_alone_and_a_killed_one_cleaned_up(process, tmp_path):
    process, name = process
    assert os.listdir(tmp_path) == [name]
    remove_leftovers(tmp_path)
    assert os.listdir(tmp_path) == [name]
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert os.listdir(tmp_path) == [name]
    write_text(tmp_path / "next", "text")
    assert os.listdir(tmp_path) == ["next"]


@pytest.mark.parametrize(("age", "stays"), [(3600, True), (25 * 3600, False)])
def test_what_another_machine_left_is_removed_after_a_day(tmp_path, age, stays):
    foreign = tmp_path / ".aircl-00000000-1-0123456789abcdef.tmp"
    foreign.touch()
    os.utime(foreign, (time.time() - age,) * 2)
    remove_leftovers(tmp_path)
    assert foreign.exists() == stays


@pytest.mark.parametrize(
    "name", [".aircl-x.tmp", "aircl-notes.tmp", ".f.0123456789abcdef0123456789abcdef.tmp", "f.tmp"]
)
def test_what_is_not_ours_by_name_stays(tmp_path, name):
    (tmp_path / name).touch()
    os.utime(tmp_path / name, (0, 0))
    remove_leftovers(tmp_path)
    assert (tmp_path / name).exists()


def test_a_link_with_such_a_name_is_not_followed(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "f").touch()
    (tmp_path / ".aircl-00000000-1-0123456789abcdef.tmp").symlink_to("precious")
    remove_leftovers(tmp_path)
    assert (tmp_path / "precious" / "f").exists()


def test_a_scratch_directory_goes_with_its_owner(tmp_path):
    class Owner:
        pass

    owner = Owner()
    path = scratch_directory(owner)
    (path / "0.bin").touch()
    gc.collect()
    assert path.is_dir()
    del owner
    gc.collect()
    assert os.listdir(tmp_path) == []


def test_a_fork_does_not_remove_what_its_parent_works_on():
    scratch = Scratch()
    child = os.fork()
    if not child:
        scratch.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert scratch.path.is_dir()
    scratch.close()
    assert not scratch.path.exists()
