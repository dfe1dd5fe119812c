"""A memory limit, and what happens beyond it: arrays live in files that are mapped one at a time."""

from __future__ import annotations

import math
import os
import re
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aircl.engine.backend import Array

UNITS = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


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


def available_memory() -> int:
    """Return the smaller of the machine's memory and what the control group of this process may use."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else [8 * 2**30]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            sizes.append(int(Path(path).read_text()))
        except (OSError, ValueError):  # no such control group, or "max"
            continue
    return min(sizes)


@dataclass(frozen=True)
class OnDisk:
    """An array that lives in a file."""

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the array."""
        return math.prod(self.shape) * self.dtype.itemsize

    @contextmanager
    def mapped(self) -> Iterator[Array]:
        """Map the file for reading and writing, and unmap it afterwards, so that its pages are not held."""
        array = np.memmap(self.path, dtype=self.dtype, mode="r+", shape=self.shape)
        try:
            yield array
        finally:
            array.flush()
            array._mmap.close()  # type: ignore[attr-defined]

    def read(self) -> Array:
        """Return the array in memory."""
        return np.fromfile(self.path, dtype=self.dtype).reshape(self.shape)


class DiskSpace:
    """A directory of arrays, made when the first one comes and removed with this object or the process."""

    def __init__(self) -> None:
        self._directory: Path | None = None
        self._n_files = 0

    def put(self, array: Array) -> OnDisk:
        """Write an array to a file of its own. The room is taken first: a full disk is an error, not a crash later."""
        path = self._home() / f"{self._n_files}.bin"
        self._n_files += 1
        try:
            with path.open("wb") as file:
                if hasattr(os, "posix_fallocate") and array.nbytes:
                    os.posix_fallocate(file.fileno(), 0, array.nbytes)
                np.ascontiguousarray(array).tofile(file)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise MemoryError(
                f"the statistics have reached memory_limit and {path.parent} has no room for another "
                f"{array.nbytes / 2**20:.0f} MiB ({error}). Raise memory_limit, set TMPDIR to a larger disk, "
                "or use store='shared'."
            ) from error
        return OnDisk(path, array.shape, array.dtype)

    def drop(self, held: OnDisk) -> None:
        """Remove a file."""
        held.path.unlink(missing_ok=True)

    def _home(self) -> Path:
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="aircl-"))
            weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)
            warnings.warn(
                f"the statistics have reached memory_limit: class matrices now live in {self._directory}, and learning "
                "and solving become slower. Raise memory_limit, or use store='shared'.",
                MemoryLimitWarning,
                stacklevel=2,
            )
        return self._directory
