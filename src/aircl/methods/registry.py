"""Methods by name, ours and those that other packages bring."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from aircl.methods.method import Method, Setup
from aircl.registry import Registry

# Other names that papers have for what is here; capitals do not matter.
ALIASES: Mapping[str, str] = {
    "afl": "acil", "g-acil": "gacl", "simplecil": "ncm", "experience-replay": "er", "rainbow-memory": "rm",
    "path-integral": "si", "post-scaling": "cimbl", "lt-cil": "two-stage", "gradient-reweighting": "dgr",
}  # fmt: skip

# What `--methods` takes for many: methods made for imbalance that work on frozen features, and what to compare with.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "imbalance": (
        "air", "air-calibrated", "aef-ocl", "er", "rm", "icarl", "las", "cimbl", "cbrs", "bic", "two-stage", "dgr",
        "prs", "clib", "cba", "gss", "ewc", "si", "rwalk", "lfl", "dmc", "lucir",
    ),
}  # fmt: skip

# Systems of the related work that are not here, and why; capitals and hyphens do not matter.
ABSENT: Mapping[str, str] = {
    "podnet": "it distils maps of a backbone's stages, which a frozen one does not change",
    "foster": "it boosts a backbone by a second one, of which nothing is left on a frozen one",
    "aanets": "it mixes a stable and a plastic backbone, of which a frozen one has only the first",
    "drc": "its two affine branches are one linear head on frozen features; 'las' has its loss",
    "delta": "it trains the backbone by contrast; on frozen features it is 'las'",
    "lst": "it is made for the segmentation of images",
    "activecil": "it chooses what to label; its correction is that of 'cimbl'",
    "oho": "it chooses options of other methods on the way",
    "lsse": "it is a random expansion for models of the world in reinforcement learning",
    "clad": "its loss could not be confirmed",
    "ispc": "it has no public code, and its formulas could not be confirmed",
}


class MethodRegistry(Registry[type[Method]]):
    """Methods by name; other names that papers have for them are known too.

    Examples
    --------
    >>> from aircl.methods.registry import METHODS, load_methods
    >>> load_methods()
    >>> METHODS["simplecil"] is METHODS["ncm"]
    True
    >>> METHODS["podnet"]  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: 'podnet' is not here: it distils maps of a backbone's stages, ...
    """

    def __getitem__(self, name: str) -> type[Method]:
        spelled = name.lower()
        if name not in self and spelled in ALIASES:
            return super().__getitem__(ALIASES[spelled])
        if name not in self and (reason := ABSENT.get(spelled.replace("-", ""))):
            raise ValueError(f"{name!r} is not here: {reason}. `aircl list methods` shows what there is.")
        return super().__getitem__(name)


METHODS = MethodRegistry("method")

# A package adds methods by an entry point of this group that names a module; importing it registers them.
ENTRY_POINTS = "aircl.methods"

# Importing a module registers its methods.
MODULES = (
    "air", "acil", "ranpac", "dsal", "gkeal", "aefocl", "prototypes", "real",
    "fine_tuning", "icarl", "er", "ewc", "lwf", "rm",
    "las", "cimbl", "cbrs", "prs", "clib", "gss", "cba",
    "bic", "two_stage", "dgr", "elastic", "si", "rwalk", "lfl", "dmc", "lucir",
    "l2p", "dualprompt", "coda_prompt", "mvp", "mvp_r", "dap", "ease", "joint",
)  # fmt: skip


def register_method(name: str) -> Callable[[type[Method]], type[Method]]:
    """Return a decorator that files a method under a name, for `aircl run --methods NAME`.

    Parameters
    ----------
    name : str

    Returns
    -------
    decorator : callable
        Of a subclass of Method.

    Examples
    --------
    NCM on features of length 1:

    >>> import numpy as np
    >>> from aircl.methods import describe_method, register_method
    >>> from aircl.methods.prototypes import Ncm
    >>> @register_method("ncm-unit")
    ... class UnitNcm(Ncm):
    ...     "NCM on features of length 1."
    ...     def learn(self, inputs, labels):
    ...         super().learn(inputs / np.linalg.norm(inputs, axis=1, keepdims=True), labels)
    >>> print(describe_method("ncm-unit").description)
    NCM on features of length 1.
    """
    return METHODS.register(name)


def create_method(name: str, setup: Setup) -> Method:
    """Return a new method.

    Parameters
    ----------
    name : str
        One of `list_methods`.
    setup : Setup

    Returns
    -------
    method : Method
        It has learned nothing yet.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from aircl.methods import Setup, create_method
    >>> X, y = load_digits(return_X_y=True)
    >>> method = create_method("acil", Setup(seed=1, n_features=64, buffer=200))
    >>> method.learn(X[:1200] / 16, y[:1200])
    >>> test = method.encode(X[1200:] / 16)  # once, however often it is predicted
    >>> print(f"{(method.predict(test) == y[1200:]).mean():.2f}")
    0.92
    """
    load_methods()
    return METHODS[name](setup)


def list_methods() -> list[str]:
    """Return the names of all methods that can be asked for.

    Returns
    -------
    names : list of str
        Sorted.

    Examples
    --------
    >>> from aircl.methods import list_methods
    >>> [name for name in list_methods() if "air" in name]
    ['air', 'air-calibrated', 'air-pooled', 'air-shared']
    """
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
    options : dict
        Names of the options, with their defaults in a stream with phases; empty if the method does not name any.
    aliases : list of str
        Other names, which are understood too.

    Examples
    --------
    >>> from aircl.methods import describe_method
    >>> info = describe_method("air-shared")
    >>> info.kind, info.description
    ('features', 'AIR with one within-class scatter for all classes, in 1/C of the memory.')
    """

    name: str
    kind: str
    description: str
    options: dict[str, Any]
    aliases: list[str] = field(default_factory=list)


