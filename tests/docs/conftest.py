from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def blocks():
    """Return a function from a page to its fenced blocks, as pairs of language and text, in their order."""

    def read(page):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)

    return read


@pytest.fixture
def printed():
    """Return a function that runs a piece of Python and returns what it prints."""

    def run(code, name, variables=None):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code, name, "exec"), {} if variables is None else variables)
        return output.getvalue()

    return run


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """Work in an empty directory, whose modules can be imported, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("AIRCL_DATA", raising=False)
    return tmp_path


@pytest.fixture
def as_shown():
    """Return a function that makes what a command prints, and what a page shows of it, comparable."""

    def compared(text):
        text = re.sub(r"in [\d.]+ s \([\d,]+ rows/s\)", "in 0 s", text)  # how long it took
        text = re.sub(r"\([\d,]+ bytes\)", "(n bytes)", text)
        text = re.sub(r"by aircl [\w.]+", "by aircl", text)
        return [re.sub(r"\s+", " ", line) for line in text.splitlines()]

    return compared
