"""Locks that the system frees when a process ends, however it ends.

What is locked is the file or directory itself, so no lock file stays behind. Its name may meanwhile be given to another
one, for outputs are renamed into their place: who gets a lock checks whether the name still leads to what it locked.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # a system without such locks: nothing is locked there, and nothing is cleaned up
    fcntl = None  # type: ignore[assignment]

HAS_LOCKS = fcntl is not None

# What a file system says that has no locks.
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF}


class BusyError(OSError):
    """Another process holds the lock."""


def take(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file or directory, and tell whether that is now a proof that no other process has it.

    False: the system or the file system has no locks. The lock is freed when the descriptor is closed.
    """
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        raise BusyError("it is locked by another process") from None
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return False
        raise
    return True


def leads_to(path: Path, descriptor: int) -> bool:
    """Tell whether a name still stands for what was opened under it."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextmanager
def locked(
    path: Path, *, create: bool = False, wait: bool = True, waiting: Callable[[], None] | None = None
) -> Iterator[None]:
    """Hold the lock of a file.

    Parameters
    ----------
    path : Path
        Symbolic links are followed.
    create : bool, default=False
        Make the file if it is not there, and remove it at the end.
    wait : bool, default=True
        Whether to wait for another process that holds the lock.
    waiting : callable or None
        Called once before a wait begins.

    Raises
    ------
    BusyError
        If another process holds the lock and `wait` is False.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with locked(Path(folder, "lock"), create=True):
    ...         inside = Path(folder, "lock").exists()
    ...     inside, Path(folder, "lock").exists()
    (True, False)
    """
    path = Path(os.path.realpath(path))
    while True:
        descriptor = _open(path, create)
        try:
            try:
                take(descriptor, wait=False)
            except BusyError:
                if not wait:
                    raise
                if waiting is not None:
                    waiting()
                    waiting = None
                take(descriptor, wait=True)
            if not leads_to(path, descriptor):  # replaced or removed by the one before
                continue
            try:
                yield
            finally:
                if create:
                    path.unlink(missing_ok=True)
            return
        finally:
            os.close(descriptor)


def _open(path: Path, create: bool) -> int:
    if create:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        return os.open(path, os.O_RDWR)  # some network file systems lock only what may be written
    except PermissionError:
        return os.open(path, os.O_RDONLY)
