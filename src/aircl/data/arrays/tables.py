"""Tables whose cells are read as they are: texts, paths, ids and labels of .csv, .tsv, .jsonl and .parquet files."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from aircl.data.arrays.source import DataError
from aircl.storage.errors import InputError
from aircl.storage.records import parse_json

Row = Sequence[Any]


class Table(ABC):
    """Named columns, read row by row.

    Parameters
    ----------
    path : Path

    Attributes
    ----------
    columns : list of str
    n_rows : int or None
        None if only reading tells.
    is_typed : bool
        Whether cells have types; those of delimited text are all texts.
    """

    columns: list[str]
    n_rows: int | None = None
    is_typed = True

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
        """Yield where a row stands, for messages, and its cells in these columns."""

    def head(self, columns: Sequence[str], n: int) -> list[Row]:
        """Return the first rows."""
        return [row for _, row in islice(self.rows(columns), n)]


class DelimitedTable(Table):
    """Comma- or tab-separated text under a line of names."""

    is_typed = False

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        header = next(self._records(), None)
        if header is None:
            raise DataError(f"{path} is empty. Its first line should name the columns.")
        self.columns = header[1]
        if len(self.columns) == 1 and (other := [mark for mark in ";\t|," if mark in self.columns[0]]):
            raise DataError(
                f"{path}: the names in its first line are separated by {other[0]!r}, not by {self._delimiter!r}. Write "
                "it with commas, or with tabs and a name that ends in .tsv."
            )

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the records below the header, all of its width, with the number of their last line."""
        records = self._records()
        next(records)
        for line, row in records:
            if len(row) != len(self.columns):
                raise DataError(
                    f"{self.path}, line {line}: {len(row)} fields, but the header has {len(self.columns)}. Repair the "
                    "file."
                )
            yield line, row

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
        """Yield where a row stands, for messages, and its cells in these columns."""
        places = [self.columns.index(name) for name in columns]
        for line, row in self.records():
            yield f"line {line}", [row[place] for place in places]

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the records that are not blank with the number of their last line."""
        try:
            with self.path.open(newline="", encoding="utf-8-sig") as file:
                reader = csv.reader(file, delimiter=self._delimiter, strict=True)
                for row in reader:
                    if row:
                        yield reader.line_num, row
        except UnicodeDecodeError as error:
            raise DataError(_not_utf8(self.path, error)) from error
        except csv.Error as error:
            raise DataError(f"{self.path}, line {reader.line_num}: {error}.") from error


class JsonLinesTable(Table):
    """One JSON object per line; the columns are the names of the first one, and what another one lacks is empty."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        first = next(self._objects(), None)
        if first is None:
            raise DataError(f"{path} is empty. Its lines should be JSON objects, one per row.")
        self.columns = list(first[1])

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
        """Yield where a row stands, for messages, and its cells in these columns."""
        for line, item in self._objects():
            yield f"line {line}", [item.get(name) for name in columns]

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        try:
            with self.path.open(encoding="utf-8-sig") as file:
                for number, line in enumerate(file, 1):
                    if line.strip():
                        try:
                            item = parse_json(line, "it")
                        except InputError as error:
                            raise DataError(f"{self.path}, line {number}: {error}") from error
                        if not isinstance(item, dict):
                            raise DataError(
                                f"{self.path}, line {number} holds a {type(item).__name__}. Every line should be a "
                                "JSON object: names with values."
                            )
                        yield number, item
        except UnicodeDecodeError as error:
            raise DataError(_not_utf8(self.path, error)) from error


class ParquetTable(Table):
    """Typed columns. Needs pyarrow."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        file = open_parquet(path)
        self.columns, self.n_rows = list(file.schema_arrow.names), int(file.metadata.num_rows)

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[str, Row]]:
        """Yield where a row stands, for messages, and its cells in these columns."""
        from pyarrow import ArrowException

        number = 0
        try:
            for batch in open_parquet(self.path).iter_batches(1024, columns=list(columns), use_threads=False):
                for row in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
                    number += 1
                    yield f"row {number}", row
        except (ArrowException, OSError) as error:
            raise DataError(f"{self.path} cannot be read beyond row {number}: {error}.") from error


def _not_utf8(path: Path, error: UnicodeDecodeError) -> str:
    return (
        f"{path} is not UTF-8 text ({error}). Save it as UTF-8, or convert it from the encoding that it has, such as "
        f"latin1: iconv -f latin1 -t utf-8 {path.name}"
    )


TABLES: dict[str, Callable[[Path], Table]] = {
    ".csv": DelimitedTable,
    ".tsv": DelimitedTable,
    ".jsonl": JsonLinesTable,
    ".parquet": ParquetTable,
}


def open_parquet(path: Path) -> Any:
    """Return a parquet file as pyarrow has it."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise DataError(
            f"reading {path} needs pyarrow. Install it: pip install 'aircl[parquet]', or use csv, npz or safetensors "
            "files."
        ) from None
    try:
        # Mapped, so that a large row group is decoded page by page rather than read at once.
        return ParquetFile(path, memory_map=True, pre_buffer=False)
    except ArrowException as error:
        raise DataError(f"{path} is not a parquet file: truncated, damaged or foreign ({error}).") from error
