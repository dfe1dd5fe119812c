"""gamma from a grid, as the paper chooses it, but on held-out TRAINING samples; the same way for every method."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from aircl.benchmark.config import GAMMA_GRID
from aircl.benchmark.evaluation import TestSet
from aircl.benchmark.job import Samples
from aircl.benchmark.metrics import balanced_accuracy
from aircl.methods import Method
from aircl.methods.classifier import AnalyticMethod
from aircl.scenarios import Phase, Stream, make_phases
from aircl.scenarios.stream import Indices, Labels


def choose_gamma(make: Callable[[], Method], stream: Stream, train: Samples, batch_size: int) -> float:
    """Return the gamma of the grid with the best class-balanced accuracy on a fifth of the training samples.

    Parameters
    ----------
    make : callable
        Returns a new method.
    stream : Stream
    train : Samples
    batch_size : int

    Returns
    -------
    gamma : float
        The largest of several that are equally good.

    Notes
    -----
    A fifth of each class is held out, nothing of a class of one; the rest is learned once and solved for each gamma.
    """
    method = make()
    if not isinstance(method, AnalyticMethod):
        raise ValueError(f"gamma cannot be chosen from a grid for {type(method).__name__}: it has no gamma to set.")
    learned, rows = hold_out(stream, train.labels)
    teach(method, learned, train, batch_size)
    if not len(rows):
        raise ValueError("no class has a second sample to hold out for choosing gamma. Set gamma, or use auto.")
    exposed = np.unique(train.labels[np.concatenate([phase.train for phase in stream.phases])])
    validation = TestSet(train.inputs[rows], train.labels[rows])
    scores = []
    for gamma in GAMMA_GRID:
        method.set_gamma(gamma)
        scores.append(balanced_accuracy(validation.evaluate(method, exposed).confusion))
    return GAMMA_GRID[::-1][int(np.argmax(scores[::-1]))]


def hold_out(stream: Stream, labels: Labels) -> tuple[tuple[Phase, ...], Indices]:
    """Return the phases without a fifth of each class, and that fifth.

    The second of every five samples of a class in a phase is held out: a class of one is learned, not held out.
    """
    held, trains = [], []
    for phase in stream.phases:
        own = labels[phase.train]
        # Which of its class's samples in the phase each one is: 0, 1, ..
        order = np.argsort(own, kind="stable")
        _, start, counts = np.unique(own[order], return_index=True, return_counts=True)
        nth = np.empty(len(own), np.intp)
        nth[order] = np.arange(len(own)) - np.repeat(start, counts)
        out = nth % 5 == 1
        held.append(phase.train[out])
        trains.append(phase.train[~out])
    return make_phases(labels, trains), np.concatenate(held)


def teach(method: Method, phases: Sequence[Phase], train: Samples, batch_size: int) -> None:
    """Let a method learn phases, batch by batch, as a run does."""
    for phase in phases:
        for begin in range(0, len(phase.train), batch_size):
            rows = phase.train[begin : begin + batch_size]
            method.learn(train.inputs[rows], train.labels[rows])
        if not method.setup.online or method.uses_phase_ends:
            method.end_phase(phase)
