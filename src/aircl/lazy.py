"""Public names that are imported when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_demand(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package that shall be imported quickly, or without an extra.

    Parameters
    ----------
    package : str
        Its `__name__`.
    homes : mapping of str to str
        The modules, below the package, in which names are defined; several names are separated by spaces.

    Examples
    --------
    >>> from aircl.lazy import on_demand
    >>> find = on_demand("aircl", {"expansion": "GaussianKernel RandomReLU"})
    >>> find("RandomReLU")(500)
    RandomReLU(n_components=500)
    >>> find("Rows")
    Traceback (most recent call last):
    AttributeError: module 'aircl' has no attribute 'Rows'
    """
    home_of = {name: f"{package}.{home}" for home, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            home = import_module(home_of[name])
        except AttributeError as error:  # as it is, it would read as if there were no such name
            raise ImportError(f"{home_of[name]} cannot be imported: {error}") from error
        return getattr(home, name)

    return find
