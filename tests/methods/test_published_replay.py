"""Replay and regularisation methods against their public formulas, written once more without any part of ours."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from aircl.methods.gradient import BalancedMemory, Optimiser, PhaseFisher, Reservoir, StepFisher, distillation_loss  # noqa: E402
from aircl.methods.gradient.rehearsal import Rehearsal  # noqa: E402
from aircl.methods.rm import rate_share  # noqa: E402


def softmax(logits):
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def head_gradient(X, columns, W, b, compared=None):
    """The gradient of the mean cross-entropy by W and b: (p - y)'X / n, p over the compared columns only."""
    logits = X @ W.T + b
    if compared is not None:
        logits[:, [c for c in range(len(W)) if c not in compared]] = -np.inf
    errors = (softmax(logits) - np.eye(len(W))[columns]) / len(X)
    return errors.T @ X, errors.sum(0)


def observed(method):
    """Note the head before every step, and the batch of the step."""
    seen, loss = [], method.loss

    def noted(batch):
        head = method.student.head
        columns = [head.classes.index(label) for label in batch["labels"].tolist()]
        copies = [parameter.detach().double().numpy().copy() for parameter in (head.weight, head.bias)]
        seen.append((batch["inputs"].double().numpy(), columns, *copies))
        return loss(batch)

    method.loss = noted
    return seen


# -- memories --
def test_the_reservoir_is_vitters_algorithm_r():
    """Append until it is full; then sample n takes slot floor(u n) if there is such a slot."""
    size, sizes = 7, (5, 9, 1, 30)
    memory, generator, again = Reservoir(size), *(torch.Generator().manual_seed(3) for _ in range(2))
    expected, n = [], 0
    for length in sizes:
        labels = torch.arange(n, n + length)
        memory.add({"inputs": labels[:, None].float(), "labels": labels}, generator)
        late = max(0, length - max(0, size - n))
        drawn = iter(torch.rand(late, generator=again, dtype=torch.float64).tolist())
        for label in labels.tolist():
            n += 1
            if len(expected) < size:
                expected.append(label)
            elif (slot := int(next(drawn) * n)) < size:
                expected[slot] = label
    assert memory.rows["labels"].tolist() == expected


def test_the_rainbow_memory_is_equidistant_in_the_order_of_uncertainty():
    rng = np.random.default_rng(0)
    labels, uncertainty = np.repeat([0, 1, 2], [17, 4, 40]), rng.permutation(61) / 61
    memory = BalancedMemory(20)
    rows = {"inputs": torch.arange(61)[:, None].float(), "labels": torch.from_numpy(labels)}
    memory.add({**rows, "uncertainty": torch.from_numpy(uncertainty)}, torch.Generator())
    expected = []
    for label, share in ((0, 8), (1, 4), (2, 8)):  # 20 for three classes, of which one has but 4
        members = sorted(np.flatnonzero(labels == label), key=lambda i: -uncertainty[i])
        expected += [members[int(k * len(members) / share)] for k in range(share)]
    assert sorted(memory.rows["inputs"][:, 0].int().tolist()) == sorted(expected)


def test_the_uncertainty_of_rm_is_one_minus_the_share_of_the_most_frequent_vote(digits, make):
    method = make("rm", online=True, views=5)
    method.learn(digits.features[:60], digits.labels[:60])
    votes, student = [], method.student.forward
    method.student.forward = lambda views: votes.append(student(views)) or votes[-1]
    rows = method._judged({"inputs": torch.from_numpy(digits.features[:9]), "labels": torch.zeros(9)})
    answers = np.stack([vote.argmax(1).numpy() for vote in votes])
    expected = [1 - np.bincount(column).max() / 5 for column in answers.T]
    np.testing.assert_allclose(rows["uncertainty"], expected, atol=1e-6)
    assert len(votes) == 5
    assert max(expected) > 0


def test_the_rate_of_rms_memory_epochs_is_a_cosine_with_warm_restarts():
    """As public code has it: a tenth, then the full rate, then steps of torch's scheduler (T_0 1, T_mult 2)."""
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimiser, T_0=1, T_mult=2, eta_min=0.01)
    expected = [0.1, 1.0]
    optimiser.step()
    for _ in range(30):
        scheduler.step()
        expected.append(optimiser.param_groups[0]["lr"])
    np.testing.assert_allclose([rate_share(epoch) for epoch in range(32)], expected, atol=1e-6)


