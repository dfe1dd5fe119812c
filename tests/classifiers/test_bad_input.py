"""A bad call raises a clear error and leaves the learner, statistics and all, as it was."""

import copy
import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from aircl import ACILClassifier, AIRClassifier
from aircl.engine import StoreError
from aircl.expansion import RandomReLU

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

F = 6
STORES = ("per-class", "shared", "pooled")
LEARNERS = {
    f"{cls.__name__}-{store}": cls(store=store, gamma=0.5, **PAPER)
    for cls in (AIRClassifier, ACILClassifier)
    for store in STORES
}
every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
every_store = pytest.mark.parametrize("store", STORES)


def rows(n, seed, classes=(0, 1, 2), dtype=np.float64):
    """Return n rows of F features and whole-number labels, each class at least once."""
    random = np.random.default_rng(seed)
    y = np.append(np.array(classes), random.choice(classes, n - len(classes)))
    return (random.normal(size=(n, F)) + y[:, None] / 2).astype(dtype), y


def taught(learner, dtype=np.float64, seed=0):
    return clone(learner).partial_fit(*rows(30, seed, dtype=dtype))


def statistics(clf):
    """Everything that was learned, read from the store itself rather than from a solution."""
    store = clf._learner.absorb().statistics
    folded = getattr(store, "folded_pi", np.zeros(store.n_classes))  # a closed class has the weight it was folded with
    return {
        "gram": np.tril(store.gram(np.where(folded == 0, 1.0, folded))),
        "sums": store.sums.copy(),
        "count": store.count,
        "folded": folded.copy(),
        "seen": clf._learner.state.labels.seen.copy(),
        "declared": clf._learner.state.labels.declared.copy(),
        "classes_": clf.classes_.copy(),
        "n_features_in_": clf.n_features_in_,
        "dtype": str(store.space.dtype),
    }


def assert_same_statistics(clf, twin):
    mine, theirs = statistics(clf), statistics(twin)
    scale = np.abs(theirs["gram"]).max()
    np.testing.assert_allclose(mine.pop("gram"), theirs.pop("gram"), rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(mine.pop("sums"), theirs.pop("sums"), rtol=1e-12, atol=1e-12 * np.sqrt(scale))
    np.testing.assert_allclose(mine.pop("count"), theirs.pop("count"), rtol=1e-12)
    for name in mine:
        np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)


def assert_goes_on_like(clf, twin, classes=(1, 2, 3), dtype=np.float64):
    """Both learn one more good batch, with a new class, and end up the same."""
    assert set(vars(clf)) == set(vars(twin))
    X, y = rows(20, 99, classes, dtype)
    assert_same_statistics(clf.partial_fit(X, y), twin.partial_fit(X, y))
    np.testing.assert_allclose(clf.coef_, twin.coef_, rtol=1e-12, atol=1e-14)


# -- batches that no learner can take, whatever it has learned --
def with_cell(value, dtype=np.float64):
    X, y = rows(8, 1, dtype=dtype)
    X[-1, -1] = value  # the last cell: everything before it is fine
    return {"X": X, "y": y}


def with_labels(y):
    return {"X": rows(8, 1)[0], "y": y}


def with_weight(*weight):
    X, y = rows(8, 1)
    return {"X": X, "y": y, "sample_weight": np.array(weight)}


def sparse_with_nan():
    bad = with_cell(np.nan)
    return bad | {"X": sparse.csr_matrix(bad["X"])}


