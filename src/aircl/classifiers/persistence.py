"""From a classifier to a header and arrays, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from aircl.classifiers.file import FORMAT, FileError, Stored, read, write
from aircl.classifiers.fingerprint import expansion_hash
from aircl.classifiers.labels import Labels, check_labels
from aircl.engine import GammaMemory, GammaPath, Learner, Ridge
from aircl.engine.backend import NUMPY, Array, NumpyBackend, torch_backend
from aircl.engine.memory import parse_bytes
from aircl.expansion import GaussianKernel, RandomReLU

if TYPE_CHECKING:
    from aircl.classifiers.stream import StreamClassifier

    Classifier = TypeVar("Classifier", bound=StreamClassifier)

EXPANSIONS = {cls.__name__: cls for cls in (RandomReLU, GaussianKernel)}


def save(classifier: StreamClassifier, path: Path) -> None:
    """Write a classifier to one file; a reader sees the old file or the new one, never a part."""
    header, arrays = _pack(classifier)
    write(path, json.dumps(header, sort_keys=True, default=_plain), arrays)


def load(cls: type[Classifier], path: Path, *, expansion: Any, weighting: Any, device: Any) -> Classifier:
    """Read a classifier of class `cls`, or say why the file cannot be read."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a file.")
    backend = NUMPY if device is None else torch_backend(device)
    with read(path) as (header, arrays):
        if (name := header.get("class")) != cls.__name__:
            raise FileError(f"{path} is of the class {name}: load it with {name}.load.")
        try:
            return _unpack(cls, header, arrays, expansion, weighting, backend)
        except FileError:
            raise
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, AssertionError) as error:
            raise FileError(f"{path} has a header that does not fit its arrays ({error!r}).") from error


def _pack(classifier: StreamClassifier) -> tuple[dict[str, Any], dict[str, Stored]]:
    parameters = classifier.get_params(deep=False)
    parameters.pop("expansion", None)
    if "weighting" in parameters:
        parameters["weighting"] = _pack_weighting(parameters["weighting"])
    if not isinstance(parameters.get("random_state"), int | np.integer | None):
        parameters["random_state"] = None  # a generator's state is not a setting; what was drawn is saved
    fitted = getattr(classifier, "expansion_", None)
    header: dict[str, Any] = {
        "format": FORMAT,
        "class": type(classifier).__name__,
        "parameters": parameters,
        "expansion": _pack_expansion(classifier._make_expansion(), fitted),
        "labels": pack_labels(getattr(classifier, "_labels", Labels())),
        "learned": None,
    }
    if not hasattr(classifier, "_learner"):
        return header, {}
    learner = classifier._learner
    arrays: dict[str, Stored] = {f"statistics.{name}": array for name, array in learner.arrays().items()}
    if fitted is not None and hasattr(fitted, "_state_arrays"):
        arrays |= {f"expansion.{name}": array for name, array in fitted._state_arrays().items()}
    memory = learner.gamma_memory
    if memory is not None:
        arrays |= {"gamma.grid": memory.path.gamma, "gamma.criterion": memory.path.criterion}
    names = getattr(classifier, "feature_names_in_", None)
    header["learned"] = {
        "n_features_in": classifier.n_features_in_,
        "feature_names_in": None if names is None else names.tolist(),
        "n_features": learner.store.n_features,
        "dtype": str(learner.store.dtype),
        "backbone": getattr(classifier, "backbone_", None),
        "lineage": sorted(learner.lineage),
        "gamma": None if memory is None else [memory.gamma, memory.count, memory.n_classes],
    }
    return header, arrays


