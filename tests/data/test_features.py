from __future__ import annotations

import csv

import numpy as np
import pytest
from safetensors.numpy import save_file

from aircl.data import DataError, load_dataset

X = np.arange(24, dtype=np.float32).reshape(8, 3)
Y = np.array([30, 10, 10, 20, 30, 10, 10, 20])


def arrays(y=Y):
    return {"X_train": X[:5], "y_train": y[:5], "X_test": X[5:], "y_test": y[5:]}


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_one_file_of_four_arrays(suffix, tmp_path):
    path = tmp_path / f"f.{suffix}"
    np.savez(path, **arrays()) if suffix == "npz" else save_file(arrays(), path)
    dataset = load_dataset(f"features:{path}")
    assert dataset.kind == "features"
    assert dataset.class_names == ("10", "20", "30")
    assert dataset.train.labels.tolist() == [2, 0, 0, 1, 2]
    assert dataset.test.labels.tolist() == [0, 0, 1]
    batch = dataset.train.inputs[np.array([4, 0])]
    np.testing.assert_array_equal(batch, X[[4, 0]])
    assert batch.dtype == np.float32
    again = load_dataset("features:f." + suffix, root=tmp_path)
    assert again.train.fingerprint == dataset.train.fingerprint != dataset.test.fingerprint


def test_two_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = np.array(["b", "a", "longer"])[np.searchsorted([10, 20, 30], Y)]
    with open("train.csv", "w", newline="") as file:
        csv.writer(file).writerows([["p", "q", "r", "class"], *([*row, y] for row, y in zip(X, labels, strict=True))])
    np.savez("test.npz", X=X[:2], **{"class": labels[:2]})
    dataset = load_dataset("features:train.csv,test.npz", label="class")
    assert dataset.class_names == ("a", "b", "longer")
    assert (len(dataset.train), len(dataset.test)) == (8, 2)
    assert dataset.test.labels.tolist() == dataset.train.labels[:2].tolist()


def test_fingerprints_follow_values_not_labels(tmp_path):
    def fingerprint(**changed):
        np.savez(tmp_path / "f.npz", **arrays() | changed)
        return load_dataset("features:f.npz", root=tmp_path).train.fingerprint

    before = fingerprint()
    assert fingerprint(y_train=Y[:5][::-1]) == before
    assert fingerprint(X_train=X[:5] + 1) != before
    assert fingerprint(X_train=X[:5][::-1]) != before
    assert fingerprint(X_train=X[:5].astype(np.float64)) != before


def test_what_is_wrong_with_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("f.npz", **arrays())
    np.savez("half.npz", X_train=X, y_train=Y)
    np.savez("unlike.npz", **arrays() | {"X_test": X[5:, :2]})
    np.savez("empty.npz", **arrays() | {"X_test": X[:0], "y_test": Y[:0]})
    np.savez("mixed.npz", **arrays() | {"y_test": np.array(["a", "b", "c"])})
    (tmp_path / "t.csv").write_text("y,a\n1,2\n")
    for name, message in {
        "": "no file of features was given",
        "absent.npz": "absent.npz does not exist",
        "half.npz": "half.npz has no array 'X_test'",
        "unlike.npz": "X_train has 3 columns, but X_test has 2",
        "empty.npz": "empty.npz has no rows",
        "mixed.npz": "Labels need one type",
        "t.csv": "t.csv alone has no training and test data. Give two files",
        "f.npz,absent.npz": "absent.npz does not exist",
        "f.npz,f.npz": "given more than once",
    }.items():
        with pytest.raises(DataError, match=message):
            load_dataset(f"features:{name}")
