"""The one writer: whole or not at all, where it was asked for and nowhere else."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys

import pytest

from aircl.storage.errors import OutputError
from aircl.storage.writing import check_output, check_own, new_directory, replacing, write_text


def test_a_file_is_replaced_and_nothing_stays_beside_it(tmp_path):
    write_text(tmp_path / "f", "old")
    write_text(tmp_path / "f", "new")
    assert (tmp_path / "f").read_text() == "new"
    assert os.listdir(tmp_path) == ["f"]


def test_what_goes_wrong_leaves_the_old_file(tmp_path):
    write_text(tmp_path / "f", "old")
    with pytest.raises(IsADirectoryError), replacing(tmp_path / "f") as temporary:
        temporary.write_text("half"), tmp_path.read_text()
    assert (tmp_path / "f").read_text() == "old"
    assert os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_the_mode_is_kept_and_never_wider(tmp_path, mode):
    path = tmp_path / "f"
    path.write_text("old")
    path.chmod(mode)
    with replacing(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
        temporary.write_text("new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_that_files_have(tmp_path):
    (tmp_path / "other").touch()
    write_text(tmp_path / "f", "new")
    assert (tmp_path / "f").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("there", [True, False])
def test_links_are_written_through(tmp_path, there):
    (tmp_path / "far").mkdir()
    if there:
        (tmp_path / "far" / "f").write_text("old")
    (tmp_path / "link").symlink_to("far/f")
    (tmp_path / "link to it").symlink_to("link")
    write_text(tmp_path / "link to it", "new")
    assert (tmp_path / "link to it").is_symlink()
    assert (tmp_path / "far" / "f").read_text() == "new"
    assert sorted(os.listdir(tmp_path)) == ["far", "link", "link to it"]


def make_fifo(path):
    os.mkfifo(path)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def make_device_link(path):
    path.symlink_to("/dev/null")


def make_circle(path):
    path.symlink_to(path.name)


@pytest.mark.parametrize("make", [make_fifo, make_socket, make_device_link, make_circle, os.mkdir])
def test_what_is_not_a_file_is_refused_and_stays(tmp_path, make, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    make(path := tmp_path.__class__("special"))
    before = os.lstat(path)
    with pytest.raises(OutputError, match="cannot write special"):
        check_output(path)
    with pytest.raises(OutputError, match="cannot write special"):
        write_text(path, "text")
    assert os.lstat(path).st_ino == before.st_ino


@pytest.mark.parametrize("name", ["absent/f", "file/f", "n" * 300])
def test_places_that_there_are_not_are_refused(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        check_output(tmp_path / name)


def test_an_output_that_is_an_input_is_refused_under_every_name(tmp_path):
    (source := tmp_path / "data.csv").write_text("x")
    os.link(source, tmp_path / "hard")
    (tmp_path / "soft").symlink_to(source)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "image").write_text("x")
    for output in ("data.csv", "hard", "soft", "folder/image"):
        with pytest.raises(OutputError, match="would replace the data it is made from"):
            check_output(tmp_path / output, inputs=[source, tmp_path / "folder"])
    check_output(tmp_path / "folder" / "new", inputs=[source, tmp_path / "folder"])


def test_what_was_not_asked_for_replaces_only_what_we_wrote(tmp_path):
    path = tmp_path / "table"
    check_own(path, "made by us")
    path.write_text("mine")
    with pytest.raises(OutputError, match="table is there already"):
        check_own(path, "made by us", "ours too")
    path.write_text("% ours too\n1")
    check_own(path, "made by us", "ours too")


def test_a_name_of_full_length_can_be_written(tmp_path):
    write_text(tmp_path / ("n" * 255), "text")
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_standard_output_is_written_to(tmp_path, name):
    script = f"from aircl.storage.writing import write_text; print('before'); write_text({name!r}, 'text')"
    with (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, "-c", script], stdout=out, check=True, cwd=tmp_path)
    assert (tmp_path / "out").read_text() == "before\ntext"
    assert os.listdir(tmp_path) == ["out"]


def test_a_directory_gets_its_name_when_it_is_complete(tmp_path):
    with new_directory(tmp_path / "state") as temporary:
        (temporary / "method").mkdir()
        (temporary / "method" / "weights").write_text("1")
        assert not (tmp_path / "state").exists()
    assert (tmp_path / "state" / "method" / "weights").read_text() == "1"
    with pytest.raises(IsADirectoryError), new_directory(tmp_path / "other") as temporary:
        (temporary / "half").touch(), temporary.read_text()
    assert os.listdir(tmp_path) == ["state"]
