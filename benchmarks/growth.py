"""How the cost of learning, solving, predicting and saving grows with rows (n), features (f) and classes (C).

    python benchmarks/growth.py [--results FILE.jsonl] [--series n f C] [--stores NAME] [--table] [--write]

Every point is a process of its own with one BLAS thread, at most 8 GiB of data and 240 s of processor time; seconds are
processor time. A series stops after a point at which one operation takes more than 60 s. Results go to a file of JSON
lines; what is there already is not measured again. `--table` measures nothing; `--write` puts tables and figures into
docs/how-far.md.

`AIRClassifier(expansion=None)` has its defaults otherwise: gamma is chosen from the data and probabilities are
calibrated, both as a part of "solve". Rows are float32, made before the clock starts and learned 10000 at a time; of
more than 200000 rows the same 10000 are learned again and again. "predict" is `predict` of 1000 rows, "save" writes one
safetensors file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

STORES = ("per-class", "shared")
OPERATIONS = ("learn", "solve", "predict", "save")
# Each series changes one size and keeps the other two.
SERIES: dict[str, list[dict[str, int]]] = {
    "n": [{"n": n, "f": 64, "C": 100} for n in (10**3, 10**4, 10**5, 10**6, 10**7)],
    "f": [{"n": 10_000, "f": f, "C": 100} for f in (64, 128, 256, 512, 1024, 2048, 4096, 8192)],
    "C": [{"n": 200_000, "f": 128, "C": C} for C in (10, 100, 1000, 10**4, 10**5)],
}
TITLES = {
    "n": "rows n (f = 64, C = 100)",
    "f": "features f (n = 10000, C = 100)",
    "C": "classes C (n = 200000, f = 128)",
}
MEMORY, SECONDS, ENOUGH, TELLS = 8 * 2**30, 240, 60.0, 0.5
BATCH, MADE = 10_000, 200_000  # rows of a `partial_fit`, and rows that are made at the most
PLACE = Path(__file__).parents[1] / "docs" / "results"


# -- measuring --
def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds of some work, repeated until the clock can tell, and its last result."""
    began, times, result = time.process_time(), 0, None
    while time.process_time() - began < TELLS:
        result = work()
        times += 1
    return (time.process_time() - began) / times, result


def measure(store: str, n: int, f: int, C: int) -> dict[str, float]:
    """Return the processor seconds of every operation, and bytes, of this process."""
    from aircl import AIRClassifier

    warnings.simplefilter("ignore")
    rng, rows = np.random.default_rng(0), n if n <= MADE else BATCH
    # Every class is there; the rest is a long tail, so that counts differ as they do in practice.
    share = np.arange(1, C + 1) ** -0.5
    y = rng.permutation(np.append(np.arange(C), rng.choice(C, rows - C, p=share / share.sum())))
    X = 2 * rng.standard_normal((rows, f), dtype=np.float32)
    X += rng.standard_normal((C, f), dtype=np.float32)[y]

    def learned() -> AIRClassifier:
        clf = AIRClassifier(store=store, expansion=None)
        for start in range(0, n, BATCH):
            part = slice(start % rows, start % rows + BATCH)
            clf.partial_fit(X[part], y[part])
        return clf

    learning, clf = seconds(learned)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m.safetensors")
        works = (clf.refresh, lambda: clf.predict(X[:1000]), lambda: clf.save(path))
        found = dict(zip(OPERATIONS, (learning, *(seconds(work)[0] for work in works)), strict=True))
        file = path.stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {**found, "state": clf.nbytes_, "file": file, "peak": peak}


def point(store: str, sizes: dict[str, int]) -> dict[str, Any]:
    """Measure in a process of its own; say why, if there is nothing to tell."""

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    call = [sys.executable, __file__, "--one", json.dumps({"store": store, **sizes})]
    alone = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    done = subprocess.run(call, env=alone, preexec_fn=limits, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout)
    if done.returncode < 0:
        return {"stopped": f"more than {SECONDS} s"}
    return {"stopped": done.stderr.strip().splitlines()[-1][:200]}


def run(series: list[str], stores: list[str], results: Path) -> None:
    """Measure what the file has not."""
    found = read(results)
    for name in series:
        for store in stores:
            for sizes in SERIES[name]:
                row = next((r for r in found if r["series"] == name and r["store"] == store and same(r, sizes)), None)
                if row is None:
                    row = {"series": name, "store": store, **sizes, **point(store, sizes)}
                    with results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
                    print(json.dumps(row), flush=True)
                if "stopped" in row or max(row[o] for o in OPERATIONS) > ENOUGH:
                    break


