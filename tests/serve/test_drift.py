"""Novelty, answers that are withheld, and whether rows are still like those that were learned."""

from __future__ import annotations

import numpy as np
import pytest

from aircl import AIRClassifier
from aircl.serve import drift
from aircl.serve.versions import Directory

from .conftest import wait_until

LABELS = ["cat", "dog", "owl"]


def rows(n, seed, shift=0.0, noise=0.5):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return 4 * np.eye(3, 6)[y] + noise * rng.standard_normal((n, 6)) + shift, [LABELS[i] for i in y]


@pytest.fixture
def calibrated(tmp_path):
    directory = Directory(tmp_path / "calibrated")
    directory.make(AIRClassifier(expansion=None))
    return directory


def test_rows_that_are_novel_or_doubtful_have_no_answer(calibrated, local):
    X, y = rows(90, 0, noise=1.2)
    strange = np.array([[4, 0, 0, 0, 0, 0], [0, 0, 0, 30, 30, 30], [2, 2, 0, 0, 0, 0]])
    with local(calibrated) as service:
        assert service.predict(strange, novelty=0.01).status_code == 409
        service.learn(X, y)
        service.wait()
        twin = AIRClassifier(expansion=None).fit(X, y)
        answer = service.predict(strange, novelty=0.01, confidence=0.9, top=2).json()
        told, decided = answer["predictions"], twin.decide(strange, confidence=0.9, novelty=0.01)
        assert answer["novelty_version"] == answer["version"] == 1
        assert [entry.get("reason", "") for entry in told] == decided.reason.tolist() == ["", "unknown", "doubtful"]
        assert [entry["label"] for entry in told] == ["cat", None, None]
        assert [entry["novelty"] for entry in told] == pytest.approx(decided.novelty.tolist(), rel=1e-6)
        assert [entry["top"][0]["label"] for entry in told] == twin.predict(strange).tolist()
        only_told = service.predict(strange, novelty=0).json()["predictions"]
        assert [entry["label"] for entry in only_told] == twin.predict(strange).tolist()
        for wrong in ({"novelty": 1.5}, {"novelty": "0.1"}, {"confidence": -1}):
            assert service.predict(strange, **wrong).status_code == 422


def test_novelty_needs_to_know_how_far_rows_lie_apart(calibrated, local):
    with local(calibrated) as service:
        service.learn(np.eye(3), LABELS)
        service.wait()
        refused = service.predict(np.eye(3), novelty=0.01)
        assert refused.status_code == 409
        assert "one sample of every class" in refused.json()["detail"]
        assert service.predict(np.eye(3)).status_code == 200


def test_drift_is_seen_in_predictions_and_in_what_is_learned(calibrated, local, monkeypatch):
    monkeypatch.setattr(drift, "SAMPLE_SECONDS", 0.0)
    X, y = rows(300, 0)
    with local(calibrated) as service:
        figures = service.http.get("/drift").json()
        assert figures["novel"] is figures["progressive"] is figures["shortfall"] is None
        service.learn(X, y)
        service.wait()
        service.predict(rows(60, 1)[0])
        wait_until(lambda: service.http.get("/drift").json()["novel_rows"] == 60)
        usual = service.http.get("/drift").json()["novel"]
        service.predict(rows(60, 2, shift=3.0)[0])
        wait_until(lambda: service.http.get("/drift").json()["novel_rows"] == 120)
        assert usual < 0.1
        assert service.http.get("/drift").json()["novel"] > 0.4
        wrong = [*y[1:], y[0]]
        service.learn(X, wrong)
        service.wait()  # no other solution between the figures and the metrics
        figures = service.http.get("/drift").json()
        assert figures["progressive"] < 0.1
        assert figures["shortfall"] == pytest.approx(figures["expected"] - figures["progressive"])
        text = service.http.get("/metrics").text
    for name, figure in (("novel_share", "novel"), ("accuracy_shortfall", "shortfall"), ("novel_usual", "novel_usual")):
        assert f"aircl_{name} {figures[figure]}" in text


def test_novelty_is_made_anew_at_most_a_part_of_the_time(calibrated, local, monkeypatch):
    X, y = rows(90, 0)
    with local(calibrated) as service:
        service.learn(X, y)
        service.wait()
        assert service.predict(X[:1], novelty=0).json()["novelty_version"] == 1
        service.learn(X, y)
        service.wait()
        service.service.drift._not_before = float("inf")
        answer = service.predict(X[:1], novelty=0).json()
        assert (answer["version"], answer["novelty_version"]) == (2, 1)
        service.service.drift._not_before = 0.0
        assert service.predict(X[:1], novelty=0).json()["novelty_version"] == 2


def test_accuracy_by_class_and_what_a_class_is_taken_for(calibrated, local):
    rng = np.random.default_rng(0)
    centres = np.array([[4.0, 0, 0], [0, 4.0, 0], [0, 4.0, 1.0]])  # the last two are alike
    X = np.repeat(centres, 60, axis=0) + rng.standard_normal((180, 3))
    with local(calibrated) as service:
        service.learn(X, np.repeat(LABELS, 60).tolist())
        service.wait()
        told = service.http.get("/expected-accuracy").json()
        twin = AIRClassifier(expansion=None).fit(X, np.repeat(LABELS, 60)).expected_accuracy()
    by_label = {entry["label"]: entry for entry in told["per_class"]}
    assert told["version"] == 1
    assert [by_label[label]["expected"] for label in LABELS] == pytest.approx(twin.per_class.tolist())
    assert by_label["dog"]["expected"] < by_label["cat"]["expected"]
    assert by_label["dog"]["confusions"][0]["label"] == "owl"
    share = next(share for true, other, share in twin.confusions if (true, other) == ("dog", "owl"))
    assert by_label["dog"]["confusions"][0]["share"] == pytest.approx(share)


def test_a_version_says_what_was_changed(place, local):
    X, y = np.eye(3), LABELS
    with local(place) as service:
        service.learn(np.repeat(X, 2, axis=0), np.repeat(y, 2).tolist())
        service.post("/forget", {"features": [X[0].tolist()], "labels": ["cat"]})
    with local(place, checkpoint_rows=3) as service:
        assert service.http.get("/versions").json()["versions"][-1]["changed"] == {"learn": 6, "forget": 1}
        service.learn(X, y)
        service.wait_for_version(3)
        *_, last = service.http.get("/versions").json()["versions"]
        assert set(last) == {"version", "made", "reason", "rows", "classes", "changed"}
        assert (last["changed"], last["rows"], last["classes"]) == ({"learn": 3}, 8.0, 3)


def test_rows_that_are_asked_for_again_count_once(calibrated, local, monkeypatch):
    monkeypatch.setattr(drift, "SAMPLE_SECONDS", 0.0)
    X, y = rows(90, 0)
    with local(calibrated) as service:
        service.learn(X, y)
        service.wait()
        for options in ({"novelty": 0.01}, {}):
            assert service.predict(X[:5], again=True, **options).status_code == 200
        service.predict(X[:7], novelty=0.01)
        wait_until(lambda: service.http.get("/drift").json()["novel_rows"] == 7)
