from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import cosine_similarity, cross_entropy  # noqa: E402

from aircl.methods.gradient import mask_logits  # noqa: E402
from aircl.methods.prompt import (  # noqa: E402
    InstanceMask,
    PromptPool,
    contrastive_loss,
    feature_scale,
    focal_factor,
    head_errors,
)


@pytest.fixture
def problem():
    generator = torch.Generator().manual_seed(0)
    W = torch.randn(4, 6, generator=generator, requires_grad=True)
    x = torch.randn(5, 6, generator=generator)
    factors = torch.rand(5, 4, generator=generator)
    return W, x, factors, torch.tensor([0, 2, 2, 1, 0])


@pytest.mark.parametrize("compared", [None, torch.tensor([0, 1, 2])])
def test_the_closed_form_of_head_gradients_is_what_autograd_finds(problem, compared):
    W, x, factors, y = problem
    logits = mask_logits(factors * (x @ W.T), compared)
    losses = cross_entropy(logits, y, reduction="none")
    expected = torch.stack([torch.autograd.grad(loss, W, retain_graph=True)[0] for loss in losses])
    errors = head_errors(logits, y, factors)
    torch.testing.assert_close(errors[:, :, None] * x[:, None], expected)
    # Of a sample and of the batch, the row of the sample's own class.
    cosine = cosine_similarity(expected[torch.arange(5), y], expected.mean(0)[y])
    torch.testing.assert_close(focal_factor(errors, y, x, 0.5), 0.5 + 0.5 * (1 - cosine) ** 2)


def test_a_sample_that_the_batch_ignores_weighs_more(problem):
    _, x, _, _ = problem
    errors = torch.tensor([[-1.0, 1.0]] * 4 + [[1.0, -1.0]])
    factor = focal_factor(errors, torch.zeros(5, dtype=torch.int64), x[:1].expand(5, -1), 0.5)
    torch.testing.assert_close(factor, torch.tensor([0.5] * 4 + [2.5]))  # cosines of 1 and -1


def test_features_are_scaled_by_the_cosine_with_their_class():
    x = torch.tensor([[2.0, 0], [0, 3.0], [-1.0, 0]])
    w = torch.tensor([[5.0, 0], [1.0, 0], [1.0, 0]])
    torch.testing.assert_close(feature_scale(x, w, 0.5)[:, 0], torch.tensor([1 / 0.5, 1 / 1.5, 1 / 2.5]))


def test_the_usage_spreads_choices_over_the_pool():
    pool = PromptPool(5, (1,), 3, generator=torch.Generator().manual_seed(0))
    # All queries are nearest to key 0, the others are all the same and twice as far away.
    pool.keys.data = torch.tensor([[1.0, 0.0, 0.0]] + [[0.5, 3**0.5 / 2, 0.0]] * 4)
    query = torch.tensor([[0.5, -(3**0.5) / 2, 0.0]])  # distances 0.5 and 1.5
    assert pool.nearest(pool.distances(query)).item() == 0
    for _ in range(140):
        pool.count(pool.least_used(pool.distances(query)))
    # distance * usage is the same for all: 0.5 * 60 = 1.5 * 20
    assert pool.usage.sum() == 140
    assert abs(pool.usage[0] - 60) <= 2
    assert (abs(pool.usage[1:] - 20) <= 1).all()


def test_the_method_counts_in_training_only(digits, make, tiny_vit):
    method = make("mvp", backbone=tiny_vit, online=True)
    for start in range(0, 320, 16):
        method.learn(digits.images[start : start + 16], digits.labels[start : start + 16])
    usage = method.prompts.experts.usage.clone()
    assert usage.sum() == 3 * 320
    assert (usage > 0).all()
    method.predict(method.encode(digits.test_images[:50]))
    assert torch.equal(method.prompts.experts.usage, usage)


def test_the_mask_starts_alike_and_follows_the_chosen_prompt():
    mask = InstanceMask(3)
    mask.grow(2)
    chosen = torch.tensor([[0], [2]])
    torch.testing.assert_close(mask(chosen), torch.full((2, 2), 2 * torch.sigmoid(torch.tensor(-1.0)).item()))
    mask.mask.data[1, 2] = 0
    assert mask(chosen)[1, 1] == 1
    mask.grow(3)
    assert mask(chosen).shape == (2, 3)
    assert mask(chosen)[1, 1] == 1


def test_the_contrastive_loss_draws_the_chosen_key_and_drives_the_others_away():
    pool = PromptPool(3, (1,), 4, generator=torch.Generator().manual_seed(1))
    queries = torch.randn(6, 4, generator=torch.Generator().manual_seed(2))
    before = pool.distances(queries)
    chosen = torch.ones(6, 1, dtype=torch.int64)
    contrastive_loss(before, chosen, 0.1).backward()
    pool.keys.data -= 0.01 * pool.keys.grad
    change = (pool.distances(queries) - before).mean(0)
    assert change[1] < 0
    assert change[0] + change[2] > 0


def test_the_memory_holds_images_with_their_queries(digits, make, tiny_vit):
    method = make("mvp-r", backbone=tiny_vit, online=True, memory=20)
    for start in (0, 16, 32):
        method.learn(digits.images[start : start + 16], digits.labels[start : start + 16])
    assert method.samples_kept == 20
    rows = method.memory.rows
    torch.testing.assert_close(rows["queries"], method.student.query(method.views.plain(rows["inputs"]), whole=False))
    assert method.accompany(rows)["queries"].shape == (40, tiny_vit.width)
