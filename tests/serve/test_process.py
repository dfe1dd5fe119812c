"""Services as processes of their own: addresses, locks, followers, a full disk, and what is left on it."""

from __future__ import annotations

import http.client
import json
import resource
import socket
from contextlib import suppress
from urllib.parse import urlsplit

import numpy as np
import pytest

from aircl import Client, ServiceError
from aircl.serve.versions import Directory

from .conftest import PATIENCE, wait_until

X, Y = np.eye(3), ["cat", "dog", "owl"]


def predict_known(client, X, version):
    """Return predictions of a version or a later one."""

    def ask():
        with suppress(ServiceError):  # nothing is solved yet
            answer = client.ask(X)
            return answer if answer["version"] >= version else None

    return wait_until(ask)


def test_it_goes_on_after_it_was_stopped(place, token, processes, client_of):
    running = processes(place.path)
    with client_of(running) as client:
        client.learn(X, Y)
    assert running.end() == 143
    assert [entry.version for entry in place.read().versions] == [0, 1]  # it leaves nothing in the journal
    running = processes(place.path)
    with client_of(running) as client:
        assert client.predict(X).tolist() == Y
        assert client.classes() == {"cat": 1, "dog": 1, "owl": 1}
        assert client.health()["status"] == "ok"
    log = [json.loads(line) for line in running.process.stderr.splitlines()]
    assert {"recovered"} <= {entry["event"] for entry in log}


def test_only_one_process_learns(place, token, processes, client_of, forks):
    running = processes(place.path)
    assert running.url
    second = forks.run("serve", place.path, "--port", "0")
    assert second.code == 1
    assert "is served by another process" in second.stderr
    with client_of(running) as client:
        assert client.learn(X, Y)["rows"] == 3


def test_readers_follow(place, token, processes, client_of):
    writer = processes(place.path, "--checkpoint-rows", "1")
    readers = [processes("--read-only", "--follow", place.path) for _ in range(2)]
    with client_of(writer) as client:
        version = client.learn(X, Y)["version"]
        for reader in readers:
            with client_of(reader) as other:
                assert [p["label"] for p in predict_known(other, X, version)["predictions"]] == Y
                with pytest.raises(ServiceError, match="403: this process only reads"):
                    other.learn(X, Y)
        version = client.learn(-X, ["fox"] * 3)["version"]
        for reader in readers:
            with client_of(reader) as other:
                assert predict_known(other, -X, version)["predictions"][0]["label"] == "fox"


