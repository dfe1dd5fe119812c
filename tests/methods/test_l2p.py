from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from aircl.methods.prompt import Guidance, PromptPool  # noqa: E402


def test_the_key_loss_draws_chosen_keys_to_their_queries(digits, make, tiny_vit):
    method = make("l2p", backbone=tiny_vit, pool=6, top=2, online=True)
    pool, rows = method.student.prompts, method.rows(digits.images[:16], digits.labels[:16])
    method.meet(rows)
    before, keys = pool.distances(rows["queries"]).detach(), pool.keys.detach().clone()
    chosen = pool.nearest(before, 2)
    torch.testing.assert_close(method.guide(rows, training=True).penalty, 0.5 * before.gather(1, chosen).mean())
    method.update(rows)
    after = pool.distances(rows["queries"]).detach()
    assert after.gather(1, chosen).mean() < before.gather(1, chosen).mean() - 1e-3
    for number in range(6):  # keys that nobody chose have no gradient
        assert torch.equal(pool.keys[number], keys[number]) == (number not in chosen)


def test_without_the_key_loss_keys_stay(digits, make, tiny_vit):
    method = make("l2p", backbone=tiny_vit, key_loss=0, online=True)
    before = method.student.prompts.keys.detach().clone()
    method.learn(digits.images[:16], digits.labels[:16])
    assert torch.equal(method.student.prompts.keys, before)


def test_a_sample_has_the_prompts_of_its_nearest_keys():
    pool = PromptPool(4, (2, 3), 3, generator=torch.Generator().manual_seed(0))
    pool.keys.data = torch.tensor([[1.0, 0, 0], [0, 2, 0], [0, 0, 3], [-1, 0, 0]])
    distances = pool.distances(torch.tensor([[5.0, 1, 0.1], [-1, 0.1, 0.2]]))
    assert pool.nearest(distances, 2).tolist() == [[0, 1], [3, 2]]
    assert pool.nearest(distances, 9).shape == (2, 4)  # no more than there are


def test_the_feature_is_the_mean_of_the_prompt_tokens(digits, make, tiny_vit):
    method = make("l2p", backbone=tiny_vit)
    vit, images = tiny_vit.module, tiny_vit.prepare(digits.images[:3])
    tokens = torch.randn(3, 4, vit.width, generator=torch.Generator().manual_seed(0))
    embedded = vit.embed(images)
    placed = tokens + vit.pos_embed[:, :1]
    whole = vit.forward_tokens(torch.cat([embedded[:, :1], placed, embedded[:, 1:]], 1))
    torch.testing.assert_close(method.student.see(images, Guidance(tokens=tokens)), whole[:, 1:5].mean(1))
    encoded = method.encode(digits.images[:3])
    assert np.array_equal(encoded["inputs"], method.views.tensor(digits.images[:3]).numpy())