X8, Y8 = rows(8, 1)
BAD_BATCHES = {
    "NaN in X": (with_cell(np.nan), "contains NaN"),
    "NaN in sparse X": (sparse_with_nan(), "contains NaN"),
    "inf in X": (with_cell(np.inf), "contains infinity"),
    "-inf in X": (with_cell(-np.inf), "contains infinity"),
    "float32 inf in X": (with_cell(np.inf, np.float32), "contains infinity"),
    "more rows than labels": ({"X": X8, "y": Y8[:-1]}, "inconsistent numbers of samples"),
    "more labels than rows": ({"X": X8[:-1], "y": Y8}, "inconsistent numbers of samples"),
    "no rows but labels": ({"X": X8[:0], "y": Y8}, "inconsistent numbers of samples|0 sample"),
    "1-d X": ({"X": X8[0], "y": Y8[:1]}, "Expected 2D array"),
    "3-d X": ({"X": X8[:, None], "y": Y8}, "dim 3|dimension"),
    "no columns": ({"X": X8[:, :0], "y": Y8}, "0 feature"),
    "words in X": ({"X": np.full((8, F), "word", dtype=object), "y": Y8}, "could not convert string to float"),
    "complex X": ({"X": X8 * (1 + 1j), "y": Y8}, "Complex data not supported"),
    "no y": (with_labels(None), "requires y to be passed"),
    "list of mixed labels": (with_labels([1, "a"] * 4), "mixes values of the types int, str"),
    "object array of mixed labels": (with_labels(np.array([1, "a"] * 4, dtype=object)), "mixes values of the types"),
    "booleans among numbers": (with_labels([0, True] * 4), "mixes values of the types bool, int"),
    "NaN labels": (with_labels(np.array([0.0, 1.0, np.nan, 1.0] * 2)), "NaN"),
    "infinite labels": (with_labels(np.array([0.0, 1.0, np.inf, 1.0] * 2)), "infinity"),
    "None labels": (with_labels([0, None] * 4), "mixes values of the types NoneType, int"),
    "None labels only": (with_labels([None] * 8), "NoneType"),
    "missing words": (with_labels(np.array(["a", np.nan] * 4, dtype=object)), "mixes values of the types float, str"),
    "2-d y": (with_labels(np.zeros((8, 2), dtype=int)), "1d array"),
    "nested y": (with_labels([[0, 1]] * 8), "1d array"),
    "continuous labels": (with_labels(np.linspace(0, 1, 8)), "continuous"),
    "bytes as labels": (with_labels(np.array([b"a", b"b"] * 4)), "Unknown label type"),
    "dates as labels": (with_labels(np.array(["2024-01-01"] * 8, dtype="datetime64[D]")), "Unknown label type"),
    "numbers that no integer holds": (with_labels([0, 2**70] * 4), "label|y"),
    "negative weight": (with_weight(1, 1, 1, 1, 1, 1, 1, -1e-9), "[Nn]egative"),
    "NaN weight": (with_weight(1, 1, 1, 1, 1, 1, 1, np.nan), "NaN"),
    "infinite weight": (with_weight(1, 1, 1, 1, 1, 1, 1, np.inf), "infinity"),
    "too few weights": (with_weight(1, 1, 1), "sample_weight.shape"),
    "2-d weights": ({"X": X8, "y": Y8, "sample_weight": np.ones((8, 2))}, "1D array or scalar"),
    "squares that overflow": (with_cell(1e200), "Scale the features down"),
    "negative squares that overflow": (with_cell(-1e200), "Scale the features down"),
    "weights that overflow": (with_weight(1, 1, 1, 1, 1, 1, 1, 1e305), "Scale the features down"),
}
every_bad_batch = pytest.mark.parametrize(("batch", "phrase"), BAD_BATCHES.values(), ids=BAD_BATCHES)


@every_learner
@every_bad_batch
def test_a_bad_batch_changes_nothing(learner, batch, phrase):
    clf, twin = taught(learner), taught(learner)
    with pytest.raises(ValueError, match=phrase):
        clf.partial_fit(**batch)
    assert_goes_on_like(clf, twin)


@every_learner
@every_bad_batch
def test_a_failing_fit_leaves_what_was_learned_before(learner, batch, phrase):
    clf, twin = taught(learner), taught(learner)
    X, _ = rows(10, 5)
    with pytest.raises(ValueError, match=phrase):
        clf.fit(**batch)
    np.testing.assert_array_equal(clf.predict(X), twin.predict(X))
    assert_goes_on_like(clf, twin)


