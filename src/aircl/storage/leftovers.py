"""Names for what is unfinished, and the removal of what a killed process left.

A temporary file or directory is called ``.aircl-MACHINE-PROCESS-TOKEN.tmp`` and is locked by the process that made it,
for as long as that lives. One that is not locked is a leftover. Of another machine, whose locks may not be seen here,
it must also be older than a day.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
import time
import uuid
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from aircl.storage.locks import HAS_LOCKS, BusyError, leads_to, take

OLD = 24 * 3600
_NAME = re.compile(r"\.?aircl-([0-9a-f]{8})-\d+-[0-9a-f]{16}\.tmp")
_tidied: set[Path] = set()  # folders, once for each process


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that were killed have left in a folder. What cannot be removed stays."""
    if not HAS_LOCKS:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if match := _NAME.fullmatch(entry.name):
                with suppress(OSError):
                    _remove(Path(entry.path), match[1] == _machine())


def tidy(folder: Path) -> None:
    """Remove leftovers from a folder and from that of temporary files, each once in the life of a process."""
    for place in (folder.absolute(), Path(tempfile.gettempdir())):
        if place not in _tidied:
            _tidied.add(place)
            remove_leftovers(place)


class Scratch:
    """A directory that is removed with this object or the process, and after a kill by the next process of ours.

    Parameters
    ----------
    folder : path or None
        Where it is made; None: where temporary files go, TMPDIR.

    Attributes
    ----------
    path : Path
    close : callable
        Removes the directory.

    Examples
    --------
    >>> with Scratch() as path:
    ...     there = path.is_dir()
    >>> there, path.exists()
    (True, False)
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.path, self.close = _make_scratch(self, folder)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *problem: object) -> None:
        self.close()


def scratch_directory(owner: object) -> Path:
    """Return a new directory for temporary files that is removed together with its owner, see `Scratch`."""
    return _make_scratch(owner, None)[0]


def _make_scratch(owner: object, folder: Path | None) -> tuple[Path, Callable[[], object]]:
    place = Path(tempfile.gettempdir() if folder is None else folder)
    tidy(place)
    path, descriptor = create(place, lambda path: path.mkdir(mode=0o700), hidden=folder is not None)
    return path, weakref.finalize(owner, _discard, path, descriptor, os.getpid())


def create(folder: Path, make: Callable[[Path], object], *, hidden: bool = True) -> tuple[Path, int | None]:
    """Make something unfinished in a folder, and lock it.

    Parameters
    ----------
    folder : Path
    make : callable
        Makes a file or a directory at a path that is free.
    hidden : bool, default=True
        Whether its name begins with a dot.

    Returns
    -------
    path : Path
    descriptor : int or None
        To be closed when the work is done or given up; None where the system has no locks.
    """
    while True:
        path = folder / f"{'.' * hidden}aircl-{_machine()}-{os.getpid()}-{uuid.uuid4().hex[:16]}.tmp"
        try:
            make(path)
            if not HAS_LOCKS:
                return path, None
            descriptor = os.open(path, os.O_RDONLY)
            take(descriptor, wait=True)
            if leads_to(path, descriptor):
                return path, descriptor
            os.close(descriptor)
        except FileExistsError:
            raise
        except FileNotFoundError:
            if not folder.is_dir():
                raise  # else it was taken for a leftover before it was locked
        except BaseException:  # an interrupt, say: nobody else knows of it
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            raise


def _machine() -> str:
    return f"{crc32(platform.node().encode()):08x}"


def _remove(path: Path, is_of_this_machine: bool) -> None:
    status = path.lstat()
    if status.st_uid != os.getuid() or not (is_of_this_machine or time.time() - status.st_mtime > OLD):
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not take(descriptor, wait=False):
            return  # no locks here, so nothing proves that the process is gone
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    except BusyError:
        return
    finally:
        os.close(descriptor)


def _discard(path: Path, descriptor: int | None, process: int) -> None:
    if os.getpid() == process:  # not in a fork of it
        shutil.rmtree(path, ignore_errors=True)
    if descriptor is not None:
        os.close(descriptor)
