"""The contract, applied to every method that is registered."""

from __future__ import annotations

import pytest

from aircl.benchmark.contract import check_method
from aircl.methods import describe_method, list_methods


@pytest.mark.parametrize("name", list_methods())
def test_it_keeps_the_contract(name):
    broken = [f"{finding.name}: {finding.reason}" for finding in check_method(name) if finding.result == "failed"]
    assert broken == []


@pytest.mark.parametrize("name", list_methods())
def test_it_is_described_in_one_line(name):
    assert len(describe_method(name).description) > 20
