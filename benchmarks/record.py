"""The record of docs/results.md: the runs behind it, and its tables and figures.

    python benchmarks/record.py subset --data DIR          # a small CIFAR-100 in DIR/cifar100-small, for prompts
    python benchmarks/record.py run --data DIR [NAME ..]   # hours; what was stopped goes on where it was
    python benchmarks/record.py write                      # the tables and figures of the page, from what there is

A run is `aircl run` with the arguments below, in runs/record/NAME (or --runs DIR). DIR has cifar-100-python.tar.gz.
What stands between `<!-- NAME -->` and `<!-- end -->` on the page is written by this script; a table whose runs are not
there stays as it is.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from aircl.benchmark.results import RunDirectory
from aircl.data import load_dataset
from aircl.report import (
    Experiment,
    plot_anytime,
    plot_class_loss,
    plot_confusion,
    plot_groups,
    plot_phase_accuracy,
    plot_weight_norms,
    read_experiments,
)
from aircl.report.estimates import Estimate
from aircl.report.experiments import Job, MethodResults
from aircl.report.published import find_published

PAGE = Path(__file__).parent.parent / "docs" / "results.md"
CHOSEN = Path(__file__).with_name("settings.json")
ORDERS = ("ascending", "descending", "shuffled")

TABLE1, HEAD_FIRST = "--preset table1 --seeds 3", "--orders descending,ascending,shuffled"
PROMPTS = ("l2p", "dualprompt", "coda-prompt", "mvp", "mvp-r", "dap")
SMALL = "cifar100-small"
ON_PROMPTS = (
    f"--dataset image-folder:{SMALL} --backbone dinov2-s-mri,size=98 --buffer 2048 --batch 16 --seeds 1 "
    "--orders descending,ascending --scenario long-tail,phases=10,ratio=1/20"
)
EPOCHS = " ".join(f"--option {name}.epochs=3" for name in PROMPTS)
RUNS = {
    "table1": f"{TABLE1} --gamma grid --methods air,air-shared,acil",
    # Not lwf, which phase by phase on frozen features is fine-tuning exactly.
    "table1-trained": f"{TABLE1} --methods fine-tuning,er,ewc++,rm",
    "table1-means": f"{TABLE1} --methods ncm,slda,icarl,fecam",
    "table1-others": f"{TABLE1} --gamma grid {HEAD_FIRST} --methods ds-al,gkeal,air-calibrated,gacl",
    "table1-aef-ocl": f"{TABLE1} --gamma grid {HEAD_FIRST} --methods aef-ocl",
    # It searches its ridge by itself.
    "table1-ranpac": f"{TABLE1} {HEAD_FIRST} --methods ranpac",
    "table1-auto": "--preset table1 --orders descending --seeds 1 --methods air,air-shared,acil",
    "vit": f"{TABLE1} --gamma grid --backbone dinov2-s-mri,size=98 --methods air,air-shared,acil,ncm",
    "prompts-frozen": f"{ON_PROMPTS} --methods air,air-calibrated,ncm,fine-tuning",
    "prompts": f"{ON_PROMPTS} --methods {','.join(PROMPTS)} {EPOCHS}",
    "prompts-adapter": f"{ON_PROMPTS} --methods ranpac --option ranpac.adapter=true",
    "table2": "--preset table2 --gamma 1 --seeds 1 --methods air,air-shared,acil",
    "table2-others": "--preset table2 --seeds 1 --methods fine-tuning,icarl,er,ewc++,lwf,rm,ncm,slda",
    "default": "",
}
IN_TABLE1 = ("table1", *(f"table1-{name}" for name in ("trained", "means", "others", "aef-ocl", "ranpac")))
EMBEDDED = ("default",)  # needs no --data


class Record:
    """The runs, as far as they are there."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs

    def experiments(self, *names: str) -> list[Experiment]:
        """Return the experiments of some runs, one run after the other."""
        return [
            experiment
            for name in names
            if (self.runs / name / "run.json").exists()
            for experiment in read_experiments(RunDirectory(self.runs / name))
        ]

    def methods(self, *names: str, order: str | None = None, dataset: str | None = None) -> dict[str, MethodResults]:
        """Return results by method; a seed that is in two runs counts in the first."""
        jobs: dict[str, dict[int, Job]] = {}
        titles: dict[str, str] = {}
        for experiment in self.experiments(*names):
            if order in (None, experiment.order) and dataset in (None, experiment.dataset):
                for method in experiment.methods:
                    titles[method.name] = method.title
                    for job in method.jobs:
                        if job.status == "ok":
                            jobs.setdefault(method.name, {}).setdefault(job.seed, job)
        return {name: MethodResults(name, 0, tuple(by_seed.values()), titles[name]) for name, by_seed in jobs.items()}


