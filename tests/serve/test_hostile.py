"""A process that is sent what it should not be: never a fault, and the model is what was answered for."""

from __future__ import annotations

import http.client
import json
import random
import socket
from contextlib import closing, suppress
from urllib.parse import urlsplit

import numpy as np
import pytest

pytest.importorskip("cryptography")

from aircl import AIRClassifier, Client
from aircl.serve.versions import Directory

from .conftest import PATIENCE
from .test_routes import MALFORMED

X, Y = np.eye(3), ["cat", "dog", "owl"]
NAMED = {"features": X.tolist(), "labels": Y, "ids": ["a", "b", 3]}
ROUTES = [
    "/predict", "/learn", "/forget", "/correct", "/merge", "/rollback", "/undo", "/classes", "/versions", "/drift",
    "/healthz", "/expected-accuracy", "/nowhere",
]  # fmt: skip
VALID = [
    NAMED, {"ids": ["a"]}, {"new": {"ids": ["a"], "labels": ["fox"]}}, {"old": NAMED, "new": NAMED},
    {"features": X.tolist(), "labels": Y}, {"features": [1, 0, 0], "top": 2}, {"classes": ["cat"]}, {"version": 0},
    {"features": [1, 0, 0], "novelty": 0.1, "confidence": 0.5}, {"images": ["AAAA"]}, {"texts": ["/etc/passwd"]},
    {"features": X.tolist(), "labels": Y, "sample_weight": [1, 2, 3]},
]  # fmt: skip
BITS = [b"[", b"]", b"{", b"}", b'"', b",", b"NaN", b"-", b"1e308", b"null", b"\x00", b"\xff", b"true", b"\\u"]


@pytest.fixture
def start(tmp_path, processes):
    """Return a function that starts a service that keeps rows."""
    directory = Directory(tmp_path / "service")
    directory.make(AIRClassifier(0.1, expansion=None, ledger=True))
    (tmp_path / "key").write_bytes(bytes(range(32)))
    return lambda *more: processes(directory.path, "--keep-rows", tmp_path / "key", "--log-level", "error", *more)


def requests(rng, n):
    """Yield valid requests, damaged at random."""
    for _ in range(n):
        body = bytearray(json.dumps(rng.choice(VALID)).encode())
        for _ in range(rng.choice([0, 0, 1, 2, 5])):
            at = rng.randrange(len(body) + 1)
            body[at : at + rng.choice([0, 1, 10])] = rng.choice(BITS)
        headers = {"Content-Type": rng.choice(["application/json"] * 6 + ["application/octet-stream", "", "x/y"])}
        if rng.random() < 0.3:
            headers["Idempotency-Key"] = rng.choice(["a", "b", "", "k" * 300, str(rng.random())])
        if rng.random() < 0.1:
            headers[rng.choice(["Host", "Origin", "Authorization"])] = rng.choice(
                ["", "x", "-1", "[", "http://[", "null"]
            )
        yield rng.choice(["POST", "POST", "POST", "GET", "PUT", "DELETE"]), rng.choice(ROUTES), bytes(body), headers


@pytest.mark.slow
def test_a_thousand_fuzzed_requests(start):
    running, counts = start(), {}
    address = urlsplit(running.url)
    with closing(http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE)) as connection:
        for method, path, body, headers in requests(random.Random(0), 1000):
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            counts[answer.status] = counts.get(answer.status, 0) + 1
            assert answer.status < 500 or (answer.status == 503 and b"solved" in content), (path, body, content)
            assert b"Traceback" not in content
    assert {200, 403, 404, 405, 415, 422} <= set(counts)
    with Client(running.url, timeout=PATIENCE) as client:
        rows = client.classes()
        assert client.health()["status"] == "ok"
    running.kill()
    assert "Traceback" not in running.process.stderr
    with Client(start().url, timeout=PATIENCE) as client:
        assert client.classes() == rows


def exchanged(address, content):
    """Send bytes, and return what is answered before the connection is closed."""
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as connection:
        with suppress(OSError):  # it may be closed before everything was sent
            connection.sendall(content)
        parts = []
        with suppress(ConnectionResetError):
            while part := connection.recv(65536):
                parts.append(part)
    return b"".join(parts)


def test_bodies_that_are_malformed_or_too_large(start):
    running = start("--max-body", "5000")
    address = urlsplit(running.url)
    head = b"POST /learn HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    for body in MALFORMED:
        answer = exchanged(address, head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert answer.startswith(b"HTTP/1.1 422 "), (body, answer)
    for more, status in (
        (b"Content-Length: 99999999999\r\n\r\n{", b"413"),  # which is not waited for
        (b"Content-Length: 6000\r\n\r\n" + b"[" * 6000, b"413"),
        (b"Transfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + b"[" * 4096 + b"\r\n1000\r\n" + b"[" * 4096, b"413"),
        (b"Content-Length: -1\r\n\r\n", b"400"),
        (b"Content-Length: x\r\n\r\n", b"400"),
        (b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"4"),
    ):
        assert exchanged(address, head + more).startswith(b"HTTP/1.1 " + status), more
    for nonsense in (b"\x00" * 100, b"GET / HTTP/9.9\r\n\r\n", b"x" * 100_000):
        assert b"500" not in exchanged(address, nonsense)[:16]
    with socket.create_connection((address.hostname, address.port), timeout=PATIENCE) as connection:
        connection.sendall(head + b"Content-Length: 4000\r\n\r\n{")  # and gone
    with Client(running.url, timeout=PATIENCE) as client:
        assert client.health()["status"] == "ok"
        assert client.classes() == {}
        assert client.learn(X, Y)["rows"] == 3
    running.end()
    assert "Traceback" not in running.process.stderr
