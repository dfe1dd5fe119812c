from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import cosine_similarity  # noqa: E402

from aircl.methods import IncompatibleError  # noqa: E402
from aircl.methods.prompt import PromptCentre  # noqa: E402


def test_centre_and_alpha_of_a_hand_computed_example():
    earlier = PromptCentre()
    assert earlier.centre() is None
    assert earlier.alpha(50) == 0  # 0 / 0 in the first phase
    earlier.add(torch.tensor([[3.0, 0.0]]), 50)
    torch.testing.assert_close(earlier.centre(), torch.tensor([[3.0, 0.0]]))
    assert earlier.alpha(50) == 0  # all alike
    assert earlier.alpha(80) == 1  # the largest
    assert earlier.alpha(10) == 0  # the smallest
    earlier.add(torch.tensor([[0.0, 6.0]]), 25)
    # (p_1 / 50 + p_2 / 25) / (1 / 50 + 1 / 25) = (p_1 + 2 p_2) / 3
    torch.testing.assert_close(earlier.centre(), torch.tensor([[1.0, 4.0]]))
    assert earlier.alpha(35) == pytest.approx(0.4)


def test_the_anchoring_of_the_first_phase_and_of_later_ones(digits, make, tiny_vit):
    method = make("dap", backbone=tiny_vit, epochs=1)
    prompts = method.student.prompts
    general, phase = prompts.general.detach().flatten(), prompts.phase.detach().flatten()
    near = 1 - cosine_similarity(general, phase, dim=0)
    torch.testing.assert_close(method.anchoring().detach(), near)
    centre = torch.ones_like(prompts.phase)
    method.earlier.add(centre, 10)
    method.alpha = 0.25
    expected = 0.25 * (1 - cosine_similarity(general, centre.flatten(), dim=0)) + 0.75 * near
    torch.testing.assert_close(method.anchoring().detach(), expected)


def test_stage_one_trains_the_prompt_of_the_phase_and_stage_two_the_general_one(digits, make, tiny_vit, monkeypatch):
    method = make("dap", backbone=tiny_vit, epochs=1)
    prompts, moved = method.student.prompts, []
    update = method.update

    def noted(batch):
        before = prompts.general.detach().clone(), prompts.phase.detach().clone()
        update(batch)
        moved.append(
            (
                method._stage,
                *(not torch.equal(a, b) for a, b in zip((prompts.general, prompts.phase), before, strict=True)),
            )
        )

    monkeypatch.setattr(method, "update", noted)
    phases = digits.stream(5).phases
    for phase, size in ((phases[0], 32), (phases[1], 20)):
        digits.teach(method, phase, at_most=size)
    # In the first step of a phase the rows of its classes are zero, so that no gradient gets below the head.
    assert moved == 2 * [(1, False, False), (1, False, True), (2, True, False), (2, True, False)]
    assert method.earlier.sizes == [32, 20]
    assert method.alpha == 0  # the smaller of two


def test_the_general_prompt_alone_predicts(digits, make, tiny_vit):
    method = make("dap", backbone=tiny_vit, epochs=1)
    digits.teach(method, digits.stream(5).phases[0], at_most=32)
    encoded = method.encode(digits.test_images[:20])
    before = method.logits(encoded)
    method.student.prompts.phase.data += 1
    assert (method.logits(encoded) == before).all()
    method.student.prompts.general.data += 1
    assert (method.logits(encoded) != before).any()


def test_an_online_stream_is_declined(make, tiny_vit):
    with pytest.raises(IncompatibleError, match="an online stream shows no phases"):
        make("dap", backbone=tiny_vit, online=True)
