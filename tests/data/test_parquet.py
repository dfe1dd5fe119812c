from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from aircl.data.arrays import DataError, Request
from aircl.data.arrays.parquet import ParquetSource

LABELLED = Request("y")
ALL = {"integers", "strings", "booleans"}


@pytest.fixture
def table(tmp_path):
    def write(columns, request=LABELLED, **options):
        columns = columns if isinstance(columns, pa.Table) else pa.table(columns)
        parquet.write_table(columns, tmp_path / "t.parquet", **options)
        return ParquetSource(tmp_path / "t.parquet", request)

    return write


def test_batches_and_names(table):
    source = table({"a.0": [1.0, 2.0, 3.0], "y": [7, 8, 7], "b": [4, 5, 6]}, row_group_size=2)
    batches = list(source.batches(2, "integers"))
    assert source.feature_names == ("a.0", "b")
    assert (source.n_rows, source.n_features) == (3, 2)
    np.testing.assert_array_equal(np.vstack([batch.X for batch in batches]), [[1, 4], [2, 5], [3, 6]])
    np.testing.assert_array_equal(np.concatenate([batch.y for batch in batches]), [7, 8, 7])
    assert [batch.start for batch in batches] == [0, 2]


@pytest.mark.parametrize(
    ("types", "dtype"),
    [
        ([pa.float32()], np.float32),
        ([pa.float16()], np.float32),
        ([pa.float32(), pa.float64()], np.float64),
        ([pa.int8()], np.float64),
    ],
)
def test_precision_follows_the_columns(types, dtype, table):
    columns = {str(i): pa.array(np.array([1, 2]).astype(t.to_pandas_dtype()), t) for i, t in enumerate(types)}
    assert next(table({**columns, "y": [1, 2]}).batches(9, "integers")).X.dtype == dtype


@pytest.mark.parametrize("make", [pa.list_, pa.large_list, lambda value: pa.list_(value, 2)])
def test_a_column_of_lists(make, table):
    columns = {"y": [1, 2, 3], "e": pa.array([[1, 2], [3, 4], [5, 6]], make(pa.float32())), "t": ["a", "b", "c"]}
    source = table(columns, Request("y", "e", names=("u", "v")))
    assert source.n_features == 2
    assert source.feature_names is None
    first, second = source.batches(2, "integers")
    np.testing.assert_array_equal(np.vstack([first.X, second.X]), [[1, 2], [3, 4], [5, 6]])
    assert first.X.dtype == np.float32
    empty = table(pa.table(columns).slice(0, 0), Request("y", "e"))
    assert empty.n_features is None
    assert list(empty.batches(2, "integers")) == []


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (pa.array([3, 4], pa.uint8()), "integers"),
        (pa.array([3.0, 4.0]), "integers"),
        (pa.array(["u", "long"]), "strings"),
        (pa.array(["u", "long"], pa.large_string()), "strings"),
        (pa.array(["u", "long"]).dictionary_encode(), "strings"),
        (pa.array([True, False]), "booleans"),
    ],
)
def test_labels(labels, kind, table):
    source = table({"a": [1.0, 2.0], "y": labels})
    assert source.label_kinds(ALL) == {kind}
    y = next(source.batches(5, kind)).y
    assert y.tolist() == labels.to_pylist()
    assert y.dtype.kind == {"integers": "i", "strings": "U", "booleans": "b"}[kind]


def test_a_pandas_table_with_an_index(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "y": ["u", "v"]}, index=[5, 9])
    frame.to_parquet(tmp_path / "t.parquet")
    assert ParquetSource(tmp_path / "t.parquet", Request("y")).feature_names == ("a",)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"y": [1], "a": ["x"]}, "column 'a' holds string, not numbers"),
        ({"y": [1], "a": [True]}, "column 'a' holds bool"),
        ({"y": [1, 2], "a": [1.0, None]}, "column 'a' has 1 empty cells"),
        ({"y": [1, None], "a": [1.0, 2.0]}, "column 'y' has 1 empty cells"),
        ({"y": [1.5], "a": [1.0]}, "row 1: the label 1.5 is not a whole number"),
        ({"y": [1, 2], "a": [[1.0, 2.0], [1.0]]}, "row 2: column 'a' holds a list of 1 numbers"),
        ({"y": [1], "a": [[1.0, None]]}, "column 'a' has 1 empty cells"),
        ({"y": [1], "a": [float("nan")]}, "row 1, feature 'a': nan"),
        ({"y": [1]}, "no features"),
    ],
)
def test_what_cannot_be_read(columns, message, table):
    with pytest.raises(DataError, match=message):
        list(table(columns).batches(10, "integers"))


def test_labels_of_no_use(table):
    with pytest.raises(DataError, match=r"labels in column 'y' are date32"):
        table({"a": [1.0], "y": pa.array([1], pa.date32())}).label_kinds(ALL)


def test_a_damaged_file(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(DataError, match="not a parquet file"):
        ParquetSource(tmp_path / "t.parquet", Request())


def test_without_pyarrow_there_is_advice(table, monkeypatch):
    source = table({"a": [1.0], "y": [1]})
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match=r"pip install 'aircl\[parquet\]'"):
        ParquetSource(source.path, Request("y"))


def test_memory_does_not_grow_with_the_row_group(table):
    n, f, size = 40_000, 32, 500
    X = np.random.default_rng(0).normal(size=(n, f))
    columns = pa.table({"y": np.arange(n) % 3} | {f"f{i}": X[:, i] for i in range(f)})
    source = table(columns, row_group_size=n, use_dictionary=False, data_page_size=2**14)
    del columns
    before, peak = pa.total_allocated_bytes(), 0
    for _ in source.batches(size, "integers"):
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert 0 < peak < X.nbytes / 4
