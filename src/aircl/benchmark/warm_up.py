"""What a method pays once for the whole process, paid before the clock starts."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from aircl.benchmark.contract.randomness import global_randomness
from aircl.benchmark.evaluation import Samples
from aircl.benchmark.metrics import Labels
from aircl.methods import Setup, create_method
from aircl.scenarios import Stream, make_phases

# So few rows and columns that it takes no time where nothing is imported or compiled.
ROWS, COLUMNS = 4, 32


def warm_up(name: str, setup: Setup, train: Samples, stream: Stream) -> None:
    """Let another method of the kind learn and predict a few samples, and forget it.

    Imports, the first call of a library, and memory that it sets aside would otherwise be in the time of whichever
    job comes first.

    Parameters
    ----------
    name : str
    setup : Setup
        Of the method that will be measured. It is given few features and a small buffer instead.
    train : Samples
    stream : Stream
        Its first and its last samples are used as two phases, since some methods do more from the second phase on.
    """
    order = np.concatenate([phase.train for phase in stream.phases])
    parts = [order[:ROWS], order[-ROWS:]]

    def inputs(rows: Labels) -> Any:
        own = train.inputs[rows]
        return own if setup.backbone is not None else np.ascontiguousarray(np.asarray(own)[:, :COLUMNS])

    if setup.backbone is None:
        setup = replace(setup, n_features=inputs(parts[0]).shape[1])
    setup = replace(setup, buffer=COLUMNS)  # also for methods that have one of their own where the run has none
    # Whatever goes wrong here goes wrong in the job too, which says so.
    with global_randomness(setup.seed), warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        method = create_method(name, setup)
        for rows, phase in zip(parts, make_phases(train.labels, parts), strict=True):
            method.learn(inputs(rows), train.labels[rows])
            method.end_phase(phase)
            method.refresh()
            method.predict(method.encode(inputs(rows)))
