"""A saved learner goes on where it stopped; a file that is not whole is refused with the reason."""

import ast
import hashlib
import inspect
import json
import os
import struct
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.base import clone
from sklearn.decomposition import PCA

from aircl import ACILClassifier, AIRClassifier
from aircl.classifiers import FileError, persistence
from aircl.classifiers import file as format_
from aircl.expansion import GaussianKernel, RandomReLU

# The papers' regression to the letter.
PAPER = {"expansion": None, "calibrate": False}

F = 5
STORES = ("per-class", "shared", "pooled")
every_store = pytest.mark.parametrize("store", STORES)
LABELS = {
    "int": np.arange(7),
    "string": np.array(["ant", "bee", "caterpillar", "dog", "elephant", "fox", "gnu"]),
    "float": np.arange(7.0),
    "bool": np.array([False, True]),
}
COLUMNS = [f"feature {j}" for j in range(F)]


def stream(labels="int", dtype=np.float64):
    """Return three batches; the second and the third bring classes that the ones before did not have."""
    random = np.random.default_rng(0)
    names = LABELS[labels]
    batches = []
    for n, classes in ((24, (0, 1, 2)), (20, (1, 2, 3)), (30, (1, 3, 4, 5))):
        y = np.append(classes, random.choice(classes, n - len(classes))) % len(names)
        batches.append(((random.normal(size=(n, F)) + y[:, None]).astype(dtype), names[y]))
    return batches


def tolerance(clf):
    """Return how far two ways of adding the same numbers may differ."""
    return {"rtol": 1e-3, "atol": 1e-4} if clf.coef_.dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-11}


def assert_same_learner(one, two):
    assert type(one) is type(two)
    assert one.classes_.tolist() == two.classes_.tolist()
    assert one.classes_.dtype.kind == two.classes_.dtype.kind
    assert one._learner.state.labels.seen.tolist() == two._learner.state.labels.seen.tolist()
    assert one._learner.state.labels.declared.tolist() == two._learner.state.labels.declared.tolist()
    assert one._learner.state.lineage == two._learner.state.lineage
    assert one.n_features_in_ == two.n_features_in_
    assert one.coef_.dtype == two.coef_.dtype
    np.testing.assert_array_equal(one.class_count_, two.class_count_)
    np.testing.assert_allclose(one.gamma_, two.gamma_, **tolerance(one))
    np.testing.assert_allclose(one.class_weight_, two.class_weight_, **tolerance(one))
    np.testing.assert_allclose(one.coef_, two.coef_, **tolerance(one))
    assert (
        getattr(one, "feature_names_in_", np.array([])).tolist()
        == getattr(two, "feature_names_in_", np.array([])).tolist()
    )


def saved_and_loaded(clf, path, **needed):
    """Return the loaded twin; what it shows is what the saved one shows."""
    clf.save(path)
    return type(clf).load(path, **needed)


def assert_goes_on(clf, path, batches, **needed):
    """Stop after the first batch, go on in the loaded learner: the same as never having stopped."""
    first, *rest = batches
    clf.partial_fit(*first)
    twin = saved_and_loaded(clf, path, **needed)
    assert_same_learner(twin, clf)
    for X, y in rest:
        if clf.store == "pooled":
            clf.end_phase(), twin.end_phase()
            new = ~np.isin(y, clf.classes_)
            X, y = X[new], y[new]
        clf.partial_fit(X, y)
        twin.partial_fit(X, y)
        assert_same_learner(twin, clf)
        np.testing.assert_allclose(twin.predict_proba(X), clf.predict_proba(X), **tolerance(clf))
    return twin


CLASSIFIERS = {
    f"{cls.__name__}-{store}": cls(gamma, store=store, **PAPER)
    for cls, gamma in ((AIRClassifier, "auto"), (ACILClassifier, 0.5))
    for store in STORES
}
every_classifier = pytest.mark.parametrize("classifier", CLASSIFIERS.values(), ids=CLASSIFIERS)


# -- save, load, continue == never stopped --
@every_classifier
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("labels", LABELS)
def test_a_loaded_learner_goes_on_as_if_it_had_never_stopped(classifier, labels, dtype, tmp_path):
    assert_goes_on(clone(classifier), tmp_path / "m.safetensors", stream(labels, dtype))


