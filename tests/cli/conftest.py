from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from safetensors.numpy import save_file
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from aircl.cli import app


def write_csv(path, X, y, names):
    with path.open("w", newline="") as file:
        table = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        table.writerow(["y", *names])
        table.writerows([label, *row] for label, row in zip(y.tolist(), X.tolist(), strict=True))


def write_parquet(path, X, y, names):
    columns = {"y": y} | {name: X[:, i] for i, name in enumerate(names)}
    parquet.write_table(pa.table(columns), path, row_group_size=64)


def write_lists(path, X, y, names):
    parquet.write_table(pa.table({"y": y, "embedding": list(X)}), path)


def write_jsonl(path, X, y, names):
    rows = [
        {"y": label} | dict(zip(names, row, strict=True)) for label, row in zip(y.tolist(), X.tolist(), strict=True)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_json_lists(path, X, y, names):
    rows = zip(y.tolist(), X.tolist(), strict=True)
    path.write_text("".join(json.dumps({"y": label, "embedding": row}) + "\n" for label, row in rows))


def write_npz(path, X, y, names):
    np.savez(path, X=X, y=y)


def write_compressed(path, X, y, names):
    np.savez_compressed(path, X=X, y=y)


def write_by_columns(path, X, y, names):
    np.savez(path, X=np.asfortranarray(X), y=y)


def write_safetensors(path, X, y, names):
    save_file({"X": np.ascontiguousarray(X), "y": np.ascontiguousarray(y)}, path)


WRITERS = {
    "csv": (".csv", write_csv),
    "tsv": (".tsv", write_csv),
    "parquet": (".parquet", write_parquet),
    "lists": (".parquet", write_lists),
    "jsonl": (".jsonl", write_jsonl),
    "json lists": (".jsonl", write_json_lists),
    "npz": (".npz", write_npz),
    "compressed": (".npz", write_compressed),
    "by columns": (".npz", write_by_columns),
    "safetensors": (".safetensors", write_safetensors),
}


@pytest.fixture(params=WRITERS)
def written(request, tmp_path):
    """Return a function that writes X and y in one of the forms a file can have."""
    suffix, write = WRITERS[request.param]

    def save(X, y, name="data") -> Path:
        path = tmp_path / f"{name}{suffix}"
        write(path, X, y, [f"f{i}" for i in range(X.shape[1])])
        return path

    return save


@pytest.fixture(scope="session")
def digits():
    """Return long-tailed training digits, 80 to 5 a class, and test digits."""
    X, y = load_digits(return_X_y=True)
    X = X / 16
    keep = np.concatenate([np.flatnonzero(y[:900] == digit)[: 80 >> digit // 2] for digit in range(10)])
    return X[keep], y[keep], X[900:], y[900:]


@pytest.fixture
def run():
    """Return a function that runs a command and checks its exit code."""

    def invoke(*args, code=0):
        result = CliRunner().invoke(app, [str(arg) for arg in args])
        assert code is None or result.exit_code == code, result.output
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result

    return invoke


@pytest.fixture
def files(digits, tmp_path, monkeypatch):
    """Write the digits as train.npz, with their names as train.csv and test.csv, and work beside them."""
    X, y, X_test, y_test = digits
    names = [f"px{i}" for i in range(64)]
    write_npz(tmp_path / "train.npz", X, y, names)
    write_csv(tmp_path / "train.csv", X, y, names)
    write_csv(tmp_path / "test.csv", X_test, y_test, names)
    monkeypatch.chdir(tmp_path)
    return tmp_path
