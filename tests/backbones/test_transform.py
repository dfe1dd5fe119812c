import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from aircl.backbones.transform import ImageTransform  # noqa: E402


def test_resizing_is_that_of_pil():
    Image = pytest.importorskip("PIL.Image")
    image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    for size in (24, 97):
        wide = (size, round(80 * size / 60))
        expected = np.asarray(Image.fromarray(image).resize(wide[::-1], Image.Resampling.BICUBIC)).astype(int)
        left = (wide[1] - size) // 2
        ours = ImageTransform(size).resize(image[None])[0].permute(1, 2, 0).numpy()
        assert ours.shape == (size, size, 3)
        assert np.abs(ours - expected[:, left : left + size]).max() <= 2


def test_normalisation_is_that_of_pixels_in_0_to_1():
    images = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
    mean, std = (0.1, 0.2, 0.3), (0.4, 0.5, 0.6)
    expected = (images / 255 - mean) / std
    ours = ImageTransform(8, mean=mean, std=std)(images)
    assert ours.dtype == torch.float32
    assert ours.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_allclose(ours.permute(0, 2, 3, 1), expected, rtol=1e-5, atol=1e-6)


def test_the_crop_is_the_centre_of_the_enlarged_image():
    image = np.zeros((1, 100, 100, 3), dtype=np.uint8)
    image[:, 25:75, 25:75] = 255
    assert ImageTransform(50, crop=0.5).resize(image).min() == 255
    image[:, 5:95, 5:95] = 255
    assert ImageTransform(90, crop=0.9).resize(image).min() == 255
    assert ImageTransform(100).resize(image).min() == 0


@pytest.mark.parametrize("shape", [(7, 31, 3), (31, 7, 1), (1, 1, 1), (5, 500, 3), (16, 16, 3)])
@pytest.mark.parametrize("crop", [1.0, 0.875])
def test_images_of_any_shape_come_out_square(shape, crop):
    image = np.full(shape, 200, dtype=np.uint8)
    pixels = ImageTransform(16, crop=crop).resize([image])
    assert pixels.shape == (1, 3, 16, 16)
    assert (pixels == 200).all()


def test_grey_images_are_three_equal_channels():
    grey = np.random.default_rng(0).integers(0, 256, (2, 9, 9, 1), dtype=np.uint8)
    transform = ImageTransform(20)
    np.testing.assert_array_equal(transform(grey), transform(grey.repeat(3, axis=-1)))


def test_every_image_is_resized_on_its_own_terms():
    rng = np.random.default_rng(0)
    shapes = [(8, 8, 3), (30, 20, 3), (8, 8, 1), (8, 8, 3), (30, 20, 3)]
    mixed = [rng.integers(0, 256, shape, dtype=np.uint8) for shape in shapes]
    transform = ImageTransform(16)
    together = transform(mixed)
    for image, row in zip(mixed, together, strict=True):
        np.testing.assert_array_equal(transform(image[None])[0], row)
        np.testing.assert_array_equal(transform([image])[0], row)


def test_arrays_that_cannot_be_written_to_are_read():
    images = np.full((2, 8, 8, 3), 9, dtype=np.uint8)
    images.flags.writeable = False
    assert ImageTransform(8).resize(images).eq(9).all()
    assert ImageTransform(8).resize(images[:, ::-1, ::-1]).eq(9).all()


def test_an_empty_batch_is_an_empty_tensor():
    assert ImageTransform(8)([]).shape == (0, 3, 8, 8)
    assert ImageTransform(8)(np.empty((0, 5, 5, 3), dtype=np.uint8)).shape == (0, 3, 8, 8)


@pytest.mark.parametrize(
    "wrong", [{"size": 0}, {"size": 8, "crop": 0}, {"size": 8, "crop": 1.5}, {"size": 8, "std": (1, 1, 0)}]
)
def test_senseless_settings_are_refused(wrong):
    with pytest.raises(ValueError, match="got"):
        ImageTransform(**wrong)


@pytest.mark.parametrize("wrong", [[np.zeros((8, 8, 3))], [np.zeros((8, 8), dtype=np.uint8)], np.zeros((8, 8, 3))])
def test_what_is_no_image_is_refused(wrong):
    with pytest.raises(ValueError, match="images are uint8 arrays of shape"):
        ImageTransform(8)(wrong)
