"""`aircl export`, and predictions of what it writes."""

import json

import pytest

from aircl import load_export


@pytest.fixture
def model(files, run):
    run("learn", "train.csv", "--label", "y", "--expand", 100, "-o", "m")
    return files / "m"


@pytest.mark.parametrize("name", ["e.safetensors", "e", "e.onnx"])
def test_an_export_predicts_what_the_model_does(model, run, name):
    if name == "e.onnx":
        pytest.importorskip("onnx")
    said = run("export", "m", "-o", name)
    assert said.stderr.startswith(f"Exported 10 classes, 64 features, to {name} (")
    assert (model.parent / name).stat().st_size < model.stat().st_size / 4
    options = ("test.csv", "--label", "y", "--proba", "--quiet")
    expected = run("predict", "m", *options)
    if name == "e.onnx":
        lines = [line.split()[0] for line in expected.stdout.splitlines()]
        assert [line.split()[0] for line in run("predict", name, *options).stdout.splitlines()] == lines
    else:
        assert run("predict", name, *options).stdout == expected.stdout
    assert load_export(name).n_features_in_ == 64


def test_it_says_what_it_wrote(model, run):
    told = json.loads(run("export", "m", "-o", "e", "--json", "--quiet").stdout)
    size = (model.parent / "e").stat().st_size
    assert told == {"export": "e", "classes": 10, "features": 64, "bytes": size}


@pytest.mark.parametrize("name", ["e", "e.onnx"])
def test_what_an_export_cannot_do_is_said(model, run, name):
    if name == "e.onnx":
        pytest.importorskip("onnx")
    run("export", "m", "-o", name)
    for command in (
        ("learn", "train.csv", "--label", "y", "--append", name),
        ("merge", "m", name),
        ("forget", name, "--class", "3"),
    ):
        said = run(*command, "-o", "m2", code=1).stderr
        assert f"{name} is an export" in said, said
        assert "holds no statistics" in said
    assert f"{name} is an export" in run("info", name, code=1).stderr
    run("export", "m", "-o", "m", code=1)


@pytest.mark.parametrize("name", ["e", "e.onnx"])
def test_an_export_of_texts_knows_its_backbone_and_columns(tmp_path, monkeypatch, run, name):
    if name == "e.onnx":
        pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    rows = "where is my card,card\nwhich rate,rate\nmy card is gone,card\nthe rate of today,rate\n"
    (tmp_path / "t.csv").write_text("question,label\n" + rows)
    run("learn", "t.csv", "--text", "question", "--label", "label", "--backbone", "char-ngrams", "-o", "m")
    run("export", "m", "-o", name)
    (tmp_path / "new.csv").write_text("question\na card\nrates\n")
    assert run("predict", name, "new.csv", "--quiet").stdout == run("predict", "m", "new.csv", "--quiet").stdout
    assert load_export(name).predict(["a card", "rates"]).tolist() == ["card", "rate"]