def test_without_tokens_it_is_for_this_machine(place, processes, forks):
    refused = forks.run("serve", place.path, "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 1
    assert "without tokens it is served on this machine only" in refused.stderr
    address = urlsplit(processes(place.path).url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE)
    body = json.dumps({"features": X.tolist(), "labels": Y})
    for headers, status in (
        ({"Content-Type": "application/json", "Origin": "https://evil.example"}, 403),
        ({"Content-Type": "application/json", "Host": "evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json"}, 200),
    ):
        connection.request("POST", "/learn", body, headers)
        answer = connection.getresponse()
        assert (answer.status, b"Traceback" in answer.read()) == (status, False)
    connection.close()


def test_wrong_and_missing_tokens(place, token, processes, client_of):
    running = processes(place.path, "--host", "0.0.0.0")
    port = urlsplit(running.url).port
    for secret in (None, "guess", token[:-1]):
        with Client(f"http://127.0.0.1:{port}", secret) as client, pytest.raises(ServiceError) as refused:
            client.learn(X, Y)
        assert refused.value.status == 401
    with Client(f"http://127.0.0.1:{port}", token) as client:
        assert client.learn(X, Y)["rows"] == 3
    assert token not in running.process.stderr


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of another process cannot be set")
@pytest.mark.parametrize("options", [(), ("--no-journal",)])
def test_a_full_disk_turns_changes_away(options, place, token, processes, client_of):
    """A limit of the size of files is what a full disk is: no write succeeds beyond it."""
    running = processes(place.path, "--log-level", "error", *options)
    with client_of(running, patience=0) as client:
        version = client.learn(X, Y)["version"]
        before = predict_known(client, X, version)["predictions"]
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        for _ in range(2):
            with pytest.raises(ServiceError) as refused:
                client.learn(-X, ["fox"] * 3, key="when there is room")
            assert refused.value.status == 507
            assert client.ask(X)["predictions"] == before
        assert client.health()["status"] == "degraded"
        assert client.classes() == {"cat": 1, "dog": 1, "owl": 1}
        resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        client.learn(-X, ["fox"] * 3, key="when there is room")
        assert client.classes() == {"cat": 1, "dog": 1, "owl": 1, "fox": 3}
        assert client.health()["status"] == "ok"
    running.kill()
    with client_of(processes(place.path)) as client:
        assert client.classes() == {"cat": 1, "dog": 1, "owl": 1, "fox": 3}


def test_rows_are_on_the_disk_until_a_checkpoint(place, token, processes, client_of):
    """Numbers that can be searched for: they are there, and after the checkpoint no file has them."""
    rows = np.random.default_rng(0).standard_normal((50, 40))

    def on_disk():
        content = []
        for path in place.path.rglob("*"):
            with suppress(FileNotFoundError, IsADirectoryError):  # what is written is renamed at its end
                content.append(path.read_bytes())
        return sum(row.tobytes() in part for part in content for row in rows)

    running = processes(place.path, "--checkpoint-rows", "200", "--checkpoint-seconds", "1e6")
    with client_of(running) as client:
        for _ in range(3):
            client.learn(rows, np.arange(50) % 2)
        assert on_disk() > 0
        version = client.learn(rows, np.arange(50) % 2)["version"]
        wait_until(lambda: place.read().current.version == version)
        wait_until(lambda: on_disk() == 0)
    logged = running.process.stderr
    assert not any(str(value)[:8] in logged for value in rows[0])


def test_no_journal_writes_no_rows(place, token, processes, client_of):
    rows = np.random.default_rng(0).standard_normal((50, 40))
    running = processes(place.path, "--no-journal")
    with client_of(running) as client:
        client.learn(rows, np.arange(50) % 2)
    running.kill()
    content = [path.read_bytes() for path in place.path.rglob("*") if path.is_file()]
    assert not any(row.tobytes() in part for part in content for row in rows)


def test_problems_are_one_line(place, tmp_path, forks):
    def error(*args):
        command = forks.run("serve", *args, "--port", "0")
        return command.code, command.stderr.splitlines()[-1]

    assert "Did you mean" in error(tmp_path / "new", "--init", "--backbone", "char-ngram")[1]
    assert not (tmp_path / "new").exists()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        refused = forks.run("serve", place.path, "--port", taken.getsockname()[1])
    assert (refused.code, "Choose another: --port" in refused.stderr.replace("\n", " ")) == (1, True)
    assert error(tmp_path / "nowhere")[0] == 1
    assert "Make it: --init" in error(tmp_path / "nowhere")[1]
    (place.path / "service.json").write_text('{"format": 1, "id": "x", "versions": [{"version": "one"}]}')
    code, message = error(place.path)
    assert code == 1
    assert "version" in message
    journal = place.path / "journal.sqlite"
    (tmp_path / "other").mkdir()
    journal.write_bytes(b"no database at all" * 100)
    assert error(place.path)[0] == 1


def test_a_change_that_was_turned_away_is_in_no_version(place, local, monkeypatch):
    """A disk that fails once: what was answered by 507 is not made durable behind the client's back."""
    write, failures = Directory.write, [OSError(28, "No space left on device")]

    def fails_once(self, catalogue):
        if failures:
            raise failures.pop()
        write(self, catalogue)

    with local(place, journal=False, checkpoint_rows=1) as service:
        monkeypatch.setattr(Directory, "write", fails_once)
        assert service.learn(X, Y).status_code == 507
        assert service.learn(X[:1], Y[:1]).status_code == 200
        assert service.rows() == {"cat": 1}
    assert place.read().current.rows == 1
