"""What prediction needs and nothing else: weights, labels and how features are made; as safetensors or ONNX.

An export holds no statistics. It cannot learn, merge or forget, and of single samples it tells what the weights tell.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np
from sklearn.frozen import FrozenEstimator

from aircl.classifiers import file, onnx_file
from aircl.classifiers.dsal import DSALClassifier
from aircl.classifiers.file import FORMAT, Below, FileError
from aircl.classifiers.fingerprint import expansion_hash
from aircl.classifiers.header import MAX_WIDTH, Backbone, Columns, Expansion, Labels, check_label_header
from aircl.classifiers.ncm import CosineSolution, cosines
from aircl.classifiers.persistence import (
    EXPANSIONS,
    pack_expansion,
    pack_inputs,
    pack_labels,
    plain,
    unpack_backbone,
    unpack_expansion,
    unpack_inputs,
    unpack_labels,
)
from aircl.classifiers.snapshot import Snapshot
from aircl.classifiers.stream import StreamClassifier
from aircl.engine.backend import NUMPY, Array, backend_of
from aircl.engine.learner import Solved
from aircl.engine.solve import LinearSolution
from aircl.expansion import RandomReLU
from aircl.storage.errors import InputError
from aircl.storage.records import check, parse_json


class ExportHeader(TypedDict):
    """Everything but the arrays."""

    format: int
    export: str
    labels: Labels
    n_features_in: int
    feature_names_in: list[str] | None
    dtype: str
    expansion: Expansion | None
    expansion_hash: str | None
    backbone: Backbone | None
    raw: str | dict[str, Any] | None
    columns: Columns | None
    temperature: float | None
    form: NotRequired[Form]


# How scores are made: by weights of the features, of the same at length 1 (NCM), or of ReLU and tanh features (DS-AL).
Form = Literal["linear", "cosine", "two-streams"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ExportedSolution(LinearSolution):
    """Weights and intercepts, and the temperature of the softmax where there are probabilities."""

    given_temperature: float | None = None
    is_cosine: bool = False

    def scorer(self, order: Array) -> Callable[[Array], Array]:
        """Return the function from features to scores."""
        return cosines(self.W[:, order]) if self.is_cosine else super().scorer(order)

    @property
    def temperature(self) -> float:
        """What scores are divided by before the softmax."""
        if self.given_temperature is None:
            raise ValueError("this classifier has scores but no probabilities: use decision_function or predict.")
        return self.given_temperature


def is_onnx(path: Path) -> bool:
    """Tell by its name whether a file is one of ONNX."""
    return path.suffix.lower() == ".onnx"


def is_export(path: Path) -> bool:
    """Tell whether a file is an export, by its name or its header; what it is otherwise is for others to say."""
    return is_onnx(path) or (path.is_file() and "export" in file.read_header(path))


def export(classifier: StreamClassifier, path: Path) -> None:
    """Write what prediction needs: ONNX if the name ends in .onnx, else safetensors."""
    header, arrays = _pack(classifier, classifier._current()._solved)
    text = json.dumps(header, sort_keys=True, default=plain)
    if is_onnx(path):
        components = onnx_file.layer_constants(classifier._learner.state.inputs.expansion_)
        onnx_file.write(path, text, arrays | components, header["temperature"], header["form"])
    else:
        file.write(path, text, arrays)


def _form(classifier: StreamClassifier, solution: Any) -> Form:
    if isinstance(solution, CosineSolution):
        return "cosine"
    if isinstance(classifier, DSALClassifier):
        return "two-streams"
    if not isinstance(solution, LinearSolution) or type(classifier)._features is not StreamClassifier._features:
        raise ValueError(
            f"{type(classifier).__name__} cannot be exported: its scores are not linear in the features, and what it "
            "predicts with are the scatters of the classes, the statistics themselves. Save it instead."
        )
    return "linear"


def _pack(classifier: StreamClassifier, solved: Solved) -> tuple[dict[str, Any], dict[str, Array]]:
    solution, inputs, labels = solved.solution, solved.inputs, solved.labels
    form = _form(classifier, solution)
    numpy = backend_of(solution.W).to_numpy
    arrays = {"weights": np.ascontiguousarray(numpy(solution.W)[:, labels.order])}
    if getattr(solution, "b", None) is not None:
        arrays["intercept"] = np.ascontiguousarray(numpy(solution.b)[labels.order])
    fitted = inputs.expansion_.estimator if isinstance(inputs.expansion_, FrozenEstimator) else inputs.expansion_
    expansion = pack_expansion(None, fitted)
    if hasattr(fitted, "_state_arrays") and not _same(_redrawn(expansion, inputs.n_features_in_, solved.dtype), fitted):
        arrays |= {f"expansion.{name}": array for name, array in fitted._state_arrays().items()}
    raw, temperature = getattr(inputs.embedder_, "backbone", None), getattr(solution, "temperature", None)
    header = pack_inputs(inputs) | {
        "format": FORMAT,
        "export": type(classifier).__name__,
        "labels": pack_labels(labels.taken(labels.order).declaring(labels.declared)),
        "dtype": str(solved.dtype),
        "expansion": expansion,
        "expansion_hash": expansion_hash(fitted),
        "raw": raw if isinstance(raw, str | None) else {"object": type(raw).__name__},
        "temperature": None if temperature is None else float(temperature),
        "form": form,
    }
    return header, arrays


def _redrawn(expansion: Mapping[str, Any] | None, width: int, dtype: Any) -> Any:
    """Return a random buffer that was drawn again from its seed; None if it has none."""
    if expansion is None or expansion["kind"] != "RandomReLU" or expansion["parameters"]["random_state"] is None:
        return None
    return EXPANSIONS["RandomReLU"](**expansion["parameters"]).fit(np.zeros((1, width), dtype))


def _same(redrawn: Any, fitted: Any) -> bool:
    return redrawn is not None and expansion_hash(redrawn) == expansion_hash(fitted)


def load_export(path: str | Path, *, expansion: Any = None, backbone: Any = None) -> Snapshot:
    """Read what `export` wrote: a predictor that cannot learn.

    Parameters
    ----------
    path : str or path
    expansion : fitted transformer, default=None
        Needed if the classifier had a transformer that is not aircl's own.
    backbone : Backbone, default=None
        Needed if the classifier had a backbone that is an object. One that has a name is made again.

    Returns
    -------
    predictor : Snapshot
        With `classes_`, `predict`, `decision_function` and `predict_proba`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_digits
    >>> from aircl import AIRClassifier, RandomReLU, load_export
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = AIRClassifier(expansion=RandomReLU(500, random_state=0)).fit(X[:900] / 16, y[:900])
    >>> with TemporaryDirectory() as folder:
    ...     clf.save(Path(folder, "model"))
    ...     clf.export(Path(folder, "export"))
    ...     model, export = (Path(folder, name).stat().st_size for name in ("model", "export"))
    ...     predictor = load_export(Path(folder, "export"))
    >>> model > 50 * export, bool((predictor.predict(X) == clf.predict(X)).all())
    (True, True)
    """
    predictor = read_export(Path(path), expansion, backbone)
    embedder = predictor._solved.inputs.embedder_
    if embedder is not None:
        embedder.make()  # what is missing is noticed now
    return predictor


def read_export(path: Path, expansion: Any = None, backbone: Any = None) -> Snapshot:
    """Read an export, and leave it for later to make its backbone."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a file.")
    if is_onnx(path):
        text, arrays = onnx_file.read(path)
        return _unpacked(path, text, arrays, expansion, backbone)
    with file.read(path) as (header, stored):
        if "class" in header:
            raise FileError(f"{path} is a model with its statistics, no export: load it with {header['class']}.load.")
        return _unpacked(path, header, stored, expansion, backbone)


