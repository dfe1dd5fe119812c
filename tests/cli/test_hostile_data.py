"""Files and functions of rows that are damaged, crafted or nonsense: one line, exit code 1, nothing learned."""

from __future__ import annotations

import io
import os
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.lib import format as npy

from aircl import AIRClassifier


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("maker", None)


def npy_bytes(array, header=None, version=(1, 0)):
    """Return an .npy file, with a header of its own if one is given."""
    buffer = io.BytesIO()
    if header is None:
        npy.write_array(buffer, np.asarray(array), version)
        return buffer.getvalue()
    text = header.encode("latin1") if isinstance(header, str) else header
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return npy.magic(*version) + length + text + np.asarray(array).tobytes()


def header(shape="(4, 4)", descr="'<f8'", order="False"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


def write_npz(X=None, y=None, method=zipfile.ZIP_STORED, **others):
    members = {"X.npy": npy_bytes(np.eye(4)) if X is None else X, "y.npy": npy_bytes([0, 1, 0, 1]) if y is None else y}
    with zipfile.ZipFile("rows.npz", "w", method) as archive:
        for name, content in (members | others).items():
            archive.writestr(name, content)


def patch_archive(find, replace):
    content = Path("rows.npz").read_bytes()
    assert find in content
    Path("rows.npz").write_bytes(content.replace(find, replace))


def encrypt():
    """Set the flag of encryption in local and central headers."""
    content = bytearray(Path("rows.npz").read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.find(signature)
        while place >= 0:
            content[place + offset] |= 1
            place = content.find(signature, place + 4)
    Path("rows.npz").write_bytes(content)


def set_method(number):
    content = bytearray(Path("rows.npz").read_bytes())
    for signature, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = content.find(signature)
        while place >= 0:
            content[place + offset : place + offset + 2] = struct.pack("<H", number)
            place = content.find(signature, place + 4)
    Path("rows.npz").write_bytes(content)


HEADERS = {
    "negative width": header("(4, -2)"),
    "negative rows": header("(-4, 4)"),
    "no width": header("(4, 0)"),
    "endless rows of nothing": header("(1000000000000, 0)"),
    "more than there is": header("(4, 1000000)"),
    "more than a number holds": header(f"({10**30}, 4)"),
    "wider than anything": header("(0, 100000000)"),
    "booleans for lengths": header("(True, True)"),
    "text for a shape": header("'44'"),
    "three dimensions": header("(2, 2, 4)"),
    "objects": header(descr="'|O'"),
    "a record": header(descr="[('a', '<f8'), ('b', '<f8')]"),
    "times": header(descr="'<M8[s]'"),
    "an unknown type": header(descr="'<q9'"),
    "a number for a type": header(descr="5"),
    "a type that is a list of lists": header(descr="[[[[]]]]"),
    "no dictionary": "[1, 2]\n",
    "unhashable": "{[]: 1}\n",
    "cut short": header()[:20],
    "an open bracket": "(" * 900 + "\n",
    "indentation": "  1\n 2\n",
    "an open string": "'''\n",
    "bytes": b"\xff\xfe\x00\x01\n",
    "NUL": "\0\0\0\n",
    "nothing": "",
    "calls": "__import__('os').system('touch owned')\n",
    "an order of text": header(order="'no'"),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    AIRClassifier(1.0).fit(np.eye(4), [0, 1, 0, 1]).save(path)
    return path


@pytest.mark.parametrize("what", HEADERS)
@pytest.mark.parametrize("kind", ["npz", "npy"])
def test_headers_of_arrays(kind, what, run, model):
    content = npy_bytes(np.eye(4), HEADERS[what])
    if kind == "npz":
        write_npz(X=content)
        result = run("learn", "rows.npz", "--label", "y", "-o", "m", code=1)
    else:
        Path("rows.npy").write_bytes(content)
        result = run("predict", model, "rows.npy", code=1)
    assert result.stderr.startswith("Error: rows.np")
    assert result.stderr.count("\n") == 1
    assert not os.path.exists("m")
    assert not os.path.exists("owned")


@pytest.mark.parametrize("length", [2**32 - 1, 100_000])
def test_the_length_of_a_header_is_not_believed(length, run):
    content = npy.magic(2, 0) + struct.pack("<I", length) + b" " * 10**6
    write_npz(X=content, method=zipfile.ZIP_DEFLATED)
    assert "header is too long" in run("learn", "rows.npz", "--label", "y", "-o", "m", code=1).stderr


@pytest.mark.parametrize(
    "make",
    [
        lambda: (write_npz(method=zipfile.ZIP_LZMA), patch_archive(b"\x5d\x00", b"\xff\xff")),
        lambda: (write_npz(method=zipfile.ZIP_BZIP2), patch_archive(b"BZh9", b"BZh0")),
        lambda: (write_npz(), encrypt()),
        lambda: (write_npz(), set_method(97)),
        lambda: (write_npz(), set_method(8)),
        lambda: (write_npz(), patch_archive(b"NUMPY", b"NUMPO")),
        lambda: (write_npz(method=zipfile.ZIP_DEFLATED), patch_archive(b"PK\x03\x04", b"PK\x03\x05")),
        lambda: Path("rows.npz").touch(),
        lambda: write_npz(y=npy_bytes([0, 1, 0, 1], header("(4,)", "'<U100000000'"))),
        lambda: write_npz(y=npy_bytes([0, 1, 0, 1], header("(4,)", "'<U0'"))),
        lambda: write_npz(y=npy_bytes(np.array(["x" * 5000] * 4))),
        lambda: write_npz(y=npy_bytes([0, 1, 0])),
        lambda: write_npz(y=npy_bytes(5)),
    ],
)
def test_damaged_and_foreign_archives(make, run):
    make()
    result = run("learn", "rows.npz", "--label", "y", "-o", "m", code=1)
    assert result.stderr.startswith("Error: rows.npz")
    assert result.stderr.count("\n") == 1


def test_members_that_are_no_arrays_are_passed_over(run):
    write_npz(**{"notes": b"text", "folder/": b"", "broken.txt": b"\x93NUMPY"})
    run("learn", "rows.npz", "--label", "y", "-o", "m")
    assert "no array 'notes'" in run("learn", "rows.npz", "--label", "notes", "-o", "m", code=1).stderr


@pytest.mark.parametrize("cell", ["1_0", "1__0", "\u0661", "\uff11", "1\u00a0", "0x1", "--1", "nan", "inf", "1e999"])
def test_cells_that_python_might_take_for_numbers(cell, run):
    Path("rows.csv").write_text(f"a,b,y\n1,2,0\n{cell},2,1\n", encoding="utf-8")
    run("learn", "rows.csv", "--label", "y", "-o", "m", code=1)
    Path("rows.csv").write_text(f"a,b,y,w\n1,2,0,1\n1,2,1,{cell}\n", encoding="utf-8")
    run("learn", "rows.csv", "--label", "y", "--sample-weight", "w", "-o", "m", code=1)


@pytest.mark.parametrize("label", ["a\0", "\0", "x" * 5000])
def test_labels_that_numpy_would_change(label, run):
    Path("rows.csv").write_text(f"a,b,y\n1,2,a\n3,4,{label}\n", newline="")
    assert "the label" in run("learn", "rows.csv", "--label", "y", "-o", "m", code=1).stderr
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"a": [1.0, 2.0], "y": ["a", label]}), "rows.parquet")
    assert "the label" in run("learn", "rows.parquet", "--label", "y", "-o", "m", code=1).stderr


