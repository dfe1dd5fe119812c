"""How fast the members of the family learn, as ratios to ACIL of the same width, measured in one process.

python benchmarks/family.py [--samples 20000] [--width 2048]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from aircl import (
    ACILClassifier,
    AEFOCLClassifier,
    AIRClassifier,
    DSALClassifier,
    FeCAMClassifier,
    GKEALClassifier,
    NCMClassifier,
    RandomReLU,
    RanPACClassifier,
    RecursiveACILClassifier,
    SLDAClassifier,
)

WHY = {
    "RecursiveACILClassifier": "a recursion: three products of size f^2 a row instead of half of one, in float64",
    "DSALClassifier": "two streams, and the second moments between them: four times as many",
}


def learn(clf, X: np.ndarray, y: np.ndarray, batch: int) -> float:
    """Return the seconds of learning rows in batches, the end of the phase not included."""
    clf.partial_fit(X[:batch], y[:batch])  # which draws the buffer
    began = time.perf_counter()
    for start in range(batch, len(y), batch):
        clf.partial_fit(X[start : start + batch], y[start : start + batch])
    clf._learner.absorb()
    return time.perf_counter() - began


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--width", type=int, default=2048, help="of the buffer")
    parser.add_argument("--inputs", type=int, default=512)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--batch", type=int, default=64)
    options = parser.parse_args()
    f, d = options.width, options.inputs
    random = np.random.default_rng(0)
    y = random.integers(0, options.classes, options.samples)
    X = random.standard_normal((options.samples, d), dtype=np.float32) + (y % 7)[:, None].astype(np.float32)
    buffer = RandomReLU(f, random_state=0)
    # Prototype classifiers stand on the inputs themselves, so ACIL does too, beside them.
    groups = {
        f"behind a buffer of {f}": [
            ACILClassifier(1.0, expansion=buffer),
            AIRClassifier(1.0, store="shared", expansion=buffer),
            AIRClassifier(1.0, expansion=buffer),
            RecursiveACILClassifier(expansion=buffer),
            RanPACClassifier(n_components=f, random_state=0),
            DSALClassifier(1.0, n_components=f, random_state=0),
            GKEALClassifier(1.0, n_components=f, random_state=0),
            AEFOCLClassifier(1.0, expansion=buffer, random_state=0),
        ],
        f"on {d} features": [ACILClassifier(1.0), NCMClassifier(), SLDAClassifier(), FeCAMClassifier()],
    }
    print(f"{options.samples} samples in batches of {options.batch}, {options.classes} classes, float32")
    for title, members in groups.items():
        print(f"\n{title}\n| classifier | microseconds a sample | of ACIL's |\n|---|---:|---:|")
        base = None
        for clf in members:
            seconds = learn(clf, X, y, options.batch)
            base = base or seconds
            name = type(clf).__name__ + (f" ({clf.store})" if isinstance(clf, AIRClassifier) else "")
            note = f" ({WHY[name]})" if name in WHY else ""
            print(f"| {name} | {1e6 * seconds / options.samples:.1f} | {seconds / base:.2f}x{note} |", flush=True)


if __name__ == "__main__":
    main()
