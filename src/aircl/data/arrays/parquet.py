"""Parquet: typed columns, one number or one list of numbers a cell. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from aircl.data.arrays.columns import align_columns, check_no_ids, select_columns
from aircl.data.arrays.source import (
    Array,
    DataError,
    LabelKind,
    Request,
    Rows,
    Source,
    check_id,
    check_text_label,
    float_dtype,
    kind_of,
)
from aircl.data.arrays.tables import ParquetTable, open_parquet


class ParquetSource(Source):
    """A table of typed columns; the features are columns of numbers, or one column of lists of equal length.

    Parameters
    ----------
    path : Path
    request : Request
    """

    def __init__(self, path: Path, request: Request) -> None:
        self.path = path
        self._label, self._weight, self._id = request.label, request.weight, request.id
        file = open_parquet(path)
        schema = file.schema_arrow
        self.n_rows = int(file.metadata.num_rows)
        selected = select_columns(path, schema.names, request)
        self._is_list = len(selected) == 1 and _is_list_of_numbers(schema.field(selected[0]).type)
        if self._is_list:
            self._columns, types = selected, [schema.field(selected[0]).type.value_type]
        else:
            self._columns, ignored = align_columns(path, selected, request.names)
            types = [schema.field(name).type for name in self._columns]
            for name, type_ in zip(self._columns, types, strict=True):
                if not _is_number(type_):
                    raise DataError(
                        f"{path}: column {name!r} holds {type_}, not numbers. Say which columns are features with "
                        "--features: names, a pattern, or one column of lists; which hold texts with --text, or paths "
                        "of images with --image."
                    )
            if request.chooses_features:
                check_no_ids(ParquetTable(path), self._columns)
            self.feature_names, self.ignored = tuple(self._columns), tuple(ignored)
        self._dtype = float_dtype(np.result_type(*{_numpy_type(type_) for type_ in types}))
        self._label_type: Any = None if self._label is None else schema.field(self._label).type
        self.n_features = self._list_width(file) if self._is_list else len(self._columns)
        if self._weight is not None and not _is_number(type_ := schema.field(self._weight).type):
            raise DataError(f"{path}: the sample weights in column {self._weight!r} are {type_}, not numbers.")

    def label_kinds(self, candidates: set[LabelKind]) -> set[LabelKind]:
        """Return the one kind that the column's type stands for."""
        from pyarrow import types

        type_ = self._label_type
        if types.is_dictionary(type_):
            type_ = type_.value_type
        if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
            return candidates & {"strings"}
        if not (_is_number(type_) or types.is_boolean(type_)):
            raise DataError(
                f"{self.path}: the labels in column {self._label!r} are {type_}. Labels are integers, strings or "
                "booleans."
            )
        return candidates & {kind_of(self.path, _numpy_type(type_))}

    def _read(self, size: int, kind: LabelKind | None) -> Iterator[Rows]:
        from pyarrow import ArrowException

        labelled = kind is not None and self._label is not None
        others = [self._label if labelled else None, self._weight, self._id]
        columns = [*self._columns, *(name for name in others if name is not None)]
        start = 0
        try:
            for batch in open_parquet(self.path).iter_batches(batch_size=size, columns=columns, use_threads=False):
                X = self._lists(batch, start) if self._is_list else self._table(batch, start)
                y = self._labels(batch, start) if labelled else None
                yield X, y, self._weights(batch, start), self._ids(batch, start)
                start += len(X)
        except (ArrowException, OSError) as error:
            raise DataError(f"{self.path} cannot be read beyond row {start}: {error}.") from error

    def _table(self, batch: Any, start: int) -> Array:
        X = np.empty((batch.num_rows, len(self._columns)), dtype=self._dtype)
        for i, name in enumerate(self._columns):
            X[:, i] = self._whole(batch.column(name), name, start).to_numpy(zero_copy_only=False)
        return X

    def _lists(self, batch: Any, start: int) -> Array:
        name = self._columns[0]
        column = self._whole(batch.column(name), name, start)
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        if np.any(lengths != self.n_features):
            row = int(np.argmax(lengths != self.n_features))
            raise DataError(
                f"{self.path}, row {start + row + 1}: column {name!r} holds a list of {lengths[row]} numbers, the "
                f"first row one of {self.n_features}. Features need one length."
            )
        values = self._whole(column.flatten(), name, start).to_numpy(zero_copy_only=False)
        return np.asarray(values.reshape(batch.num_rows, -1), dtype=self._dtype)

    def _labels(self, batch: Any, start: int) -> Array:
        from pyarrow import types

        column = self._whole(batch.column(self._label), str(self._label), start)
        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind == "O":
            for row, text in enumerate(values.tolist(), start + 1):
                check_text_label(f"{self.path}, row {row}", text)
            values = values.astype(str)
        return self._typed_labels(values, start)

    def _weights(self, batch: Any, start: int) -> Array | None:
        if self._weight is None:
            return None
        values = self._whole(batch.column(self._weight), self._weight, start).to_numpy(zero_copy_only=False)
        return np.asarray(values, dtype=np.float64)

    def _ids(self, batch: Any, start: int) -> list[str] | None:
        if self._id is None:
            return None
        ids = batch.column(self._id).to_pylist()
        return [check_id(f"{self.path}, row {row}", value) for row, value in enumerate(ids, start + 1)]

    def _whole(self, column: Any, name: str, start: int) -> Any:
        if column.null_count:
            raise DataError(
                f"{self.path}: column {name!r} has {column.null_count} empty cells from row {start + 1} on. "
                "Fill or drop such rows."
            )
        return column

    def _list_width(self, file: Any) -> int | None:
        for batch in file.iter_batches(batch_size=1, columns=self._columns):
            return len(self._whole(batch.column(0), self._columns[0], 0)[0])
        return None


def _numpy_type(type_: Any) -> np.dtype[Any]:
    """Return NumPy's type for numbers and booleans; older versions of pyarrow would ask pandas."""
    from pyarrow import types

    if types.is_floating(type_):
        return np.dtype(f"f{type_.bit_width // 8}")
    return np.dtype(bool if types.is_boolean(type_) else str(type_))


def _is_number(type_: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(type_) or types.is_floating(type_))


def _is_list_of_numbers(type_: Any) -> bool:
    from pyarrow import types

    is_list = types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_)
    return bool(is_list and _is_number(type_.value_type))
