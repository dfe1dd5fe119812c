"""Model files of version 0.1 load for ever, with the predictions they had when they were written."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import aircl

FOLDER = Path(__file__).parent / "models_0_1"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())


def test_every_file_is_checked():
    assert {path.stem for path in FOLDER.glob("*.safetensors")} == set(EXPECTED["models"])


@pytest.mark.parametrize("name", EXPECTED["models"])
def test_an_old_file_loads_and_predicts_as_it_did(name, tmp_path):
    expected = EXPECTED["models"][name]
    cls = getattr(aircl, expected["class"])
    loaded = cls.load(FOLDER / f"{name}.safetensors")
    loaded.save(tmp_path / "again.safetensors")
    for clf in (loaded, cls.load(tmp_path / "again.safetensors")):
        if "predict" not in expected:
            assert not clf.__sklearn_is_fitted__()
            continue
        query = np.array(EXPECTED["query"], dtype=expected["dtype"])
        if hasattr(clf, "feature_names_in_"):
            query = pd.DataFrame(query, columns=clf.feature_names_in_)
        scores = np.array([[-np.inf if v is None else v for v in row] for row in expected["scores"]])
        got = clf.decision_function(query)
        tolerance = 1e-9 if expected["dtype"] == "float64" else 1e-4
        np.testing.assert_allclose(got.reshape(len(got), -1), scores, rtol=tolerance, atol=tolerance)
        assert clf.predict(query).tolist() == expected["predict"]
        np.testing.assert_allclose(clf.class_count_, expected["count"], rtol=1e-12)
        assert clf.classes_.tolist() == expected["classes"]
        if "gamma" in expected:
            assert clf.gamma_ == pytest.approx(expected["gamma"], rel=1e-9)


@pytest.mark.parametrize("name", [name for name, entry in EXPECTED["models"].items() if "predict" in entry])
def test_an_old_file_goes_on_learning(name):
    expected = EXPECTED["models"][name]
    clf = getattr(aircl, expected["class"]).load(FOLDER / f"{name}.safetensors")
    query = np.repeat(np.array(EXPECTED["query"], dtype=expected["dtype"]), 6, axis=0)
    query += np.random.default_rng(0).normal(size=query.shape).astype(expected["dtype"])
    if hasattr(clf, "feature_names_in_"):
        query = pd.DataFrame(query, columns=clf.feature_names_in_)
    new = "new" if isinstance(expected["classes"][0], str) else True if len(expected["classes"]) == 2 else 7
    if name == "air-mapping":
        clf.set_params(weighting={**clf.weighting, new: 1.0})
    before = float(np.sum(expected["count"]))
    scores = clf.decision_function(query)
    clf.partial_fit(query, [new] * len(query))
    assert float(clf.class_count_.sum()) == pytest.approx(before + len(query))
    assert new in clf.classes_.tolist()
    assert not np.array_equal(clf.decision_function(query), scores)