@every_classifier
def test_a_loaded_learner_is_the_one_that_was_never_saved(classifier, tmp_path):
    # Saving seals; here the other one is not even sealed.
    first, *_ = stream()
    straight = clone(classifier).partial_fit(*first)
    twin = saved_and_loaded(clone(classifier).partial_fit(*first), tmp_path / "m")
    straight._learner.state = replace(straight._learner.state, lineage=twin._learner.state.lineage)
    assert_same_learner(twin, straight)


@every_store
def test_a_loaded_learner_keeps_many_features_and_few_rows(store, tmp_path):
    random = np.random.default_rng(1)  # classes held as factors
    X, y = random.normal(size=(30, 60)), np.arange(30) % 4
    assert_goes_on(AIRClassifier(store=store, **PAPER), tmp_path / "m", [(X, y), (X[:9] ** 2, y[:9] + 4)])


@pytest.mark.parametrize(
    "expansion", [RandomReLU(20, random_state=3), RandomReLU(20, init="normal"), GaussianKernel(12, sigma=3.0)], ids=str
)
@pytest.mark.parametrize("random_state", [None, 5])
@every_store
def test_the_expansion_is_saved(store, expansion, random_state, tmp_path):
    clf = AIRClassifier(store=store, expansion=expansion, random_state=random_state, calibrate=False)
    twin = assert_goes_on(clf, tmp_path / "m", stream())
    assert twin.expansion.get_params() == expansion.get_params()
    assert twin.random_state == random_state


@pytest.mark.parametrize("seed", [np.random.RandomState(3), np.int64(3)], ids=["generator", "NumPy integer"])
def test_what_was_drawn_from_a_generator_is_saved(seed, tmp_path):
    assert_goes_on(
        AIRClassifier(expansion=RandomReLU(20, random_state=seed), calibrate=False), tmp_path / "m", stream()
    )
    assert_goes_on(
        AIRClassifier(expansion=RandomReLU(20), random_state=seed, calibrate=False), tmp_path / "m", stream()
    )


def test_another_transformer_has_to_be_given_again_and_be_the_same(tmp_path):
    (X, y), *_ = stream()
    path = tmp_path / "m"
    clf = AIRClassifier(0.5, expansion=PCA(3), calibrate=False).partial_fit(X, y)
    clf.save(path)
    with pytest.raises(FileError, match=r"expansion PCA, which no file can hold.*load\(path, expansion=...\)"):
        AIRClassifier.load(path)
    for wrong in (PCA(3), PCA(2).fit(X), PCA(3).fit(X[1:]), RandomReLU(3, random_state=0).fit(X)):
        with pytest.raises(FileError, match="the one given is not the same"):
            AIRClassifier.load(path, expansion=wrong)
    twin = assert_goes_on(clone(clf), path, stream(), expansion=PCA(3).fit(X))
    again = saved_and_loaded(twin, path, expansion=PCA(3).fit(X))
    assert_same_learner(again, twin)


def test_a_learner_whose_transformer_was_given_again_can_be_fitted_anew(tmp_path):
    (X, y), (X2, y2), _ = stream()
    frozen = PCA(3).fit(X)
    clf = saved_and_loaded(
        AIRClassifier(0.5, expansion=PCA(3), calibrate=False).fit(X, y), tmp_path / "m", expansion=frozen
    )
    straight = AIRClassifier(0.5, **PAPER).fit(frozen.transform(X2), y2)
    np.testing.assert_allclose(clf.fit(X2, y2).coef_, straight.coef_, rtol=1e-10)


@every_store
def test_a_transformer_that_was_given_again_still_merges(store, tmp_path):
    (X, y), (X2, y2), _ = stream()
    frozen = PCA(3).fit(X)
    clf = saved_and_loaded(
        AIRClassifier(0.5, store=store, expansion=PCA(3), calibrate=False).fit(X, y), tmp_path / "m", expansion=frozen
    )
    new = y2 == 3
    other = AIRClassifier(0.5, store=store, expansion=clf.expansion, calibrate=False).fit(X2[new], y2[new])
    assert clf.merge(other).classes_.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "weighting",
    [
        0.5,
        np.float32(0.25),
        "effective",
        {label: 1 / (1 + label) for label in range(7)},
        {np.int64(label): np.float32(label + 1) for label in range(7)},
    ],
    ids=["float", "NumPy float", "name", "mapping", "NumPy mapping"],
)
@every_store
def test_the_weighting_is_saved(store, weighting, tmp_path):
    assert_goes_on(AIRClassifier(0.5, weighting=weighting, store=store, **PAPER), tmp_path / "m", stream())


