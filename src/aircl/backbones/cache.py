"""Features, extracted once and kept in files that are mapped, not read.

An entry is a directory named after the fingerprints of backbone and data:

    about.json       what the entry is: names, fingerprints, shape, rows a chunk
    features.npy     float32, shape (n, width), filled chunk by chunk
    chunks.txt       one line for each chunk that is there: its number and its CRC-32

Beside the entries, `locks` has a file for each that is held by the process at work on the entry; the system frees it
when that process dies.

A chunk is logged after it was written, and the checksums are compared when the entry is opened. So after a kill at any
point, or a file damaged later, exactly the chunks that are missing or wrong are made again, from the same batches, and
the bytes are the same as if nothing had happened.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from filelock import FileLock, Timeout

from aircl.backbones.backbone import Backbone, Features
from aircl.inputs import Inputs
from aircl.places import cache_directory
from aircl.storage.records import build, parse_json
from aircl.storage.writing import write_text

FORMAT = 1

# Called with the number of rows done and of all rows, first with what was there before.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class About:
    """What an entry of the cache holds.

    Attributes
    ----------
    data, backbone : str
        Names, for people.
    data_fingerprint, backbone_fingerprint : str
    rows, width : int
    chunk : int
        Rows that are extracted and logged together.
    format : int
    """

    data: str
    backbone: str
    data_fingerprint: str
    backbone_fingerprint: str
    rows: int
    width: int
    chunk: int
    format: int = FORMAT

    @property
    def key(self) -> str:
        """Name of the entry's directory."""
        told = (self.data_fingerprint, self.backbone_fingerprint, self.rows, self.width, self.chunk, self.format)
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]

    @property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return -(-self.rows // self.chunk)

    def chunk_rows(self, number: int) -> slice:
        """Return the rows of a chunk."""
        return slice(number * self.chunk, min((number + 1) * self.chunk, self.rows))


@dataclass(frozen=True)
class Entry:
    """An entry as it is found on disk.

    Attributes
    ----------
    path : Path
    about : About or None
        None if the entry does not say what it is.
    nbytes : int
        What its files take up.
    chunks : int
        How many chunks are logged; they are not checked here.
    """

    path: Path
    about: About | None
    nbytes: int
    chunks: int

    @property
    def complete(self) -> bool:
        """Whether every chunk is logged."""
        return self.about is not None and self.chunks == self.about.n_chunks


class FeatureCache:
    """Extracts features once.

    Parameters
    ----------
    directory : path or None
        None: `features` below `aircl.places.cache_directory()`.

    Examples
    --------
    >>> import tempfile
    >>> from aircl.backbones import create_backbone
    >>> images = np.arange(2 * 4 * 4, dtype=np.uint8).reshape(2, 4, 4, 1)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     cache = FeatureCache(directory)
    ...     X = cache.features(create_backbone("identity", example=images), images, "two small images")
    ...     X.shape, [entry.complete for entry in cache.entries()]
    ((2, 16), [True])
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self.directory = cache_directory() / "features" if directory is None else Path(directory)

    def features(
        self,
        backbone: Backbone,
        inputs: Inputs,
        fingerprint: str,
        *,
        data: str = "",
        progress: Progress | None = None,
        waiting: Callable[[], None] | None = None,
    ) -> Features:
        """Return the features of all inputs, extracted now as far as they are not there already.

        Parameters
        ----------
        backbone : Backbone
        inputs : Inputs
            n samples.
        fingerprint : str
            Of the inputs and their order.
        data : str
            What the inputs are called in listings.
        progress : callable or None
            Called with the rows done and all rows.
        waiting : callable or None
            Called once if another process is filling the entry and has to be waited for.

        Returns
        -------
        features : array of shape (n, width)
            Mapped from a file, read-only.
        """
        chunk = backbone.batch_size
        about = About(data, backbone.name, fingerprint, backbone.fingerprint, len(inputs), backbone.width, chunk)
        if not about.rows:
            return np.zeros((0, about.width), np.float32)
        entry = self.directory / about.key
        with _held(self._lock(entry), waiting):
            _fill(entry, about, backbone, inputs, progress)
            features: Features = np.load(entry / "features.npy", mmap_mode="r")
        return features

    def entries(self) -> list[Entry]:
        """Return what is in the cache, sorted by the names of data and backbone."""
        paths = [path for path in self.directory.glob("*") if re.fullmatch("[0-9a-f]{32}", path.name)]
        return sorted(map(_look, paths), key=lambda e: (e.about.data, e.about.backbone) if e.about else ("", ""))

    def clear(self, entries: list[Entry]) -> list[Entry]:
        """Remove entries, and return those that stay because a process is filling them."""
        busy = []
        for entry in entries:
            try:
                with self._lock(entry.path).acquire(timeout=0):
                    shutil.rmtree(entry.path)
            except Timeout:
                busy.append(entry)
        return busy

    def _lock(self, entry: Path) -> FileLock:
        locks = self.directory / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        return FileLock(locks / entry.name)


@contextmanager
def _held(lock: FileLock, waiting: Callable[[], None] | None) -> Iterator[None]:
    """Hold a lock, and say so if it has to be waited for."""
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if waiting is not None:
            waiting()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _look(path: Path) -> Entry:
    try:
        about = build(About, parse_json((path / "about.json").read_bytes(), "about.json"), "about.json")
        if min(about.rows, about.width, about.chunk) < 1:
            raise ValueError("it is empty")
    except (OSError, ValueError):
        about = None
    nbytes = sum(file.stat().st_blocks * 512 for file in path.glob("*"))
    return Entry(path, about, nbytes, len(_logged(path / "chunks.txt")))


def _logged(path: Path) -> dict[int, int]:
    """Return the checksums of the chunks that are logged; a line cut short by a kill is none."""
    text = path.read_bytes() if path.exists() else b""
    return {int(number): int(crc) for number, crc in re.findall(rb"^(\d{1,15}) (\d{1,10})\n", text, re.MULTILINE)}


def _fill(entry: Path, about: About, backbone: Backbone, inputs: Inputs, progress: Progress | None) -> None:
    """Make the chunks that are missing or whose checksum is wrong."""
    entry.mkdir(exist_ok=True)
    write_text(entry / "about.json", json.dumps(asdict(about), indent=2))
    features = _mapped(entry / "features.npy", (about.rows, about.width))
    sound = {
        number: crc
        for number, crc in _logged(entry / "chunks.txt").items()
        if number < about.n_chunks and crc32(features[about.chunk_rows(number)].data) == crc
    }
    # Rewritten so that wrong or torn lines do not stand before the ones to come.
    write_text(entry / "chunks.txt", "".join(f"{number} {crc}\n" for number, crc in sound.items()))
    missing = [number for number in range(about.n_chunks) if number not in sound]
    done = about.rows - sum(about.chunk_rows(number).stop - about.chunk_rows(number).start for number in missing)
    if progress is not None:
        progress(done, about.rows)
    with (entry / "chunks.txt").open("a") as log:
        for number, X in _extract(backbone, inputs, [(number, about.chunk_rows(number)) for number in missing]):
            rows = about.chunk_rows(number)
            _check(X, rows, about)
            features[rows] = X
            log.write(f"{number} {crc32(features[rows].data)}\n")
            log.flush()
            done += len(X)
            if progress is not None:
                progress(done, about.rows)
    features.flush()


def _mapped(path: Path, shape: tuple[int, int]) -> np.memmap[Any, np.dtype[np.float32]]:
    """Open the file of features to write in, and begin it again if it is not what it should be."""
    try:
        features = np.lib.format.open_memmap(path, mode="r+")
        if features.shape == shape and features.dtype == np.float32:
            return features
    except Exception:  # whatever a header says that is none; what was there can be made again
        path.unlink(missing_ok=True)
    features = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    if hasattr(os, "posix_fallocate"):  # a full disk is an error here; in a mapped file it would be the end
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
    return features


def _extract(backbone: Backbone, inputs: Inputs, chunks: list[tuple[int, slice]]) -> Iterator[tuple[int, Features]]:
    """Yield the features of chunks. The next one is read and prepared while the backbone is at work."""

    def prepare(rows: slice) -> Any:
        return backbone.prepare(inputs[np.arange(rows.start, rows.stop)])

    with ThreadPoolExecutor(1) as reader:
        upcoming = [reader.submit(prepare, rows) for _, rows in chunks[:1]]
        for place, (number, _) in enumerate(chunks):
            prepared = upcoming.pop().result()
            if place + 1 < len(chunks):
                upcoming.append(reader.submit(prepare, chunks[place + 1][1]))
            yield number, backbone.forward(prepared)


def _check(X: Features, rows: slice, about: About) -> None:
    expected = (rows.stop - rows.start, about.width)
    if X.shape != expected or X.dtype != np.float32:
        raise ValueError(
            f"backbone {about.backbone!r} returned {X.dtype} of shape {X.shape} for rows {rows.start} to "
            f"{rows.stop - 1}: float32 of shape {expected} is expected."
        )
    if not np.isfinite(X).all():
        row = rows.start + int(np.argmin(np.isfinite(X).all(axis=1)))
        raise ValueError(
            f"backbone {about.backbone!r} returned features that are not finite for sample {row} of {about.data}. "
            "Look at that sample, or at the weights."
        )
