"""The contract, applied to every method that is registered."""

from __future__ import annotations

import pytest

from aircl.benchmark.contract import check_method
from aircl.methods import describe_method, list_methods

# Few and long steps, so that this ends soon; how many it makes is nothing that the contract is about.
QUICK = {name: {"epochs": 4, "learning_rate": 0.01} for name in ("er", "ewc++", "fine-tuning", "icarl", "lwf", "rm")}
QUICK["rm"] |= {"memory_epochs": 4}


@pytest.mark.parametrize("name", list_methods())
def test_it_keeps_the_contract(name):
    if name in QUICK:
        pytest.importorskip("torch")
    findings = check_method(name, options=QUICK.get(name))
    assert [f"{finding.name}: {finding.reason}" for finding in findings if finding.result == "failed"] == []


@pytest.mark.parametrize("name", list_methods())
def test_it_is_described_in_one_line(name):
    assert len(describe_method(name).description) > 20
