"""A stream of a few digits, and methods and backbones that go through it on a device."""

from __future__ import annotations

import functools
import importlib.util
import warnings
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(autouse=True, scope="module")
def _torch():
    pytest.importorskip("torch", reason="torch is not installed")


@functools.cache  # tensors of one test may be kept by a cache of the engine, and come back in another
def load(name):
    """Return a module beside this file."""
    spec = importlib.util.spec_from_file_location(f"devices_{name}", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def far(monkeypatch):
    """A function that calls another one on a device that is elsewhere, where nothing may be left open."""
    import torch

    elsewhere, strict = load("elsewhere"), load("strict")
    # Views of tensor subclasses cannot be had in inference mode.
    monkeypatch.setattr(torch, "inference_mode", lambda mode=True: torch.no_grad())

    def call(function, *args, **kwargs):
        with warnings.catch_warnings(), elsewhere.Elsewhere(), strict.Strict():
            # Of parameters on "meta" torch believes that they have no values, and that copying into them is in vain.
            warnings.filterwarnings("ignore", "for .*: copying from a non-meta parameter")
            return function(*args, **kwargs)

    call.device = elsewhere.DEVICE
    return call


@pytest.fixture(scope="session")
def digits():
    from aircl.data import load_dataset

    train = load_dataset("digits").train
    places = np.concatenate([np.flatnonzero(train.labels == label)[:2] for label in range(4)])
    return np.asarray(train.inputs[places]), train.labels[places]
