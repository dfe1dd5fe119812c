"""What whoever watches is told: events, the last changes, what a rollback would lose, and the files of the page."""

from __future__ import annotations

import http.client
import json
import time
from urllib.parse import urlsplit

import numpy as np

from aircl import AIRClassifier
from aircl.serve import service as service_module
from aircl.serve import solver
from aircl.serve.changes import class_rows
from aircl.serve.service import serving
from aircl.serve.settings import Settings
from aircl.serve.tokens import add_token, remove_token
from aircl.storage.writing import write_text

from .conftest import PATIENCE, wait_until

X, Y = np.eye(3), ["cat", "dog", "owl"]


class Listener:
    """Reads server-sent events of a process."""

    def __init__(self, url, token=None):
        address = urlsplit(url)
        self.connection = http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self.connection.request("GET", "/events", headers=headers)
        self.answer = self.connection.getresponse()

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.answer.close()
        self.connection.close()

    def next(self):
        """Return the next event with what it says; None at the end."""
        name = None
        while line := self.answer.readline():
            if line.startswith(b"event: "):
                name = line[7:].strip().decode()
            elif line.startswith(b"data: "):
                return name, json.loads(line[6:])
        return None

    def until(self, condition):
        """Return the first state of which something is so."""
        while not condition(state := self.next()[1]):
            pass
        return state


def status(url, token=None):
    """Return how a listener is answered."""
    with Listener(url, token) as listener:
        return listener.answer.status


def test_events_tell_what_changes_until_the_token_is_taken_back(place, processes, client_of, token):
    other = add_token(place.path / "tokens.json", "watcher", ("predict",))
    running = processes(place.path)
    assert status(running.url) == 401
    with Listener(running.url, other) as listener:
        assert listener.answer.getheader("content-type").startswith("text/event-stream")
        name, hello = listener.next()
        assert (name, hello["may"], hello["token"], hello["rows"]) == ("hello", ["predict"], "watcher", "features")
        assert hello["parameters"]["gamma"] == 0.1
        assert (hello["now"]["rows"], hello["now"]["changes"], hello["now"]["solved"]) == (0, [], None)
        with client_of(running) as client:
            client.learn(X, Y)
            state = listener.until(lambda state: state["solved"] == 1)
            assert (state["rows"], state["classes"], state["behind"], state["undo"]) == (3, 3, 0, 1)
            (change,) = state["changes"]
            assert (change["version"], change["kind"], change["rows"]) == (1, "learn", 3)
            assert sorted(change["classes"]) == [["cat", 1], ["dog", 1], ["owl", 1]]
            assert state["last_learned"] == change["made"]
            client.predict(X)
            assert listener.until(lambda state: state["latency"] is not None)["latency"][0] > 0
            client.undo(1)
            state = listener.until(lambda state: len(state["changes"]) == 2)
            assert [(change["kind"], change["target"]) for change in state["changes"]] == [("undo", 1), ("learn", None)]
            assert (state["rows"], state["undo"]) == (0, None)
        remove_token(place.path / "tokens.json", "watcher")
        while listener.next() is not None:
            pass
    assert status(running.url, other) == 401


def test_who_listens_does_not_hold_up_the_end(place, processes):
    running = processes(place.path)
    with Listener(running.url) as listener:
        assert listener.next()[0] == "hello"
        assert running.end() == 143
        assert listener.next() is None


def test_a_listener_without_a_token_ends_when_tokens_are_needed(place, processes):
    running = processes(place.path)
    with Listener(running.url) as listener:
        assert listener.next()[1]["may"] == ["predict", "learn", "admin"]
        add_token(place.path / "tokens.json", "first", ("predict",))
        while listener.next() is not None:
            pass


def test_a_version_tells_what_rolling_back_to_it_would_lose(place, local):
    with local(place, checkpoint_rows=1) as service:
        service.learn(X, Y)
        service.wait_for_version(1)
        service.learn(X, ["cat", "cat", "fox"])
        wait_until(lambda: len(service.http.get("/versions").json()["versions"]) == 3)
        told = service.http.get("/versions/1").json()
        assert (told["rows_now"], told["rows_then"], told["current"]) == (6, 3, 2)
        assert told["classes"] == [
            {"label": "cat", "now": 3, "then": 1},
            {"label": "fox", "now": 1, "then": 0},
        ]
        assert service.http.get("/versions/7").status_code == 404
        assert service.http.get("/versions/x").status_code == 422
        assert service.http.get("/versions/2").json()["classes"] == []


