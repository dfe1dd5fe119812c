"""An export predicts as the model does, to the bit, and holds nothing else."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors import safe_open
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler

from aircl import (
    ACILClassifier,
    AEFOCLClassifier,
    AIRClassifier,
    DSALClassifier,
    FeCAMClassifier,
    FileError,
    GKEALClassifier,
    NCMClassifier,
    RandomReLU,
    RanPACClassifier,
    RecursiveACILClassifier,
    SLDAClassifier,
    load_export,
)
from aircl.expansion import GaussianKernel

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

X, Y = load_digits(return_X_y=True)
X, X_TEST, Y = X[:400] / 16, X[400:500] / 16, Y[:400]
NAMES = np.array([f"digit {k}" for k in range(10)])

CLASSIFIERS = {
    "defaults": AIRClassifier(),
    "air": AIRClassifier(0.5, **PAPER),
    "gamma auto": AIRClassifier(store="shared", **PAPER),
    "buffer": AIRClassifier(0.5, expansion=RandomReLU(80, random_state=3), calibrate=False),
    "seed of the classifier": AIRClassifier(0.5, expansion=RandomReLU(80), random_state=4, calibrate=False),
    "no seed": AIRClassifier(0.5, expansion=RandomReLU(80), calibrate=False),
    "frozen": AIRClassifier(0.5, expansion=FrozenEstimator(RandomReLU(80, random_state=1).fit(X)), calibrate=False),
    "calibrated": AIRClassifier(0.5, calibrate=True, expansion=RandomReLU(80, random_state=3)),
    "kernel": AIRClassifier(0.5, expansion=GaussianKernel(60, random_state=0), calibrate=False),
    "acil": ACILClassifier(0.5, **PAPER),
    "gkeal": GKEALClassifier(0.5, n_components=60, random_state=0),
    "recursive": RecursiveACILClassifier(0.5),
    "ranpac": RanPACClassifier(n_components=50, random_state=0),
    "aef-ocl": AEFOCLClassifier(0.5),
    "slda": SLDAClassifier(),
    "ncm": NCMClassifier(),
    "ncm, expanded": NCMClassifier(expansion=RandomReLU(80, random_state=3)),
    "ds-al": DSALClassifier(0.5, n_components=40, random_state=0),
}
every_classifier = pytest.mark.parametrize("name", CLASSIFIERS)


def fitted(name, dtype=np.float64, names=NAMES):
    return CLASSIFIERS[name].fit(X.astype(dtype), names[Y])


@every_classifier
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_it_predicts_as_the_model_does(name, dtype, tmp_path):
    clf = fitted(name, dtype)
    clf.export(tmp_path / "e")
    again = load_export(tmp_path / "e")
    rows = X_TEST.astype(dtype)
    np.testing.assert_array_equal(again.decision_function(rows), clf.decision_function(rows))
    assert again.predict(rows).tolist() == clf.predict(rows).tolist()
    assert again.classes_.tolist() == clf.classes_.tolist()
    if hasattr(clf, "predict_proba"):
        np.testing.assert_array_equal(again.predict_proba(rows), clf.predict_proba(rows))
    else:
        with pytest.raises(ValueError, match="no probabilities"):
            again.predict_proba(rows)


@every_classifier
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_onnx_runtime_scores_as_the_model_does(name, dtype, tmp_path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    clf = fitted(name, dtype)
    clf.export(tmp_path / "e.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "e.onnx", providers=["CPUExecutionProvider"])
    kind = {"tensor(double)": np.float64, "tensor(float)": np.float32}[session.get_inputs()[0].type]
    names = [output.name for output in session.get_outputs()]
    found = dict(zip(names, session.run(None, {"X": X_TEST.astype(dtype).astype(kind)}), strict=True))
    expected = clf.decision_function(X_TEST.astype(dtype))
    np.testing.assert_allclose(found["scores"], expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    labels = json.loads(session.get_modelmeta().custom_metadata_map["aircl"])["labels"]["seen"]
    assert np.array(labels)[found["label_index"]].tolist() == clf.predict(X_TEST.astype(dtype)).tolist()
    if hasattr(clf, "predict_proba"):
        np.testing.assert_allclose(found["probabilities"], clf.predict_proba(X_TEST.astype(dtype)), atol=1e-4)
    again = load_export(tmp_path / "e.onnx")
    np.testing.assert_allclose(again.decision_function(X_TEST.astype(dtype)), expected, rtol=1e-5, atol=1e-5)
    assert again.classes_.tolist() == clf.classes_.tolist()


def test_nothing_about_samples_is_in_it_but_the_weights(tmp_path):
    clf = AIRClassifier(0.5, expansion=RandomReLU(80, random_state=3), ledger=True, calibrate=False).fit(X, NAMES[Y])
    clf.export(tmp_path / "e")
    clf.save(tmp_path / "m")
    with safe_open(tmp_path / "e", "numpy") as file:
        header = json.loads(file.metadata()["aircl"])
        assert set(file.keys()) == {"weights"}  # the buffer follows from its seed
    for word in ("count", "lineage", "ledger", "gamma", "statistics"):
        assert word not in json.dumps(header)
    assert (tmp_path / "e").stat().st_size < (tmp_path / "m").stat().st_size / 10
    assert header["expansion"]["parameters"]["random_state"] == 3


def test_names_of_columns_and_declared_classes_travel(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=[f"px{k}" for k in range(64)])
    clf = AIRClassifier(0.5, **PAPER).partial_fit(table, Y, classes=[*range(10), 77])
    clf.export(tmp_path / "e")
    again = load_export(tmp_path / "e")
    assert again.predict(table).tolist() == clf.predict(table).tolist()
    assert again.classes_.tolist() == [*range(10), 77]
    np.testing.assert_array_equal(again.decision_function(table), clf.decision_function(table))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(table[table.columns[::-1]])


def test_a_transformer_of_others_has_to_be_given(tmp_path):
    clf = AIRClassifier(0.5, expansion=StandardScaler(), calibrate=False).fit(X, Y)
    clf.export(tmp_path / "e")
    with pytest.raises(FileError, match="StandardScaler"):
        load_export(tmp_path / "e")
    again = load_export(tmp_path / "e", expansion=clf.expansion_)
    assert again.predict(X_TEST).tolist() == clf.predict(X_TEST).tolist()


def test_what_predicts_with_its_statistics_is_not_exported(tmp_path):
    with pytest.raises(ValueError, match=r"FeCAMClassifier cannot be exported: .* the statistics themselves"):
        FeCAMClassifier().fit(X, Y).export(tmp_path / "e")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["e", "e.onnx"])
def test_a_row_of_zeros_has_no_direction_and_no_score(name, tmp_path):
    pytest.importorskip("onnx")
    fitted("ncm").export(tmp_path / name)
    assert not load_export(tmp_path / name).decision_function(np.zeros((1, 64))).any()
    if name == "e.onnx":
        onnxruntime = pytest.importorskip("onnxruntime")
        session = onnxruntime.InferenceSession(tmp_path / name, providers=["CPUExecutionProvider"])
        assert not session.run(["scores"], {"X": np.zeros((1, 64))})[0].any()


def test_a_transformer_of_others_has_no_graph(tmp_path):
    pytest.importorskip("onnx")
    clf = AIRClassifier(0.5, expansion=StandardScaler(), calibrate=False).fit(X, Y)
    with pytest.raises(ValueError, match="StandardScaler cannot be exported to ONNX"):
        clf.export(tmp_path / "e.onnx")


def test_a_model_is_no_export_and_an_export_no_model(tmp_path):
    clf = fitted("buffer")
    clf.save(tmp_path / "m")
    clf.export(tmp_path / "e")
    with pytest.raises(FileError, match=r"load it with AIRClassifier\.load"):
        load_export(tmp_path / "m")
    with pytest.raises(FileError, match="export"):
        AIRClassifier.load(tmp_path / "e")
    with pytest.raises(FileNotFoundError):
        load_export(tmp_path / "nothing")


def forge(path, change):
    """Write an export that was changed by hand, with the checksum that it should have."""
    from aircl.classifiers import file

    fitted("buffer").export(path)
    with file.read(path) as (header, arrays):
        header, arrays = dict(header), {name: arrays[name] for name in arrays}
    change(header, arrays)
    file.write(path, json.dumps(header), arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header.pop("labels"),
        lambda header, arrays: header.update(temperature="hot"),
        lambda header, arrays: header.update(temperature=0.0),
        lambda header, arrays: header.update(dtype="int64"),
        lambda header, arrays: header.update(n_features_in=10**9),
        lambda header, arrays: header.update(n_features_in=63),
        lambda header, arrays: header["expansion"]["parameters"].update(random_state=5),
        lambda header, arrays: header["expansion"]["parameters"].update(n_components=10**9),
        lambda header, arrays: header["labels"].update(seen=["a"]),
        lambda header, arrays: arrays.pop("weights"),
        lambda header, arrays: arrays.update(weights=arrays["weights"][:, :3].copy()),
        lambda header, arrays: arrays.update(intercept=np.zeros(3)),
    ],
)
def test_what_does_not_fit_is_refused(change, tmp_path):
    forge(tmp_path / "e", change)
    with pytest.raises(FileError):
        load_export(tmp_path / "e")


def test_damage_is_noticed(tmp_path):
    pytest.importorskip("onnx")
    for name in ("e", "e.onnx"):
        fitted("buffer").export(tmp_path / name)
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:900])
        with pytest.raises(FileError):
            load_export(tmp_path / name)


def test_a_graph_that_was_damaged_at_random_is_refused_or_read(tmp_path):
    pytest.importorskip("onnx")
    fitted("buffer").export(tmp_path / "e.onnx")
    good, rng, ends = (tmp_path / "e.onnx").read_bytes(), np.random.default_rng(0), set()
    for _ in range(150):
        damaged = bytearray(good)
        for place in (
            rng.integers(0, len(good), 3) if rng.random() < 0.5 else rng.integers(len(good) - 900, len(good), 3)
        ):
            damaged[place] = rng.integers(256)
        (tmp_path / "e.onnx").write_bytes(damaged)
        try:
            load_export(tmp_path / "e.onnx")
            ends.add("read")
        except FileError:
            ends.add("refused")
    assert ends == {"read", "refused"}