def test_exemplars_are_those_of_algorithm_4_and_the_nearest_mean_predicts(digits, make):
    method = make("icarl", exemplars=6, epochs=1)
    phase = digits.stream(5).phases[0]
    digits.teach(method, phase)
    unit = digits.features.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    means = []
    for label in np.sort(phase.classes):
        members = [i for i in phase.train if digits.labels[i] == label]
        chosen, mean = [], unit[members].mean(0)
        for k in range(1, 7):  # p_k = argmin |mu - (phi(x) + sum of those before) / k|
            left = [i for i in members if i not in chosen]
            distance = [np.linalg.norm(mean - (unit[i] + unit[chosen].sum(0)) / k) for i in left]
            chosen.append(left[int(np.argmin(distance))])
        own = method.memory.rows["labels"].numpy() == label
        assert {row.tobytes() for row in method.memory.rows["inputs"].numpy()[own]} == {
            digits.features[i].tobytes() for i in chosen
        }
        means.append(unit[chosen].mean(0) / np.linalg.norm(unit[chosen].mean(0)))
    test = digits.test_features / np.linalg.norm(digits.test_features, axis=1, keepdims=True)
    nearest = ((test[:, None] - np.stack(means)) ** 2).sum(-1).argmin(1)
    np.testing.assert_array_equal(method.predict(digits.test_features), np.sort(phase.classes)[nearest])


# -- steps --
@pytest.mark.parametrize("name", ["er", "rm", "prs", "gss", "cimbl"])
def test_a_step_of_er_is_sgd_on_batch_and_memory_alike(name, digits, make):
    """So it is of the methods that are ER with another memory, or another prediction."""
    alone = {"memory_epochs": 0} if name == "rm" else {}
    method = make(name, memory=20, replay=5, epochs=1, learning_rate=0.1, momentum=0.5, **alone)
    first, second, *_ = digits.stream(5).phases
    digits.teach(method, first, at_most=40)
    held = {row.tobytes() for row in method.memory.rows["inputs"].numpy()}
    seen = observed(method)
    digits.teach(method, second, at_most=40)
    assert [len(step[0]) for step in seen] == [19, 18, 18]  # 40 in three batches, and 5 of the memory
    for X, *_ in seen:
        assert {row.tobytes() for row in X[-5:].astype(np.float32)} <= held
    W, b = seen[0][2:]
    momenta = np.zeros_like(W), np.zeros_like(b)
    for X, columns, *_ in seen:
        momenta = tuple(0.5 * m + g for m, g in zip(momenta, head_gradient(X, columns, W, b), strict=True))
        W, b = W - 0.1 * momenta[0], b - 0.1 * momenta[1]
    np.testing.assert_allclose(method.student.head.weight.detach(), W, atol=1e-6)
    np.testing.assert_allclose(method.student.head.bias.detach(), b, atol=1e-6)


@pytest.mark.parametrize("average", ["step", "phase"])
def test_the_fisher_information_of_ewc_is_averaged_over_steps(average, digits, make):
    """F <- 0.5 F + 0.5 g^2 at every step, the first F is g^2; renewed, with the anchor, when a phase ends."""
    method = make("ewc++", memory=20, epochs=2, learning_rate=0.05, average=average, penalty=1.0)
    first, second, *_ = digits.stream(5).phases
    fisher = None
    for phase in (first, second):
        seen = observed(method)
        digits.teach(method, phase, at_most=48)
        method.loss = type(method).loss.__get__(method)
        squares = [np.square(head_gradient(*step)[0]) for step in seen]
        assert len(squares) == 6
        n_classes = len(squares[0])
        if fisher is not None:
            fisher = np.vstack([fisher, np.zeros((n_classes - len(fisher), 64))])
        if average == "phase":
            mean = np.mean(squares, axis=0)
            fisher = mean if fisher is None else 0.5 * fisher + 0.5 * mean
        else:
            for square in squares:
                fisher = square if fisher is None else 0.5 * fisher + 0.5 * square
        importance = method.anchor.importance["head.weight"].numpy()
        np.testing.assert_allclose(importance, fisher, rtol=1e-4, atol=1e-6 * fisher.max())
        np.testing.assert_array_equal(method.anchor.place["head.weight"], method.student.head.weight.detach())


