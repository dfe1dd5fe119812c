"""What holds for every dataset that is published as an archive, and what may go wrong with one."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile

import numpy as np
import pytest

from aircl.data import DataError, find_datasets, load_dataset

NAMES = {"cifar100": "cifar", "tiny-imagenet": "tiny", "imagenet-r": "renditions"}


@pytest.fixture(params=NAMES)
def published(request):
    """Return a replica that knows its name and how it is loaded."""
    replica = request.getfixturevalue(NAMES[request.param])
    options = {
        "cifar100": {"md5": getattr(replica, "md5", None)},
        "tiny-imagenet": {"classes": 3, "per_class": 4, "n_test": 6},
        "imagenet-r": {"classes": 3, "images": 20},
    }[request.param]
    replica.dataset = request.param
    replica.load = lambda root=None, **more: load_dataset(request.param, root, **options | more)
    return replica


def test_folder_and_archive_hold_the_same(published, root, tmp_path):
    published.put_folder(tmp_path / "other")
    published.put_archive(root)
    from_folder, from_archive = published.load(tmp_path / "other"), published.load(root)
    assert from_folder.class_names == from_archive.class_names
    for ours, theirs in ((from_folder.train, from_archive.train), (from_folder.test, from_archive.test)):
        assert ours.fingerprint == theirs.fingerprint
        np.testing.assert_array_equal(ours.labels, theirs.labels)
        some = np.array([2, 0])
        for image, other in zip(ours.inputs[some], theirs.inputs[some], strict=True):
            np.testing.assert_array_equal(image, other)
            assert image.dtype == np.uint8
            assert image.shape[2] == 3
    assert from_folder.train.fingerprint != from_folder.test.fingerprint


def test_the_archive_is_unpacked_once_and_into_its_place(published, root):
    archive = published.put_archive(root)
    published.load(root)
    assert sorted(os.listdir(root)) == sorted([published.archive, published.name])
    archive.write_bytes(b"not needed any more")
    published.load(root)


def test_only_what_is_expected_is_unpacked(published, root, tmp_path):
    evil = {
        "../evil": b"",
        f"{published.name}/../../evil": b"",
        f"{published.name}/n01443537/../../../evil.jpg": b"",
        str(tmp_path / "evil"): b"",
        f"{published.name}/extra": b"",
    }
    published.put_archive(root, evil)
    published.load(root)
    unpacked = {path.relative_to(root / published.name).as_posix() for path in (root / published.name).rglob("*.*")}
    assert unpacked <= set(published.contents)
    assert not any("evil" in path.name or path.name == "extra" for path in tmp_path.rglob("*"))


def test_links_in_an_archive_are_not_followed(cifar, root, tmp_path):
    (tmp_path / "secret").write_bytes(cifar.contents.pop("meta"))
    archive = cifar.put_archive(root)
    with tarfile.open(archive) as tape:
        files = {member.name: tape.extractfile(member).read() for member in tape}
    with tarfile.open(archive, "w:gz") as tape:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tape.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("cifar-100-python/meta")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "secret")
        tape.addfile(link)
    with pytest.raises(DataError, match="the file 'meta' is missing"):
        load_dataset("cifar100", root, md5=cifar.md5)


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.95])
def test_a_truncated_archive_leaves_nothing_behind(kept, published, root):
    archive = published.put_archive(root)
    content = archive.read_bytes()
    # A tape ends with 10 kB of zeros, without which it is still whole.
    archive.write_bytes(content[: int(kept * len(content.rstrip(b"\0")))])
    with pytest.raises(DataError, match=rf"{published.archive}: .*Fetch it again from http"):
        published.load(root)
    assert os.listdir(root) == [published.archive]


@pytest.mark.parametrize(("local", "central", "value"), [(6, 8, 1), (8, 10, 97), (8, 10, 14)])
@pytest.mark.parametrize("published", ["tiny-imagenet"], indirect=True)
def test_an_encrypted_or_strangely_packed_archive(local, central, value, root, published):
    archive = published.put_archive(root)
    content = bytearray(archive.read_bytes())
    for signature, offset in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        place = content.find(signature)
        while place >= 0:
            content[place + offset] = value
            place = content.find(signature, place + 4)
    archive.write_bytes(content)
    with pytest.raises(DataError, match="truncated or damaged"):
        published.load(root)
    assert os.listdir(root) == [published.archive]


def test_a_read_only_data_directory_is_not_written_to(published, root, tmp_path, caplog):
    published.put_archive(root)
    root.chmod(0o555)
    try:
        published.load(root)
        published.load(root)
        assert os.listdir(root) == [published.archive]
    finally:
        root.chmod(0o755)
    (message,) = caplog.messages
    assert "is read-only" in message
    assert str(tmp_path / "cache" / "data") in message


def test_another_archive_in_a_read_only_directory_is_unpacked_anew(renditions, root):
    for n_images in (20, 19):
        archive = renditions.put_archive(root)
        root.chmod(0o555)
        assert len(load_dataset("imagenet-r", root, classes=3, images=n_images).train) == n_images * 4 // 5
        root.chmod(0o755)
        archive.unlink()
        renditions.contents.popitem()


RACER = """
import sys, time
from pathlib import Path
from aircl.data.cifar100 import LAYOUT

root, marks, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

def read(folder):
    (marks / name).touch()
    while len(list(marks.iterdir())) < 2:  # both have unpacked, none has renamed
        time.sleep(0.01)
    return (folder / "meta").read_bytes()

assert b"aquarium_fish" in LAYOUT.open(root, read)
"""


def test_two_processes_unpack_at_once(cifar, root, tmp_path):
    cifar.put_archive(root)
    (tmp_path / "marks").mkdir()
    racers = [
        subprocess.Popen([sys.executable, "-c", RACER, root, tmp_path / "marks", name], stderr=subprocess.PIPE)
        for name in "ab"
    ]
    for racer in racers:
        _, errors = racer.communicate(timeout=600)
        assert racer.returncode == 0, errors
        assert b"Unpacking" in errors
    assert sorted(os.listdir(root)) == ["cifar-100-python", "cifar-100-python.tar.gz"]


def test_a_missing_dataset_says_what_to_put_where(published, root):
    with pytest.raises(DataError, match="missing is a data directory") as without:
        published.load()
    with pytest.raises(DataError, match=f"{published.archive} or {published.name}/ in {root}. Put") as empty:
        published.load(root)
    with pytest.raises(DataError, match=r"absent, which does not exist\. Put"):
        published.load(root / "absent")
    for error in (without, empty):
        for word in (published.archive, f"{published.name}/", "http", "--data DIR", "AIRCL_DATA"):
            assert word in str(error.value)


def test_the_environment_names_the_data_directory(published, root, tmp_path, monkeypatch):
    published.put_folder(root)
    monkeypatch.setenv("AIRCL_DATA", str(root))
    assert len(published.load().train)
    with pytest.raises(DataError, match="nowhere"):
        published.load(tmp_path / "nowhere")
    assert find_datasets(root) == [published.dataset]
    assert find_datasets(tmp_path / "nowhere") == []
