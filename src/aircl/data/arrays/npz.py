"""NumPy's own files: .npz, an archive of arrays, and .npy, one array."""

from __future__ import annotations

import io
import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy

from aircl.data.arrays.named import Form, NamedArrays
from aircl.data.arrays.source import Array, DataError, Request

# What NumPy writes has a few dozen bytes; NumPy itself refuses more than this.
MAX_HEADER = 10_000

# Bytes that are read at once where an archive is not read in batches.
MAX_WHOLE = 2**31

# What a damaged, encrypted or foreign archive may raise, beside errors of the system.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    UnicodeError,
    ValueError,
)


class NpzSource(NamedArrays):
    """An archive of arrays. Rows are read one after the other, out of compressed members too.

    Parameters
    ----------
    path : Path
    request : Request
    """

    def _forms(self) -> Mapping[str, Form]:
        forms = {}
        with _opened(self.path) as archive:
            for info in archive.infolist():
                if info.filename.endswith(".npy"):  # whatever else is there is no array
                    with archive.open(info) as member:
                        form, _ = _read_header(self.path, cast(BinaryIO, member))
                        _check_size(self.path, form, info.file_size - member.tell())
                    forms[info.filename.removesuffix(".npy")] = form
        return forms

    def _blocks(self, name: str, size: int) -> Iterator[Array]:
        with _opened(self.path) as archive:
            info = archive.getinfo(f"{name}.npy")
            with archive.open(info) as member:
                form, by_columns = _read_header(self.path, cast(BinaryIO, member))
                shape, dtype = form.shape, form.dtype
                if by_columns and len(shape) > 1:
                    yield from self._mapped(info, member.tell(), form, size)
                    return
                row_bytes = dtype.itemsize * math.prod(shape[1:])
                for start in range(0, shape[0], size):
                    rows = min(size, shape[0] - start)
                    data = member.read(rows * row_bytes)
                    if len(data) < rows * row_bytes:
                        raise DataError(f"{self.path}: the array {name!r} ends early. The file is damaged.")
                    yield np.frombuffer(data, dtype).reshape(rows, *shape[1:])

    def _mapped(self, info: zipfile.ZipInfo, header: int, form: Form, size: int) -> Iterator[Array]:
        """Yield rows of an array that is stored column after column: it can be mapped, but not read in one pass."""
        if info.compress_type != zipfile.ZIP_STORED:
            raise DataError(
                f"{self.path}: {info.filename} is compressed and stored column after column, so its rows cannot be "
                "read in batches. Save it by rows, np.ascontiguousarray(X), or uncompressed, with np.savez."
            )
        with self.path.open("rb") as file:
            file.seek(info.header_offset + 26)
            lengths = struct.unpack("<HH", file.read(4))  # of the name and the extra field behind the local header
        yield from _mapped_rows(self.path, info.header_offset + 30 + sum(lengths) + header, form, "F", size)


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
            form, _ = _read_header(self.path, file)
            _check_size(self.path, form, self.path.stat().st_size - file.tell())
        return {"X": form}

    def _blocks(self, name: str, size: int) -> Iterator[Array]:
        with self.path.open("rb") as file:
            form, by_columns = _read_header(self.path, file)
            offset = file.tell()
        yield from _mapped_rows(self.path, offset, form, "F" if by_columns else "C", size)


def read_arrays(path: Path, names: list[str], *, optional: Collection[str] = ()) -> dict[str, Array]:
    """Return arrays of an .npz file as a whole, after a look at how large they are; optional ones where they are."""
    arrays: dict[str, Array] = {}
    with _opened(path) as archive:
        there = set(archive.namelist())
        for name in names:
            if f"{name}.npy" not in there and name in optional:
                continue
            if f"{name}.npy" not in there:
                raise DataError(f"{path} has no array {name!r}. It is damaged, or of another kind.")
            info = archive.getinfo(f"{name}.npy")
            with archive.open(info) as member:
                form, by_columns = _read_header(path, cast(BinaryIO, member))
                _check_size(path, form, min(info.file_size, MAX_WHOLE) - member.tell())
                data = member.read(form.nbytes)
            arrays[name] = np.frombuffer(data, form.dtype).reshape(form.shape, order="F" if by_columns else "C")
    return arrays


def write_arrays(path: Path, arrays: Mapping[str, Array], *, compressed: bool = False) -> None:
    """Write an .npz file, as np.savez does; on a full disk, that leaves an archive that complains when it is collected.

    Parameters
    ----------
    path : Path
        Where it is written to as it comes: to be used with `aircl.storage.writing.replacing`.
    arrays : mapping of str to array
    compressed : bool, default=False
    """
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(cast(BinaryIO, member), np.asarray(array), allow_pickle=False)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive; whatever a damaged, encrypted or foreign one raises becomes a DataError."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except DataError:
        raise
    except _DAMAGE as error:
        raise DataError(f"{path} is not a whole .npz file: truncated, damaged or foreign ({error}).") from error


def _mapped_rows(path: Path, offset: int, form: Form, order: Any, size: int) -> Iterator[Array]:
    if 0 in form.shape:
        return  # nothing cannot be mapped
    try:
        mapped = np.memmap(path, form.dtype, "r", offset, form.shape, order)
    except (ValueError, OverflowError) as error:
        raise DataError(f"{path} is not a whole file: truncated or damaged ({error}).") from error
    for start in range(0, len(mapped), size):
        yield np.array(mapped[start : start + size])


def _read_header(path: Path, file: BinaryIO) -> tuple[Form, bool]:
    """Return shape and type, and whether the array is stored column after column; the file stands behind the header."""
    try:
        version = npy.read_magic(file)  # type: ignore[no-untyped-call, unused-ignore]
        form, read = {(1, 0): ("<H", npy.read_array_header_1_0), (2, 0): ("<I", npy.read_array_header_2_0)}[version]
        length = file.read(struct.calcsize(form))
        if struct.unpack(form, length)[0] > MAX_HEADER:
            raise ValueError("its header is too long")
        # What it says is read by Python's own parser: it may raise almost anything for what is not a header.
        shape, by_columns, dtype = read(io.BytesIO(length + file.read(*struct.unpack(form, length))))
    except _DAMAGE as error:
        raise DataError(f"{path} holds something that is not a plain NumPy array ({error}).") from error
    except Exception as error:
        raise DataError(
            f"{path} holds something that is not a plain NumPy array ({type(error).__name__} in its header)."
        ) from error
    if any(isinstance(length, bool) or length < 0 for length in shape):
        raise DataError(f"{path} holds an array of the shape {shape}. The file is damaged.")
    return Form(tuple(map(int, shape)), dtype), by_columns


def _check_size(path: Path, form: Form, there: int) -> None:
    """Refuse an array that is said to be larger than the file has room for, before anything is made for it."""
    if (needed := form.nbytes) > there and not form.dtype.hasobject:
        raise DataError(
            f"{path} is incomplete: an array of {form.dtype} and shape {form.shape} takes {needed:,} bytes, and there "
            f"are {max(there, 0):,}."
        )
