import numpy as np
import pytest
import scipy.sparse as sp

from aircl.expansion import RandomReLU


def features(n=50, d=64, dtype=np.float64):
    return np.random.default_rng(0).standard_normal((n, d)).astype(dtype)


@pytest.mark.parametrize("init", ["uniform", "normal"])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 1e-4)])
def test_transform_is_the_relu_of_the_projection(init, dtype, rtol):
    X = features(dtype=dtype)
    expansion = RandomReLU(100, init=init, random_state=0).fit(X)
    W = expansion.components_.astype(np.float64)
    expected = np.array([[max(0.0, sum(x * w)) for w in W.T] for x in X.astype(np.float64)])
    H = expansion.transform(X)
    assert H.shape == (50, 100)
    assert H.dtype == dtype
    np.testing.assert_allclose(H, expected, rtol=rtol, atol=rtol)


def test_uniform_entries_are_those_of_a_pytorch_linear_layer():
    d, f = 64, 4000
    W = RandomReLU(f, random_state=0).fit(features(d=d)).components_
    bound, variance = 1 / np.sqrt(d), 1 / (3 * d)
    assert W.shape == (d, f)
    assert np.abs(W).max() <= bound
    assert np.abs(W).max() > 0.999 * bound
    assert abs(W.mean()) < 5 * np.sqrt(variance / W.size)
    # the variance of the square of U(-b, b) is 4 b^4 / 45
    assert abs(W.var() - variance) < 5 * np.sqrt(4 * bound**4 / 45 / W.size)


def test_normal_entries_have_mean_zero_and_variance_one():
    W = RandomReLU(4000, init="normal", random_state=0).fit(features()).components_
    assert abs(W.mean()) < 5 / np.sqrt(W.size)
    assert abs(W.var() - 1) < 5 * np.sqrt(2 / W.size)
    assert abs((W**4).mean() - 3) < 5 * np.sqrt(96 / W.size)
    assert np.abs(W).max() > 4


@pytest.mark.parametrize("init", ["uniform", "normal"])
def test_the_seed_decides_the_matrix_and_the_dtype_does_not(init):
    single = RandomReLU(30, init=init, random_state=3).fit(features(dtype=np.float32)).components_
    double = RandomReLU(30, init=init, random_state=3).fit(features(dtype=np.float64)).components_
    other = RandomReLU(30, init=init, random_state=4).fit(features(dtype=np.float64)).components_
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(single, double.astype(np.float32))
    assert not np.array_equal(double, other)


def test_fit_ignores_the_values():
    a = RandomReLU(30, random_state=0).fit(features(n=50))
    b = RandomReLU(30, random_state=0).fit(np.zeros((1, 64)))
    np.testing.assert_array_equal(a.components_, b.components_)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_input_gives_the_same_dense_output(container, dtype):
    X = features(dtype=dtype) * (features() > 1)
    expansion = RandomReLU(30, random_state=0).fit(container(X))
    H = expansion.transform(container(X))
    assert type(H) is np.ndarray
    assert H.dtype == X.dtype
    np.testing.assert_allclose(H, expansion.transform(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("empty", [np.empty((0, 64)), sp.csr_array((0, 64))])
def test_no_rows_in_no_rows_out(empty):
    assert RandomReLU(30).fit(features()).transform(empty).shape == (0, 30)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer >= 1, got 0"),
        ({"n_components": 2.5}, "n_components must be an integer >= 1, got 2.5"),
        ({"init": "orthogonal"}, "init must be 'uniform' or 'normal', got 'orthogonal'"),
    ],
)
def test_bad_parameters_are_refused_at_fit(params, message):
    expansion = RandomReLU(**params)
    with pytest.raises(ValueError, match=message):
        expansion.fit(features())


@pytest.mark.parametrize(
    "arrays",
    [{}, {"centers": np.ones((64, 30))}, {"components": np.ones(30)}, {"components": np.ones((64, 31))}],
)
def test_arrays_of_something_else_are_not_restored(arrays):
    with pytest.raises(ValueError, match=r"needs 'components' of shape \(d, 30\)"):
        RandomReLU(30)._restore_arrays(arrays)
