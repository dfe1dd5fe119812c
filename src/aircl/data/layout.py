"""Datasets as their authors publish them: a folder below the data directory, or the archive it comes in."""

from __future__ import annotations

import gzip
import hashlib
import logging
import lzma
import os
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

from aircl.data.arrays.source import DataError
from aircl.places import cache_directory
from aircl.storage.leftovers import Scratch

Contents = TypeVar("Contents")

_LOG = logging.getLogger(__name__)
# What an archive may raise that is truncated, damaged, encrypted, or packed in a way that Python does not know.
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    gzip.BadGzipFile,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    UnicodeError,
)


@dataclass(frozen=True)
class Layout:
    """Where a dataset stands below the data directory.

    Attributes
    ----------
    dataset : str
    folder : str
    contents : str
        What is in the folder, for messages.
    archive : str
        A .tar, .tar.gz or .zip file with the folder in it.
    url : str
        Where the archive comes from.
    members : str
        A regular expression for paths below the folder. What does not match is left in the archive, and so is
        everything but regular files; it must not match paths with "..".
    """

    dataset: str
    folder: str
    contents: str
    archive: str
    url: str
    members: str

    @property
    def needs(self) -> str:
        """What has to be in the data directory."""
        return f"{self.archive} or {self.folder}/ in --data DIR"

    def missing(self, root: Path | None) -> str:
        """Return what is missing in a data directory, or ""."""
        if root is None:
            return "a data directory: --data DIR or AIRCL_DATA"
        if (root / self.folder).is_dir() or (root / self.archive).is_file():
            return ""
        return f"{self.archive} or {self.folder}/ in {root}" + ("" if root.is_dir() else ", which does not exist")

    def open(self, root: Path | None, read: Callable[[Path], Contents]) -> Contents:
        """Read the folder; if there is only the archive, unpack that first.

        Parameters
        ----------
        root : Path or None
            The data directory. If it must not be written to, the archive is unpacked below the cache directory.
        read : callable
            From the folder to what is wanted. It raises a DataError if the contents are not as they should be, which
            need not name the folder. An archive is read before its contents get their place, so that nothing wrong
            or unfinished ever stands there.

        Returns
        -------
        contents : whatever `read` returns
        """
        if missing := self.missing(root):
            raise DataError(
                f"the dataset {self.dataset!r} was not found; missing is {missing}. Put the archive {self.archive} "
                f"({self.url}), or the folder {self.folder}/ with {self.contents}, into a directory, and name that "
                "with --data DIR (root= in Python) or the environment variable AIRCL_DATA."
            )
        assert root is not None
        folder = root / self.folder
        if not folder.is_dir():
            folder = self._unpacked(root / self.archive, read)
        try:
            return read(folder)
        except DataError as error:
            raise DataError(
                f"{folder}: {error} Take the folder away, and have {self.archive} ({self.url}) in {root}."
            ) from error

    def _unpacked(self, archive: Path, read: Callable[[Path], Contents]) -> Path:
        place = archive.parent
        if not _may_write(place):
            status = archive.stat()
            version = f"{archive.resolve()} {status.st_size} {status.st_mtime_ns}"
            place = cache_directory() / "data" / hashlib.sha256(version.encode()).hexdigest()[:16]
        target = place / self.folder
        if target.is_dir():
            return target
        why = "" if place == archive.parent else f", because {archive.parent} is read-only"
        _LOG.warning("Unpacking %s to %s%s.", archive, target, why)
        place.mkdir(parents=True, exist_ok=True)
        with Scratch(place) as temporary:
            folder = temporary / self.folder
            try:
                self._extract(archive, folder)
                read(folder)
            except (DataError, *_DAMAGE) as error:
                what = str(error) if isinstance(error, DataError) else f"it is truncated or damaged ({error})."
                raise DataError(f"{archive}: {what} Fetch it again from {self.url}.") from error
            try:
                folder.rename(target)
            except OSError:
                if not target.is_dir():  # else another process was faster, and its folder is as good
                    raise
        return target

    def _extract(self, archive: Path, folder: Path) -> None:
        wanted = re.compile(f"(?:\\./)?{re.escape(self.folder)}/({self.members})")
        folder.mkdir()
        for name, open_member in _files(archive):
            if match := wanted.fullmatch(name):
                path = folder / match[1]
                path.parent.mkdir(parents=True, exist_ok=True)
                with open_member() as member, path.open("wb") as file:
                    shutil.copyfileobj(member, file, 1 << 20)


def _files(archive: Path) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    """Yield name and opener of every regular file in an archive, in its order."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                yield info.filename, partial(packed.open, info)
    else:
        with tarfile.open(archive, "r:gz" if archive.suffix == ".gz" else "r:") as tape:
            for member in tape:
                if member.isfile():
                    yield member.name, partial(_open_member, tape, member)


def _open_member(tape: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = tape.extractfile(member)
    assert file is not None  # it is regular
    return file


def _may_write(directory: Path) -> bool:
    """Return whether a directory can be written to and is meant to be: root could write where no one should."""
    return os.access(directory, os.W_OK) and bool(
        directory.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    )
