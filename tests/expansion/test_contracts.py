"""What every expansion owes to scikit-learn and to the files it is saved in."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from aircl.expansion import AutoBuffer, GaussianKernel, RandomReLU

EXPANSIONS = [
    RandomReLU(300, random_state=0),
    RandomReLU(300, init="normal", random_state=0),
    GaussianKernel(300, sigma=20.0, random_state=0),
    AutoBuffer(random_state=0),
]
every_expansion = pytest.mark.parametrize("expansion", EXPANSIONS, ids=str)


@parametrize_with_checks([RandomReLU(), RandomReLU(init="normal"), GaussianKernel(), AutoBuffer()])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@every_expansion
def test_a_ridge_classifier_learns_digits_behind_it(expansion):
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(clone(expansion), RidgeClassifier(alpha=1.0)).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.9


@every_expansion
def test_a_clone_with_the_same_seed_is_the_same_map(expansion):
    X, _ = load_digits(return_X_y=True)
    np.testing.assert_array_equal(clone(expansion).fit(X).transform(X[:10]), clone(expansion).fit(X).transform(X[:10]))


@every_expansion
@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output_gives_a_named_frame(expansion, container):
    frame = pytest.importorskip(container)
    X, _ = load_digits(return_X_y=True)
    fitted = clone(expansion).set_output(transform=container).fit(X)
    H = fitted.transform(X[:10])
    assert isinstance(H, frame.DataFrame)
    assert list(H.columns) == list(fitted.get_feature_names_out())
    assert H.columns[0] == f"{type(expansion).__name__.lower()}0"
    assert H.shape == (10, 512 if isinstance(expansion, AutoBuffer) else 300)


@every_expansion
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_arrays_restore_the_map(expansion, dtype):
    X = load_digits().data.astype(dtype)
    fitted = clone(expansion).fit(X)
    restored = clone(expansion)._restore_arrays(fitted._state_arrays())
    assert restored.n_features_in_ == 64
    H = restored.transform(X[:10])
    assert H.dtype == dtype
    np.testing.assert_array_equal(H, fitted.transform(X[:10]))
    np.testing.assert_array_equal(restored.get_feature_names_out(), fitted.get_feature_names_out())


@every_expansion
def test_the_output_has_the_dtype_of_the_fit(expansion):
    X = load_digits().data
    assert clone(expansion).fit(X.astype(np.float32)).transform(X).dtype == np.float32
    assert clone(expansion).fit(X).transform(X.astype(np.float32)).dtype == np.float64
    assert clone(expansion).fit(X.astype(int)).transform(X.astype(int)).dtype == np.float64


@every_expansion
def test_transform_leaves_the_input_and_the_expansion_alone(expansion):
    X = load_digits().data
    fitted = clone(expansion).fit(X)
    X_before, before = X.copy(), pickle.dumps(fitted)
    fitted.transform(X)
    np.testing.assert_array_equal(X, X_before)
    assert pickle.dumps(fitted) == before
