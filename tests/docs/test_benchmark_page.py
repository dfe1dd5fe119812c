"""What the page about the benchmark says of configurations and presets holds."""

from __future__ import annotations

from aircl.benchmark.config import RunConfig, default_config, preset_config
from aircl.benchmark.runner import method_options
from aircl.methods import list_methods


def test_the_configuration_is_valid(blocks, workplace):
    (text,) = (text for language, text in blocks("benchmark.md") if language == "toml")
    (workplace / "mine.toml").write_text(text)
    config = RunConfig.from_toml(workplace / "mine.toml")
    assert config.name == "mine"
    assert all(method in list_methods() for method in config.experiments[0].methods)
    assert method_options(config.experiments[0], "er")["memory"] == 500


def test_the_presets_are_those_of_the_table():
    first, second = (preset_config(name, None, "identity").experiments[0] for name in ("table1", "table2"))
    assert (first.seeds, first.buffer, first.evaluate_every) == (tuple(range(1, 8)), 2048, None)
    assert (second.seeds, second.buffer, second.evaluate_every) == (tuple(range(1, 6)), 5000, 1000)
    assert second.options["faithful"]
    for experiment in (first, second):
        assert (experiment.batch_size, experiment.gamma) == (64, "auto")
        assert experiment.methods == ("air", "air-shared", "acil")
    digits, cities = default_config().experiments
    assert (digits.seeds, digits.buffer, digits.evaluate_every) == ((1, 2, 3), 500, 100)
    assert (cities.seeds, cities.buffer, cities.evaluate_every) == ((1,), None, None)


def test_the_callback_prints_what_is_shown(blocks, printed, workplace):
    page = blocks("benchmark.md")
    (code,) = (text for language, text in page if language == "python")
    (shown,) = (text for language, text in page if language == "text")
    assert printed(code, "benchmark.md") == shown
