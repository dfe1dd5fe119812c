"""EWC, SI, RWalk, LfL and DMC: what holds parameters, and where nothing is left to hold."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from aircl.methods import IncompatibleError, resolve_options  # noqa: E402
from aircl.methods.gradient import Optimiser, PathIntegral, RiemannianWalk, StepFisher  # noqa: E402

HELD = ["ewc", "si", "rwalk"]


def softmax(z):
    p = np.exp(z - z.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize("name", HELD)
def test_without_a_penalty_it_is_fine_tuning_exactly(name, online, take_course):
    settings = {"online": online, "epochs": 2, "at_most": 60, "phases": 3, "compare": "exposed"}
    free, plain = take_course(name, penalty=0.0, **settings), take_course("fine-tuning", **settings)
    assert torch.equal(free.method.student.head.weight, plain.method.student.head.weight)
    held = take_course(name, penalty=1e4, **settings)
    assert not torch.allclose(held.method.student.head.weight, plain.method.student.head.weight, atol=1e-3)


@pytest.mark.parametrize("name", HELD)
def test_a_huge_penalty_holds_old_rows_and_new_ones_learn(name, digits, make):
    method = make(name, penalty=1e12, epochs=5, learning_rate=0.05)
    first, second, *_ = digits.stream(5).phases
    digits.teach(method, first)
    weight = method.student.head.weight
    before, importance = weight.detach().clone(), method.anchor.importance["head.weight"].clone()
    digits.teach(method, second)
    moved = (weight[:2].detach() - before).abs()
    assert moved[importance > 1e-6].max() < 1e-4
    assert (importance > 1e-6).float().mean() > 0.5
    assert weight[2:].abs().max() > 0.05


@pytest.mark.parametrize("name", HELD)
def test_told_from_the_classes_of_its_phase_nothing_is_held_on_frozen_features(name, take_course):
    """Old rows have no gradient then: the penalty has nothing to do, and the default is another."""
    settings = {"epochs": 2, "at_most": 60, "phases": 3, "compare": "phase"}
    held, plain = take_course(name, penalty=1e4, **settings), take_course("fine-tuning", **settings)
    torch.testing.assert_close(held.method.student.head.weight, plain.method.student.head.weight)
    assert resolve_options(name, {}, online=False)["compare"] == "exposed"


# -- EWC --
@pytest.mark.parametrize("labels", ["drawn", "true"])
def test_the_fisher_information_is_that_of_single_samples(labels, digits, make):
    """mean over samples of E_y (d log p(y) / d theta)^2, y from p or the true one; and averaged over phases."""
    method = make("ewc", epochs=2, keep=0.3, labels=labels, learning_rate=0.05)
    fisher = None
    for phase in digits.stream(5).phases[:2]:
        digits.teach(method, phase, at_most=30)
        head = method.student.head
        x = torch.from_numpy(digits.features[phase.train[:30]])
        W, expected = head.weight.detach().clone().requires_grad_(), np.zeros(head.weight.shape)
        for row, label in zip(x, digits.labels[phase.train[:30]], strict=True):
            logs = torch.log_softmax(W @ row + head.bias.detach(), 0)
            for column, log in enumerate(logs):
                weight = log.exp().item() if labels == "drawn" else float(head.classes[column] == label)
                (gradient,) = torch.autograd.grad(log, W, retain_graph=True)
                expected += weight * gradient.double().numpy() ** 2 / 30
        if fisher is not None:
            expected = 0.3 * np.vstack([fisher, np.zeros((2, 64))]) + 0.7 * expected
        fisher = expected
        np.testing.assert_allclose(method.anchor.importance["head.weight"], fisher, atol=1e-6)


def test_the_penalty_of_ewc_is_half_of_lambda_times_f(digits, make):
    method = make("ewc", penalty=7.0, epochs=1, learning_rate=1e-3, momentum=0.0)
    first, second, *_ = digits.stream(5).phases
    digits.teach(method, first, at_most=32)
    F, place = (part["head.weight"].double().numpy() for part in (method.anchor.importance, method.anchor.place))
    steps, loss = [], method.loss
    W, b = (np.vstack([p.detach().double().numpy().reshape(2, -1), np.zeros((2, n))]) for p, n in
            zip(method.student.head.parameters(), (64, 1), strict=True))  # fmt: skip
    method.loss = lambda batch: steps.append(batch) or loss(batch)
    digits.teach(method, second, at_most=32)
    for batch in steps:
        X = batch["inputs"].double().numpy()
        errors = softmax(X @ W.T + b[:, 0]) - (batch["labels"].numpy()[:, None] == method.student.head.classes)
        W, b = W - 1e-3 * errors.T @ X / len(X), b - 1e-3 * errors.mean(0)[:, None]
        W[:2] -= 1e-3 * 7.0 * F * (W[:2] - place)  # d/dW of lambda/2 F (W - place)^2, to first order
    np.testing.assert_allclose(method.student.head.weight.detach(), W, atol=1e-6)


def test_if_the_backbone_is_trained_gradients_are_computed_one_by_one(digits, make, tiny_network):
    method = make("ewc", backbone=tiny_network, unfreeze=True, augment=False, epochs=1, labels="true")
    phase = digits.stream(5).phases[0]
    digits.teach(method, phase, at_most=20)
    views = method.views.plain(method.views.tensor(digits.images[phase.train[:20]]))
    columns = method.student.head.columns(torch.from_numpy(digits.labels[phase.train[:20]]))
    expected = 0
    for place in range(20):
        loss = torch.nn.functional.cross_entropy(method.student(views[place : place + 1]), columns[place : place + 1])
        expected += torch.autograd.grad(loss, method.student.trunk[1].weight)[0].square() / 20
    torch.testing.assert_close(method.anchor.importance["trunk.1.weight"], expected, rtol=1e-4, atol=1e-7)
    drawn = make("ewc", backbone=tiny_network, unfreeze=True, epochs=1)
    digits.teach(drawn, phase, at_most=20)
    assert drawn.anchor.importance["trunk.1.weight"].max() > 0


# -- SI --
def walk(anchor, h, start, steps, rate, penalty=0.0, scale=1.0):
    """Gradient descent on scale * h/2 theta^2, watched by an anchor; (gradients, places)."""
    theta = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    optimiser = Optimiser([{"params": [theta], "lr": rate}], "sgd", momentum=0.0)
    record = []
    for _ in range(steps):
        theta.grad = scale * torch.tensor(h, dtype=torch.float64) * theta.detach()
        record.append((theta.grad.numpy().copy(), theta.detach().numpy().copy()))
        anchor.note({"t": theta})
        optimiser.step()
        anchor.pull({"t": theta}, optimiser, penalty)
        anchor.moved({"t": theta})
    return theta, record


def test_omega_of_si_approaches_half_the_curvature_and_explains_the_fall():
    h, start, anchor = np.array([3.0, 0.5, 0.0]), [1.0, -2.0, 1.0], PathIntegral(xi=1e-12)
    theta, record = walk(anchor, h, start, 2000, 2e-3)
    end = theta.detach().numpy()
    explained = sum(float(part.sum()) for part in anchor.path.falls.values())
    assert explained == pytest.approx((h / 2 * (np.square(start) - end**2)).sum(), rel=5e-3)
    omega = sum(
        -g * (after - before) for (g, before), after in zip(record, [r[1] for r in record[1:]] + [end], strict=True)
    )
    anchor.drop({"t": theta})
    expected = np.maximum(0, omega) / ((end - start) ** 2 + 1e-12)
    np.testing.assert_allclose(anchor.importance["t"], expected, atol=1e-6)
    np.testing.assert_allclose(anchor.importance["t"][:1], h[:1] / 2, rtol=5e-3)  # it came to rest
    assert anchor.importance["t"][2] == 0
    before = anchor.importance["t"].clone()
    theta.grad = torch.tensor([-1.0, 1.0, 0.0], dtype=torch.float64)  # a step that goes uphill in the first
    anchor.note({"t": theta})
    theta.data += torch.tensor([-0.1, -0.1, 0.0])
    anchor.moved({"t": theta})
    anchor.drop({"t": theta})
    assert anchor.importance["t"][0] == before[0]  # no negative importance is added
    assert anchor.importance["t"][1] > before[1]  # they add up


def test_the_movement_that_si_counts_is_step_and_pull(digits, make):
    method = make("si", penalty=50.0, epochs=1, learning_rate=0.05, momentum=0.0, xi=0.01)
    first, second, *_ = digits.stream(5).phases
    digits.teach(method, first, at_most=48)
    weight, seen, step = method.student.head.weight, [], method.step

    def noted(optimiser):
        gradient, before = weight.grad.double().numpy().copy(), weight.detach().double().numpy().copy()
        step(optimiser)
        seen.append((gradient, before, weight.detach().double().numpy().copy()))

    method.step = noted
    omega = np.vstack([method.anchor.importance["head.weight"].double().numpy(), np.zeros((2, 64))])
    digits.teach(method, second, at_most=48)
    falls = sum(-g * (after - before) for g, before, after in seen)
    omega += np.maximum(0, falls) / ((seen[-1][2] - seen[0][1]) ** 2 + 0.01)
    np.testing.assert_allclose(method.anchor.importance["head.weight"], omega, atol=1e-6)
    pulled = seen[0][1] - 0.05 * seen[0][0]
    assert np.abs(pulled - seen[0][2])[:2].max() > 1e-6  # there was something to pull


# -- RWalk --
def test_rwalk_is_ewc_plus_plus_and_scores_of_stretches():
    h, start = np.array([3.0, 0.5, 1.0]), [1.0, -2.0, 0.3]
    anchor, fisher = RiemannianWalk(rate=0.9, every=4, eps=0.1), StepFisher(0.1)
    theta, record = walk(anchor, h, start, 10, 0.05)
    walk(fisher, h, start, 10, 0.05)
    places, F, s = [r[1] for r in record] + [theta.detach().numpy()], None, np.zeros(3)
    falls, begin = np.zeros(3), 0
    for step, (g, _) in enumerate(record):
        F = g**2 if F is None else 0.9 * g**2 + 0.1 * F
        falls = falls - g * (places[step + 1] - places[step])
        if (step + 1) % 4 == 0 or step == 9:
            s += np.maximum(0, falls) / (F * (places[step + 1] - places[begin]) ** 2 / 2 + 0.1)
            falls, begin = np.zeros(3), step + 1
    anchor.drop({"t": theta})
    np.testing.assert_allclose(anchor.scores["t"], s, atol=1e-9)
    np.testing.assert_allclose(anchor.importance["t"], F / F.max() + s / s.max(), atol=1e-9)
    fisher.drop({"t": theta})
    np.testing.assert_allclose(fisher.importance["t"], F, atol=1e-12)  # without scores it is that of EWC++
    anchor.note({"t": theta})
    theta.data -= 0.1 * theta.grad if theta.grad is not None else 0.0
    anchor.moved({"t": theta})
    anchor.drop({"t": theta})
    np.testing.assert_allclose(anchor.scores["t"], s / 2, atol=1e-9)  # the mean with a phase that explained nothing


def test_a_loss_twice_as_large_at_half_the_rate_walks_the_same_way():
    """F is 4 times and a score half of what it was (eps 0)."""
    anchors = [RiemannianWalk(every=5, eps=1e-300) for _ in range(2)]
    walks = [walk(anchor, [3.0, 0.5], [1.0, -2.0], 10, 0.05 / scale, scale=scale)
             for anchor, scale in zip(anchors, (1.0, 2.0), strict=True)]  # fmt: skip
    torch.testing.assert_close(walks[0][0], walks[1][0])
    np.testing.assert_allclose(anchors[1]._average["t"], 4 * anchors[0]._average["t"])
    np.testing.assert_allclose(anchors[1].fresh["t"], anchors[0].fresh["t"] / 2)


# -- LfL and DMC --
@pytest.mark.parametrize("name", ["lfl", "dmc"])
def test_on_frozen_features_it_is_fine_tuning(name, take_course):
    settings = {"epochs": 2, "at_most": 60, "phases": 3}
    one, plain = take_course(name, **settings), take_course("fine-tuning", compare="phase", **settings)
    torch.testing.assert_close(one.method.student.head.weight, plain.method.student.head.weight, rtol=0, atol=1e-6)
    options = resolve_options(name, {}, online=False)
    assert any("fine-tuning" in note for note in type(one.method).notes_for(options, online=False))


def test_the_gradient_of_lfl_is_that_of_both_losses_and_old_rows_rest(digits, make, tiny_network):
    method = make("lfl", backbone=tiny_network, unfreeze=True, augment=False, epochs=1, features=0.5, backbone_rate=1.0)
    first, second, *_ = digits.stream(5).phases
    digits.teach(method, first, at_most=32)
    rows = method.rows(digits.images[second.train[:12]], digits.labels[second.train[:12]])
    method.meet(rows)
    with torch.no_grad():
        method.student.trunk[1].weight += 0.05 * torch.randn(64, 192, generator=torch.Generator().manual_seed(0))
    torch.autograd.backward(method.loss(rows))
    X = method.views.plain(rows["inputs"]).flatten(1).double().numpy()
    V, v = (p.detach().double().numpy() for p in method.student.trunk.parameters())
    V_old, v_old = (p.detach().double().numpy() for p in method.teacher.trunk.parameters())
    W, b = (p.detach().double().numpy() for p in method.student.head.parameters())
    f, f_old = np.maximum(X @ V.T + v, 0), np.maximum(X @ V_old.T + v_old, 0)
    errors = softmax(f @ W.T + b) - (rows["labels"].numpy()[:, None] == method.student.head.classes)
    back = (errors @ W + 0.5 * (f - f_old)) * (f > 0) / 12
    np.testing.assert_allclose(method.student.trunk[1].weight.grad, back.T @ X, atol=1e-6)
    before = method.student.head.weight[:2].detach().clone()
    method.optimiser = method.make_optimiser()
    method.step(method.optimiser)
    assert torch.equal(method.student.head.weight[:2], before)
    assert method.student.head.weight[2:].abs().max() > 0


def test_dmc_is_the_least_squares_student_of_centred_logits(digits, take_course):
    """Fitted to [old - mean of old, new - mean of new] on inputs of full rank, whatever they are."""
    method = take_course("dmc", phases=2, epochs=2, at_most=80, optimiser="adam").method
    plain = take_course("fine-tuning", phases=2, epochs=2, at_most=80, optimiser="adam", compare="phase").method
    inputs = np.random.default_rng(0).normal(size=(200, 64))
    logits = inputs @ plain.student.head.weight.detach().double().numpy().T + plain.student.head.bias.detach().numpy()
    logits = np.hstack([part - part.mean(1, keepdims=True) for part in (logits[:, :5], logits[:, 5:])])
    solution, *_ = np.linalg.lstsq(np.hstack([inputs, np.ones((200, 1))]), logits, rcond=None)
    np.testing.assert_allclose(method.student.head.weight.detach(), solution[:-1].T, atol=1e-6)
    np.testing.assert_allclose(method.student.head.bias.detach(), solution[-1], atol=1e-6)
    assert np.abs(plain.student.head.weight.detach().numpy()[:5].mean(0)).max() > 1e-4


def test_what_they_cannot_do(digits, make, tiny_network):
    for name in ("lfl", "dmc"):
        with pytest.raises(IncompatibleError, match="an online stream shows no phases"):
            make(name, online=True)
    with pytest.raises(IncompatibleError, match="unlabelled other data"):
        make("dmc", backbone=tiny_network, unfreeze=True)
    method = make("dmc", epochs=1)
    digits.teach(method, digits.stream(5).phases[0], at_most=20)
    before = method.student.head.weight.clone()
    with pytest.raises(IncompatibleError, match="classes returned"):
        method.learn(digits.features, digits.labels)
    method.end_phase(None)
    assert torch.equal(method.student.head.weight, before)
