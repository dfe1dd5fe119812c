"""A backbone inside a classifier: texts and images in every method, in the file, and never two kinds mixed."""

from __future__ import annotations

import pickle
import sys
import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import aircl
from aircl import ACILClassifier, AIRClassifier, FileError, RandomReLU, StoreError
from aircl.backbones import BackboneEntry, BackboneError, FeatureCache, create_backbone
from aircl.classifiers.stream import StreamClassifier

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

TEXTS = ["where is my card", "my card did not come", "what is the exchange rate", "which rate do you use"]
INTENTS = ["card", "card", "rate", "rate"]
NAME = "char-ngrams,n_features=32"
CLASSES = [
    cls for name in aircl.__all__ if isinstance(cls := getattr(aircl, name), type) and issubclass(cls, StreamClassifier)
]


class Length:
    """A backbone of one's own, of texts."""

    name, fingerprint = "length", "length 1"
    kinds, width, batch_size = ("texts",), 2, 2

    def prepare(self, inputs):
        return list(inputs)

    def forward(self, prepared):
        return np.array([[len(text), text.count("r")] for text in prepared], np.float32)


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRCL_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def features():
    backbone = create_backbone(NAME)
    return lambda texts: backbone.forward(backbone.prepare(texts))


def made(cls, **options):
    if "n_components" in cls._get_param_names():
        options["n_components"] = 16
    if "calibrate" in cls._get_param_names():
        options["calibrate"] = False  # of two samples per class, it turns on the last bits
    if "random_state" in cls._get_param_names():
        options["random_state"] = 0
    return cls(**options)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_classifier_is_that_of_the_features(cls, features, tmp_path):
    clf, plain = made(cls, backbone=NAME), made(cls)
    for start in (0, 2):
        part = slice(start, start + 2)
        clf.partial_fit(TEXTS[part], INTENTS[part])
        plain.partial_fit(features(TEXTS[part]), INTENTS[part])
    np.testing.assert_array_equal(clf.decision_function(TEXTS), plain.decision_function(features(TEXTS)))
    assert clf.predict(TEXTS).tolist() == plain.predict(features(TEXTS)).tolist()
    np.testing.assert_array_equal(clf.expand(TEXTS), plain.expand(features(TEXTS)))
    assert clf.score(TEXTS, INTENTS) == plain.score(features(TEXTS), INTENTS)
    assert clf.n_features_in_ == 32
    clf.save(tmp_path / "m")
    again = cls.load(tmp_path / "m")
    assert again.backbone == NAME
    assert again.backbone_ == clf.backbone_
    for predictor in (again, again.snapshot()):  # sealing may turn a last bit
        scores = predictor.decision_function(TEXTS)
        np.testing.assert_allclose(scores, clf.decision_function(TEXTS), rtol=1e-4, atol=1e-5)


def test_texts_may_come_in_any_container():
    clf = AIRClassifier(1.0, backbone=NAME, **PAPER).fit(TEXTS, INTENTS)
    expected = clf.predict_proba(TEXTS)
    frame = pd.DataFrame({"text": TEXTS, "n": range(4)})
    for X in (
        tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, object), frame["text"], frame[["text"]], pl.Series(TEXTS),
        pd.Series(TEXTS, dtype="string"),
    ):  # fmt: skip
        np.testing.assert_array_equal(clf.predict_proba(X), expected)
    assert clf.predict([]).shape == (0,)
    assert clf.partial_fit([], []).class_count_.tolist() == [2, 2]


def test_rows_are_forgotten_and_learned_by_their_texts(features):
    clf = AIRClassifier(1.0, backbone=NAME, **PAPER).fit(TEXTS, INTENTS)
    clf.forget(TEXTS[:1], INTENTS[:1])
    reference = AIRClassifier(1.0, **PAPER).fit(features(TEXTS[1:]), INTENTS[1:])
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-3, atol=1e-4)


def test_scikit_learn_copies_and_selects():
    clf = AIRClassifier(1.0, backbone=NAME, **PAPER)
    assert cross_val_score(clf, TEXTS * 3, INTENTS * 3, cv=2).shape == (2,)
    clf.fit(TEXTS, INTENTS)
    assert clone(clf).backbone == NAME
    for copy in (deepcopy(clf), pickle.loads(pickle.dumps(clf))):
        np.testing.assert_allclose(copy.decision_function(TEXTS), clf.decision_function(TEXTS), atol=1e-5)
    assert b"HashingVectorizer" not in pickle.dumps(clf)  # the backbone is made again


