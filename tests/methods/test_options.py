"""Options of gradient methods, and what goes without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from aircl.methods import METHODS, describe_method, list_methods, resolve_options

PAGE = (Path(__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
GRADIENT = [name for name in list_methods() if "unfreeze" in resolve_options(name, {}, online=False)]


def test_defaults_are_those_of_the_setting():
    phased, online = (resolve_options("fine-tuning", {}, online=online) for online in (False, True))
    assert (phased["optimiser"], phased["learning_rate"], phased["momentum"], phased["epochs"]) == (
        "sgd",
        1e-3,
        0.9,
        20,
    )
    assert (online["optimiser"], online["learning_rate"], online["updates"]) == ("adam", 5e-3, 3)
    assert (phased["compare"], online["compare"]) == ("phase", "exposed")
    unfrozen = resolve_options("fine-tuning", {"unfreeze": True}, online=False)
    assert (unfrozen["learning_rate"], unfrozen["compare"]) == (1e-2, "exposed")
    assert resolve_options("er", {}, online=True)["replay"] == 32
    assert resolve_options("er", {"memory": 500}, online=True)["memory"] == 500
    assert resolve_options("icarl", {}, online=False)["exemplars"] == 20
    assert resolve_options("ewc++", {}, online=False)["penalty"] == 100
    lwf = resolve_options("lwf", {}, online=False)
    assert (lwf["distillation"], lwf["temperature"]) == (0.2, 2)
    assert resolve_options("rm", {}, online=True)["views"] == 12


def test_a_memory_may_be_named_by_its_policy():
    named = resolve_options("er", {"memory": "cbrs"}, online=True)
    assert (named["memory"], named["policy"]) == (2000, "cbrs")
    assert named == resolve_options("er", {"policy": "cbrs"}, online=True)
    assert resolve_options("mvp-r", {"memory": "clib"}, online=True)["policy"] == "clib"
    assert resolve_options("prs", {"rho": -0.03}, online=True)["rho"] == -0.03


@pytest.mark.parametrize("name", GRADIENT)
def test_every_method_with_a_memory_has_its_policies_and_the_correction(name):
    options = resolve_options(name, {}, online=False)
    if "memory" in options:
        assert {"policy", "draw", "replay"} < set(options)
    if "memory" in options or "exemplars" in options:
        assert options["adjust"] in ("none", "las")
        if name not in ("bic", "cimbl"):  # they correct afterwards, and a prior is to be corrected once
            assert resolve_options(name, {"adjust": "las"}, online=False)["adjust"] == "las"
    if "memory" in options and name not in ("clib", "rm"):  # whose memories are what makes them
        for policy in ("reservoir", "cbrs", "prs", "clib", "gss"):
            assert resolve_options(name, {"memory": policy}, online=True)["policy"] == policy


@pytest.mark.parametrize(
    "name", ["PODNet", "FOSTER", "AANets", "DRC", "DELTA", "LST", "ActiveCIL", "OHO", "LSSE", "CLAD", "ISPC"]
)
def test_systems_that_are_not_here_say_why_and_are_on_the_page(name):
    with pytest.raises(ValueError, match=rf"'{name}' is not here: .*\. `aircl list methods`"):
        METHODS[name]
    assert f"**{name}**" in PAGE


@pytest.mark.parametrize("name", GRADIENT)
def test_resolved_options_resolve_to_themselves(name):
    for online in (False, True):
        options = resolve_options(name, {"unfreeze": True}, online=online)
        assert options["augment"] == ("rand" if name == "rm" else True)
        assert resolve_options(name, options, online=online) == options


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("er", {"memroy": 5}, r"er: there is no option 'memroy'. Did you mean 'memory'\? Allowed: epochs, .* replay\."),
        ("fine-tuning", {"memory": 5}, "fine-tuning: there is no option 'memory'"),
        ("er", {"memory": 2.5}, "memory=2.5 is not a whole number"),
        ("er", {"memory": True}, "memory=True is not a whole number"),
        ("er", {"memory": 0}, "memory=0 is not above 0"),
        ("er", {"learning_rate": "fast"}, "learning_rate='fast' is not a number"),
        ("er", {"learning_rate": float("nan")}, "learning_rate=nan is not above 0"),
        ("er", {"momentum": 1.0}, "momentum=1.0 is not below 1"),
        ("er", {"optimiser": "lbfgs"}, "optimiser='lbfgs' is not one of sgd, adam"),
        ("er", {"augment": "yes"}, "augment='yes' is not true or false or one of crop, rand or null"),
        ("ewc++", {"penalty": -1}, "penalty=-1 is not at least 0"),
        ("ewc++", {"keep": 2}, "keep=2 is not a share from 0 to 1"),
        (
            "er",
            {"memory": "cbr"},
            "memory='cbr' is not a whole number, nor the policy. Policies: reservoir, cb",
        ),
        ("er", {"memory": "cbrs", "policy": "prs"}, "memory='cbrs' is not a whole number, nor the policy"),
        ("rm", {"policy": "cbrs"}, "policy='cbrs' is not one of rainbow"),
        ("prs", {"rho": float("inf")}, "rho=inf is not finite"),
        ("las", {"tau": -1}, "tau=-1 is not at least 0"),
        ("rm", {"cutmix": True}, "cutmix=True mixes images, but features are trained on"),
        ("lwf", {"compare": "phase"}, "needs phases, which an online stream does not show"),
    ],
)
def test_what_is_wrong_is_refused_with_what_is_allowed(name, options, message):
    with pytest.raises(ValueError, match=message):
        resolve_options(name, options, online=True)


@pytest.mark.parametrize("name", GRADIENT)
def test_images_are_asked_for_only_where_features_do_not_do(name):
    method = METHODS[name]
    assert method.inputs_for({}) == "features"
    assert method.inputs_for({"unfreeze": True}) == "images"
    assert method.inputs_for({"augment": True}) == method.inputs_for({"augment": "crop"}) == "images"
    assert method.inputs_for({"unfreeze": True, "augment": False}) == "images"
    assert describe_method(name).kind == "features"
    assert "learning_rate" in describe_method(name).options


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_methods_are_listed_without_importing_torch():
    code = """
import sys
from aircl.methods import *
list_methods()
print(describe_method("rm").name, "torch" in sys.modules)
"""
    assert run_python(code) == "rm False"
    assert set(GRADIENT) <= set(list_methods())


def test_without_torch_a_method_says_what_to_install():
    code = """
import sys

class Hiding:
    def __init__(self, finder):
        self.finder = finder
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] == "torch" else self.finder.find_spec(name, path, target)

sys.meta_path[:] = map(Hiding, sys.meta_path)
from aircl.methods import *
assert "er" in list_methods() and resolve_options("er", {}, online=True)
try:
    create_method("er", Setup(seed=0, n_features=3))
except IncompatibleError as error:
    print(error)
"""
    assert run_python(code) == "it is trained with torch, which is not installed: pip install 'aircl[torch]'."
