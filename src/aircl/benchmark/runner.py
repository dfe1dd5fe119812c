"""Runs: every method on every stream, one job after the other; what fails is noted, and the sweep goes on."""

from __future__ import annotations

import os
import platform
import subprocess
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import aircl
from aircl.backbones import Backbone, create_backbone
from aircl.backbones.base_cache import base_backbone
from aircl.backbones.cache import FeatureCache
from aircl.backbones.cache import Progress as ExtractionProgress
from aircl.benchmark.config import Experiment, RunConfig
from aircl.benchmark.grid import choose_gamma
from aircl.benchmark.job import Job, Progress, Samples
from aircl.benchmark.results import Row, RunDirectory, file_name
from aircl.data import Dataset, load_dataset
from aircl.methods import METHODS, IncompatibleError, Method, Setup, create_method, resolve_options
from aircl.methods.registry import load_methods
from aircl.scenarios import Stream, make_stream

# Matrices up to this size are solved on one BLAS thread: a second one gains little, and costs much on busy cores.
SMALL = 1024


@dataclass(frozen=True)
class Spec:
    """Which method on which stream a job is.

    Attributes
    ----------
    experiment : Experiment
    order : str
    method : str
    seed : int
    """

    experiment: Experiment
    order: str
    method: str
    seed: int

    @property
    def name(self) -> str:
        """The name of the job: files are named after it."""
        e = self.experiment
        return file_name(e.dataset, e.backbone, e.scenario, self.order, self.method, f"seed{self.seed}")


class Listener:
    """What a run tells whoever watches it; by default, nobody does.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from aircl.benchmark import Experiment, Listener, RunConfig, RunDirectory, Runner
    >>> class Printer(Listener):
    ...     def done(self, spec, row):
    ...         print(spec.method, row.metric, round(row.value, 2))
    >>> config = RunConfig("mine", (Experiment("digits", "identity", "cil", {"phases": 2}, methods=("ncm", "slda")),))
    >>> with TemporaryDirectory() as folder:
    ...     Runner(config, RunDirectory(folder), listener=Printer()).run()
    ncm A_last 0.91
    slda A_last 0.94
    """

    def extracting(self, what: str) -> ExtractionProgress | None:
        """Return what to call with rows done and all rows while features of `what` are extracted."""
        return None

    def training(self, backbone: str, n_images: int, n_classes: int) -> None:
        """Hear that a backbone is about to be trained on a first phase."""

    def job(self, spec: Spec, number: int, total: int) -> Progress | None:
        """Return what to call with samples done and all samples while a job goes on."""
        return None

    def done(self, spec: Spec, row: Row) -> None:
        """Hear how a job ended: its A_last, or the row that says why it failed."""


