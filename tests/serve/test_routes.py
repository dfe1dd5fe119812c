"""What every route answers, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from aircl import AIRClassifier
from aircl.serve.routes import predicting
from aircl.serve.tokens import add_token, remove_token
from aircl.serve.versions import Directory

from .conftest import wait_until

X, Y = np.eye(3), ["cat", "dog", "owl"]


def test_it_learns_and_predicts(place, local):
    with local(place) as service:
        assert service.predict(X).status_code == 409
        assert service.learn(X, Y).json() == {"version": 1, "rows": 3, "repeated": False}
        service.wait()
        answer = service.predict(X, top=2).json()
        assert (answer["version"], answer["rows_behind"]) == (1, 0)
        assert [entry["label"] for entry in answer["predictions"]] == Y
        twin = AIRClassifier(0.1, expansion=None, calibrate=False).fit(X, Y)
        for entry, p in zip(answer["predictions"], twin.predict_proba(X), strict=True):
            assert [top["probability"] for top in entry["top"]] == pytest.approx(sorted(p, reverse=True)[:2])
        assert service.predict(X[1]).json()["predictions"][0]["label"] == "dog"
        sure = answer["predictions"][0]["probability"]
        unsure = service.predict(X[0], confidence=min(1, sure + 1e-6)).json()["predictions"]
        assert unsure == [{"label": None, "probability": pytest.approx(sure), "reason": "doubtful"}]
        assert service.predict(X[0], confidence=sure - 1e-6).json()["predictions"][0]["label"] == "cat"
        assert service.predict(X[0], confidence=1.5).status_code == 422
        assert service.rows() == {"cat": 1, "dog": 1, "owl": 1}


def test_it_forgets_rows_and_classes(place, local):
    with local(place) as service:
        service.learn([*X, *X], [*Y, *Y])
        rows = {"features": [X[0].tolist()], "labels": ["cat"]}
        assert service.post("/forget", rows).json()["rows"] == 1
        assert service.post("/forget", {"classes": ["dog"]}).json()["version"] == 3
        assert service.rows() == {"cat": 1, "owl": 2}
        assert service.post("/forget", {"classes": ["dog"]}).status_code == 422
        assert service.post("/forget", {**rows, "classes": ["cat"]}).status_code == 422
        assert service.post("/forget", {"features": [X[0].tolist()]}).status_code == 422


def test_what_is_forgotten_can_be_taken_from_older_versions(place, local):
    with local(place, checkpoint_rows=1) as service:
        service.learn([*X, *X], [*Y, *Y])
        service.post("/forget", {"classes": ["dog"], "purge": True})
        (version,) = service.http.get("/versions").json()["versions"]
        assert (version["version"], version["classes"], version["reason"]) == (2, 2, "forget-classes")
        assert len(list((place.path / "versions").iterdir())) == 1
    with local(place) as service:
        assert service.rows() == {"cat": 2, "owl": 2}


def test_sample_weights_are_learned_and_forgotten(place, local):
    with local(place) as service:
        asked = {"features": X.tolist(), "labels": Y, "sample_weight": [1.0, 2.5, 4.0]}
        assert service.post("/learn", asked).status_code == 200
        assert service.rows() == pytest.approx({"cat": 1, "dog": 2.5, "owl": 4})
        assert service.post("/learn", {**asked, "sample_weight": [1.0]}).status_code == 422
        assert service.post("/learn", {**asked, "sample_weight": [1.0, 1.0, -1.0]}).status_code == 422
        assert service.post("/forget", asked).status_code == 200
        assert service.rows() == {}


def test_it_merges_a_model_once(place, local, tmp_path):
    AIRClassifier(0.1, expansion=None, calibrate=False).fit(X, Y).save(tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    headers = {"Content-Type": "application/octet-stream", "Idempotency-Key": "1"}
    with local(place) as service:
        service.learn(X, Y)
        first = service.http.post("/merge", content=content, headers=headers)
        assert first.json() == {"version": 2, "rows": 3, "repeated": False}
        assert service.http.post("/merge", content=content, headers=headers).json()["repeated"]
        assert service.rows() == {"cat": 2, "dog": 2, "owl": 2}
        headers["Idempotency-Key"] = "2"
        assert service.http.post("/merge", content=content, headers=headers).status_code == 422  # it is in there
        refused = service.http.post("/merge", content=b"rubbish", headers=headers)
        assert refused.status_code == 422
        assert refused.json()["detail"].startswith("what was sent is not a whole safetensors file")
        assert service.http.post("/merge", content=b"{}", headers={"Content-Type": "text/plain"}).status_code == 415
        assert service.rows() == {"cat": 2, "dog": 2, "owl": 2}
    with local(place) as service:
        assert service.rows() == {"cat": 2, "dog": 2, "owl": 2}


def test_predictions_tell_how_far_behind_they_are(place, local, tmp_path):
    AIRClassifier(0.1, expansion=None, calibrate=False).fit(X, Y).save(tmp_path / "m")
    headers = {"Content-Type": "application/octet-stream"}

    def told(service):
        answer = service.predict(X).json()
        return answer["version"], answer["rows_behind"]

    with local(place) as service:
        service.learn(X, Y)
        service.wait()
        assert told(service) == (1, 0)
        service.service.writer._after = lambda: None  # nothing is solved from here on
        service.http.post("/merge", content=(tmp_path / "m").read_bytes(), headers=headers)
        assert told(service) == (1, 3)
        assert service.post("/forget", {"classes": ["cat"]}).json()["rows"] == 2
        assert told(service) == (1, 5)
        assert service.post("/rollback", {"version": 0}).json()["rows"] == 4
        assert told(service) == (1, 9)


def test_versions_can_be_rolled_back_to(place, local):
    with local(place, checkpoint_rows=3, keep_versions=3) as service:
        service.learn(X, Y)
        service.wait_for_version(1)
        service.learn(X, Y)
        service.wait_for_version(2)
        assert [entry["version"] for entry in service.http.get("/versions").json()["versions"]] == [0, 1, 2]
        assert service.post("/rollback", {"version": 1}, key="back").json()["version"] == 3
        assert service.post("/rollback", {"version": 1}, key="back").json()["repeated"]
        assert service.rows() == {"cat": 1, "dog": 1, "owl": 1}
        listed = service.http.get("/versions").json()["versions"]
        assert [(entry["version"], entry["reason"]) for entry in listed][-1] == (3, "rolled back to 1")
        assert service.post("/rollback", {"version": 0}).status_code == 404  # three are kept
        wait_until(lambda: service.predict(X[0]).json()["version"] >= 3)
        service.learn(X, Y)
    with local(place) as service:
        assert service.rows() == {"cat": 2, "dog": 2, "owl": 2}


def test_what_a_rollback_leaves_can_be_rolled_back_to(place, local):
    with local(place, keep_versions=2) as service:
        service.learn(X, Y)
        service.post("/forget", {"classes": ["dog"]})
        assert service.post("/rollback", {"version": 0}).json()["version"] == 3
        assert service.rows() == {}
        listed = service.http.get("/versions").json()["versions"]
        assert [entry["version"] for entry in listed] == [2, 3]
        assert listed[0]["changed"] == {"learn": 3, "forget-classes": 1}
        assert service.post("/rollback", {"version": 2}).status_code == 200
        assert service.rows() == {"cat": 1, "owl": 1}


def test_a_key_is_for_one_change(place, local):
    with local(place) as service:
        assert not service.learn(X, Y, key="a").json()["repeated"]
        assert service.learn(X, Y, key="a").json() == {"version": 1, "rows": 3, "repeated": True}
        assert service.learn(X, [*Y[:2], "fox"], key="a").status_code == 422
        assert service.learn(X, Y, key="x" * 201).status_code == 422
        assert service.rows() == {"cat": 1, "dog": 1, "owl": 1}
    with local(place) as service:  # after a checkpoint and a restart, too
        assert service.learn(X, Y, key="a").json()["repeated"]


def test_a_change_that_was_refused_may_be_asked_for_again(place, local):
    rows = {"features": [X[0].tolist()], "labels": ["cat"]}
    with local(place) as service:
        assert service.post("/forget", rows, key="a").status_code == 422
        service.learn([*X, *X], [*Y, *Y])
        assert service.post("/forget", rows, key="a").json()["repeated"] is False
        assert service.rows() == {"cat": 1, "dog": 2, "owl": 2}


def test_progressive_and_expected_accuracy(tmp_path, local):
    directory = Directory(tmp_path / "s")
    directory.make(AIRClassifier(0.1, expansion=None))
    rng = np.random.default_rng(0)
    rows = np.repeat(X, 20, axis=0) + 0.1 * rng.standard_normal((60, 3))
    with local(directory) as service:
        empty = service.http.get("/expected-accuracy").json()
        nothing = {"version": None, "expected": None, "progressive": None, "progressive_rows": 0, "per_class": []}
        assert empty == nothing
        service.learn(rows, np.repeat(Y, 20).tolist())
        service.wait()
        service.learn(rows[::2], np.repeat(Y, 10).tolist())
        service.wait()
        found = service.http.get("/expected-accuracy").json()
        assert found["progressive"] == 1.0
        assert found["progressive_rows"] == 30
        assert found["expected"] > 0.9
        text = service.http.get("/metrics").text
    assert 'aircl_class_rows{label="cat"} 30.0' in text
    assert "aircl_progressive_accuracy 1.0" in text
    assert 'aircl_requests_total{method="POST",route="/learn",status="200"} 2.0' in text
    assert 'aircl_request_seconds_bucket{le="0.001",route="/learn"}' in text


def test_a_read_only_service_changes_nothing(place, local):
    with local(place) as service:
        service.learn(X, Y)
    with local(place, read_only=True) as service, local(place) as writing:
        assert service.predict(X).json()["predictions"][1]["label"] == "dog"
        assert service.learn(X, Y).status_code == 403
        assert service.http.get("/healthz").json()["read_only"]
        assert writing.learn(X, Y).status_code == 200


def test_the_page_needs_no_network(place, local):
    with local(place) as service:
        page = service.http.get("/docs")
        assert page.status_code == 200
        assert "//" not in page.text.replace("http://localhost", "").partition("<script>")[0]
        assert len(service.http.get("/docs/swagger-ui-bundle.js").content) > 10**6
        assert service.http.get("/docs/secrets").status_code == 404
        paths = service.http.get("/openapi.json").json()["paths"]
        assert set(paths) == {
            "/predict", "/learn", "/forget", "/merge", "/rollback", "/classes", "/versions", "/expected-accuracy",
            "/drift", "/healthz", "/metrics", "/events", "/undo", "/versions/{number}", "/correct",
        }  # fmt: skip
        learn = paths["/learn"]["post"]
        assert learn["summary"] == "Learn rows"
        assert learn["security"] == [{"token": []}]
        assert "security" not in paths["/healthz"]["get"]
        for path in ("/learn", "/predict", "/forget"):  # what is shown to be tried works
            body = paths[path]["post"]["requestBody"]["content"]["application/json"]["example"]
            assert service.post(path, body).status_code == 200


# -- who may --
@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        (("predict",), {"/predict", "/classes"}),
        (("learn",), {"/learn", "/forget"}),
        (("admin",), {"/versions", "/rollback"}),
    ],
)
def test_scopes(scopes, allowed, place, local):
    secret = add_token(place.path / "tokens.json", "app", scopes)
    bodies = {
        "/predict": {"features": [1, 0, 0]}, "/classes": None, "/learn": {"features": X.tolist(), "labels": Y},
        "/forget": {"features": X.tolist(), "labels": Y}, "/versions": None, "/rollback": {"version": 0},
    }  # fmt: skip
    with local(place) as service:
        for path, body in bodies.items():
            method = "GET" if body is None else "POST"
            for headers, refused in (({}, 401), ({"Authorization": "Bearer guess"}, 401), (None, 403)):
                headers = {"Authorization": f"Bearer {secret}"} if headers is None else headers
                answer = service.http.request(method, path, json=body, headers=headers)
                if refused == 403 and path in allowed:
                    assert answer.status_code not in (401, 403)
                else:
                    assert answer.status_code == refused
                    assert secret not in answer.text
        whole = service.post("/forget", {"classes": ["cat"]}, Authorization=f"Bearer {secret}")
        assert whole.status_code == 403  # it takes both: learn and admin
        assert service.http.get("/healthz").status_code == 200
        remove_token(place.path / "tokens.json", "app")
        assert service.http.get("/classes", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
        (place.path / "tokens.json").write_text("{")
        assert service.http.get("/classes", headers={"Authorization": f"Bearer {secret}"}).status_code == 503


def test_once_there_is_a_token_it_is_needed(place, local):
    with local(place) as service:
        assert service.http.get("/classes").status_code == 200
        add_token(place.path / "tokens.json", "app", ("predict",))
        assert service.http.get("/classes").status_code == 401
        (place.path / "tokens.json").unlink()
        assert service.http.get("/classes").status_code == 401  # nobody is let in by a file that is gone


def test_two_tokens_may_use_the_same_key(place, local):
    path = place.path / "tokens.json"
    secrets = [add_token(path, name, ("learn", "predict")) for name in ("one", "two")]
    with local(place) as service:
        for secret in secrets:
            answer = service.post(
                "/learn", {"features": X.tolist(), "labels": Y}, key="k", Authorization=f"Bearer {secret}"
            )
            assert answer.json()["repeated"] is False


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://localhost"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:3000"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Host": ""}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "[::1]:8000"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_no_web_page_from_elsewhere_can_teach_it(headers, status, place, local):
    with local(place) as service:
        headers = {"Content-Type": "application/json", **headers}
        body = json.dumps({"features": X.tolist(), "labels": Y})
        assert service.http.post("/learn", content=body, headers=headers).status_code == status
        assert bool(service.rows()) == (status == 200)


# -- how much --
def test_limits(place, local):
    with local(place, max_body=1000, max_rows=5, max_merge=1000) as service:
        assert service.learn(np.ones((6, 2)), ["a"] * 6).status_code == 413
        assert service.learn(np.ones((5, 60)), ["a"] * 5).status_code == 413
        chunked = service.http.post(
            "/learn", content=(b"x" * 400 for _ in range(4)), headers={"Content-Type": "application/json"}
        )
        assert chunked.status_code == 413
        headers = {"Content-Type": "application/octet-stream"}
        assert service.http.post("/merge", content=b"x" * 1001, headers=headers).status_code == 413
        assert service.rows() == {}
    assert not list(place.path.glob(".aircl*"))


MALFORMED = [
    b"", b"{", b"[]", b"null", b"\xff\xfe", b"1" * 500, b"[" * 500, b'{"features": ' + b"[" * 500,
    b'{"features": [[1, 2], [3]], "labels": ["a", "b"]}',
    b'{"features": [[1, NaN]], "labels": ["a"]}',
    b'{"features": [[1, 1e999]], "labels": ["a"]}',
    b'{"features": [[1, null]], "labels": ["a"]}',
    b'{"features": [["1", "2"]], "labels": ["a"]}',
    b'{"features": [[true, false]], "labels": ["a"]}',
    b'{"features": [[[1]]], "labels": ["a"]}',
    b'{"features": [[]], "labels": ["a"]}',
    b'{"features": [], "labels": []}',
    b'{"features": {"a": 1}, "labels": ["a"]}',
    b'{"features": [[1, 2]], "labels": ["a", "b"]}',
    b'{"features": [[1, 2]], "labels": [1.5]}',
    b'{"features": [[1, 2]], "labels": [null]}',
    b'{"features": [[1, 2]], "labels": [["a"]]}',
    b'{"features": [[1, 2], [3, 4]], "labels": ["a", 1]}',
    b'{"features": [[1, 2]], "labels": [123456789012345678901234567890]}',
    b'{"features": [[1, 2]], "labels": ["a\\u0000"]}',
    b'{"features": [[1, 2]], "labels": ["a"], "more": 1}',
    b'{"features": [[1e200, 2]], "labels": ["a"]}',
    b'{"features": [[1, 2]]}',
]  # fmt: skip


def test_a_malformed_body_is_told_and_changes_nothing(place, local):
    with local(place) as service:
        for body in MALFORMED:
            answer = service.http.post("/learn", content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == 422, body
            assert "Traceback" not in answer.text
            assert len(answer.content) < 2000
            assert service.rows() == {}
        assert service.service.status()["status"] == "ok"
        assert service.learn(X, Y).status_code == 200


def test_rows_that_do_not_fit_the_model_are_refused(place, local):
    with local(place) as service:
        service.learn(X, Y)
        service.wait()
        assert service.learn(np.ones((1, 4)), ["cat"]).status_code == 422
        assert service.learn(np.ones((1, 3)), [3]).status_code == 422
        assert service.predict(np.ones((1, 4))).status_code == 422
        assert service.predict(X, top=0).status_code == 422
        assert service.post("/rollback", {"version": -1}).status_code == 422
        told = service.http.get("/versions/last").json()["detail"]
        assert [entry["where"] for entry in told] == [["path", "number"]]
        told = service.post("/learn", {"features": [[1, 0, 0]], "labels": [1.5]}).json()["detail"]
        assert [entry["where"] for entry in told] == [["labels", 0]]


def test_what_can_be_read_can_be_asked_for_without_its_body(place, local):
    with local(place) as service:
        for path in ("/", "/healthz", "/docs", "/openapi.json", "/classes", "/metrics", "/versions/0"):
            head, whole = service.http.head(path), service.http.get(path)
            assert (head.status_code, head.content) == (200, b""), path
            assert head.headers["content-type"] == whole.headers["content-type"]
        assert [service.http.head(path).status_code for path in ("/learn", "/events", "/nothing")] == [405, 405, 404]
        assert 'method="HEAD",route="/healthz"' in service.http.get("/metrics").text
        add_token(place.path / "tokens.json", "app", ("predict",))
        assert [service.http.head(path).status_code for path in ("/healthz", "/classes")] == [200, 401]


def test_what_cannot_be_computed_is_refused(place, local, monkeypatch):
    with local(place) as service:
        service.learn(X, Y)
        service.wait()
        for large in (1e160, 1e308):
            refused = service.predict([[large, 0, 0]])
            assert (refused.status_code, "Scale the features down" in refused.text) == (422, True)
        light = {"features": X[:1].tolist(), "labels": ["fox"], "sample_weight": [1e-320]}
        refused = service.post("/learn", light)  # one over its weight is infinite: nothing could be solved any more
        assert (refused.status_code, "Weights are 0, or at least" in refused.text) == (422, True)
        monkeypatch.setattr(predicting, "MAX_TOLD", 8)
        assert service.predict(X, top=2).status_code == 200
        refused = service.predict(X, top=100)
        assert (refused.status_code, refused.json()["detail"].split(".")[0]) == (
            413, "9 probabilities are asked for; 8 are possible"
        )  # fmt: skip


def test_labels_are_values_of_metrics_whatever_they_are(place, local):
    labels = ['say "no"\n# HELP x', "back\\slash", "\r\n", "", "{}", "\u2028", "wide \u05e9"]
    with local(place) as service:
        service.learn(np.eye(len(labels)), labels)
        text = service.http.get("/metrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    found = {sample.labels["label"]: sample.value for sample in families["aircl_class_rows"].samples}
    assert found == dict.fromkeys(labels, 1.0)
    assert [families[name].samples[0].value for name in ("aircl_storing", "aircl_healthy")] == [1, 1]


def test_what_was_made_stays_made_after_a_rollback(place, local):
    """A rollback takes rows away, not the memory of keys: a request that is repeated is made once."""
    with local(place, checkpoint_rows=3) as service:
        answer = service.learn(X, Y, key="a").json()
        service.wait_for_version(1)
        assert service.post("/rollback", {"version": 0}).status_code == 200
        assert service.learn(X, Y, key="a").json() == {**answer, "repeated": True}
        assert service.rows() == {}
        assert service.learn(X, Y, key="b").json()["version"] == 3
