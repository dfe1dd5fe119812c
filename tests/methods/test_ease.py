"""EASE: class means under the adapters of every phase."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from aircl.methods import IncompatibleError  # noqa: E402


@pytest.fixture(scope="module")
def phases(digits):
    """Rows of phases of 3, 2, 2 and 3 classes: no class range is like another."""
    groups = [(3, 0, 8), (9, 1), (4, 7), (2, 5, 6)]
    return [np.concatenate([np.flatnonzero(digits.labels == c)[:8] for c in group]) for group in groups]


def teach(method, digits, *phases):
    for rows in phases:
        method.learn(digits.images[rows], digits.labels[rows])
        method.end_phase(None)
    return method


@pytest.fixture(scope="module")
def taught(digits, make, tiny_vit, phases):
    return teach(make("ease", backbone=tiny_vit, epochs=1, learning_rate=0.3), digits, *phases)


def cosine(a, b):
    return a @ b / np.sqrt((a @ a) * (b @ b))


def under(method, images):
    """What images look like under each set of adapters, in double precision."""
    seen = method.views.plain(method.views.tensor(images))
    with torch.no_grad():
        return [adapted(seen).double().numpy() for adapted in method.adapted]


def test_prototypes_and_scores_are_those_of_the_public_code(taught, digits, phases):
    """Class by class: W[c][j] is the mean of c under j where its phase is j or later; else, with i the phase of c, the
    sum over the classes k of phases from j on of softmax_k cos(W[c][i], W[k][i]) times W[k][j]. The score is the
    cosine in block i plus 0.1 / (T - 1) times the others."""
    came = {int(label): t for t, rows in enumerate(phases) for label in digits.labels[rows]}
    W = {}
    for label, t in came.items():
        seen = under(taught, digits.images[[row for row in phases[t] if digits.labels[row] == label]])
        W[label] = {j: seen[j].mean(0) for j in range(t + 1)}
    for label, i in came.items():
        for j in range(i + 1, len(phases)):
            later = [k for k, t in came.items() if t >= j]
            shares = np.exp([cosine(W[label][i], W[k][i]) for k in later])
            W[label][j] = sum(share * W[k][j] for share, k in zip(shares / shares.sum(), later, strict=True))
    classes = taught.student.head.classes
    expected = np.array([[W[label][j] for j in range(4)] for label in classes])
    np.testing.assert_allclose(taught.prototypes().numpy(), expected, rtol=1e-5, atol=1e-6)
    assert np.abs(expected[0, 0] - expected[0, 3]).max() > 0.01  # adapters do differ

    images = digits.test_images[:20]
    seen = under(taught, images)
    scores = [
        [sum((1 if j == came[c] else 0.1 / 3) * cosine(seen[j][n], W[c][j]) for j in range(4)) for c in classes]
        for n in range(20)
    ]
    np.testing.assert_allclose(taught.logits(taught.encode(images)), scores, rtol=1e-5, atol=1e-6)


def test_mixtures_are_mixtures(taught):
    """Shares sum to 1: if all given vectors are the same under new adapters, so is what is synthesised."""
    means = taught.means.clone()
    try:
        taught.means[taught.home == 3, 3] = torch.arange(taught.means.shape[2], dtype=torch.float32)
        made = taught.prototypes()[taught.home < 3, 3]
        torch.testing.assert_close(made, torch.arange(made.shape[1], dtype=torch.float32).expand(len(made), -1))
    finally:
        taught.means = means


def test_one_phase_under_untrained_adapters_is_ncm(digits, make, tiny_vit, phases):
    ease = teach(make("ease", backbone=tiny_vit, epochs=0), digits, np.concatenate(phases))
    ncm = make("ncm")
    features = tiny_vit.forward(tiny_vit.prepare(digits.images[np.concatenate(phases)]))
    ncm.learn(features, digits.labels[np.concatenate(phases)])
    test = tiny_vit.forward(tiny_vit.prepare(digits.test_images[:200]))
    np.testing.assert_array_equal(ease.predict(ease.encode(digits.test_images[:200])), ncm.predict(ncm.encode(test)))


def test_alpha_0_is_the_own_block_alone(digits, make, tiny_vit, phases):
    method = teach(make("ease", backbone=tiny_vit, epochs=1, learning_rate=0.3, alpha=0), digits, *phases[:2])
    encoded = method.encode(digits.test_images[:20])
    before = method.logits(encoded)
    method.means[method.home == 1, 0] += 1  # of the second phase, under the first adapters
    np.testing.assert_array_equal(method.logits(encoded), before)
    method.means[method.home == 1, 1] += 1
    assert np.abs(method.logits(encoded) - before).max() > 1e-3


def test_classes_that_return_are_measured_under_the_newest_adapters_only(digits, make, tiny_vit, phases):
    method = make("ease", backbone=tiny_vit, epochs=1, learning_rate=0.3)
    first, second = phases[:2]
    back = np.flatnonzero(digits.labels == 3)[8:16]
    teach(method, digits, first)
    before = method.means.clone()
    teach(method, digits, np.concatenate([second, back]))
    column = method.student.head.classes.index(3)
    assert torch.equal(method.means[column, 0], before[column, 0])
    assert method.counts[column].tolist() == [8, 8]
    np.testing.assert_allclose(
        method.prototypes()[column, 1], under(method, digits.images[back])[1].mean(0), rtol=1e-5, atol=1e-6
    )
    # No class is new: no further adapters, and the means under the newest go on.
    again = np.flatnonzero(digits.labels == 3)[16:20]
    teach(method, digits, again)
    assert len(method.adapted) == 2
    assert method.counts[column].tolist() == [8, 12]
    both = np.concatenate([back, again])
    np.testing.assert_allclose(
        method.means[column, 1], under(method, digits.images[both])[1].mean(0), rtol=1e-5, atol=1e-6
    )


def test_it_goes_on_after_a_stop_and_keeps_no_sample(taught, digits, make, tiny_vit, phases, tmp_path):
    settings = {"backbone": tiny_vit, "epochs": 1, "learning_rate": 0.3}
    stopped = teach(make("ease", **settings), digits, *phases[:3])
    stopped.learn(digits.images[phases[3]], digits.labels[phases[3]])
    stopped.save(tmp_path)
    resumed = make("ease", **settings)
    resumed.restore(tmp_path)
    resumed.end_phase(None)
    encoded = taught.encode(digits.test_images[:50])
    np.testing.assert_array_equal(resumed.logits(encoded), taught.logits(encoded))
    assert taught.samples_kept == 0
    assert not any(parameter.requires_grad for one in resumed.adapted for parameter in one.parameters())


def test_what_it_cannot_do_is_declined(make, tiny_vit, tiny_network):
    with pytest.raises(IncompatibleError, match="adapters for each phase, but an online stream shows no phases"):
        make("ease", backbone=tiny_vit, online=True)
    with pytest.raises(IncompatibleError, match=r"adapters enter a plain ViT: base:vit-micro.* It got 'tiny'"):
        make("ease", backbone=tiny_network)
