from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aircl.data.arrays import DataError, Request, agree_on_labels, expand_patterns, open_files


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_patterns_are_sorted_and_literal_names_win(here):
    for name in ("b.csv", "a.csv", "c[1].csv", "sub/d.csv"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text("y,a\n")
    assert expand_patterns(["c[1].csv", "[ab].csv"]) == [Path("c[1].csv"), Path("a.csv"), Path("b.csv")]
    assert expand_patterns(["**/*.csv"])[-1] == Path("sub/d.csv")
    for patterns, message in (
        (["*.npz"], "no file matches"),
        (["z.csv"], "does not exist"),
        (["sub"], "not a file"),
        (["a.csv", "sub/../a.csv"], "more than once"),
    ):
        with pytest.raises(DataError, match=message):
            expand_patterns(patterns)


def test_the_first_file_sets_names_and_width(here):
    (here / "a.csv").write_text("y,u,v\n1,2,3\n")
    (here / "b.csv").write_text("v,y,u\n3,1,2\n")
    np.savez("c.npz", X=np.array([[2.0, 3.0]]), y=[1])
    sources = open_files([Path("a.csv"), Path("b.csv"), Path("c.npz")], Request("y"))
    for source in sources:
        np.testing.assert_array_equal(next(source.batches(1, "integers")).X, [[2, 3]])
    with pytest.raises(DataError, match=r"a.csv has 2 features, but 3 are expected"):
        open_files([Path("a.csv")], Request("y"), n_features=3)
    with pytest.raises(DataError, match=r"files of type '.txt' cannot be read. Use .csv, "):
        open_files([Path("a.txt")], Request("y"))


def test_labels_get_one_type(here):
    (here / "numbers.csv").write_text("y,a\n1,1\n")
    (here / "words.csv").write_text("y,a\nx,1\n")
    (here / "flags.csv").write_text("y,a\nTrue,1\n")
    np.savez("numbers.npz", X=[[1.0]], y=[1])
    np.savez("words.npz", X=[[1.0]], y=["1"])
    np.savez("flags.npz", X=[[1.0]], y=[True])

    def kind(*names, known=None):
        return agree_on_labels(open_files([Path(name) for name in names], Request("y")), known)

    assert kind("numbers.csv") == kind("numbers.csv", "numbers.npz") == "integers"
    assert kind("words.csv") == kind("numbers.csv", "words.csv") == kind("numbers.csv", "words.npz") == "strings"
    assert kind("flags.csv") == kind("numbers.csv", known="strings") == "strings"
    assert kind("flags.npz") == kind("flags.csv", "flags.npz") == kind("flags.csv", known="booleans") == "booleans"
    with pytest.raises(DataError, match=r"words.npz: its labels are not integers, as those of the other files are"):
        kind("numbers.npz", "words.npz")
    with pytest.raises(DataError, match=r"numbers.npz: its labels are not strings, as those of the model are"):
        kind("numbers.npz", known="strings")


def test_a_path_may_be_a_text(here):
    (here / "a.csv").write_text("y,u,v\n1,2,3\n")
    (source,) = open_files(["a.csv"], Request("y"))
    assert (source.path, source.feature_names) == (Path("a.csv"), ("u", "v"))
