"""What a run will do, before it does it: jobs, sizes, and hours from counted operations."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from aircl.backbones import Backbone, BackboneError, create_backbone
from aircl.benchmark.about import method_options
from aircl.benchmark.config import Experiment, RunConfig
from aircl.benchmark.streams import describe_streams, left_out_remarks
from aircl.data import Dataset, load_dataset
from aircl.methods import METHODS, IncompatibleError, Setup, create_method
from aircl.methods.registry import load_methods
from aircl.scenarios import make_stream

if TYPE_CHECKING:
    from torch import nn

# Training and test samples and classes of the paper's datasets, for machines that have not got them.
PUBLISHED_SIZES = {
    "cifar100": (50000, 10000, 100),
    "imagenet-r": (24000, 6000, 200),
    "tiny-imagenet": (100000, 10000, 200),
}
# Of the paper's backbones, by table, for machines that have not got their weights: width, blocks, heads.
PUBLISHED_VITS = {"long-tail": ("ViT-B/16", 768, 12, 12), "si-blurry": ("DeiT-S/16", 384, 12, 6)}
# Forward passes that training a sample is worth: there, and back to gradients of the inputs and, if the network is
# trained as well, to those of its weights. A head on features has no inputs to go back to.
TRAINED, UNFROZEN = 2, 3
# How long the speed of this machine is measured.
SECONDS = 0.5


@dataclass(frozen=True)
class Task:
    """One method in an experiment, in all orders and seeds; or the extraction of features.

    Attributes
    ----------
    dataset, backbone : str
    stream : str
        The scenario, with the options that tell it from others of the run; "" for features, which all streams share.
    what : str
        The method, or "features".
    jobs : int
    samples : int
        Training samples of a job's stream, the mean over orders; for features, all samples.
    network_flops, other_flops : float
        Operations of all jobs: in the backbone, and in matrix products beside it.
    nbytes : int
        Of the features on disk; 0 for methods.
    """

    dataset: str
    backbone: str
    stream: str
    what: str
    jobs: int
    samples: int
    network_flops: float
    other_flops: float
    nbytes: int = 0


@dataclass(frozen=True)
class Plan:
    """A run as it would be.

    Attributes
    ----------
    tasks : tuple of Task
    remarks : tuple of str
        What was assumed, which classes are left out, and which methods decline.
    network_speed, other_speed : float
        Operations per second of the backbone and of matrix products, measured here and now.

    Examples
    --------
    >>> from aircl.benchmark import Experiment, RunConfig
    >>> from aircl.benchmark.plan import make_plan
    >>> experiment = Experiment("digits", "identity", "cil", {"phases": 2}, methods=("air", "ncm"), seeds=(1, 2, 3))
    >>> plan = make_plan(RunConfig("mine", (experiment,)))
    >>> [(task.what, task.jobs, task.samples) for task in plan.tasks]
    [('features', 1, 1797), ('air', 3, 1438), ('ncm', 3, 1438)]
    """

    tasks: tuple[Task, ...]
    remarks: tuple[str, ...]
    network_speed: float
    other_speed: float

    def seconds(self, task: Task) -> float:
        """Return how long a task takes if this machine works on as fast as it was measured."""
        return task.network_flops / self.network_speed + task.other_flops / self.other_speed


def make_plan(config: RunConfig, *, data: str | None = None) -> Plan:
    """Count what a run will do.

    Parameters
    ----------
    config : RunConfig
    data : str, optional
        Where datasets are.

    Returns
    -------
    plan : Plan

    Notes
    -----
    Counted are multiplications and additions of matrix products and convolutions, of the backbone by torch's counter.
    Not counted are reading and resizing images, the training of `base:` backbones and of what is adapted to a first
    phase, prompts as further tokens, and the choice of gamma; features that are in the cache are counted as if they
    were not.
    """
    load_methods()
    tasks: list[Task] = []
    remarks: dict[str, None] = {}
    speed = 0.0
    for experiment, stream in zip(config.experiments, config.stream_names(), strict=True):
        found, said, measured = _plan_experiment(experiment, stream, data)
        # Features are extracted once.
        tasks += [task for task in found if task.what != "features" or task not in tasks]
        remarks |= dict.fromkeys(said)
        speed = speed or measured
    other = _product_speed()
    return Plan(tuple(tasks), tuple(remarks), speed or other, other)


def _plan_experiment(experiment: Experiment, name: str, data: str | None) -> tuple[list[Task], list[str], float]:
    remarks: list[str] = []
    dataset: Dataset | None = None
    try:
        dataset = load_dataset(experiment.dataset, root=data)
        labels, n_test = dataset.train.labels, len(dataset.test)
    except ValueError as error:
        if experiment.dataset not in PUBLISHED_SIZES:
            raise
        n, n_test, classes = PUBLISHED_SIZES[experiment.dataset]
        labels = np.arange(n) % classes
        remarks.append(f"{experiment.dataset} is not here, so its published size is taken: {error}")
    n_classes = int(labels.max()) + 1
    width, flops, speed, remark = _backbone(experiment, dataset)
    remarks += [remark] if remark else []
    domains = None if dataset is None else dataset.train.domains
    streams = {
        (order, seed): make_stream(
            experiment.scenario,
            labels,
            seed=seed,
            domains=domains,
            **{**experiment.options, **({"order": order} if order else {})},
        )
        for order in experiment.orders
        for seed in experiment.seeds
    }
    firsts = [streams[order, experiment.seeds[0]] for order in experiment.orders]
    samples, phases = round(np.mean([stream.total for stream in firsts])), len(firsts[0])
    jobs = len(streams)
    if dataset is not None:
        about = describe_streams(experiment, name, streams, dataset.class_names)
        remarks += [f"{experiment.dataset}, {name}: {remark}" for remark in left_out_remarks(about["left_out"])]
    tasks = []
    on_images = {
        method: METHODS[method].inputs_for(method_options(experiment, method)) == "images"
        for method in experiment.methods
    }
    if not all(on_images.values()):
        n = len(labels) + n_test
        tasks.append(
            Task(experiment.dataset, experiment.backbone, "", "features", 1, n, n * flops, 0.0, nbytes=4 * width * n)
        )
    evaluations = phases + (samples // experiment.evaluate_every if experiment.evaluate_every else 0)
    for method in experiment.methods:
        if not on_images[method] and (reason := _declines(experiment, method, width)):
            remarks.append(f"{method} declines: {reason}")
            continue
        counted = _count(experiment, method, on_images[method], samples, phases, evaluations, n_test, n_classes, width)
        network, other = jobs * counted[0] * flops, jobs * counted[1]
        tasks.append(Task(experiment.dataset, experiment.backbone, name, method, jobs, samples, network, other))
    return tasks, remarks, speed


def _declines(experiment: Experiment, method: str, width: int) -> str:
    """Return why a method on features does not take such streams, as far as it can tell before one begins; or ""."""
    options = method_options(experiment, method)
    try:
        create_method(method, Setup(experiment.seeds[0], width, online=experiment.online, options=options))
    except IncompatibleError as error:
        return str(error)
    return ""


def _count(
    experiment: Experiment,
    method: str,
    on_images: bool,
    samples: int,
    phases: int,
    evaluations: int,
    n_test: int,
    n_classes: int,
    width: int,
) -> tuple[float, float]:
    """Return how many forward passes of the backbone a job needs, and how many operations beside them."""
    options = method_options(experiment, method)
    if METHODS[method].analytic:
        f = experiment.buffer or width
        expanded = (samples + n_test) * (2 * width * f if experiment.buffer else 0)
        moments, solves = samples * f**2, phases * (f**3 / 3 + 2 * f**2 * n_classes)
        return (
            samples + n_test if on_images else 0
        ), expanded + moments + solves + evaluations * n_test * f * n_classes
    passes = options.get("updates", 1) if experiment.online else options.get("epochs", 1)
    # Every batch is accompanied by samples of a memory, if there is one; DAP passes over a phase in two stages.
    passes *= UNFROZEN if experiment.unfreeze else TRAINED
    passes *= (1 + options.get("replay", 0) / experiment.batch_size) * getattr(METHODS[method], "stages", 1)
    if not on_images:
        return 0, 2 * samples * passes * width * n_classes + evaluations * n_test * width * n_classes
    # Of the test samples half are of exposed classes, the mean over a stream; prompts look at all samples once before.
    queried = samples + n_test if getattr(METHODS[method], "queried", False) else 0
    # EASE predicts with one forward pass for each phase so far: of a test sample 2/3 of all phases, on the average.
    forward = 2 / 3 * phases if getattr(METHODS[method], "forward_by_phase", False) else 1
    return queried + samples * passes + forward * evaluations * n_test / 2, 0


def _backbone(experiment: Experiment, dataset: Dataset | None) -> tuple[int, float, float, str]:
    """Return width, operations of a forward pass, measured speed (0: not measured) and what was assumed."""
    example = None if dataset is None else dataset.train.inputs[np.arange(1)]
    if experiment.backbone.startswith("base:"):
        return 128, 0.0, 0.0, f"{experiment.backbone} is trained in the run, which is not counted."
    try:
        backbone = create_backbone(experiment.backbone, example=example, device=experiment.device)
    except BackboneError as error:
        if experiment.scenario not in PUBLISHED_VITS:
            raise
        name, width, blocks, heads = PUBLISHED_VITS[experiment.scenario]
        flops, speed = _vit_flops(width, blocks, heads), _torch_speed(experiment.device)
        return width, flops, speed, f"Counted for the paper's {name} at 224 px instead: {error}"
    flops = sum(_network_flops(backbone))
    return backbone.width, flops, _network_speed(backbone, flops) if flops else 0.0, ""


def _network_flops(backbone: Backbone) -> Iterator[float]:
    """Yield the operations of one image; nothing for what is not a network of images."""
    if hasattr(backbone, "module") and hasattr(backbone, "transform"):
        yield _counted(copy.deepcopy(backbone.module), backbone.transform.size)


def _vit_flops(width: int, blocks: int, heads: int) -> float:
    import torch

    from aircl.backbones.vit import VisionTransformer

    with torch.device("meta"):
        vit = VisionTransformer(image_size=224, patch_size=16, width=width, depth=blocks, heads=heads)
    return _counted(vit, 224)


def _counted(module: nn.Module, size: int) -> float:
    """Return the operations of one image of a size, without computing any."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module.to("meta")(torch.zeros(1, 3, size, size, device="meta"))
    return float(counter.get_total_flops())


def _network_speed(backbone: Any, flops: float) -> float:
    prepared = backbone.prepare(np.zeros((8, 32, 32, 3), np.uint8))
    backbone.forward(prepared)
    return _operations_per_second(lambda: backbone.forward(prepared), 8 * flops)


def _torch_speed(device: str | None, size: int = 1024) -> float:
    import torch

    from aircl.backbones.device import choose_device, to_array

    factor = torch.ones(size, size, device=choose_device(device))
    # Ten products, and one number that has to be waited for.
    return _operations_per_second(lambda: to_array(torch.linalg.matrix_power(factor, 1024).sum()), 10 * 2 * size**3)


def _product_speed(size: int = 1024) -> float:
    factor = np.ones((size, size), np.float32)
    return _operations_per_second(lambda: factor @ factor, 2 * size**3)


def _operations_per_second(work: Any, operations: float) -> float:
    began, times = time.perf_counter(), 0
    while time.perf_counter() - began < SECONDS:
        work()
        times += 1
    return times * operations / (time.perf_counter() - began)
