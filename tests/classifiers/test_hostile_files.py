"""Model files with a valid checksum that say what no learner has written: each is refused, and costs nothing."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from typer.testing import CliRunner

from aircl import AIRClassifier, RandomReLU
from aircl.classifiers import FileError
from aircl.classifiers.file import write
from aircl.cli import app

HUGE = 10**6


def learner():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)), np.repeat(["ant", "bee", "cat", "dog"], 10)
    clf = AIRClassifier(expansion=RandomReLU(6, random_state=0), calibrate=False, ledger=True)
    return clf.partial_fit(X, y, classes=["ant", "emu"], ids=range(40))


def forge(path, change):
    """Write a model that was changed by hand, with the checksum that it should have."""
    clf = learner()
    assert clf.gamma_ > 0
    clf.save(path)
    with safe_open(path, "numpy") as file:
        header = json.loads(file.metadata()["aircl"])
        arrays = {name: file.get_tensor(name).copy() for name in file.keys()}  # noqa: SIM118 (not a mapping)
    text = change(header, arrays) or json.dumps(header)
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode() + arrays[name].tobytes())
    save_file(arrays, path, {"aircl": text, "sha256": digest.hexdigest()})


def put(*place_and_value):
    *place, key, value = place_and_value

    def change(header, arrays):
        for name in place:
            header = header[name]
        header[key] = value

    return change


def spoil(name, value):
    def change(header, arrays):
        arrays[name].reshape(-1)[-1] = value

    return change


def declare_many(header, arrays):
    header["labels"] |= {"type": "int64", "seen": [0, 1, 2, 3], "declared": list(range(4, HUGE))}


def test_a_forged_file_without_changes_is_read(tmp_path):
    forge(tmp_path / "m", lambda header, arrays: None)
    AIRClassifier.load(tmp_path / "m")


@pytest.mark.parametrize(
    "change",
    [
        *(spoil(name, value) for value in (np.nan, np.inf, -np.inf) for name in (
            "statistics.count", "statistics.center", "statistics.moment.0", "expansion.components", "gamma.grid",
            "gamma.criterion",
        )),
        lambda header, arrays: "[" * 50_000,
        lambda header, arrays: json.dumps(header)[:-1] + ', "x": ' + "[" * 50_000 + "]" * 50_000 + "}",
        lambda header, arrays: json.dumps(header).replace('"auto"', "NaN"),
        lambda header, arrays: json.dumps(header).replace('"auto"', "9" * 5000),
        lambda header, arrays: "[]",
        lambda header, arrays: '"text"',
        put("format", True),
        put("format", "1"),
        put("class", 5),
        put("parameters", []),
        put("parameters", "gamma", "a lot"),
        put("parameters", "gamma", [1]),
        put("parameters", "weighting", [1]),
        put("parameters", "weighting", {"mapping": 5}),
        put("parameters", "store", 5),
        put("parameters", "store", "elsewhere"),
        put("parameters", "memory_limit", []),
        put("parameters", "no_such", 5),
        put("expansion", 5),
        put("expansion", "kind", 5),
        put("expansion", "parameters", 5),
        put("expansion", "parameters", {"n_components": 10**9}),
        put("labels", []),
        put("labels", "type", "U100000000"),
        put("labels", "type", "O"),
        put("labels", "type", "float8"),
        put("labels", "type", "int8"),
        put("labels", "seen", 5),
        put("labels", "seen", [1, 2, 3, 4]),
        put("labels", "seen", ["ant", "bee", "cat"]),
        put("labels", "seen", ["ant", "bee", "cat", "cat"]),
        put("labels", "seen", ["ant", "bee", "cat", "cat\0"]),
        put("labels", "seen", ["ant", "bee", "cat", None]),
        put("labels", "declared", ["x" * 10**7] + ["y"] * 100),
        put("learned", 5),
        put("learned", "n_features", 0),
        put("learned", "n_features", -1),
        put("learned", "n_features", 7),
        put("learned", "n_features", 10**9),
        put("learned", "n_features", 2**21),
        put("learned", "n_features_in", 0),
        put("learned", "n_features_in", 5.5),
        put("learned", "feature_names_in", 5),
        put("learned", "feature_names_in", ["a"]),
        put("learned", "feature_names_in", [1, 2, 3, 4]),
        put("learned", "dtype", "object"),
        put("learned", "dtype", 5),
        put("learned", "lineage", 5),
        put("learned", "lineage", [[]]),
        put("learned", "backbone", 5),
        put("learned", "backbone", {"name": "x"}),
        put("learned", "gamma", 5),
        put("learned", "gamma", [1.0]),
        put("learned", "gamma", [-1.0, 40, 4]),
        put("learned", "gamma", ["x", 40, 4]),
        put("learned", "ledger", 5),
        put("learned", "ledger", "keys", []),
        put("learned", "ledger", "keys", [{"id": "x", "key": "zz"}]),
        put("learned", "ledger", "keys", [{"id": "x", "key": "00" * 32}]),
        put("learned", "ledger", "by_id", 1),
        put("learned", "history", [{"did": "learned"}]),
        put("learned", "history", {"did": "learned"}),
        lambda header, arrays: arrays.pop("ledger.0.content") is None or None,
        lambda header, arrays: arrays.pop("ledger.0.slot") is None or None,
        lambda header, arrays: arrays.update({"ledger.0.row": arrays["ledger.0.row"][::-1].copy()}),
        lambda header, arrays: arrays.update({"ledger.0.row": arrays["ledger.0.row"][:5].copy()}),
        lambda header, arrays: arrays.update({"ledger.0.slot": arrays["ledger.0.slot"] - 1}),
        lambda header, arrays: arrays.update({"ledger.0.slot": arrays["ledger.0.slot"] + 4}),
        lambda header, arrays: arrays.pop("gamma.grid") is None or None,
        lambda header, arrays: arrays.pop("statistics.center") is None or None,
        lambda header, arrays: arrays.update({"x": np.zeros(3, np.int8)}),
    ],
)  # fmt: skip
def test_what_no_learner_wrote_is_refused(change, tmp_path):
    forge(tmp_path / "m", change)
    with pytest.raises(FileError):
        AIRClassifier.load(tmp_path / "m")


@pytest.mark.slow
def test_a_million_declared_classes_are_shown_in_part(tmp_path):
    forge(tmp_path / "m", declare_many)
    result = CliRunner().invoke(app, ["info", str(tmp_path / "m")])
    assert result.exit_code == 0, result.output
    assert "998,000 more; --json has all" in result.stdout


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_could_not_be_read_again_is_not_written(value, tmp_path):
    with pytest.raises(FileError, match="'x' holds numbers that are not finite"):
        write(tmp_path / "m", '{"format": 1}', {"x": np.array([1.0, value])})
    with pytest.raises(FileError, match="the header lacks"):
        write(tmp_path / "m", '{"format": 1, "class": "AIRClassifier"}', {"x": np.ones(2)})
    assert list(tmp_path.iterdir()) == []
