import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from aircl.backbones.checkpoint import vit_from_weights  # noqa: E402
from aircl.backbones.vit import VisionTransformer, insert  # noqa: E402

HEADS = 4


def tensors(weights):
    return {name: torch.from_numpy(value) for name, value in weights.items()}


def noise(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.fixture
def weights(random_weights):
    return random_weights()


@pytest.fixture
def vit(weights):
    return vit_from_weights(tensors(weights), "weights", heads=HEADS).eval().requires_grad_(False)


@pytest.mark.parametrize("distilled", [False, True])
@pytest.mark.parametrize("heads", [1, 4])
def test_the_forward_pass_is_the_one_written_out(random_weights, written_out_vit, distilled, heads):
    weights = random_weights(distilled=distilled)
    vit = vit_from_weights(tensors(weights), "weights", heads=heads).eval()
    images = noise(5, 3, 12, 12)
    expected = written_out_vit(weights, images, heads)
    with torch.inference_mode():
        tokens = vit.forward_tokens(vit.embed(torch.from_numpy(images)))
        features = vit(torch.from_numpy(images))
    assert tokens.shape == (5, 10 + distilled, 24)
    np.testing.assert_allclose(tokens, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(features, expected[:, 0], rtol=1e-5, atol=1e-5)


def test_prompts_come_after_the_class_token(vit, weights, written_out_vit):
    images, prompts = noise(5, 3, 12, 12), noise(5, 2, 24, seed=2)
    tokens = insert(vit.embed(torch.from_numpy(images)), torch.from_numpy(prompts))
    expected = written_out_vit(weights, images, HEADS, prompts=prompts)
    assert tokens.shape == (5, 12, 24)
    np.testing.assert_array_equal(tokens[:, 1:3], prompts)
    np.testing.assert_allclose(vit.forward_tokens(tokens), expected, rtol=1e-5, atol=1e-5)


def test_prefixes_are_more_keys_and_values_of_their_block(vit, weights, written_out_vit):
    images = noise(5, 3, 12, 12)
    prefixes = {0: (noise(5, 2, 24, seed=2), noise(5, 2, 24, seed=3)), 2: (noise(5, 6, 24), noise(5, 6, 24, seed=4))}
    given = {block: (torch.from_numpy(keys), torch.from_numpy(values)) for block, (keys, values) in prefixes.items()}
    tokens = vit.forward_tokens(vit.embed(torch.from_numpy(images)), given)
    expected = written_out_vit(weights, images, HEADS, prefixes=prefixes)
    np.testing.assert_allclose(tokens, expected, rtol=1e-5, atol=1e-5)
    assert np.abs(expected - written_out_vit(weights, images, HEADS)).max() > 0.1


def test_a_prefix_of_no_length_changes_nothing(vit):
    tokens = vit.embed(torch.from_numpy(noise(5, 3, 12, 12)))
    empty = torch.empty(5, 0, 24)
    np.testing.assert_allclose(
        vit.forward_tokens(tokens, {0: (empty, empty), 1: (empty, empty)}), vit.forward_tokens(tokens), atol=1e-6
    )


@pytest.mark.parametrize("named", [0, 1, 2])
def test_a_prefix_acts_in_exactly_the_named_block(vit, named):
    tokens = vit.embed(torch.from_numpy(noise(5, 3, 12, 12)))
    prefix = torch.from_numpy(noise(5, 2, 24, seed=2)), torch.from_numpy(noise(5, 2, 24, seed=3))
    calls = []
    for i, block in enumerate(vit.blocks):
        block.register_forward_hook(lambda module, given, out, i=i: calls.append((i, given[0], given[1], out)))
    vit.forward_tokens(tokens, {named: prefix})
    with_prefix = list(calls)
    calls.clear()
    vit.forward_tokens(tokens)
    for (i, before, given, after), (_, plain_before, _, plain_after) in zip(with_prefix, calls, strict=True):
        assert (given is prefix) == (i == named)
        assert torch.equal(before, plain_before) == (i <= named)
        assert torch.equal(after, plain_after) == (i < named)
        assert after.shape == before.shape


def test_prefixes_of_one_sample_do_not_reach_another(vit):
    tokens = vit.embed(torch.from_numpy(noise(2, 3, 12, 12)))
    keys, values = torch.zeros(2, 3, 24), torch.zeros(2, 3, 24)
    plain = vit.forward_tokens(tokens, {1: (keys, values)})
    values[0] = 5
    changed = vit.forward_tokens(tokens, {1: (keys, values)})
    assert not torch.allclose(plain[0], changed[0])
    np.testing.assert_allclose(plain[1], changed[1], atol=1e-6)


def test_gradients_reach_prompts_and_prefixes_and_leave_the_frozen_weights_alone(vit):
    tokens = vit.embed(torch.from_numpy(noise(2, 3, 12, 12)))
    prompts, keys, values = (torch.zeros(2, 3, 24, requires_grad=True) for _ in range(3))
    vit.forward_tokens(insert(tokens, prompts), {1: (keys, values)})[:, 0].square().sum().backward()
    # Equal keys are told apart by nothing but their values, which are equal too: their gradient is 0 by symmetry.
    assert prompts.grad.abs().max() > 0
    assert values.grad.abs().max() > 0
    assert keys.grad is not None
    assert all(parameter.grad is None for parameter in vit.parameters())


def test_positions_are_interpolated_to_another_size(vit):
    with torch.no_grad():
        side = torch.arange(3.0)
        vit.pos_embed[0, 1:, 0] = side.repeat_interleave(3)  # the row
        vit.pos_embed[0, 1:, 1] = side.repeat(3)  # the column
        vit.patch_embed.proj.weight.zero_()
        vit.patch_embed.proj.bias.zero_()
    tokens = vit.embed(torch.zeros(1, 3, 24, 48))
    assert tokens.shape == (1, 1 + 6 * 12, 24)
    rows, columns = tokens[0, 1:, :2].reshape(6, 12, 2).unbind(-1)
    assert (rows.diff(dim=0) > 0).all()
    assert (columns.diff(dim=1) > 0).all()
    np.testing.assert_allclose(rows, rows[:, :1].expand_as(rows), atol=1e-5)
    np.testing.assert_allclose(columns, columns[:1].expand_as(columns), atol=1e-5)
    np.testing.assert_allclose([rows.mean(), columns.mean()], 1, atol=1e-5)
    np.testing.assert_array_equal(tokens[0, 0], vit.cls_token[0, 0] + vit.pos_embed[0, 0])


def test_what_does_not_fit_is_refused(vit):
    with pytest.raises(ValueError, match="images of 10 x 12 px do not divide into patches of 4 px"):
        vit.embed(torch.zeros(1, 3, 10, 12))
    with pytest.raises(ValueError, match=r"prefixes for blocks \[3\], but the blocks are 0 to 2"):
        vit.forward_tokens(torch.zeros(1, 10, 24), {3: (torch.zeros(1, 1, 24), torch.zeros(1, 1, 24))})
    with pytest.raises(ValueError, match="5 heads do not divide a width of 24"):
        VisionTransformer(image_size=8, patch_size=2, width=24, depth=1, heads=5)
    with pytest.raises(ValueError, match="3 px do not divide 8 px"):
        VisionTransformer(image_size=8, patch_size=3, width=24, depth=1, heads=4)
