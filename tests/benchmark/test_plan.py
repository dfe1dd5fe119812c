from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from aircl.benchmark import Experiment, RunConfig, plan, preset_config
from aircl.benchmark.plan import make_plan


@pytest.fixture(autouse=True)
def _quick(monkeypatch, tmp_path):
    monkeypatch.setattr(plan, "SECONDS", 0.001)
    monkeypatch.delenv("AIRCL_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


def tasks(*experiments, **settings):
    return {task.what: task for task in make_plan(RunConfig("mine", experiments), **settings).tasks}


def test_operations_of_analytic_methods_are_those_of_their_products():
    experiment = Experiment("digits", "identity", "cil", {"phases": 2}, methods=("air",), seeds=(1, 2), buffer=100)
    air = tasks(experiment)["air"]
    # 1438 training and 359 test samples, 64 features, 100 of the buffer, 10 classes, evaluated twice.
    expanded, moments = (1438 + 359) * 2 * 64 * 100, 1438 * 100**2
    solves, scores = 2 * (100**3 / 3 + 2 * 100**2 * 10), 2 * 359 * 100 * 10
    assert (air.jobs, air.samples, air.network_flops) == (2, 1438, 0)
    assert air.other_flops == pytest.approx(2 * (expanded + moments + solves + scores))


def test_features_are_counted_once_and_jobs_by_order_and_seed():
    experiment = Experiment(
        "digits", "identity", "long-tail", {"phases": 5}, ("ascending", "descending"), ("air", "ncm"), seeds=(1, 2, 3)
    )
    found = make_plan(RunConfig("mine", (experiment, replace(experiment, options={"phases": 2})))).tasks
    assert [task.what for task in found] == ["features", "air", "ncm", "air", "ncm"]
    assert [task.jobs for task in found] == [1, 6, 6, 6, 6]
    assert found[0].nbytes == 4 * 64 * 1797


def test_streams_of_one_size_are_told_apart_and_none_is_lost():
    cil = Experiment("digits", "identity", "cil", {"phases": 5}, methods=("ncm",))
    found = make_plan(RunConfig("mine", (cil, replace(cil, scenario="task-incremental")))).tasks
    assert [(task.stream, task.what) for task in found] == [
        ("", "features"), ("cil", "ncm"), ("task-incremental", "ncm")
    ]  # fmt: skip
    assert found[1].samples == found[2].samples


def test_classes_that_a_stream_leaves_out_are_named_before_the_run():
    blurry = Experiment("digits", "identity", "si-blurry", {"phases": 3}, methods=("ncm",), seeds=(1, 2))
    assert make_plan(RunConfig("mine", (blurry,))).remarks == (
        "digits, si-blurry: Left out in seed 1: class 3.", "digits, si-blurry: Left out in seed 2: class 0."
    )  # fmt: skip


def test_a_forward_pass_is_counted_by_torch():
    pytest.importorskip("torch")
    # ViT-B/16 at 224 px: 17.6 G multiply-adds, as published (17.56 without the head).
    assert plan._vit_flops(768, 12, 12) / 2e9 == pytest.approx(17.56, abs=0.05)
    assert plan._vit_flops(384, 12, 6) / 2e9 == pytest.approx(4.6, abs=0.05)


def test_prompts_pay_for_queries_training_and_every_evaluation(monkeypatch):
    pytest.importorskip("torch")
    config = preset_config("table1", None, "checkpoint:none.pth").changed(methods=("l2p",), seeds=(1,))
    found = make_plan(config)
    (l2p,) = found.tasks
    flops = plan._vit_flops(768, 12, 12)
    # 5 epochs of 2 passes over 10660 samples, 10 evaluations of 5000 on average, and one query for each sample.
    assert l2p.network_flops == pytest.approx(3 * flops * (10 * 10660 + 10 * 5000 + 20660))
    assert l2p.samples == 10660
    assert "cifar100 is not here" in found.remarks[0]
    assert "Counted for the paper's ViT-B/16 at 224 px instead: none.pth does not exist" in found.remarks[1]


@pytest.mark.parametrize("name", ["l2p", "dap"])
def test_passes_of_training_are_what_torch_counts(name):
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    from aircl.backbones.network import Network
    from aircl.backbones.transform import ImageTransform
    from aircl.backbones.vit import VisionTransformer
    from aircl.methods import Setup, create_method

    vit = VisionTransformer(image_size=112, patch_size=8, width=24, depth=3, heads=3)  # as many tokens as ViT-B/16 has
    with torch.no_grad(), FlopCounterMode(display=False) as forward:
        vit(torch.zeros(4, 3, 112, 112))
    backbone = Network("tiny", vit, ImageTransform(112), width=24, architecture="tiny")
    options = {"epochs": 1}
    method = create_method(name, Setup(1, 24, batch_size=4, backbone=backbone, device="cpu", options=options))
    with FlopCounterMode(display=False) as counted:
        method.learn(np.zeros((4, 8, 8, 3), np.uint8), np.arange(4))
        method.end_phase(None)
    experiment = Experiment("digits", "tiny", "cil", methods=(name,), method_options={name: options})
    passes, _ = plan._count(experiment, name, True, 4, phases=1, evaluations=0, n_test=0, n_classes=4, width=24)
    # Prompts are more tokens, which are not planned for.
    assert 1 <= counted.get_total_flops() / forward.get_total_flops() * 4 / passes < 1.2


def test_time_is_operations_by_speed():
    task = plan.Task("d", "b", "s", "m", 1, 10, network_flops=6e9, other_flops=4e9)
    assert plan.Plan((task,), (), network_speed=2e9, other_speed=1e9).seconds(task) == 7


def test_what_is_neither_here_nor_published_is_an_error():
    with pytest.raises(ValueError, match="there is no dataset"):
        tasks(Experiment("cifar", "identity", "cil"))


def test_the_command_line_prints_it_and_runs_nothing(tmp_path):
    from aircl.cli import app

    command = ["run", "--dataset", "digits", "--backbone", "identity", "--scenario", "cil,phases=2", "--dry-run"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0
    assert "air-shared" in done.stdout
    assert "3 jobs, about" in done.stderr
    assert list(tmp_path.iterdir()) == []
    told = json.loads(CliRunner().invoke(app, [*command, "--json", "--seeds", "2"]).stdout)
    assert (told["jobs"], len(told["tasks"])) == (6, 4)
    assert told["seconds"] == pytest.approx(np.sum([task["seconds"] for task in told["tasks"]]))
