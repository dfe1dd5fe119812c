"""The rows of a run, sorted into experiments, methods and seeds: what tables and figures are made of."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from aircl.benchmark.results import Details, Row
from aircl.report.estimates import Estimate, Series, estimate

Integers = npt.NDArray[np.int64]
JobStatus = Literal["ok", "failed", "incompatible", "unfinished"]
ClassValue = Literal["weight_norms", "test_loss", "train_loss"]
Cost = Literal["seconds", "predict_seconds", "state_bytes", "peak_memory", "kept", "gamma", "buffer"]


@dataclass(frozen=True)
class Job:
    """One method on one stream.

    Attributes
    ----------
    name : str
    seed : int
    rows : tuple of Row
        Without those that a later row of the same place and metric replaces.
    load : callable
        Returns the details, or None.
    """

    name: str
    seed: int
    rows: tuple[Row, ...]
    load: Callable[[], Details | None] = field(repr=False)

    @property
    def status(self) -> JobStatus:
        """Whether the job came to its end; its last row decides, as a job may be tried again."""
        last = self.rows[-1]
        if last.status != "ok":
            return last.status
        return "ok" if any(row.point == "final" for row in self.rows) else "unfinished"

    @property
    def reason(self) -> str:
        """Why there is no result; "" if there is one."""
        if self.status == "unfinished":
            return f"stopped after phase {max(row.phase for row in self.rows)}"
        return self.rows[-1].reason

    @cached_property
    def details(self) -> Details | None:
        """What was kept for figures."""
        return self.load()

    def final(self, metric: str) -> float | None:
        """Return a summary of the whole stream."""
        return next((row.value for row in self.rows if row.point == "final" and row.metric == metric), None)

    def course(self, point: str, metric: str) -> list[Row]:
        """Return the rows of a metric at the ends of phases or on the way, in order."""
        rows = [r for r in self.rows if r.point == point and r.metric == metric and r.value is not None]
        return sorted(rows, key=lambda row: (row.samples, row.phase))


@dataclass(frozen=True)
class MethodResults:
    """All seeds of one method in one experiment.

    Attributes
    ----------
    name : str
    style : int
        Place of the method among all of the run: its colour and marker, the same in every figure.
    jobs : tuple of Job
        By seed.
    title : str
        What tables call it, where that is not its name: "icarl (nearest mean of exemplars)".
    is_bound : bool
        Whether it keeps everything and is no competitor: what the others could reach.
    """

    name: str
    style: int
    jobs: tuple[Job, ...]
    title: str = ""
    is_bound: bool = False

    @property
    def label(self) -> str:
        """The title, or the name where there is none."""
        return self.title or self.name

    @property
    def used(self) -> tuple[Job, ...]:
        """The jobs that figures show: the finished ones; if there is none, those that got somewhere."""
        finished = tuple(job for job in self.jobs if job.status == "ok")
        return finished or tuple(job for job in self.jobs if job.status == "unfinished")

    @property
    def problems(self) -> list[tuple[JobStatus, str, list[int]]]:
        """What went wrong: status, reason and the seeds that it befell."""
        seeds: dict[tuple[JobStatus, str], list[int]] = defaultdict(list)
        for job in self.jobs:
            if job.status != "ok":
                seeds[job.status, job.reason].append(job.seed)
        return [(status, reason, which) for (status, reason), which in seeds.items()]

    @property
    def told(self) -> str:
        """What of the future the method asked for, in words; "" if nothing."""
        names = {"n_classes": "the number of classes", "n_phases": "the number of phases"}
        asked = {name for job in self.jobs for row in job.rows for name in row.told.split(",") if name}
        return " and ".join(names.get(name, name) for name in sorted(asked))

    @property
    def n_seeds(self) -> int:
        """Number of finished seeds."""
        return sum(job.status == "ok" for job in self.jobs)

    def final(self, metric: str) -> Estimate | None:
        """Return a summary metric, such as "A_last"; accuracies are shares from 0 to 1."""
        return estimate(job.final(metric) for job in self.jobs if job.status == "ok")

    def cost(self, what: Cost) -> Estimate | None:
        """Return seconds, bytes, samples kept, gamma or width of the buffer, as they stand at the end."""
        known = ([getattr(row, what) for row in job.rows if getattr(row, what) is not None] for job in self.used)
        # Of the last row that has one; a summary row may not. Times, peaks and samples are the most there were.
        last = what in ("gamma", "buffer", "state_bytes")
        return estimate(values[-1] if last else max(values) for values in known if values)

    def anytime(self, metric: str = "accuracy") -> Series | None:
        """Return accuracy over samples seen: of the periodic evaluations, or at the ends of phases if there are none.

        Seeds need not have been evaluated after the same numbers of samples: the k-th point stands at the mean of
        their k-th numbers, and each seed's curve is interpolated there.
        """
        for point in ("periodic", "phase"):
            courses = [course for job in self.used if (course := job.course(point, metric))]
            if courses:
                length = min(map(len, courses))
                samples = np.array([[row.samples for row in course[:length]] for course in courses], np.float64)
                values = np.array([[row.value for row in course[:length]] for course in courses], np.float64)
                x = samples.mean(axis=0)
                return Series.over_seeds(x, np.array([np.interp(x, *own) for own in zip(samples, values, strict=True)]))
        return None

    def phases(self, metric: str = "accuracy") -> Series | None:
        """Return accuracy at the end of each phase."""
        courses = [{row.phase: row.value for row in job.course("phase", metric)} for job in self.used]
        phases = sorted({phase for course in courses for phase in course})
        if not phases:
            return None
        values = np.array([[course.get(phase) for phase in phases] for course in courses], np.float64)
        return Series.over_seeds(np.array(phases), values)

    @cached_property
    def details(self) -> list[Details]:
        """The details of the seeds that have some."""
        return [job.details for job in self.used if job.details is not None]

    def class_phases(self) -> Series | None:
        """Return the last accuracy on the classes that were new in each phase."""
        last = [details.phase_accuracy[-1] for details in self.details if details.phase_accuracy.size]
        if not last:
            return None
        values = np.full((len(last), max(map(len, last))), math.nan)
        for row, accuracy in zip(values, last, strict=True):
            row[: len(accuracy)] = accuracy
        return Series.over_seeds(np.arange(values.shape[1]) + 1, values)

    def per_class(self, what: ClassValue, classes: Integers) -> Series | None:
        """Return weight norms or losses of classes, in the given order; None if the method has none."""
        held = [details for details in self.details if getattr(details, what).size]
        if not held:
            return None
        values = [dict(zip(d.classes.tolist(), getattr(d, what).tolist(), strict=True)) for d in held]
        table = np.array([[row.get(label, math.nan) for label in classes.tolist()] for row in values], np.float64)
        return Series.over_seeds(classes, table)

    def confusions(self, classes: Integers) -> dict[int, Integers]:
        """Return the confusion matrix of each seed, rows and columns in the given order of classes."""
        found = {}
        for job in self.used:
            if job.details is not None and job.details.confusion.size:
                place = _places(job.details.classes, classes)
                found[job.seed] = np.zeros((len(classes), len(classes)), np.int64)
                found[job.seed][np.ix_(place, place)] = job.details.confusion
        return found


@dataclass(frozen=True)
class Experiment:
    """The methods that were compared on one dataset, backbone, scenario and order.

    Attributes
    ----------
    dataset, backbone, scenario, order : str
        `order` is "" for scenarios that have none.
    methods : tuple of MethodResults
        AIR and ACIL first, the others in the order in which they ran.
    config : mapping
        What was asked for, as `run.json` holds it; empty if that is not known.
    notes : mapping of str to list of str
        What a reader should know of methods, by their names.
    class_names : list of str
        By label; empty if they are not known.
    remarks : list of str
        What a reader should know of the streams: what seeds change, which classes are left out.

    Examples
    --------
    >>> from aircl.benchmark import Row
    >>> from aircl.report import read_experiments
    >>> rows = [
    ...     Row("run", method, "digits", "identity", "cil", "", method, 1, 0, 900, "final", "A_last", value, t, 10**8)
    ...     for method, value, t in (("acil", 0.87, 0.4), ("air", 0.93, 0.5))
    ... ]
    >>> (experiment,) = read_experiments(rows)
    >>> experiment.title, [method.name for method in experiment.methods]
    ('digits · cil · identity', ['air', 'acil'])
    >>> experiment.method("air").final("A_last").mean
    0.93
    """

    dataset: str
    backbone: str
    scenario: str
    order: str
    methods: tuple[MethodResults, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    class_names: Sequence[str] = ()
    remarks: Sequence[str] = ()

    @property
    def all_notes(self) -> dict[str, list[str]]:
        """What a reader should know of methods, by their names: `notes`, and who was told the future."""
        notes = {name: list(own) for name, own in self.notes.items()}
        for method in self.methods:
            if method.told:
                notes.setdefault(method.name, []).append(f"Told the future: {method.told}.")
        return notes

    def name_of(self, label: int) -> str:
        """Return the name of a class, or its label where that is all there is."""
        return self.class_names[label] if label < len(self.class_names) else str(label)

    @property
    def title(self) -> str:
        """A name for people."""
        return " · ".join(part for part in (self.dataset, self.scenario, self.order, self.backbone) if part)

    def method(self, name: str) -> MethodResults:
        """Return a method's results."""
        for method in self.methods:
            if method.name == name:
                return method
        known = ", ".join(method.name for method in self.methods)
        raise ValueError(f"no method {name!r} ran in {self.title}. Those that did: {known}.")

    @cached_property
    def stream(self) -> tuple[Integers, Integers] | None:
        """The classes, shape (C,), and counts, shape (phases, C), of the first seed that has details."""
        seeds = sorted({job.seed for method in self.methods for job in method.jobs})
        for seed in seeds:
            for method in self.methods:
                for job in method.used:
                    if job.seed == seed and job.details is not None:
                        return job.details.classes, job.details.counts
        return None

    def stream_counts(self) -> Integers:
        """Return the samples of each class in each phase, shape (phases, largest label + 1), of that seed."""
        if self.stream is None:
            raise ValueError(f"{self.title}: the counts of the stream are not known, as no job left details.")
        classes, counts = self.stream
        wide = np.zeros((len(counts), int(classes.max(initial=-1)) + 1), np.int64)
        wide[:, classes] = counts
        return wide

    @cached_property
    def classes(self) -> Integers:
        """The exposed classes of all seeds, most training samples first, then by label: the order of the figures."""
        counts = self.class_counts
        return np.array(sorted(counts, key=lambda label: (-counts[label], label)), np.int64)

    @cached_property
    def class_counts(self) -> dict[int, float]:
        """The training samples of each class, mean over seeds."""
        by_seed: dict[int, dict[int, int]] = {}
        for method in self.methods:
            for job in method.used:
                if job.seed not in by_seed and job.details is not None:
                    totals = job.details.counts.sum(axis=0).tolist()
                    by_seed[job.seed] = dict(zip(job.details.classes.tolist(), totals, strict=True))
        labels = {label for counts in by_seed.values() for label in counts}
        return {label: sum(counts.get(label, 0) for counts in by_seed.values()) / len(by_seed) for label in labels}


def _places(labels: Integers, among: Integers) -> npt.NDArray[np.intp]:
    place = {label: i for i, label in enumerate(among.tolist())}
    return np.array([place[label] for label in labels.tolist()], np.intp)
