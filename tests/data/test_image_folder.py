from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from aircl.data import DataError, ImageFiles, load_dataset

RED = np.full((3, 5, 3), (200, 0, 0), np.uint8)


def write(path, pixels=RED, mode=None, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(pixels)
    (image if mode is None else image.convert(mode)).save(path, **options)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("AIRCL_DATA", raising=False)
    return tmp_path / "pets"


def test_one_folder_a_class_is_split(folder):
    rng = np.random.default_rng(0)
    for label, count in (("dog", 10), ("cat", 5), ("axolotl", 1)):
        for i in range(count):
            write(folder / label / f"{i}.png", rng.integers(0, 256, (4 + i, 6, 3), np.uint8))
    (folder / "dog" / "notes.txt").write_text("not an image")
    (folder / "dog" / "._0.png").write_text("what macOS leaves behind")
    dataset = load_dataset(f"image-folder:{folder}")
    assert dataset.class_names == ("axolotl", "cat", "dog")
    assert np.bincount(dataset.train.labels).tolist() == [1, 4, 8]
    assert np.bincount(dataset.test.labels).tolist() == [0, 1, 2]
    assert not set(dataset.train.inputs.names) & set(dataset.test.inputs.names)
    again = load_dataset("image-folder", root=folder)
    assert again.train.inputs.names == dataset.train.inputs.names
    batch = dataset.train.inputs[np.array([12, 0])]
    assert [image.shape[1:] for image in batch] == [(6, 3), (6, 3)]
    assert load_dataset("image-folder:pets", root=folder.parent).train.fingerprint == dataset.train.fingerprint


@pytest.mark.parametrize("test", ["test", "val"])
def test_train_and_test_folders(test, folder):
    for part, labels in (("train", "ab"), (test, "bc")):
        for label in labels:
            write(folder / part / label / "deep" / "1.png")
            write(folder / part / label / "0.PNG")
    dataset = load_dataset("image-folder", root=folder)
    assert dataset.class_names == ("a", "b", "c")
    assert dataset.train.labels.tolist() == [0, 0, 1, 1]
    assert dataset.test.inputs.names == ["b/0.PNG", "b/deep/1.png", "c/0.PNG", "c/deep/1.png"]
    assert dataset.test.labels.tolist() == [1, 1, 2, 2]
    assert dataset.train.inputs[np.arange(4)].shape == (4, 3, 5, 3)
    assert len(dataset.train.inputs[np.arange(0)]) == 0


def test_every_mode_becomes_rgb(folder):
    ramp = np.arange(15, dtype=np.uint8).reshape(3, 5) * 17
    write(folder / "a" / "00_rgb.png")
    write(folder / "a" / "01_palette.png", mode="P")
    write(folder / "a" / "02_transparent.png", mode="P", transparency=bytes([255, 0]))
    write(folder / "a" / "03_alpha.png", mode="RGBA")
    write(folder / "a" / "04_cmyk.jpg", np.full((3, 5, 3), 200, np.uint8), mode="CMYK")
    write(folder / "a" / "05_grey.png", ramp)
    write(folder / "a" / "06_grey16.png", ramp.astype(np.uint16) * 257)
    write(folder / "a" / "07_two.png", mode="1")
    write(folder / "a" / "08_one_pixel.gif", RED[:1, :1])
    write(folder / "a" / "09_rgb.webp")
    dataset = load_dataset("image-folder", root=folder)
    images = {}
    for split in (dataset.train, dataset.test):
        images |= {name[2:4]: split.inputs[np.array([i])][0] for i, name in enumerate(split.inputs.names)}
    assert len(images) == 10
    assert {(image.dtype, image.shape[2]) for image in images.values()} == {(np.dtype(np.uint8), 3)}
    for name in ("00", "01", "02", "03"):
        np.testing.assert_array_equal(images[name][0, 0], images["01" if name in ("01", "02") else "00"][0, 0])
    assert abs(images["01"].astype(int) - RED).max() < 10
    assert abs(images["04"].astype(int) - 200).max() < 10
    for name in ("05", "06"):
        np.testing.assert_array_equal(images[name], np.repeat(ramp[:, :, None], 3, axis=2))
    assert images["08"].shape == (1, 1, 3)


def test_a_broken_image_is_named(folder):
    for i in range(2):
        write(folder / "a" / f"{i}.png", np.random.default_rng(0).integers(0, 256, (30, 30, 3), np.uint8))
    whole = (folder / "a" / "0.png").read_bytes()
    dataset = load_dataset("image-folder", root=folder)
    (name,) = dataset.train.inputs.names
    path = folder / name
    for content in (whole[:1000], whole[:40], b"", b"text"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=rf"{path} cannot be read as an image"):
            dataset.train.inputs[np.arange(1)]
    path.unlink()
    with pytest.raises(DataError, match=rf"{path} cannot be read"):
        dataset.train.inputs[np.arange(1)]


def test_fingerprints_follow_content_and_order_not_place(folder, tmp_path):
    rng = np.random.default_rng(1)
    for i in range(5):
        write(folder / "a" / f"{i}.png", rng.integers(0, 256, (4, 4, 3), np.uint8))
    before = load_dataset("image-folder", root=folder).train.fingerprint
    copy = folder.rename(tmp_path / "elsewhere")
    after = load_dataset("image-folder", root=copy).train
    assert after.fingerprint == before
    path = copy / after.inputs.names[0]
    content = bytearray(path.read_bytes())
    content[-20] ^= 1  # of the same size
    path.write_bytes(content)
    assert load_dataset("image-folder", root=copy).train.fingerprint != after.fingerprint
    content[-20] ^= 1
    path.write_bytes(content)
    assert load_dataset("image-folder", root=copy).train.fingerprint == after.fingerprint
    path.rename(path.with_name("00.png"))
    assert load_dataset("image-folder", root=copy).train.fingerprint != after.fingerprint


def test_what_is_wrong_with_a_folder(folder):
    with pytest.raises(DataError, match="no folder of images was given"):
        load_dataset("image-folder")
    with pytest.raises(DataError, match="pets does not exist"):
        load_dataset("image-folder", root=folder)
    folder.mkdir()
    with pytest.raises(DataError, match="0 training and 0 test images"):
        load_dataset("image-folder", root=folder)
    write(folder / "train" / "a" / "0.png")
    with pytest.raises(DataError, match="has train/, but not both"):
        load_dataset("image-folder", root=folder)
    (folder / "test").mkdir()
    with pytest.raises(DataError, match="1 training and 0 test images"):
        load_dataset("image-folder", root=folder)


def test_the_folder_of_image_files_may_be_a_text(folder):
    write(folder / "0.png")
    assert ImageFiles(str(folder), ["0.png"])[np.arange(1)].shape[0] == 1