def test_the_page_needs_nothing_from_elsewhere(place, local):
    add_token(place.path / "tokens.json", "somebody", ("predict",))
    with local(place) as service:
        page = service.http.get("/")
        assert page.status_code == 200
        assert "http://" not in page.text
        assert "https://" not in page.text
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["x-content-type-options"] == "nosniff"
        again = service.http.get("/", headers={"If-None-Match": page.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        for name in ("../app.py", "app.py", "%2e%2e%2fapp.py", "index.htm"):
            assert service.http.get(f"/page/{name}").status_code in (401, 404)
        assert service.http.get("/events").status_code == 401
        assert service.http.get("/versions/0").status_code == 401


def test_a_clock_that_is_set_makes_no_gap_in_the_points(place, local, monkeypatch):
    with local(place) as service:
        watch = service.http.app.watch
        before = watch.now()["at"]
        monkeypatch.setattr(time, "time", lambda: 0.0)
        assert 0 <= watch.now()["at"] - before < PATIENCE


def test_what_is_told_has_every_change_that_is_told(place, local, monkeypatch):
    """A change that is made while a state is put together is in the rows, or not yet among the changes."""
    with local(place) as service:
        watch = service.http.app.watch
        now = watch.now

        def learns_afterwards():
            point = now()
            service.learn(X, Y)
            return point

        monkeypatch.setattr(watch, "now", learns_afterwards)
        state = watch.state()
        assert (state["rows"], state["changes"]) == (0, [])


def test_rows_of_classes_are_those_of_one_moment(monkeypatch):
    """Whoever reads labels and counts one after the other finds a class between them that was just learned."""
    model = AIRClassifier(0.1, expansion=None).fit([[1.0], [2.0], [3.0]], ["cat", "cat", "dog"])
    classes = AIRClassifier.classes_

    def learns_meanwhile(self):
        found = classes.__get__(self)
        self.partial_fit([[4.0]], ["bee"])
        return found

    monkeypatch.setattr(AIRClassifier, "classes_", property(learns_meanwhile))
    assert class_rows(model) in (
        {(str, "cat"): 2, (str, "dog"): 1},
        {(str, "bee"): 1, (str, "cat"): 2, (str, "dog"): 1},
    )


def test_what_cannot_be_solved_or_followed_is_told(place, local, monkeypatch):
    with local(place, checkpoint_rows=1) as service, local(place, read_only=True) as reader:
        assert [one.http.get("/healthz").json()["status"] for one in (service, reader)] == ["ok", "ok"]

        def fails(moment):
            raise ArithmeticError("of rows [1, 2, 3]")

        with monkeypatch.context() as patch:
            patch.setattr(solver, "solve", fails)
            service.learn(X, Y)
            health = wait_until(lambda: (h := service.http.get("/healthz").json())["status"] == "degraded" and h)
            assert health["problem"] == "version 1 cannot be solved (ArithmeticError)."
            assert "aircl_healthy 0.0" in service.http.get("/metrics").text
            assert "aircl_storing 1.0" in service.http.get("/metrics").text
        service.learn(X, Y)
        service.wait()
        assert service.http.get("/healthz").json()["status"] == "ok"


def test_a_reader_whose_new_version_is_damaged_says_so_and_goes_on(place, monkeypatch):
    monkeypatch.setattr(service_module, "FOLLOW_SECONDS", 0.01)
    good = place.path / "service.json"
    content = good.read_bytes()
    with serving(place, Settings(), read_only=True, follow=True) as reader:
        assert reader.status()["status"] == "ok"
        write_text(good, "[]")
        assert "a new version cannot be taken up" in wait_until(lambda: reader.status()["problem"])
        write_text(good, content.decode())
        wait_until(lambda: reader.status()["status"] == "ok")
