"""Every command of the pages about the command line runs and ends as the page says."""

from __future__ import annotations

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(
    ("page", "at_least"),
    [
        ("command-line.md", 10),
        pytest.param("streams.md", 7, marks=pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")),
        pytest.param("distributed.md", 7, marks=pytest.mark.slow),  # starts processes
    ],
)
def test_the_page_runs_as_it_stands(page, at_least, tmp_path, monkeypatch, run):
    text = (DOCS / page).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    (script,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(script, page, "exec"), {})
    commands = re.findall(r"```console\n\$ aircl ([^|;\n]*)(.*?)```", text, re.DOTALL)
    assert len(commands) > at_least
    for command, shown in commands:
        result = run(*shlex.split(command), code=1 if "\nError: " in shown else 0)
        error = re.search(r"^Error: .*$", shown, re.MULTILINE)
        assert error is None or result.stderr == error[0] + "\n"
