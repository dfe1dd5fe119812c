"""The benchmark: streams, methods, metrics and resumable runs.

>>> from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aircl.lazy import on_demand

if TYPE_CHECKING:
    from aircl.benchmark.config import Experiment, RunConfig, default_config, preset_config
    from aircl.benchmark.listener import Listener
    from aircl.benchmark.results import Details, Row, RunDirectory
    from aircl.benchmark.runner import Runner

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

__getattr__ = on_demand(
    __name__,
    {
        "results": "Details Row RunDirectory",
        "config": "Experiment RunConfig default_config preset_config",
        "listener": "Listener",
        "runner": "Runner",
    },
)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return __all__
