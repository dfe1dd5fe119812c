"""One safetensors file: arrays of statistics and a JSON header. Nothing in it is executed.

The metadata of the file has two entries: `aircl`, the header, and `sha256`, a checksum over header and arrays that
tells a damaged or edited file from a whole one. Arrays are written and read one at a time, so that statistics larger
than the memory can be saved and loaded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from aircl.classifiers.header import check_header
from aircl.engine.backend import Array
from aircl.engine.memory import Stored, opened
from aircl.storage.errors import InputError
from aircl.storage.records import parse_json
from aircl.storage.writing import replacing

FORMAT = 1
DTYPES = {"float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32"}  # safetensors' names

# Numbers that are looked at together; more would only take memory.
_PIECE = 2**20


class FileError(InputError):
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
    """Write a header and arrays; a reader sees the old file or the new one, never a part, and no file it would refuse.

    Raises
    ------
    FileError
        If an array holds a number that is not finite, or a header is of a kind that `read` refuses.
    """
    names = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))  # so that all are aligned
    index: dict[str, Any] = {}
    offset = 0
    for name in names:
        array = arrays[name]
        end = offset + array.nbytes
        index[name] = {"dtype": DTYPES[str(array.dtype)], "shape": array.shape, "data_offsets": (offset, end)}
        offset = end
    try:
        _parse(header, {name: array.shape for name, array in arrays.items()})
        index["__metadata__"] = {"aircl": header, "sha256": _checksum(header, arrays)}
    except InputError as error:
        raise FileError(f"{path} was not written, as it could not be read again: {error}") from error
    text = json.dumps(index).encode()
    text += b" " * (-len(text) % 8)
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            with opened(arrays[name]) as array:
                file.write(_bytes(array))


@contextmanager
def read(path: Path) -> Iterator[tuple[dict[str, Any], Mapping[str, Array]]]:
    """Give the header and the arrays of a whole file; an array is read when it is asked for."""
    with _reading(path) as (text, checksum, header, arrays):
        if _checksum(text, arrays) != checksum:
            raise FileError(f"{path} does not match its checksum: it was damaged or changed after it was written.")
        yield header, arrays


def read_header(path: Path) -> dict[str, Any]:
    """Return the header of a file, and leave its arrays unread and unchecked."""
    with _reading(path) as (_, _, header, _):
        return header


@contextmanager
def _reading(path: Path) -> Iterator[tuple[str, str | None, dict[str, Any], _FileArrays]]:
    if not path.is_file():
        raise FileError(f"{path} is not a file." if path.exists() else f"{path} does not exist.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            text = metadata.get("aircl")
            if text is None:
                raise FileError(f"{path} is a safetensors file, but not one that aircl wrote.")
            arrays = _FileArrays(file)
            yield text, metadata.get("sha256"), _parse(text, arrays.shapes), arrays
    except SafetensorError as error:
        if path.suffix.lower() == ".onnx":
            raise FileError(
                f"{path} is an export, by its name: it holds no statistics and can only predict. Use the model that it "
                "was made of."
            ) from error
        raise FileError(f"{path} is not a whole safetensors file: truncated, damaged or foreign ({error}).") from error
    except FileError:
        raise
    except InputError as error:
        raise FileError(f"{path} has a header or arrays that cannot be used: {error}") from error


def _parse(text: str, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """Return the header that a text holds, and check it as far as that can be done without the arrays."""
    header = parse_json(text, "the header")
    version = header.get("format") if isinstance(header, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version > FORMAT:
        raise InputError(f"it has format {version!r}; this aircl reads up to format {FORMAT}. Install a newer aircl.")
    if "class" in header:  # else it is a backbone, which has a reader of its own
        check_header(header, shapes)
    return header  # type: ignore[no-any-return]  # a dict, or it would have no version


class _FileArrays(Mapping[str, Array]):
    """The arrays of an open safetensors file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.shapes: dict[str, tuple[int, ...]] = {}
        for name in file.keys():  # noqa: SIM118 (not a mapping)
            form = file.get_slice(name)
            if form.get_dtype() not in DTYPES.values():
                raise InputError(f"the array {name!r} is of type {form.get_dtype()}, which aircl does not write.")
            self.shapes[name] = tuple(form.get_shape())

    def __getitem__(self, name: str) -> Array:
        if name not in self.shapes:
            raise KeyError(name)
        array: Array = self._file.get_tensor(name)
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)


class Below(Mapping[str, Array]):
    """The arrays whose names begin with a prefix, without it; each is read when it is asked for."""

    def __init__(self, prefix: str, arrays: Mapping[str, Array]) -> None:
        self._prefix, self._arrays = prefix, arrays

    def __getitem__(self, name: str) -> Array:
        return self._arrays[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        return (name.removeprefix(self._prefix) for name in self._arrays if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _checksum(header: str, arrays: Mapping[str, Stored]) -> str:
    """Return the checksum of header and arrays, which must be finite: nothing else can be learned or solved."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        with opened(arrays[name]) as array:
            flat = np.ascontiguousarray(array).reshape(-1)
            for start in range(0, len(flat), _PIECE):
                if not np.isfinite(flat[start : start + _PIECE]).all():
                    raise InputError(f"the array {name!r} holds numbers that are not finite (NaN or infinite).")
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(_bytes(flat))
    return digest.hexdigest()


def _bytes(array: Array) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