def test_links_to_one_file_are_counted_once(run):
    np.savez("a.npz", X=np.eye(4), y=[0, 1, 0, 1])
    os.link("a.npz", "b.npz")
    os.symlink("a.npz", "c.npz")
    for other in ("b.npz", "c.npz", "./a.npz"):
        assert "more than once" in run("learn", "a.npz", other, "--label", "y", "-o", "m", code=1).stderr


GOOD = "import numpy as np\nX, y = np.eye(4), [0, 1, 0, 1]\n"
NONSENSE = {
    "a number": "def rows(): return 5",
    "nothing": "def rows(): return None",
    "a text": "def rows(): return 'abc'",
    "an empty list": "def rows(): return []",
    "an empty tuple": "def rows(): return ()",
    "a list of numbers": "def rows(): return [1, 2]",
    "a dictionary": "def rows(): return {'X': X, 'y': y}",
    "no rows at all": "def rows(): yield from ()",
    "a bare array": "def rows(): yield X",
    "four things": "def rows(): yield X, y, y, y",
    "None": "def rows(): yield None",
    "None for X": "def rows(): yield None, y",
    "None for y": "def rows(): yield X, None",
    "ragged rows": "def rows(): yield [[1, 2], [3]], [0, 1]",
    "ragged labels": "def rows(): yield X, [[0], [0, 1], 2, 3]",
    "text for X": "def rows(): yield [['a']], [0]",
    "complex": "def rows(): yield X * 1j, y",
    "rows of no features": "def rows(): yield np.zeros((4, 0)), y",
    "objects for labels": "def rows(): yield X, [object(), object(), 1, 2]",
    "mixed labels": "def rows(): yield X, ['a', 1, 2.5, None]",
    "labels with a NUL": "def rows(): yield X, ['a', 'a\\0', 'b', 'b']",
    "half labels": "def rows(): yield X, [0.5, 1, 0, 1]",
    "text for weights": "def rows(): yield X, y, ['a', 'b', 'c', 'd']",
    "negative weights": "def rows(): yield X, y, [-1, 1, 1, 1]",
    "weights that are too few": "def rows(): yield X, y, [1]",
    "an error": "def rows():\n    raise KeyError('x')",
    "an error later": "def rows():\n    yield X, y\n    raise ZeroDivisionError('x')",
    "an exit": "def rows():\n    yield X, y\n    import sys; sys.exit(0)",
    "the end of all": "def rows():\n    yield X, y\n    raise StopIteration",
    "another width": "def rows():\n    yield X, y\n    yield X[:, :2], y",
    "another type": "def rows():\n    yield X, y\n    yield X, ['a', 'b', 'c', 'd']",
    "empty batches without end": "def rows():\n    while True: yield X[:0], []",
    "empty batches after some rows": "def rows():\n    yield X, y\n    while True: yield X[:0], y[:0]",
    "an argument": "def rows(x): yield X, y",
    "no function": "rows = 5",
    "a module that fails": "1 / 0\nrows = 5",
    "a module that exits": "import sys; sys.exit(0)",
    "a module that cannot be parsed": "def rows(:",
    "infinite": "def rows(): yield X * np.inf, y",
}


@pytest.mark.parametrize("what", NONSENSE)
def test_functions_that_yield_nonsense(what, tmp_path, run):
    (tmp_path / "maker.py").write_text(GOOD + NONSENSE[what] + "\n")
    result = run("learn", "maker:rows", "-o", "m", code=1)
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "m").exists()


def test_a_function_twice_is_refused(tmp_path, run):
    (tmp_path / "maker.py").write_text(GOOD + "def rows(): yield X, y\n")
    assert "more than once" in run("learn", "maker:rows", "maker:rows", "-o", "m", code=1).stderr
    run("learn", "maker:rows", "-o", "m")