def _unpacked(path: Path, header: Any, arrays: Mapping[str, Array], given: Any, backbone: Any) -> Snapshot:
    try:
        header = parse_json(header, "the header") if isinstance(header, str) else header
        check(header, ExportHeader, "the header")
        return _unpack(header, arrays, given, backbone)
    except FileError:
        raise
    except (InputError, LookupError, TypeError, AttributeError, ValueError) as error:
        raise FileError(f"{path} is no export, or its header does not fit its arrays ({error}).") from error


def _unpack(header: dict[str, Any], arrays: Mapping[str, Array], given: Any, backbone: Any) -> Snapshot:
    check_label_header(header["labels"])
    labels, width, dtype = unpack_labels(header["labels"]), header["n_features_in"], np.dtype(header["dtype"])
    if not 1 <= width <= MAX_WIDTH or dtype not in (np.float32, np.float64):
        raise ValueError(f"rows of {width} features of type {dtype}")
    packed = header["expansion"]
    fitted_arrays = dict(Below("expansion.", arrays))
    if packed is not None and packed["kind"] in EXPANSIONS and not fitted_arrays:
        if packed["parameters"].get("n_components", 0) > MAX_WIDTH:
            raise ValueError(f"an expansion to {packed['parameters']['n_components']} features")
        fitted = _redrawn(packed, width, dtype)
        if fitted is None or expansion_hash(fitted) != header["expansion_hash"]:
            raise ValueError("the expansion does not follow from its seed")
    else:
        fitted = unpack_expansion(packed, fitted_arrays, given)[1]
    W, b = arrays["weights"], arrays.get("intercept")
    if W.ndim != 2 or W.shape[1] != len(labels) or (b is not None and b.shape != (len(labels),)):
        raise ValueError(f"weights of shape {W.shape} for {len(labels)} classes")
    if fitted is None and W.shape[0] != width:
        raise ValueError(f"weights of shape {W.shape} for {width} features")
    temperature = header["temperature"]
    if temperature is not None and not temperature > 0:
        raise ValueError(f"a temperature of {temperature}")
    form = header.get("form", "linear")
    if form == "two-streams" and not isinstance(fitted, RandomReLU):
        raise ValueError("two streams without a projection")
    solution = ExportedSolution(W=W, b=b, given_temperature=temperature, is_cosine=form == "cosine")
    inputs = unpack_inputs(header["export"], header, fitted, NUMPY, unpack_backbone(header["raw"], backbone))
    solved = Solved(0, None, labels, inputs, float("nan"), len(W), dtype, solution)  # type: ignore[arg-type]
    return Snapshot(object.__new__(DSALClassifier if form == "two-streams" else StreamClassifier), solved)