def test_without_replay_it_is_ewc_but_for_the_fisher_information(digits, make, monkeypatch):
    monkeypatch.setattr(Rehearsal, "n_replayed", 0)
    one = make("ewc++", epochs=2, learning_rate=0.05, penalty=30.0)
    other = make("ewc", epochs=2, learning_rate=0.05, penalty=60.0)  # half of it weighs F
    other.anchor, other.absorb = StepFisher(0.5), lambda rows: None
    for phase in digits.stream(5).phases[:2]:
        for method in (one, other):
            digits.teach(method, phase, at_most=48)
    torch.testing.assert_close(one.student.head.weight, other.student.head.weight, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", [StepFisher, PhaseFisher])
def test_the_penalty_of_ewc_is_two_lambda_f_times_the_distance(kind):
    """That is, to first order in the step size: the step is implicit, so that it cannot overshoot."""
    parameter, anchor = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)), kind(0.5)
    parameter.grad = torch.tensor([2.0, 1.0, 0.0], dtype=torch.float64)
    anchor.note({"p": parameter})
    anchor.drop({"p": parameter})
    before = parameter.detach().numpy().copy()
    parameter.data += 0.3
    anchor.pull({"p": parameter}, Optimiser([{"params": [parameter], "lr": 1e-6}], "sgd", momentum=0.0), 100.0)
    gradient = 2 * 100.0 * np.array([4.0, 1.0, 0.0]) * 0.3
    assert 1e-6 * gradient.max() > 2e-4
    np.testing.assert_allclose(parameter.detach(), before + 0.3 - 1e-6 * gradient, rtol=0, atol=1e-6)


# -- distillation --
def test_distillation_is_the_cross_entropy_with_softened_answers_and_no_t_squared():
    rng = np.random.default_rng(0)
    logits, taught = rng.normal(size=(6, 5)), rng.normal(size=(6, 3))
    own, theirs = softmax(logits[:, :3] / 2), softmax(taught / 2)
    student = torch.tensor(logits, requires_grad=True)
    loss = distillation_loss(student, torch.tensor(taught), 2.0)
    cross_entropy = -(theirs * np.log(own)).sum() / 6
    entropy = -(theirs * np.log(theirs)).sum() / 6
    assert loss.item() == pytest.approx(cross_entropy - entropy, abs=1e-6)
    torch.autograd.backward(loss)
    np.testing.assert_allclose(student.grad[:, :3], (own - theirs) / 2 / 6, atol=1e-9)


@pytest.mark.parametrize(("name", "weight", "compare"), [("lwf", 0.2, "exposed"), ("icarl", 1.0, None)])
def test_the_gradient_of_lwf_and_icarl_is_that_of_both_losses(name, weight, compare, digits, make):
    options = {} if compare is None else {"compare": compare}
    method = make(name, epochs=1, learning_rate=0.1, **options)
    first, second, *_ = digits.stream(5).phases
    digits.teach(method, first, at_most=40)
    rows = method.rows(digits.features[second.train[:12]], digits.labels[second.train[:12]])
    method.meet(rows)
    with torch.no_grad():  # away from the teacher, so that there is something to distil
        method.student.head.weight += torch.randn(
            method.student.head.weight.shape, generator=torch.Generator().manual_seed(0)
        )
    X = rows["inputs"].double().numpy()
    W, b = (parameter.detach().double().numpy() for parameter in method.student.head.parameters())
    W_old, b_old = (parameter.double().numpy() for parameter in method.teacher.head.parameters())
    columns = [method.student.head.classes.index(label) for label in rows["labels"].tolist()]
    expected, _ = head_gradient(X, columns, W, b)
    pull = softmax((X @ W[:2].T + b[:2]) / 2) - softmax((X @ W_old.T + b_old) / 2)
    expected[:2] += weight * pull.T @ X / 2 / len(X)
    torch.autograd.backward(method.loss(rows))
    np.testing.assert_allclose(method.student.head.weight.grad, expected, atol=1e-6)
    assert np.abs(pull).max() > 0.1


def test_fine_tuning_moves_the_rows_of_the_phase_alone(digits, make):
    method = make("fine-tuning", epochs=1, learning_rate=0.1, momentum=0.0)
    first, second, *_ = digits.stream(5).phases
    digits.teach(method, first, at_most=16)
    seen = observed(method)
    digits.teach(method, second, at_most=16)
    (X, columns, W, b), *others = seen
    assert not others
    gradient, _ = head_gradient(X, columns, W, b, compared={2, 3})
    np.testing.assert_allclose(method.student.head.weight.detach(), W - 0.1 * gradient, atol=1e-6)
    assert (gradient[:2] == 0).all()
