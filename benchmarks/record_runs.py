"""The runs behind docs/results.md: their arguments, and how what is missing of them is run."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from record_rows import keep, lines_of
from record_tables import Record

from aircl.benchmark.config import preset_config
from aircl.benchmark.results import RunDirectory
from aircl.cli.run import parse_seeds

CHOSEN = Path(__file__).with_name("settings.json")

TABLE1, TABLE2 = "--preset table1 --seeds 3", "--preset table2 --seeds"
PROMPTED = ("l2p", "dualprompt", "coda-prompt", "mvp", "mvp-r", "dap", "ease")
# What `record.py subset` writes: parts of CIFAR-100, and Banking77 as features.
LONG_TAIL, PROMPTS, TEXTS = "cifar100-lt", "cifar100-lt-small", "banking77.npz"
ON_VIT = "--scenario long-tail,counts=natural,phases=10 --backbone dinov2-s-mri,size=98 --buffer 2048"
ON_PROMPTS = f"--dataset image-folder:{PROMPTS} {ON_VIT} --batch 16 --seeds 1 --orders descending,ascending"
ON_TEXTS = (
    f"--dataset features:{TEXTS} --backbone identity --buffer 2048 --orders descending,ascending,shuffled --seeds 3"
)
IN_TEXTS = (
    "--gamma grid --methods air,air-shared,air-calibrated,acil,aef-ocl,ncm,slda,fecam,fine-tuning,er,las,dgr,rm,joint"
)
# By `benchmarks/settings.py`, as docs/results.md shows: it notes what it chose for presets only.
RATES, RATES_TAIL = (
    " ".join(f"--option {name}.learning_rate={rate}" for name, rate in rates.items())
    for rates in (
        {"fine-tuning": 0.3, "er": 3, "las": 1, "dgr": 1, "rm": 0.1},
        {"fine-tuning": 1, "er": 1, "las": 1, "dgr": 10, "rm": 10},
    )
)
RUNS = {
    "table1": f"{TABLE1} --gamma grid --methods air,air-shared,acil",
    "table1-aef-ocl": f"{TABLE1} --gamma grid --methods aef-ocl",
    # Not lwf, which phase by phase on frozen features is fine-tuning exactly.
    "table1-trained": f"{TABLE1} --methods fine-tuning,er,ewc++,rm",
    "table1-means": f"{TABLE1} --methods ncm,slda,icarl,fecam",
    "table1-others": f"{TABLE1} --gamma grid --methods ds-al,gkeal,gacl",
    # It searches its ridge by itself.
    "table1-ranpac": f"{TABLE1} --methods ranpac",
    "table1-imbalance": f"{TABLE1} --methods las,dgr,cbrs,prs",
    "table1-corrections": f"{TABLE1} --methods clib,cba,dmc,bic,lucir,two-stage",
    "table1-anchors": f"{TABLE1} --methods cimbl,gss,ewc,si,rwalk,lfl",
    "table1-calibrated": f"{TABLE1} --gamma grid --methods air-calibrated",
    # Every seed draws which samples a class keeps: what the draw adds to the spread of the main methods.
    "table1-resample": f"{TABLE1} --resample --gamma grid "
    "--methods air,air-shared,air-calibrated,acil,aef-ocl,las,dgr,rm,ncm,fine-tuning",
    "table1-auto": "--preset table1 --orders descending --seeds 1 --methods air,air-shared,acil",
    "vit": f"--dataset image-folder:{LONG_TAIL} {ON_VIT} --orders descending,ascending,shuffled --seeds 3 --gamma grid "
    "--methods air,air-shared,acil,ncm",
    "prompts-frozen": f"{ON_PROMPTS} --gamma grid --methods air,air-shared,air-calibrated,ncm,fine-tuning,lucir "
    "--option fine-tuning.learning_rate=0.1 --option lucir.learning_rate=0.1",
    "prompts": f"{ON_PROMPTS} --methods {','.join(PROMPTED)} " + " ".join(f"--option {n}.epochs=1" for n in PROMPTED),
    "prompts-adapter": f"{ON_PROMPTS} --methods ranpac --option ranpac.adapter=true",
    "table2": f"{TABLE2} 3 --gamma auto --methods air,air-shared,acil,air-calibrated,aef-ocl",
    "table2-others": f"{TABLE2} 1 --methods fine-tuning,icarl,er,ewc++,lwf,rm,ncm,slda,fecam",
    "table2-imbalance": f"{TABLE2} 1 --methods las,cimbl,cbrs,prs,clib,cba,gss,ewc,si,rwalk",
    # Claim 3 holds for one gamma; auto gives every method its own.
    "table2-fixed": f"{TABLE2} 1 --gamma 1 --methods air,air-shared,acil,aef-ocl,ds-al,gkeal",
    "table2-ranpac": f"{TABLE2} 1 --methods ranpac",
    "texts": f"{ON_TEXTS} --scenario long-tail,counts=natural,phases=7 {IN_TEXTS} {RATES}",
    "texts-tail": f"{ON_TEXTS} --scenario long-tail,counts=exp,ratio=0.01,phases=7 --resample {IN_TEXTS} {RATES_TAIL}",
    "default": "",
}
EMBEDDED = ("default",)  # needs no --data
ON_IMAGES = ("prompts", "prompts-adapter")  # a method takes so long that each is kept by itself


def command(arguments: str) -> list[str]:
    """Return the words of a run, with the options that `benchmarks/settings.py --save` chose for its methods."""
    words = shlex.split(arguments)
    preset, methods = (words[words.index(key) + 1] if key in words else "" for key in ("--preset", "--methods"))
    known = json.loads(CHOSEN.read_text(encoding="utf-8")) if CHOSEN.exists() else {}
    options = [
        f"{name}.{key}={value}"
        for name, values in known.get(preset, {}).items()
        if name in methods.split(",")
        for key, value in values.items()
    ]
    return words + [word for option in options for word in ("--option", option)]


def run(record: Record, name: str, data: str | None, seeds: int | None = None) -> None:
    """Run what is missing of the first seeds of a run, order by order, and keep every piece that is done."""
    rows = record.rows / f"{name}.csv"
    for piece in record.pieces(name):
        if piece.about.get("finished") is None:  # it was stopped
            _call("--resume", str(piece.path), data=data, name=name)
            keep(rows, lines_of(piece))
    for arguments, place in missing(record, name, seeds):
        directory = RunDirectory(record.runs / name / f"{place}-{len(record.pieces(name)) + 1}")
        _call(*command(arguments), "-o", str(directory.path), data=data, name=name)
        keep(rows, lines_of(directory))


def missing(record: Record, name: str, seeds: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield the arguments of the parts of a run that are not kept, and what to call them.

    A part is an order of a seed; on images, of one method.
    """
    parser = argparse.ArgumentParser()
    for option in ("--preset", "--methods", "--orders", "--seeds"):
        parser.add_argument(option)
    parser.add_argument("--option", action="append", default=[])
    asked, others = parser.parse_known_args(shlex.split(RUNS[name]))
    if asked.methods is None:  # the default run, which is short
        if not record.lines(name):
            yield RUNS[name], "all"
        return
    preset = preset_config(asked.preset, None, "").experiments[0] if asked.preset else None
    orders = tuple(asked.orders.split(",")) if asked.orders else preset.orders if preset else ("",)
    for seed in parse_seeds(asked.seeds)[:seeds]:
        for order in orders:
            lines = record.lines(name).values()
            done = {line["method"] for line in lines if (line["order"], line["seed"]) == (order, str(seed))}
            left = [method for method in asked.methods.split(",") if method not in done]
            for methods in [[method] for method in left] if name in ON_IMAGES else filter(None, [left]):
                words = ["--preset", asked.preset] if asked.preset else []
                words += [*others, "--seeds", f"{seed},", "--methods", ",".join(methods)]
                words += ["--orders", order] if order else []
                own = [option for option in asked.option if option.partition(".")[0] in methods]
                words += [word for option in own for word in ("--option", option)]
                yield shlex.join(words), f"{order or 'stream'}-{seed}"


def _call(*arguments: str, data: str | None, name: str) -> None:
    if name not in EMBEDDED:
        if data is None:
            sys.exit(f"{name} needs --data DIR, with cifar-100-python.tar.gz in it.")
        arguments += ("--data", data)
    # What fails is a row without a result, and is tried again next time.
    subprocess.run([sys.executable, "-m", "aircl.cli", "run", "--quiet", *arguments], check=False)