# -- tables --
def percent(value: Estimate | None) -> str:
    """Return an accuracy with its standard error."""
    if value is None:
        return "-"
    error = "" if value.standard_error is None else f" ± {100 * value.standard_error:.2f}"
    return f"{100 * value.mean:.2f}{error}"


def number(value: Estimate | None, scale: float = 1, form: str = ",.0f") -> str:
    """Return a cost."""
    return "-" if value is None else format(value.mean * scale, form)


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table, its first column to the left."""
    header = list(header)
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *map(list, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def best_first(methods: Iterable[MethodResults], metric: str) -> list[MethodResults]:
    """Sort methods by a metric."""
    return sorted(methods, key=lambda method: -(value.mean if (value := method.final(metric)) else 0.0))


def long_tail(record: Record) -> str:
    """Table 1: A_avg and A_last in the three orders."""
    by_order = {order: record.methods(*IN_TABLE1, order=order) for order in ORDERS}
    shown = best_first(by_order["descending"].values(), "A_last")
    header = ["", "seeds", *(f"{metric} {order}" for metric in ("A_avg", "A_last") for order in ORDERS)]
    rows = []
    for method in shown:
        cells = [
            percent(by_order[order][method.name].final(metric)) if method.name in by_order[order] else "-"
            for metric in ("A_avg", "A_last")
            for order in ORDERS
        ]
        rows.append([method.label, str(method.n_seeds), *cells])
    return markdown(header, rows)


def long_tail_groups(record: Record) -> str:
    """Table 1, descending: who pays, and what it costs."""
    methods = best_first(record.methods(*IN_TABLE1, order="descending").values(), "A_last")
    header = ["", "A_last", "head", "middle", "tail", "forgetting", "learning s", "state MB", "kept", "gamma"]
    metrics = ("A_last", "head", "middle", "tail", "forgetting")
    return markdown(
        header,
        (
            [
                method.label,
                *(percent(method.final(metric)) for metric in metrics),
                number(method.cost("seconds")),
                number(method.cost("state_bytes"), 1e-6, ",.3g"),
                number(method.cost("kept")),
                number(method.cost("gamma"), form=".3g"),
            ]
            for method in methods
        ),
    )


def si_blurry(record: Record) -> str:
    """Table 2."""
    methods = best_first(record.methods("table2", "table2-others").values(), "A_auc")
    return markdown(
        ["", "seeds", "A_auc", "A_avg", "A_last", "state MB", "kept"],
        (
            [
                method.label,
                str(method.n_seeds),
                *(percent(method.final(metric)) for metric in ("A_auc", "A_avg", "A_last")),
                number(method.cost("state_bytes"), 1e-6, ",.3g"),
                number(method.cost("kept")),
            ]
            for method in methods
        ),
    )


def published(record: Record, run: str = "table1") -> str:
    """The paper's numbers beside ours, for the methods that both have."""
    rows = []
    for experiment in record.experiments(run):
        theirs = find_published(experiment)
        if theirs is None:
            continue
        for method in experiment.methods:
            row = theirs.beside(method)
            for metric in theirs.metrics if row is not None and method.n_seeds else ():
                if (value := row.values.get(metric)) is not None:
                    where = " ".join(filter(None, [experiment.scenario, experiment.order]))
                    error = "" if value.standard_error is None else f" ± {value.standard_error:.2f}"
                    rows.append(
                        [f"{where}, {method.name}", metric, percent(method.final(metric)), f"{value.mean:.2f}{error}"]
                    )
    return markdown(["", "", "ours, EfficientNet-Lite0", "published, ViT-B/16 or DeiT-S/16"], rows)


