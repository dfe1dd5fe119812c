"""One safetensors file: arrays of statistics and a JSON header. Nothing in it is executed.

The metadata of the file has two entries: `aircl`, the header, and `sha256`, a checksum over header and arrays that
tells a damaged or edited file from a whole one. Arrays are written and read one at a time, so that statistics larger
than the memory can be saved and loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from aircl.engine.backend import Array
from aircl.engine.memory import OnDisk

FORMAT = 1
DTYPES = {"float64": "F64", "float32": "F32", "int64": "I64"}  # safetensors' names

# An array, or a file that has one.
Stored = Array | OnDisk


class FileError(ValueError):
    """The file is not a whole aircl file that this version can read.

    Examples
    --------
    A model that was only half copied:

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from aircl import AIRClassifier
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.safetensors")
    ...     AIRClassifier(0.1).fit([[1.0, 0.0], [0.0, 1.0]], [0, 1]).save(path)
    ...     _ = path.write_bytes(path.read_bytes()[:500])
    ...     clf = AIRClassifier.load(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    aircl.classifiers.file.FileError: ...model.safetensors is not a whole safetensors file: truncated, damaged ...
    """


def write(path: Path, header: str, arrays: Mapping[str, Stored]) -> None:
    """Write a header and arrays; a reader sees the old file or the new one, never a part."""
    names = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))  # so that all are aligned
    index: dict[str, Any] = {}
    offset = 0
    for name in names:
        array = arrays[name]
        end = offset + array.nbytes
        index[name] = {"dtype": DTYPES[str(array.dtype)], "shape": array.shape, "data_offsets": (offset, end)}
        offset = end
    index["__metadata__"] = {"aircl": header, "sha256": _checksum(header, arrays)}
    text = json.dumps(index).encode()
    text += b" " * (-len(text) % 8)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name in names:
                with _opened(arrays[name]) as array:
                    file.write(_bytes(array))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_directory(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def read(path: Path) -> Iterator[tuple[dict[str, Any], Mapping[str, Array]]]:
    """Give the header and the arrays of a whole file; an array is read when it is asked for."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            text = metadata.get("aircl")
            if text is None:
                raise FileError(f"{path} is a safetensors file, but not one that aircl wrote.")
            header = json.loads(text)
            version = header.get("format") if isinstance(header, dict) else None
            if not isinstance(version, int) or version > FORMAT:
                raise FileError(
                    f"{path} has format {version!r}; this aircl reads up to format {FORMAT}. Install a newer aircl."
                )
            arrays = _FileArrays(file)
            if _checksum(text, arrays) != metadata.get("sha256"):
                raise FileError(f"{path} does not match its checksum: it was damaged or changed after it was written.")
            yield header, arrays
    except SafetensorError as error:
        raise FileError(f"{path} is not a whole safetensors file: truncated, damaged or foreign ({error}).") from error
    except json.JSONDecodeError as error:
        raise FileError(f"{path} has a header that is not JSON ({error}).") from error


class _FileArrays(Mapping[str, Array]):
    """The arrays of an open safetensors file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._names = dict.fromkeys(file.keys())

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        array: Array = self._file.get_tensor(name)
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _checksum(header: str, arrays: Mapping[str, Stored]) -> str:
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        with _opened(arrays[name]) as array:
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(_bytes(array))
    return digest.hexdigest()


def _opened(stored: Stored) -> AbstractContextManager[Array]:
    return stored.mapped() if isinstance(stored, OnDisk) else nullcontext(stored)


def _bytes(array: Array) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _sync_directory(path: Path) -> None:
    """Have the operating system put a directory's entries on the disk."""
    if os.name == "nt":  # directories cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
