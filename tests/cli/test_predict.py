from __future__ import annotations

import csv

import numpy as np
import pytest
from pyarrow import parquet

import aircl
from aircl import AIRClassifier


@pytest.fixture
def model(files, run):
    run("learn", "train.csv", "--label", "y", "-o", "model")
    return AIRClassifier.load("model")


@pytest.fixture
def expected(model, digits):
    model._learner.change(lambda state: state.changed(inputs=state.inputs.with_names(None)))
    return model.predict(digits[2]), model.predict_proba(digits[2])


def test_one_label_a_line(expected, run):
    result = run("predict", "model", "test.csv", "--batch", 100)
    assert result.stdout.split("\n") == [*map(str, expected[0]), ""]
    assert result.stderr.startswith(
        "Note: test.csv: columns that are not features of the model: y.\nPredicted 897 rows"
    )
    assert result.output.splitlines()[1:-1] == [*map(str, expected[0])]  # a summary comes after what it sums up


def test_predictions_are_good(expected, digits, run):
    assert np.mean(expected[0] == digits[3]) > 0.75
    result = run("predict", "model", "test.csv", "--label", "y")
    assert f"{100 * np.mean(expected[0] == digits[3]):.1f} % agree with y" in result.stderr


def test_every_file_type_gives_the_same_labels(written, digits, expected, run, tmp_path):
    path = written(digits[2], digits[3], "renamed")
    (tmp_path / "m").write_bytes((tmp_path / "model").read_bytes())
    if path.suffix in (".csv", ".tsv", ".jsonl", ".parquet") and "embedding" not in path.read_bytes().decode("latin-1"):
        assert "lacks 64 of the 64 features" in run("predict", "model", path, code=1).stderr
        return
    result = run("predict", "model", path, "--label", "y", "--quiet")
    assert result.stdout.splitlines() == [*map(str, expected[0])]


def test_npy_files_can_be_predicted_but_not_learned(expected, digits, run):
    np.save("test.npy", digits[2])
    assert run("predict", "model", "test.npy").stdout.splitlines() == [*map(str, expected[0])]
    assert "no labels" in run("learn", "test.npy", "--label", "y", "-o", "m", code=1).stderr


def test_columns_in_another_order(model, digits, expected, run, files):
    order = np.random.default_rng(0).permutation(64)
    lines = [",".join(f"px{i}" for i in order)]
    lines += [",".join(map(repr, row)) for row in digits[2][:, order].tolist()]
    (files / "shuffled.csv").write_text("\n".join(lines))
    assert run("predict", "model", "shuffled.csv").stdout.splitlines() == [*map(str, expected[0])]


def test_proba_on_stdout(expected, digits, run):
    rows = list(csv.reader(run("predict", "model", "test.csv", "--proba").stdout.splitlines()))
    assert rows[0] == ["prediction", *(f"p_{digit}" for digit in range(10))]
    table = np.array(rows[1:], dtype=float)
    np.testing.assert_array_equal(table[:, 0], expected[0])
    np.testing.assert_allclose(table[:, 1:], expected[1], rtol=1e-5)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize("full", [False, True])
def test_output_files(suffix, full, expected, digits, run, files):
    options = ["--label", "y", "--proba"] if full else []
    before = set(files.iterdir())
    path = files / f"out{suffix}"
    assert run("predict", "model", "test.csv", *options, "--batch", 100, "-o", path).stdout == ""
    assert set(files.iterdir()) == before | {path}
    label = proba = None
    if suffix == ".npz":
        with np.load(path) as arrays:
            prediction, label, proba = (arrays.get(name) for name in ("prediction", "label", "proba"))
    else:
        if suffix == ".csv":
            header, *rows = csv.reader(path.read_text().splitlines())
            columns = dict(zip(header, np.array(rows, dtype=float).T, strict=True))
        else:
            table = parquet.read_table(path)
            columns = {name: table[name].to_numpy() for name in table.column_names}
        prediction, label = columns.pop("prediction"), columns.pop("label", None)
        proba = np.array(list(columns.values())).T if columns else None
    np.testing.assert_array_equal(prediction, expected[0])
    assert (label is not None) == (proba is not None) == full
    if full:
        np.testing.assert_array_equal(label, digits[3])
        np.testing.assert_allclose(proba, expected[1], rtol=1e-5)


