"""A memory limit, and what happens beyond it: arrays live in files, written once and removed with their last user."""

from __future__ import annotations

import math
import os
import re
import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from aircl.engine.backend import Array
from aircl.storage.leftovers import scratch_directory

UNITS = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
CGROUPS = Path("/sys/fs/cgroup")


class MemoryLimitWarning(UserWarning):
    """Statistics have outgrown the memory limit and continue on disk, more slowly."""


def parse_bytes(limit: int | float | str | None) -> int | None:
    """Return a memory limit in bytes from a number or a text such as "4GB" or "512 MiB"; None stays None."""
    if limit is None:
        return None
    if isinstance(limit, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", limit, flags=re.IGNORECASE)
        value = float(match[1]) * UNITS[match[2].upper()] if match else -1.0
    else:
        value = -1.0 if isinstance(limit, bool) else float(limit)
    if not 0 < value < float("inf"):
        raise ValueError(f"memory_limit={limit!r} is not a size. Use a number of bytes or a text such as '4GB'.")
    return int(value)


def available_memory(groups: Path = CGROUPS, own: Path = Path("/proc/self/cgroup")) -> int:
    """Return how many bytes this process may still take: what the machine and every control group above it has left."""
    return min(int(psutil.virtual_memory().available), *_left_in_groups(groups, own), sys.maxsize)


def _left_in_groups(groups: Path, own: Path) -> Iterator[int]:
    """Yield limit minus use of the control groups of this process, version 2 and 1, and of the groups around them."""
    with suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            names = (
                ("memory.limit_in_bytes", "memory.usage_in_bytes") if controllers else ("memory.max", "memory.current")
            )
            root = groups / "memory" if controllers else groups
            group = Path(path.strip("/"))
            for part in (group, *group.parents):
                with suppress(OSError, ValueError):  # not there, or "max"
                    limit, use = (int((root / part / name).read_text()) for name in names)
                    yield max(limit - use, 0)


class OnDisk:
    """An array that lives in a file of its own, which is removed when the last reference to this object goes."""

    def __init__(self, array: Array, directory: DiskSpace) -> None:
        self.shape, self.dtype = array.shape, array.dtype
        self._directory = directory  # which goes after its files
        self.path = directory.new_path()
        # Before there is a file: whatever happens while it is written, it does not stay behind.
        weakref.finalize(self, partial(self.path.unlink, missing_ok=True))
        try:
            with self.path.open("wb") as file:
                if hasattr(os, "posix_fallocate") and array.nbytes:  # a full disk is an error now, not a crash later
                    os.posix_fallocate(file.fileno(), 0, array.nbytes)
                np.ascontiguousarray(array).tofile(file)
        except OSError as error:
            raise MemoryError(
                f"the statistics have reached memory_limit and {self.path.parent} has no room for another "
                f"{array.nbytes / 2**20:.0f} MiB ({error}). Raise memory_limit, set TMPDIR to a larger disk, "
                "or use store='shared'."
            ) from error

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize

    @contextmanager
    def mapped(self) -> Iterator[Array]:
        """Map the file for reading, and unmap it afterwards, so that its pages are not held."""
        array = np.memmap(self.path, dtype=self.dtype, mode="r", shape=self.shape)
        try:
            yield array
        finally:
            array._mmap.close()  # type: ignore[attr-defined]

    def read(self) -> Array:
        """Return the array in memory."""
        return np.fromfile(self.path, dtype=self.dtype).reshape(self.shape)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the process as an array: the file belongs to this one."""
        return np.array, (self.read(),)


# What statistics are stored in.
Stored = Array | OnDisk


def opened(stored: Stored) -> AbstractContextManager[Array]:
    """Return what is stored, to read; a file is mapped no longer than this."""
    return stored.mapped() if isinstance(stored, OnDisk) else nullcontext(stored)


class DiskSpace:
    """A directory for arrays, made when the first one comes and removed with this object or the process."""

    def __init__(self) -> None:
        self._directory: Path | None = None
        self._n_files = 0

    def new_path(self) -> Path:
        """Return a name that no file of this directory ever had."""
        if self._directory is None:
            self._directory = scratch_directory(self)
            warnings.warn(
                f"the statistics have reached memory_limit: class matrices now live in {self._directory}, and learning "
                "and solving become slower. Raise memory_limit, or use store='shared'.",
                MemoryLimitWarning,
                stacklevel=2,
            )
        self._n_files += 1
        return self._directory / f"{self._n_files}.bin"

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the directory behind: it belongs to this process."""
        return DiskSpace, ()
