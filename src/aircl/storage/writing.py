"""The one writer: every output is whole or not there, and nothing is replaced that was not asked for.

What is written stands under a temporary name beside its place, see `aircl.storage.leftovers`, and is renamed when it is
complete and on the disk. Symbolic links are written through, and a file that is replaced keeps its mode.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aircl.storage.errors import OutputError
from aircl.storage.leftovers import Scratch, create, tidy

STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def is_stdout(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path stands for standard output.

    >>> is_stdout("-"), is_stdout("model.safetensors")
    (True, False)
    """
    return os.fspath(path) in STDOUT


def check_output(path: Path, inputs: Iterable[Path] = ()) -> None:
    """Refuse an output that cannot be written, before any work is done.

    Parameters
    ----------
    path : Path
    inputs : iterable of Path
        What the output is made from: files, or folders of them, that it must not replace.

    Raises
    ------
    OutputError
    """
    if is_stdout(path):
        return
    target = _target(path)
    for source in inputs:
        inside = source.is_dir() and target.exists() and Path(os.path.realpath(source)) in target.parents
        if inside or (target.exists() and source.exists() and target.samefile(source)):
            raise OutputError(f"writing {path} would replace the data it is made from. Choose another --output.")


def check_own(path: Path, *marks: str) -> None:
    """Refuse to replace a file that was not asked for by name, unless it is one that we wrote before.

    Parameters
    ----------
    path : Path
    *marks : str
        What such files are known by; one of them is near the beginning.

    Raises
    ------
    OutputError
    """
    if path.is_file():
        with path.open("rb") as file:
            beginning = file.read(4096)
        if not any(mark.encode() in beginning for mark in marks):
            raise OutputError(
                f"{path} is there already, and is not what this command wrote. Move it, or choose another --output."
            )


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give the path of an empty temporary file; what is in it at the end takes the place of `path`.

    Parameters
    ----------
    path : path
        A regular file, a symbolic link to one, a name that is free, or standard output (`-`, `/dev/stdout`).

    Yields
    ------
    temporary : Path
        If something goes wrong, it is removed, and `path` is as it was.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/greeting.txt") as temporary:
    ...         _ = temporary.write_text("hello")
    ...     Path(folder, "greeting.txt").read_text(), len(list(Path(folder).iterdir()))
    ('hello', 1)
    """
    if is_stdout(path):
        with Scratch() as folder:
            (folder / "output").touch()
            yield folder / "output"
            sys.stdout.flush()
            with (folder / "output").open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    target = _target(Path(path))
    before = target.stat() if target.exists() else None
    tidy(target.parent)
    # What is replaced may be meant for few eyes: until it has its mode, the new file is for its owner only.
    mode = 0o666 if before is None else 0o600
    temporary: Path | None = None
    descriptor: int | None = None
    try:
        temporary, descriptor = create(
            target.parent, lambda path: os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        )
        created = temporary.stat()
        yield temporary
        _sync(temporary)
        if before is not None and hasattr(os, "chown") and (before.st_uid, before.st_gid) != (
            created.st_uid, created.st_gid
        ):  # fmt: skip
            with suppress(OSError):  # only root may give files away
                os.chown(temporary, before.st_uid, before.st_gid)
        os.chmod(temporary, 0o777 & (created if before is None else before).st_mode)
        os.replace(temporary, target)
        _sync(target.parent)
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if descriptor is not None:
            os.close(descriptor)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Replace a file by a text, as UTF-8."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Give the path of an empty temporary directory, which gets its name, one that is free, when it is complete."""
    tidy(path.parent)
    temporary, descriptor = create(path.parent, lambda place: place.mkdir())
    try:
        yield temporary
        for folder, _, names in os.walk(temporary):
            for name in names:
                _sync(Path(folder, name))
            _sync(Path(folder))
        temporary.rename(path)
        _sync(path.parent)
    finally:
        if temporary.exists():
            shutil.rmtree(temporary, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def _target(path: Path) -> Path:
    """Return the place that a path leads to, through symbolic links, where a file is or may be made."""
    target = Path(os.path.realpath(path)) if os.path.islink(path) else path
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        if os.path.islink(target) or not target.name:
            raise OutputError(f"cannot write {path}: it leads nowhere.") from None
    except OSError as error:  # a component that is a file, a name that is too long, links in a circle
        raise OutputError(f"cannot write {path}: {error.strerror or error}.") from None
    else:
        if stat.S_ISDIR(mode):
            raise OutputError(f"cannot write {path}: it is a directory.")
        if not stat.S_ISREG(mode):
            raise OutputError(
                f"cannot write {path}: it is a device, a pipe or a socket, and would be replaced by a file. "
                "Choose a file, or - for stdout."
            )
        if not os.access(target, os.W_OK):
            raise OutputError(f"cannot write {path}: it is write-protected.")
    if not target.parent.is_dir():
        raise OutputError(f"cannot write {path}: its directory does not exist.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise OutputError(f"cannot write {path}: its directory is not writable.")
    return target


def _sync(path: Path) -> None:
    """Have the operating system put a file, or the entries of a directory, on the disk."""
    if os.name == "nt":  # needs a descriptor to write to, which directories do not have there
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