def _unpack(
    cls: type[Classifier],
    header: dict[str, Any],
    arrays: Mapping[str, Array],
    expansion: Any,
    weighting: Any,
    backend: NumpyBackend,
) -> Classifier:
    parameters = dict(header["parameters"])
    if (limit := parameters.get("memory_limit")) is not None and not backend.spills:
        raise FileError(
            f"the file was saved with memory_limit={limit!r}, which {backend.name} cannot keep. Load it without "
            "device=, set memory_limit=None and save it again."
        )
    if "weighting" in parameters:
        parameters["weighting"] = _unpack_weighting(parameters["weighting"], weighting)
    fitted_arrays = {name: backend.asarray(array) for name, array in _Below("expansion.", arrays).items()}
    unfitted, fitted = _unpack_expansion(header["expansion"], fitted_arrays, expansion)
    if "expansion" in cls._get_param_names():
        parameters["expansion"] = unfitted
    classifier = cls(**parameters)
    labels = unpack_labels(header["labels"])
    if len(labels.classes):
        classifier._labels, classifier.classes_ = labels, labels.classes
    learned = header["learned"]
    if learned is None:
        return classifier
    classifier._labels = labels
    classifier.expansion_ = fitted
    classifier.n_features_in_ = learned["n_features_in"]
    if learned["feature_names_in"] is not None:
        classifier.feature_names_in_ = np.array(learned["feature_names_in"], dtype=object)
    if learned.get("backbone") is not None:  # files from before it was noted have no such entry
        classifier.backbone_ = dict(learned["backbone"])
    with backend.computing():
        store = classifier._store_type().from_arrays(
            _Below("statistics.", arrays),
            learned["n_features"],
            np.dtype(learned["dtype"]),
            parse_bytes(limit),
            backend,
        )
    if store.n_classes != len(labels):
        raise FileError(f"the file names {len(labels)} classes but has statistics of {store.n_classes}.")
    classifier._learner = Learner(store, set(learned["lineage"]))
    if learned["gamma"] is not None:
        gamma, count, n_classes = learned["gamma"]
        path = GammaPath(arrays["gamma.grid"], arrays["gamma.criterion"])
        rule = classifier._rule()
        assert isinstance(rule, Ridge)
        classifier._learner.gamma_memory = GammaMemory(rule, gamma, count, n_classes, path)
    return classifier


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
    labels = Labels()
    if len(seen):
        labels.add(check_labels(seen))
    if len(declared):
        labels.declare(check_labels(declared))
    return labels


class _Below(Mapping[str, Array]):
    """The arrays whose names begin with a prefix, without it; each is read when it is asked for."""

    def __init__(self, prefix: str, arrays: Mapping[str, Array]) -> None:
        self._prefix, self._arrays = prefix, arrays

    def __getitem__(self, name: str) -> Array:
        return self._arrays[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        return (name.removeprefix(self._prefix) for name in self._arrays if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _pack_weighting(weighting: Any) -> Any:
    if isinstance(weighting, Mapping):
        return {"mapping": [[_plain(label), float(weight)] for label, weight in weighting.items()]}
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


def _pack_expansion(expansion: Any, fitted: Any) -> dict[str, Any] | None:
    if expansion is None and fitted is None:
        return None
    kind = type(fitted if expansion is None else expansion).__name__
    if kind not in EXPANSIONS:
        return {"kind": kind, "hash": expansion_hash(fitted)}
    parameters = (fitted if expansion is None else expansion).get_params(deep=False)
    if not isinstance(parameters["random_state"], int | np.integer | None):
        parameters["random_state"] = None
    return {"kind": kind, "parameters": parameters}


def _unpack_expansion(packed: dict[str, Any] | None, arrays: dict[str, Array], given: Any) -> tuple[Any, Any]:
    """Return the expansion as a parameter and as fitted."""
    if packed is None:
        return None, None
    if packed["kind"] in EXPANSIONS:
        unfitted = EXPANSIONS[packed["kind"]](**packed["parameters"])
        return unfitted, clone(unfitted)._restore_arrays(arrays) if arrays else None
    if given is None or (packed["hash"] is not None and expansion_hash(given) != packed["hash"]):
        raise FileError(
            f"the file was saved with the expansion {packed['kind']}, which no file can hold. Pass the same fitted "
            "transformer: load(path, expansion=...)" + ("." if given is None else "; the one given is not the same.")
        )
    return FrozenEstimator(given), given


def _plain(value: Any) -> Any:
    """Turn NumPy scalars into what JSON knows."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value
