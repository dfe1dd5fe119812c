"""Files that were damaged at random: a clean refusal or a result, no hang, no traceback, no memory without end."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("cases.py").read_text()
FORMATS = re.findall(r'"([\w-]+)": [A-Z]\w+,', CASES.partition("FORMATS = {")[2].partition("}")[0])
MANY = 2000
pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory cannot be limited here")


def fuzz(forks, form, seed, cases):
    result = forks.run(form, seed, cases, code=CASES)
    lines = result.stdout.splitlines()
    assert result.code == 0, (lines[-1:], result.stderr)  # the last line tells which case it was
    ends = json.loads(lines[-1])
    assert [line for line in lines if line.startswith("FAILED")] == []
    assert sum(ends.values()) == cases
    assert ends["refused"] > cases / 4


@pytest.mark.parametrize("form", FORMATS)
def test_two_hundred_damaged_files(form, forks):
    fuzz(forks, form, 0, 200)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # every case has a limit of its own
@pytest.mark.parametrize("form", [form for form in FORMATS if form != "export"])  # it has the checksum of a model
def test_many_damaged_files(form, forks):
    fuzz(forks, form, 10_000, MANY)


@pytest.mark.parametrize(
    ("old", "new", "message", "seconds"),
    [
        ('return "refused"', 'return "refused" if number < 0 else 1 / 0', "ZeroDivisionError", 20),
        pytest.param(
            "read = form.read(",
            "number < 0 or hoard.append(b'x' * 2**26); read = form.read(",
            "grew by|MemoryError",
            20,
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "read = form.read(",
            "number < 0 or signal.pause(); read = form.read(",
            "HangError",
            1,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_failure_is_found(old, new, message, seconds, forks):
    code = CASES.replace(old, new).replace("SECONDS = 20", f"SECONDS = {seconds}\nhoard = []")
    assert code.count(new)
    assert re.search(f"FAILED .*({message})", forks.run("toml", 0, 12 if "grew" in message else 2, code=code).stdout)
