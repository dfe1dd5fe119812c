"""From a classifier to a header and arrays, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from aircl.classifiers.file import FORMAT, Below, FileError, read, read_header, write
from aircl.classifiers.fingerprint import expansion_hash
from aircl.classifiers.inputs import Inputs
from aircl.classifiers.labels import check_labels
from aircl.engine import GammaMemory, GammaPath, Learner, Ridge, Space, State
from aircl.engine.backend import NUMPY, Array, NumpyBackend, torch_backend
from aircl.engine.labels import Labels
from aircl.engine.ledger import Ledger
from aircl.engine.memory import Stored, parse_bytes
from aircl.expansion import AutoBuffer, GaussianKernel, RandomReLU
from aircl.hooks import embedding

if TYPE_CHECKING:
    from aircl.classifiers.stream import StreamClassifier

    Classifier = TypeVar("Classifier", bound=StreamClassifier)

EXPANSIONS = {cls.__name__: cls for cls in (RandomReLU, GaussianKernel, AutoBuffer)}


def save(classifier: StreamClassifier, path: Path) -> None:
    """Write a classifier to one file; a reader sees the old file or the new one, never a part."""
    header, arrays = _pack(classifier)
    write(path, json.dumps(header, sort_keys=True, default=plain), arrays)


def load(
    cls: type[Classifier],
    path: Path,
    *,
    expansion: Any = None,
    weighting: Any = None,
    device: Any = None,
    backbone: Any = None,
    make_backbone: bool = True,
) -> Classifier:
    """Read a classifier of class `cls`, or say why the file cannot be read.

    Its backbone is made again at once, so that one that is missing is not noticed late; commands that do not need it
    leave it for later.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a file.")
    backend = NUMPY if device is None else torch_backend(device)
    with read(path) as (header, arrays):
        if "export" in header:
            raise FileError(f"{path} is an export, which holds no statistics: aircl.load_export reads it, to predict.")
        if (name := header.get("class")) != cls.__name__:
            raise FileError(f"{path} is of the class {name}: load it with {name}.load.")
        try:
            classifier = _unpack(cls, header, arrays, expansion, weighting, backend, backbone)
        except FileError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, AssertionError) as error:
            raise FileError(f"{path} has a header that does not fit its arrays ({error!r}).") from error
    if make_backbone and hasattr(classifier, "_learner"):
        embedder = classifier._learner.state.inputs.embedder_
        if embedder is not None:
            embedder.make()
    return classifier


def load_any(path: Path, *, make_backbone: bool = True) -> Any:
    """Read a classifier of whatever class the file holds."""
    from aircl import classifiers

    header = read_header(path)
    name = header.get("class")
    if "export" in header:
        raise FileError(
            f"{path} is an export: it holds no statistics and can only predict. Use the model that it was made of."
        )
    cls: Any = getattr(classifiers, name) if name in classifiers.__all__ else None
    if not hasattr(cls, "load"):
        raise FileError(f"{path} holds a {name!r}, which this aircl does not know. Install a newer aircl.")
    return load(cls, path, make_backbone=make_backbone)


def _pack(classifier: StreamClassifier) -> tuple[dict[str, Any], dict[str, Stored]]:
    parameters = classifier.get_params(deep=False)
    parameters.pop("expansion", None)
    for name in {"weighting", "priors"} & parameters.keys():
        parameters[name] = _pack_weighting(parameters[name])
    if not isinstance(parameters.get("random_state"), int | np.integer | None):
        parameters["random_state"] = None  # a generator's state is not a setting; what was drawn is saved
    if parameters.pop("ledger", False) is not False:
        parameters["ledger"] = True  # where a key is, is not for others to know
    if (backbone := parameters.pop("backbone", None)) is not None:
        parameters["backbone"] = backbone if isinstance(backbone, str) else {"object": type(backbone).__name__}
    learner = getattr(classifier, "_learner", None)
    fitted = None if learner is None else learner.state.inputs.expansion_
    header: dict[str, Any] = {
        "format": FORMAT,
        "class": type(classifier).__name__,
        "parameters": parameters,
        "expansion": pack_expansion(classifier._make_expansion(), fitted),
        "labels": pack_labels(classifier._known_labels()),
        "learned": None,
    }
    if learner is None:
        return header, {}
    state, memory = learner.sealed(), learner.memory  # one moment: what is learned now is not in it
    header["labels"] = pack_labels(state.labels)
    arrays: dict[str, Stored] = {f"statistics.{name}": array for name, array in state.statistics.arrays().items()}
    if fitted is not None and hasattr(fitted, "_state_arrays"):
        arrays |= {f"expansion.{name}": array for name, array in fitted._state_arrays().items()}
    gamma, gamma_rule = None, None
    if isinstance(memory, GammaMemory) and memory.epoch == state.epoch:
        path = {"grid": memory.path.gamma, "criterion": memory.path.criterion, "error": memory.path.error}
        arrays |= {f"gamma.{name}": array for name, array in path.items() if array is not None}
        gamma = [memory.gamma, memory.count, memory.n_classes]
        gamma_rule = {"weighting": _pack_weighting(memory.rule.weighting), "scale": memory.rule.scale}
    header["learned"] = pack_inputs(state.inputs) | {
        "n_features": state.statistics.space.n_features,
        "dtype": str(state.statistics.space.dtype),
        "lineage": sorted(state.lineage),
        "gamma": gamma,
        "gamma_rule": gamma_rule,
    }
    if state.inputs.history_ is not None:
        header["learned"]["history"] = state.inputs.history_
    if state.ledger is not None:
        header["learned"]["ledger"] = state.ledger.header()
        arrays |= {f"ledger.{name}": array for name, array in state.ledger.arrays().items()}
    if state.inputs.columns_ is None:
        del header["learned"]["columns"]
    return header, arrays


