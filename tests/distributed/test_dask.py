"""A real cluster: a scheduler and two worker processes on this machine."""

from __future__ import annotations

import os
import signal
import time
from threading import Thread

import pytest

from aircl import AIRClassifier, RandomReLU
from aircl.distributed import LostWorkersError, fit_dask, fit_joblib, piece

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

distributed = pytest.importorskip("distributed")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="no such signal")]


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.parametrize("store", ["per-class", "shared", "pooled"])
def test_the_cluster_gives_the_bits_of_one_process(store, client, stream, shards, assert_same, assert_same_bits):
    X, y, _ = stream
    calls = []
    fitted = fit_dask(
        AIRClassifier(0.1, store=store, **PAPER), shards, workers=client, progress=lambda *call: calls.append(call)
    )
    assert len(calls) == len(shards)
    assert calls[-1] == (7, 7, 168)
    assert_same_bits(fitted, fit_joblib(AIRClassifier(0.1, store=store, **PAPER), shards, workers=1))
    assert_same(fitted, AIRClassifier(0.1, store=store, **PAPER).fit(X, y))


def test_a_random_expansion_and_buckets_of_classes(client, shards, monkeypatch, assert_same_bits):
    monkeypatch.setattr(piece, "BUCKET_BYTES", 1_000_000)
    settings = {"gamma": 0.1, "expansion": RandomReLU(30, random_state=1)}
    fitted = fit_dask(AIRClassifier(**{**PAPER, **settings}), shards, workers=client.scheduler.address, parts=3)
    assert piece.count_buckets(fitted._learner.state.statistics) == 4
    assert_same_bits(fitted, fit_joblib(AIRClassifier(**{**PAPER, **settings}), shards, workers=1, parts=3))


def test_a_problem_on_a_worker_arrives_here(client, stream, shards):
    X, *_ = stream
    with pytest.raises(ValueError, match="labels"):
        fit_dask(AIRClassifier(0.1, **PAPER), [*shards, (X[:3], list("abc"))], workers=client)


def test_a_worker_that_is_killed_costs_time_but_no_data(
    client, stream, shards, tmp_path, assert_same_bits, assert_same
):
    X, y, _ = stream
    test_process = os.getpid()
    reads, victim = tmp_path / "reads", tmp_path / "victim"

    def shard(number):
        def read():
            if os.getpid() != test_process:
                with reads.open("a") as log:
                    log.write(f"{number} {os.getpid()}\n")
            rows, labels = shards[number]
            yield rows[:5], labels[:5]
            if number == 6 and os.getpid() != test_process and not victim.exists():
                victim.write_text(str(os.getpid()))
                time.sleep(600)  # until it is killed
            yield rows[5:], labels[5:]

        return read

    def kill_in_the_middle():
        while not (victim.exists() and victim.read_text() and len(reads.read_text().splitlines()) == len(shards)):
            time.sleep(0.01)
        os.kill(int(victim.read_text()), signal.SIGKILL)

    killer = Thread(target=kill_in_the_middle, daemon=True)
    killer.start()
    readers = [shard(number) for number in range(len(shards))]
    fitted = fit_dask(AIRClassifier(0.1, **PAPER), readers, workers=client)
    killer.join(60)
    log = [line.split() for line in reads.read_text().splitlines()]
    (first, again) = [worker for number, worker in log if number == "6"]
    assert first == victim.read_text() != again
    assert_same_bits(fitted, fit_joblib(AIRClassifier(0.1, **PAPER), readers, workers=1))
    assert_same(fitted, AIRClassifier(0.1, **PAPER).fit(X, y))


def test_a_shard_that_kills_its_workers_is_given_up(shards):
    test_process = os.getpid()

    def deadly():
        if os.getpid() != test_process:
            os.kill(os.getpid(), signal.SIGKILL)
        yield shards[0]

    import dask

    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), pytest.raises(LostWorkersError, match="lost"):
        fit_dask(AIRClassifier(0.1, **PAPER), [shards[0], deadly], workers=1)
