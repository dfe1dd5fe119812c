"""Methods by name, ours and those that other packages bring."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points

from aircl.methods.method import Method, Setup
from aircl.registry import Registry

METHODS: Registry[type[Method]] = Registry("method")

# A package adds methods by an entry point of this group that names a module; importing it registers them.
ENTRY_POINTS = "aircl.methods"

# Importing a module registers its methods.
MODULES = ("air", "acil", "ranpac", "dsal", "gkeal", "aefocl", "prototypes")


def register_method(name: str) -> Callable[[type[Method]], type[Method]]:
    """Return a decorator that files a method under a name, for `aircl run --methods NAME`."""
    return METHODS.register(name)


def create_method(name: str, setup: Setup) -> Method:
    """Return a new method.

    Parameters
    ----------
    name : str
        One of `list_methods`.
    setup : Setup
    """
    load_methods()
    return METHODS[name](setup)


def list_methods() -> list[str]:
    """Return the names of all methods that can be asked for."""
    load_methods()
    return sorted(METHODS)


@dataclass(frozen=True)
class MethodInfo:
    """What a method is.

    Attributes
    ----------
    name : str
    kind : str
        What it learns from: "features" or "images".
    description : str
        One line.
    """

    name: str
    kind: str
    description: str


def describe_method(name: str) -> MethodInfo:
    """Return what a method is."""
    load_methods()
    method = METHODS[name]
    return MethodInfo(name, method.consumes, (inspect.getdoc(method) or "").partition("\n")[0])


@functools.cache
def load_methods() -> None:
    """Import our methods, and those that installed packages announce."""
    for module in MODULES:
        import_module(f"aircl.methods.{module}")

    for entry in entry_points(group=ENTRY_POINTS):
        entry.load()