@pytest.mark.parametrize("labels", ["string", "bool", "float"])
def test_a_mapping_keeps_the_type_of_its_labels(labels, tmp_path):
    weighting = {label: 2.0 + i for i, label in enumerate(LABELS[labels].tolist())}
    twin = assert_goes_on(AIRClassifier(0.5, weighting=weighting, **PAPER), tmp_path / "m", stream(labels))
    assert twin.weighting == weighting
    assert [type(label) for label in twin.weighting] == [type(label) for label in weighting]


@every_store
def test_a_callable_weighting_has_to_be_given_again(store, tmp_path):
    def by_square_root(count):
        return count**-0.5

    clf = AIRClassifier(0.5, weighting=by_square_root, store=store, **PAPER)
    assert_goes_on(clf, tmp_path / "m", stream(), weighting=by_square_root)
    with pytest.raises(FileError, match=r"callable weighting \(by_square_root\).*load\(path, weighting=...\)"):
        AIRClassifier.load(tmp_path / "m")


@every_store
def test_feature_names_are_saved(store, tmp_path):
    batches = [(pd.DataFrame(X, columns=COLUMNS), y) for X, y in stream("string")]
    path = tmp_path / "m"
    twin = assert_goes_on(
        AIRClassifier(store=store, expansion=RandomReLU(9, random_state=0), calibrate=False), path, batches
    )
    X, _ = batches[0]
    with pytest.raises(ValueError, match="feature names should match"):
        twin.predict(X.rename(columns={"feature 0": "another"}))
    twin.set_params(random_state=1)
    assert twin.feature_names_in_.dtype == object


@every_store
def test_declared_classes_are_saved(store, tmp_path):
    (X, y), *_ = stream("string")
    clf = AIRClassifier(store=store, **PAPER).partial_fit(X, y, classes=[*LABELS["string"], "hippopotamus"])
    twin = saved_and_loaded(clf, tmp_path / "m")
    assert_same_learner(twin, clf)
    assert "hippopotamus" in twin.classes_
    assert np.all(twin.decision_function(X)[:, ~np.isin(twin.classes_, y)] == -np.inf)


@every_store
def test_declared_classes_are_saved_before_anything_is_learned(store, tmp_path):
    clf = AIRClassifier(store=store, **PAPER).partial_fit(np.zeros((0, F)), [], classes=["ant", "bee"])
    twin = saved_and_loaded(clf, tmp_path / "m")
    assert twin.classes_.tolist() == ["ant", "bee"]


@pytest.mark.parametrize("expansion", [None, RandomReLU(7, random_state=1)], ids=str)
@every_classifier
def test_an_unfitted_learner_keeps_its_parameters(classifier, expansion, tmp_path):
    clf = clone(classifier).set_params(expansion=expansion, random_state=4, memory_limit="1GB")
    twin = saved_and_loaded(clf, tmp_path / "m")
    assert str(twin.get_params()) == str(clf.get_params())
    assert not hasattr(twin, "classes_")
    batch, *_ = stream()
    np.testing.assert_array_equal(twin.fit(*batch).coef_, clf.fit(*batch).coef_)


@every_store
def test_all_parameters_are_saved(store, tmp_path):
    clf = AIRClassifier(
        3, weighting="uniform", scale="balanced", store=store, memory_limit=10**9, random_state=7, **PAPER
    )
    clf.partial_fit(*stream()[0])
    assert saved_and_loaded(clf, tmp_path / "m").get_params() == clf.get_params()


@every_store
def test_a_gamma_that_lags_goes_on_lagging(store, tmp_path):
    (X, y), *_ = stream()
    clf = AIRClassifier(store=store, **PAPER).partial_fit(X, y)
    chosen = clf.gamma_
    clf.partial_fit(3 * X[:6] + 1, y[:6])
    twin = saved_and_loaded(clf, tmp_path / "m")
    assert twin.gamma_ == clf.gamma_ == chosen  # not chosen again: the counts have not doubled
    np.testing.assert_array_equal(twin.gamma_path_.gamma, clf.gamma_path_.gamma)
    np.testing.assert_array_equal(twin.gamma_path_.criterion, clf.gamma_path_.criterion)
    for learner in (twin, clf):
        learner.partial_fit(3 * X + 1, y)  # now they have
    assert twin.gamma_ == clf.gamma_ != chosen


