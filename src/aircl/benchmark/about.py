"""What `run.json` says of a run: what was asked for, with all options resolved, on what machine, by what code."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import aircl
from aircl.benchmark.config import Experiment, Gamma, RunConfig, check_gamma
from aircl.benchmark.own_methods import method_sources
from aircl.methods import METHODS, resolve_options
from aircl.methods.registry import load_methods

# What the report tells of options that were searched.
TUNED = (
    "Options were chosen by {trials} trials on held-out training samples, {seconds:.1f} s: {score:.1%} there, "
    "{default_score:.1%} with the defaults."
)
UNRESUMABLE = "It cannot be resumed: a stop costs the whole job; the size of its state is not known."
BOUND = "An upper bound: it keeps every sample, and is not ranked."


def about_run(config: RunConfig, streams: list[dict[str, Any]], class_names: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return what is known before the first job, given what is to be said of each experiment's streams."""
    methods = dict.fromkeys(name for experiment in config.experiments for name in experiment.methods)
    return {
        "name": config.name,
        "config": config.to_mapping(),
        "classes": dict(class_names),
        "streams": streams,
        "sources": method_sources(methods),
        "methods": [dict(_described(experiment)) for experiment in config.experiments],
        "versions": dict(_versions()),
        "revision": _revision(),
        "machine": {"system": platform.platform(), "cores": os.cpu_count(), "python": platform.python_version()},
        "started": now(),
        "finished": None,
    }


def method_options(experiment: Experiment, method: str) -> dict[str, Any]:
    """Return all options of a method in an experiment, with their values.

    Raises
    ------
    ValueError
        If there is no such method, or if it has no such option.
    """
    load_methods()
    given = dict(experiment.method_options.get(method, {}))
    if METHODS[method].analytic:  # what the run says of all of them, it may say of one
        given.pop("gamma", None)
    # A method that can train the backbone has an option for it.
    if experiment.unfreeze and "unfreeze" in resolve_options(method, {}, online=experiment.online):
        given = {"unfreeze": True, **given}
    return resolve_options(method, given, online=experiment.online)


def method_gamma(experiment: Experiment, method: str) -> Gamma:
    """Return the ridge of a method: its own where there is one, else that of the experiment."""
    return check_gamma(experiment.method_options.get(method, {}).get("gamma", experiment.gamma))


def _described(experiment: Experiment) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each method of an experiment with its options, resolved, and what a reader should know of it."""
    for name in experiment.methods:
        options, method = method_options(experiment, name), METHODS[name]
        title = method.title_for(name, options, online=experiment.online)
        if method.analytic:
            options["gamma"] = method_gamma(experiment, name)
        notes = [
            *method.notes_for(options, online=experiment.online),
            *([] if method.resumable else [UNRESUMABLE]),
            *([TUNED.format(**cost)] if (cost := experiment.tuning.get(name)) else []),
            *([BOUND] if method.is_bound else []),
        ]
        yield name, {"options": options, "title": title, "notes": notes, "is_bound": method.is_bound}


def now() -> str:
    """Return the time, as `run.json` has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> Iterator[tuple[str, str]]:
    yield "aircl", aircl.__version__
    for name in ("numpy", "scipy", "scikit-learn", "torch"):
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def _revision() -> str | None:
    """Return the git revision of the code, "+" if it was changed since, or None if it is not in a repository."""

    def git(*command: str) -> str:
        place = Path(__file__).parent
        return subprocess.run(["git", *command], cwd=place, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