class Runner:
    """Runs a configuration into a directory.

    Parameters
    ----------
    config : RunConfig
    directory : RunDirectory
    data : path or None
        Where datasets are; None: where the environment variable AIRCL_DATA says.
    cache : path or None
        Where features are kept; None: `features` below `aircl.places.cache_directory()`.
    listener : Listener or None
        Who is told what goes on; None: nobody.

    Examples
    --------
    A rare class is one thing for AIR and another for ACIL:

    >>> from tempfile import TemporaryDirectory
    >>> from aircl.benchmark import Experiment, RunConfig, RunDirectory, Runner
    >>> experiment = Experiment("digits", "identity", "long-tail", {"phases": 2}, methods=("air", "acil"))
    >>> with TemporaryDirectory() as folder:
    ...     run = RunDirectory(folder)
    ...     Runner(RunConfig("mine", (experiment,)), run).run()
    ...     {row.method: round(row.value, 2) for row in run.rows() if row.metric == "tail"}
    {'air': 0.85, 'acil': 0.02}
    """

    def __init__(
        self,
        config: RunConfig,
        directory: RunDirectory,
        *,
        data: str | os.PathLike[str] | None = None,
        cache: str | os.PathLike[str] | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.config, self.directory, self.data = config, directory, data
        self.listener = listener or Listener()
        self._cache = FeatureCache(cache)
        self._datasets: dict[str, Dataset] = {}
        self._features: dict[tuple[str, str], tuple[Samples, Samples]] = {}

    def specs(self) -> list[Spec]:
        """Return all jobs of the run."""
        return [
            Spec(experiment, order, method, seed)
            for experiment in self.config.experiments
            for order in experiment.orders
            for seed in experiment.seeds
            for method in experiment.methods
        ]

    def _names(self) -> list[str]:
        """Return the names of the datasets."""
        return list(dict.fromkeys(experiment.dataset for experiment in self.config.experiments))

    def run(self) -> None:
        """Run all jobs that are not finished yet."""
        load_methods()
        for experiment in self.config.experiments:  # what is missing or misspelt is found now, not after an hour
            for method in experiment.methods:
                method_options(experiment, method)
            dataset = self._dataset(experiment.dataset)
            for order in experiment.orders:
                self._stream(Spec(experiment, order, "", experiment.seeds[0]), dataset)
        self.directory.path.mkdir(parents=True, exist_ok=True)
        with self.directory.locked():
            self._run_all()

    def _run_all(self) -> None:
        about = self.directory.about if (self.directory.path / "run.json").exists() else self._about()
        self.directory.write_about(about)
        rows = self.directory.rows()
        finished = {row.job for row in rows if row.metric == "A_last" or row.status == "incompatible"}
        specs = self.specs()
        for number, spec in enumerate(specs, 1):
            if spec.name not in finished:
                self._run_job(spec, number, len(specs))
        self.directory.tidy()
        self.directory.write_about({**about, "finished": _now()})

    def _run_job(self, spec: Spec, number: int, total: int) -> None:
        experiment = spec.experiment
        template = Row(
            self.config.name, spec.name, experiment.dataset, experiment.backbone, experiment.scenario, spec.order,
            spec.method, spec.seed, 0, 0, "", "", None, 0.0, 0,
            buffer=experiment.buffer if METHODS[spec.method].analytic else None,
        )  # fmt: skip
        try:
            dataset = self._dataset(experiment.dataset)
            stream = self._stream(spec, dataset)
            self._job(spec, template, dataset, stream).run(self.listener.job(spec, number, total))
        except IncompatibleError as error:
            self._note_failure(replace(template, status="incompatible", reason=str(error)))
        except Exception as error:  # a sweep goes on whatever one method does
            where = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno})"
            self._note_failure(replace(template, status="failed", reason=reason))
        last = [row for row in self.directory.rows() if row.job == spec.name][-1]
        self.listener.done(spec, last)

    def _note_failure(self, row: Row) -> None:
        others = [old for old in self.directory.rows() if old.job != row.job]
        self.directory.rewrite([*others, row])

    def _job(self, spec: Spec, template: Row, dataset: Dataset, stream: Stream) -> Job:
        experiment = spec.experiment
        method_class = METHODS[spec.method]
        options = method_options(experiment, spec.method)
        on_images = method_class.inputs_for(options) == "images"
        backbone = self._backbone(spec, dataset, stream)
        if dataset.kind not in backbone.kinds:
            raise ValueError(f"{dataset.name} has {dataset.kind}, but {backbone.name} takes {backbone.kinds}.")
        if on_images:
            if dataset.kind != "images":
                raise IncompatibleError(f"{spec.method} learns from images, but {dataset.name} has {dataset.kind}.")
            train, test = (Samples(split.inputs, split.labels) for split in (dataset.train, dataset.test))
        else:
            train, test = self._extracted(dataset, backbone)
        setup = Setup(
            seed=spec.seed,
            n_features=backbone.width,
            online=experiment.online,
            batch_size=experiment.batch_size,
            buffer=experiment.buffer,
            gamma="auto" if experiment.gamma == "grid" else experiment.gamma,
            backbone=backbone if on_images else None,
            device=experiment.device,
            options=options,
        )
        if experiment.gamma == "grid" and method_class.analytic:
            gamma = choose_gamma(lambda: create_method(spec.method, setup), stream, train, experiment.batch_size)
            setup = replace(setup, gamma=gamma)

        def make() -> Method:
            return create_method(spec.method, setup)

        return Job(
            template,
            make,
            stream,
            train,
            test,
            online=experiment.online,
            batch_size=experiment.batch_size,
            evaluate_every=experiment.evaluate_every,
            directory=self.directory,
            blas_threads=1 if (experiment.buffer or backbone.width) <= SMALL else None,
        )

    # -- from names to things --
    def _dataset(self, name: str) -> Dataset:
        if name not in self._datasets:
            self._datasets[name] = load_dataset(name, root=self.data)
        return self._datasets[name]

    def _stream(self, spec: Spec, dataset: Dataset) -> Stream:
        options = dict(spec.experiment.options) | ({"order": spec.order} if spec.order else {})
        train = dataset.train
        return make_stream(spec.experiment.scenario, train.labels, seed=spec.seed, domains=train.domains, **options)

    def _backbone(self, spec: Spec, dataset: Dataset, stream: Stream) -> Backbone:
        name, train = spec.experiment.backbone, dataset.train
        if not name.startswith("base:"):
            return create_backbone(name, example=train.inputs[np.arange(1)], device=spec.experiment.device)
        return base_backbone(
            name,
            train.inputs,
            train.labels,
            train.fingerprint,
            stream.phases[0].train,
            training=lambda n_images, n_classes: self.listener.training(name, n_images, n_classes),
            device=spec.experiment.device,
            seed=spec.seed,
        )

    def _extracted(self, dataset: Dataset, backbone: Backbone) -> tuple[Samples, Samples]:
        key = (dataset.train.fingerprint, backbone.fingerprint)
        if key not in self._features:
            self._features[key] = tuple(  # type: ignore[assignment]  # of two
                Samples(
                    self._cache.features(
                        backbone,
                        split.inputs,
                        split.fingerprint,
                        data=f"{dataset.name}/{name}",
                        progress=self.listener.extracting(f"{dataset.name}, {name}"),
                    ),
                    split.labels,
                )
                for name, split in (("train", dataset.train), ("test", dataset.test))
            )
        return self._features[key]

    def _about(self) -> dict[str, Any]:
        return {
            "name": self.config.name,
            "config": self.config.to_mapping(),
            "classes": {name: list(self._dataset(name).class_names) for name in self._names()},
            "methods": [dict(_described(experiment)) for experiment in self.config.experiments],
            "versions": dict(_versions()),
            "revision": _revision(),
            "machine": {"system": platform.platform(), "cores": os.cpu_count(), "python": platform.python_version()},
            "started": _now(),
            "finished": None,
        }


def method_options(experiment: Experiment, method: str) -> dict[str, Any]:
    """Return all options of a method in an experiment, with their values.

    Raises
    ------
    ValueError
        If there is no such method, or if it has no such option.
    """
    given = dict(experiment.method_options.get(method, {}))
    # A method that can train the backbone has an option for it.
    if experiment.unfreeze and "unfreeze" in resolve_options(method, {}, online=experiment.online):
        given = {"unfreeze": True, **given}
    return resolve_options(method, given, online=experiment.online)


def _described(experiment: Experiment) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each method of an experiment with its options, resolved, and what a reader should know of it."""
    for name in experiment.methods:
        options, method = method_options(experiment, name), METHODS[name]
        yield (
            name,
            {
                "options": options,
                "title": method.title_for(name, options, online=experiment.online),
                "notes": method.notes_for(options, online=experiment.online),
            },
        )


def _now() -> str:
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
