"""The buffer by default: what its rule says, for every width and every kind of array."""

import importlib.util
import pickle

import numpy as np
import pytest
from scipy import sparse

from aircl import AIRClassifier
from aircl.expansion import AutoBuffer

WIDTHS = {2: 256, 13: 256, 30: 256, 64: 512, 200: 1600, 256: 2048, 999: 2048, 1000: 1000, 4096: 4096, 4097: 2048}


def rows(d, n=3, dtype=np.float64):
    return np.random.default_rng(d).normal(size=(n, d)).astype(dtype)


@pytest.mark.parametrize(("d", "width"), WIDTHS.items())
def test_the_width_is_a_function_of_the_columns(d, width):
    X = rows(d)
    buffer = AutoBuffer().fit(X)
    H = buffer.transform(X)
    assert H.shape == (3, width) == (3, len(buffer.get_feature_names_out()))
    assert (H is X) if 1000 <= d <= 4096 else (H.min() == 0.0)


@pytest.mark.parametrize("d", [64, 300, 5000])
def test_from_64_columns_on_the_length_of_a_row_does_not_matter(d):
    X = rows(d)
    X[2] = 0.0
    buffer = AutoBuffer().fit(X)
    H = buffer.transform(X)
    np.testing.assert_allclose(buffer.transform(1e3 * X), H, rtol=1e-9, atol=1e-12)
    assert not H[2].any()
    tiny, huge = X[:1].astype(np.float32) * np.float32(1e-30), X[:1].astype(np.float32) * np.float32(1e30)
    single = AutoBuffer().fit(tiny)
    np.testing.assert_allclose(single.transform(tiny), single.transform(huge), rtol=1e-4, atol=1e-6)


def test_of_fewer_columns_it_tells_short_rows_from_long_ones_at_every_scale():
    x = np.array([[1.0, 2.0]])
    buffer = AutoBuffer().fit(x)
    for scale in (0.1, 1.0, 100.0):
        one, two = buffer.transform(scale * x)[0], buffer.transform(2 * scale * x)[0]
        bends = np.abs(two - 2 * one) > 0.1 * two  # a ReLU without a threshold would only be twice as large
        assert (bends & (two > 0) & (one == 0)).any()
        assert (bends & (two > 0) & (one > 0)).any()


@pytest.mark.parametrize("d", [5, 100, 6000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_and_tensors_give_the_same(d, dtype):
    X = rows(d, dtype=dtype) * (rows(d + 1)[:, :d] > 0.5)
    X = X.astype(dtype)
    buffer = AutoBuffer().fit(X)
    expected = buffer.transform(X)
    assert expected.dtype == dtype
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-12}
    np.testing.assert_allclose(buffer.transform(sparse.csr_matrix(X)), expected, **tolerance)
    if importlib.util.find_spec("torch"):
        import torch

        given = torch.from_numpy(X)
        np.testing.assert_allclose(buffer.transform(given).numpy(), expected, **tolerance)
        np.testing.assert_allclose(AutoBuffer().fit(given).transform(given).numpy(), expected, **tolerance)


def test_many_columns_keep_inner_products_on_average():
    X = np.abs(rows(20000, n=4))
    buffer = AutoBuffer().fit(X)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    from aircl.expansion.auto import _add_up, _draw

    H = _add_up(unit, *_draw(20000, 0, np.dtype(np.float64)))
    np.testing.assert_allclose(H @ H.T, unit @ unit.T, atol=0.1)
    np.testing.assert_allclose(buffer.transform(X), np.maximum(H, 0.0), atol=1e-9)


def test_none_is_a_fixed_seed_and_other_seeds_are_other_buffers():
    X = rows(10)
    H = AutoBuffer().fit(X).transform(X)
    assert np.array_equal(H, AutoBuffer(random_state=0).fit(X[:1]).transform(X))
    assert not np.array_equal(H, AutoBuffer(random_state=1).fit(X).transform(X))
    drawn = AutoBuffer(random_state=np.random.RandomState(3)).fit(X)
    assert drawn.seed_ == AutoBuffer(random_state=np.random.RandomState(3)).fit(X).seed_
    with pytest.raises(ValueError, match="Seed must be between 0"):
        AutoBuffer(random_state=-1).fit(X)


def test_a_pickle_and_a_file_have_the_seed_and_not_the_matrix(tmp_path):
    X = rows(300, n=20)
    buffer = AutoBuffer(random_state=5).fit(X)
    buffer.transform(X)
    assert len(pickle.dumps(buffer)) < 1000
    assert sum(array.nbytes for array in buffer._state_arrays().values()) < 100
    clf = AIRClassifier(1.0, store="shared", calibrate=False, random_state=5).fit(X, np.arange(20) % 2)
    clf.save(tmp_path / "m")
    loaded = AIRClassifier.load(tmp_path / "m")
    assert (loaded.expansion, loaded.random_state, loaded.expansion_.seed_) == ("auto", 5, 5)
    np.testing.assert_array_equal(loaded.expand(X), clf.expand(X))
    given = AIRClassifier(1.0, expansion=AutoBuffer(random_state=2), calibrate=False).fit(X[:, :3], np.arange(20) % 2)
    given.save(tmp_path / "m")
    assert AIRClassifier.load(tmp_path / "m").expansion.random_state == 2


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"components": np.zeros((3, 3))},
        {"seed": np.array([0, 3])},
        {"seed": np.array([0, 3, 16])},
        {"seed": np.array([-1, 3, 64])},
        {"seed": np.array([0, 0, 64])},
    ],
)
def test_arrays_of_something_else_are_refused(arrays):
    with pytest.raises(ValueError, match="AutoBuffer needs"):
        AutoBuffer()._restore_arrays(arrays)


def test_wide_sparse_rows_are_learned_by_default():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = sparse.random(60, 50000, density=0.002, format="lil", random_state=rng)
    for row, label in enumerate(y):
        X[row, rng.choice(300, 40, replace=False) + 300 * label] = 1.0
    X = X.tocsr()
    clf = AIRClassifier(1.0, store="shared").fit(X[:40], y[:40])
    assert clf.coef_.shape == (3, 2048)
    assert clf.score(X[40:], y[40:]) > 0.9
