"""NumPy's own files: .npz, an archive of arrays, and .npy, one array."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy

from aircl.data.arrays.named import Form, NamedArrays
from aircl.data.arrays.source import Array, DataError, Request


class NpzSource(NamedArrays):
    """An archive of arrays. Rows are read one after the other, out of compressed members too.

    Parameters
    ----------
    path : Path
    request : Request
    """

    def _forms(self) -> Mapping[str, Form]:
        forms = {}
        with self._archive() as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    shape, _, dtype = _read_header(self.path, cast(BinaryIO, member))
                    forms[name.removesuffix(".npy")] = Form(shape, dtype)
        return forms

    def _blocks(self, name: str, size: int) -> Iterator[Array]:
        with self._archive() as archive:
            info = archive.getinfo(f"{name}.npy")
            with archive.open(info) as member:
                shape, by_columns, dtype = _read_header(self.path, cast(BinaryIO, member))
                if by_columns and len(shape) > 1:
                    yield from self._mapped(info, member.tell(), shape, dtype, size)
                    return
                row_bytes = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
                for start in range(0, shape[0], size):
                    rows = min(size, shape[0] - start)
                    data = member.read(rows * row_bytes)
                    if len(data) < rows * row_bytes:
                        raise DataError(f"{self.path}: the array {name!r} ends early. The file is damaged.")
                    yield np.frombuffer(data, dtype).reshape(rows, *shape[1:])

    def _mapped(
        self, info: zipfile.ZipInfo, header: int, shape: tuple[int, ...], dtype: np.dtype[Any], size: int
    ) -> Iterator[Array]:
        """Yield rows of an array that is stored column after column: it can be mapped, but not read in one pass."""
        if info.compress_type != zipfile.ZIP_STORED:
            raise DataError(
                f"{self.path}: {info.filename} is compressed and stored column after column, so its rows cannot be "
                "read in batches. Save it by rows, np.ascontiguousarray(X), or uncompressed, with np.savez."
            )
        with self.path.open("rb") as file:
            file.seek(info.header_offset + 26)
            lengths = struct.unpack("<HH", file.read(4))  # of the name and the extra field behind the local header
        offset = info.header_offset + 30 + sum(lengths) + header
        yield from _slices(np.memmap(self.path, dtype, "r", offset, shape, "F"), size)

    @contextmanager
    def _archive(self) -> Iterator[zipfile.ZipFile]:
        try:
            with zipfile.ZipFile(self.path) as archive:
                yield archive
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise DataError(
                f"{self.path} is not a whole .npz file: truncated, damaged or foreign ({error})."
            ) from error


class NpySource(NamedArrays):
    """One array of features, called X.

    Parameters
    ----------
    path : Path
    request : Request
    """

    def __init__(self, path: Path, request: Request) -> None:
        if request.label is not None:
            raise DataError(f"{path}: an .npy file holds one array and no labels. Save both with np.savez.")
        super().__init__(path, Request())

    def _forms(self) -> Mapping[str, Form]:
        with self.path.open("rb") as file:
            shape, _, dtype = _read_header(self.path, file)
        return {"X": Form(shape, dtype)}

    def _blocks(self, name: str, size: int) -> Iterator[Array]:
        try:
            mapped = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            raise DataError(f"{self.path} is not a whole .npy file: {error}.") from error
        yield from _slices(mapped, size)


def _slices(mapped: Array, size: int) -> Iterator[Array]:
    for start in range(0, len(mapped), size):
        yield np.array(mapped[start : start + size])


def _read_header(path: Path, file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether the array is stored column after column, and dtype."""
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    try:
        return readers[npy.read_magic(file)](file)
    except (ValueError, KeyError) as error:
        raise DataError(f"{path} holds something that is not a plain NumPy array ({error}).") from error
