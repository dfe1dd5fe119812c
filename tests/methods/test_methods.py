"""The contract, applied to every method that is registered."""

from __future__ import annotations

import pytest

from aircl.benchmark.contract import check_method
from aircl.methods import describe_method, list_methods

# Few and long steps, so that this ends soon; how many it makes is nothing that the contract is about.
QUICK = {name: {"epochs": 4, "learning_rate": 0.01} for name in ("er", "ewc++", "fine-tuning", "icarl", "lwf", "rm")}
QUICK["rm"] |= {"memory_epochs": 4}
QUICK["real"] = {"epochs": 1, "distillation_epochs": 3, "learning_rate": 0.003}
PROMPTED = {name: {"epochs": 1, "learning_rate": 0.02} for name in ("coda-prompt", "mvp", "mvp-r")}
PROMPTED |= {name: {"epochs": 1, "learning_rate": 0.02, "rate_batch": None} for name in ("dap", "dualprompt", "l2p")}
# Those that train a network whenever they are made to begin.
SLOW = ("real", *PROMPTED)
EVERY = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in list_methods()]


@pytest.mark.parametrize("name", EVERY)
def test_it_keeps_the_contract(name):
    if name in QUICK or name in PROMPTED:
        pytest.importorskip("torch")
    findings = check_method(name, options=QUICK.get(name) or PROMPTED.get(name))
    assert [f"{finding.name}: {finding.reason}" for finding in findings if finding.result == "failed"] == []


@pytest.mark.parametrize("name", list_methods())
def test_it_is_described_in_one_line(name):
    assert len(describe_method(name).description) > 20
