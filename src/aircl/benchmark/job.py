"""One method on one stream: learn, evaluate, stop and go on."""

from __future__ import annotations

import json
import shutil
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from aircl.benchmark.evaluation import Evaluation, Samples, TestSet
from aircl.benchmark.memory import peak_memory, reset_peak_memory, written_bytes
from aircl.benchmark.metrics import Labels, accuracy, balanced_accuracy, class_accuracy
from aircl.benchmark.outcome import Track, final_details, final_values
from aircl.benchmark.results import Row, RunDirectory
from aircl.methods import Method
from aircl.scenarios import Phase, Stream
from aircl.storage.errors import InputError
from aircl.storage.leftovers import Scratch
from aircl.storage.records import build, parse_json
from aircl.storage.writing import new_directory

METRICS = {"accuracy": accuracy, "balanced_accuracy": balanced_accuracy}
# What a method says of itself that rows have a place for.
FACTS = ("gamma", "buffer")

# Called with the number of training samples done and of all.
Progress = Callable[[int, int], None]


class Job:
    """A method that goes through a stream.

    Parameters
    ----------
    template : Row
        A row with everything that all rows of the job share.
    make : callable
        Returns a new method.
    stream : Stream
    train, test : Samples
    online : bool
        Whether phase ends are kept from methods that do not ask for them.
    batch_size : int
    evaluate_every : int or None
        Samples between periodic evaluations.
    directory : RunDirectory
    blas_threads : int or None
        None: as many as BLAS likes.
    domains : tuple of arrays or None
        Where training and test samples come from, if that is known of both.
    isolated : bool
        Whether the process is the job's own, so that its peak memory means something.
    listener : callable or None
        Called with rows when they are written.
    """

    def __init__(
        self,
        template: Row,
        make: Callable[[], Method],
        stream: Stream,
        train: Samples,
        test: Samples,
        *,
        online: bool,
        batch_size: int,
        evaluate_every: int | None,
        directory: RunDirectory,
        blas_threads: int | None = None,
        domains: tuple[Labels, Labels] | None = None,
        isolated: bool = False,
        listener: Callable[[list[Row]], None] | None = None,
    ) -> None:
        self.template, self.make, self.stream = template, make, stream
        self.train, self.online = train, online
        self.batch_size, self.evaluate_every = batch_size, evaluate_every
        self.directory, self.blas_threads = directory, blas_threads
        self.domains, self.isolated, self.listener = domains, isolated, listener
        self.test = TestSet(test.inputs, test.labels)
        self._n_classes = int(max(train.labels.max(initial=-1), test.labels.max(initial=-1))) + 1

    def run(self, progress: Progress | None = None) -> None:
        """Run to the end, from where the job was left if it was begun before."""
        with threadpool_limits(self.blas_threads, user_api="blas"):
            self._run(progress)

    def _run(self, progress: Progress | None) -> None:
        reset_peak_memory()
        method, track = self._resume()
        for number, phase in enumerate(self.stream.phases[track.phases :], track.phases + 1):
            self._learn_phase(method, number, phase, track, progress)
            evaluation = self._evaluate(method, phase.exposed, track)
            self._end_phase(method, number, evaluation, track)
        self._finish(method, track, evaluation)

    # -- learning --
    def _learn_phase(self, method: Method, number: int, phase: Phase, track: Track, progress: Progress | None) -> None:
        before = self.stream.phases[number - 2].exposed if number > 1 else phase.exposed[:0]
        exposed = before
        for start in range(0, len(phase.train), self.batch_size):
            rows = phase.train[start : start + self.batch_size]
            began = time.perf_counter()
            labels = self.train.labels[rows]
            method.learn(self.train.inputs[rows], labels)
            track.seconds += time.perf_counter() - began
            exposed = np.union1d(exposed, labels)
            every, seen = self.evaluate_every, track.samples + len(rows)
            # After the first batch with strictly more than k times `every` samples.
            if every and (seen - 1) // every > (track.samples - 1) // every and seen > every:
                self._note(track, method, "periodic", number, self._evaluate(method, exposed, track), samples=seen)
            track.samples = seen
            if progress is not None:
                progress(track.samples, self.stream.total)
        if not self.online or method.uses_phase_ends:
            began = time.perf_counter()
            method.end_phase(phase)
            track.seconds += time.perf_counter() - began

    def _evaluate(self, method: Method, exposed: Labels, track: Track) -> Evaluation:
        began = time.perf_counter()
        method.refresh()
        learned = time.perf_counter()
        evaluation = self.test.evaluate(method, exposed)
        track.seconds += learned - began
        track.predict_seconds += time.perf_counter() - learned
        return evaluation

    def _note(
        self, track: Track, method: Method, point: str, phase: int, evaluation: Evaluation, samples: int | None = None
    ) -> None:
        if not evaluation.confusion.sum():  # nothing exposed yet, or no test sample of what is
            return
        right = np.packbits(evaluation.predicted == self.test.labels).tobytes()
        track.points.append(
            {
                "periodic": point == "periodic",
                "classes": evaluation.classes.tolist(),
                "right": b64encode(right).decode(),
            }
        )
        for metric, measure in METRICS.items():
            self._add(track, method, point, phase, metric, measure(evaluation.confusion), samples)

    def _add(
        self,
        track: Track,
        method: Method,
        point: str,
        phase: int,
        metric: str,
        value: float,
        samples: int | None = None,
    ) -> None:
        row = replace(
            self.template,
            phase=phase,
            samples=track.samples if samples is None else samples,
            point=point,
            metric=metric,
            value=value,
            seconds=track.seconds,
            state_bytes=track.state_bytes,
            predict_seconds=track.predict_seconds,
            peak_memory=peak_memory() if self.isolated else None,
            kept=method.samples_kept,
            told=",".join(sorted(method.setup.hints.used)),
            **{key: value for key, value in method.facts().items() if key in FACTS},
        )
        track.rows.append(asdict(row))

    def _by_class(self, evaluation: Evaluation) -> list[float | None]:
        table: list[float | None] = [None] * self._n_classes
        for label, value in zip(evaluation.classes.tolist(), class_accuracy(evaluation.confusion), strict=True):
            table[label] = None if np.isnan(value) else float(value)
        return table

    # -- the end --
    def _finish(self, method: Method, track: Track, evaluation: Evaluation) -> None:
        details = final_details(track, method, evaluation, self.stream, self.train, self.test)
        details.save(self.directory.details_path(self.template.job))
        values = final_values(track, evaluation, self.stream, self.test, self.domains)
        values |= self.test.calibrate(method, evaluation.classes)
        # A job with an A_last is a finished one, so that row comes last.
        for name in sorted(values, key=lambda name: name == "A_last"):
            self._add(track, method, "final", 0, name, values[name])
        self._append(Row(**row) for row in track.rows if row["phase"] in (0, track.phases))
        shutil.rmtree(self.directory.state_path(self.template.job), ignore_errors=True)

    # -- stopping and going on --
    def _end_phase(self, method: Method, number: int, evaluation: Evaluation, track: Track) -> None:
        """Note what was measured, and write the state beside that of the phase before; only then add the rows."""
        track.by_phase.append(self._by_class(evaluation))
        track.phases = number
        if not method.resumable:
            self._note(track, method, "phase", number, evaluation)
        else:
            place, is_last = self.directory.state_path(self.template.job), number == len(self.stream)
            place.mkdir(parents=True, exist_ok=True)
            # After the last phase there is nothing to go on with, but how large the state is counts.
            with Scratch(place) if is_last else new_directory(place / str(number)) as new:
                (new / "method").mkdir()
                method.save(new / "method")
                track.state_bytes = written_bytes(new, method.setup.backbone)
                self._note(track, method, "phase", number, evaluation)
                (new / "track.json").write_text(json.dumps(asdict(track)))
            for old in _states(place):
                if int(old.name) != number and not is_last:
                    shutil.rmtree(old, ignore_errors=True)
        if number < len(self.stream):
            self._append(Row(**row) for row in track.rows if row["phase"] == number)

    def _append(self, rows: Iterable[Row]) -> None:
        rows = list(rows)
        self.directory.append(rows)
        if self.listener is not None:
            self.listener(rows)

    def _resume(self) -> tuple[Method, Track]:
        """Return the method and what is known of it, as they were after the last phase that was written."""
        place = self.directory.state_path(self.template.job)
        others = [row for row in self.directory.rows() if row.job != self.template.job]
        for path in _states(place):
            method = self.make()
            try:
                track = build(Track, parse_json((path / "track.json").read_bytes(), str(path)), str(path))
                rows = [build(Row, row, str(path)) for row in track.rows]
                self._check(track, path)
                method.restore(path / "method")
            except Exception:  # damaged, or of another version: what it held can be learned again
                shutil.rmtree(path, ignore_errors=True)
                continue
            self.directory.rewrite([*others, *rows])
            return method, track
        shutil.rmtree(place, ignore_errors=True)
        self.directory.rewrite(others)
        return self.make(), Track()

    def _check(self, track: Track, path: Path) -> None:
        """Refuse a track that is not of this stream."""
        answers = {len(b64decode(point["right"], validate=True)) for point in track.points}
        if (
            track.phases != int(path.name)
            or not 0 < track.phases < len(self.stream)
            or [len(values) for values in track.by_phase] != [self._n_classes] * track.phases
            or answers - {(len(self.test.labels) + 7) // 8}
        ):
            raise InputError(f"{path} is of another stream.")


def _states(place: Path) -> list[Path]:
    """Return the states of a job, that after the last phase first."""
    found = [path for path in place.glob("*") if path.name.isdigit() and path.is_dir()]
    return sorted(found, key=lambda path: -int(path.name))
