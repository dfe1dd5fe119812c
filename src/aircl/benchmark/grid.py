"""Settings judged on held-out TRAINING samples, the same way for every method; gamma from a grid among them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from aircl.benchmark.config import GAMMA_GRID
from aircl.benchmark.evaluation import Samples, TestSet
from aircl.benchmark.metrics import balanced_accuracy
from aircl.methods import Method
from aircl.methods.classifier import AnalyticMethod
from aircl.scenarios import Stream, make_phases
from aircl.scenarios.stream import Indices, Labels


def hold_out(labels: Labels) -> Indices:
    """Return the places of a fifth of each class: the second of every five, so that a class of one is all learned."""
    # Which of its class's samples each one is: 0, 1, ..
    order = np.argsort(labels, kind="stable")
    _, start, counts = np.unique(labels[order], return_index=True, return_counts=True)
    nth = np.empty(len(labels), np.intp)
    nth[order] = np.arange(len(labels)) - np.repeat(start, counts)
    return np.flatnonzero(nth % 5 == 1)


def learn_most(method: Method, stream: Stream, train: Samples, batch_size: int) -> Callable[[], float]:
    """Learn a stream, batch by batch as in a run, but for a fifth of each class in each phase.

    Parameters
    ----------
    method : Method
        It has learned nothing yet.
    stream : Stream
    train : Samples
    batch_size : int

    Returns
    -------
    score : callable
        Returns the class-balanced accuracy on what was held out, as often as it is called.
    """
    outs = [hold_out(train.labels[phase.train]) for phase in stream.phases]
    learned = [np.delete(phase.train, out) for phase, out in zip(stream.phases, outs, strict=True)]
    for phase in make_phases(train.labels, learned):
        for begin in range(0, len(phase.train), batch_size):
            rows = phase.train[begin : begin + batch_size]
            method.learn(train.inputs[rows], train.labels[rows])
        if not method.setup.online or method.uses_phase_ends:
            method.end_phase(phase)
    held = np.concatenate([phase.train[out] for phase, out in zip(stream.phases, outs, strict=True)])
    if not len(held):
        raise ValueError("no class has a second sample to hold out. Set what is to be chosen, or take its default.")
    exposed = np.unique(train.labels[np.concatenate(learned)])
    validation = TestSet(train.inputs[held], train.labels[held])

    def score() -> float:
        method.refresh()
        return balanced_accuracy(validation.evaluate(method, exposed).confusion)

    return score


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
    score = learn_most(method, stream, train, batch_size)
    scores = []
    for gamma in GAMMA_GRID:
        method.set_gamma(gamma)
        scores.append(score())
    return GAMMA_GRID[::-1][int(np.argmax(scores[::-1]))]
