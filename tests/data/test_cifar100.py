from __future__ import annotations

import os
import pickle

import numpy as np
import pytest

from aircl.data import DataError, load_dataset
from aircl.data.cifar100 import _unpickle


def test_images_labels_and_names(cifar, root):
    cifar.put_folder(root)
    dataset = load_dataset("cifar100", root, md5=cifar.md5)
    assert dataset.kind == "images"
    assert dataset.class_names == ("apple", "aquarium_fish", "baby", "bear", "beaver")
    for part, split in (("train", dataset.train), ("test", dataset.test)):
        everything = split.inputs[np.arange(len(split))]
        np.testing.assert_array_equal(everything, cifar.pixels[part])
        assert everything.flags.c_contiguous
        assert split.labels.tolist() == pickle.loads(cifar.contents[part], encoding="bytes")[b"fine_labels"]
        assert split.labels.dtype == np.int64


def test_a_wrong_md5_sum_names_both(cifar, root):
    cifar.put_archive(root)
    with pytest.raises(
        DataError, match=rf"tar\.gz: the file 'train' has the md5 sum {cifar.md5['train']}, but 16019d7e"
    ):
        load_dataset("cifar100", root)
    assert os.listdir(root) == [cifar.archive]
    folder = cifar.put_folder(root)
    with pytest.raises(DataError, match=rf"{folder}: .* Take the folder away, and have cifar-100-python\.tar\.gz"):
        load_dataset("cifar100", root)


def test_one_changed_byte_is_noticed(cifar, root):
    folder = cifar.put_folder(root)
    changed = bytearray(cifar.contents["test"])
    changed[-500] ^= 1
    (folder / "test").write_bytes(changed)
    with pytest.raises(DataError, match="the file 'test' has the md5 sum"):
        load_dataset("cifar100", root, md5=cifar.md5)
    (folder / "test").unlink()
    with pytest.raises(DataError, match="the file 'test' is missing"):
        load_dataset("cifar100", root, md5=cifar.md5)


class Exploit:
    def __reduce__(self):
        return os.system, ("exit",)


def test_no_code_is_unpickled():
    with pytest.raises(DataError, match="system, which could run code"):
        _unpickle(pickle.dumps({"data": Exploit()}, 2))
    with pytest.raises(DataError, match="which could run code"):
        _unpickle(pickle.dumps(np.array([Exploit()]), 2))
