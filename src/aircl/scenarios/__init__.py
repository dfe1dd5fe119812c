"""Streams: labels and a seed in, phases of training indices out; no data is touched."""

from aircl.scenarios.blurry_m import blurry_m
from aircl.scenarios.class_incremental import class_incremental
from aircl.scenarios.domain_incremental import domain_incremental
from aircl.scenarios.i_blurry import i_blurry
from aircl.scenarios.long_tail import long_tail
from aircl.scenarios.presets import PRESETS, Preset
from aircl.scenarios.scenario import SCENARIOS, ScenarioInfo, describe_scenario, list_scenarios, make_stream, scenario
from aircl.scenarios.si_blurry import si_blurry, si_blurry_paper
from aircl.scenarios.stream import Phase, Stream, make_phases
from aircl.scenarios.task_incremental import task_incremental

__all__ = [
    "PRESETS",
    "SCENARIOS",
    "Phase",
    "Preset",
    "ScenarioInfo",
    "Stream",
    "blurry_m",
    "class_incremental",
    "describe_scenario",
    "domain_incremental",
    "i_blurry",
    "list_scenarios",
    "long_tail",
    "make_phases",
    "make_stream",
    "scenario",
    "si_blurry",
    "si_blurry_paper",
    "task_incremental",
]