@pytest.mark.parametrize("store", ["per-class", "shared"])
def test_a_learner_that_forgot_everything_can_be_saved(store, tmp_path):
    (X, y), (X2, y2), _ = stream("string")
    clf = AIRClassifier(0.5, store=store, **PAPER).partial_fit(X, y).forget(X, y)
    twin = saved_and_loaded(clf, tmp_path / "m")
    assert_same_learner(twin.partial_fit(X2, y2), clf.partial_fit(X2, y2))


@every_store
def test_lineage_travels_with_the_file(store, tmp_path):
    (X, y), (X2, y2), _ = stream()
    clf = AIRClassifier(0.5, store=store, **PAPER).partial_fit(X, y)
    new = y2 == 3
    other = AIRClassifier(0.5, store=store, **PAPER).partial_fit(X2[new], y2[new])
    clf.merge(other)
    twin = saved_and_loaded(clf, tmp_path / "m")
    for known in (other, clf, saved_and_loaded(other, tmp_path / "other")):
        with pytest.raises(ValueError, match="counted twice"):
            twin.merge(known)


@every_store
def test_saving_changes_nothing(store, tmp_path):
    clf = AIRClassifier(store=store, **PAPER).partial_fit(*stream()[0])
    before, coef = set(vars(clf)), clf.coef_
    clf.save(tmp_path / "m")
    assert set(vars(clf)) == before
    np.testing.assert_array_equal(clf.coef_, coef)


def test_a_path_may_be_a_string_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clf = AIRClassifier(0.5, **PAPER).partial_fit(*stream()[0])
    clf.save("m.safetensors")
    assert os.listdir() == ["m.safetensors"]
    assert_same_learner(AIRClassifier.load("m.safetensors"), clf)


# -- what is refused, and why --
@pytest.fixture
def path(tmp_path):
    """A file of a learner, and nothing else in its folder."""
    path = tmp_path / "folder" / "m.safetensors"
    path.parent.mkdir()
    AIRClassifier(weighting={label: 1.0 for label in range(7)}, **PAPER).partial_fit(
        *stream()[0], classes=range(7)
    ).save(path)
    return path


def parts(path):
    """Return a safetensors file's header as parsed JSON and its data."""
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def write(path, header, data):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def rewrite(path, change):
    """Change the aircl header of a file and give it a checksum that fits."""
    header, _ = parts(path)
    arrays = {}
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    inner = json.loads(header["__metadata__"]["aircl"])
    change(inner)
    text = json.dumps(inner, sort_keys=True)
    save_file(arrays, path, {"aircl": text, "sha256": format_._checksum(text, arrays)})


