from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import save_file

from aircl.data.arrays import DataError, Request
from aircl.data.arrays.npz import NpySource, NpzSource
from aircl.data.arrays.tensors import SafetensorsSource

LABELLED = Request("y")
ALL = {"integers", "strings", "booleans"}
SAVERS = {
    "npz": (NpzSource, np.savez),
    "compressed": (NpzSource, np.savez_compressed),
    "safetensors": (SafetensorsSource, lambda path, **arrays: save_file(arrays, path)),
}


@pytest.fixture(params=SAVERS)
def saved(request, tmp_path):
    cls, save = SAVERS[request.param]

    def write(request=LABELLED, **arrays):
        path = tmp_path / f"t.{'safetensors' if cls is SafetensorsSource else 'npz'}"
        save(path, **arrays)
        return cls(path, request)

    return write


X = np.arange(12.0).reshape(4, 3)
Y = np.array([1, 2, 1, 2])


def test_batches(saved):
    source = saved(X=X, y=Y)
    first, second = source.batches(3, "integers")
    assert (source.n_rows, source.n_features, source.feature_names) == (4, 3, None)
    np.testing.assert_array_equal(np.vstack([first.X, second.X]), X)
    np.testing.assert_array_equal(np.concatenate([first.y, second.y]), Y)
    assert (first.start, second.start) == (0, 3)


def test_which_array_holds_the_features(saved):
    assert saved(X=X, Z=-X, y=Y).n_features == 3
    np.testing.assert_array_equal(next(saved(Z=-X, y=Y).batches(9, "integers")).X, -X)
    np.testing.assert_array_equal(next(saved(Request(None, "Z"), X=X, Z=-X).batches(9)).X, -X)
    with pytest.raises(DataError, match=r"2 arrays with two dimensions \('U', 'V'\)"):
        saved(U=X, V=X, y=Y)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i1", "f8"), ("u8", "f8"), ("?", "f8")],
)
def test_precision_follows_the_array(dtype, expected, saved):
    assert next(saved(X=X.astype(dtype), y=Y).batches(9, "integers")).X.dtype == expected


@pytest.mark.parametrize("dtype", ["i4", "u8", "f8", "?"])
def test_labels(dtype, saved):
    source = saved(X=X, y=(Y - 1).astype(dtype))
    kind = "booleans" if dtype == "?" else "integers"
    assert source.label_kinds(ALL) == {kind}
    y = next(source.batches(9, kind)).y
    assert y.tolist() == [0, 1, 0, 1]
    assert y.dtype == (bool if dtype == "?" else np.int64)


@pytest.mark.parametrize("dtype", ["U", "S"])
def test_strings_in_npz(dtype, tmp_path):
    np.savez_compressed(tmp_path / "t.npz", X=X, y=np.array(["a", "long", "a", "b"]).astype(dtype))
    source = NpzSource(tmp_path / "t.npz", Request("y"))
    assert source.label_kinds(ALL) == {"strings"}
    assert [label for batch in source.batches(3, "strings") for label in batch.y.tolist()] == ["a", "long", "a", "b"]


def test_safetensors_have_no_strings(tmp_path):
    save_file({"X": X, "y": Y}, tmp_path / "t.safetensors")
    source = SafetensorsSource(tmp_path / "t.safetensors", Request("y"))
    with pytest.raises(DataError, match="a safetensors file cannot hold any"):
        source.label_kinds({"strings"})


@pytest.mark.parametrize(
    ("arrays", "request_", "message"),
    [
        ({"X": X}, Request("y"), "no array 'y' for --label"),
        ({"X": X, "y": Y}, Request("y", "Z"), "no array 'Z' for --features"),
        ({"X": X, "y": Y[:3]}, Request("y"), r"labels 'y' have shape \(3,\)"),
        ({"X": X, "y": X}, Request("y"), r"shape should be \(4,\)"),
        ({"X": X[0], "y": Y}, Request("y"), r"features 'X' are of type float64 and shape \(3,\)"),
        ({"X": np.where(X == 5, np.inf, X), "y": Y}, Request("y"), "row 2, feature 3: inf"),
        ({"X": X, "y": Y / 2}, Request("y"), "row 1: the label 0.5 is not a whole number"),
    ],
)
def test_what_cannot_be_read(arrays, request_, message, saved):
    with pytest.raises(DataError, match=message):
        list(saved(request_, **arrays).batches(9, "integers"))


def test_pickled_and_structured_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "t.npz", X=X, y=np.array([1, "a", None, 2], dtype=object))
    with pytest.raises(DataError, match="only unpickling could read"):
        NpzSource(tmp_path / "t.npz", Request("y"))
    np.savez(tmp_path / "t.npz", X=np.zeros((2, 2), dtype=[("a", "f8")]))
    with pytest.raises(DataError, match="should be numbers"):
        NpzSource(tmp_path / "t.npz", Request())


def test_arrays_stored_by_columns(tmp_path):
    np.savez(tmp_path / "t.npz", first=Y, X=np.asfortranarray(X), y=Y)
    source = NpzSource(tmp_path / "t.npz", Request("y"))
    np.testing.assert_array_equal(np.vstack([batch.X for batch in source.batches(3, "integers")]), X)
    np.savez_compressed(tmp_path / "t.npz", X=np.asfortranarray(X), y=Y)
    with pytest.raises(DataError, match="ascontiguousarray"):
        list(NpzSource(tmp_path / "t.npz", Request("y")).batches(3, "integers"))


@pytest.mark.parametrize("keep", [0, 10, 300, 900])
def test_truncated_files(keep, saved):
    path, cls = (source := saved(X=X, y=Y)).path, type(source)
    path.write_bytes(path.read_bytes()[: min(keep, path.stat().st_size - 1)])
    with pytest.raises(DataError, match="truncated, damaged or foreign"):
        cls(path, Request("y"))


def test_a_flipped_bit_is_noticed_in_npz(tmp_path):
    np.savez(tmp_path / "t.npz", X=X, y=Y)
    content = bytearray((tmp_path / "t.npz").read_bytes())
    content[content.index(X.tobytes()) + 3] ^= 1
    (tmp_path / "t.npz").write_bytes(content)
    with pytest.raises(DataError, match="CRC"):
        list(NpzSource(tmp_path / "t.npz", Request("y")).batches(9, "integers"))


def test_npy(tmp_path):
    np.save(tmp_path / "t.npy", X)
    source = NpySource(tmp_path / "t.npy", Request())
    np.testing.assert_array_equal(np.vstack([batch.X for batch in source.batches(3)]), X)
    with pytest.raises(DataError, match="no labels"):
        NpySource(tmp_path / "t.npy", Request("y"))
    (tmp_path / "t.npy").write_bytes(b"text")
    with pytest.raises(DataError, match="not a plain NumPy array"):
        NpySource(tmp_path / "t.npy", Request())


def test_memory_does_not_grow_with_the_file(saved):
    n, f, size = 40_000, 32, 500
    source = saved(X=np.random.default_rng(0).normal(size=(n, f)), y=np.arange(n) % 3)
    tracemalloc.start()
    try:
        for _ in source.batches(size, "integers"):
            pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * size * f * 8
