"""Everything random is drawn from a method's own generator."""

from __future__ import annotations

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")

GRADIENT = ["er", "ewc++", "fine-tuning", "icarl", "lwf", "rm", "bic", "cba", "clib", "ewc", "gss", "prs"]
# They decline online streams.
PHASES_ONLY = ["bic"]


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize("on_images", [False, True])
@pytest.mark.parametrize("name", GRADIENT)
def test_the_random_states_of_the_process_are_left_alone(name, on_images, online, take_course, tiny_network):
    if online and name in PHASES_ONLY:
        return
    settings = {"backbone": tiny_network, "unfreeze": True} if on_images else {}
    torch.manual_seed(3)
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    take_course(name, phases=2, at_most=40, online=online, epochs=1, **settings)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert np.random.get_state()[1].tolist() == before[2]  # noqa: NPY002
