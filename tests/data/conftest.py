"""Small replicas of the datasets, in the layouts they are published in."""

from __future__ import annotations

import hashlib
import io
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


class Python2Pickler(pickle._Pickler):
    """Writes strings and bytes as Python 2 wrote its strings, as the files of CIFAR-100 have them."""

    def save_string(self, value):
        data = value.encode() if isinstance(value, str) else value
        short = len(data) < 256
        self.write(
            pickle.SHORT_BINSTRING + bytes([len(data)]) if short else pickle.BINSTRING + struct.pack("<i", len(data))
        )
        self.write(data)
        self.memoize(value)

    dispatch = pickle._Pickler.dispatch | {str: save_string, bytes: save_string}


def python2_pickle(value) -> bytes:
    file = io.BytesIO()
    Python2Pickler(file, protocol=2).dump(value)
    # The bytes before are GLOBAL's, so that no data is changed.
    return file.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


class Replica:
    """A dataset in a folder and in an archive.

    Parameters
    ----------
    name, archive : str
        Of the folder and of the archive.
    contents : dict
        The files, from path below the folder to bytes.
    """

    def __init__(self, name: str, archive: str, contents: dict[str, bytes]) -> None:
        self.name, self.archive, self.contents = name, archive, contents

    def put_folder(self, root: Path) -> Path:
        for path, content in self.contents.items():
            target = root / self.name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        return root / self.name

    def put_archive(self, root: Path, extra: dict[str, bytes] | None = None) -> Path:
        files = {f"{self.name}/{path}": content for path, content in self.contents.items()} | (extra or {})
        target = root / self.archive
        if target.suffix == ".zip":
            with zipfile.ZipFile(target, "w") as packed:
                for path, content in files.items():
                    packed.writestr(path, content)
        else:
            with tarfile.open(target, "w:gz" if target.suffix == ".gz" else "w") as tape:
                for path, content in files.items():
                    info = tarfile.TarInfo(path)
                    info.size = len(content)
                    tape.addfile(info, io.BytesIO(content))
        return target


def jpeg(rng, height, width) -> bytes:
    file = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8)).save(file, "JPEG")
    return file.getvalue()


@pytest.fixture
def cifar():
    """Return CIFAR-100 with 5 classes, 4 training and 2 test images each, and with `md5` sums and `pixels`."""
    rng = np.random.default_rng(0)
    names = [b"apple", b"aquarium_fish", b"baby", b"bear", b"beaver"]
    contents, pixels = {}, {}
    for part, per_class in (("train", 4), ("test", 2)):
        labels = rng.permutation(np.repeat(np.arange(5), per_class))
        pixels[part] = rng.integers(0, 256, (len(labels), 32, 32, 3), np.uint8)
        batch = {
            b"filenames": [b"x_s_%06d.png" % i for i in range(len(labels))],
            b"batch_label": b"training batch 1 of 1",
            b"fine_labels": labels.tolist(),
            b"coarse_labels": (labels // 2).tolist(),
            b"data": np.ascontiguousarray(pixels[part].transpose(0, 3, 1, 2)).reshape(len(labels), -1),
        }
        contents[part] = python2_pickle(batch)
    contents["meta"] = python2_pickle({b"fine_label_names": names, b"coarse_label_names": [b"a", b"b", b"c"]})
    replica = Replica("cifar-100-python", "cifar-100-python.tar.gz", contents)
    replica.md5 = {part: hashlib.md5(content).hexdigest() for part, content in contents.items()}
    replica.pixels = pixels
    return replica


NUMBERS = ["n02124075", "n01443537", "n09428293"]


@pytest.fixture
def tiny():
    """Return Tiny-ImageNet with 3 classes, 4 training images each and 6 test images."""
    rng = np.random.default_rng(1)
    contents = {
        "wnids.txt": "\n".join(NUMBERS).encode() + b"\n",
        "words.txt": b"n00001740\tentity\nn01443537\tgoldfish, C. auratus\nn02124075\tcat\nn09428293\tcat, big\n",
        "test/images/test_0.JPEG": b"not read",
    }
    for number in NUMBERS:
        contents[f"train/{number}/{number}_boxes.txt"] = b"not read"
        for i in range(4):
            contents[f"train/{number}/images/{number}_{i}.JPEG"] = jpeg(rng, 64, 64)
    lines = []
    for i in range(6):
        contents[f"val/images/val_{i}.JPEG"] = jpeg(rng, 64, 64)
        lines.append(f"val_{i}.JPEG\t{NUMBERS[i % 3]}\t0\t0\t62\t62\n")
    contents["val/val_annotations.txt"] = "".join(lines).encode()
    return Replica("tiny-imagenet-200", "tiny-imagenet-200.zip", contents)


@pytest.fixture
def renditions():
    """Return ImageNet-R with 3 classes and 20 images."""
    rng = np.random.default_rng(2)
    contents = {"README.txt": b"Renditions.\n\nn01443537 goldfish\nn02124075 Egyptian_cat\nn09428293 seashore\n"}
    for i in range(20):
        kind = ("art", "sculpture", "video_game")[i % 3]
        contents[f"{NUMBERS[i % 7 % 3]}/{kind}_{i}.jpg"] = jpeg(rng, 5 + i, 6)
    return Replica("imagenet-r", "imagenet-r.tar", contents)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Return an empty data directory; the cache directory is beside it."""
    monkeypatch.delenv("AIRCL_DATA", raising=False)
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"
