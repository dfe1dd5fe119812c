"""The method and the dataset of the pages about adding one work as they stand."""

from __future__ import annotations

import shlex
import sys

import pytest
from typer.testing import CliRunner

from aircl.benchmark.contract import check_method
from aircl.benchmark.results import RunDirectory
from aircl.cli import app
from aircl.data import DATASETS
from aircl.methods import METHODS, list_methods


@pytest.fixture
def forgotten():
    """Forget what the pages register and import."""
    known, datasets, modules = set(list_methods()), set(DATASETS), set(sys.modules)
    yield
    for registry, names in ((METHODS, known), (DATASETS, datasets)):
        for name in set(registry) - names:
            registry._entries.pop(name)
    for name in {"nearest_mean", "wine"} & (set(sys.modules) - modules):
        del sys.modules[name]


def finished(path):
    return {row.method: row.value for row in RunDirectory(path).rows() if row.metric == "A_last"}


@pytest.mark.usefixtures("forgotten")
def test_the_method_keeps_the_contract_and_runs(blocks, printed, workplace):
    method, run, options = (text for language, text in blocks("add-a-method.md") if language == "python")
    (workplace / "nearest_mean.py").write_text(method)
    printed(run, "add-a-method.md")
    assert set(finished(workplace / "runs" / "mine")) == {"nearest-mean", "air"}
    assert [finding for finding in check_method(METHODS["nearest-mean"]) if finding.result != "passed"] == []
    variables = {"Method": METHODS["nearest-mean"]}
    printed(options, "add-a-method.md", variables)
    assert variables["NearestMean"].resolve_options({"metric": "cosine"}, online=False) == {"metric": "cosine"}
    with pytest.raises(ValueError, match="Allowed: metric"):
        variables["NearestMean"].resolve_options({"metrik": "cosine"}, online=False)


@pytest.mark.usefixtures("forgotten")
def test_the_method_runs_on_the_command_line(blocks, workplace):
    commands = [
        text for language, text in blocks("add-a-method.md") if language == "sh" and text.startswith("aircl run")
    ]
    (workplace / "nearest_mean.py").write_text(next(text for language, text in blocks("add-a-method.md")))
    result = CliRunner().invoke(app, shlex.split(commands[0].removeprefix("aircl ")))
    assert result.exit_code == 0, result.output
    assert set(finished(workplace / "runs" / "digits-long-tail")) == {"nearest-mean", "air"}


@pytest.mark.usefixtures("forgotten")
def test_the_dataset_loads_and_runs(blocks, printed, workplace):
    dataset, run = (text for language, text in blocks("add-a-dataset.md") if language == "python")
    (shown,) = (text for language, text in blocks("add-a-dataset.md") if language == "text")
    (workplace / "wine.py").write_text(dataset)
    assert printed(run, "add-a-dataset.md") == shown
    accuracy = finished(workplace / "runs" / "wine")
    assert set(accuracy) == {"air", "ncm"}
    assert accuracy["air"] > 0.8
