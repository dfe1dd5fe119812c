"""Every public object says what it is, what it takes and how it is used."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import aircl

MODULES = (
    "aircl",
    "aircl.backbones",
    "aircl.benchmark",
    "aircl.benchmark.contract",
    "aircl.classifiers",
    "aircl.data",
    "aircl.data.arrays",
    "aircl.distributed",
    "aircl.engine",
    "aircl.expansion",
    "aircl.methods",
    "aircl.report",
    "aircl.report.figures",
    "aircl.scenarios",
)


def public_objects():
    """Return the classes and functions by their names, each once; registries and type aliases are neither."""
    found = {}
    for module in map(import_module, MODULES):
        for name in module.__all__:
            entry = getattr(module, name)
            if inspect.isclass(entry) or inspect.isfunction(entry):
                found.setdefault(id(entry), (f"{module.__name__}.{name}", entry))
    return dict(found.values())


OBJECTS = public_objects()


def problems(entry):
    """Return what is missing in a docstring."""
    # A class has the docstring of its base class if it has none, and a dataclass has its signature.
    doc = inspect.cleandoc((vars(entry).get("__doc__") if inspect.isclass(entry) else entry.__doc__) or "")
    if not doc or doc.startswith(f"{entry.__name__}("):
        return ["a docstring"]
    missing = [] if re.search(r"^Examples\n-{8}\n(.*\n)*>>> ", doc, re.MULTILINE) else ["an example"]
    # `name : type`, `first, second : type` or `**options` at the beginning of a line.
    lines = re.findall(r"^(\*{0,2}\w+(?:, \w+)*)(?: : .*)?$", doc, re.MULTILINE)
    told = {name.lstrip("*") for line in lines for name in line.split(", ")}
    missing += [f"the parameter {name}" for name in parameters(entry) if name not in told]
    if inspect.isfunction(entry) and returns_something(entry) and not re.search(r"^Returns\n-{7}$", doc, re.MULTILINE):
        missing.append("what it returns")
    return missing


def parameters(entry):
    if getattr(entry, "_is_protocol", False) or (inspect.isclass(entry) and issubclass(entry, BaseException)):
        return []  # neither is made by a user
    if inspect.isclass(entry) and entry.__init__ is object.__init__:
        return []
    return [name for name in inspect.signature(entry).parameters if not name.startswith("_")]


def returns_something(entry):
    return inspect.signature(entry).return_annotation not in (None, "None", inspect.Signature.empty)


@pytest.mark.parametrize("name", OBJECTS)
def test_its_docstring_is_whole(name):
    assert problems(OBJECTS[name]) == []


def test_no_package_is_left_out():
    root = Path(aircl.__file__).parent
    have_names = [path.parent for path in root.rglob("__init__.py") if "__all__" in path.read_text(encoding="utf-8")]
    packages = {".".join(("aircl", *path.relative_to(root).parts)) for path in have_names}
    # The command line has pages of its own, and what trained methods are made of is for those who write one.
    assert packages - {"aircl.cli", "aircl.methods.gradient", "aircl.methods.prompt"} == set(MODULES)


def test_what_is_missing_is_found():
    def bare(x):
        return x

    def told(x, *args, **options) -> int:
        """Return x.

        Parameters
        ----------
        x, args : int
            Numbers, y among them.

        Examples
        --------
        An example in words.
        """

    class Base:
        """A base.

        Examples
        --------
        >>> Base()
        """

    class Derived(Base):
        def __init__(self, x):
            self.x = x

    assert problems(bare) == problems(Derived) == ["a docstring"]
    assert problems(told) == ["an example", "the parameter options", "what it returns"]
    assert problems(Base) == []


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("aircl", "AIRClassifier"),
        ("aircl.benchmark", "Runner"),
        ("aircl.methods.gradient", "Optimiser"),
        ("aircl.methods.prompt", "PromptPool"),
    ],
)
def test_a_broken_installation_is_not_taken_for_a_missing_name(package, name, monkeypatch):
    def fail(home):
        raise AttributeError("module 'scipy' has no attribute 'linalg'")

    module = import_module(package)
    monkeypatch.setitem(module.__getattr__.__globals__, "import_module", fail)
    with pytest.raises(ImportError, match=r"cannot be imported: module 'scipy' has no attribute 'linalg'"):
        getattr(module, name)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Nobody'"):
        module.Nobody  # noqa: B018
