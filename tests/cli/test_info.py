from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

import aircl
from aircl import AIRClassifier
from aircl.cli.modelfile import load_model


def test_json_holds_what_the_classifier_says(files, run):
    run("learn", "train.csv", "--label", "y", "--expand", 40, "-o", "m")
    model = AIRClassifier.load("m")
    info = json.loads(run("info", "m", "--json").stdout)
    assert [row["label"] for row in info.pop("classes")] == model.classes_.tolist()
    assert info.pop("feature_names") == [f"px{i}" for i in range(64)]
    assert info.pop("gamma") == {"parameter": "auto", "value": model.gamma_}
    assert info.pop("expansion")["name"] == "RandomReLU"
    assert [event["did"] for event in info.pop("history")] == ["learned"]
    assert info.pop("expected")["accuracy"] == pytest.approx(model.expected_accuracy().overall, abs=1e-3)
    assert info == {
        "model": "m",
        "class": "AIRClassifier",
        "format": 1,
        "store": "per-class",
        "weighting": "inverse",
        "scale": "mean",
        "dtype": "float64",
        "features": 64,
        "backbone": None,
        "bytes": model.nbytes_,
        "lineage": 1,
        "ledger": None,
        "rows": 310,
        "priors": None,
    }


def test_counts_and_weights(files, run):
    run("learn", "train.npz", "--label", "y", "--gamma", 0.5, "-o", "m")
    model = AIRClassifier.load("m")
    rows = json.loads(run("info", "m", "--json").stdout)["classes"]
    np.testing.assert_allclose([row["count"] for row in rows], model.class_count_)
    np.testing.assert_allclose([row["weight"] for row in rows], model.class_weight_)
    lines = run("info", "m").stdout.splitlines()
    assert "gamma      0.5" in lines
    assert "rows       310 of 10 classes" in lines
    assert lines[-1].split() == ["9", "5", "2.581"]


def test_the_choice_of_gamma_is_in_the_file(files, run, monkeypatch):
    run("learn", "train.npz", "--label", "y", "-o", "m")
    monkeypatch.setattr("aircl.engine.ridge.choose_gamma", None)
    assert "(auto)" in run("info", "m").stdout


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_plot(suffix, files, run):
    run("learn", "train.npz", "--label", "y", "-o", "m")
    run("info", "m", "--plot", f"gamma{suffix}")
    start = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix]
    assert (files / f"gamma{suffix}").read_bytes().startswith(start)


def test_plot_needs_a_choice_and_a_known_image_type(files, run):
    run("learn", "train.npz", "--label", "y", "--gamma", 1, "-o", "m")
    assert "no choice of gamma to draw" in run("info", "m", "--plot", "g.png", code=1).stderr
    run("learn", "train.npz", "--label", "y", "-o", "m")
    before = set(files.iterdir())
    assert "type 'xyz' cannot be written. Choose one of" in run("info", "m", "--plot", "g.xyz", code=1).stderr
    assert set(files.iterdir()) == before


def test_files_that_are_no_models(files, run):
    save_file({"X": np.zeros((2, 2))}, "plain.safetensors")
    save_file({"X": np.zeros(2)}, "strange.safetensors", {"aircl": '{"class": "FileError"}'})
    save_file({"X": np.zeros(2)}, "garbled.safetensors", {"aircl": "{"})
    assert "not one that aircl wrote" in run("info", "plain.safetensors", code=1).stderr
    assert "format None" in run("info", "strange.safetensors", code=1).stderr
    assert "not JSON" in run("info", "garbled.safetensors", code=1).stderr
    assert "absent does not exist" in run("info", "absent", code=1).stderr
    run("learn", "train.npz", "--label", "y", "-o", "m")
    damaged = bytearray((files / "m").read_bytes())
    damaged[-1] ^= 1
    (files / "m").write_bytes(damaged)
    assert "checksum" in run("info", "m", code=1).stderr


def test_every_classifier_is_found_by_its_name(tmp_path):
    for name in ("AIRClassifier", "ACILClassifier"):
        cls = getattr(aircl, name)
        cls(0.1).fit(np.eye(2), [0, 1]).save(tmp_path / name)
        assert type(load_model(tmp_path / name)) is cls


def test_version_and_help(run):
    assert run("--version").stdout == f"aircl {aircl.__version__}\n"
    assert "evaluate" in run("--help").stdout


def test_a_calibrated_model_tells_what_it_expects(files, run):
    run("learn", "train.csv", "--label", "y", "-o", "m")
    model = AIRClassifier.load("m").set_params(calibrate=True, priors="count")
    model.save("m")
    info = json.loads(run("info", "m", "--json").stdout)
    found, expected = info["expected"], model.expected_accuracy()
    assert info["priors"] == "count"
    assert found["accuracy"] == pytest.approx(expected.overall, abs=1e-3)
    recalls = [row["recall"] for row in found["classes"]]
    assert recalls == sorted(recalls)
    assert recalls == pytest.approx(np.sort(expected.per_class).tolist(), abs=1e-3)
    first = found["confusions"][0]
    assert first["share"] == max(pair["share"] for pair in found["confusions"])
    text = run("info", "m").stdout
    assert f"{100 * found['accuracy']:.1f} % of new rows are right" in text
    assert f"{first['label']} -> {first['taken_for']}" in text


def test_what_expects_nothing_shows_nothing(files, run):
    np.savez("one.npz", X=np.eye(3), y=np.arange(3))
    run("learn", "one.npz", "--label", "y", "-o", "m")
    AIRClassifier.load("m").set_params(calibrate=True).save("m")
    assert json.loads(run("info", "m", "--json").stdout)["expected"] is None
    assert "of new rows are right" not in run("info", "m").stdout
    assert json.loads(run("evaluate", "m", "one.npz", "--label", "y", "--json").stdout)["expected_accuracy"] is None
