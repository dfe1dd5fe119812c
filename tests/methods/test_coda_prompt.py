from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import cosine_similarity  # noqa: E402

from aircl.methods.prompt.components import Components, orthogonal_to  # noqa: E402


def largest_cosine(one, other):
    return max(
        float(cosine_similarity(a.flatten(1)[:, None], b.flatten(1)[None], dim=-1).abs().max())
        for a, b in zip(one.detach(), other, strict=True)
    )


@pytest.mark.parametrize("online", [False, True])
def test_new_components_are_orthogonal_to_the_old_which_do_not_move(online, digits, make, tiny_vit):
    settings = {} if online else {"epochs": 2}
    method = make("coda-prompt", backbone=tiny_vit, components=4, online=online, **settings)
    phases = digits.stream(5).phases
    digits.teach(method, phases[0], at_most=32)
    own = method.components
    first = {name: getattr(own, name).detach().clone() for name in "PKA"}
    assert own.old_P.shape[1] == 0
    # The second phase begins with components that are orthogonal to those of the first, as training left them ..
    rows = method.rows(digits.images[phases[1].train[:16]], digits.labels[phases[1].train[:16]])
    method.meet(rows)
    for name in "PKA":
        assert torch.equal(getattr(own, f"old_{name}"), first[name])
        assert largest_cosine(getattr(own, name), first[name]) < 1e-5
    # .. and they alone are trained.
    begun = own.P.detach().clone()
    if method.optimiser is None:
        method.optimiser = method.make_optimiser()
    method.update(rows)
    assert not torch.equal(own.P, begun)
    for name in "PKA":
        assert torch.equal(getattr(own, f"old_{name}"), first[name])


def test_weights_are_cosines_and_prompts_are_weighted_sums():
    own = Components(2, 3, 4, 6, generator=torch.Generator().manual_seed(0))
    own.grow(torch.Generator().manual_seed(1))
    queries = torch.randn(5, 6, generator=torch.Generator().manual_seed(2))
    weights, prefixes = own.weights(queries), own.prefixes(queries)
    assert weights.shape == (5, 2, 6)
    for n, b in ((0, 0), (3, 1)):
        a = torch.stack(
            [cosine_similarity(queries[n] * own.whole("A")[b, m], own.whole("K")[b, m], dim=0) for m in range(6)]
        )
        torch.testing.assert_close(weights[n, b], a)
        prompt = sum(a[m] * own.whole("P")[b, m] for m in range(6))
        torch.testing.assert_close(torch.cat([prefixes[b][0][n], prefixes[b][1][n]]), prompt)


def test_the_orthogonality_loss_is_zero_for_orthonormal_and_known_for_others():
    own = Components(1, 2, 2, 4, generator=torch.Generator().manual_seed(0))
    assert own.crookedness() < 1e-10
    own.K.data = torch.tensor([[[1.0, 0, 0, 0], [1, 1, 0, 0]]])
    # K K' - I = [[0, 1], [1, 1]]
    torch.testing.assert_close(own.crookedness(), torch.tensor(0.75))


def test_where_no_direction_is_left_vectors_are_random_and_of_length_one():
    old = torch.eye(4)[:3]
    new = orthogonal_to(old, 3, torch.Generator().manual_seed(0))
    torch.testing.assert_close(new.norm(dim=1), torch.ones(3))
    torch.testing.assert_close(new[0].abs(), torch.tensor([0.0, 0, 0, 1]))


def test_an_empty_phase_adds_nothing(digits, make, tiny_vit):
    method = make("coda-prompt", backbone=tiny_vit, epochs=1, components=2)
    phase = digits.stream(5).phases[0]
    method.end_phase(phase)
    digits.teach(method, phase, at_most=16)
    method.end_phase(phase)
    assert method.components.old_P.shape[1] == 0
    digits.teach(method, digits.stream(5).phases[1], at_most=16)
    assert method.components.old_P.shape[1] == 2