def test_a_backbone_that_is_an_object(tmp_path):
    clf = ACILClassifier(1.0, backbone=Length(), **PAPER).fit(TEXTS, INTENTS)
    assert clf.backbone_ == {"name": "length", "fingerprint": "length 1"}
    clf.save(tmp_path / "m")
    with pytest.raises(FileError, match=r"backbone of the class Length.*backbone="):
        ACILClassifier.load(tmp_path / "m")
    again = ACILClassifier.load(tmp_path / "m", backbone=Length())
    np.testing.assert_allclose(again.decision_function(TEXTS), clf.decision_function(TEXTS), atol=1e-5)
    other = Length()
    other.fingerprint = "length 2"
    with pytest.raises(BackboneError, match="'length' is another backbone here"):
        ACILClassifier.load(tmp_path / "m", backbone=other)
    AIRClassifier(1.0, backbone=NAME, **PAPER).fit(TEXTS, INTENTS).save(tmp_path / "n")
    with pytest.raises(FileError, match="is for objects"):
        AIRClassifier.load(tmp_path / "n", backbone=Length())


def test_images_go_through_the_cache(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 100, (6, 5, 5, 3), dtype=np.uint8)
    images[3:] += 150
    paths = [tmp_path / f"{i}.png" for i in range(6)]
    for image, path in zip(images, paths, strict=True):
        Image.fromarray(image).save(path)
    y = ["dark"] * 3 + ["light"] * 3
    clf = AIRClassifier(1.0, backbone="identity", **PAPER).fit(paths, y)
    assert [entry.about.rows for entry in FeatureCache().entries()] == [6]
    for X in (images, list(images), [Image.open(path) for path in paths], [str(path) for path in paths]):
        assert clf.predict(X).tolist() == y
    clf.save(tmp_path / "m")
    assert AIRClassifier.load(tmp_path / "m").predict(paths).tolist() == y
    with pytest.raises(ValueError, match=r"identity takes images, but there is no file nowhere\.png"):
        clf.predict(["nowhere.png"])


def test_another_backbone_is_not_merged_nor_loaded(tmp_path, monkeypatch):
    clf = AIRClassifier(1.0, backbone=NAME, **PAPER).fit(TEXTS, INTENTS)
    other = AIRClassifier(1.0, backbone="char-ngrams,n_features=32,ngram_range=(1, 2)", **PAPER).fit(TEXTS, INTENTS)
    with pytest.raises(StoreError, match=r"backbone: 'char-ngrams,n_features=32' against .*ngram_range"):
        clf.merge(other)
    with pytest.raises(StoreError, match=r"backbone=None here, 'char-ngrams,n_features=32' there"):
        AIRClassifier(1.0, **PAPER).merge(clf)
    assert AIRClassifier(1.0, backbone=NAME, **PAPER).merge(clf).predict(TEXTS).tolist() == INTENTS
    clf.backbone_ = {"name": NAME, "fingerprint": "0" * 64}
    clf.save(tmp_path / "m")
    with pytest.raises(BackboneError, match=r"is another backbone here \(.* than the one that was fitted \(0000"):
        AIRClassifier.load(tmp_path / "m")


def test_a_backbone_that_is_not_installed(tmp_path, monkeypatch):
    AIRClassifier(1.0, backbone=NAME, **PAPER).fit(TEXTS, INTENTS).save(tmp_path / "m")
    monkeypatch.setattr(BackboneEntry, "missing", ["wordy"])
    monkeypatch.setattr("aircl.embedding._IN_USE", {})
    with pytest.raises(BackboneError, match=r"needs wordy\. Install it: pip install wordy"):
        AIRClassifier.load(tmp_path / "m")
    with pytest.raises(BackboneError, match="needs wordy"):
        AIRClassifier(backbone=NAME, **PAPER).fit(TEXTS, INTENTS)


def test_a_backbone_cannot_change_once_something_is_learned():
    clf = AIRClassifier(1.0, backbone=NAME, **PAPER).fit(TEXTS, INTENTS)
    clf.set_params(backbone="char-ngrams")
    for call in (
        lambda: clf.predict(TEXTS),
        lambda: clf.partial_fit(TEXTS, INTENTS),
        lambda: clf.forget(TEXTS, INTENTS),
    ):
        with pytest.raises(ValueError, match="A backbone cannot change once something is learned"):
            call()
    assert clf.fit(TEXTS, INTENTS).n_features_in_ == 1024
    with pytest.raises(BackboneError, match="checkpoint:FILE"):
        AIRClassifier(backbone="base:resnet32", **PAPER).fit(TEXTS, INTENTS)


def test_the_classifiers_do_not_import_backbones():
    assert "aircl.backbones" not in {
        name for module in list(sys.modules.values()) if getattr(module, "__name__", "").startswith("aircl.classifiers")
        for name in [getattr(value, "__name__", "") for value in vars(module).values()]
    }  # fmt: skip