def test_a_truncated_file_is_refused_at_every_length(path):
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    lengths = [0, 1, 7, 8, 9, size // 2, 8 + size - 1, 8 + size, 8 + size + 1, (8 + size + len(content)) // 2]
    for length in [*lengths, len(content) - 8, len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(FileError, match=r"m\.safetensors .*truncated"):
            AIRClassifier.load(path)
    path.write_bytes(content)
    AIRClassifier.load(path)


def test_bytes_at_the_end_are_refused(path):
    path.write_bytes(path.read_bytes() + b"\0" * 8)
    with pytest.raises(FileError, match="truncated, damaged or foreign"):
        AIRClassifier.load(path)


@pytest.mark.parametrize("flip", [0x01, 0x04, 0x20, 0x80, 0xFF])
def test_a_flipped_byte_is_refused_or_harmless(path, flip):
    content = path.read_bytes()
    whole = AIRClassifier.load(path)
    (size,) = struct.unpack("<Q", content[:8])
    positions = {*range(8), *range(8, 8 + size, 7), *range(8 + size, len(content), 23), len(content) - 1}
    for position in sorted(positions):
        damaged = bytearray(content)
        damaged[position] ^= flip
        path.write_bytes(damaged)
        try:
            twin = AIRClassifier.load(path)
        except FileError:
            continue
        assert_same_learner(twin, whole)


def test_every_flipped_byte_of_the_data_is_refused_for_its_checksum(path):
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    for position in range(8 + size, len(content), 11):
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        with pytest.raises(FileError, match="does not match its checksum"):
            AIRClassifier.load(path)


@pytest.mark.parametrize(
    ("old", "new"), [('"gamma": "auto"', '"gamma": 1.0'), ('"lineage": ["', '"lineage": ["0'), ("per-class", "pooled")]
)
def test_an_edited_header_is_refused(path, old, new):
    header, data = parts(path)
    assert old in header["__metadata__"]["aircl"]
    header["__metadata__"]["aircl"] = header["__metadata__"]["aircl"].replace(old, new, 1)
    write(path, header, data)
    with pytest.raises(FileError, match="does not match its checksum"):
        AIRClassifier.load(path)


def test_a_missing_checksum_is_refused(path):
    header, data = parts(path)
    del header["__metadata__"]["sha256"]
    write(path, header, data)
    with pytest.raises(FileError, match="does not match its checksum"):
        AIRClassifier.load(path)


@pytest.mark.parametrize("version", [2, 1000, None, "1", 1.5, [1]])
def test_another_format_is_refused_even_with_the_right_checksum(path, version):
    rewrite(path, lambda header: header.update(format=version))
    with pytest.raises(FileError, match=r"has format .* this aircl reads up to format 1\. Install a newer aircl"):
        AIRClassifier.load(path)


def test_a_rewritten_file_with_the_right_checksum_is_read(path):
    rewrite(path, lambda header: header["parameters"].update(gamma=2.0))  # so that the refusals above mean something
    assert AIRClassifier.load(path).gamma == 2.0


WRONG = {
    "no parameters": lambda header: header.pop("parameters"),
    "no class": lambda header: header.pop("class"),
    "no learned part": lambda header: header.pop("learned"),
    "an unknown parameter": lambda header: header["parameters"].update(learning_rate=1),
    "an unknown store": lambda header: header["parameters"].update(store="disk"),
    "more labels than classes": lambda header: header["labels"].update(seen=[0, 1, 2, 3]),
    "fewer labels than classes": lambda header: header["labels"].update(seen=[0, 1]),
    "a label twice": lambda header: header["labels"].update(seen=[0, 1, 1]),
    "an unknown label type": lambda header: header["labels"].update(type="word"),
    "labels of another type": lambda header: header["labels"].update(seen=["a", "b", "c"]),
    "another width": lambda header: header["learned"].update(n_features=F + 1),
    "another dtype": lambda header: header["learned"].update(dtype="float32"),
    "half a gamma": lambda header: header["learned"].update(gamma=[1.0]),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_header_that_does_not_fit_its_arrays_is_refused_even_with_the_right_checksum(path, wrong):
    AIRClassifier(weighting="inverse", **PAPER).partial_fit(*stream()[0]).refresh().save(path)
    rewrite(path, wrong)
    with pytest.raises(FileError):
        AIRClassifier.load(path)


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", "null", '"text"'])
def test_a_header_that_is_no_header_is_refused(path, text):
    arrays = {"statistics.count": np.zeros(2)}
    save_file(arrays, path, {"aircl": text, "sha256": format_._checksum(text, arrays)})
    with pytest.raises(FileError):
        AIRClassifier.load(path)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"sha256": "0" * 64}])
def test_a_foreign_safetensors_file_is_refused(path, metadata):
    save_file({"weight": np.ones((3, 3))}, path, metadata)
    with pytest.raises(FileError, match=r"m\.safetensors is a safetensors file, but not one that aircl wrote"):
        AIRClassifier.load(path)


@pytest.mark.parametrize(
    "content", [b"x", b"a,b,c\n1,2,3\n" * 50, b"PK\x03\x04" * 50, b"\x80\x04\x95" * 50, b"\0" * 64]
)
def test_a_file_of_another_kind_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(FileError, match="not a whole safetensors file"):
        AIRClassifier.load(path)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    for missing in (tmp_path / "nowhere.safetensors", tmp_path):
        with pytest.raises(FileNotFoundError, match=f"{missing.name} does not exist or is not a file"):
            AIRClassifier.load(missing)


@pytest.mark.parametrize(("wrote", "reads"), [(AIRClassifier, ACILClassifier), (ACILClassifier, AIRClassifier)])
def test_a_file_of_another_classifier_is_refused_with_its_name(wrote, reads, tmp_path):
    wrote().partial_fit(*stream()[0]).save(tmp_path / "m")
    with pytest.raises(FileError, match=rf"is of the class {wrote.__name__}: load it with {wrote.__name__}\.load"):
        reads.load(tmp_path / "m")


# -- atomic --
class HalfWritten:
    """Bytes of arrays: all of them for the checksum, then one for the file, then no more."""

    def __init__(self):
        self.calls = {}

    def __call__(self, array):
        place = array.__array_interface__["data"][0]
        self.calls[place] = self.calls.get(place, 0) + 1
        if list(self.calls.values()).count(2) == 2:
            raise OSError("No space left on device")
        return memoryview(array.tobytes())


