"""A service that keeps a ledger, and one that takes texts."""

from __future__ import annotations

import numpy as np
import pytest

from aircl import AIRClassifier
from aircl.serve.versions import Directory

X, Y = np.eye(3), ["cat", "dog", "owl"]
IDS = ["a", "b", "c"]


@pytest.fixture
def ledger(tmp_path):
    directory = Directory(tmp_path / "ledger")
    directory.make(AIRClassifier(0.1, expansion=None, calibrate=False, ledger=True))
    return directory


def labelled(X, labels, ids):
    return {"features": np.asarray(X).tolist(), "labels": labels, "ids": ids}


def test_no_row_is_learned_twice_or_forgotten_unlearned(ledger, local):
    with local(ledger) as service:
        assert service.post("/learn", labelled(X, Y, IDS)).status_code == 200
        refused = service.post("/learn", labelled(X, Y, IDS))
        assert refused.status_code == 409
        assert '"on_duplicate": "skip"' in refused.json()["detail"]
        assert "POST /correct learns" in refused.json()["detail"]
        assert 'give "ids"' in service.learn(X, Y).json()["detail"]
        skip = {**labelled(X, Y, ["a", "b", "d"]), "on_duplicate": "skip"}
        assert service.post("/learn", skip, key="skip").json()["rows"] == 1
        assert service.post("/learn", skip, key="skip").json() == {"version": 4, "rows": 1, "repeated": True}
        assert service.rows() == {"cat": 1, "dog": 1, "owl": 2}
        assert service.post("/forget", labelled(2 * X[:1], ["cat"], ["a"])).status_code == 409
        assert service.post("/forget", labelled(X[:1], ["dog"], ["a"])).status_code == 409
        assert service.post("/forget", labelled(X[:1], ["cat"], ["z"])).status_code == 409
        assert service.rows() == {"cat": 1, "dog": 1, "owl": 2}
        assert service.post("/forget", labelled(X[:1], ["cat"], ["a"])).status_code == 200
        assert service.rows() == {"dog": 1, "owl": 2}
    with local(ledger) as service:  # it is part of the checkpoint
        assert service.post("/learn", labelled(X[1:2], ["dog"], ["b"])).status_code == 409


def test_rows_are_corrected_by_their_ids(ledger, local):
    with local(ledger) as service:
        service.post("/learn", labelled(X, Y, IDS))
        wrong = {"old": labelled(X[:1], ["owl"], ["a"]), "new": labelled(X[:1], ["fox"], ["a"])}
        assert service.post("/correct", wrong).status_code == 409
        nameless = {"old": labelled(X[:1], ["cat"], None), "new": labelled(X[:1], ["fox"], None)}
        assert service.post("/correct", nameless).status_code == 422
        asked = {"old": labelled(X[:1], ["cat"], ["a"]), "new": labelled(X[:1], ["fox"], ["a"])}
        assert service.post("/correct", asked, key="1").json()["rows"] == 1
        assert service.post("/correct", asked, key="1").json()["repeated"]
        assert service.post("/correct", asked, key="2").status_code == 409
        unknown = {"old": labelled(X[:1], ["fox"], ["z"]), "new": labelled(X[:1], ["cat"], ["z"])}
        assert service.post("/correct", unknown).status_code == 409
        assert service.rows() == {"dog": 1, "fox": 1, "owl": 1}


def test_a_correction_is_made_as_a_whole(ledger, local):
    """New rows that the model refuses when the old ones are forgotten already: it is as if nothing had been asked."""
    with local(ledger) as service:
        service.post("/learn", labelled(X, Y, IDS))
        asked = {"old": labelled(X[:1], ["cat"], ["a"]), "new": labelled(1e200 * X[:1], ["fox"], ["a"])}
        assert service.post("/correct", asked, key="1").status_code == 422
        assert service.rows() == {"cat": 1, "dog": 1, "owl": 1}
        asked["new"] = labelled(X[:1], ["fox"], ["a"])
        assert service.post("/correct", asked, key="1").status_code == 200
        assert service.rows() == {"dog": 1, "fox": 1, "owl": 1}
        assert service.http.get("/healthz").json()["status"] == "ok"


