"""What a job costs: seconds that do not depend on which job came first, and bytes that do not depend on the process."""

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file

from aircl.benchmark.config import Experiment, RunConfig
from aircl.benchmark.memory import written_bytes
from aircl.benchmark.results import RunDirectory
from aircl.benchmark.runner import Runner
from aircl.methods import METHODS, register_method
from aircl.methods.prototypes import Ncm
from aircl.methods.registry import load_methods

EXPERIMENT = Experiment("digits", "identity", "cil", {"phases": 2}, methods=("ncm", "slda"))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))


def run(path, experiment=EXPERIMENT, **options):
    directory = RunDirectory(path)
    Runner(RunConfig("test", (experiment,)), directory, **options).run()
    return directory


@pytest.fixture
def slow_start():
    """A method whose first object pays for the whole process, as one that imports torch does."""
    load_methods()
    made = []

    @register_method("slow-start")
    class SlowStart(Ncm):
        def __init__(self, setup):
            super().__init__(setup)
            made.append((setup.n_features, setup.seed))

        def learn(self, inputs, labels):
            super().learn(inputs, labels)
            made.append(len(labels))

    yield made
    del METHODS._entries["slow-start"]


def test_a_method_is_warmed_up_once_before_the_clock_starts(tmp_path, slow_start):
    run(tmp_path / "run", replace(EXPERIMENT, methods=("slow-start",), seeds=(1, 2)))
    (narrow, _), *rows = slow_start[:3]
    real = slow_start[3:]
    assert narrow < 64
    assert rows == [4, 4]  # two phases; then two jobs of all samples, and no other warm-up
    assert [made for made in real if isinstance(made, tuple)] == [(64, 1), (64, 2)]
    assert sum(made for made in real if not isinstance(made, tuple)) == 2 * 1438


def test_a_warm_up_leaves_the_results_as_they_were(tmp_path, monkeypatch):
    def values(path):
        return [(row.metric, row.value) for row in run(path, replace(EXPERIMENT, methods=("er",))).rows()]

    pytest.importorskip("torch")
    warm = values(tmp_path / "warm")
    monkeypatch.setattr("aircl.benchmark.runner.warm_up", lambda *anything: None)
    assert values(tmp_path / "cold") == warm


def test_the_size_of_the_state_is_that_of_its_files_whatever_ran_before(tmp_path):
    both = run(tmp_path / "both", replace(EXPERIMENT, methods=("slda", "ncm")))
    alone = run(tmp_path / "alone", replace(EXPERIMENT, methods=("ncm",)))

    def sizes(directory):
        return [row.state_bytes for row in directory.rows() if row.method == "ncm"]

    assert sizes(both) == sizes(alone)
    assert sizes(alone)[0] < sizes(alone)[-1] < 10_000  # five classes, then ten, of 64 float64 each


def test_weights_of_the_backbone_are_left_out_once(tmp_path):
    torch = pytest.importorskip("torch")

    class Backbone:
        module = torch.nn.Linear(30, 20)

    weight = np.zeros((20, 30), np.float32)
    save_file({"trunk/weight": weight, "fisher/weight": weight, "head/weight": weight[:5]}, tmp_path / "a.safetensors")
    whole = written_bytes(tmp_path)
    assert whole == (tmp_path / "a.safetensors").stat().st_size
    assert whole - written_bytes(tmp_path, Backbone()) == weight.nbytes


def test_peak_memory_is_told_where_a_job_has_a_process_of_its_own(tmp_path):
    apart = run(tmp_path / "apart", replace(EXPERIMENT, methods=("ncm",)), isolate=True)
    together = run(tmp_path / "together", replace(EXPERIMENT, methods=("ncm",)))
    assert all(row.peak_memory > 10**7 for row in apart.rows())
    assert [row.value for row in apart.rows()] == [row.value for row in together.rows()]


def test_a_process_that_dies_is_a_failed_job(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    (row,) = run(tmp_path / "run", replace(EXPERIMENT, methods=("ncm",)), isolate=True).rows()
    assert (row.status, row.reason) == ("failed", "its process ended with code 1")


def test_a_buffer_that_a_method_has_of_its_own_is_in_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("aircl.methods.dsal.WIDTH", 40)
    rows = run(tmp_path / "run", replace(EXPERIMENT, methods=("acil", "ds-al", "air-calibrated"))).rows()
    assert {(row.method, row.buffer) for row in rows} == {("acil", None), ("ds-al", 40), ("air-calibrated", 512)}