def _unpack(
    cls: type[Classifier],
    header: dict[str, Any],
    arrays: Mapping[str, Array],
    expansion: Any,
    weighting: Any,
    backend: NumpyBackend,
    backbone: Any = None,
) -> Classifier:
    # What a class has a parameter for by now, and what it did before.
    parameters = {**getattr(cls, "_in_older_files", {}), **header["parameters"]}
    if (limit := parameters.get("memory_limit")) is not None and not backend.spills:
        raise FileError(
            f"the file was saved with memory_limit={limit!r}, which {backend.name} cannot keep. Load it without "
            "device=, set memory_limit=None and save it again."
        )
    if "weighting" in parameters:
        parameters["weighting"] = _unpack_weighting(parameters["weighting"], weighting)
    if parameters.get("priors") is not None:
        parameters["priors"] = _unpack_weighting(parameters["priors"], None)
    fitted_arrays = {name: backend.asarray(array) for name, array in Below("expansion.", arrays).items()}
    unfitted, fitted = unpack_expansion(header["expansion"], fitted_arrays, expansion)
    if "expansion" in cls._get_param_names():
        is_default = isinstance(unfitted, AutoBuffer) and unfitted.random_state is None
        parameters["expansion"] = "auto" if is_default else unfitted
    packed = parameters.get("backbone")
    if backbone is not None and not isinstance(packed, dict):
        raise FileError(f"the file was saved with backbone={packed!r}; load(path, backbone=...) is for objects.")
    if packed is not None:
        parameters["backbone"] = unpack_backbone(packed, backbone)
    classifier = cls(**parameters)
    labels = unpack_labels(header["labels"])
    learned = header["learned"]
    if learned is None:
        if len(labels.classes):
            classifier._declared = labels
        return classifier
    space = Space(learned["n_features"], np.dtype(learned["dtype"]), backend, parse_bytes(limit))
    with backend.no_grad():
        statistics = classifier._store_type().restored(Below("statistics.", arrays), space)
        statistics = classifier._restored_statistics(statistics)
    if statistics.n_classes != len(labels):
        raise FileError(f"the file names {len(labels)} classes but has statistics of {statistics.n_classes}.")
    ledger = learned.get("ledger")
    state = State(
        statistics,
        labels=labels,
        inputs=unpack_inputs(cls.__name__, learned, fitted, backend, parameters.get("backbone")),
        lineage=frozenset(learned["lineage"]),
        ledger=None if ledger is None else Ledger.restored(ledger, Below("ledger.", arrays), len(labels)),
    )
    classifier._learner = Learner(state, _unpack_gamma(classifier._rule, learned, arrays, weighting))
    return classifier


def _unpack_gamma(
    make_rule: Any, learned: Mapping[str, Any], arrays: Mapping[str, Array], weighting: Any
) -> GammaMemory | None:
    """Return the gamma that was searched for last, with the rule it was searched for."""
    if learned["gamma"] is None:
        return None
    gamma, count, n_classes = learned["gamma"]
    path = GammaPath(arrays["gamma.grid"], arrays["gamma.criterion"], arrays.get("gamma.error"))
    if (rule := learned.get("gamma_rule")) is not None:
        searched = Ridge("auto", _unpack_weighting(rule["weighting"], weighting), rule["scale"])
    else:  # files from before it was noted: the parameters'
        searched = make_rule()
    return GammaMemory(searched, gamma, count, n_classes, 0, path)


def pack_inputs(inputs: Inputs) -> dict[str, Any]:
    """Return what rows were made of as JSON can hold it, without the expansion."""
    names = getattr(inputs, "feature_names_in_", None)
    return {
        "n_features_in": inputs.n_features_in_,
        "feature_names_in": None if names is None else names.tolist(),
        "backbone": inputs.backbone_,
        "columns": inputs.columns_,
    }


