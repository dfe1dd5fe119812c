"""The page about the service, word for word, but for the port: the machine chooses one that is free."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs aircl[serve]")

from aircl import Client
from aircl.serve.app import make_app
from aircl.serve.guard import scope_of
from aircl.serve.service import serving
from aircl.serve.settings import Settings
from aircl.serve.tokens import Tokens
from aircl.serve.versions import Directory

PAGE = (Path(__file__).parents[2] / "docs" / "serve.md").read_text(encoding="utf-8")


def listening(process, name="animals"):
    """Return the address that a process has printed."""
    until = time.monotonic() + 120
    while not (found := re.search(rf"Serving {name} at (http://\S+)\n", process.stdout)):
        assert time.monotonic() < until, process.stderr
        time.sleep(0.01)
    return found[1]


def test_from_nothing_to_a_service_with_a_token(blocks, printed, workplace, forks):
    page = [text for _, text in blocks("serve.md")]
    install, serve = page[0].splitlines()
    assert install == "pip install 'aircl[serve]'"
    running = forks.start(*serve.split()[1:], "--port", "0")
    started = [running]
    try:
        address = listening(running)
        command, _, file = page[1].removeprefix("$ aircl ").strip().partition(" > ")
        made = forks.run(*command.split())
        assert made.code == 0
        Path(file).write_text(made.stdout)
        code = page[2].replace("http://127.0.0.1:8000", address)
        variables = {}
        assert printed(code, "serve.md", variables) == page[3]
        while variables["client"].health()["rows_behind"]:
            time.sleep(0.01)
        variables["client"].close()
        if shutil.which("curl") and shutil.which("sh"):
            script = page[4].replace("http://127.0.0.1:8000", address)
            done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=120, check=True)
            learned, predicted = re.findall(r"\{.*?\}(?=\{|$)", done.stdout.replace("}{", "}\n{"), re.MULTILINE)
            assert json.loads(learned) == {"version": 2, "rows": 1, "repeated": False}
            assert json.loads(predicted)["predictions"][0]["label"] == "cat"
        (reader,) = (text.replace("--port 8001", "--port 0").split() for text in page if "--read-only" in text)
        started.append(forks.start(*reader[1:]))
        assert listening(started[1])
    finally:
        for process in started:
            subprocess.run(["kill", f"-{signal.SIGTERM.value}", str(process.pid)], check=True)
            assert process.wait() == 143


def test_rows_are_kept_as_the_page_says(blocks, workplace, forks):
    (script,) = (text for _, text in blocks("serve.md") if "--keep-rows" in text)
    key, serve = script.splitlines()
    assert key == "head -c 32 /dev/urandom > rows.key"
    Path("rows.key").write_bytes(bytes(range(32)))
    running = forks.start(*serve.split()[1:], "--port", "0")
    forget, correct = (json.loads(found) for found in re.findall(r"`(\{\"(?:ids|new)\".*?\})`", PAGE))
    try:
        with Client(listening(running, "patients"), timeout=120) as client:
            client.learn([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], ["cat", "cat", "cat"], ids=["a", "b", "c"])
            client._change("/correct", correct, None)
            assert client.classes() == {"cat": 2, "dog": 1}
            client._change("/forget", forget, None)
            assert client.classes() == {"cat": 1}
    finally:
        subprocess.run(["kill", f"-{signal.SIGTERM.value}", str(running.pid)], check=True)
        assert running.wait() == 143
    again = forks.run("serve", "patients", "--port", "0")
    assert again.code == 1
    assert "--drop-rows" in again.stderr


def test_every_route_is_on_the_page_with_its_scope(tmp_path):
    from aircl import AIRClassifier

    directory = Directory(tmp_path / "s")
    directory.make(AIRClassifier(ledger=True))
    with serving(directory, Settings()) as service:
        paths = make_app(service, Tokens(tmp_path / "t")).app.openapi()["paths"]
    told = dict(re.findall(r"^\| `(?:GET|POST) (/[\w/{}-]+)`.*? \| (\w+) \|", PAGE, re.MULTILINE))
    assert {path: told[path] for path in paths} == {path: scope_of(path) or "none" for path in paths}
