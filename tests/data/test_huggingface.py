"""With a stand-in for the package `datasets`: what `load_dataset` returns is imitated as its documentation has it."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

import numpy as np
import pytest
from PIL import Image as Pillow

from aircl.data import DataError, list_datasets, load_dataset


class Image:
    dtype = "PIL.Image.Image"


class ClassLabel:
    dtype = "int64"

    def __init__(self, names):
        self.names = names


class Value:
    def __init__(self, dtype):
        self.dtype = dtype


class Table:
    """As much of `datasets.Dataset` as is used."""

    def __init__(self, features, columns, fingerprint="abc"):
        self.features, self.columns, self._fingerprint = features, columns, fingerprint

    def __getitem__(self, key):
        if isinstance(key, str):
            return self.columns[key]
        return {name: [column[i] for i in key] for name, column in self.columns.items()}

    def select_columns(self, names):
        return Table(self.features, {name: self.columns[name] for name in names}, "other")


@pytest.fixture
def hub(monkeypatch):
    """Return the tables of the Hub, by name and configuration, behind a module called `datasets`."""
    tables = {}
    module = ModuleType("datasets")
    module.__spec__ = ModuleSpec("datasets", None, origin="here")
    module.load_dataset = lambda name, config=None: tables[name, config]
    monkeypatch.setitem(sys.modules, "datasets", module)
    return tables


def images(n, labels, fingerprint="abc"):
    pictures = [Pillow.new("L", (4 + i % 2, 3), i) for i in range(n)]
    features = {"img": Image(), "label": ClassLabel(["cat", "dog"]), "id": Value("int64")}
    return Table(features, {"img": pictures, "label": labels, "id": list(range(n))}, fingerprint)


def test_images(hub):
    hub["pets", None] = {"train": images(4, [1, 0, 1, 0]), "test": images(2, [0, 1], "def")}
    dataset = load_dataset("hf:pets")
    assert (dataset.name, dataset.kind, dataset.class_names) == ("hf:pets", "images", ("cat", "dog"))
    assert dataset.train.labels.tolist() == [1, 0, 1, 0]
    same = dataset.train.inputs[np.array([3, 1])]
    assert same.shape == (2, 3, 5, 3)
    assert same[:, 0, 0, 0].tolist() == [3, 1]
    assert isinstance(dataset.train.inputs[np.arange(2)], list)
    assert dataset.train.fingerprint != dataset.test.fingerprint


def test_texts_without_a_test_split(hub):
    features = {"text": Value("string"), "topic": Value("string")}
    columns = {"text": [f"text {i}" for i in range(10)], "topic": ["x", "y"] * 5}
    hub["news", "small"] = {"train": Table(features, columns)}
    dataset = load_dataset("hf:news", config="small", column="text", label="topic")
    assert (dataset.kind, dataset.class_names) == ("texts", ("x", "y"))
    assert (len(dataset.train), np.bincount(dataset.test.labels).tolist()) == (8, [1, 1])
    seen = dataset.train.inputs[np.arange(8)] + dataset.test.inputs[np.arange(2)]
    assert sorted(seen) == columns["text"]
    assert dataset.train.fingerprint != dataset.test.fingerprint


def test_what_is_wrong_with_a_dataset(hub):
    hub["pets", None] = {"train": images(2, [0, 1]), "test": images(2, [-1, -1])}
    two = {"a": Value("string"), "b": Value("string"), "label": ClassLabel(["x"])}
    hub["two", None] = {"train": Table(two, {"a": ["1"], "b": ["2"], "label": [0]})}
    for name, options, message in [
        ("hf", {}, "no dataset of the Hugging Face Hub was given"),
        ("hf:pets", {}, "some labels are negative, which stands for hidden"),
        ("hf:pets", {"test": "dev"}, "no split 'dev'. It has train, test"),
        ("hf:pets", {"label": "species"}, "no column 'species'. It has img, label, id"),
        ("hf:two", {}, r"2 columns of type text \(a, b\).*the option column"),
    ]:
        with pytest.raises(DataError, match=message):
            load_dataset(name, **options)


@pytest.mark.skipif(find_spec("datasets") is not None, reason="the package datasets is installed")
def test_advice_without_the_package():
    with pytest.raises(DataError, match=r"needs the package datasets. Install it: pip install 'aircl\[hf\]'"):
        load_dataset("hf:pets")
    (info,) = (info for info in list_datasets() if info.name == "hf:NAME")
    assert not info.available
    assert info.missing == "pip install 'aircl[hf]'"
