"""The contract, applied to every method that is registered.

How much a method learns is asked at its defaults. The rest of the contract (stops, copies, orders, odd inputs) is asked
of trained methods after one epoch where they have 5 to 20 by default: the same code runs in each. AIRCL_DEFAULTS=1 asks
everything at the defaults, as `aircl check-method NAME` does.
"""

from __future__ import annotations

import os

import pytest

from aircl.benchmark.contract import CHECKS, check_method
from aircl.methods import describe_method, list_methods
from aircl.methods.registry import GROUPS

LEARNING = [
    name for name in CHECKS if name.startswith(("learns its", "learns the", "learns online", "accepts", "takes new"))
]
TRAINED = ("er", "ewc++", "fine-tuning", "icarl", "lwf", "rm")
# Variants of these, which have their own tests of what differs.
IMBALANCE = tuple(set(GROUPS["imbalance"]) - {*TRAINED, "air", "air-calibrated", "aef-ocl"})
PROMPTS = ("coda-prompt", "dap", "dualprompt", "ease", "l2p", "mvp", "mvp-r")
BRIEF = {name: {"epochs": 1} for name in (*TRAINED, *IMBALANCE, *PROMPTS)}
BRIEF |= {"rm": {"epochs": 1, "memory_epochs": 1}, "two-stage": {"epochs": 1, "second_epochs": 1}}
if os.environ.get("AIRCL_DEFAULTS"):
    BRIEF = {}
# Those that train or prompt a network, which takes a while, or that are variants of others.
SLOW = (*IMBALANCE, *PROMPTS, "real")
EVERY = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in list_methods()]


@pytest.mark.parametrize("name", EVERY)
def test_it_keeps_the_contract(name):
    if name in TRAINED or name in SLOW:
        pytest.importorskip("torch")
    others = [check for check in CHECKS if check not in LEARNING]
    findings = check_method(name, checks=LEARNING) + check_method(name, checks=others, options=BRIEF.get(name))
    assert [f"{finding.name}: {finding.reason}" for finding in findings if finding.result == "failed"] == []


def test_the_contract_asks_for_learning():
    assert len(LEARNING) == 5


@pytest.mark.parametrize("name", list_methods())
def test_it_is_described_in_one_line(name):
    assert len(describe_method(name).description) > 20
