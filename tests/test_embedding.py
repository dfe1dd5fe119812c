"""Any backbone as a transformer of scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from aircl import AIRClassifier, Embedding
from aircl.backbones import BackboneError, FeatureCache, create_backbone

TEXTS = ["where is my card", "my card did not come", "what is the exchange rate", "which rate do you use"]


@parametrize_with_checks([Embedding("identity")])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


class Brightness:
    """A backbone of one's own, which counts what it is given."""

    name, fingerprint = "brightness", "brightness 1"
    kinds, width, batch_size = ("images",), 2, 2

    def __init__(self):
        self.seen = 0

    def prepare(self, inputs):
        return [np.asarray(image, np.float32) for image in inputs]

    def forward(self, prepared):
        self.seen += len(prepared)
        return np.array([[image.mean(), image.shape[0]] for image in prepared], np.float32)


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (size, size, 3), dtype=np.uint8) for size in (4, 6, 4, 5, 4)]


@pytest.mark.parametrize(
    "container",
    [
        list,
        tuple,
        np.array,
        lambda texts: np.array(texts, dtype=object),
        lambda texts: np.array(texts)[:, None],
        lambda texts: pd.Series(texts, index=[7, 5, 3, 1]),
        lambda texts: pd.DataFrame({"text": texts}),
        lambda texts: pl.Series(texts),
        lambda texts: pl.DataFrame({"text": texts}),
    ],
    ids=["list", "tuple", "array", "objects", "column", "Series", "DataFrame", "polars Series", "polars DataFrame"],
)
def test_texts_come_in_every_container(container):
    backbone = create_backbone("char-ngrams")
    features = Embedding("char-ngrams").fit_transform(container(TEXTS))
    np.testing.assert_array_equal(features, backbone.forward(backbone.prepare(TEXTS)))


def test_a_column_of_a_frame_is_one_part_of_a_pipeline():
    frame = pd.DataFrame({"text": TEXTS, "amount": [1.0, 2.0, 3.0, 4.0]})
    columns = make_column_transformer((Embedding("char-ngrams"), ["text"]), ("passthrough", ["amount"]))
    model = make_pipeline(columns, AIRClassifier()).fit(frame, [0, 0, 1, 1])
    assert model.predict(frame).tolist() == [0, 0, 1, 1]
    assert model[0].transform(frame).shape == (4, 1025)


def test_images_come_as_paths_pictures_and_arrays(images, tmp_path):
    embedding = Embedding(Brightness(), cache=tmp_path / "cache")
    expected = [[image.mean(), len(image)] for image in images]
    paths = [tmp_path / f"{i}.png" for i in range(len(images))]
    pictures = [Image.fromarray(image) for image in images]
    for picture, path in zip(pictures, paths, strict=True):
        picture.save(path)
    mixed = [images[0], pictures[1], paths[2], str(paths[3]), images[4]]
    for given in (images, pictures, paths, [str(path) for path in paths], mixed):
        np.testing.assert_allclose(embedding.fit(given).transform(given), expected, rtol=1e-6)
    same_size = np.stack([images[0], images[2], images[4]])
    np.testing.assert_allclose(embedding.transform(same_size), np.array(expected)[[0, 2, 4]], rtol=1e-6)


def test_features_of_images_are_computed_once(images, tmp_path):
    backbone = Brightness()
    embedding = Embedding(backbone, cache=tmp_path).fit(images)
    first = embedding.transform(images)
    np.testing.assert_array_equal(embedding.transform([Image.fromarray(image) for image in images]), first)
    assert backbone.seen == 5
    assert [entry.complete for entry in FeatureCache(tmp_path).entries()] == [True]
    changed = [*images[:-1], images[-1] ^ 1]
    assert (embedding.transform(changed) != first).any()
    assert backbone.seen == 10
    first[:] = 0  # what is kept is a copy
    assert embedding.transform(images).any()


def test_the_cache_can_be_left_out(images, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path))
    backbone = Brightness()
    embedding = Embedding(backbone, cache=False).fit(images)
    np.testing.assert_array_equal(embedding.transform(images), embedding.transform(images))
    assert backbone.seen == 10
    Embedding("char-ngrams").fit_transform(TEXTS)
    assert list(tmp_path.iterdir()) == []


def test_a_pickle_has_no_weights_and_makes_the_backbone_again():
    fitted = Embedding("char-ngrams,n_features=64").fit(TEXTS)
    again = pickle.loads(pickle.dumps(fitted))
    assert not hasattr(again, "backbone_")
    np.testing.assert_array_equal(again.transform(TEXTS), fitted.transform(TEXTS))
    other = pickle.loads(pickle.dumps(fitted))
    other.backbone = "char-ngrams,n_features=32"
    with pytest.raises(BackboneError, match=r"'char-ngrams,n_features=32' is another backbone here"):
        other.transform(TEXTS)


def test_names_and_clones():
    fitted = clone(Embedding("char-ngrams,n_features=8")).set_output(transform="pandas").fit(TEXTS)
    assert list(fitted.transform(TEXTS).columns) == [f"embedding{i}" for i in range(8)]


@pytest.mark.parametrize(
    ("backbone", "given", "message"),
    [
        ("char-ngrams", np.eye(3), r"char-ngrams takes texts, got an array of numbers of shape \(3, 3\)"),
        ("char-ngrams", np.zeros((2, 4, 4, 3), np.uint8), "char-ngrams takes texts, got a ndarray as the first of 2"),
        (Brightness(), np.eye(3), "brightness takes images, got an array of numbers"),
        (
            Brightness(),
            ["no-such-file.png"],
            "brightness takes images, but there is no file no-such-file.png. Texts are strings",
        ),
        ("char-ngram", TEXTS, "Did you mean 'char-ngrams'"),
        ("char-ngrams", ["a\ud800"], "is not Unicode: half of a character"),
        ("char-ngrams", [b"card"], "char-ngrams takes texts, got a list of bytes"),
        ("char-ngrams", [["card"]], "char-ngrams takes texts, got a list of list"),
        ("char-ngrams", (text for text in TEXTS), "got a generator: put samples in a list"),
        ("char-ngrams", set(TEXTS), "got a set: put samples in a list"),
        ("char-ngrams", [1, 2], "char-ngrams takes texts, got a list of int"),
        ("char-ngrams", pd.DataFrame({"a": TEXTS, "b": TEXTS}), "a frame of 2 columns, 'a', 'b': give one, or join"),
        ("identity", np.zeros((2, 4, 4, 3)), r"images are uint8 arrays .*got float64 .*\(255 \* x\)\.round"),
        ("identity", [np.zeros((4, 4), np.uint8)] * 2, r"got uint8 of shape \(1, 4, 4\).*grey ones by"),
        (Brightness(), [None, None], "brightness takes images, got a list of NoneType"),
        (len, TEXTS, "backbone=<built-in function len> is neither a name .*it lacks name, kinds"),
    ],
)
def test_what_a_backbone_does_not_take_is_refused(backbone, given, message):
    with pytest.raises(ValueError, match=message):
        Embedding(backbone).fit(given).transform(given)


def test_progress_is_shown_on_a_terminal_only(capsys):
    Embedding("char-ngrams", progress=True).fit_transform(TEXTS)
    assert capsys.readouterr().err == ""