@every_store
@every_bad_batch
def test_a_bad_first_batch_leaves_the_learner_unfitted(store, batch, phrase):
    clf = AIRClassifier(store=store, gamma=0.5, **PAPER)
    with pytest.raises(ValueError, match=phrase):
        clf.partial_fit(**batch)
    assert vars(clf) == vars(AIRClassifier(store=store, gamma=0.5, **PAPER))
    with pytest.raises(NotFittedError):
        clf.predict(X8)
    X, y = rows(20, 2)
    wider, words = np.hstack([X, X[:, :2] ** 2]), np.array(["x", "y", "z"])[y]  # another width, labels of another type
    fresh = AIRClassifier(store=store, gamma=0.5, **PAPER).partial_fit(wider, words)
    assert_same_statistics(clf.partial_fit(wider, words), fresh)


# -- batches that only contradict what was learned before --
CONTRADICTIONS = {
    "one column more": ({"X": np.hstack([X8, X8[:, :1]]), "y": Y8}, f"expecting {F} features"),
    "one column less": ({"X": X8[:, :-1], "y": Y8}, f"expecting {F} features"),
    "no rows, one column less": ({"X": X8[:0, :-1], "y": Y8[:0]}, f"expecting {F} features"),
    "strings after whole numbers": (with_labels(np.array(["0", "1"] * 4)), "y holds strings"),
    "objects after whole numbers": (with_labels(np.array(["0", "1"] * 4, dtype=object)), "y holds strings"),
    "booleans after whole numbers": (with_labels(np.array([False, True] * 4)), "y holds booleans"),
    "declared strings": ({"X": X8, "y": Y8, "classes": ["0", "1", "2"]}, "y holds strings"),
    "declared mixed labels": ({"X": X8, "y": Y8, "classes": [0, 1, 2, "a"]}, "mixes values"),
    "new class in a batch that is bad elsewhere": (with_cell(np.nan) | {"y": Y8 + 7}, "contains NaN"),
    "declared classes in a batch whose squares overflow": (
        with_cell(1e200) | {"y": Y8 + 1, "classes": [0, 1, 2, 3, 8]},
        "Scale the features down",
    ),
    "declared classes in a batch that is bad elsewhere": (with_cell(np.nan) | {"classes": [0, 1, 2, 8]}, "NaN"),
}


