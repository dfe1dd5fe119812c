"""What statistics were made of: only what fits is merged, and nothing is counted twice."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn.frozen import FrozenEstimator

from aircl.classifiers.duplicates import Naming, check_common, new_ledger
from aircl.engine import StoreError

if TYPE_CHECKING:
    from aircl.classifiers.stream import StreamClassifier


def expansion_hash(expansion: Any) -> str | None:
    """Return a hash of what a fitted expansion does to its input."""
    if expansion is None:
        return None
    if isinstance(expansion, FrozenEstimator):
        return expansion_hash(expansion.estimator)
    if not hasattr(expansion, "_state_arrays"):
        return str(joblib.hash(expansion))
    digest = hashlib.sha256(type(expansion).__name__.encode())
    parameters = {k: v for k, v in expansion.get_params().items() if k != "random_state"}
    digest.update(repr(sorted(parameters.items())).encode())
    for name, array in sorted(expansion._state_arrays().items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def fingerprint(classifier: StreamClassifier) -> dict[str, Any]:
    """Return everything that must be equal for two learners' statistics to be of the same kind."""
    state = classifier._learner.state
    space, inputs = state.statistics.space, state.inputs
    names = getattr(inputs, "feature_names_in_", None)
    return {
        "store": state.statistics.name,
        "arrays": space.backend.name,
        "dtype": str(space.dtype),
        "number of features": inputs.n_features_in_,
        "feature names": None if names is None else [str(name) for name in names],
        "expansion": expansion_hash(inputs.expansion_),
        "backbone": (inputs.backbone_ or {"fingerprint": None})["fingerprint"],
    }


def check_same_kind(mine: dict[str, Any], yours: dict[str, Any], told: dict[str, str] | None = None) -> None:
    """Raise unless two fingerprints are equal; `told` has words for differences that are only hashes here."""
    if different := [key for key in mine if mine[key] != yours[key]]:
        words = {key: f"{key}: {mine[key]!r} here, {yours[key]!r} there" for key in different} | (told or {})
        pairs = "; ".join(filter(None, (words[key] for key in different)))
        raise StoreError(
            f"cannot merge learners whose statistics are not of the same kind ({pairs}). Both need the same store, "
            "features, kind of arrays (load(path, device=...) changes it) and dtype, the same expansion with the same "
            "random_state, and the same backbone, if one is noted."
        )


def _differences(ours: StreamClassifier, theirs: StreamClassifier) -> dict[str, str]:
    """Say how two learners' expansions and backbones differ, if they do."""
    mine, yours = ours._learner.state.inputs, theirs._learner.state.inputs
    fits = [(one.n_features_in_, one._learner.state.statistics.space.dtype) for one in (ours, theirs)]
    return {
        "expansion": _expansion_difference(mine.expansion_, yours.expansion_, fits[0] == fits[1]),
        "backbone": f"backbone: {_backbone_difference(mine.backbone_, yours.backbone_)}",
    }


def _expansion_difference(mine: Any, yours: Any, same_features: bool) -> str:
    """Say how expansions differ; nothing if they do only because their features do, which is said already."""
    if type(mine) is not type(yours):
        return f"expansion: {mine!r} against {yours!r}"
    parameters = [{} if one is None else one.get_params(deep=False) for one in (mine, yours)]
    pairs = [(name, *(repr(one.get(name)) for one in parameters)) for name in parameters[0]]
    different = [f"{name} {one} against {other}" for name, one, other in pairs if one != other]
    if not different and not same_features:
        return ""
    return f"expansion: {', '.join(different) or 'drawn separately on each side. Give both the same random_state'}"


def _backbone_difference(mine: dict[str, str] | None, yours: dict[str, str] | None) -> str:
    names = [one and one["name"] for one in (mine, yours)]
    if mine is None or yours is None or names[0] != names[1]:
        return f"{names[0]!r} against {names[1]!r}"
    return f"{names[0]} of other weights ({mine['fingerprint'][:12]}.. against {yours['fingerprint'][:12]}..)"


def _same_settings(ours: Any, theirs: Any) -> bool:
    """Tell whether two expansions, as parameters, may have been the same. One that is frozen brings its own."""
    if any(isinstance(expansion, FrozenEstimator) for expansion in (ours, theirs)):
        return ours is not None and theirs is not None
    return type(ours) is type(theirs) and repr(ours) == repr(theirs)


def check_mergeable(ours: StreamClassifier, theirs: StreamClassifier) -> None:
    """Raise unless what `theirs` has learned can be added to `ours`."""
    store = ours._store_type().name
    if store == "pooled":
        mine, yours = (getattr(learner, "weighting", None) for learner in (ours, theirs))
        if mine != yours:
            raise StoreError(f"cannot merge folded phases of different weightings: {mine!r} here, {yours!r} there.")
    if not ours._has_learned():
        expansion, other = ours._make_expansion(), theirs._make_expansion()
        theirs_store = theirs._learner.state.statistics.name
        if store != theirs_store or not _same_settings(expansion, other):
            raise StoreError(
                f"cannot merge: store={store!r} and expansion={expansion!r} here, "
                f"{theirs_store!r} and {other!r} there. Make them equal."
            )
        names = [getattr(one, "backbone", None) for one in (ours, theirs)]
        if names[0] is not names[1] and not (isinstance(names[0], str) and names[0] == names[1]):
            raise StoreError(f"cannot merge: backbone={names[0]!r} here, {names[1]!r} there. Make them equal.")
        check_common(new_ledger(ours, Naming()), theirs._learner.state.ledger)
        return
    check_same_kind(fingerprint(ours), fingerprint(theirs), _differences(ours, theirs))
    if ours._learner.state.lineage & theirs._learner.state.lineage:
        raise StoreError(
            "cannot merge: samples of this learner are in the other one already (it is a copy, an earlier or a later "
            "state of something merged before), and would be counted twice."
        )
    check_common(ours._learner.state.ledger, theirs._learner.state.ledger)
