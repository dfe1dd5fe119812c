"""What a user of scikit-learn expects: the estimator contract, composition, data frames, and honest attributes."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from aircl import ACILClassifier, AIRClassifier
from aircl.expansion import GaussianKernel, RandomReLU

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

STORES = ("per-class", "shared", "pooled")
every_store = pytest.mark.parametrize("store", STORES)
LEARNERS = {
    f"{cls.__name__}-{store}": cls(store=store, **PAPER) for cls in (AIRClassifier, ACILClassifier) for store in STORES
}
every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
ATTRIBUTES = (
    "coef_",
    "class_count_",
    "class_weight_",
    "gamma_",
    "gamma_path_",
    "nbytes_",
    "classes_",
    "n_features_in_",
)


def departures(estimator):
    """Return the checks that an estimator is known to fail, with the reason."""
    if not isinstance(estimator.expansion, GaussianKernel):
        return {}
    reason = "the kernel's centres are rows of the first batch, drawn without regard to their weights or repetitions"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [
        *(AIRClassifier(store=store, **PAPER) for store in STORES),
        *(AIRClassifier(0.1, store=store, **PAPER) for store in STORES),
        *(AIRClassifier(store=store, expansion=RandomReLU(64, random_state=0), calibrate=False) for store in STORES),
        AIRClassifier(0.01, expansion=GaussianKernel(64, sigma=3, random_state=0), calibrate=False),
        AIRClassifier(store="shared", expansion=GaussianKernel(64, sigma=3, random_state=0), calibrate=False),
        AIRClassifier(),
        ACILClassifier(),
        AIRClassifier(calibrate=True, expansion=None),
        AIRClassifier(weighting=0.5, scale="balanced", **PAPER),
        AIRClassifier(0.1, weighting="effective", scale="none", **PAPER),
        *(ACILClassifier(store=store, **PAPER) for store in STORES),
        ACILClassifier(0.1, expansion=RandomReLU(64, random_state=0), calibrate=False),
    ],
    expected_failed_checks=departures,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600] / 16, y[:600], X[600:900] / 16, y[600:900]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def rows(n=60, n_classes=4, f=7, seed=0, dtype=np.float64):
    random = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    y[: n // 2] %= max(1, n_classes // 2)  # not balanced
    return (random.normal(size=(n, f)) + np.eye(max(f, n_classes))[y, :f]).astype(dtype), y


# -- composition --
@every_learner
def test_it_learns_digits_in_a_pipeline(learner, digits):
    X, y, X_test, y_test = digits
    model = make_pipeline(StandardScaler(), RandomReLU(300, random_state=0), clone(learner)).fit(X, y)
    assert model.score(X_test, y_test) > 0.9
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X_test), model.predict(X_test))


def test_an_expansion_inside_is_the_expansion_before(digits):
    X, y, X_test, _ = digits
    inside = AIRClassifier(0.1, expansion=RandomReLU(80, random_state=0), calibrate=False).fit(X, y)
    before = make_pipeline(RandomReLU(80, random_state=0), AIRClassifier(0.1, **PAPER)).fit(X, y)
    np.testing.assert_allclose(inside.coef_, before[-1].coef_, rtol=1e-10)
    np.testing.assert_allclose(inside.decision_function(X_test), before.decision_function(X_test), rtol=1e-10)


@pytest.mark.parametrize("expansion", [MinMaxScaler(), make_pipeline(StandardScaler(), RandomReLU(30))], ids=str)
def test_any_transformer_expands(expansion, iris):
    X, y = iris
    clf = AIRClassifier(expansion=expansion, random_state=0, calibrate=False).fit(X, y)
    assert clf.score(X, y) > 0.6
    assert clf.coef_.shape == (3, clf.expansion_.transform(X).shape[1])
    assert clf.expansion is expansion  # it is cloned, never fitted itself
    with pytest.raises(NotFittedError):
        check_is_fitted(expansion)


def test_the_seed_serves_an_expansion_that_has_none(iris):
    X, y = iris
    for own, given, same in ((None, 3, 3), (5, 3, 5)):
        clf = AIRClassifier(1.0, expansion=RandomReLU(9, random_state=own), random_state=given, calibrate=False).fit(
            X, y
        )
        expected = RandomReLU(9, random_state=same).fit(X).components_
        np.testing.assert_array_equal(clf.expansion_.components_, expected)


@every_learner
def test_a_clone_has_learned_nothing(learner):
    clf = clone(learner).set_params(gamma=0.3, random_state=5).fit(*rows())
    twin = clone(clf)
    assert twin.get_params() == clf.get_params()
    assert vars(twin) == twin.get_params()


def test_a_grid_search_finds_gamma_and_weighting(digits):
    X, y, X_test, y_test = digits
    pipeline = Pipeline([("expand", RandomReLU(100, random_state=0)), ("learn", AIRClassifier(**PAPER))])
    grid = {"learn__gamma": ["auto", 0.1, 1e6], "learn__weighting": ["inverse", "uniform", 0.5]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_["learn__gamma"] != 1e6
    assert search.score(X_test, y_test) > 0.8
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


@every_learner
def test_it_can_be_calibrated_and_cross_validated(learner, iris):
    X, y = iris
    calibrated = CalibratedClassifierCV(clone(learner).set_params(expansion=RandomReLU(50, random_state=0)), cv=3)
    assert calibrated.fit(X, y).score(X, y) > 0.85
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1)
    scores = cross_val_score(clone(learner).set_params(expansion=RandomReLU(50, random_state=0)), X, y, cv=4)
    assert scores.mean() > 0.85
    assert np.all(np.isfinite(cross_val_score(clone(learner), X, y, cv=3, scoring="neg_log_loss")))
    two = y < 2
    assert np.all(cross_val_score(clone(learner), X[two], y[two], cv=3, scoring="roc_auc") > 0.99)


# -- input --
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@every_store
def test_data_frames_give_and_check_feature_names(store, frame):
    X, y = rows(f=3)
    names = ["a", "b", "c"]
    clf = AIRClassifier(0.5, store=store, **PAPER).partial_fit(frame(dict(zip(names, X.T, strict=True))), y)
    assert clf.feature_names_in_.tolist() == names
    plain = AIRClassifier(0.5, store=store, **PAPER).partial_fit(X, y)
    np.testing.assert_allclose(clf.coef_, plain.coef_, rtol=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(frame(dict(zip(["a", "b", "x"], X.T, strict=True))))
    with pytest.raises(ValueError, match=r"feature names should match|Feature names must be in the same order"):
        clf.partial_fit(frame(dict(zip(["b", "a", "c"], X.T, strict=True))), y)
    np.testing.assert_array_equal(clf.class_count_, plain.class_count_)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(clf.predict(X), plain.predict(X))
    assert not hasattr(plain, "feature_names_in_")


@pytest.mark.parametrize("series", [pd.Series, pl.Series], ids=["pandas", "polars"])
@pytest.mark.parametrize("names", [["ant", "bee", "cicada", "dog"], [3, 1, 2, 0]], ids=["strings", "integers"])
def test_labels_may_be_series(series, names):
    X, y = rows()
    y = np.array(names)[y]
    weight = np.linspace(0.5, 2, len(y))
    clf = AIRClassifier(0.5, **PAPER).partial_fit(X, series(y), sample_weight=series(weight))
    plain = AIRClassifier(0.5, **PAPER).partial_fit(X, y, sample_weight=weight)
    assert clf.classes_.tolist() == plain.classes_.tolist() == sorted(names)
    np.testing.assert_array_equal(clf.coef_, plain.coef_)


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
@pytest.mark.parametrize(
    "expansion", [None, RandomReLU(20, random_state=0), GaussianKernel(12, random_state=0)], ids=str
)
@every_store
def test_sparse_rows_are_the_dense_rows(store, expansion, container):
    X, y = rows()
    X[X < 0.5] = 0
    weight = np.linspace(0, 2, len(y))  # one row weighs nothing
    learner = AIRClassifier(0.5, store=store, expansion=expansion, calibrate=False)
    dense = clone(learner).partial_fit(X, y, sample_weight=weight)
    clf = clone(learner).partial_fit(container(X), y, sample_weight=weight)
    np.testing.assert_allclose(clf.coef_, dense.coef_, rtol=1e-9, atol=1e-12)
    for method in ("predict", "predict_proba", "decision_function"):
        np.testing.assert_allclose(getattr(clf, method)(container(X)), getattr(dense, method)(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "expansion", [None, RandomReLU(20, random_state=0), GaussianKernel(12, random_state=0)], ids=str
)
@every_learner
def test_float32_features_give_float32_weights(learner, expansion):
    X, y = rows()
    for dtype, expected in ((np.float32, np.float32), (np.float64, np.float64), (np.int64, np.float64)):
        clf = clone(learner).set_params(expansion=expansion).partial_fit(X.astype(dtype), y)
        assert clf.coef_.dtype == expected
        assert clf.decision_function(X.astype(dtype)).dtype == expected
        assert clf.partial_fit(X, y).coef_.dtype == expected  # the first batch decides


@every_learner
def test_no_rows_change_nothing(learner):
    X, y = rows()
    clf = clone(learner).partial_fit(X[:0], y[:0])
    assert vars(clf).keys() - vars(clone(learner)).keys() == set()
    with pytest.raises(NotFittedError):
        clf.predict(X)
    wide, _ = rows(f=9)
    clf.partial_fit(wide, y)  # nothing was learned, so the width was not settled
    coef = clf.coef_
    np.testing.assert_array_equal(clf.partial_fit(wide[:0], y[:0]).coef_, coef)
    np.testing.assert_array_equal(clf.partial_fit(wide[:0], []).coef_, coef)
    np.testing.assert_array_equal(clf.partial_fit(wide, y, sample_weight=np.zeros(len(y))).coef_, coef)
    assert clf.predict(wide[:0]).shape == (0,)
    assert clf.predict(wide[:0]).dtype == y.dtype
    assert clf.predict_proba(wide[:0]).shape == clf.decision_function(wide[:0]).shape == (0, 4)


@every_learner
def test_rows_that_weigh_nothing_teach_nothing(learner):
    X, y = rows()
    weight = (y != 3).astype(float)
    clf = clone(learner).fit(X, y, sample_weight=weight)
    assert clf.classes_.tolist() == [0, 1, 2]
    np.testing.assert_allclose(clf.coef_, clone(learner).fit(X[y != 3], y[y != 3]).coef_, rtol=1e-9, atol=1e-12)


# -- labels --
@pytest.mark.parametrize(
    "names", [["a", "bb", "ccc", "a much longer name"], ["longest first", "b", "c", "dd"]], ids=str
)
@every_learner
def test_string_labels_are_never_truncated(learner, names):
    X, y = rows(n_classes=4, f=8)
    clf = clone(learner)
    for slot, name in enumerate(names):
        clf.partial_fit(X[y == slot], np.full(np.count_nonzero(y == slot), name))
    assert clf.classes_.tolist() == sorted(names)
    together = clone(learner).fit(X, np.array(names)[y])
    assert set(clf.predict(X)) <= set(names)
    np.testing.assert_allclose(
        clf.set_params(gamma=0.5).coef_, together.set_params(gamma=0.5).coef_, rtol=1e-8, atol=1e-11
    )


@pytest.mark.parametrize("names", [[False, True], [0, 1], [-1.0, 1.0], ["no", "yes"]], ids=str)
@every_store
def test_predictions_have_the_type_of_the_labels(store, names):
    X, y = rows(n_classes=2)
    labels = np.array(names)[y]
    clf = AIRClassifier(store=store, **PAPER).fit(X, labels)
    assert clf.predict(X).dtype == clf.classes_.dtype == labels.dtype
    assert clf.score(X, labels) > 0.6


@every_learner
def test_two_classes_score_one_column_but_have_two_rows_of_weights(learner):
    for n_classes, shape in ((1, (60, 1)), (2, (60,)), (3, (60, 3)), (5, (60, 5))):
        X, y = rows(n_classes=n_classes)
        clf = clone(learner).fit(X, y)
        assert clf.decision_function(X).shape == shape
        assert clf.coef_.shape == (n_classes, 7)
        assert clf.class_count_.shape == clf.class_weight_.shape == (n_classes,)
        assert clf.predict_proba(X).shape == (60, n_classes)
    X, y = rows(n_classes=2)
    clf = clone(learner).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(X), X @ (clf.coef_[1] - clf.coef_[0]), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[(clf.decision_function(X) > 0).astype(int)])


@every_learner
def test_probabilities_sum_to_one_and_agree_with_predictions(learner):
    for n_classes in (1, 2, 3, 5):
        X, y = rows(n_classes=n_classes)
        clf = clone(learner).fit(X, y)
        p = clf.predict_proba(5 * X)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
        assert np.all((p >= 0) & (p <= 1))
        np.testing.assert_array_equal(clf.classes_[p.argmax(axis=1)], clf.predict(5 * X))


@every_learner
def test_declared_classes_are_never_predicted_until_they_are_seen(learner):
    X, y = rows(n_classes=3)
    declared = [-1, 0, 1, 2, 7]
    clf = clone(learner).set_params(gamma=0.5).partial_fit(X, y, classes=declared)
    plain = clone(learner).set_params(gamma=0.5).partial_fit(X, y)
    unseen = np.array([True, False, False, False, True])
    assert clf.classes_.tolist() == declared
    assert np.all(clf.decision_function(X)[:, unseen] == -np.inf)
    assert np.all(clf.predict_proba(X)[:, unseen] == 0)
    assert np.all(clf.coef_[unseen] == 0)
    assert np.all(clf.class_count_[unseen] == 0)
    assert np.all(clf.class_weight_[unseen] == 0)
    np.testing.assert_allclose(clf.coef_[~unseen], plain.coef_, rtol=1e-12)
    np.testing.assert_allclose(clf.predict_proba(X)[:, ~unseen], plain.predict_proba(X), rtol=1e-12)
    np.testing.assert_array_equal(clf.predict(-9 * X), plain.predict(-9 * X))  # however bad the others' scores
    new = X[:5] + 50
    clf.partial_fit(new, np.full(5, 7))
    plain.partial_fit(new, np.full(5, 7))
    assert clf.classes_.tolist() == declared
    assert 7 in clf.predict(new)
    np.testing.assert_allclose(clf.coef_[~np.array([True, False, False, False, False])], plain.coef_, rtol=1e-9)


@every_learner
def test_one_seen_class_among_two_declared_is_the_only_answer(learner):
    X, _ = rows()
    for seen, score in ((0, -np.inf), (1, np.inf)):
        clf = clone(learner).partial_fit(X, np.full(len(X), seen), classes=[0, 1])
        assert np.all(clf.decision_function(X) == score)
        assert np.all(clf.predict(X) == seen)
        assert np.all(clf.predict_proba(X)[:, seen] == 1)


@every_learner
def test_classes_may_be_declared_before_the_first_row(learner):
    X, y = rows(n_classes=2)
    clf = clone(learner).partial_fit(X[:0], y[:0], classes=["a", "b", "c"])
    assert clf.classes_.tolist() == ["a", "b", "c"]
    with pytest.raises(NotFittedError):
        clf.predict(X)
    with pytest.raises(ValueError, match="y holds numbers"):
        clf.partial_fit(X, y)
    assert set(clf.partial_fit(X, np.array(["a", "b"])[y]).predict(X)) <= {"a", "b"}


@every_store
def test_declared_classes_survive_a_merge(store):
    X, y = rows(n_classes=2)
    other = AIRClassifier(0.5, store=store, **PAPER).partial_fit(X, y, classes=[0, 1, 5])
    for empty in (True, False):
        clf = AIRClassifier(0.5, store=store, **PAPER).partial_fit(X[:0], y[:0], classes=[7])
        if not empty:
            clf.partial_fit(X, y + 2)
        assert clf.merge(other).classes_.tolist() == [0, 1, *(() if empty else (2, 3)), 5, 7]


# -- learned attributes --
@every_learner
def test_an_unfitted_learner_has_no_learned_attribute(learner):
    clf = clone(learner)
    for name in ATTRIBUTES:
        assert not hasattr(clf, name)
    for name in ATTRIBUTES:
        assert hasattr(clf.fit(*rows()), name)
    clf.set_params(gamma=0.5)
    assert not hasattr(clf, "gamma_path_")  # there was nothing to search
    assert clf.gamma_ == 0.5


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "score"])
@every_learner
def test_predicting_leaves_the_object_alone(learner, method):
    X, y = rows()
    clf = clone(learner).partial_fit(X, y)
    before = dict(vars(clf))
    getattr(clf, method)(X, y) if method == "score" else getattr(clf, method)(X)
    assert vars(clf).keys() == before.keys()
    assert all(vars(clf)[name] is value for name, value in before.items())


@every_learner
def test_predictions_do_not_change_what_is_learned_next(learner):
    X, y = rows()
    asked, silent = (clone(learner).set_params(gamma=0.5) for _ in range(2))
    for part in np.array_split(np.arange(len(X)), 4):
        asked.partial_fit(X[part], y[part]).predict_proba(X)
        silent.partial_fit(X[part], y[part])
    np.testing.assert_allclose(asked.coef_, silent.coef_, rtol=1e-9, atol=1e-12)


@every_store
def test_what_is_read_is_not_what_is_held(store):
    X, y = rows()
    clf = AIRClassifier(0.5, store=store, **PAPER).partial_fit(X, y)
    coef, count, scores = clf.coef_, clf.class_count_, clf.decision_function(X)
    clf.coef_[:] = 0
    clf.class_count_[:] = 0
    clf.class_weight_[:] = 0
    np.testing.assert_array_equal(clf.coef_, coef)
    np.testing.assert_array_equal(clf.class_count_, count)
    np.testing.assert_array_equal(clf.decision_function(X), scores)


@every_store
def test_what_was_given_is_neither_kept_nor_changed(store):
    X, y = rows()
    weight = np.linspace(0.5, 2, len(y))
    given = X.copy(), y.copy(), weight.copy()
    clf = AIRClassifier(0.5, store=store, **PAPER).partial_fit(*given[:2], sample_weight=given[2])
    for array in given:
        array += 1  # the caller reuses its buffers before anything was solved
    twin = AIRClassifier(0.5, store=store, **PAPER).partial_fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(clf.coef_, twin.coef_)


CHANGES = [{"gamma": 2.0}, {"gamma": "auto"}, {"weighting": "uniform"}, {"weighting": 0.5}, {"scale": "balanced"}]
CHANGES += [{"weighting": {0: 1.0, 1: 3.0, 2: 2.0, 3: 1.0}}, {"weighting": np.sqrt}, {"scale": "none", "gamma": 0.01}]


@pytest.mark.parametrize("change", CHANGES, ids=str)
@every_store
def test_parameters_set_after_learning_are_those_of_a_fresh_fit(store, change):
    X, y = rows()
    clf = AIRClassifier(0.5, store=store, **PAPER).fit(X, y)
    before = clf.coef_
    clf.set_params(**change)
    fresh = AIRClassifier(**({"gamma": 0.5, "store": store} | change), **PAPER).fit(X, y)
    for name in ("coef_", "gamma_", "class_weight_"):
        np.testing.assert_allclose(getattr(clf, name), getattr(fresh, name), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(clf.predict_proba(X), fresh.predict_proba(X), rtol=1e-9)
    assert not np.allclose(clf.coef_, before, rtol=1e-6)
    np.testing.assert_array_equal(clf.set_params(gamma=0.5, weighting="inverse", scale="mean").coef_, before)


@pytest.mark.parametrize("change", [{"weighting": "uniform"}, {"weighting": 3.0}, {"scale": "none"}], ids=str)
@every_store
def test_an_automatic_gamma_follows_the_weighting_and_the_scale(store, change):
    X, y = rows()
    clf = AIRClassifier(store=store, **PAPER).fit(X, y)
    clf.predict(X)
    fresh = AIRClassifier(store=store, **change, **PAPER).fit(X, y)
    np.testing.assert_allclose(clf.set_params(**change).gamma_, fresh.gamma_, rtol=1e-9)
    np.testing.assert_allclose(clf.coef_, fresh.coef_, rtol=1e-7, atol=1e-10)


def test_a_mapping_that_is_changed_in_place_is_noticed():
    X, y = rows()
    weighting = {0: 1.0, 1: 3.0, 2: 2.0, 3: 1.0}
    clf = AIRClassifier(0.5, weighting=weighting, **PAPER).fit(X, y)
    clf.predict(X)
    weighting[0] = 10.0
    np.testing.assert_allclose(clf.coef_, AIRClassifier(0.5, weighting=weighting, **PAPER).fit(X, y).coef_, rtol=1e-9)


# -- copies --
COPIES = {"pickle": lambda clf: pickle.loads(pickle.dumps(clf)), "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("expansion", [None, RandomReLU(20, random_state=0)], ids=str)
@every_learner
def test_a_copy_is_the_same_learner_and_goes_its_own_way(learner, expansion, duplicate):
    X, y = rows()
    clf = clone(learner).set_params(expansion=expansion).partial_fit(X, y, classes=[*range(5)])
    clf.predict(X)
    twin = duplicate(clf)
    np.testing.assert_allclose(twin.coef_, clf.coef_, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(twin.predict_proba(X), clf.predict_proba(X), rtol=1e-12)
    coef, count = clf.coef_, clf.class_count_
    twin.partial_fit(X[:9] + 1, np.full(9, 4))
    assert 4 in twin._learner.state.labels.seen
    np.testing.assert_array_equal(clf.class_count_, count)
    np.testing.assert_array_equal(clf.coef_, coef)
    clf.partial_fit(X[:9] + 1, np.full(9, 4))
    np.testing.assert_allclose(clf.coef_, twin.coef_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
@every_learner
def test_an_unfitted_copy_learns(learner, duplicate):
    twin = duplicate(clone(learner))
    np.testing.assert_array_equal(twin.fit(*rows()).coef_, clone(learner).fit(*rows()).coef_)


def test_a_learner_prints_its_parameters():
    assert repr(AIRClassifier(0.5, store="shared")) == "AIRClassifier(gamma=0.5, store='shared')"
    assert "AIRClassifier" in AIRClassifier(**PAPER)._repr_html_()
