"""The contract, applied to every method that is registered."""

from __future__ import annotations

import pytest

from aircl.benchmark.contract import check_method
from aircl.methods import describe_method, list_methods

# Few and long steps, so that this ends soon; how many it makes is nothing that the contract is about.
QUICK = {name: {"epochs": 4, "learning_rate": 0.01} for name in ("er", "ewc++", "fine-tuning", "icarl", "lwf", "rm")}
QUICK["rm"] |= {"memory_epochs": 4}
# Those that train or prompt a network, which takes a while.
SLOW = ("coda-prompt", "dap", "dualprompt", "l2p", "mvp", "mvp-r", "real")
EVERY = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in list_methods()]


@pytest.mark.parametrize("name", EVERY)
def test_it_keeps_the_contract(name):
    if name in QUICK or name in SLOW:
        pytest.importorskip("torch")
    findings = check_method(name, options=QUICK.get(name))
    assert [f"{finding.name}: {finding.reason}" for finding in findings if finding.result == "failed"] == []


@pytest.mark.parametrize("name", list_methods())
def test_it_is_described_in_one_line(name):
    assert len(describe_method(name).description) > 20