def refused(*arguments):
    raise PermissionError("not allowed")


@pytest.mark.parametrize(
    ("where", "failure"),
    [
        ("classifiers.file._bytes", HalfWritten()),
        ("storage.writing.os.replace", refused),
        ("storage.writing.os.fsync", refused),
    ],
    ids=["while writing", "while renaming", "while syncing"],
)
def test_a_save_that_fails_leaves_the_old_file_and_no_other(path, where, failure, monkeypatch):
    old = path.read_bytes()
    clf = AIRClassifier.load(path).partial_fit(*stream()[1])
    with monkeypatch.context() as patch:
        patch.setattr(f"aircl.{where}", failure)
        with pytest.raises(OSError, match=r"No space left|not allowed"):
            clf.save(path)
    assert path.read_bytes() == old
    assert os.listdir(path.parent) == [path.name]
    clf.save(path)
    assert_same_learner(AIRClassifier.load(path), clf)
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(
    ("where", "failure"), [("classifiers.file._bytes", HalfWritten()), ("storage.writing.os.replace", refused)]
)
def test_a_first_save_that_fails_leaves_no_file_at_all(tmp_path, where, failure, monkeypatch):
    monkeypatch.setattr(f"aircl.{where}", failure)
    with pytest.raises(OSError, match=r"No space left|not allowed"):
        AIRClassifier(**PAPER).partial_fit(*stream()[0]).save(tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_the_file_is_on_disk_before_it_takes_the_old_ones_place(path, monkeypatch):
    happened = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (happened.append("sync"), fsync(descriptor)))
    monkeypatch.setattr(os, "replace", lambda *names: (happened.append("replace"), replace(*names)))
    AIRClassifier.load(path).save(path)
    assert happened[:2] == ["sync", "replace"]


# -- nothing in a file is executed, and no sample is in it --
@pytest.mark.parametrize("module", [persistence, format_])
def test_the_module_imports_nothing_that_could_execute_a_file(module):
    imported = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module.split(".")[0])
    assert not imported & {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib", "importlib", "torch"}
    called = {node.func.id for node in ast.walk(ast.parse(inspect.getsource(module))) if is_plain_call(node)}
    assert not called & {"eval", "exec", "compile", "__import__"}


def is_plain_call(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


@every_classifier
def test_a_file_is_json_and_numbers(classifier, tmp_path):
    clf = clone(classifier).set_params(expansion=RandomReLU(9, random_state=0)).partial_fit(*stream("string")[0])
    clf.save(tmp_path / "m")
    header, data = parts(tmp_path / "m")
    metadata = header.pop("__metadata__")
    assert metadata.keys() == {"aircl", "sha256"}
    assert json.loads(metadata["aircl"])["format"] == 1
    assert len(metadata["sha256"]) == len(hashlib.sha256().hexdigest())
    assert {entry["dtype"] for entry in header.values()} <= {"F64", "F32", "I64"}
    assert max(entry["data_offsets"][1] for entry in header.values()) == len(data)


@every_classifier
def test_the_same_learner_gives_the_same_header_and_the_same_numbers(classifier, tmp_path):
    clf = clone(classifier).partial_fit(*stream("string")[0])
    twin = saved_and_loaded(clf, tmp_path / "a")
    clf.save(tmp_path / "b")
    twin.save(tmp_path / "c")
    assert parts(tmp_path / "b") == parts(tmp_path / "a")
    assert parts(tmp_path / "c") == parts(tmp_path / "a")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [4, 40])
@every_store
def test_no_row_of_a_class_of_three_or_more_is_in_the_file(store, n_features, dtype, tmp_path):
    random = np.random.default_rng(2)
    X = random.normal(size=(40, n_features)).astype(dtype)
    X[::2, : n_features // 2] = 0  # leading zero columns, as after a ReLU
    y = np.append(np.arange(40 - 1) % 8, 8)  # class 8 has one row
    clf = AIRClassifier(0.5, store=store, **PAPER).partial_fit(X[:20], y[:20])
    clf.predict(X)
    clf.partial_fit(X[20:], y[20:]).save(tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    found = {i for i, row in enumerate(X) if is_in(row, content) or is_in(-row, content)}
    assert not found & set(np.flatnonzero(y < 8))


def is_in(row, content):
    return row.tobytes() in content or row.astype(np.float64).tobytes() in content
