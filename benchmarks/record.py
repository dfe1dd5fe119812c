"""The record of docs/results.md: the runs behind it, and its tables and figures.

    python benchmarks/record.py subset --data DIR          # DIR/cifar100-*, parts of it for a ViT; DIR/banking77.npz
    python benchmarks/record.py run --data DIR [NAME ..]   # hours; what is kept is not run again
    python benchmarks/record.py again NAME METHOD ..       # forget what is kept of methods in a run
    python benchmarks/record.py write                      # the tables and figures of the page, from what is kept

A run is `aircl run` with the arguments in record_runs.py, an order of a seed at a time, below runs/record/NAME (or
--runs DIR); DIR has cifar-100-python.tar.gz, banking77-train.csv and banking77-test.csv. What is done is kept in
docs/results/rows/NAME.csv, from which the page is written on any machine. What stands between `<!-- NAME -->` and
`<!-- end -->` on the page is written by this script; a table of which nothing is kept stays as it is.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from record_rows import ROWS, forget
from record_runs import LONG_TAIL, PROMPTS, RUNS, TEXTS, command, run
from record_tables import IN_PROMPTS, IN_TABLE1, IN_TABLE2, TABLES, Record, draw

from aircl import Embedding
from aircl.data import Split, load_dataset
from aircl.scenarios import PRESETS
from aircl.scenarios.long_tail import choose_samples, tail_counts

# What the page shows the commands of, together.
GROUPS = {
    "table1": IN_TABLE1,
    "resample": ("table1-resample",),
    "gamma": ("table1-auto",),
    "table2": IN_TABLE2,
    "fixed": ("table2-fixed",),
    "vit": ("vit",),
    "prompts": IN_PROMPTS,
    "texts": ("texts", "texts-tail"),
}
PAGE = Path(__file__).parent.parent / "docs" / "results.md"


def write(record: Record, page: Path) -> None:
    """Write commands and tables into the page, and figures beside it."""
    text = page.read_text(encoding="utf-8")

    def replace(name: str, content: str) -> None:
        nonlocal text
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = pattern.sub(lambda found: f"{found[1]}\n{content}\n\n{found[2]}", text)

    for name, runs in GROUPS.items():
        replace(f"runs {name}", "\n".join(["```sh", *map(shown, runs), "```"]))
    for name, table in TABLES.items():
        if content := table(record):
            replace(name, content)
    page.write_text(text, encoding="utf-8")
    draw(record, page.parent / "results")


def shown(name: str) -> str:
    """Return the command of a run, as a reader types it."""
    data = "" if name == "default" else " --data DIR"
    words = f"aircl run{data} {' '.join(command(RUNS[name]))}".strip().split(" --")
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + len(word) > 110:
            lines[-1] += " \\"
            lines.append(f"  --{word}")
        else:
            lines[-1] += f" --{word}"
    return "\n".join(lines)


def subset(data: Path) -> Iterator[Path]:
    """Write two parts of CIFAR-100 as image folders, and yield where.

    LONG_TAIL is what Table 1 streams of it, with all test images: a ViT need not look at the rest. PROMPTS is smaller,
    as prompt methods see every image several times in every phase: counts from 100 to 1, and 5 test images of a class.
    """
    dataset = load_dataset("cifar100", root=data)
    labels, table1 = dataset.train.labels, PRESETS["table1-cifar100-descending"]
    counts = tail_counts("exp_max", np.full(len(dataset.class_names), 100), 1 / 100, phases=10)
    tested = np.bincount(dataset.test.labels)
    parts = {
        LONG_TAIL: (np.concatenate([phase.train for phase in table1.make_stream(labels, seed=1).phases]), tested),
        PROMPTS: (choose_samples(labels, counts), np.minimum(tested, 5)),
    }
    for name, (chosen, tested) in parts.items():
        write_images(data / name / "train", dataset.train, chosen, dataset.class_names)
        firsts = [np.flatnonzero(dataset.test.labels == label)[:n] for label, n in enumerate(tested)]
        write_images(data / name / "test", dataset.test, np.concatenate(firsts), dataset.class_names)
        yield data / name


def embed_texts(data: Path) -> Path:
    """Write the questions of Banking77 as wordllama embeds them."""
    arrays = {}
    for part in ("train", "test"):
        with open(data / f"banking77-{part}.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        arrays[f"X_{part}"] = Embedding("wordllama").fit_transform([row["text"] for row in rows])
        arrays[f"y_{part}"] = np.array([row["category"] for row in rows])
    np.savez(data / TEXTS, **arrays)
    return data / TEXTS


def write_images(folder: Path, split: Split, rows: npt.NDArray[np.intp], class_names: Sequence[str]) -> None:
    """Write images as files, a folder for each class; classes of a folder are in the order of their names."""
    from PIL import Image

    for label, name in enumerate(class_names):
        (folder / f"{label:02d}-{name}").mkdir(parents=True, exist_ok=True)
    for row in np.sort(rows):
        label = split.labels[row]
        place = folder / f"{label:02d}-{class_names[label]}" / f"{row:05d}.png"
        Image.fromarray(split.inputs[row : row + 1][0]).save(place)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["subset", "run", "again", "write"])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RUNS)}; all by default")
    parser.add_argument("--data")
    parser.add_argument("--seeds", type=int, metavar="N", help="no more than the first N")
    parser.add_argument("--runs", type=Path, default=Path("runs/record"))
    arguments = parser.parse_intermixed_args()
    names = arguments.names[:1] if arguments.what == "again" else arguments.names
    if unknown := set(names) - set(RUNS):
        parser.error(f"there is no run {', '.join(sorted(unknown))}; there are {', '.join(RUNS)}.")
    record = Record(ROWS, arguments.runs)
    if arguments.what == "run":
        for name in names or RUNS:
            run(record, name, arguments.data, arguments.seeds)
    elif arguments.what == "again" and len(arguments.names) > 1:
        forget(ROWS / f"{names[0]}.csv", arguments.names[1:])
    elif arguments.what == "subset" and arguments.data:
        print(*subset(Path(arguments.data)), embed_texts(Path(arguments.data)), sep="\n")
    elif arguments.what == "write":
        write(record, PAGE)
    else:
        parser.print_help()


if __name__ == "__main__":
    main()
