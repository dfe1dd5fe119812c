"""From how many held-out rows of a phase on RanPAC may change its ridge: chosen on training samples alone.

    python benchmarks/ranpac_held_out.py [--features FILE.npz]

Long-tailed streams of the training digits and, of a file, of its rows `X_train` and `y_train`, in three orders. As in
`benchmarks/settings.py`, a fifth of every class in every phase is held out, nothing of a class of one, and a learner is
judged by its class-balanced accuracy on that when the stream is over. (RanPAC holds out a fifth of the rest by itself.)
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from unittest import mock

import numpy as np

from aircl.benchmark.grid import learn_most
from aircl.benchmark.job import Samples
from aircl.classifiers import ranpac
from aircl.data import load_dataset
from aircl.methods import Setup, create_method
from aircl.scenarios import make_stream

# 1: as published, every phase chooses.
LEAST = (1, 5, 10, 20, 40, 80)
ORDERS = ("ascending", "descending", "shuffled")


def sets(path: str | None) -> Iterator[tuple[str, Samples, int, float, int]]:
    """Yield names, training samples, and phases, ratio of the smallest class to the largest and width of the buffer."""
    digits = load_dataset("digits").train
    pixels = np.asarray(digits.inputs[np.arange(len(digits))]).reshape(len(digits), -1).astype(np.float32) / 255
    yield "digits, 1/40", Samples(pixels, digits.labels), 5, 1 / 40, 500
    yield "digits, 1/10", Samples(pixels, digits.labels), 5, 1 / 10, 500
    if path:
        with np.load(path) as file:
            samples = Samples(file["X_train"].astype(np.float32), file["y_train"].astype(np.int64))
        yield f"{path}, 1/100", samples, 10, 1 / 100, 1000
        yield f"{path}, 1/500", samples, 10, 1 / 500, 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", help="an .npz file with X_train and y_train")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    print("held-out rows, at least: " + " ".join(f"{least:6d}" for least in LEAST))
    for name, samples, phases, ratio, width in sets(arguments.features):
        scores = np.zeros((len(LEAST), len(ORDERS), arguments.seeds))
        for j, order in enumerate(ORDERS):
            for k in range(arguments.seeds):
                seed = k + 1
                stream = make_stream(
                    "long-tail", samples.labels, counts="exp", ratio=ratio, phases=phases, order=order, seed=seed
                )
                for i, least in enumerate(LEAST):
                    method = create_method("ranpac", Setup(seed, samples.inputs.shape[1], buffer=width))
                    with mock.patch.object(ranpac, "MIN_HELD_OUT", least):
                        scores[i, j, k] = learn_most(method, stream, samples, 64)()
        for j, order in enumerate(ORDERS):
            print(f"{name + ', ' + order:40s} " + " ".join(f"{100 * s:6.2f}" for s in scores[:, j].mean(1)), flush=True)
        print(f"{name + ', all':40s} " + " ".join(f"{100 * s:6.2f}" for s in scores.mean((1, 2))), flush=True)


if __name__ == "__main__":
    main()
