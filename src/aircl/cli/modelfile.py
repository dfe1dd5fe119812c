"""Model files: of what class they are, what their features are called, and how they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from aircl.cli.console import say
from aircl.storage.locks import locked
from aircl.storage.writing import check_output, is_stdout

if TYPE_CHECKING:
    from aircl.classifiers.analytic import AnalyticClassifier
    from aircl.cli.sources import Opened
    from aircl.data.arrays import LabelKind


def load_model(path: Path) -> AnalyticClassifier:
    """Read a classifier of whatever class the file holds."""
    from aircl.classifiers.persistence import load_any

    model: AnalyticClassifier = load_any(path, make_backbone=False)  # not everything needs it
    return model


def load_fitted(path: Path) -> AnalyticClassifier:
    """Read a classifier that has learned something, or say that there is nothing to work with."""
    model = load_model(path)
    if not model.__sklearn_is_fitted__():
        raise ValueError(f"{path} has no classes: nothing was learned, or everything forgotten. Learn something first.")
    return model


def read_priors(text: str | None) -> Any:
    """Return priors as the classifiers take them: a word, or what a .json file says by label."""
    if text is None or text in ("equal", "count"):
        return text
    path = Path(text)
    if path.suffix.lower() != ".json":
        raise typer.BadParameter(f"{text!r} is neither equal, count nor a .json file.", param_hint="--priors")
    from aircl.storage.records import check, parse_json

    priors = parse_json(path.read_bytes(), str(path))
    check(priors, dict[str, float], str(path))
    return priors


def set_priors(model: AnalyticClassifier, text: str | None) -> None:
    """Give a model the priors that are asked for, if any; labels in a file are texts, those of the model its own."""
    priors = read_priors(text)
    if isinstance(priors, dict):
        own = {str(label): label for label in model.classes_.tolist()}
        priors = {own.get(label, label): value for label, value in priors.items()}
    if priors is not None:
        model.set_params(priors=priors)


def take_feature_names(model: AnalyticClassifier) -> tuple[str, ...] | None:
    """Return the model's feature names and take them off it.

    Columns are matched by name when a file is opened, so the model is fed bare arrays. `give_feature_names` puts the
    names back before it is written.
    """
    if not hasattr(model, "feature_names_in_"):
        return None
    names = tuple(map(str, model.feature_names_in_))
    change_inputs(model, lambda inputs: inputs.with_names(None))
    return names


def inputs_of(model: Any) -> Any:
    """Return what is known about the rows of a model or an export; None if it has seen none."""
    holder = model._learner.state if hasattr(model, "_learner") else getattr(model, "_solved", None)
    return getattr(holder, "inputs", None)


def change_inputs(model: Any, change: Callable[[Any], Any]) -> None:
    """Note something else about the rows of a model or an export, if it has seen some."""
    if hasattr(model, "_learner"):
        model._learner.change(lambda state: state.changed(new_gamma=False, inputs=change(state.inputs)))
    elif hasattr(model, "_solved"):  # an export, which nobody else has
        model._solved = replace(model._solved, inputs=change(model._solved.inputs))


def give_feature_names(model: AnalyticClassifier, names: Iterable[str] | None) -> None:
    """Set the feature names of a model that has learned something."""
    if names is not None and hasattr(model, "n_features_in_"):
        given = list(names)
        change_inputs(model, lambda inputs: inputs.with_names(given))


def take_backbone(model: AnalyticClassifier) -> None:
    """Take the backbone off a model: the sources make the features, and the model is fed those."""
    if model.backbone is not None:
        if hasattr(model, "set_params"):
            model.set_params(backbone=None)
        change_inputs(model, lambda inputs: inputs.with_(embedder_=None))


def give_backbone(model: AnalyticClassifier, opened: Opened) -> None:
    """Note what the features of a model were made with, and of which columns, so that it needs not be said again."""
    from aircl.hooks import embedding

    noted: dict[str, Any] = {"columns_": opened.columns or None}
    if opened.backbone is not None:
        model.set_params(backbone=opened.backbone.name)
        embedder = embedding(opened.backbone.name, opened.backbone.fingerprint)
        noted |= {"embedder_": embedder, "backbone_": opened.backbone.noted}
    change_inputs(model, lambda inputs: inputs.with_(**noted))


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


def check_model_output(output: Path, json: bool) -> None:
    """Refuse an output that cannot be written, before any work is done."""
    if is_stdout(output) and json:
        raise typer.BadParameter("the model goes to stdout already: --json would be in it.", param_hint="--json")
    check_output(output)


@contextmanager
def changing(output: Path, models: Sequence[Path], quiet: bool) -> Iterator[None]:
    """Lock a model from before it is read until it was written, if the output is a model that is read.

    Of two processes that add to one file, the second waits, and adds to what the first has written.
    """
    if is_stdout(output) or not output.exists() or not any(path.exists() and output.samefile(path) for path in models):
        yield
        return

    def waiting() -> None:
        if not quiet:
            say(f"Another process is changing {output}: waiting for it.")

    with locked(output, waiting=waiting):
        yield


def chosen_gamma(model: AnalyticClassifier) -> float | None:
    """Return the ridge that a fitted model solves with; None if it has none."""
    given = getattr(model, "gamma", None)
    chosen = model.gamma_ if given == "auto" else given
    return None if chosen is None else float(chosen)


def write_model(model: AnalyticClassifier, path: Path) -> None:
    """Write a model atomically, its gamma chosen, so that it is not chosen again when the file is loaded."""
    if model.__sklearn_is_fitted__() and getattr(model, "gamma", None) == "auto":
        model.refresh()
    model.save(path)