def describe_method(name: str) -> MethodInfo:
    """Return what a method is.

    Parameters
    ----------
    name : str
        One of `list_methods`.

    Returns
    -------
    info : MethodInfo

    Examples
    --------
    >>> from aircl.methods import describe_method
    >>> describe_method("air").options
    {'weighting': 'inverse', 'scale': 'mean', 'memory_limit': None}
    """
    load_methods()
    method = METHODS[name]
    description = (inspect.getdoc(method) or "").partition("\n")[0]
    options = method.resolve_options({}, online=False)
    aliases = [alias for alias, meant in ALIASES.items() if meant == name]
    return MethodInfo(name, method.inputs_for(options), description, options, aliases)


def resolve_options(name: str, options: Mapping[str, Any], *, online: bool) -> dict[str, Any]:
    """Return all options of a method with their values, where some are given.

    Parameters
    ----------
    name : str
        One of `list_methods`.
    options : mapping
        Those that are given.
    online : bool
        Whether the stream is passed through once, for which methods may have other defaults.

    Returns
    -------
    options : dict
        With the defaults of those that are not given.

    Raises
    ------
    ValueError
        For an option that the method has not, or a value that it does not take; the message names the method.

    Examples
    --------
    >>> from aircl.methods import resolve_options
    >>> options = resolve_options("er", {"memory": 500}, online=True)
    >>> options["memory"], options["optimiser"]
    (500, 'adam')
    >>> resolve_options("lwf", {"memory": 500}, online=True)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: lwf: there is no option 'memory'. Allowed: epochs, updates, optimiser, learning_rate, momentum, ...
    """
    load_methods()
    try:
        return METHODS[name].resolve_options(options, online=online)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def expand_methods(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of methods, with those of groups in place of a group's name and none twice.

    Parameters
    ----------
    names : iterable of str
        Of methods, groups such as "imbalance", and other names of methods.

    Examples
    --------
    >>> from aircl.methods.registry import expand_methods
    >>> expand_methods(["joint", "SimpleCIL"])
    ('joint', 'ncm')
    >>> expand_methods(["imbalance", "air"])[:3]
    ('air', 'air-calibrated', 'aef-ocl')
    """
    load_methods()
    known = [ALIASES.get(name.lower(), name) if name not in METHODS else name for name in names]
    return tuple(dict.fromkeys(one for name in known for one in GROUPS.get(name, (name,))))


@functools.cache
def load_methods() -> None:
    """Import our methods, and those that installed packages announce."""
    for module in MODULES:
        import_module(f"aircl.methods.{module}")

    for entry in entry_points(group=ENTRY_POINTS):
        entry.load()