def test_a_ledger_is_replayed(ledger, token_of_ledger, processes, client_of_ledger):
    running = processes(ledger.path)
    with client_of_ledger(running) as client:
        client.learn(X, Y, ids=IDS)
        client.correct(X[:1], ["cat"], ["fox"], ids=["a"])
        client.forget(X[1:2], ["dog"], ids=["b"])
    running.kill()
    with client_of_ledger(processes(ledger.path)) as client:
        assert client.classes() == {"fox": 1, "owl": 1}
        with pytest.raises(ValueError, match="409"):
            client.learn(X[2:], ["owl"], ids=["c"])
        assert client.learn(X[2:], ["owl"], ids=["c"], on_duplicate="skip")["rows"] == 0
        assert client.classes() == {"fox": 1, "owl": 1}


@pytest.fixture
def token_of_ledger(ledger):
    from aircl.serve.tokens import add_token

    return add_token(ledger.path / "tokens.json", "tester", ("predict", "learn", "admin"))


@pytest.fixture
def client_of_ledger(token_of_ledger):
    from aircl import Client

    return lambda running: Client(running.url, token_of_ledger, timeout=120)


def test_without_a_ledger_ids_are_refused(place, local):
    with local(place) as service:
        assert service.post("/learn", labelled(X, Y, IDS)).status_code == 422
        skip = {"features": X.tolist(), "labels": Y, "on_duplicate": "skip"}
        assert service.post("/learn", skip).status_code == 422
        both = {"old": labelled(X, Y, IDS), "new": labelled(X, Y, IDS)}
        refused = service.post("/correct", both)
        assert (refused.status_code, "--ledger" in refused.text) == (422, True)


def test_texts(tmp_path, local):
    directory = Directory(tmp_path / "texts")
    directory.make(AIRClassifier(backbone="char-ngrams", ledger=True))
    texts, labels = ["Paris", "Lyon", "Nantes", "Tokyo", "Osaka", "Kyoto"], ["fr"] * 3 + ["jp"] * 3
    with local(directory) as service:
        assert service.post("/learn", {"features": X.tolist(), "labels": Y}).status_code == 422
        assert service.post("/learn", {"texts": [], "labels": []}).status_code == 422
        assert service.post("/learn", {"texts": texts, "labels": labels}).status_code == 200
        service.wait()
        found = service.post("/predict", {"texts": ["Lyons", "Tokio"]}).json()["predictions"]
        assert [entry["label"] for entry in found] == ["fr", "jp"]
        assert service.post("/predict", {"texts": "Lyons"}).json()["predictions"][0]["label"] == "fr"
        assert service.post("/predict", {"features": [1.0, 2.0]}).status_code == 422
        assert service.http.get("/healthz").json()["backbone"] == "char-ngrams"
        assert service.post("/forget", {"texts": ["Berlin"], "labels": ["fr"]}).status_code == 409
        assert service.post("/forget", {"texts": ["Lyon"], "labels": ["fr"]}).status_code == 200
    with local(directory, max_rows=1) as service:
        assert service.rows() == {"fr": 2, "jp": 3}
        assert service.post("/predict", {"texts": ["Lyon", "Paris"]}).status_code == 413


def test_a_rollback_takes_the_ledger_back_and_progressive_accuracy_counts_what_was_learned(ledger, local):
    with local(ledger, checkpoint_rows=3) as service:
        service.post("/learn", labelled(X, Y, IDS))
        service.wait_for_version(1)
        service.wait()
        for again in ({}, {"on_duplicate": "skip"}):  # refused, and skipped: nothing of it is learned
            service.post("/learn", labelled(X, Y, IDS) | again)
        assert service.http.get("/drift").json()["progressive_rows"] == 0
        assert service.post("/learn", labelled(X, ["owl"] * 3, ["d", "e", "f"])).status_code == 200
        figures = service.http.get("/drift").json()
        assert (figures["progressive_rows"], figures["progressive"]) == (3, pytest.approx(1 / 3))
        assert service.post("/rollback", {"version": 1}).status_code == 200
        assert service.post("/learn", labelled(X, Y, IDS)).status_code == 409
        assert service.post("/learn", labelled(X, Y, ["d", "e", "f"])).status_code == 200