def gamma(record: Record) -> str:
    """gamma="auto" against the grid on held-out training data."""
    auto, grid = (record.methods(name, order="descending") for name in ("table1-auto", "table1"))
    rows = []
    for name, method in auto.items():
        seeds = {job.seed for job in method.jobs}
        same = MethodResults(name, 0, tuple(job for job in grid[name].jobs if job.seed in seeds))
        for how, results in (("auto", method), ("grid", same)):
            cells = [percent(results.final(metric)) for metric in ("A_avg", "A_last")]
            rows.append([f"{name}, {how}", number(results.cost("gamma"), form=".3g"), *cells])
    return markdown(["", "gamma", "A_avg", "A_last"], rows)


def vit(record: Record) -> str:
    """The rows of Table 1 on the ViT that prompts are learned on, beside those on EfficientNet-Lite0."""
    rows = []
    for order in ORDERS:
        others = record.methods(*IN_TABLE1, order=order)
        for name, method in record.methods("vit", order=order).items():
            both = (method, others.get(name))
            cells = [percent(one.final(metric)) if one else "-" for metric in ("A_avg", "A_last") for one in both]
            rows.append([f"{order}, {name}", *cells])
    backbones = ("dinov2-s-mri", "EfficientNet-Lite0")
    return markdown(["", *(f"{metric} {name}" for metric in ("A_avg", "A_last") for name in backbones)], rows)


def prompts(record: Record) -> str:
    """Prompt methods beside AIR on one ViT."""
    by_order = {order: record.methods("prompts", "prompts-frozen", "prompts-adapter", order=order) for order in ORDERS}
    orders = ("descending", "ascending")
    shown = best_first(by_order["descending"].values(), "A_last")
    rows = []
    for method in shown:
        there = {order: by_order[order][method.name] for order in orders if method.name in by_order[order]}
        cells = [
            percent(there[order].final(metric)) if order in there else "-"
            for order in orders
            for metric in ("A_avg", "A_last")
        ]
        costs = [number(method.cost("seconds")), number(method.cost("predict_seconds"))]
        sizes = [number(method.cost("state_bytes"), 1e-6, ",.3g"), number(method.cost("kept"))]
        rows.append([method.label, *cells, *costs, *sizes])
    header = [f"{metric} {order}" for order in orders for metric in ("A_avg", "A_last")]
    return markdown(["", *header, "learning s", "predicting s", "state MB", "kept"], rows)


def natural(record: Record) -> str:
    """The embedded cities."""
    methods = best_first(record.methods("default", dataset="cities").values(), "A_last")
    metrics = ("A_avg", "A_last", "balanced_A_last", "head", "middle", "tail")
    return markdown(
        ["", "A_avg", "A_last", "class-balanced", "head", "middle", "tail"],
        ([method.name, *(percent(method.final(metric)) for metric in metrics)] for method in methods),
    )


TABLES: dict[str, Callable[[Record], str]] = {
    "long-tail": long_tail,
    "long-tail-groups": long_tail_groups,
    "si-blurry": si_blurry,
    "published": published,
    "published-si-blurry": lambda record: published(record, "table2"),
    "gamma": gamma,
    "vit": vit,
    "prompts": prompts,
    "cities": natural,
}


