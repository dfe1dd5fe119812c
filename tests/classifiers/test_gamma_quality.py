"""gamma="auto" loses little against the best gamma of a grid, on real data that it never saw."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from aircl.expansion import GaussianKernel

spec = importlib.util.spec_from_file_location("gamma_benchmark", Path(__file__).parents[2] / "benchmarks" / "gamma.py")
benchmark = sys.modules["gamma_benchmark"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(benchmark)


@pytest.mark.parametrize("store", ["per-class", "shared", "pooled"])
@pytest.mark.parametrize("ratio", [1 / 10, 1 / 25])  # of the smallest class to the largest
@pytest.mark.parametrize("width", [None, 150, 400])  # raw, expanded, and expanded beyond the number of samples
@pytest.mark.parametrize("name", benchmark.SMALL)
def test_auto_loses_less_than_two_points_on_average(name, width, ratio, store):
    splits = [benchmark.expanded(benchmark.long_tailed(name, seed, ratio), width, seed) for seed in range(10)]
    accuracy, lost = np.mean([benchmark.loss(split, store) for split in splits], axis=0)
    assert accuracy > 75
    assert lost < 2


def test_features_that_are_nearly_orthogonal_are_not_interpolated():
    """A narrow kernel: every sample of a tail class has a leverage near 1, and its residual vanishes with gamma."""
    splits = []
    for seed in range(3):
        X, y, X_test, y_test = benchmark.long_tailed("digits", seed, 1 / 25)
        kernel = GaussianKernel(300, random_state=seed).fit(X)
        splits.append((kernel.transform(X), y, kernel.transform(X_test), y_test))
    assert np.mean([benchmark.loss(split, "shared")[1] for split in splits]) < 2
