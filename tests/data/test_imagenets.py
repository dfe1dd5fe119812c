from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from aircl.data import DataError, load_dataset
from aircl.data.imagenet_r import torch_randperm

TINY = {"classes": 3, "per_class": 4, "n_test": 6}
RENDITIONS = {"classes": 3, "images": 20}


def test_tiny_imagenet(tiny, root):
    tiny.put_archive(root)
    dataset = load_dataset("tiny-imagenet", root, **TINY)
    assert dataset.class_names == ("goldfish", "cat (n02124075)", "cat (n09428293)")
    assert dataset.train.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert dataset.train.inputs.names[:2] == ["n01443537/images/n01443537_0.JPEG", "n01443537/images/n01443537_1.JPEG"]
    assert dataset.test.labels.tolist() == [1, 0, 2, 1, 0, 2]
    assert dataset.test.inputs.names == [f"images/val_{i}.JPEG" for i in range(6)]
    assert dataset.train.inputs[np.array([0, 5])].shape == (2, 64, 64, 3)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wnids.txt", "wnids.txt is missing"),
        ("val/val_annotations.txt", "val_annotations.txt is missing"),
        ("train/n01443537/images/n01443537_2.JPEG", "train/n01443537 has 3 images, but 4 are right"),
        ("val/images/val_3.JPEG", "labels 6 images, of which 5 are in val/images, but 6 are right"),
    ],
)
def test_tiny_imagenet_is_counted(name, message, tiny, root):
    content = tiny.contents.pop(name)
    tiny.put_archive(root)
    with pytest.raises(DataError, match=f"tiny-imagenet-200.zip: .*{message}.*Fetch it again"):
        load_dataset("tiny-imagenet", root, **TINY)
    assert os.listdir(root) == [tiny.archive]
    tiny.contents[name] = content
    tiny.put_folder(root)
    with pytest.raises(DataError, match=r"wnids\.txt names 3 classes, but 200 are right.*Take the folder away"):
        load_dataset("tiny-imagenet", root)


def test_imagenet_r(renditions, root):
    renditions.put_archive(root)
    dataset = load_dataset("imagenet-r", root, **RENDITIONS)
    assert dataset.class_names == ("goldfish", "Egyptian_cat", "seashore")
    assert dataset.domain_names == ("art", "sculpture", "video_game")
    everything = sorted(path for path in renditions.contents if path.endswith(".jpg"))
    order = torch_randperm(20)
    assert dataset.train.inputs.names == [everything[i] for i in order[:16]]
    assert dataset.test.inputs.names == [everything[i] for i in order[16:]]
    numbers = sorted({Path(path).parent.name for path in everything})
    for split in (dataset.train, dataset.test):
        for name, label, domain in zip(split.inputs.names, split.labels, split.domains, strict=True):
            assert name.startswith(f"{numbers[label]}/{dataset.domain_names[domain]}_")
    assert isinstance(dataset.train.inputs[np.arange(3)], list)


def test_imagenet_r_is_counted(renditions, root):
    renditions.put_archive(root)
    with pytest.raises(
        DataError, match=r"imagenet-r\.tar: there are 20 images in 3 folders, but 30000 in 200 are right"
    ):
        load_dataset("imagenet-r", root)
    assert os.listdir(root) == [renditions.archive]


def test_classes_without_a_listing_are_called_by_their_number(renditions, root):
    del renditions.contents["README.txt"]
    renditions.put_folder(root)
    dataset = load_dataset("imagenet-r", root, **RENDITIONS)
    assert dataset.class_names == ("n01443537", "n02124075", "n09428293")


@pytest.mark.parametrize("n", [0, 1, 2, 20, 30_000])
@pytest.mark.parametrize("seed", [0, 5])
def test_torch_permutes_in_this_way(n, seed):
    torch = pytest.importorskip("torch")
    expected = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    np.testing.assert_array_equal(torch_randperm(n, seed), expected.numpy())
