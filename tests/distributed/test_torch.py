from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from aircl import AIRClassifier
from aircl.distributed import fit_joblib, fit_torch

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

pytest.importorskip("torch.distributed")

SCRIPT = Path(__file__).with_name("torch_ranks.py")


@pytest.mark.slow
def test_two_ranks_give_the_bits_of_one_process(stream, shards, tmp_path, assert_same, assert_same_bits):
    X, y, _ = stream
    bounds = np.cumsum([0, *(len(labels) for _, labels in shards)])
    np.savez(tmp_path / "rows.npz", X=X, y=y, bounds=bounds)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, str(SCRIPT), str(tmp_path / "rows.npz"), str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert ended.returncode == 0, ended.stderr
    for store, parts in product(("per-class", "shared", "pooled"), (2, 5)):
        fitted = AIRClassifier.load(tmp_path / f"{store}-{parts}")
        assert fitted._learner.state.lineage == {f"shard {number}" for number in range(7)}
        reference = fit_joblib(AIRClassifier(0.1, store=store, **PAPER), shards, workers=1, parts=parts)
        reference.save(tmp_path / "reference")
        assert_same_bits(fitted, AIRClassifier.load(tmp_path / "reference"))
        assert_same(fitted, AIRClassifier(0.1, store=store, **PAPER).fit(X, y))
    expanded = AIRClassifier.load(tmp_path / "expanded-2")
    assert len(expanded._learner.state.ledger) == len(y)
    reference = AIRClassifier(0.1, **PAPER).fit(expanded.expansion_.transform(X), y)
    np.testing.assert_allclose(expanded.coef_, reference.coef_, rtol=1e-9, atol=1e-12)
    assert (tmp_path / "refused-0").read_text() == "RuntimeError: rank 1 has failed: " + (
        tmp_path / "refused-1"
    ).read_text()


def test_outside_of_torchrun_it_says_so(shards, monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(RuntimeError, match="torchrun"):
        fit_torch(AIRClassifier(**PAPER), shards)
