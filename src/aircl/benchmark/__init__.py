"""The benchmark: streams, methods, metrics and resumable runs.

>>> from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aircl.benchmark.config import Experiment, RunConfig, default_config, preset_config
    from aircl.benchmark.results import Details, Row, RunDirectory
    from aircl.benchmark.runner import Listener, Runner

__all__ = [
    "Details",
    "Experiment",
    "Listener",
    "Row",
    "RunConfig",
    "RunDirectory",
    "Runner",
    "default_config",
    "preset_config",
]

_HOMES = {
    "Details": "aircl.benchmark.results",
    "Experiment": "aircl.benchmark.config",
    "Listener": "aircl.benchmark.runner",
    "Row": "aircl.benchmark.results",
    "RunConfig": "aircl.benchmark.config",
    "RunDirectory": "aircl.benchmark.results",
    "Runner": "aircl.benchmark.runner",
    "default_config": "aircl.benchmark.config",
    "preset_config": "aircl.benchmark.config",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: the results can be read without what runs a benchmark."""
    if name not in _HOMES:
        raise AttributeError(f"module 'aircl.benchmark' has no attribute {name!r}")
    try:
        home = import_module(_HOMES[name])
    except AttributeError as error:  # as it is, it would read as if there were no such name
        raise ImportError(f"{_HOMES[name]} cannot be imported: {error}") from error
    return getattr(home, name)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return __all__
