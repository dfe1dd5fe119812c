"""Torch tensors in, torch tensors out, on their device; that the laws hold for them too is in test_laws.py."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from aircl import ACILClassifier, AIRClassifier, GaussianKernel, RandomReLU, StoreError

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

torch = pytest.importorskip("torch", reason="torch is not installed")

every_store = pytest.mark.parametrize("store", ["per-class", "shared", "pooled"])
every_expansion = pytest.mark.parametrize(
    "expansion", [RandomReLU(50, random_state=0), GaussianKernel(50, sigma=5.0, random_state=0)], ids=str
)


def problem(n=300, f=12, C=4, seed=0):
    """A long tail, so that some classes are factors and others packed."""
    rng = np.random.default_rng(seed)
    tail = 0.4 ** np.arange(C)
    y = np.concatenate([np.arange(C), rng.choice(C, size=n - C, p=tail / tail.sum())])
    return rng.normal(size=(n, f)) + 2 * rng.normal(size=(C, f))[y], y


def learn(clf, X, y, w=None, batches=5):
    for rows in np.array_split(np.arange(len(y)), batches):
        clf.partial_fit(X[rows], y[rows], sample_weight=None if w is None else w[rows])
    return clf


def same(tensor, array, rtol=1e-9):
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_allclose(tensor.numpy(), array, rtol=rtol, atol=rtol * np.abs(array).max())


# -- the same numbers as with NumPy --
@every_store
@pytest.mark.parametrize("weighting", ["inverse", "uniform", "effective", 0.5, {0: 1.0, 1: 2.0, 2: 3.0, 3: 1.5}])
@pytest.mark.parametrize("gamma", ["auto", 0.5])
@pytest.mark.parametrize("f", [6, 60])
def test_tensors_give_what_arrays_give(store, weighting, gamma, f):
    X, y = problem(f=f)
    w = np.random.default_rng(1).choice([0.5, 1.0, 3.0], size=len(y))
    options = {"gamma": gamma, "weighting": weighting, "store": store}
    ours = learn(AIRClassifier(**options, **PAPER), torch.from_numpy(X), torch.from_numpy(y), torch.from_numpy(w))
    theirs = learn(AIRClassifier(**options, **PAPER), X, y, w)
    assert ours.gamma_ == pytest.approx(theirs.gamma_, rel=1e-9)
    for name in ("coef_", "class_count_", "class_weight_"):
        same(getattr(ours, name), getattr(theirs, name))
    same(ours.decision_function(torch.from_numpy(X)), theirs.decision_function(X))
    same(ours.predict_proba(torch.from_numpy(X)), theirs.predict_proba(X), rtol=1e-6)
    np.testing.assert_array_equal(ours.predict(torch.from_numpy(X)), theirs.predict(X))
    assert ours.score(torch.from_numpy(X), torch.from_numpy(y)) == theirs.score(X, y)


@every_store
def test_a_batch_larger_than_the_buffer_and_arrays_that_are_read_only(store):
    X, y = problem(n=10_000, f=8)
    w = np.linspace(0.0, 2.0, len(y))  # one row weighs nothing
    for array in (X, y, w):
        array.setflags(write=False)
    ours = AIRClassifier(1.0, store=store, **PAPER).fit(torch.tensor(X), y, sample_weight=w)
    same(ours.coef_, AIRClassifier(1.0, store=store, **PAPER).fit(X, y, sample_weight=w).coef_)


@pytest.mark.parametrize("store", ["per-class", "pooled"])
def test_equals_ridge(store):
    X, y = problem()
    clf = learn(AIRClassifier(0.3, store=store, **PAPER), torch.from_numpy(X), y)
    pi = 1 / np.bincount(y)
    oracle = Ridge(alpha=0.3, fit_intercept=False).fit(X, np.eye(4)[y], sample_weight=(pi / pi.mean())[y])
    same(clf.coef_, oracle.coef_)


@pytest.mark.parametrize("f", [40, 600])
def test_wide_packed_classes_choose_the_same_gamma(f):
    """Beyond 512 features traces are estimated, by the same sign vectors for both kinds of array."""
    X, y = problem(n=1400, f=f, C=3)
    ours, theirs = AIRClassifier(**PAPER).fit(torch.from_numpy(X), y), AIRClassifier(**PAPER).fit(X, y)
    same(torch.from_numpy(ours.gamma_path_.criterion), theirs.gamma_path_.criterion)
    assert ours._learner.state.statistics.own_moments[0].packed is not None


@every_expansion
@pytest.mark.parametrize("frozen", [False, True])
def test_expansions_give_the_same_features(expansion, frozen):
    X, y = problem()
    if frozen:  # fitted on arrays, used on tensors
        expansion = FrozenEstimator(copy.deepcopy(expansion).fit(X))
    ours = AIRClassifier(0.1, expansion=expansion, calibrate=False).fit(torch.from_numpy(X), y)
    theirs = AIRClassifier(0.1, expansion=expansion, calibrate=False).fit(X, y)
    same(ours.coef_, theirs.coef_, rtol=1e-7)
    same(ours.expansion_.transform(torch.from_numpy(X[:7])), theirs.expansion_.transform(X[:7]))


@every_expansion
def test_expansions_of_more_components_than_rows_and_of_float32(expansion):
    X, _ = problem(n=20)
    H = copy.deepcopy(expansion).fit(torch.from_numpy(X).float()).transform(torch.from_numpy(X))
    assert H.dtype == torch.float32
    same(H, copy.deepcopy(expansion).fit(X).transform(X), rtol=1e-5)
    with pytest.raises(ValueError, match="fitted on torch tensors on cpu"):
        copy.deepcopy(expansion).fit(torch.from_numpy(X)).transform(X)


# -- what comes out --
@pytest.mark.parametrize(
    ("given", "held"),
    [
        (torch.float64, torch.float64),
        (torch.float32, torch.float32),
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.int32, torch.float64),
        (torch.bool, torch.float64),
    ],
)
def test_dtypes(given, held):
    X, y = problem()
    X = torch.from_numpy(X).to(given)
    clf = AIRClassifier(1.0, **PAPER).fit(X, torch.from_numpy(y))
    assert clf.coef_.dtype == clf.decision_function(X).dtype == held
    assert clf.class_count_.dtype == clf.predict_proba(X).dtype == torch.float64
    same(clf.coef_, AIRClassifier(1.0, **PAPER).fit(X.double().numpy(), y).coef_, rtol=1e-4)


@pytest.mark.parametrize("labels", [torch.tensor([5, 7]), torch.tensor([False, True]), torch.tensor([1.0, 3.0])])
def test_labels_of_tensors_come_back_as_tensors(labels):
    X, y = problem(C=2)
    clf = AIRClassifier(1.0, **PAPER).fit(torch.from_numpy(X), labels[y])
    predicted = clf.predict(torch.from_numpy(X))
    assert isinstance(predicted, torch.Tensor)
    assert (predicted == labels[y]).double().mean() > 0.9
    assert clf.predict(torch.zeros(0, 12)).shape == (0,)
    assert clf.decision_function(torch.from_numpy(X)).shape == (300,)
    assert isinstance(clf.classes_, np.ndarray)


def test_strings_come_back_as_arrays():
    X, y = problem()
    clf = AIRClassifier(1.0, **PAPER).fit(torch.from_numpy(X), np.array(["a", "bb", "ccc", "d"])[y])
    assert isinstance(clf.predict(torch.from_numpy(X)), np.ndarray)
    assert clf.predict(torch.from_numpy(X)).dtype.kind == "U"
    assert clf.score(torch.from_numpy(X), np.array(["a", "bb", "ccc", "d"])[y]) > 0.8


def test_declared_classes_are_not_predicted():
    X, y = problem()
    clf = AIRClassifier(1.0, **PAPER).partial_fit(torch.from_numpy(X), y, classes=torch.arange(6))
    assert clf.coef_.shape == (6, 12)
    assert torch.isneginf(clf.decision_function(torch.from_numpy(X))[:, 4:]).all()
    assert clf.predict(torch.from_numpy(X)).max() <= 3


def test_no_gradient_is_recorded_and_the_input_is_left_alone():
    X, y = problem()
    X = torch.from_numpy(X).requires_grad_()
    before = X.detach().clone()
    w = torch.ones(len(y), requires_grad=True)
    for store in ("per-class", "shared", "pooled"):
        clf = AIRClassifier(1.0, store=store, **PAPER).fit(X, y, sample_weight=2 * w)
        assert not clf.decision_function(X).requires_grad
    np.testing.assert_array_equal(X.detach(), before)


@every_store
@pytest.mark.parametrize("expansion", [None, RandomReLU(30, random_state=0)])
def test_what_is_learned_in_inference_mode_can_be_updated_outside(store, expansion):
    X, y = problem()
    X = torch.from_numpy(X)
    clf = AIRClassifier(1.0, store=store, expansion=expansion, calibrate=False)
    whole = AIRClassifier(1.0, store=store, expansion=expansion, calibrate=False).fit(X, y)
    with torch.inference_mode():
        features = X[:150] + 0.0
        learn(clf, features[:100], y[:100])
        clf.predict(features)
    learn(clf, features[100:], y[100:150])
    learn(clf, X[150:], y[150:])
    same(clf.coef_, whole.coef_.numpy())


@every_store
@pytest.mark.parametrize("gamma", ["auto", 1.0])
@pytest.mark.parametrize("expansion", [None, RandomReLU(80, random_state=0)])
def test_features_and_statistics_never_leave_the_device(store, gamma, expansion, monkeypatch):
    X, y = problem(n=2000, f=70, C=20)
    X, y, w = torch.from_numpy(X), torch.from_numpy(y), torch.ones(2000)

    def guarded(original):
        def method(self, *args, **kwargs):
            assert self.numel() <= 2000, f"a tensor of shape {tuple(self.shape)} goes to the CPU"
            return original(self, *args, **kwargs)

        return method

    for name in ("numpy", "__array__", "cpu", "tolist"):
        monkeypatch.setattr(torch.Tensor, name, guarded(getattr(torch.Tensor, name)))
    with pytest.raises(AssertionError, match="goes to the CPU"):
        np.asarray(X)
    clf = learn(AIRClassifier(gamma, store=store, expansion=expansion, calibrate=False), X, y, w, batches=3)
    clf.decision_function(X)
    clf.predict_proba(X)
    clf.predict(X)
    clf.end_phase()
    if expansion is None:  # else its matrix is hashed, on the CPU
        other = learn(AIRClassifier(gamma, store=store, **PAPER), X, y + 20, batches=1)
        clf.merge(other).predict(X)
    if store != "pooled":
        clf.forget(X[:50], y[:50]).predict(X)


# -- one kind of array on one device --
def state(clf):
    return copy.deepcopy({name: value for name, value in vars(clf).items() if name != "_learner"}), clf.coef_


def unchanged(clf, before):
    names, coef = before
    assert vars(clf).keys() - {"_learner"} == names.keys()
    np.testing.assert_array_equal(np.asarray(clf.coef_), np.asarray(coef))


@pytest.mark.parametrize("method", ["partial_fit", "forget", "predict", "decision_function", "predict_proba"])
def test_the_other_kind_of_array_is_refused_with_advice(method):
    X, y = problem()
    tensor = torch.from_numpy(X)
    labels = (y,) if method in ("partial_fit", "forget") else ()
    for learned, given, advice in (
        (tensor, X, r"torch\.from_numpy\(X\)\.to\('cpu'\)"),
        (X, tensor, r"X\.numpy\(force=True\)"),
        (tensor, tensor.to("meta"), r"X\.to\('cpu'\)"),
    ):
        clf = AIRClassifier(1.0, **PAPER).fit(learned, y)
        before = state(clf)
        with pytest.raises(ValueError, match=advice):
            getattr(clf, method)(given, *labels)
        unchanged(clf, before)


def test_fit_may_change_the_kind_of_array():
    X, y = problem()
    clf = AIRClassifier(1.0, **PAPER).fit(X, y).fit(torch.from_numpy(X), y)
    assert isinstance(clf.coef_, torch.Tensor)
    assert isinstance(clf.fit(X, y).coef_, np.ndarray)


@every_store
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X.clone().index_fill_(1, torch.tensor([2]), torch.nan), "NaN"),
        (lambda X: X.clone().index_fill_(1, torch.tensor([2]), torch.inf), "infinity"),
        (lambda X: X[:, :5], "12 features"),
        (lambda X: X[0], "2D"),
        (lambda X: X + 0j, "[Cc]omplex"),
        (lambda X: X.to_sparse(), "to_dense"),
        (lambda X: X[:-1], "inconsistent numbers of samples"),
        (lambda X: X * 1e160, "Scale the features down"),
    ],
)
def test_a_bad_tensor_is_refused_and_changes_nothing(store, spoil, message):
    X, y = problem()
    X = torch.from_numpy(X)
    clf = AIRClassifier(1.0, store=store, **PAPER).fit(X, y)
    before = state(clf)
    with pytest.raises(ValueError, match=message):
        clf.partial_fit(spoil(X), y)
    unchanged(clf, before)
    fresh = AIRClassifier(1.0, store=store, **PAPER)
    if "features" not in message or "Scale" in message:
        with pytest.raises(ValueError, match=message):
            fresh.partial_fit(spoil(X), y)
        assert not hasattr(fresh, "n_features_in_")


def test_bad_weights_and_labels_are_refused():
    X, y = problem()
    X = torch.from_numpy(X)
    clf = AIRClassifier(1.0, **PAPER).fit(X, y)
    before = state(clf)
    for options in ({"sample_weight": -torch.ones(300)}, {"sample_weight": torch.ones(3)}):
        with pytest.raises(ValueError, match="sample_weight"):
            clf.partial_fit(X, y, **options)
    with pytest.raises(ValueError, match="whole numbers"):
        clf.partial_fit(X, torch.full((300,), torch.nan))
    with pytest.raises(ValueError, match="strings"):
        clf.partial_fit(X, ["a"] * 300)
    unchanged(clf, before)


def test_rows_that_were_not_learned_cannot_be_forgotten():
    for store in ("per-class", "shared"):
        for f in (6, 60):
            X, y = problem(f=f)
            clf = AIRClassifier(1.0, store=store, **PAPER).fit(torch.from_numpy(X), y)
            before = state(clf)
            with pytest.raises(StoreError, match="not all learned"):
                clf.forget(torch.from_numpy(100 * X[:5]), y[:5])
            unchanged(clf, before)


def test_a_memory_limit_is_refused(tmp_path):
    X, y = problem()
    clf = AIRClassifier(1.0, memory_limit="4GB", **PAPER)
    with pytest.raises(ValueError, match="memory_limit=None"):
        clf.partial_fit(torch.from_numpy(X), y)
    assert not hasattr(clf, "_learner")
    clf.fit(X, y).save(tmp_path / "limited")
    with pytest.raises(ValueError, match="Load it without"):
        AIRClassifier.load(tmp_path / "limited", device="cpu")


def test_a_foreign_expansion_is_refused():
    X, y = problem()
    with pytest.raises(ValueError, match="StandardScaler turned a tensor"):
        AIRClassifier(expansion=StandardScaler(), calibrate=False).fit(torch.from_numpy(X), y)


def test_an_expansion_of_ones_own_may_return_half_precision_with_a_gradient():
    X, y = problem()
    layer = torch.nn.Linear(12, 20).double()
    halves = FunctionTransformer(lambda X: layer(X).half(), check_inverse=False)
    clf = AIRClassifier(1.0, expansion=halves, calibrate=False).fit(torch.from_numpy(X), y)
    scores = clf.decision_function(torch.from_numpy(X))
    assert scores.dtype == torch.float32
    assert not scores.requires_grad


def test_arrays_and_tensors_do_not_merge():
    X, y = problem()
    ours, theirs = AIRClassifier(1.0, **PAPER).fit(torch.from_numpy(X), y), AIRClassifier(1.0, **PAPER).fit(X, y)
    with pytest.raises(StoreError, match="'torch tensors on cpu' here, 'NumPy arrays' there"):
        ours.merge(theirs)
    assert isinstance(AIRClassifier(1.0, **PAPER).merge(ours).coef_, torch.Tensor)


# -- files and copies --
@every_store
@pytest.mark.parametrize("expansion", [None, RandomReLU(30, random_state=0), GaussianKernel(30, random_state=0)])
@pytest.mark.parametrize("f", [12, 61])
def test_files_are_the_same_for_both_kinds(store, expansion, f, tmp_path):
    X, y = problem(f=f)
    tensor = torch.from_numpy(X)
    options = {"gamma": 1.0, "store": store, "expansion": expansion}
    ours, theirs = (learn(AIRClassifier(**options, calibrate=False), given, y) for given in (tensor, X))
    if store == "pooled":
        ours.end_phase(), theirs.end_phase()
    ours.save(tmp_path / "ours")
    theirs.save(tmp_path / "theirs")
    as_arrays, as_tensors = AIRClassifier.load(tmp_path / "ours"), AIRClassifier.load(tmp_path / "theirs", device="cpu")
    assert isinstance(as_arrays.coef_, np.ndarray)
    same(as_tensors.coef_, as_arrays.coef_, rtol=1e-8)
    same(ours.coef_, as_arrays.coef_, rtol=1e-8)
    as_arrays.partial_fit(X + 1, y + 10)
    as_tensors.partial_fit(tensor + 1, y + 10)
    same(as_tensors.coef_, as_arrays.coef_, rtol=1e-8)
    AIRClassifier.load(tmp_path / "ours", device=torch.device("cpu")).decision_function(tensor)


@every_store
def test_pickles_and_copies_are_sealed_and_go_on(store):
    X, y = problem(f=60)
    X = torch.from_numpy(X)
    clf = learn(AIRClassifier(1.0, store=store, **PAPER), X[:200], y[:200])
    whole = AIRClassifier(1.0, store=store, **PAPER).fit(X, y)
    for copied in (pickle.loads(pickle.dumps(clf)), copy.deepcopy(clf)):
        assert copied._learner.state.is_absorbed
        np.testing.assert_allclose(learn(copied, X[200:], y[200:]).coef_, whole.coef_, rtol=1e-9, atol=1e-12)


def test_acil_learns_tensors_too():
    X, y = problem()
    same(ACILClassifier(1.0, **PAPER).fit(torch.from_numpy(X), y).coef_, ACILClassifier(1.0, **PAPER).fit(X, y).coef_)


def test_torch_is_not_imported_for_arrays(tmp_path):
    code = (
        "import sys, numpy as np, aircl\n"
        "X, y = np.random.default_rng(0).normal(size=(60, 5)), np.arange(60) % 3\n"
        "clf = aircl.AIRClassifier(expansion=aircl.RandomReLU(9), calibrate=False).fit(X, y)\n"
        "clf.predict_proba(X), clf.score(X, y), clf.forget(X[:2], y[:2])\n"
        "clf.save('m.safetensors'), aircl.AIRClassifier.load('m.safetensors').predict(X)\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
