import numpy as np

from aircl.backbones.fingerprint import fingerprint


def test_names_values_shapes_dtypes_and_transform_all_count_and_the_order_does_not():
    a, b = np.arange(6, dtype=np.float32), np.ones(3, dtype=np.float32)
    seen = [
        fingerprint({"a": a, "b": b}, {"size": 8}),
        fingerprint({"a": a, "b": b}, {"size": 9}),
        fingerprint({"a": a}, {"size": 8}),
        fingerprint({"a": b, "b": a}, {"size": 8}),
        fingerprint({"a": a.reshape(2, 3), "b": b}, {"size": 8}),
        fingerprint({"a": a.view(np.int32), "b": b}, {"size": 8}),
        fingerprint({"a": a + 1, "b": b}, {"size": 8}),
    ]
    assert len(set(seen)) == len(seen)
    assert seen[0] == fingerprint({"b": b, "a": a}, {"size": 8})
    assert seen[0] == fingerprint({"b": b, "a": np.repeat(a, 2)[::2]}, {"size": 8})
    assert all(len(digest) == 64 and int(digest, 16) >= 0 for digest in seen)


def test_scalars_and_empty_arrays_have_fingerprints():
    assert fingerprint({"steps": np.array(3)}, {}) != fingerprint({"steps": np.array(4)}, {})
    assert fingerprint({"none": np.empty((0, 3))}, {}) != fingerprint({"none": np.empty((0, 4))}, {})
