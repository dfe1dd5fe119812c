"""Settings of methods, chosen on held-out TRAINING samples, in the same way for all. No test sample is looked at.

    python benchmarks/settings.py                                     # embedded data; minutes
    python benchmarks/settings.py --preset table1 --data DIR --methods er,ewc++,rm --seeds 1,2,3
    python benchmarks/settings.py --preset table1 --data DIR --methods imbalance --uphill --save    # hours
    python benchmarks/settings.py --values learning_rate=0.001,0.01 --values memory_epochs=8,32 --methods rm

Of every class in every phase a fifth is held out, nothing of a class of one, as `aircl run --gamma grid` does. A method
learns the rest of the stream with each value (with several --values, each combination) of the options that it has, and
is judged by its class-balanced accuracy on what was held out, when the stream is over: the mean over orders and seeds.
The best value is chosen, of equals the first; with --uphill, values are tried from the middle one on while it gets
better. Methods without such options, and those that decline the streams, are passed over. With --save what was chosen
is noted, method by method, in settings.json beside this script, from which `benchmarks/record.py` takes the options of
its runs.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from aircl.backbones import create_backbone
from aircl.backbones.base_cache import base_backbone
from aircl.backbones.cache import FeatureCache
from aircl.benchmark.config import Experiment, preset_config
from aircl.benchmark.evaluation import Samples
from aircl.benchmark.grid import learn_most
from aircl.cli.streams import parse_stream
from aircl.data import load_dataset
from aircl.engine.gamma import descend
from aircl.methods import METHODS, IncompatibleError, Setup, create_method, describe_method, resolve_options
from aircl.methods.registry import expand_methods
from aircl.scenarios import make_stream

CHOSEN = Path(__file__).with_name("settings.json")
# The same for all methods that make gradient steps.
LEARNING_RATES = "learning_rate=0.001,0.003,0.01,0.03,0.1,0.3,1"


class Judge:
    """What an experiment offers a method: training samples, streams and a backbone.

    Parameters
    ----------
    experiment : Experiment
    data : str or None
        Where datasets are.
    """

    def __init__(self, experiment: Experiment, data: str | None) -> None:
        self.experiment = experiment
        self.train = load_dataset(experiment.dataset, root=data).train
        self._features: dict[str, Samples] = {}

    def score(self, name: str, options: dict[str, Any], order: str, seed: int) -> float:
        """Return the class-balanced accuracy on held-out samples, from 0 to 1."""
        experiment, train = self.experiment, self.train
        stream_options = {**experiment.options, **({"order": order} if order else {})}
        stream = make_stream(experiment.scenario, train.labels, seed=seed, domains=train.domains, **stream_options)
        options = resolve_options(name, options, online=experiment.online)
        if experiment.backbone.startswith("base:"):
            first = stream.phases[0].train
            arguments = train.inputs, train.labels, train.fingerprint, first
            backbone = base_backbone(experiment.backbone, *arguments, training=lambda *_: None, seed=seed)
        else:
            backbone = create_backbone(experiment.backbone, example=train.inputs[np.arange(1)])
        on_images = METHODS[name].inputs_for(options) == "images"
        samples = Samples(train.inputs, train.labels) if on_images else self._extracted(backbone)
        setup = Setup(
            seed,
            backbone.width,
            online=experiment.online,
            batch_size=experiment.batch_size,
            buffer=experiment.buffer,
            backbone=backbone if on_images else None,
            options=options,
        )
        return learn_most(create_method(name, setup), stream, samples, experiment.batch_size)()

    def _extracted(self, backbone: Any) -> Samples:
        if backbone.fingerprint not in self._features:
            features = FeatureCache(None).features(
                backbone, self.train.inputs, self.train.fingerprint, data=f"{self.experiment.dataset}/train"
            )
            self._features[backbone.fingerprint] = Samples(features, self.train.labels)
        return self._features[backbone.fingerprint]


def grid(texts: list[str]) -> dict[str, list[Any]]:
    """Return options with their values, from KEY=VALUE,VALUE,.."""
    values = {}
    for text in texts:
        key, _, listed = text.partition("=")
        values[key] = [_value(value) for value in listed.split(",")]
    return values


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def choose(judge: Judge, name: str, values: dict[str, list[Any]], *, uphill: bool = False) -> dict[str, Any]:
    """Print what combinations of values reach, and return the best: of all, or uphill from the one in the middle."""
    own = {key: listed for key, listed in values.items() if key in describe_method(name).options}
    if not own:
        print(f"{name}: it has none of the options.")
        return {}
    combinations = [dict(zip(own, combination, strict=True)) for combination in itertools.product(*own.values())]

    @functools.cache
    def loss(place: int) -> float:
        options, began = combinations[place], time.perf_counter()
        scores = [
            judge.score(name, options, order, seed)
            for order in judge.experiment.orders
            for seed in judge.experiment.seeds
        ]
        mean, spread = 100 * np.mean(scores), 100 * np.std(scores)
        shown = " ".join(f"{key}={value}" for key, value in options.items())
        seconds = time.perf_counter() - began
        print(
            f"{name:14s} {shown:40s} {mean:6.2f} +- {spread:5.2f}  {len(scores)} streams, {seconds:.0f} s", flush=True
        )
        return float(-mean)

    n = len(combinations)
    best = combinations[descend(loss, n // 2, (1, 1), n) if uphill and len(own) == 1 else min(range(n), key=loss)]
    for key, value in best.items():
        if len(own[key]) > 2 and value in (own[key][0], own[key][-1]):
            print(f"{name}: {key}={value} is at the end of what was tried: try more on that side.")
    return best


def experiment_of(arguments: argparse.Namespace) -> Experiment:
    """Return the streams that are asked for."""
    if arguments.preset:
        (experiment,) = preset_config(
            arguments.preset, arguments.dataset, arguments.backbone or "efficientnet-lite0"
        ).experiments
        orders = experiment.orders
    else:
        scenario, options = parse_stream(arguments.scenario)
        orders = ("ascending", "descending", "shuffled") if scenario == "long-tail" else ("",)
        experiment = Experiment(arguments.dataset or "digits", arguments.backbone or "identity", scenario, options)
    return Experiment(
        experiment.dataset,
        experiment.backbone,
        experiment.scenario,
        experiment.options,
        tuple(arguments.orders.split(",")) if arguments.orders else orders,
        expand_methods(arguments.methods.split(",")),
        tuple(map(int, arguments.seeds.split(","))),
        experiment.buffer,
        batch_size=arguments.batch or experiment.batch_size,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=["table1", "table2"])
    parser.add_argument("--scenario", default="long-tail,counts=exp,ratio=0.02,phases=5")
    parser.add_argument("--dataset", help="digits by default, or the first of the preset's")
    parser.add_argument("--data", help="where datasets are")
    parser.add_argument("--backbone")
    parser.add_argument("--methods", default="er,ewc++,rm")
    parser.add_argument("--orders", help="all three of a long tail by default")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--batch", type=int, help="rows of a batch")
    parser.add_argument("--save", action="store_true", help="note what was chosen, for the preset, in settings.json")
    parser.add_argument("--values", action="append", metavar="KEY=V,V,..", help=f"{LEARNING_RATES} by default")
    parser.add_argument(
        "--uphill", action="store_true", help="of one option, begin in the middle and follow the better"
    )
    arguments = parser.parse_args()
    if arguments.save and not arguments.preset:
        parser.error("--save is for a --preset: the record runs no other streams.")
    experiment = experiment_of(arguments)
    judge = Judge(experiment, arguments.data)
    print(f"{experiment.dataset}, {experiment.backbone}, {experiment.scenario} {dict(experiment.options)}")
    options = []
    for name in experiment.methods:
        try:
            best = choose(judge, name, grid(arguments.values or [LEARNING_RATES]), uphill=arguments.uphill)
        except IncompatibleError as error:
            print(f"{name} declines: {error}")
            continue
        options += [f"--option {name}.{key}={value}" for key, value in best.items()]
        if arguments.save and best:
            note(arguments.preset, name, best)
    print("chosen: " + " ".join(options))


def note(preset: str, name: str, best: dict[str, Any]) -> None:
    """Write down what was chosen for a method, beside what was chosen before."""
    known = json.loads(CHOSEN.read_text(encoding="utf-8")) if CHOSEN.exists() else {}
    known.setdefault(preset, {}).setdefault(name, {}).update(best)
    CHOSEN.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
