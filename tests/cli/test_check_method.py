from __future__ import annotations

import json

import pytest

from aircl.benchmark.contract import CHECKS

METHOD = """
from aircl.methods.acil import Acil

class Mine(Acil):
    'ACIL under another name.'

class Forgetful(Acil):
    def end_phase(self, phase):
        self.average = sum(phase.counts) / len(phase.counts)
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(METHOD)
    return path


def test_a_registered_method_passes(run):
    result = run("check-method", "acil")
    heading, _, *rows = result.stdout.splitlines()
    assert heading.split() == ["check", "result", "reason"]
    assert len(rows) == len(CHECKS)
    assert all(row.strip().startswith(check) and " passed " in row for row, check in zip(rows, CHECKS, strict=True))
    assert result.stderr.startswith(f"{len(CHECKS)} passed, in ")


def test_a_method_of_a_file_passes_as_json(run, file):
    result = run("check-method", "--module", file, "Mine", "--json", "--quiet")
    assert result.stderr == ""
    content = json.loads(result.stdout)
    assert (content["method"], content["passed"]) == ("Mine", True)
    assert [check["name"] for check in content["checks"]] == list(CHECKS)
    assert set(content["checks"][0]) == {"name", "result", "reason", "seconds"}


def test_a_method_of_a_file_and_its_failures(run, file):
    result = run("check-method", "--module", file, "Forgetful", code=1)
    (row,) = (row for row in result.stdout.splitlines() if " failed " in row)
    assert row.strip().startswith("accepts empty phases and empty batches")
    assert "end_phase of an empty phase raised ZeroDivisionError: division by zero (mine.py, line 9, in end_" in row
    assert f"{len(CHECKS) - 1} passed, 1 failed, in " in result.stderr


def test_options_reach_the_method(run):
    result = run("check-method", "air", "--option", "scale=nonsense", "--option", "memory_limit=null", "--json", code=1)
    assert "scale='nonsense'" in json.loads(result.stdout)["checks"][0]["reason"]


def test_problems_with_a_file(run, file):
    message = run("check-method", "--module", file, code=1).stderr
    assert message == f"Error: {file} defines several methods: Mine, Forgetful. Name the class to be checked.\n"
    file.write_text("import aircl\nimport torhc\n")
    message = run("check-method", "--module", file, code=1).stderr
    assert message == f"Error: {file}, line 2: ModuleNotFoundError: No module named 'torhc'\n"


def test_wrong_usage(run):
    assert "Did you mean 'slda'" in " ".join(run("check-method", "slad", code=2).stderr.split())
    assert "name a method" in run("check-method", code=2).stderr
    assert "KEY=VALUE" in run("check-method", "acil", "--option", "scale", code=2).stderr