def unpack_inputs(name: str, packed: Mapping[str, Any], expansion: Any, backend: NumpyBackend, backbone: Any) -> Inputs:
    """Return what `pack_inputs` has packed, of a classifier of this name with this expansion and this backbone."""
    noted = {"n_features_in_": packed["n_features_in"], "expansion_": expansion, "backend_": backend}
    # Older files do not have all entries.
    noted |= {f"{entry}_": packed.get(entry) for entry in ("backbone", "columns", "history")}
    if backbone is not None:
        if noted["backbone_"] is None:
            raise FileError("the file has a backbone without a fingerprint.")
        noted["embedder_"] = embedding(backbone, noted["backbone_"]["fingerprint"])
    if packed["feature_names_in"] is not None:
        noted["feature_names_in_"] = np.array(packed["feature_names_in"], dtype=object)
    return Inputs.of(name, **noted)


def unpack_backbone(packed: Any, given: Any) -> Any:
    """Return the name of a backbone, or in place of an object, which no file can hold, the one that is given."""
    if isinstance(packed, dict) and given is None:
        raise FileError(
            f"the file was saved with a backbone of the class {packed.get('object')}, which no file can hold. Pass one "
            "with the same fingerprint: backbone=..."
        )
    return given if isinstance(packed, dict) else packed


def pack_labels(labels: Labels) -> dict[str, Any]:
    """Return labels as JSON can hold them."""
    array = labels.seen if len(labels) else labels.declared
    return {
        "seen": labels.seen.tolist(),
        "declared": labels.declared.tolist(),
        "type": "str" if array.dtype.kind == "U" else str(array.dtype),
    }


def unpack_labels(packed: dict[str, Any]) -> Labels:
    """Return the labels that `pack_labels` has packed."""
    seen, declared = (np.array(packed[name], dtype=packed["type"]) for name in ("seen", "declared"))
    if len(np.unique(seen)) != len(seen):
        raise FileError("the file names a class twice.")
    labels = Labels(check_labels(seen), order=np.argsort(seen, kind="stable")) if len(seen) else Labels()
    return labels.declaring(check_labels(declared)) if len(declared) else labels


def _pack_weighting(weighting: Any) -> Any:
    if isinstance(weighting, Mapping):
        return {"mapping": [[plain(label), float(weight)] for label, weight in weighting.items()]}
    return {"callable": getattr(weighting, "__name__", "callable")} if callable(weighting) else weighting


def _unpack_weighting(packed: Any, given: Any) -> Any:
    if given is not None:
        return given
    if not isinstance(packed, dict):
        return packed
    if "callable" in packed:
        raise FileError(
            f"the file was saved with a callable weighting ({packed['callable']}), which no file can hold. "
            "Pass it: load(path, weighting=...)."
        )
    return {label: weight for label, weight in packed["mapping"]}


def pack_expansion(expansion: Any, fitted: Any) -> dict[str, Any] | None:
    """Return an expansion, as a parameter or as fitted, as JSON can hold it."""
    if expansion is None and fitted is None:
        return None
    kind = type(fitted if expansion is None else expansion).__name__
    if kind not in EXPANSIONS:
        return {"kind": kind, "hash": expansion_hash(fitted)}
    parameters = (fitted if expansion is None else expansion).get_params(deep=False)
    if not isinstance(parameters["random_state"], int | np.integer | None):
        parameters["random_state"] = None
    return {"kind": kind, "parameters": parameters}


def unpack_expansion(packed: dict[str, Any] | None, arrays: dict[str, Array], given: Any) -> tuple[Any, Any]:
    """Return the expansion as a parameter and as fitted."""
    if packed is None:
        return None, None
    if packed["kind"] in EXPANSIONS:
        # A seed is a whole number, all else has a fraction.
        if wrong := [name for name, array in arrays.items() if name != "seed" and "float" not in str(array.dtype)]:
            raise FileError(f"the array expansion.{wrong[0]} is of type {arrays[wrong[0]].dtype}.")
        unfitted = EXPANSIONS[packed["kind"]](**packed["parameters"])
        return unfitted, clone(unfitted)._restore_arrays(arrays) if arrays else None
    if given is None or (packed["hash"] is not None and expansion_hash(given) != packed["hash"]):
        raise FileError(
            f"the file was saved with the expansion {packed['kind']}, which no file can hold. Pass the same fitted "
            "transformer: load(path, expansion=...)" + ("." if given is None else "; the one given is not the same.")
        )
    return FrozenEstimator(given), given


def plain(value: Any) -> Any:
    """Turn NumPy scalars into what JSON knows."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value
