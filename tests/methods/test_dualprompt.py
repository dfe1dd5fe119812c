from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from aircl.methods import IncompatibleError  # noqa: E402
from aircl.methods.prompt import through_block  # noqa: E402


@pytest.mark.parametrize(("general", "expert"), [(2, 3), (1, 2)])
@pytest.mark.parametrize("form", ["prefix", "prompt"])
def test_prefixes_act_in_exactly_the_named_blocks(form, general, expert, digits, make, tiny_vit, monkeypatch):
    method = make("dualprompt", backbone=tiny_vit, form=form, general_blocks=general, expert_blocks=expert)
    lengths = {}
    for number, block in enumerate(tiny_vit.module.blocks):
        attend = block.attn.forward

        def noted(tokens, prefix=None, number=number, attend=attend):
            lengths[number] = None if prefix is None else prefix[0].shape[1]
            return attend(tokens, prefix)

        monkeypatch.setattr(block.attn, "forward", noted)
    rows = method.rows(digits.images[:4], digits.labels[:4])
    method.student.see(method.views.plain(rows["inputs"]), method.guide(rows, training=True))
    assert lengths == {block: 5 if block < general + expert else None for block in range(5)}


def test_general_prompts_are_the_same_for_all_and_experts_those_of_the_nearest_key(digits, make, tiny_vit):
    method = make("dualprompt", backbone=tiny_vit, assign="nearest")
    rows = method.rows(digits.images[:8], digits.labels[:8])
    guidance = method.guide(rows, training=True)
    nearest = method.prompts.experts.distances(rows["queries"]).argmin(1)
    assert torch.equal(guidance.chosen[:, 0], nearest)
    for i in range(8):
        for part in (0, 1):
            assert torch.equal(guidance.prefixes[1][part][i], method.prompts.general[1, part])
            assert torch.equal(guidance.prefixes[4][part][i], method.prompts.experts.prompts[nearest[i], 2, part])


def test_prompt_tuning_is_tokens_that_enter_a_block_and_are_dropped_behind_it(digits, tiny_vit):
    vit = tiny_vit.module
    tokens = vit.embed(tiny_vit.prepare(digits.images[:4]))
    prompts = torch.randn(4, 3, vit.width, generator=torch.Generator().manual_seed(0))
    block = vit.blocks[2]
    entered = block(torch.cat([tokens, prompts], 1))[:, : tokens.shape[1]]
    torch.testing.assert_close(block(tokens, through_block(block, prompts)), entered)


def test_the_key_loss_is_the_distance_to_the_nearest_key_and_shrinks(digits, make, tiny_vit):
    method = make("dualprompt", backbone=tiny_vit, online=True)
    rows = method.rows(digits.images[:16], digits.labels[:16])
    method.meet(rows)
    before = method.guide(rows, training=True).penalty.detach()
    torch.testing.assert_close(before, method.prompts.experts.distances(rows["queries"]).detach().amin(1).mean())
    for _ in range(3):
        method.update(rows)
    assert method.guide(rows, training=True).penalty < before - 1e-2


def test_an_expert_for_each_phase(digits, make, tiny_vit):
    method = make("dualprompt", backbone=tiny_vit, assign="phase", epochs=1, pool=3)
    for number, phase in enumerate(digits.stream(5).phases[:2]):
        before = method.prompts.experts.prompts.detach().clone()
        digits.teach(method, phase, at_most=32)
        moved = [not torch.equal(a, b) for a, b in zip(method.prompts.experts.prompts, before, strict=True)]
        assert moved == [expert == number for expert in range(3)]
    with pytest.raises(IncompatibleError, match="assign='phase' needs phases"):
        make("dualprompt", backbone=tiny_vit, assign="phase", online=True)
