"""`aircl learn` by several processes, from functions and images, and with sample weights."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from PIL import Image

from aircl import AIRClassifier
from aircl.backbones import BackboneEntry
from aircl.raw.frozen import FrozenBackbone


def assert_same(path, reference):
    model = AIRClassifier.load(path)
    np.testing.assert_array_equal(model.classes_, reference.classes_)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-9, atol=1e-9)


@pytest.fixture
def parts(digits, tmp_path, monkeypatch):
    X, y, *_ = digits
    for i in range(5):
        np.savez(tmp_path / f"{i}.npz", X=X[i::5], y=y[i::5], w=1.0 + y[i::5] % 3)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("store", ["per-class", "shared", "pooled"])
def test_an_engine_learns_what_one_process_learns(store, parts, digits, run):
    options = ["--label", "y", "--gamma", 0.1, "--store", store, "--engine", "joblib", "--workers", 1]
    result = run("learn", "*.npz", *options, "--batch", 20, "-o", "m", "--json")
    assert_same("m", AIRClassifier(0.1, store=store).fit(*digits[:2]))
    assert json.loads(result.stdout)["rows"] == 310
    assert result.stderr.startswith("Learned 310 rows of 5 files in ")


def test_expanded_named_and_of_another_precision(parts, digits, run):
    X, y, *_ = digits
    names = [f"px{i}" for i in range(64)]
    for i in range(2):
        lines = [",".join([str(label), *map(str, row)]) for label, row in zip(y[i::2], X[i::2].tolist(), strict=True)]
        (parts / f"{i}.csv").write_text("\n".join([",".join(["y", *names]), *lines]))
    common = ["*.csv", "--label", "y", "--expand", 100, "--gamma", 0.1, "--dtype", "float32"]
    run("learn", *common, "-o", "one")
    run("learn", *common, "--engine", "joblib", "--workers", 1, "-o", "apart")
    one, apart = AIRClassifier.load("one"), AIRClassifier.load("apart")
    assert apart.coef_.dtype == np.float32
    assert apart.feature_names_in_.tolist() == names
    np.testing.assert_allclose(apart.coef_, one.coef_, atol=1e-4 * np.abs(one.coef_).max())


@pytest.mark.parametrize("store", ["per-class", "shared"])
def test_append_adds_files_that_are_new_and_refuses_others(store, parts, digits, run):
    engine = ["--engine", "joblib", "--workers", 1]
    begin = ["--label", "y", "--gamma", 0.1, "--store", store, "--expand", 30]
    run("learn", "0.npz", "1.npz", *begin, *engine, "-o", "a")
    run("learn", "[2-4].npz", "--label", "y", "--append", "a", *engine, "-o", "b")
    expansion = AIRClassifier.load("b").expansion_
    reference = AIRClassifier(0.1, store=store, expansion=None).fit(expansion.transform(digits[0]), digits[1])
    np.testing.assert_allclose(AIRClassifier.load("b").coef_, reference.coef_, rtol=1e-7, atol=1e-7)
    again = run("learn", "1.npz", "--label", "y", "--append", "b", *engine, "-o", "c", code=1)
    assert "1.npz is in the model already" in again.stderr
    run("learn", "[1-2].npz", *begin, *engine, "-o", "overlapping")
    assert "counted twice" in run("merge", "a", "overlapping", "-o", "c", code=1).stderr
    np.savez("1.npz", X=digits[0][:9], y=digits[1][:9])  # another file now
    run("learn", "1.npz", "--label", "y", "--append", "b", *engine, "-o", "c")
    assert AIRClassifier.load("c").class_count_.sum() == 319


def test_a_float64_model_goes_on_with_float32_files(parts, digits, run):
    X, y, *_ = digits
    np.savez("single.npz", X=X.astype(np.float32), y=y)
    engine = ["--engine", "joblib", "--workers", 1]
    run("learn", "0.npz", "--label", "y", "--gamma", 0.1, *engine, "-o", "a")
    run("learn", "single.npz", "--label", "y", "--append", "a", *engine, "-o", "b")
    assert AIRClassifier.load("b").coef_.dtype == np.float64
    assert_same("b", AIRClassifier(0.1).fit(X, y).partial_fit(X[::5], y[::5]))


def test_a_problem_names_the_file_and_the_rows(parts, digits, run):
    X, y, *_ = digits
    np.savez("9.npz", X=np.where(np.arange(len(X))[:, None] == 30, 1e200, X), y=y)
    result = run(
        "learn", "*.npz", "--label", "y", "--engine", "joblib", "--workers", 1, "--batch", 20, "-o", "m", code=1
    )
    assert "9.npz, rows 21 to 40: the largest feature" in result.stderr
    assert not (parts / "m").exists()


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--workers", 2], "--workers"),
        (["--parts", 2], "--parts"),
        (["--scheduler", "tcp://localhost:1"], "--scheduler"),
        (["--engine", "joblib", "--scheduler", "tcp://localhost:1"], "--scheduler"),
        (["--engine", "dask", "--scheduler", "tcp://localhost:1", "--workers", 2], "--workers"),
        (["--engine", "spark"], "--engine"),
        (["--backbone", "identity"], "--backbone"),
    ],
)
def test_wrong_usage(options, hint, parts, run):
    assert hint in run("learn", "0.npz", "--label", "y", *options, "-o", "m", code=2).stderr


@pytest.mark.slow
def test_two_workers_of_dask_write_the_file_of_one_process_of_joblib(parts, digits, run, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    (parts / "key").write_bytes(bytes(range(32)))
    learn = ("learn", "*.npz", "--label", "y", "--gamma", 0.1, "--ledger-key", "key", "--engine")
    run(*learn, "dask", "--workers", 2, "-o", "m")
    assert_same("m", AIRClassifier(0.1).fit(*digits[:2]))
    run(*learn, "joblib", "--workers", 1, "-o", "one")
    assert len(AIRClassifier.load("m")._learner.state.ledger) == 310
    assert (parts / "m").read_bytes() == (parts / "one").read_bytes()


# -- sample weights --
@pytest.mark.parametrize("options", [[], ["--engine", "joblib", "--workers", 1]])
def test_sample_weights(options, parts, digits, run):
    X, y, *_ = digits
    run("learn", "*.npz", "--label", "y", "--sample-weight", "w", "--gamma", 0.1, *options, "-o", "m")
    assert_same("m", AIRClassifier(0.1).fit(X, y, sample_weight=1.0 + y % 3))
    run("forget", "m", "4.npz", "--label", "y", "--sample-weight", "w", "-o", "less")
    keep = np.arange(len(y)) % 5 < 4
    reference = AIRClassifier(0.1).fit(X[keep], y[keep], sample_weight=1.0 + y[keep] % 3)
    np.testing.assert_allclose(AIRClassifier.load("less").coef_, reference.coef_, rtol=1e-6, atol=1e-6)


def test_sample_weights_of_tables(written_with_weights, run, tmp_path):
    path, X, y, weight = written_with_weights
    run("learn", path, "--label", "y", "--sample-weight", "w", "--gamma", 1, "--batch", 7, "-o", tmp_path / "m")
    assert_same(tmp_path / "m", AIRClassifier(1.0).fit(X, y, sample_weight=weight))
    missing = run("learn", path, "--label", "y", "--sample-weight", "v", "-o", tmp_path / "x", code=1)
    assert "'v'" in missing.stderr
    assert "--sample-weight" in missing.stderr


@pytest.fixture(params=["csv", "parquet", "npz"])
def written_with_weights(request, tmp_path):
    rng = np.random.default_rng(0)
    X, y, weight = rng.standard_normal((20, 3)), np.arange(20) % 3, rng.random(20)
    path = tmp_path / f"t.{request.param}"
    if request.param == "npz":
        np.savez(path, X=X, y=y, w=weight)
    elif request.param == "csv":
        rows = [",".join(map(str, [a, *x, b])) for a, x, b in zip(y, X.tolist(), weight.tolist(), strict=True)]
        path.write_text("\n".join(["y,a,b,c,w", *rows]))
    else:
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.table({"y": y, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "w": weight}), path)
    return path, X, y, weight


def test_a_negative_weight_is_refused(tmp_path, run):
    (tmp_path / "t.csv").write_text("y,a,w\n0,1,1\n1,2,-1\n")
    result = run("learn", tmp_path / "t.csv", "--label", "y", "--sample-weight", "w", "-o", tmp_path / "m", code=1)
    assert "row 2: the sample weight -1.0" in result.stderr


# -- Python functions --
MODULE = """
import numpy as np

