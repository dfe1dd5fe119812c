"""The method of docs/benchmark.md passes the contract, and its configuration runs."""

import json
import re
from pathlib import Path

from aircl.benchmark.config import RunConfig
from aircl.benchmark.contract import check_method
from aircl.benchmark.contract.module import load_method_class
from aircl.benchmark.runner import method_options
from aircl.methods import METHODS, list_methods, resolve_options

PAGE = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text(encoding="utf-8")


def test_the_configuration_is_valid(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "mine.toml").write_text(text)
    config = RunConfig.from_toml(tmp_path / "mine.toml")
    assert config.name == "mine"
    assert all(method in list_methods() for method in config.experiments[0].methods)
    assert method_options(config.experiments[0], "er")["memory"] == 500


def test_the_options_of_the_page_are_those_of_the_methods():
    rows = re.findall(r"^\| `([a-z+-]+)` \| .* \| (.*) \|$", PAGE, re.MULTILINE)
    assert len(rows) >= 6
    for name, text in rows:
        told = dict(re.findall(r"`(\w+)=([^`]*)`", text))
        options = resolve_options(name, {}, online=False)
        assert bool(told) == bool(options) or text == "the same", name
        assert {key: value if isinstance(options[key], str) else json.loads(value) for key, value in told.items()} == {
            key: options[key] for key in told
        }


def test_the_method_of_the_page_passes_the_contract(tmp_path):
    (text,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "nearest_mean.py").write_text(text)
    try:
        method = load_method_class(tmp_path / "nearest_mean.py")
        failed = [finding for finding in check_method(method) if finding.result != "passed"]
    finally:
        METHODS._entries.pop("nearest-mean", None)
    assert failed == []
