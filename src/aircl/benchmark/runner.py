"""Runs: every method on every stream, one job after the other; what fails is noted, and the sweep goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from aircl.backbones import Backbone, create_backbone
from aircl.backbones.base_cache import base_backbone
from aircl.backbones.cache import FeatureCache
from aircl.benchmark.about import about_run, method_gamma, method_options, now
from aircl.benchmark.config import Experiment, RunConfig
from aircl.benchmark.evaluation import Samples
from aircl.benchmark.grid import choose_gamma
from aircl.benchmark.job import Job, Progress
from aircl.benchmark.listener import Listener, Spec, Together
from aircl.benchmark.results import Row, RunDirectory
from aircl.benchmark.streams import describe_streams, left_out_remarks
from aircl.benchmark.warm_up import warm_up
from aircl.data import Dataset, load_dataset
from aircl.methods import METHODS, Hints, IncompatibleError, Method, Setup, create_method
from aircl.methods.registry import load_methods
from aircl.scenarios import Stream, make_stream

# Matrices up to this size are solved on one BLAS thread: a second one gains little, and costs much on busy cores.
SMALL = 1024


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
    listener : Listener, sequence of them, or None
        Who is told what goes on; None: nobody.
    isolate : bool, default=False
        Whether every job has a process of its own, so that its peak memory can be told. It is slower, as each
        process imports everything again.

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
        listener: Listener | Sequence[Listener] | None = None,
        isolate: bool = False,
    ) -> None:
        self.config, self.directory, self.data, self.isolate = config, directory, data, isolate
        self.listener = listener if isinstance(listener, Listener) else Together(*(listener or ()))
        self._cache_place = cache
        self._cache = FeatureCache(cache)
        self._is_own_process = False
        self._warm: set[str] = set()
        self._datasets: dict[str, Dataset] = {}
        self._features: dict[tuple[str, str], tuple[Samples, Samples]] = {}

    def specs(self) -> list[Spec]:
        """Return all jobs of the run."""
        specs = [
            Spec(experiment, order, method, seed, stream)
            for experiment, stream in zip(self.config.experiments, self.config.stream_names(), strict=True)
            for seed in experiment.seeds  # so that a run that is stopped has whole seeds
            for order in experiment.orders
            for method in experiment.methods
        ]
        names = [spec.name for spec in specs]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"{twice} is asked for twice. Name every method, order and seed of a stream once.")
        return specs

    def run(self) -> None:
        """Run all jobs that are not finished yet."""
        load_methods()
        specs = self.specs()
        for experiment in self.config.experiments:  # what is missing or misspelt is found now, not after an hour
            for method in experiment.methods:
                method_options(experiment, method)
                method_gamma(experiment, method)
        streams = [
            self._describe(*pair) for pair in zip(self.config.experiments, self.config.stream_names(), strict=True)
        ]
        self.directory.path.mkdir(parents=True, exist_ok=True)
        with self.directory.locked():
            known = (self.directory.path / "run.json").exists()
            about = self.directory.about if known else about_run(self.config, streams, self._class_names())
            self.directory.write_about(about)
            for experiment, stream in zip(self.config.experiments, streams, strict=True):
                for remark in left_out_remarks(stream["left_out"]):
                    self.listener.left_out(f"{experiment.dataset}, {stream['scenario']}", remark)
            try:
                self._run_all(specs)
            finally:
                self.listener.close()
            self.directory.tidy()
            self.directory.write_about({**about, "finished": now()})

    def _run_all(self, specs: list[Spec]) -> None:
        finished = {row.job for row in self.directory.rows() if row.metric == "A_last" or row.status == "incompatible"}
        for number, spec in enumerate(specs, 1):
            if spec.name in finished:
                continue
            progress = self.listener.job(spec, number, len(specs))
            if self.isolate:
                self._run_apart(spec)
            else:
                self.run_job(spec, progress)
            last = [row for row in self.directory.rows() if row.job == spec.name][-1]
            self.listener.done(spec, last)

    def run_job(self, spec: Spec, progress: Progress | None = None) -> None:
        """Run one job; what goes wrong with it becomes a row."""
        try:
            dataset = self._dataset(spec.experiment.dataset)
            self._job(spec, dataset, self._stream(spec.experiment, spec.order, spec.seed)).run(progress)
        except IncompatibleError as error:
            self._note_failure(replace(self._template(spec), status="incompatible", reason=str(error)))
        except Exception as error:  # a sweep goes on whatever one method does
            where = traceback.extract_tb(error.__traceback__)[-1]
            reason = f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno})"
            self._note_failure(replace(self._template(spec), status="failed", reason=reason))

    def _run_apart(self, spec: Spec) -> None:
        """Run one job in a process of its own, which writes the rows."""
        rows = len(self.directory.rows())
        command = [sys.executable, "-m", "aircl.benchmark.isolated", str(self.directory.path), spec.name]
        places = [str(place or "") for place in (self.data, self._cache_place)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        ended = subprocess.run([*command, *places], env=environment, capture_output=True, text=True, check=False)
        own = [row for row in self.directory.rows() if row.job == spec.name]
        if ended.returncode or not own or (own[-1].metric != "A_last" and own[-1].status == "ok"):
            said = ended.stderr.strip().splitlines()
            reason = f"its process ended with code {ended.returncode}" + (f": {said[-1]}" if said else "")
            self._note_failure(replace(self._template(spec), status="failed", reason=reason))
        self.listener.rows(spec, [row for row in self.directory.rows()[rows:] if row.job == spec.name])

    def _template(self, spec: Spec) -> Row:
        """Return a row with everything that all rows of a job share."""
        e, analytic = spec.experiment, METHODS[spec.method].analytic
        return Row(
            self.config.name, spec.name, e.dataset, e.backbone, spec.stream, spec.order, spec.method, spec.seed,
            0, 0, "", "", None, 0.0, buffer=e.buffer if analytic else None,
        )  # fmt: skip

    def _note_failure(self, row: Row) -> None:
        others = [old for old in self.directory.rows() if old.job != row.job]
        self.directory.rewrite([*others, row])

    def prepare(self, experiment: Experiment, method: str) -> tuple[Setup, Stream, Samples]:
        """Return what a method is told before the first stream of an experiment, the stream, and training samples."""
        spec = Spec(experiment, experiment.orders[0], method, experiment.seeds[0], experiment.scenario)
        stream = self._stream(experiment, spec.order, spec.seed)
        setup, train, _ = self._prepare(spec, self._dataset(experiment.dataset), stream)
        return setup, stream, train

    def _prepare(self, spec: Spec, dataset: Dataset, stream: Stream) -> tuple[Setup, Samples, Samples]:
        experiment = spec.experiment
        options = method_options(experiment, spec.method)
        on_images = METHODS[spec.method].inputs_for(options) == "images"
        backbone = self._backbone(spec, dataset, stream)
        if dataset.kind not in backbone.kinds:
            raise ValueError(f"{dataset.name} has {dataset.kind}, but {backbone.name} takes {backbone.kinds}.")
        if on_images:
            if dataset.kind != "images":
                raise IncompatibleError(f"{spec.method} learns from images, but {dataset.name} has {dataset.kind}.")
            train, test = (Samples(split.inputs, split.labels) for split in (dataset.train, dataset.test))
        else:
            train, test = self._extracted(dataset, backbone)
        gamma = method_gamma(experiment, spec.method)
        setup = Setup(
            seed=spec.seed,
            n_features=backbone.width,
            online=experiment.online,
            batch_size=experiment.batch_size,
            buffer=experiment.buffer,
            gamma="auto" if gamma == "grid" else gamma,
            backbone=backbone if on_images else None,
            device=experiment.device,
            options=options,
            hints=Hints(len(stream.classes), len(stream)),
        )
        return setup, train, test

    def _job(self, spec: Spec, dataset: Dataset, stream: Stream) -> Job:
        experiment = spec.experiment
        setup, train, test = self._prepare(spec, dataset, stream)
        if METHODS[spec.method].analytic and method_gamma(experiment, spec.method) == "grid":
            gamma = choose_gamma(lambda: create_method(spec.method, setup), stream, train, experiment.batch_size)
            setup = replace(setup, gamma=gamma)

        def make() -> Method:
            # A method notes what it reads of the future, so each has hints of its own.
            return create_method(spec.method, replace(setup, hints=Hints(len(stream.classes), len(stream))))

        there, here = dataset.train.domains, dataset.test.domains
        domains = None if there is None or here is None else (there, here)
        if spec.method not in self._warm:
            warm_up(spec.method, setup, train, stream)
            self._warm.add(spec.method)
        return Job(
            self._template(spec),
            make,
            stream,
            train,
            test,
            online=experiment.online,
            batch_size=experiment.batch_size,
            evaluate_every=experiment.evaluate_every,
            directory=self.directory,
            blas_threads=1 if (experiment.buffer or setup.n_features) <= SMALL else None,
            domains=domains,
            isolated=self._is_own_process,
            listener=lambda rows: self.listener.rows(spec, rows),
        )

    # -- from names to things --
    def _dataset(self, name: str) -> Dataset:
        if name not in self._datasets:
            self._datasets[name] = load_dataset(name, root=self.data)
        return self._datasets[name]

    def _stream(self, experiment: Experiment, order: str, seed: int) -> Stream:
        train = self._dataset(experiment.dataset).train
        options = dict(experiment.options) | ({"order": order} if order else {})
        return make_stream(experiment.scenario, train.labels, seed=seed, domains=train.domains, **options)

    def _class_names(self) -> dict[str, list[str]]:
        datasets = dict.fromkeys(experiment.dataset for experiment in self.config.experiments)
        return {name: list(self._dataset(name).class_names) for name in datasets}

    def _describe(self, experiment: Experiment, name: str) -> dict[str, Any]:
        places = [(order, seed) for order in experiment.orders for seed in experiment.seeds]
        streams = {(order, seed): self._stream(experiment, order, seed) for order, seed in places}
        return describe_streams(experiment, name, streams, self._dataset(experiment.dataset).class_names)

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
