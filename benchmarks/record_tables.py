"""The tables and figures of docs/results.md, from what `record_rows` keeps of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from record_rows import Line, experiments_of, read

from aircl.benchmark.results import RunDirectory
from aircl.methods.registry import GROUPS
from aircl.report import (
    Experiment,
    plot_anytime,
    plot_class_loss,
    plot_confusion,
    plot_groups,
    plot_phase_accuracy,
    plot_weight_norms,
)
from aircl.report.estimates import Estimate
from aircl.report.experiments import MethodResults
from aircl.report.published import find_published

IN_TABLE1 = (
    "table1",
    *(
        f"table1-{name}"
        for name in (
            "aef-ocl",
            "trained",
            "means",
            "others",
            "ranpac",
            "imbalance",
            "corrections",
            "anchors",
            "calibrated",
        )
    ),
)
IN_TABLE2 = ("table2", "table2-others", "table2-imbalance", "table2-ranpac")
IN_PROMPTS = ("prompts", "prompts-frozen", "prompts-adapter")
ORDERS = ("ascending", "descending", "shuffled")
# What a method made for imbalance begins from, if that is not ER; "": it is not compared.
PLAIN = dict.fromkeys(("ewc", "si", "rwalk", "lfl", "dmc"), "fine-tuning") | dict.fromkeys(
    ("air", "air-calibrated", "aef-ocl", "er", "icarl"), ""
)


class Record:
    """What is kept of the runs.

    Parameters
    ----------
    rows : path
        The folder of what is kept.
    runs : path
        The folder of directories of runs; those that are here have what some figures need.
    """

    def __init__(self, rows: Path, runs: Path) -> None:
        self.rows, self.runs = rows, runs

    def lines(self, *names: str) -> dict[str, Line]:
        """Return the lines of some runs by job; a job that is in two runs counts in the first."""
        return {job: line for name in reversed(names) for job, line in read(self.rows / f"{name}.csv").items()}

    def pieces(self, name: str) -> list[RunDirectory]:
        """Return the directories of a run, the latest first."""
        found = sorted((self.runs / name).glob("*/run.json"), key=lambda path: -path.stat().st_mtime)
        return [RunDirectory(path.parent) for path in found]

    def experiments(self, *names: str) -> list[Experiment]:
        """Return what is kept of some runs, as experiments."""
        return experiments_of(self.lines(*names), [piece for name in names for piece in self.pieces(name)])

    def methods(self, *names: str, order: str | None = None, dataset: str | None = None) -> dict[str, MethodResults]:
        """Return results by method."""
        return {
            method.name: method
            for experiment in self.experiments(*names)
            if order in (None, experiment.order) and dataset in (None, experiment.dataset)
            for method in experiment.methods
            if method.n_seeds
        }

    def revisions(self, *names: str) -> str:
        """Return a sentence that says with which revision each method was run."""
        of: dict[str, list[str]] = {}
        for line in self.lines(*names).values():
            methods = of.setdefault(line["revision"], [])
            if line["method"] not in methods:
                methods.append(line["method"])
        if len(of) < 2:
            return "".join(f"Revision `{revision}`." for revision in of)
        return "Revisions: " + "; ".join(f"`{one}` ({', '.join(methods)})" for one, methods in of.items()) + "."


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


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]], revisions: str) -> str:
    """Return a table, its first column to the left, and what it was made with; "" if there is nothing in it."""
    rows = list(rows)
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{table}\n\n{revisions}" if rows else ""


def best_first(methods: Iterable[MethodResults], metric: str) -> list[MethodResults]:
    """Sort methods by a metric."""
    return sorted(methods, key=lambda method: -(value.mean if (value := method.final(metric)) else 0.0))


def in_orders(by_order: Mapping[str, Mapping[str, MethodResults]]) -> list[tuple[str, list[str], list[str]]]:
    """Return label, seeds and cells of every method: A_avg and A_last in each order, by its A_last in the first."""
    every = {name: method for methods in reversed(list(by_order.values())) for name, method in methods.items()}
    table = []
    for method in best_first(every.values(), "A_last"):
        own = [methods.get(method.name) for methods in by_order.values()]
        cells = [percent(one.final(metric)) if one else "-" for metric in ("A_avg", "A_last") for one in own]
        table.append((method.label, [str(one.n_seeds) for one in own if one], cells))
    return table


def long_tail(record: Record, runs: Sequence[str] = IN_TABLE1) -> str:
    """Table 1: A_avg and A_last in the three orders."""
    by_order = {order: record.methods(*runs, order=order) for order in ("descending", "ascending", "shuffled")}
    header = ["", "seeds", *(f"{metric} {order}" for metric in ("A_avg", "A_last") for order in by_order)]
    rows = [[label, " ".join(dict.fromkeys(seeds)), *cells] for label, seeds, cells in in_orders(by_order)]
    return markdown(header, rows, record.revisions(*runs))


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
        record.revisions(*IN_TABLE1),
    )


def si_blurry(record: Record, runs: Sequence[str] = IN_TABLE2) -> str:
    """Table 2."""
    methods = best_first(record.methods(*runs).values(), "A_auc")
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
        record.revisions(*runs),
    )


def gains(record: Record) -> str:
    """What a method made for imbalance adds to the plain one that it begins from, in points; the same seeds of both."""
    down, up, mixed = (record.methods(*IN_TABLE1, order=order) for order in ("descending", "ascending", "shuffled"))
    online = record.methods(*IN_TABLE2)
    columns = [
        (down, "A_last"),
        (up, "A_last"),
        (mixed, "A_last"),
        (down, "tail"),
        (online, "A_auc"),
        (online, "A_last"),
    ]
    rows = []
    for name in GROUPS["imbalance"]:
        plain = PLAIN.get(name, "er")
        cells = [gain(methods, name, plain, metric) for methods, metric in columns]
        if plain and set(cells) != {"-"}:
            rows.append([f"{name}, beside {plain}", *cells])
    orders = (f"A_last {order}" for order in ("descending", "ascending", "shuffled"))
    header = ["", *orders, "tail, descending", "online: A_auc", "online: A_last"]
    return markdown(header, rows, "Revisions as above." if rows else "")


def gain(methods: Mapping[str, MethodResults], name: str, plain: str, metric: str) -> str:
    """Return the mean difference of two methods over the seeds that both have, with its standard error."""
    if name not in methods or plain not in methods:
        return "-"
    own, other = ({job.seed: job.final(metric) for job in methods[one].used} for one in (name, plain))
    pairs = [(own[seed], other[seed]) for seed in own.keys() & other.keys()]
    by_seed = [100 * (one - two) for one, two in pairs if one is not None and two is not None]
    if not by_seed:
        return "-"
    error = np.std(by_seed, ddof=1) / len(by_seed) ** 0.5 if len(by_seed) > 1 else None
    return f"{np.mean(by_seed):+.1f}" + ("" if error is None else f" ± {error:.1f}")


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
    return markdown(
        ["", "", "ours, EfficientNet-Lite0", "published, ViT-B/16 or DeiT-S/16"], rows, record.revisions(run)
    )


def gamma(record: Record) -> str:
    """gamma="auto" against the grid on held-out training data."""
    auto, grid = (record.methods(name, order="descending") for name in ("table1-auto", "table1"))
    rows = []
    for name in filter(grid.__contains__, auto):
        method = auto[name]
        seeds = {job.seed for job in method.jobs}
        same = MethodResults(name, 0, tuple(job for job in grid[name].jobs if job.seed in seeds))
        for how, results in (("auto", method), ("grid", same)):
            cells = [percent(results.final(metric)) for metric in ("A_avg", "A_last")]
            rows.append([f"{name}, {how}", number(results.cost("gamma"), form=".3g"), *cells])
    return markdown(["", "gamma", "A_avg", "A_last"], rows, record.revisions("table1-auto"))


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
    header = ["", *(f"{metric} {name}" for metric in ("A_avg", "A_last") for name in backbones)]
    return markdown(header, rows, record.revisions("vit"))


def prompts(record: Record) -> str:
    """Prompt methods beside AIR on one ViT."""
    by_order = {order: record.methods(*IN_PROMPTS, order=order) for order in ("descending", "ascending")}
    costs = {method.label: method for methods in by_order.values() for method in methods.values()}
    rows = [
        [
            "ranpac, with its adapter" if label == "ranpac" else label,
            *cells,
            number(costs[label].cost("seconds")),
            number(costs[label].cost("predict_seconds")),
            number(costs[label].cost("state_bytes"), 1e-6, ",.3g"),
            number(costs[label].cost("kept")),
        ]
        for label, _, cells in in_orders(by_order)
    ]
    header = ["", *(f"{metric} {order}" for metric in ("A_avg", "A_last") for order in by_order)]
    return markdown([*header, "learning s", "predicting s", "state MB", "kept"], rows, record.revisions(*IN_PROMPTS))


def natural(record: Record) -> str:
    """The embedded cities."""
    methods = best_first(record.methods("default", dataset="cities").values(), "A_last")
    metrics = ("A_avg", "A_last", "balanced_A_last", "head", "middle", "tail")
    return markdown(
        ["", "A_avg", "A_last", "class-balanced", "head", "middle", "tail"],
        ([method.name, *(percent(method.final(metric)) for metric in metrics)] for method in methods),
        record.revisions("default"),
    )


TABLES: dict[str, Callable[[Record], str]] = {
    "long-tail": long_tail,
    "long-tail-resampled": lambda record: long_tail(record, ("table1-resample",)),
    "long-tail-groups": long_tail_groups,
    "si-blurry": si_blurry,
    "si-blurry-fixed": lambda record: si_blurry(record, ("table2-fixed",)),
    "gains": gains,
    "published": published,
    "published-si-blurry": lambda record: published(record, "table2-fixed"),
    "gamma": gamma,
    "vit": vit,
    "prompts": prompts,
    "texts": lambda record: long_tail(record, ("texts",)),
    "texts-tail": lambda record: long_tail(record, ("texts-tail",)),
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
        if all(down.method(name).details for name in ("air", "acil")):  # only where their runs were made
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
