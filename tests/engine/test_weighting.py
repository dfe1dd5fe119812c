"""Class weights and their scales."""

import numpy as np
import pytest

from aircl.engine.weighting import check_weighting, class_weights, depends_on_own_count_only, scale_factor

COUNT = np.array([100.0, 10.0, 1.0])
LABELS = np.array(["a", "b", "c"])


@pytest.mark.parametrize(
    ("weighting", "expected"),
    [
        ("inverse", [0.01, 0.1, 1.0]),
        ("uniform", [1.0, 1.0, 1.0]),
        (0.0, [1.0, 1.0, 1.0]),
        (1, [0.01, 0.1, 1.0]),
        (2.0, [1e-4, 1e-2, 1.0]),
        ("effective", [0.001 / (1 - 0.999**n) for n in (100, 10, 1)]),
        ({"a": 1, "b": 2, "c": 0, "unseen": 9}, [1.0, 2.0, 0.0]),
        (lambda n: 1 / np.sqrt(n), [0.1, 10**-0.5, 1.0]),
    ],
)
def test_weights(weighting, expected):
    check_weighting(weighting, "mean")
    np.testing.assert_allclose(class_weights(weighting, COUNT, LABELS), expected)


def test_scales():
    pi = class_weights("inverse", COUNT, LABELS)
    assert np.isclose((pi * scale_factor("mean", pi, COUNT)).mean(), 1.0)
    assert scale_factor("none", pi, COUNT) == 1.0
    balanced = pi * scale_factor("balanced", pi, COUNT)
    np.testing.assert_allclose(balanced, COUNT.sum() / (len(COUNT) * COUNT))  # scikit-learn's n / (C n_y)


@pytest.mark.parametrize("bad", [lambda n: n[:1], lambda n: -n, lambda n: n * np.nan, lambda n: 0 * n])
def test_a_callable_must_give_one_weight_a_class(bad):
    with pytest.raises(ValueError, match="one finite, non-negative number per class"):
        class_weights(bad, COUNT, LABELS)


def test_a_mapping_must_cover_the_classes():
    with pytest.raises(ValueError, match=r"\['c'\]"):
        class_weights({"a": 1.0, "b": 1.0}, COUNT, LABELS)


def test_only_weights_of_the_own_count_can_be_folded():
    assert depends_on_own_count_only("inverse", COUNT, LABELS)
    assert depends_on_own_count_only(lambda n: 1 / n, COUNT, LABELS)
    assert not depends_on_own_count_only(lambda n: n.max() / n, COUNT, LABELS)
