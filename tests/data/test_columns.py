from __future__ import annotations

from pathlib import Path

import pytest

from aircl.data.arrays import DataError, Request
from aircl.data.arrays.columns import align_columns, listed, select_columns

PATH = Path("t.csv")
COLUMNS = ["y", "e_1", "name", "e_2", "a*"]


@pytest.mark.parametrize(
    ("features", "selected"),
    [
        (None, ["e_1", "name", "e_2", "a*"]),
        ("e_2,e_1", ["e_2", "e_1"]),
        ("e_*", ["e_1", "e_2"]),
        ("e_2, e_*", ["e_2", "e_1"]),
        ("a*", ["a*"]),
        ("*", ["e_1", "name", "e_2", "a*"]),
    ],
)
def test_selection(features, selected):
    assert select_columns(PATH, COLUMNS, Request("y", features)) == selected


@pytest.mark.parametrize(
    ("columns", "request_", "message"),
    [
        (COLUMNS, Request("z"), "no column 'z' for --label"),
        (COLUMNS, Request("y", "q*"), "no column that matches 'q\\*'"),
        (COLUMNS, Request("y", "e_1,y"), "both the label and a feature"),
        (["y", "a", "a"], Request("y"), "more than one column named 'a'"),
    ],
)
def test_what_cannot_be_selected(columns, request_, message):
    with pytest.raises(DataError, match=message):
        select_columns(PATH, columns, request_)


def test_a_row_index_of_pandas_is_no_feature():
    assert select_columns(PATH, ["a", "y", "__index_level_0__"], Request("y")) == ["a"]


def test_alignment_by_name():
    assert align_columns(PATH, ["b", "id", "a"], ["a", "b"]) == (["a", "b"], ["id"])
    assert align_columns(PATH, ["b", "a"], None) == (["b", "a"], [])
    assert align_columns(PATH, ["", "a"], ["a"]) == (["a"], [""])


@pytest.mark.parametrize(
    ("selected", "names", "message"),
    [
        (["a"], ["a", "b", "c"], "lacks 2 of the 3 features that are known by name: 'b', 'c'"),
        (["", "a"], None, "a column without a name, perhaps a row index"),
        ([], None, "no features"),
    ],
)
def test_what_cannot_be_aligned(selected, names, message):
    with pytest.raises(DataError, match=message):
        align_columns(PATH, selected, names)


def test_long_lists_are_cut():
    assert listed(["a", "b"]) == "'a', 'b'"
    assert listed([]) == "none"
    assert listed([str(i) for i in range(100)], most=2) == "'0', '1', .. (100 in all)"
