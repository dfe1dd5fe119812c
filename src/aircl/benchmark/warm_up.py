"""What a method pays once for the whole process, paid before the clock starts."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np

from aircl.benchmark.contract.randomness import global_randomness
from aircl.benchmark.job import Samples
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
        Of the method that will be measured. Features and buffer are cut to a few columns.
    train : Samples
    stream : Stream
        Its first samples are used, which the method will see anyway.
    """
    rows = np.concatenate([phase.train for phase in stream.phases])[:ROWS]
    inputs, labels = train.inputs[rows], train.labels[rows]
    if setup.backbone is None:
        inputs = np.ascontiguousarray(np.asarray(inputs)[:, :COLUMNS])
        setup = replace(setup, n_features=inputs.shape[1])
    setup = replace(setup, buffer=setup.buffer and min(setup.buffer, COLUMNS))
    # Whatever goes wrong here goes wrong in the job too, which says so.
    with global_randomness(setup.seed), warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        method = create_method(name, setup)
        method.learn(inputs, labels)
        method.end_phase(make_phases(train.labels, [rows])[0])
        method.refresh()
        method.predict(method.encode(inputs))