# -- figures --
def draw(record: Record, folder: Path) -> None:
    """Write the figures of the page, as far as their runs are there."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams["svg.hashsalt"] = "aircl"  # the same figure is the same file
    import matplotlib.pyplot as plt

    def save(name: str, width: float, *plots: Callable[..., object]) -> None:
        figure, axes = plt.subplots(1, len(plots), figsize=(width, 3.6), layout="constrained", squeeze=False)
        for plot, ax in zip(plots, axes[0], strict=True):
            plot(ax=ax)
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)

    folder.mkdir(exist_ok=True)
    tail = {experiment.order: experiment for experiment in record.experiments("table1")}
    if down := tail.get("descending"):
        save(
            "confusion",
            9,
            lambda ax: plot_confusion(down, ax, method="air"),
            lambda ax: plot_confusion(down, ax, method="acil"),
        )
        save("norms-and-loss", 9, lambda ax: plot_weight_norms(down, ax), lambda ax: plot_class_loss(down, ax))
        save("groups", 6, lambda ax: plot_groups(down, ax))
        save(
            "orders",
            12,
            *(lambda ax, one=tail[order]: plot_phase_accuracy(one, ax) for order in ORDERS if order in tail),
        )
    for blurry in record.experiments("table2"):
        save("anytime", 7, lambda ax, one=blurry: plot_anytime(one, ax))


def write(record: Record, page: Path) -> None:
    """Write tables into the page, and figures beside it; leave the tables whose runs are not there as they are."""
    text = page.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        lines = table(record)
        if lines.count("\n") > 1:
            pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
            text = pattern.sub(lambda found, lines=lines: f"{found[1]}\n{lines}\n\n{found[2]}", text)
    page.write_text(text, encoding="utf-8")
    draw(record, page.parent / "results")


def chosen(arguments: str) -> list[str]:
    """Return the options that `benchmarks/settings.py --save` chose for the methods of a run of a preset."""
    words = arguments.split()
    preset, methods = (words[words.index(key) + 1] if key in words else "" for key in ("--preset", "--methods"))
    known = json.loads(CHOSEN.read_text(encoding="utf-8")) if CHOSEN.exists() else {}
    options = [
        f"{name}.{key}={value}"
        for name, values in known.get(preset, {}).items()
        if name in methods.split(",")
        for key, value in values.items()
    ]
    return [word for option in options for word in ("--option", option)]


def subset(data: Path, *, train: int = 20, test: int = 5) -> Path:
    """Write the first images of every class of CIFAR-100 as an image folder, and return where.

    Prompt methods see every image several times: with all of CIFAR-100 they take days of two cores.
    """
    from PIL import Image

    dataset = load_dataset("cifar100", root=data)
    folder = data / SMALL
    for part, split, n in (("train", dataset.train, train), ("test", dataset.test, test)):
        for label, name in enumerate(dataset.class_names):
            here = folder / part / f"{label:02d}-{name}"  # classes of a folder are in the order of their names
            here.mkdir(parents=True, exist_ok=True)
            rows = np.flatnonzero(split.labels == label)[:n]
            for row, pixels in zip(rows, split.inputs[rows], strict=True):
                Image.fromarray(pixels).save(here / f"{row:05d}.png")
    return folder


def run(record: Record, names: list[str], data: str | None) -> None:
    """Run what is asked for; what is complete is not run again."""
    for name in names:
        directory = record.runs / name
        if (directory / "run.json").exists():
            arguments = ["--resume", str(directory)]
        else:
            arguments = [*RUNS[name].split(), *chosen(RUNS[name]), "-o", str(directory)]
        if name not in EMBEDDED:
            if data is None:
                sys.exit(f"{name} needs --data DIR, with cifar-100-python.tar.gz in it.")
            arguments += ["--data", data]
        subprocess.run([sys.executable, "-m", "aircl.cli", "run", *arguments], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["subset", "run", "write"])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RUNS)}; all by default")
    parser.add_argument("--data")
    parser.add_argument("--runs", type=Path, default=Path("runs/record"))
    arguments = parser.parse_intermixed_args()
    if unknown := set(arguments.names) - set(RUNS):
        parser.error(f"there is no run {', '.join(sorted(unknown))}; there are {', '.join(RUNS)}.")
    record = Record(arguments.runs)
    if arguments.what == "run":
        run(record, arguments.names or list(RUNS), arguments.data)
    elif arguments.what == "subset":
        if arguments.data is None:
            parser.error("subset needs --data DIR, with cifar-100-python.tar.gz in it.")
        print(subset(Path(arguments.data)))
    elif arguments.what == "write":
        write(record, PAGE)
    else:
        parser.print_help()


if __name__ == "__main__":
    main()
