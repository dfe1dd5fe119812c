"""The page about ledgers shows what its commands print, but for times."""

from __future__ import annotations

import re
import shlex

import pytest
from typer.testing import CliRunner

from aircl.cli import app


def timeless(text):
    """Return a text without what differs between two runs: how long it took, and sizes that versions write."""
    text = re.sub(r"in [\d.]+ s \([\d,]+ rows/s\)", "in 0 s", text)
    text = re.sub(r"\([\d,]+ bytes\)", "(n bytes)", text)
    text = re.sub(r"by aircl [\w.]+", "by aircl", text)
    return [re.sub(r"\s+", " ", line) for line in text.splitlines()]


def test_the_page_shows_what_is_printed(blocks, printed, workplace, monkeypatch):
    pytest.importorskip("onnx")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    page, commands = blocks("ledger.md"), 0
    for (language, text), (following, shown) in zip(page, [*page[1:], ("", "")], strict=True):
        if language == "python":
            assert printed(text, "ledger.md") == (shown if following == "text" else "")
        elif language == "console":
            command, _, shown = text.partition("\n")
            result = CliRunner().invoke(app, shlex.split(command.removeprefix("$ aircl ")))
            assert result.exit_code == (1 if shown.startswith("Error") else 0), result.output
            assert timeless(result.stdout + result.stderr) == timeless(shown), command
            commands += 1
    assert commands == 13
