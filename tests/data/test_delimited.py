from __future__ import annotations

import numpy as np
import pytest

from aircl.data.arrays import DataError, Request
from aircl.data.arrays.delimited import DelimitedSource

LABELLED = Request("y")
ALL = {"integers", "strings", "booleans"}


@pytest.fixture
def table(tmp_path):
    def write(text, request=LABELLED, name="t.csv"):
        (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return DelimitedSource(tmp_path / name, request)

    return write


def test_batches(table):
    source = table("a,y,b\n1,7,0.5\n\n2,8,-1e3\n3,7, 4\n")
    first, second = source.batches(2, "integers")
    assert source.feature_names == ("a", "b")
    np.testing.assert_array_equal(first.X, [[1, 0.5], [2, -1000]])
    np.testing.assert_array_equal(first.y, [7, 8])
    np.testing.assert_array_equal(second.X, [[3, 4]])
    assert (first.start, second.start) == (0, 2)


def test_quotes_tabs_byte_order_marks_and_one_feature(table):
    source = table('y,a\n"two\nlines, ""quoted""",1\n')
    assert next(source.batches(5, "strings")).y.tolist() == ['two\nlines, "quoted"']
    source = table(b"\xef\xbb\xbfy\ta\r\n\xc3\xa9\t1\r\n", name="t.tsv")
    batch = next(source.batches(5, "strings"))
    assert batch.y.tolist() == ["é"]
    assert batch.X.tolist() == [[1.0]]


def test_numbers_are_read_exactly(table):
    X = np.random.default_rng(0).normal(size=(200, 5)) * 10.0 ** np.arange(-200, 300, 100)
    text = "a,b,c,d,e\n" + "\n".join(",".join(map(repr, row)) for row in X.tolist())
    np.testing.assert_array_equal(next(table(text, Request()).batches(200)).X, X)


def test_without_labels(table):
    assert [batch.y for batch in table("a,b\n1,2\n", Request()).batches(3)] == [None]


@pytest.mark.parametrize(
    ("labels", "kinds"),
    [
        (["1", "-2", "0"], {"integers", "strings"}),
        (["1", "2", "x"], {"strings"}),
        (["1", "007"], {"strings"}),
        (["1", "2.0"], {"strings"}),
        (["1", str(2**63)], {"strings"}),
        (["True", "false"], {"strings", "booleans"}),
    ],
)
def test_what_labels_can_be_read_as(labels, kinds, table):
    source = table("y,a\n" + "".join(f"{label},1\n" for label in labels))
    assert source.label_kinds(ALL) == kinds
    for kind in ALL:
        if kind in kinds:
            assert len(np.concatenate([batch.y for batch in source.batches(1, kind)])) == len(labels)
        else:
            with pytest.raises(DataError, match=f"does not fit labels that are {kind}"):
                list(source.batches(1, kind))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n", "no column 'y'"),
        ("y,a\n1,x\n", "line 2: column 'a' holds 'x', which is not a number"),
        ("y,a\n1,\n", "line 2: column 'a' holds ''"),
        ("y,a\n1,2\n,3\n", "line 3: the label is empty"),
        ("y,a\n1,2,3\n", "line 2: 3 fields, but the header has 2"),
        ("y,a\n1,inf\n", "row 1, feature 'a': inf"),
        ('y,a\n"1,2\n', "line 2: "),
        (b"y,a\n\xff,1\n", "not UTF-8"),
    ],
)
def test_what_cannot_be_read(text, message, table):
    with pytest.raises(DataError, match=message):
        list(table(text).batches(10, "strings"))
