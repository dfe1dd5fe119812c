from __future__ import annotations

import pytest

from aircl.benchmark.results import Row
from aircl.report.estimates import Estimate
from aircl.report.experiments import Experiment, MethodResults
from aircl.report.published import find_published, read_published
from aircl.report.reading import read_experiments
from aircl.scenarios import PRESETS


def experiment(dataset="cifar100", scenario="long-tail", order="descending", methods=(), **config):
    return Experiment(dataset, "some-net", scenario, order, tuple(methods), config)


def method(name, kept=0):
    row = Row("r", "j", "d", "b", "s", "", name, 1, 1, 10, "phase", "accuracy", 0.5, 1.0, 1, kept=kept)
    (found,) = read_experiments([row])
    return found.methods[0]


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_every_preset_has_its_column_with_air(preset):
    found = find_published(experiment(preset.dataset, preset.scenario, preset.options.get("order", "")))
    assert found.preset is preset
    assert found.metrics == (("A_avg", "A_last") if preset.table == 1 else ("A_avg", "A_last", "A_auc"))
    air = found.beside(method("air"))
    assert air.name == "AIR"
    assert set(air.values) == set(found.metrics)


def test_numbers_and_labels_as_in_the_paper():
    one = find_published(experiment())
    assert one.label == "published, ViT-B/16"
    assert one.beside(method("air")).values == {"A_avg": Estimate(89.43, 0.02, 7), "A_last": Estimate(79.70, 0.06, 7)}
    assert one.beside(method("acil")).values["A_last"] == Estimate(57.40, None, 7)
    two = find_published(experiment("imagenet-r", "si-blurry", ""))
    assert two.label == "published, DeiT-S/16 (611 classes)"
    assert two.beside(method("air")).values["A_auc"] == Estimate(45.49, 0.93, 5)
    assert two.beside(method("acil")).name == "GACL"
    assert len(read_published()) == 6 * 9 + 3 * 15


def test_other_streams_have_no_published_numbers():
    assert find_published(experiment("digits")) is None
    assert find_published(experiment(order="shuffled-classes")) is None
    assert find_published(experiment(scenario="cil", order="")) is None


@pytest.mark.parametrize(
    ("name", "published"),
    [("ranpac", "ACIL/RanPAC"), ("air-pooled", "AIR"), ("ds-al", "DS-AL"), ("dsal", "DS-AL"), ("icarl", "iCaRL"),
     ("coda-prompt", "CODA-Prompt"), ("air-shared", None), ("er", None), ("ncm", None)],
)  # fmt: skip
def test_names_of_methods(name, published):
    row = find_published(experiment()).beside(method(name))
    assert (row and row.name) == published


@pytest.mark.parametrize(("kept", "memory"), [(500, "500"), (2000, "2000"), (0, None)])
def test_replay_is_compared_with_as_much_memory(kept, memory):
    row = find_published(experiment(scenario="si-blurry", order="")).beside(method("er", kept))
    assert (row and row.memory) == memory


def test_titles_say_what_is_kept():
    titles = [row.title for row in find_published(experiment()).methods]
    assert titles[:3] == ["Fine-tuning", "iCaRL, 20 a class kept", "ACIL/RanPAC"]


def test_differences_of_the_set_up_are_named():
    options = {"phases": 10, "counts": "exp", "ratio": 1 / 500}
    found = find_published(experiment(options=options, buffer=1000, gamma="auto", batch_size=64))
    assert found.differences == (
        "counts exp here, exp_max there", "buffer 1000 here, 2048 there", "gamma auto here, 1000 there",
    )  # fmt: skip
    same = {"options": {**options, "counts": "exp_max"}, "buffer": 2048, "gamma": 1000, "batch_size": 64}
    assert find_published(experiment(**same)).differences == ()


def test_without_a_configuration_no_difference_is_claimed():
    assert find_published(experiment(methods=[method("air")])).differences == ()


def test_results_need_no_jobs():
    assert find_published(experiment()).beside(MethodResults("er", 0, ())) is None
