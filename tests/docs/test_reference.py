"""The reference has every public name, and nothing that there is not."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import aircl

API = Path(__file__).parents[2] / "docs" / "api"
DIRECTIVES = [name for page in API.glob("*.md") for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)]


def found(path):
    """Return what a dotted path of the reference names."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def public():
    """Yield the public names of all packages but the command line, with what they are."""
    packages = [
        aircl,
        *(importlib.import_module(m.name) for m in pkgutil.walk_packages(aircl.__path__, "aircl.") if m.ispkg),
    ]
    for package in packages:
        for name in getattr(package, "__all__", []):
            if package.__name__ != "aircl.cli" and name != "__version__":
                yield f"{package.__name__}.{name}", getattr(package, name)


def test_every_public_name_is_there():
    documented = [(path.rpartition(".")[2], found(path)) for path in DIRECTIVES]
    missing = [
        path
        for path, thing in public()
        if (path.rpartition(".")[2], id(thing)) not in {(n, id(t)) for n, t in documented}
    ]
    assert missing == []


def test_nothing_is_there_twice():
    assert sorted(set(DIRECTIVES)) == sorted(DIRECTIVES)