def rows(seed, words):
    rng = np.random.default_rng(seed)
    for _ in range(3):
        y = rng.integers(0, 4, 50)
        X = rng.standard_normal((50, 6)) + y[:, None]
        yield (X, np.array(list("abcd"))[y]) if words else (X, y, np.ones(50))

def one():
    yield from rows(0, True)

class Part:
    def __init__(self, seed): self.seed = seed
    def __call__(self): return rows(self.seed, True)

def several():
    return [Part(seed) for seed in range(4)]

def empty():
    yield from ()

def wrong():
    yield np.zeros(3), np.zeros(3)

number = 7
"""


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    (tmp_path / "made_up_rows.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "made_up_rows", raising=False)
    import made_up_rows

    return made_up_rows


def reference(batches):
    classifier = AIRClassifier(0.1)
    for X, y in batches:
        classifier.partial_fit(X, y)
    return classifier


@pytest.mark.parametrize("engine", [[], ["--engine", "joblib", "--workers", 1]])
def test_rows_that_a_function_makes(engine, made_up, run):
    run("learn", "made_up_rows:one", "--gamma", 0.1, *engine, "--batch", 20, "-o", "one")
    assert_same("one", reference(made_up.one()))
    result = run("learn", "made_up_rows:several", "--gamma", 0.1, *engine, "-o", "several")
    assert_same("several", reference(batch for seed in range(4) for batch in made_up.rows(seed, True)))
    assert "600 rows of 4 files" in result.stderr


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("made_up_rows:none", "has no 'none'"),
        ("made_up_rows:number", "not a function"),
        ("made_up_rows:wrong", "yields arrays of the shapes (3,), (3,)"),
        ("made_up_rows:empty", "nothing to learn"),
        ("no_such_module:rows", "there is no module 'no_such_module'"),
    ],
)
def test_functions_that_make_no_rows(entry, message, made_up, run):
    assert message in run("learn", entry, "-o", "m", code=1).stderr


def test_a_function_as_wide_as_the_model(made_up, run, tmp_path):
    (tmp_path / "t.csv").write_text("y,a\nu,1\nv,2\n")
    run("learn", "t.csv", "--label", "y", "-o", "m")
    assert "has 6 features, but 1" in run("learn", "made_up_rows:one", "--append", "m", "-o", "n", code=1).stderr


# -- images --
@pytest.fixture
def photos(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))
    for label, name in enumerate(["cat", "dog", "owl"]):
        folder = tmp_path / "photos" / name
        folder.mkdir(parents=True)
        for i in range(4):
            pixels = rng.integers(0, 200, (8, 8, 3)) + 20 * label
            Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.png")
    return tmp_path / "photos"


@pytest.mark.parametrize("engine", [[], ["--engine", "joblib", "--workers", 1]])
def test_images_go_through_the_backbone(engine, photos, run, monkeypatch):
    from aircl.raw import folders

    monkeypatch.setattr(folders.image_shards, "__defaults__", (5,))
    run("learn", "photos", "--backbone", "identity", "--gamma", 0.1, *engine, "-o", "m")
    files = sorted(photos.glob("*/*.png"))
    X = np.array([np.asarray(Image.open(file)).reshape(-1) for file in files]).astype(np.float32) / np.float32(255)
    model = AIRClassifier.load("m")
    fitted = AIRClassifier(0.1).fit(X, [file.parent.name for file in files])
    np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-4, atol=1e-5)
    assert model.backbone_["name"] == "identity"
    assert "features   192 of identity" in run("info", "m").stdout
    np.savez("plain.npz", X=X, y=[file.parent.name for file in files])
    run("learn", "plain.npz", "--label", "y", "--gamma", 0.1, "-o", "plain")
    assert "backbone" in run("merge", "m", "plain", "-o", "x", code=1).stderr
    run("learn", "photos", "--backbone", "identity", "--append", "m", *engine, "-o", "n", code=1 if engine else 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "what"), [("joblib", ["made_up_rows:several"]), ("dask", ["photos", "--backbone", "identity"])]
)
def test_images_and_functions_travel_to_the_workers(engine, what, photos, made_up, run, monkeypatch):
    from aircl.raw import folders

    monkeypatch.setattr(folders.image_shards, "__defaults__", (5,))
    run("learn", *what, "--gamma", 0.1, "--engine", engine, "--workers", 2, "-o", "apart")
    run("learn", *what, "--gamma", 0.1, "-o", "here")
    apart, here = AIRClassifier.load("apart"), AIRClassifier.load("here")
    np.testing.assert_array_equal(apart.class_count_, here.class_count_)
    tolerance = 1e-9 if here.coef_.dtype == np.float64 else 1e-4
    np.testing.assert_allclose(apart.coef_, here.coef_, rtol=tolerance, atol=tolerance)


def test_images_of_another_backbone_are_refused(photos, run):
    run("learn", "photos", "--backbone", "identity", "-o", "m")
    model = AIRClassifier.load("m")
    model.backbone_ = {"name": "identity", "fingerprint": "0" * 64}
    model.save("other")
    assert (
        "same backbone"
        in run("learn", "photos", "--backbone", "identity", "--append", "other", "-o", "n", code=1).stderr
    )


def test_a_worker_with_other_weights_is_refused(photos, run, monkeypatch):
    from aircl.raw.folders import image_shards, open_folder

    files, labels = open_folder(photos, labelled=True)
    (source,) = image_shards(photos, files, labels, FrozenBackbone("identity", "0" * 64, 192, "images"))
    with pytest.raises(ValueError, match="not the same on this worker"):
        list(source.batches(10, "strings"))


def test_folders_need_a_backbone_and_images(photos, run, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(BackboneEntry, "missing", ["torch"])  # as if it were not installed
        assert "'efficientnet-lite0' needs torch" in run("learn", "photos", "-o", "m", code=1).stderr
    (photos.parent / "empty").mkdir()
    assert "has no images" in run("learn", "empty", "--backbone", "identity", "-o", "m", code=1).stderr
    assert "checkpoint:FILE" in run("learn", "photos", "--backbone", "base:resnet32", "-o", "m", code=1).stderr
    assert "does not take images" in run("learn", "photos", "--backbone", "char-ngrams", "-o", "m", code=1).stderr
