import numpy as np
import pytest

from aircl.backbones import create_backbone


def features_of(backbone, inputs):
    features = backbone.forward(backbone.prepare(inputs))
    assert features.dtype == np.float32
    assert features.shape == (len(inputs), backbone.width)
    return features


def test_images_become_pixels_between_0_and_1(images):
    backbone = create_backbone("identity", example=images[:1])
    assert backbone.width == 20 * 20 * 3
    np.testing.assert_allclose(features_of(backbone, images), images.reshape(12, -1) / 255, rtol=1e-6)
    np.testing.assert_array_equal(features_of(backbone, list(images)), features_of(backbone, images))


def test_features_pass_through():
    X = np.random.default_rng(0).standard_normal((5, 7))
    backbone = create_backbone("identity", example=X)
    np.testing.assert_array_equal(features_of(backbone, X), X.astype(np.float32))
    np.testing.assert_array_equal(features_of(backbone, list(X)), X.astype(np.float32))


def test_no_samples_give_no_rows(images):
    backbone = create_backbone("identity", example=images)
    assert features_of(backbone, images[:0]).shape == (0, 1200)
    assert features_of(backbone, []).shape == (0, 1200)


def test_the_fingerprint_follows_the_shape_and_not_the_values(images):
    fingerprint = create_backbone("identity", example=images).fingerprint
    assert fingerprint == create_backbone("identity", example=images[3:4] // 2).fingerprint
    assert fingerprint != create_backbone("identity", example=images[:, :10]).fingerprint
    assert fingerprint != create_backbone("identity", example=images.reshape(12, -1) / 255).fingerprint


@pytest.mark.parametrize("example", [None, [], np.empty((0, 8, 8, 1), dtype=np.uint8)])
def test_it_asks_for_an_example(example):
    with pytest.raises(ValueError, match=r"as wide as the data.*example=images"):
        create_backbone("identity", example=example)


def test_samples_of_another_shape_are_refused(images):
    backbone = create_backbone("identity", example=images)
    with pytest.raises(ValueError, match=r"one shape, here \(20, 20, 3\); got \[\(10, 20, 3\)\]"):
        backbone.prepare(images[:, :10])
    with pytest.raises(ValueError, match="Resize images first"):
        backbone.prepare([images[0], images[1][:5]])


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((2, 8, 8, 3)),
        np.zeros((2, 8, 8, 2), dtype=np.uint8),
        np.zeros((2, 8, 8), dtype=np.uint8),
        np.zeros((2, 0, 8, 3), dtype=np.uint8),
    ],
)
def test_what_is_no_image_is_refused(wrong):
    with pytest.raises(ValueError, match="images are uint8 arrays"):
        create_backbone("identity", example=wrong)
