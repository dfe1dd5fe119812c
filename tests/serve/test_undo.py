"""Taking back the last change: the statistics are those from before, bit by bit, also after a kill."""

from __future__ import annotations

import numpy as np
import pytest

from aircl import AIRClassifier
from aircl.serve.tokens import add_token
from aircl.serve.versions import Directory

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 6))
Y = [f"class {number % 4}" for number in range(40)]


def statistics(service):
    """Return everything that was learned, as bytes."""
    learner = getattr(service.service.moment().model, "_learner", None)
    if learner is None:
        return None
    state = learner.sealed()
    arrays = {name: np.asarray(array).tobytes() for name, array in state.statistics.arrays().items()}
    ledger = (
        {} if state.ledger is None else {name: np.asarray(a).tobytes() for name, a in state.ledger.arrays().items()}
    )
    return arrays, ledger, state.labels.classes.tolist()


@pytest.fixture(params=["journal", "checkpoint", "no journal"])
def settings(request):
    """Return how changes are durable: what is to be taken back is in the journal, or in a checkpoint."""
    return {"journal": {}, "checkpoint": {"checkpoint_rows": 1}, "no journal": {"journal": False}}[request.param]


@pytest.mark.parametrize("ledger", [False, True])
@pytest.mark.parametrize("store", ["per-class", "shared"])
def test_the_last_change_is_taken_back_bit_by_bit(tmp_path, local, store, ledger, settings):
    directory = Directory(tmp_path / "service")
    directory.make(AIRClassifier(0.1, expansion=None, calibrate=False, store=store, ledger=ledger))
    with local(directory, **settings) as service:
        service.learn(X[:30], Y[:30])
        before, counts = statistics(service), service.rows()
        for change in (
            ("/learn", {"features": X[30:31].tolist(), "labels": ["new"]}),
            ("/learn", {"features": X[30:].tolist(), "labels": Y[30:]}),
            ("/forget", {"features": X[:3].tolist(), "labels": Y[:3]}),
        ):
            version = service.post(*change).json()["version"]
            assert service.rows() != counts
            answer = service.post("/undo", {"version": version}, key=f"undo {version}")
            rows = len(change[1]["labels"])
            assert answer.json() == {"version": version + 1, "rows": rows, "repeated": False}
            assert service.rows() == counts
            assert statistics(service) == before
            assert service.post("/undo", {"version": version}, key=f"undo {version}").json()["repeated"]
            assert service.post("/undo", {"version": version}).status_code == 409
        service.learn(X[30:], Y[30:])  # nothing of what was taken back comes along
        service.wait()
        twin = AIRClassifier(0.1, expansion=None, calibrate=False, store=store).fit(X, Y)
        known = service.service.solved.snapshot
        np.testing.assert_allclose(known.decision_function(X), twin.decision_function(X), rtol=1e-7, atol=1e-9)
        counts = service.rows()
    with local(directory) as service:
        assert service.rows() == counts


def test_the_first_change_is_taken_back(place, local):
    with local(place) as service:
        assert service.post("/undo", {"version": 1}).status_code == 409
        service.learn(X, Y)
        assert service.post("/undo", {"version": 1}).status_code == 200
        assert service.rows() == {}
        assert service.predict(X).status_code == 409
        service.learn(X, Y)
        service.wait()
        assert service.predict(X[:1]).status_code == 200


def test_only_the_last_change_is_taken_back(place, local):
    with local(place) as service:
        service.learn(X[:20], Y[:20])
        service.learn(X[20:], Y[20:])
        refused = service.post("/undo", {"version": 1})
        assert (refused.status_code, "change 2 came after 1" in refused.json()["detail"]) == (409, True)
        assert service.post("/undo", {"version": 7}).status_code == 409
        assert service.post("/undo", {"version": 0}).status_code == 422
        assert service.post("/learn", {"features": [[1.0]], "labels": ["narrow"]}).status_code == 422
        assert service.post("/undo", {"version": 2}).status_code == 200  # what was refused is not between
        assert sum(service.rows().values()) == 20


def test_changes_of_every_kind_are_taken_back_but_a_purge(place, local, tmp_path):
    AIRClassifier(0.1, expansion=None, calibrate=False).fit(X, Y).save(tmp_path / "other")
    headers = {"Content-Type": "application/octet-stream"}
    with local(place, checkpoint_rows=1) as service:
        service.learn(X[:20], Y[:20])
        service.wait_for_version(1)
        before = statistics(service)
        for change in (
            lambda: service.post("/rollback", {"version": 0}),
            lambda: service.http.post("/merge", content=(tmp_path / "other").read_bytes(), headers=headers),
            lambda: service.post("/forget", {"classes": ["class 0"]}),
        ):
            version = change().json()["version"]
            assert statistics(service) != before
            assert service.post("/undo", {"version": version}).status_code == 200
            assert statistics(service) == before
        version = service.post("/forget", {"classes": ["class 0"], "purge": True}).json()["version"]
        assert service.post("/undo", {"version": version}).status_code == 409


def test_who_may_only_learn_takes_back_only_that(place, local):
    admin, learner = (
        {"Authorization": f"Bearer {add_token(place.path / 'tokens.json', name, scopes)}"}
        for name, scopes in (("admin", ("predict", "learn", "admin")), ("learner", ("predict", "learn")))
    )
    with local(place) as service:
        rows = {"features": X.tolist(), "labels": Y}
        service.post("/learn", rows, **learner)
        assert service.post("/undo", {"version": 1}, **learner).status_code == 200
        service.post("/learn", rows, **learner)
        service.post("/forget", {"classes": ["class 0"]}, **admin)
        assert service.post("/undo", {"version": 4}, **learner).status_code == 403
        assert service.post("/undo", {"version": 4}, **admin).status_code == 200


def test_what_is_taken_back_stays_so_after_a_kill(place, token, processes, client_of):
    running = processes(place.path)
    with client_of(running) as client:
        client.learn(X[:20], Y[:20])
        version = client.learn(X[20:], Y[20:])["version"]
        assert client.undo(version)["version"] == version + 1
    running.kill()
    running = processes(place.path)
    with client_of(running) as client:
        assert sum(client.classes().values()) == 20
        version = client.learn(X[20:], Y[20:])["version"]
        assert version == 4
    running.kill()  # the last change of a journal that is replayed can be taken back, too
    with client_of(processes(place.path)) as client:
        client.undo(version)
        assert sum(client.classes().values()) == 20
