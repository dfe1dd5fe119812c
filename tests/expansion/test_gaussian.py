import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from aircl.expansion import GaussianKernel


def features(n=50, d=8, dtype=np.float64):
    return np.random.default_rng(0).standard_normal((n, d)).astype(dtype)


@pytest.mark.parametrize("sigma", [0.5, 2, 10.0])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-10), (np.float32, 2e-4)])
def test_transform_is_the_rbf_kernel_at_the_centres(sigma, dtype, rtol):
    X = features(dtype=dtype)
    expansion = GaussianKernel(20, sigma=sigma, random_state=0).fit(X)
    H = expansion.transform(X)
    assert H.shape == (50, 20)
    assert H.dtype == dtype
    expected = rbf_kernel(X.astype(float), expansion.centers_.astype(float), gamma=1 / (2 * sigma**2))
    np.testing.assert_allclose(H, expected, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("n", [2, 50, 2000])
def test_the_width_is_the_median_distance_between_rows(n):
    X = features(n=n) + 1000
    expansion = GaussianKernel(20, sigma="median", random_state=0).fit(X)
    apart = np.linalg.norm(X[:, None, :4] - X[None, :, :4], axis=2) ** 2
    apart = np.sqrt(apart + np.linalg.norm(X[:, None, 4:] - X[None, :, 4:], axis=2) ** 2)
    median = np.median(apart[np.triu_indices(n, 1)])
    assert expansion.sigma_ == pytest.approx(median, rel=1e-9 if n <= 512 else 0.02)
    again = GaussianKernel(20, sigma="median")._restore_arrays(expansion._state_arrays())
    np.testing.assert_array_equal(again.transform(X), expansion.transform(X))
    assert expansion.set_params(sigma=1.0).fit(X).sigma_ == 1.0


def test_rows_that_are_all_the_same_have_a_width_too():
    H = GaussianKernel(3, sigma="median").fit(np.ones((4, 2))).transform(np.ones((2, 2)))
    np.testing.assert_array_equal(H, 1.0)


def test_features_far_from_the_origin_lose_no_digits():
    X = (features() + 1000).astype(np.float32)
    expansion = GaussianKernel(20, sigma=1, random_state=0).fit(X)
    expected = rbf_kernel(X.astype(float), expansion.centers_.astype(float), gamma=0.5)
    np.testing.assert_allclose(expansion.transform(X), expected, atol=1e-4)


def test_a_centre_has_the_kernel_value_one_with_itself():
    expansion = GaussianKernel(20, random_state=0).fit(features())
    H = expansion.transform(expansion.centers_)
    np.testing.assert_allclose(np.diag(H), 1, rtol=1e-12)


def test_rounding_never_lifts_a_value_above_one():
    # so narrow a kernel turns a rounding error of the distance into a factor that shows
    expansion = GaussianKernel(50, sigma=1e-3, random_state=0).fit(features(dtype=np.float32))
    assert expansion.transform(expansion.centers_).max() <= 1


def test_centres_are_distinct_rows():
    X = features()
    centers = GaussianKernel(50, random_state=0).fit(X).centers_
    np.testing.assert_array_equal(np.unique(centers, axis=0), np.unique(X, axis=0))


@pytest.mark.parametrize("n", [2, 5, 19])
def test_missing_centres_are_convex_mixes_of_two_rows(n):
    X = features(n=n)
    centers = GaussianKernel(20, random_state=0).fit(X).centers_
    np.testing.assert_array_equal(centers[:n], X)
    for m in centers[n:]:
        # m lies on the segment between two rows: going through m is no detour
        a, b = np.triu_indices(n, k=1)
        way = np.linalg.norm(X - m, axis=1)
        detour = way[a] + way[b] - np.linalg.norm(X[a] - X[b], axis=1)
        assert detour.min() < 1e-12


def test_one_row_is_every_centre():
    X = features(n=1)
    np.testing.assert_allclose(GaussianKernel(3).fit(X).centers_, np.repeat(X, 3, axis=0), rtol=1e-12)


@pytest.mark.parametrize("n", [5, 50])
def test_the_seed_decides_the_centres_and_the_dtype_does_not(n):
    X = features(n=n, dtype=np.float32)
    single = GaussianKernel(20, random_state=3).fit(X).centers_
    double = GaussianKernel(20, random_state=3).fit(X.astype(np.float64)).centers_
    other = GaussianKernel(20, random_state=4).fit(X).centers_
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single, double, rtol=1e-5, atol=1e-6)
    assert not np.array_equal(single, other)


def test_sparse_input_is_refused():
    with pytest.raises(TypeError, match="Sparse data was passed"):
        GaussianKernel(20).fit(sp.csr_array(features()))


def test_no_rows_in_no_rows_out():
    assert GaussianKernel(20).fit(features()).transform(np.empty((0, 8))).shape == (0, 20)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": -1}, "n_components must be an integer >= 1, got -1"),
        ({"n_components": "many"}, "n_components must be an integer >= 1, got 'many'"),
        ({"sigma": 0}, "sigma must be a finite number > 0 or 'median', got 0"),
        ({"sigma": float("nan")}, "sigma must be a finite number > 0 or 'median', got nan"),
        ({"sigma": float("inf")}, "sigma must be a finite number > 0 or 'median', got inf"),
        ({"sigma": "scale"}, "sigma must be a finite number > 0 or 'median', got 'scale'"),
    ],
)
def test_bad_parameters_are_refused_at_fit(params, message):
    expansion = GaussianKernel(**params)
    with pytest.raises(ValueError, match=message):
        expansion.fit(features())


@pytest.mark.parametrize(
    "arrays", [{}, {"components": np.ones((20, 8))}, {"centers": np.ones(20)}, {"centers": np.ones((21, 8))}]
)
def test_arrays_of_something_else_are_not_restored(arrays):
    with pytest.raises(ValueError, match=r"needs 'centers' of shape \(20, d\)"):
        GaussianKernel(20)._restore_arrays(arrays)
