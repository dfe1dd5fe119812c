"""Safetensors: named arrays of numbers, mapped and read slice by slice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from aircl.data.arrays.named import Form, NamedArrays
from aircl.data.arrays.source import Array, DataError, LabelKind

_DTYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "u2", "I16": "i2", "U32": "u4", "I32": "i4", "U64": "u8", "I64": "i8",
    "F16": "f2", "F32": "f4", "F64": "f8",
}  # fmt: skip


class SafetensorsSource(NamedArrays):
    """Named tensors. The format has no strings, so labels are integers or booleans.

    Parameters
    ----------
    path : Path
    request : Request
    """

    def label_kinds(self, candidates: set[LabelKind]) -> set[LabelKind]:
        """Return the one kind that the array's type stands for."""
        kinds = super().label_kinds(candidates)
        if not kinds and candidates == {"strings"}:
            raise DataError(
                f"{self.path}: the labels should be strings, and a safetensors file cannot hold any. Use integer "
                "labels everywhere, or save this file as .npz or .parquet."
            )
        return kinds

    def _forms(self) -> Mapping[str, Form]:
        forms = {}
        with self._file() as file:
            for name in file.keys():  # noqa: SIM118 (not a mapping)
                tensor = file.get_slice(name)
                dtype = _DTYPES.get(tensor.get_dtype())
                # What NumPy has no type for, such as bfloat16, is shown as void and refused if it is asked for.
                forms[name] = Form(tuple(tensor.get_shape()), np.dtype(dtype or "V2"))
        return forms

    def _blocks(self, name: str, size: int) -> Iterator[Array]:
        with self._file() as file:
            tensor = file.get_slice(name)
            n_rows = tensor.get_shape()[0]
            for start in range(0, n_rows, size):
                yield tensor[start : min(start + size, n_rows)]

    @contextmanager
    def _file(self) -> Iterator[Any]:
        try:
            with safe_open(self.path, framework="numpy") as file:
                yield file
        except SafetensorError as error:
            raise DataError(
                f"{self.path} is not a whole safetensors file: truncated, damaged or foreign ({error})."
            ) from error
