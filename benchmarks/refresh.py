"""What one refresh costs while a stream goes on, with a gamma that is chosen from the statistics.

python benchmarks/refresh.py [--width 5000] [--store shared]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from aircl import AIRClassifier, RandomReLU


def main() -> None:
    """Measure and print seconds of processor time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=5000, help="of the buffer")
    parser.add_argument("--store", default="shared")
    parser.add_argument("--samples", type=int, default=6000)
    parser.add_argument("--classes", type=int, default=100)
    options = parser.parse_args()
    random, n = np.random.default_rng(0), options.samples
    y = random.integers(0, options.classes, n)
    means = random.standard_normal((options.classes, 384), dtype=np.float32)
    X = means[y] + 2 * random.standard_normal((n, 384), dtype=np.float32)
    buffer = RandomReLU(options.width, random_state=0)
    clf = AIRClassifier(store=options.store, expansion=buffer, calibrate=False)
    print(
        f"{options.store}, f = {options.width}, {options.classes} classes, {n} rows, float32; seconds of processor time"
    )
    parts = {
        "gamma is searched": slice(n // 3),
        "gamma stays": slice(n // 3, n // 2),
        "counts have doubled, gamma is searched near the last": slice(n // 2, n),
    }
    for what, rows in parts.items():
        clf.partial_fit(X[rows], y[rows])
        clf._learner.absorb()
        began = time.process_time()
        clf.predict(X[:1])
        print(f"| {what} | {time.process_time() - began:.1f} |", flush=True)


if __name__ == "__main__":
    main()
