"""What tests and examples need: they leave nothing behind; examples without their extra are skipped."""

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


@pytest.fixture(autouse=True, scope="session")
def _directories_of_their_own(tmp_path_factory):
    """Keep tests and examples away from the user's cache and data."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRCL_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("AIRCL_DATA", raising=False)
        yield


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