def test_string_labels_in_every_output(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text('y,u,v\n"a, b",0,1\nlong name,1,0\n')
    run("learn", "a.csv", "--label", "y", "--gamma", 0.1, "-o", "m")
    assert run("predict", "m", "a.csv").stdout == "a, b\nlong name\n"
    for suffix in (".csv", ".parquet", ".npz"):
        run("predict", "m", "a.csv", "--label", "y", "-o", f"out{suffix}")
    assert (tmp_path / "out.csv").read_text() == 'prediction,label\n"a, b","a, b"\nlong name,long name\n'
    assert parquet.read_table("out.parquet")["prediction"].to_pylist() == ["a, b", "long name"]
    with np.load("out.npz") as arrays:
        assert arrays["prediction"].tolist() == ["a, b", "long name"]


def test_a_failure_leaves_an_old_output_as_it_was(model, run, files):
    (files / "broken.csv").write_text((files / "test.csv").read_text() + "1,2,3\n")
    for suffix in (".csv", ".parquet", ".npz"):
        path = files / f"out{suffix}"
        path.write_text("old")
        before = set(files.iterdir())
        result = run("predict", "model", "broken.csv", "--batch", 10, "-o", path, code=1)
        assert "broken.csv, line 899: 3 fields, but the header has 65" in result.stderr
        assert path.read_text() == "old"
        assert set(files.iterdir()) == before


def test_wrong_usage_and_problems(model, run, files):
    assert "should end in one of" in run("predict", "model", "test.csv", "-o", "out.txt", code=2).stderr
    assert "train.npz" in run("predict", "train.npz", "test.csv", code=1).stderr
    assert "would replace" in run("predict", "model", "test.csv", "-o", "test.csv", code=1).stderr
    (files / "words.csv").write_text((files / "test.csv").read_text().replace("\n", "\nx", 1))
    assert "line 2: the label" in run("predict", "model", "words.csv", "--label", "y", code=1).stderr


# -- answers that are withheld, other priors --
def table(text):
    rows = list(csv.DictReader(text.splitlines()))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@pytest.fixture
def decided(model, expected, digits):
    model.set_params(calibrate=True)
    return model.decide(digits[2], confidence=0.8, novelty=0.05)


def test_doubtful_and_unknown_rows_have_no_answer(decided, run, digits):
    result = run("predict", "model", "test.csv", "--confidence", 0.8, "--novelty", 0.05, "--label", "y")
    cells = table(result.stdout)
    assert list(cells) == ["prediction", "probability", "novelty", "reason"]
    assert set(decided.reason.tolist()) == {"", "doubtful", "unknown"}
    assert np.array_equal(cells["reason"], decided.reason)
    assert cells["prediction"].tolist() == ["" if label is None else str(label) for label in decided.labels.tolist()]
    np.testing.assert_allclose(cells["probability"].astype(float), decided.probability, rtol=1e-4)
    np.testing.assert_allclose(cells["novelty"].astype(float), decided.novelty, rtol=1e-3, atol=1e-6)
    right = np.mean(decided.labels.data[decided.answered] == digits[3][decided.answered])
    withheld = int((~decided.answered).sum())
    assert f"{withheld} without an answer: {100 * right:.1f} % agree with y" in result.stderr


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_files_say_what_has_no_answer(suffix, decided, run, files):
    path = files / f"out{suffix}"
    run("predict", "model", "test.csv", "--confidence", 0.8, "--novelty", 0.05, "--top", 2, "--batch", 100, "-o", path)
    if suffix == ".npz":
        with np.load(path) as arrays:
            prediction, reason, second = (arrays[name] for name in ("prediction", "reason", "prediction_2"))
        assert np.array_equal(prediction, decided.labels.data)
    else:
        if suffix == ".parquet":
            columns = parquet.read_table(path).to_pydict()
            prediction = columns["prediction"]
        else:
            columns = table(path.read_text())
            prediction = [int(label) if label else None for label in columns["prediction"]]
        assert prediction == decided.labels.tolist()
        reason, second = np.array(columns["reason"]), np.array(columns["prediction_2"])
    assert np.array_equal(reason, decided.reason)
    assert not np.any(second.astype(int) == decided.labels.data)


def test_the_most_probable_labels(model, expected, digits, run):
    cells = table(run("predict", "model", "test.csv", "--top", 3).stdout)
    order = np.argsort(-expected[1], axis=1)
    names = ["prediction", "probability", "prediction_2", "probability_2", "prediction_3", "probability_3"]
    assert list(cells) == names
    for rank, (label, probability) in enumerate(zip(names[::2], names[1::2], strict=True)):
        assert np.array_equal(cells[label].astype(int), model.classes_[order[:, rank]])
        p = np.take_along_axis(expected[1], order, axis=1)[:, rank]
        np.testing.assert_allclose(cells[probability].astype(float), p, rtol=1e-4, atol=1e-9)
    assert len(table(run("predict", "model", "test.csv", "--top", 99).stdout)) == 20


@pytest.mark.parametrize("priors", ["count", "priors.json"])
def test_other_priors(priors, model, expected, digits, run, files):
    (files / "priors.json").write_text('{"0": 0, ' + ", ".join(f'"{digit}": {digit}' for digit in range(1, 10)) + "}")
    asked = "count" if priors == "count" else dict(enumerate(range(10)))
    answers = model.set_params(priors=asked).predict(digits[2])
    assert not np.array_equal(answers, expected[0])
    assert run("predict", "model", "test.csv", "--priors", priors).stdout.splitlines() == [*map(str, answers)]
    run("learn", "train.csv", "--label", "y", "--priors", priors, "-o", "other")
    assert AIRClassifier.load("other").priors == asked
    assert run("predict", "other", "test.csv").stdout.splitlines() == [*map(str, answers)]
    run("evaluate", "model", "test.csv", "--label", "y", "--priors", priors)


def test_bad_thresholds_and_priors_are_refused(model, run, files):
    assert "--confidence" in run("predict", "model", "test.csv", "--confidence", 1.5, code=2).stderr
    assert "--priors" in run("predict", "model", "test.csv", "--priors", "often", code=2).stderr
    (files / "few.json").write_text('{"0": 1}')
    assert (
        "no probability for the classes [1, 2"
        in run("predict", "model", "test.csv", "--priors", "few.json", code=1).stderr
    )
    (files / "bad.json").write_text("[1]")
    assert "bad.json" in run("learn", "train.csv", "--label", "y", "--priors", "bad.json", "-o", "m", code=1).stderr
    assert not (files / "m").exists()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("NCMClassifier", {}),
        ("FeCAMClassifier", {}),
        ("SLDAClassifier", {}),
        ("DSALClassifier", {"n_components": 40, "random_state": 0}),
        ("RecursiveACILClassifier", {"gamma": 0.5}),
        ("AEFOCLClassifier", {"gamma": 0.5}),
    ],
)
def test_every_classifier_that_python_saved_can_be_used_here(name, settings, digits, tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, *_ = digits
    classifier = getattr(aircl, name)(**settings).fit(X[:200], y[:200])
    classifier.save("m")
    np.savez("old.npz", X=X[:20], y=y[:20])
    np.savez("new.npz", X=X[200:], y=y[200:])
    assert name in run("info", "m").stdout
    assert "accuracy" in run("evaluate", "m", "new.npz", "--label", "y").stdout
    labels = run("predict", "m", "new.npz", "--features", "X", "-q").stdout.split()
    assert labels == [str(label) for label in classifier.predict(X[200:])]
    told = run("learn", "new.npz", "--label", "y", "--append", "m", "-o", "m2", code=None)
    assert told.exit_code == 0 or "fault" not in told.stderr
    forgot = run("forget", "m", "old.npz", "--label", "y", "-o", "m3", code=None)
    assert forgot.exit_code == 0 or "cannot forget" in forgot.stderr
    if not hasattr(classifier, "predict_proba"):
        for option in (["--proba"], ["--top", 2]):
            refused = run("predict", "m", "new.npz", "--features", "X", *option, code=1)
            assert "no probabilities" in refused.stderr
            assert not refused.stdout
    if not hasattr(classifier, "decide"):
        assert f"is a {name}" in run("predict", "m", "new.npz", "--features", "X", "--novelty", 0.1, code=1).stderr
