"""A run with real numbers: long-tailed digits in two orders, four methods, one that fails and one that does not fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from aircl import ACILClassifier, AIRClassifier
from aircl.benchmark.results import Details, Row, RunDirectory
from aircl.expansion import RandomReLU
from aircl.scenarios import make_stream

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

X, Y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
TRAIN = np.arange(len(Y)) < 1200
PHASES = 5


class Centroids:
    """The nearest class mean: a method without scores and weights, and a costly one, as it keeps its samples."""

    def __init__(self):
        self.seen = {}

    def partial_fit(self, features, labels):
        for label in np.unique(labels):
            self.seen.setdefault(label, []).append(features[labels == label])

    def predict(self, features):
        means = np.array([np.concatenate(parts).mean(axis=0) for parts in self.seen.values()])
        return np.array(list(self.seen))[((features[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)]


METHODS = {
    "acil": lambda: ACILClassifier(1.0, **PAPER),
    "air": lambda: AIRClassifier(1.0, **PAPER),
    "air-shared": lambda: AIRClassifier(1.0, store="shared", **PAPER),
    "centroids": Centroids,
}


@dataclass
class Course:
    """One job: learns phase by phase and notes what the report may want."""

    row: Row
    rows: list[Row] = field(default_factory=list)

    def note(self, metric, value, **changes):
        self.rows.append(replace(self.row, metric=metric, value=float(value), **changes))

    def go(self, directory, stop_after=PHASES):
        seed, order = self.row.seed, self.row.order
        stream = make_stream("long-tail", Y[TRAIN], seed=seed, phases=PHASES, counts="exp", ratio=0.02, order=order)
        buffer = RandomReLU(150, random_state=seed).fit(X[:1])
        train, test, truth = buffer.transform(X[TRAIN]), buffer.transform(X[~TRAIN]), Y[~TRAIN]
        method, kept, history, seen = METHODS[self.row.method](), self.row.method == "centroids", [], 0
        points = []  # which test samples were right, and which classes counted
        for number, phase in enumerate(stream.phases[:stop_after], 1):
            before = phase.exposed[~np.isin(phase.exposed, phase.new_classes)]
            for batch in np.array_split(phase.train, 4):
                method.partial_fit(train[batch], Y[TRAIN][batch])
                seen += len(batch)
                before = np.union1d(before, Y[TRAIN][batch])
                here = np.isin(truth, before)
                share = np.mean(method.predict(test[here]) == truth[here])
                self.row = replace(
                    self.row, phase=number, samples=seen, seconds=0.001 * len(self.row.method) * seen, kept=seen * kept
                )
                self.note("accuracy", share, point="periodic")
                points.append((True, here & (method.predict(test) == truth), np.isin(np.arange(10), before)))
            here = np.isin(truth, phase.exposed)
            right = method.predict(test[here]) == truth[here]
            by_class = np.array([right[truth[here] == c].mean() if c in phase.exposed else np.nan for c in range(10)])
            history.append(by_class)
            points.append((False, here & (method.predict(test) == truth), np.isin(np.arange(10), phase.exposed)))
            self.note("accuracy", right.mean(), point="phase")
            self.note("balanced_accuracy", np.nanmean(by_class), point="phase")
        if stop_after == PHASES:
            self.finish(directory, method, stream, train, test, truth, np.array(history), points)
        directory.append(self.rows)

    def finish(self, directory, method, stream, train, test, truth, history, points):
        counts, last = stream.counts(), history[-1]
        course = {point: [r.value for r in self.rows if r.point == point and r.metric == "accuracy"]
                  for point in ("phase", "periodic")}  # fmt: skip
        best = [np.nanmax(column) for column in history[:-1].T if not np.isnan(column).all()]
        old = ~np.isnan(history[:-1]).all(axis=0)
        summary = {
            "A_avg": np.mean(course["phase"]), "A_last": course["phase"][-1], "A_auc": np.mean(course["periodic"]),
            "balanced_A_avg": np.mean([np.nanmean(row) for row in history]), "balanced_A_last": last.mean(),
            "forgetting": np.mean(best - last[old]),
            **{name: last[is_in].mean() for name, is_in in (
                ("head", counts.sum(0) > 100), ("middle", (counts.sum(0) >= 20) & (counts.sum(0) <= 100)),
                ("tail", counts.sum(0) < 20))},
        }  # fmt: skip
        for metric, value in summary.items():
            self.note(metric, value, point="final", phase=0)
        samples, targets = np.concatenate([phase.train for phase in stream.phases]), np.eye(10)
        linear = hasattr(method, "coef_")
        errors = {}
        for name, features, labels in (("test", test, truth), ("train", train[samples], Y[TRAIN][samples])):
            losses = ((features @ method.coef_.T - targets[labels]) ** 2).sum(axis=1) if linear else np.zeros(0)
            errors[name] = [losses[labels == c] for c in range(10)] if linear else []
        new = [phase.new_classes for phase in stream.phases]
        Details(
            classes=np.arange(10),
            counts=counts,
            confusion=np.array([np.bincount(method.predict(test[truth == c]), minlength=10) for c in range(10)]),
            weight_norms=np.linalg.norm(method.coef_, axis=1) if linear else np.zeros(0),
            test_loss=np.array([loss.mean() for loss in errors["test"]]),
            train_loss=np.array([loss.sum() for loss in errors["train"]]),
            phase_accuracy=np.array([[row[own].mean() for own in new] for row in history]),
            test_labels=truth,
            predicted=method.predict(test),
            right=np.packbits([right for _, right, _ in points], axis=1),
            exposed=np.array([exposed for _, _, exposed in points]),
            periodic=np.array([periodic for periodic, _, _ in points]),
        ).save(directory.details_path(self.row.job))


def make_row(order, method, seed, **values):
    job = f"digits-identity-long-tail-{order}-{method}-seed{seed}"
    gamma = 1.0 if method in ("air", "acil", "air-shared") else None
    return Row("digits", job, "digits", "identity", "long-tail", order, method, seed, 0, 0, "", "", None, 0.0,
               150_000_000 + 1_000_000 * len(method), gamma=gamma, buffer=150 if gamma else None, **values)  # fmt: skip


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """Return the directory of the run; nobody may write to it."""
    directory = RunDirectory(tmp_path_factory.mktemp("run"))
    experiment = {"dataset": "digits", "backbone": "identity", "scenario": "long-tail", "seeds": [1, 2, 3],
                  "options": {"phases": PHASES, "counts": "exp", "ratio": 0.02}}  # fmt: skip
    directory.write_about(
        {
            "name": "digits </script> & co",
            "config": {"name": "digits", "experiments": [experiment]},
            "versions": {"aircl": "0.1.0", "numpy": "2.4.6"},
            "revision": "abc1234+",
            "machine": {"system": "Linux", "cores": 2},
            "started": "2025-05-01T10:00:00+00:00",
            "finished": None,
        }
    )
    for seed in (1, 2, 3):
        for method in METHODS:
            Course(make_row("descending", method, seed)).go(directory)
        directory.append(
            [
                make_row("descending", "broken", seed, status="failed", reason="ValueError: <b>3</b> is not 4 | x_y"),
                make_row("descending", "prompts", seed, status="incompatible", reason="prompts learns from images"),
            ]
        )
    for seed in (1, 2):
        Course(make_row("ascending", "air", seed)).go(directory)
        Course(make_row("ascending", "acil", seed)).go(directory, stop_after=PHASES if seed == 1 else 2)
    return directory