def same(row: dict[str, Any], sizes: dict[str, int]) -> bool:
    return all(row[key] == value for key, value in sizes.items())


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


# -- telling --
def exponent(rows: list[dict[str, Any]], size: str, what: str) -> float:
    """Return the slope of the last three points in logarithms: what is doubled costs 2^slope times as much."""
    x, y = (np.log([row[key] for row in rows[-3:]]) for key in (size, what))
    return float(np.polyfit(x, y, 1)[0]) if len(x) == 3 else float("nan")


def measured(found: list[dict[str, Any]], name: str, store: str) -> list[dict[str, Any]]:
    """Return the points of a series that were reached, the smallest first."""
    rows = [r for r in found if r["series"] == name and r["store"] == store and "stopped" not in r]
    return sorted(rows, key=lambda row: row[name])


def table(found: list[dict[str, Any]], name: str) -> str:
    """Return one series as Markdown: seconds, sizes, and under each column how it grows."""
    lines = [f"| store | {name} | learn s | solve s | predict ms | save ms | state MiB | file MiB | peak MiB |"]
    lines.append("|---|--:|" + "--:|" * 7)
    units = {"learn": 1, "solve": 1, "predict": 1e-3, "save": 1e-3, "state": 2**20, "file": 2**20, "peak": 2**20}
    for store in STORES:
        rows = measured(found, name, store)
        for row in rows:
            values = [row[what] / unit for what, unit in units.items()]
            cells = [f"{v:.2g}" if v < 10 else f"{v:.0f}" for v in values]
            lines.append(f"| `{store}` | {row[name]} | " + " | ".join(cells) + " |")
        slopes = [f"{exponent(rows, name, what):.1f}".replace("-0.0", "0.0") for what in units]
        lines.append("| | *exponent* | " + " | ".join(slopes) + " |")
    for row in found:
        if row["series"] == name and "stopped" in row:
            lines.append(f"\n`{row['store']}` at {name} = {row[name]} was not reached: {row['stopped']}")
    return "\n".join(lines)


def draw(found: list[dict[str, Any]], name: str, folder: Path) -> None:
    """Draw one series, a panel for each store, on a light ground of its own: readable on a dark page, too."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("svg")
    style = {"svg.fonttype": "none", "svg.hashsalt": "aircl", "font.family": "sans-serif", "font.size": 10}
    colours, marks = ("#0b5fa5", "#c84a00", "#2e7d32", "#6a3d9a"), "os^D"
    with plt.rc_context(style):
        figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained", facecolor="#ffffff")
        for panel, store in zip(panels, STORES, strict=True):
            rows = measured(found, name, store)
            for what, colour, mark in zip(OPERATIONS, colours, marks, strict=True):
                label = f"{what} ~ {name}^{exponent(rows, name, what):.1f}"
                panel.loglog(
                    [row[name] for row in rows], [row[what] for row in rows], color=colour, marker=mark, label=label
                )
            panel.set(title=store, xlabel=TITLES[name])
            panel.grid(color="#d9dce0", linewidth=0.6)
            panel.legend(fontsize=9)
        panels[0].set_ylabel("processor seconds, one thread")
        figure.savefig(folder / f"growth-{name}.svg", metadata={"Date": None})
        plt.close(figure)


def write(found: list[dict[str, Any]], name: str, page: Path) -> None:
    """Put the table of a series into the page, below its figure, in place of what was there."""
    text = page.read_text(encoding="utf-8")
    before, figure, after = re.split(rf"(growth-{name}\.svg\)\n\n)", text)
    page.write_text(
        before + figure + table(found, name) + re.sub(r"\A(\|.*\n|\n`.*\n)*", "\n", after), encoding="utf-8"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=PLACE / "growth.jsonl")
    parser.add_argument("--series", nargs="*", choices=list(SERIES), default=list(SERIES))
    parser.add_argument("--stores", nargs="*", choices=STORES, default=list(STORES))
    parser.add_argument("--table", action="store_true", help="print the tables and measure nothing")
    parser.add_argument("--write", action="store_true", help="put tables and figures into the page")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(**arguments.one)))
        return
    if not arguments.table:
        run(arguments.series, arguments.stores, arguments.results)
    found = read(arguments.results)
    for name in arguments.series:
        print(f"\n{table(found, name)}")
        if arguments.write:
            draw(found, name, PLACE)
            write(found, name, PLACE.parent / "how-far.md")


if __name__ == "__main__":
    main()