@every_learner
@pytest.mark.parametrize(("batch", "phrase"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_batch_that_contradicts_the_past_changes_nothing(learner, batch, phrase):
    clf, twin = taught(learner), taught(learner)
    with pytest.raises(ValueError, match=phrase):
        clf.partial_fit(**batch)
    assert_goes_on_like(clf, twin)


@pytest.mark.parametrize(
    ("first", "then"), [(np.array(["a", "b"]), np.array([0, 1])), (np.array([True, False]), [0, 1])]
)
@every_store
def test_labels_keep_the_type_of_the_first_batch(store, first, then):
    X, _ = rows(10, 3, classes=(0, 1))
    clf, twin = (AIRClassifier(1.0, store=store, **PAPER).partial_fit(X, np.tile(first, 5)) for _ in range(2))
    with pytest.raises(ValueError, match="y holds numbers"):
        clf.partial_fit(X, np.tile(then, 5))
    assert_same_statistics(clf.partial_fit(X, np.tile(first, 5)), twin.partial_fit(X, np.tile(first, 5)))


@pytest.mark.parametrize(("value", "dtype"), [(1e30, np.float32), (-1e30, np.float32), (1e100, np.float64)])
@every_learner
def test_large_rows_do_not_overflow_a_float32_learner(learner, value, dtype):
    bad = with_cell(value, dtype)
    clf, twin = taught(learner, np.float32), taught(learner, np.float32)
    with pytest.raises(ValueError, match=r"in float32 .* Scale the features down"):
        clf.partial_fit(**bad)
    assert_goes_on_like(clf, twin, dtype=np.float32)
    with pytest.raises(ValueError, match=r"in float32 .* Scale the features down"):
        clf.predict(bad["X"])
    assert_same_statistics(clf, twin)


def test_a_first_float32_batch_that_overflows_leaves_the_learner_unfitted():
    clf = AIRClassifier(0.5, **PAPER)
    for method in (clf.fit, clf.partial_fit):
        with pytest.raises(ValueError, match=r"in float32 .* Scale the features down"):
            method(**with_cell(1e30, np.float32))
        assert vars(clf) == vars(AIRClassifier(0.5, **PAPER))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
@every_store
def test_a_bad_batch_behind_an_expansion_changes_nothing(store, value):
    clf, twin = (
        AIRClassifier(0.5, store=store, expansion=RandomReLU(9, random_state=0), calibrate=False).partial_fit(
            *rows(30, 0)
        )
        for _ in range(2)
    )
    with pytest.raises(ValueError, match=r"NaN|infinity|Scale the features down"):
        clf.partial_fit(**with_cell(value))
    assert_goes_on_like(clf, twin)


@every_store
def test_a_bad_first_batch_leaves_no_expansion_behind(store):
    clf = AIRClassifier(0.5, store=store, expansion=RandomReLU(9, random_state=0), calibrate=False)
    before = dict(vars(clf))
    with pytest.raises(ValueError, match="Scale the features down"):
        clf.partial_fit(**with_cell(1e200))
    assert vars(clf) == before
    clf.partial_fit(np.ones((3, F + 2)), [0, 1, 1])
    assert clf.n_features_in_ == F + 2


# -- parameters --
BAD_PARAMETERS = {
    "negative gamma": ({"gamma": -1e-9}, "gamma=-1e-09 is not possible"),
    "NaN gamma": ({"gamma": np.nan}, "gamma=nan is not possible"),
    "infinite gamma": ({"gamma": np.inf}, "gamma=inf is not possible"),
    "gamma that is a word": ({"gamma": "foo"}, "gamma='foo' is not possible"),
    "gamma that is a boolean": ({"gamma": True}, "gamma=True is not possible"),
    "gamma that is None": ({"gamma": None}, "gamma=None is not possible"),
    "unknown weighting": ({"weighting": "invers"}, "weighting='invers' is unknown.*'inverse'"),
    "boolean weighting": ({"weighting": True}, "weighting=True is unknown"),
    "NaN weighting": ({"weighting": np.nan}, "weighting=nan is unknown"),
    "unknown scale": ({"scale": "median"}, "scale='median' is unknown.*'balanced'"),
    "unknown store": ({"store": "disk"}, "store='disk' is unknown.*'per-class'"),
    "weighting without the new class": ({"weighting": {0: 1.0, 1: 1.0, 2: 1.0}}, r"no weight for the classes \[3\]"),
}


@every_store
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(("bad", "phrase"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_a_bad_parameter_stops_learning_before_anything_changes(store, method, bad, phrase):
    clf, twin = taught(AIRClassifier(0.5, store=store, **PAPER)), taught(AIRClassifier(0.5, store=store, **PAPER))
    good = clf.get_params()
    clf.set_params(**bad)
    with pytest.raises(ValueError, match=phrase):
        getattr(clf, method)(*rows(20, 1, classes=(0, 1, 2, 3)))
    clf.set_params(**good)
    assert_goes_on_like(clf, twin)


@every_store
@pytest.mark.parametrize(("bad", "phrase"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_a_bad_parameter_stops_a_first_batch(store, bad, phrase):
    clf = AIRClassifier(**({"store": store} | bad), **PAPER)
    with pytest.raises(ValueError, match=phrase):
        clf.partial_fit(*rows(20, 1, classes=(0, 1, 2, 3)))
    assert not hasattr(clf, "classes_")
    assert not hasattr(clf, "n_features_in_")


BAD_RULES = {name: bad for name, bad in BAD_PARAMETERS.items() if "without" not in name}


@every_store
@pytest.mark.parametrize(("bad", "phrase"), BAD_RULES.values(), ids=BAD_RULES)
@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_a_bad_parameter_stops_prediction_and_can_be_set_back(store, method, bad, phrase):
    clf, twin = taught(AIRClassifier(0.5, store=store, **PAPER)), taught(AIRClassifier(0.5, store=store, **PAPER))
    good = clf.get_params()
    clf.set_params(**bad)
    with pytest.raises(ValueError, match=phrase):
        getattr(clf, method)(X8)
    clf.set_params(**good)
    assert_goes_on_like(clf, twin)


@pytest.mark.parametrize(("store", "other"), [*itertools.permutations(STORES, 2)])
def test_a_store_cannot_change_once_something_is_learned(store, other):
    clf, twin = taught(AIRClassifier(0.5, store=store, **PAPER)), taught(AIRClassifier(0.5, store=store, **PAPER))
    clf.set_params(store=other)
    with pytest.raises(ValueError, match="store cannot change"):
        clf.partial_fit(*rows(20, 1))
    assert_goes_on_like(clf.set_params(store=store), twin)


@pytest.mark.parametrize(
    "weighting",
    [lambda count: -count, lambda count: count[:1], lambda count: count * np.nan, lambda count: 0 * count],
    ids=["negative", "too few", "NaN", "all zero"],
)
@every_store
def test_weights_that_are_no_weights_are_refused_when_they_are_used(store, weighting):
    clf, twin = taught(AIRClassifier(0.5, store=store, **PAPER)), taught(AIRClassifier(0.5, store=store, **PAPER))
    clf.set_params(weighting=weighting)
    with pytest.raises(ValueError, match="one finite, non-negative number per class"):
        clf.predict(X8)
    assert_goes_on_like(clf.set_params(weighting="inverse"), twin)


@every_learner
def test_gamma_zero_on_a_singular_problem_is_refused_and_can_be_mended(learner):
    X, y = rows(4, 0)  # fewer rows than features
    clf = clone(learner).set_params(gamma=0).partial_fit(X, y)
    for predict in (clf.predict, clf.predict_proba, clf.decision_function):
        with pytest.raises(ValueError, match="gamma=0 needs second moments of full rank"):
            predict(X)
    twin = clone(learner).set_params(gamma=1.0).partial_fit(X, y)
    np.testing.assert_allclose(clf.set_params(gamma=1.0).coef_, twin.coef_, rtol=1e-12)
    assert_goes_on_like(clf, twin)
    assert clf.set_params(gamma=0).predict(X).shape == (4,)  # by now there are more rows than features


# -- nothing to learn from, nothing to predict with --
@every_learner
def test_fitting_nothing_is_refused_and_keeps_what_was_learned(learner):
    clf, twin = taught(learner), taught(learner)
    with pytest.raises(ValueError, match="0 sample"):
        clf.fit(X8[:0], Y8[:0])
    with pytest.raises(ValueError, match="All sample weights are zero"):
        clf.fit(X8, Y8, sample_weight=np.zeros(8))
    assert_goes_on_like(clf, twin)


@every_learner
def test_fitting_nothing_first_leaves_the_learner_unfitted(learner):
    clf = clone(learner)
    with pytest.raises(ValueError, match="All sample weights are zero"):
        clf.fit(X8, Y8, sample_weight=np.zeros(8))
    assert vars(clf) == vars(clone(learner))


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "forget"])
@every_learner
def test_what_needs_learning_says_so_before_it(learner, method):
    clf = clone(learner)
    arguments = (X8, Y8) if method == "forget" else (X8,)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(clf, method)(*arguments)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        clf.refresh()
    assert vars(clf) == vars(clone(learner))


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
@pytest.mark.parametrize("name", ["NaN in X", "inf in X", "1-d X", "words in X", "complex X", "squares that overflow"])
@every_learner
def test_a_bad_query_is_refused_and_changes_nothing(learner, method, name):
    clf, twin = taught(learner), taught(learner)
    batch, phrase = BAD_BATCHES[name]
    with pytest.raises(ValueError, match=phrase):
        getattr(clf, method)(batch["X"])
    with pytest.raises(ValueError, match=f"expecting {F} features"):
        getattr(clf, method)(X8[:, 1:])
    assert_goes_on_like(clf, twin)


# -- phases of the pooled store --
@pytest.mark.parametrize("cls", [AIRClassifier, ACILClassifier])
def test_a_pooled_class_cannot_return_in_a_later_phase(cls):
    clf, twin = (taught(cls(0.5, store="pooled", **PAPER)).end_phase() for _ in range(2))
    with pytest.raises(StoreError, match=r"closed phase .* Use store='per-class'"):
        clf.partial_fit(*rows(20, 1, classes=(7, 8, 0)))
    assert_goes_on_like(clf, twin, classes=(3, 4))


def test_a_pooled_phase_cannot_be_folded_with_weights_that_look_at_other_classes():
    clf, twin = taught(AIRClassifier(0.5, store="pooled", **PAPER)), taught(AIRClassifier(0.5, store="pooled", **PAPER))
    clf.set_params(weighting=lambda count: count.sum() / count)
    with pytest.raises(StoreError, match="depends on its own count only"):
        clf.end_phase()
    assert_goes_on_like(clf.set_params(weighting="inverse").end_phase(), twin.end_phase(), classes=(3, 4))


def test_pooled_weights_cannot_change_after_folding():
    clf, twin = (taught(AIRClassifier(0.5, store="pooled", **PAPER)).end_phase() for _ in range(2))
    clf.set_params(weighting="uniform")
    for bad in (lambda: clf.predict(X8), clf.end_phase):
        with pytest.raises(StoreError, match="Set weighting= back"):
            bad()
    assert_goes_on_like(clf.set_params(weighting="inverse"), twin, classes=(3, 4))


# -- forgetting --
FORGETTERS = {name: clf for name, clf in LEARNERS.items() if clf.store != "pooled"}
every_forgetter = pytest.mark.parametrize("learner", FORGETTERS.values(), ids=FORGETTERS)
LEARNED, LABELS = rows(30, 0)  # what `taught` teaches
ONES = LABELS == 1
BAD_FORGETS = {
    "rows of a class never learned": ({"X": X8, "y": np.full(8, 7)}, ValueError, r"\[7\] were never learned"),
    "known and unknown classes": ({"X": X8, "y": np.arange(8)}, ValueError, "were never learned"),
    "a class never learned": ({"classes": [0, 7]}, ValueError, r"\[7\] were never learned"),
    "more rows than held": (
        {"X": np.vstack([LEARNED, LEARNED]), "y": np.append(LABELS, LABELS)},
        StoreError,
        "cannot forget a weight of",
    ),
    "more weight than held": (
        {"X": LEARNED, "y": LABELS, "sample_weight": np.full(30, 1.001)},
        StoreError,
        "cannot forget a weight of",
    ),
    "rows never learned": ({"X": 9 * X8, "y": Y8}, StoreError, "not a sum of squares"),
    "as many rows as held, but others": (
        {"X": LEARNED[ONES] + np.linspace(0, 3, F), "y": LABELS[ONES]},
        StoreError,
        "cannot forget these rows",
    ),
    "good rows beside one never learned": (
        {"X": np.vstack([LEARNED[:5], 9 * X8[:1]]), "y": np.append(LABELS[:5], Y8[0])},
        StoreError,
        "not a sum of squares",
    ),
    "X without y": ({"X": X8}, ValueError, "either rows with their labels"),
    "y without X": ({"y": Y8}, ValueError, "either rows with their labels"),
    "nothing": ({}, ValueError, "either rows with their labels"),
    "rows and classes": ({"X": X8, "y": Y8, "classes": [0]}, ValueError, "either rows with their labels"),
    "wrong width": ({"X": LEARNED[:, 1:], "y": LABELS}, ValueError, f"expecting {F} features"),
    "wrong length": ({"X": LEARNED, "y": LABELS[1:]}, ValueError, "inconsistent numbers of samples"),
    "NaN": ({"X": LEARNED * np.nan, "y": LABELS}, ValueError, "NaN"),
    "labels of another type": ({"X": LEARNED, "y": LABELS.astype(str)}, ValueError, "y holds strings"),
    "classes of another type": ({"classes": ["0"]}, ValueError, "y holds strings"),
    "negative weights": ({"X": LEARNED, "y": LABELS, "sample_weight": -np.ones(30)}, ValueError, "[Nn]egative"),
    "squares that overflow": ({"X": LEARNED * 1e200, "y": LABELS}, ValueError, "Scale the features down"),
}


@every_forgetter
@pytest.mark.parametrize(("call", "error", "phrase"), BAD_FORGETS.values(), ids=BAD_FORGETS)
def test_a_bad_forget_changes_nothing(learner, call, error, phrase):
    clf, twin = taught(learner), taught(learner)
    with pytest.raises(error, match=phrase):
        clf.forget(**call)
    assert_goes_on_like(clf, twin)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [F, 90])
@pytest.mark.parametrize("store", ["per-class", "shared"])
def test_rows_never_learned_are_refused_in_either_form_of_a_class(store, n_features, dtype):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(30, n_features)).astype(dtype), np.arange(30) % 3
    clf, twin = (AIRClassifier(0.5, store=store, **PAPER).partial_fit(X, y) for _ in range(2))
    stranger = 5 * random.normal(size=(1, n_features)).astype(dtype)
    with pytest.raises(StoreError, match="cannot forget these rows"):
        clf.forget(stranger, [0])
    assert_same_statistics(clf.end_phase(), twin.end_phase())  # both sealed: equal to the last bit


@pytest.mark.parametrize("store", ["per-class", "shared"])
def test_a_learned_row_with_something_added_that_no_row_has_is_refused(store):
    X, y = np.random.default_rng(0).normal(size=(30, 90)), np.arange(30) % 3
    X[:, -1] = 0
    clf, twin = (AIRClassifier(0.5, store=store, **PAPER).partial_fit(X, y) for _ in range(2))
    changed = X[:1] + np.eye(90)[-1]
    with pytest.raises(StoreError, match="cannot forget these rows"):
        clf.forget(changed, y[:1])
    assert_same_statistics(clf.end_phase(), twin.end_phase())


@pytest.mark.parametrize("cls", [AIRClassifier, ACILClassifier])
@pytest.mark.parametrize("call", [{"X": LEARNED[:1], "y": LABELS[:1]}, {"classes": [0]}], ids=["rows", "classes"])
def test_the_pooled_store_cannot_forget(cls, call):
    clf, twin = taught(cls(0.5, store="pooled", **PAPER)), taught(cls(0.5, store="pooled", **PAPER))
    with pytest.raises(StoreError, match="'pooled' cannot forget"):
        clf.forget(**call)
    assert_goes_on_like(clf, twin)


@pytest.mark.parametrize("cls", [AIRClassifier, ACILClassifier])
def test_the_shared_store_cannot_forget_a_class_without_its_rows(cls):
    clf, twin = taught(cls(0.5, store="shared", **PAPER)), taught(cls(0.5, store="shared", **PAPER))
    with pytest.raises(StoreError, match=r"Pass its rows, forget\(X=..., y=...\)"):
        clf.forget(classes=[0])
    assert_goes_on_like(clf, twin)


# -- merging --
def shard(learner, classes=(5, 6), dtype=np.float64, width=F, **parameters):
    """Return a learner of other classes, so that the pooled store could merge it too."""
    X, y = rows(12, 7, classes, dtype)
    return clone(learner).set_params(**parameters).partial_fit(X[:, :width], y)


UNLIKE = {
    "a word": (lambda learner: "learner", TypeError, "not str"),
    "a class": (lambda learner: type(learner), TypeError, "another aircl classifier"),
    "an expansion": (lambda learner: RandomReLU(), TypeError, "not RandomReLU"),
    "another store": (
        lambda learner: shard(learner, store="shared" if learner.store != "shared" else "per-class"),
        StoreError,
        "store: .* here",
    ),
    "another dtype": (lambda learner: shard(learner, dtype=np.float32), StoreError, "dtype: 'float64' here, 'float32'"),
    "another width": (lambda learner: shard(learner, width=F - 1), StoreError, "number of features: 6 here, 5 there"),
    "an expansion there, none here": (
        lambda learner: shard(learner, expansion=RandomReLU(F, random_state=0)),
        StoreError,
        "expansion: None against",
    ),
    "labels of another type": (
        lambda learner: clone(learner).partial_fit(X8, np.array(["a", "b"] * 4)),
        ValueError,
        "y holds strings",
    ),
}


@every_learner
@pytest.mark.parametrize(("make", "error", "phrase"), UNLIKE.values(), ids=UNLIKE)
def test_unlike_does_not_merge_with_unlike(learner, make, error, phrase):
    clf, twin = taught(learner), taught(learner)
    with pytest.raises(error, match=phrase):
        clf.merge(make(learner))
    assert_goes_on_like(clf, twin)


@every_store
def test_expansions_of_different_seeds_do_not_merge(store):
    one, two = (
        AIRClassifier(0.5, store=store, expansion=RandomReLU(9, random_state=seed), calibrate=False) for seed in (1, 2)
    )
    clf, twin = taught(one), taught(one)
    with pytest.raises(StoreError, match="the same expansion with the same random_state"):
        clf.merge(shard(two))
    assert_same_statistics(clf.merge(shard(one)), twin.merge(shard(one)))
    assert_goes_on_like(clf, twin)


@every_learner
def test_a_learner_does_not_merge_with_itself_or_its_copy(learner):
    clf, twin = taught(learner), taught(learner)
    for other in (clf, copy.deepcopy(clf), copy.deepcopy(clf).partial_fit(*rows(12, 7, classes=(5, 6)))):
        with pytest.raises(StoreError, match="counted twice"):
            clf.merge(other)
    assert_goes_on_like(clf, twin)


@every_learner
def test_a_shard_merged_twice_is_noticed(learner):
    other = shard(learner)
    clf, twin = taught(learner).merge(other), taught(learner).merge(other)
    with pytest.raises(StoreError, match="counted twice"):
        clf.merge(other)
    other.partial_fit(*rows(9, 8, classes=(8, 9)))
    with pytest.raises(StoreError, match="counted twice"):  # a later state
        clf.merge(other)
    with pytest.raises(StoreError, match="counted twice"):  # through a third one that has merged it
        clf.merge(shard(learner, classes=(10, 11)).merge(other))
    assert_goes_on_like(clf, twin)


@every_learner
def test_the_refused_shard_stays_as_it_was(learner):
    clf, other, twin = taught(learner), shard(learner, width=F - 1), shard(learner, width=F - 1)
    with pytest.raises(StoreError):
        clf.merge(other)
    assert_same_statistics(other, twin)


def test_pooled_learners_of_one_class_do_not_merge():
    learner = AIRClassifier(0.5, store="pooled", **PAPER)
    clf, twin = taught(learner), taught(learner)
    with pytest.raises(StoreError, match="share no class"):
        clf.merge(shard(learner, classes=(2, 5)))
    assert_goes_on_like(clf, twin)


@pytest.mark.parametrize("learned", [True, False], ids=["learned", "unlearned"])
def test_pooled_learners_of_different_weightings_do_not_merge_once_folded(learned):
    uniform = AIRClassifier(0.5, store="pooled", weighting="uniform", **PAPER)
    clf = taught(uniform) if learned else clone(uniform)
    with pytest.raises(StoreError, match="different weightings"):
        clf.merge(shard(uniform, weighting="inverse").end_phase())


@every_store
def test_an_unlearned_learner_does_not_take_over_a_shard_of_another_kind(store):
    plain, expanded = (
        AIRClassifier(0.5, store=store, **PAPER),
        AIRClassifier(0.5, store=store, expansion=RandomReLU(9), calibrate=False),
    )
    for clf, other in ((plain, expanded), (expanded, plain)):
        before = dict(vars(clf))
        with pytest.raises(StoreError, match="Make them equal"):
            clf.merge(shard(other))
        assert vars(clf) == before
