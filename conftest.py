"""What the examples in docstrings need: they leave nothing behind, and an extra that is not installed skips them."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest


def pytest_collection_modifyitems(items):
    """Skip examples that import torch or Dask, or say `# needs torch`, where that is not installed."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            for package in re.findall(r"(?:^import|^from|# needs) (torch|distributed)\b", source(item), re.MULTILINE):
                if find_spec(package) is None:
                    item.add_marker(pytest.mark.skip(reason=f"{package} is not installed"))


@pytest.fixture(autouse=True)
def _directories_of_its_own(request, monkeypatch, tmp_path_factory):
    """Keep an example away from the user's cache and data."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.setenv("AIRCL_CACHE", str(tmp_path_factory.getbasetemp() / "cache-of-examples"))
        monkeypatch.delenv("AIRCL_DATA", raising=False)


@pytest.fixture(autouse=True)
def _registries_as_before(request):
    """Take out again what an example has registered: other tests count what there is."""
    item = request.node
    if not isinstance(item, pytest.DoctestItem) or not re.search(r"register|@scenario\(", source(item)):
        yield
        return
    from aircl.backbones import BACKBONES
    from aircl.data import DATASETS
    from aircl.methods import METHODS, list_methods
    from aircl.scenarios import SCENARIOS

    list_methods()  # what is registered when it is first called is there to stay
    registries = BACKBONES, DATASETS, METHODS, SCENARIOS
    before = [dict(registry._entries) for registry in registries]
    yield
    for registry, entries in zip(registries, before, strict=True):
        registry._entries = entries


def source(item):
    """Return the code of an example."""
    return "".join(example.source for example in item.dtest.examples)
