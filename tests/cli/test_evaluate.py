from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, recall_score

from aircl import AIRClassifier


@pytest.fixture
def model(files, run):
    run("learn", "train.npz", "--label", "y", "-o", "model")
    return AIRClassifier.load("model")


def test_json_agrees_with_scikit_learn(model, digits, run):
    truth, prediction = digits[3], model.predict(digits[2])
    result = json.loads(run("evaluate", "model", "test.csv", "--label", "y", "--batch", 100, "--json").stdout)
    recall = recall_score(truth, prediction, average=None)
    assert result["rows"] == 897
    assert result["accuracy"] == pytest.approx(accuracy_score(truth, prediction))
    assert result["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, prediction))
    assert result["balanced_accuracy"] > 0.75
    assert [row["label"] for row in result["classes"]] == list(range(10))
    assert [row["training_count"] for row in result["classes"]] == [80, 80, 40, 40, 20, 20, 10, 10, 5, 5]
    assert [row["recall"] for row in result["classes"]] == pytest.approx(recall)
    assert result["groups"]["head"] == {"training_count": "> 100", "classes": 0, "recall": None}
    assert result["groups"]["middle"]["recall"] == pytest.approx(recall[:6].mean())
    assert result["groups"]["tail"]["recall"] == pytest.approx(recall[6:].mean())


def test_tables(model, digits, run):
    result = run("evaluate", "model", "test.csv", "--label", "y")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0][0] == "accuracy"
    assert lines[1][0] == "class-balanced"
    assert any(line[:2] == ["tail", "<"] for line in lines)
    assert any(line[:3] == ["9", "5", "92"] for line in lines)
    assert result.stderr.startswith("Evaluated 897 rows of 1 file")


def test_expected_beside_measured(model, digits, run):
    model.set_params(calibrate=False).save("plain")
    plain = json.loads(run("evaluate", "plain", "test.csv", "--label", "y", "--json").stdout)
    assert plain["expected_accuracy"] is None
    model.set_params(calibrate=True).save("calibrated")
    result = json.loads(run("evaluate", "calibrated", "test.csv", "--label", "y", "--json").stdout)
    expected = model.expected_accuracy().per_class
    assert [row["expected_recall"] for row in result["classes"]] == pytest.approx(expected.tolist(), abs=1e-3)
    assert result["expected_balanced_accuracy"] == pytest.approx(expected.mean(), abs=1e-3)
    assert result["expected_accuracy"] == pytest.approx(np.bincount(digits[3]) @ expected / 897, abs=1e-3)
    lines = run("evaluate", "calibrated", "test.csv", "--label", "y").stdout.splitlines()
    first, second = 100 * result["expected_accuracy"], 100 * result["expected_balanced_accuracy"]
    assert lines[2].split(maxsplit=4)[4] == f"{first:.1f} %, class-balanced {second:.1f} %"
    assert any(line.split()[-4:] == ["recall", "%", "expected", "%"] for line in lines)


def test_labels_that_were_never_learned_count_as_wrong(model, digits, run):
    np.savez("more.npz", X=digits[2][:4], y=np.array([11, 12, *model.predict(digits[2][2:4])]))
    result = run("evaluate", "model", "more.npz", "--label", "y", "--json")
    assert json.loads(result.stdout)["accuracy"] == 0.5
    assert "2 labels were never learned" in result.stderr
    assert run("evaluate", "model", "more.npz", "--label", "y", "--json", "--quiet").stderr == ""


def test_problems(model, run, digits, files):
    assert "no column 'z' for --label" in run("evaluate", "model", "test.csv", "--label", "z", code=1).stderr
    np.savez("words.npz", X=digits[2], y=digits[3].astype(str))
    assert "its labels are not integers" in run("evaluate", "model", "words.npz", "--label", "y", code=1).stderr
    np.savez("none.npz", X=digits[2][:0], y=digits[3][:0])
    assert "nothing to evaluate" in run("evaluate", "model", "none.npz", "--label", "y", code=1).stderr
    AIRClassifier().fit(digits[2], digits[3]).save("unknown")  # it does not know its label
    np.savez("rows.npz", X=digits[2], z=digits[3])
    assert "--label" in run("evaluate", "unknown", "rows.npz", code=2).stderr
