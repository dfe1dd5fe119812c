"""Model files: of what class they are, what their features are called, and how they are written."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aircl.classifiers.analytic import AnalyticClassifier
    from aircl.data.arrays import LabelKind


def read_header(path: Path) -> dict[str, Any]:
    """Return the JSON header of a model file, without reading its arrays."""
    from safetensors import SafetensorError, safe_open

    from aircl.classifiers import FileError

    if not path.is_file():
        raise FileError(f"{path} is not a file." if path.exists() else f"{path} does not exist.")
    try:
        with safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("aircl")
    except SafetensorError as error:
        raise FileError(f"{path} is not a model: it is no safetensors file, or a damaged one ({error}).") from error
    if text is None:
        raise FileError(f"{path} is a safetensors file, but not a model that aircl wrote.")
    try:
        header = json.loads(text)
    except json.JSONDecodeError as error:
        raise FileError(f"{path} has a header that is not JSON ({error}).") from error
    if not isinstance(header, dict):
        raise FileError(f"{path} has a header that is not a JSON object.")
    return header


def load_model(path: Path) -> AnalyticClassifier:
    """Read a classifier of whatever class the file holds."""
    from aircl import classifiers

    name = read_header(path).get("class")
    cls: Any = getattr(classifiers, name) if name in classifiers.__all__ else None
    if not hasattr(cls, "load"):
        raise classifiers.FileError(f"{path} holds a {name!r}, which this aircl does not know. Install a newer aircl.")
    model: AnalyticClassifier = cls.load(path)
    return model


def load_fitted(path: Path) -> AnalyticClassifier:
    """Read a classifier that has learned something, or say that there is nothing to work with."""
    model = load_model(path)
    if not model.__sklearn_is_fitted__():
        raise ValueError(f"{path} has no classes: nothing was learned, or everything forgotten. Learn something first.")
    return model


def take_feature_names(model: AnalyticClassifier) -> tuple[str, ...] | None:
    """Return the model's feature names and take them off it.

    Columns are matched by name when a file is opened, so the model is fed bare arrays. `give_feature_names` puts the
    names back before it is written.
    """
    if not hasattr(model, "feature_names_in_"):
        return None
    names = tuple(map(str, model.feature_names_in_))
    model._learner.change(lambda state: state.with_inputs(state.inputs.with_names(None)))
    return names


def give_feature_names(model: AnalyticClassifier, names: Iterable[str] | None) -> None:
    """Set the feature names of a model that has learned something."""
    if names is not None and hasattr(model, "n_features_in_"):
        given = list(names)
        model._learner.change(lambda state: state.with_inputs(state.inputs.with_names(given)))


def label_kind(model: AnalyticClassifier) -> LabelKind | None:
    """Return what the model's labels are; None if it has none yet."""
    if not len(getattr(model, "classes_", ())):
        return None
    kinds: dict[str, LabelKind] = {"U": "strings", "b": "booleans"}
    return kinds.get(model.classes_.dtype.kind, "integers")


def row_count(model: AnalyticClassifier) -> int | float:
    """Return how many rows a model has learned, in sample weight."""
    return whole(float(model.class_count_.sum())) if model.__sklearn_is_fitted__() else 0


def whole(count: float) -> int | float:
    """Return a count as an integer where it is one: sums of sample weights need not be."""
    return int(count) if count.is_integer() else count


def check_output(path: Path, inputs: Iterable[Path] = ()) -> None:
    """Refuse an output that cannot be written, before any work is done; inputs are files that it must not replace."""
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: it is a directory, or its directory does not exist.")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"cannot write {path}: its directory is not writable.")
    if path.exists() and any(path.samefile(other) for other in inputs):
        raise ValueError(f"writing {path} would replace the data it is made from. Choose another --output.")


def write_model(model: AnalyticClassifier, path: Path) -> None:
    """Write a model atomically, its gamma chosen, so that whoever loads it need not choose again."""
    if model.__sklearn_is_fitted__() and model.gamma == "auto":
        model.refresh()
    model.save(path)
