"""Services: in this process, and as processes of their own."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

from starlette.testclient import TestClient

from aircl import AIRClassifier, Client
from aircl.serve.app import make_app
from aircl.serve.service import serving
from aircl.serve.settings import Settings
from aircl.serve.tokens import Tokens, add_token
from aircl.serve.versions import Directory

# Nothing here takes long, but the machine may be busy.
PATIENCE = 120


def wait_until(condition):
    """Wait until something is so, and return it."""
    until = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.005)
    return found


class Running:
    """A process of `aircl serve`."""

    def __init__(self, forks, *args, port=0, **options):
        self.process = forks.start("serve", *args, "--port", port, **options)
        self.code = None

    @property
    def url(self):
        """The address, once it listens; None after it has ended."""

        def told():
            found = re.search(r"http://\S+\n", self.process.stdout)
            if found is None and "Error" in self.process.stderr:
                raise AssertionError(self.process.stderr)
            return found

        return wait_until(told)[0].strip()

    def end(self, number=signal.SIGTERM):
        if self.code is None:
            os.kill(self.process.pid, number)
            self.code = self.process.wait()
        return self.code

    def kill(self):
        assert self.end(signal.SIGKILL) == -signal.SIGKILL


@pytest.fixture
def processes(forks):
    """Return a function that starts services, which are ended at the end."""
    started = []

    def start(*args, **options):
        started.append(Running(forks, *args, **options))
        return started[-1]

    yield start
    for running in started:
        running.end(signal.SIGKILL)


class Local:
    """A service in this process, and a client that asks it without a network."""

    def __init__(self, service):
        self.service = service
        app = make_app(service, Tokens(service.directory.path / "tokens.json"))
        self.http = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)

    def post(self, path, json, key=None, **headers):
        if key is not None:
            headers["Idempotency-Key"] = key
        return self.http.post(path, json=json, headers=headers)

    def learn(self, X, y, key=None):
        return self.post("/learn", {"features": np.asarray(X).tolist(), "labels": list(y)}, key)

    def predict(self, X, **options):
        return self.post("/predict", {"features": np.asarray(X).tolist(), **options})

    def rows(self):
        return {entry["label"]: entry["rows"] for entry in self.http.get("/classes").json()["classes"]}

    def wait_for_version(self, number):
        """Wait until a checkpoint is made, which is after the answer."""
        wait_until(lambda: self.service.catalogue.current.version >= number)

    def wait(self):
        """Wait until predictions know everything."""
        wait_until(lambda: self.service.rows_behind == 0)


@pytest.fixture
def place(tmp_path):
    """Return the directory of a service in which nothing is learned."""
    directory = Directory(tmp_path / "service")
    directory.make(AIRClassifier(0.1, expansion=None, calibrate=False))
    return directory


@pytest.fixture
def local():
    """Return a context manager of a service in this process."""

    @contextmanager
    def run(directory, read_only=False, **settings):
        with serving(directory, Settings(**settings), read_only=read_only) as service:
            yield Local(service)

    return run


@pytest.fixture
def token(place):
    """Return a token that may do everything."""
    return add_token(Path(place.path) / "tokens.json", "tester", ("predict", "learn", "admin"))


@pytest.fixture
def client_of(token):
    """Return a function from a running process to a client of it."""
    return lambda running, **options: Client(running.url, token, timeout=PATIENCE, **options)
