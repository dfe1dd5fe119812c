"""One job of a run, in a process of its own: ``python -m aircl.benchmark.isolated DIR JOB DATA CACHE``."""

from __future__ import annotations

import sys

from aircl.benchmark.config import RunConfig
from aircl.benchmark.own_methods import load_sources
from aircl.benchmark.results import RunDirectory
from aircl.benchmark.runner import Runner


def main(path: str, job: str, data: str, cache: str) -> None:
    """Run a job of the run in a directory, which the process that started this one has locked."""
    directory = RunDirectory(path)
    about = directory.about
    load_sources(about.get("sources", {}))
    config = RunConfig.from_mapping(about.get("config", {}))
    runner = Runner(config, directory, data=data or None, cache=cache or None)
    runner._is_own_process = True
    runner.run_job(next(spec for spec in runner.specs() if spec.name == job))


if __name__ == "__main__":
    main(*sys.argv[1:])
