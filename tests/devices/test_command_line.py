"""The device of a command reaches the networks that it makes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from aircl.cli import app


@pytest.fixture
def network(tmp_path, monkeypatch):
    """The name of a small backbone in a file."""
    from aircl.backbones.base_trained import BaseTrained, build
    from aircl.backbones.transform import ImageTransform

    monkeypatch.delenv("AIRCL_DEVICE", raising=False)
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    module = build("resnet32", 8, seed=0)
    BaseTrained("base:resnet32", "resnet32", module, ImageTransform(8)).save(tmp_path / "net.safetensors")
    return "checkpoint:net.safetensors"


def call(*words, code=0, env=None):
    done = CliRunner().invoke(app, [str(word) for word in words], env=env)
    assert done.exit_code == code, done.output
    return done


def test_features(network):
    message = call("features", "digits", "--backbone", network, "--device", "gpu", code=1).stderr
    assert "device='gpu' is none. Use auto, cpu, cuda" in message
    message = call("features", "digits", "--backbone", network, code=1, env={"AIRCL_DEVICE": "tpu"}).stderr
    assert "device='tpu' is none" in message
    near = call("features", "digits", "--backbone", network, "--device", "cpu", "--json").stdout
    assert json.loads(near)["splits"]["train"]["width"] == 64


def test_learning_from_folders_of_images(network, tmp_path):
    for number, name in enumerate(("bright", "dark")):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(2):
            pixels = np.full((8, 8, 3), 200 * number + i, np.uint8)
            Image.fromarray(pixels).save(tmp_path / "images" / name / f"{i}.png")
    command = ["learn", tmp_path / "images", "--backbone", network, "-o", tmp_path / "model.safetensors"]
    assert "device='gpu' is none" in call(*command, "--device", "gpu", code=1).stderr
    call(*command, "--device", "cpu")
    assert (tmp_path / "model.safetensors").exists()


def test_a_run_and_its_configuration(network, tmp_path):
    command = ["run", "--dataset", "digits", "--backbone", network, "--scenario", "cil,phases=2", "--methods", "ncm"]
    failed = call(*command, "--device", "gpu", "-o", tmp_path / "failed", code=1)
    assert "device='gpu' is none" in failed.output
    config = tmp_path / "mine.toml"
    config.write_text(
        f'[[experiments]]\ndataset = "digits"\nbackbone = "{network}"\nscenario = "cil"\noptions = {{phases = 2}}\n'
        'methods = ["ncm"]\ndevice = "cpu"\n'
    )
    call("run", config, "-o", tmp_path / "done")
    about = json.loads((tmp_path / "done" / "run.json").read_text())
    assert about["config"]["experiments"][0]["device"] == "cpu"
    searched = ["tune", "er", "--dataset", "digits", "--scenario", "cil,phases=2", "--trials", 1, "--device", "gpu"]
    assert "device='gpu' is none" in call(*searched, "-o", tmp_path / "tuned.toml", code=1).output
    # A run may go on elsewhere.
    call("run", "--resume", tmp_path / "failed", "--device", "cpu")