# -- what people do first --
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (TEXTS, r"X holds texts \('where is my card'\).*AIRClassifier\(backbone=\.\.\.\) with 'wordllama'"),
        (pd.Series(TEXTS), "X holds texts"),
        (TEXTS[0], r"X is one text \('where is my card'\). Put it in a list.*AIRClassifier\(backbone="),
        ([[[1.0, 2.0], [3.0, 4.0]]] * 4, r"X has the shape \(4, 2, 2\).*features of images.*'efficientnet-lite0'"),
        (pd.DataFrame({"n": range(4), "text": TEXTS}), r"column 'text' holds texts.*X\['text'\]"),
        (pd.DataFrame({"e": [[1.0, 2.0]] * 4}), r"column 'e' holds lists.*np\.stack\(X\['e'\]\)"),
        (pl.DataFrame({"e": [[1.0, 2.0]] * 4}), r"column 'e' holds lists"),
        (pd.Series([[1.0, 2.0]] * 4), r"X holds a list in every cell.*np\.stack\(X\)"),
        (np.zeros((4, 8, 8)), r"X has the shape \(4, 8, 8\).*'efficientnet-lite0', 'timm:NAME'"),
        (np.zeros((4, 8, 8, 3), np.uint8), "backbone=.*efficientnet-lite0"),
        ([Image.new("RGB", (2, 2))] * 4, r"X holds images \(Image\)"),
    ],
)
def test_raw_samples_without_a_backbone(X, message):
    with pytest.raises(ValueError, match=message):
        AIRClassifier(**PAPER).fit(X, INTENTS)
    clf = AIRClassifier(**PAPER).fit(np.eye(4), INTENTS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of names that were not there before
        with pytest.raises(ValueError, match=message):
            clf.predict(X)


@pytest.mark.parametrize("empty", ["", " \n"])
def test_a_text_of_nothing_is_neither_learned_nor_predicted(empty):
    clf = AIRClassifier(0.1, backbone=NAME).fit(TEXTS, INTENTS)
    message = r"1 of 3 texts hold nothing but spaces, the first at index 1\. Fill or drop such rows"
    for call in (clf.predict, clf.predict_proba, lambda X: clf.score(X, INTENTS[:3])):
        with pytest.raises(ValueError, match=message):
            call(["a card", empty, "a rate"])
    for call in (clf.partial_fit, clf.forget, AIRClassifier(backbone=NAME).fit):
        with pytest.raises(ValueError, match=message):
            call(["a card", empty, "a rate"], INTENTS[:3])
    assert clf.class_count_.tolist() == [2, 2]


def test_numbers_and_single_texts_with_a_backbone():
    clf = AIRClassifier(1.0, backbone=NAME, **PAPER).fit(TEXTS, INTENTS)
    with pytest.raises(ValueError, match="takes texts, got an array of numbers of shape"):
        clf.predict(np.zeros((2, 32)))
    with pytest.raises(ValueError, match=r"got one string, 'where is my card'\. Put it in a list"):
        clf.predict(TEXTS[0])
    with pytest.raises(ValueError, match="got a float as number 2 of 2 samples"):
        clf.predict(pd.Series(["a card", float("nan")]))


@pytest.mark.parametrize("label", ["a", 3])
def test_one_label_to_forget(label):
    clf = AIRClassifier(1.0, **PAPER).fit(np.eye(2), [label, type(label)("7")])
    with pytest.raises(ValueError, match=rf"forget\(classes=\[{label!r}\]\)"):
        clf.forget(classes=label)
    assert len(clf.forget(classes=[label]).classes_) == 1


def test_what_differs_between_expansions_is_said():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), np.arange(20) % 2

    def fitted(*args, **options):
        return AIRClassifier(1.0, expansion=RandomReLU(*args, **options), calibrate=False).fit(X, y)

    with pytest.raises(StoreError, match="expansion: random_state 0 against 1"):
        fitted(8, random_state=0).merge(fitted(8, random_state=1))
    with pytest.raises(StoreError, match="expansion: n_components 8 against 9"):
        fitted(8, random_state=0).merge(fitted(9, random_state=0))
    with pytest.raises(StoreError, match=r"drawn separately on each side\. Give both the same random_state"):
        fitted(8).merge(fitted(8))
    wider = AIRClassifier(1.0, expansion=RandomReLU(8), calibrate=False).fit(np.eye(20, 5), y)
    with pytest.raises(StoreError, match=r"\(number of features: 4 here, 5 there\)"):
        fitted(8).merge(wider)
    with pytest.raises(StoreError, match=r"expansion: RandomReLU\(n_components=8\) against None"):
        fitted(8).merge(AIRClassifier(1.0, **PAPER).fit(rng.normal(size=(20, 4)), y))
