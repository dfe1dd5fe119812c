from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from aircl.methods.gradient import Adaptor, virtual_loss  # noqa: E402


def softmax(z):
    p = np.exp(z - z.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def test_the_gradient_of_the_adaptor_is_that_of_finite_differences():
    generator = torch.Generator().manual_seed(0)
    adaptor = Adaptor(generator)
    adaptor.grow(3)
    adaptor.grow(5)
    adaptor.double()
    with torch.no_grad():
        for parameter in adaptor.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=generator)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    head, X, judges = (draw(5, 7), draw(5)), draw(9, 7), draw(6, 7)
    columns, other = torch.arange(9) % 5, torch.arange(6) % 5
    weights = torch.rand(9, generator=generator, dtype=torch.float64)

    def loss():
        return virtual_loss(adaptor, head, (X, columns, weights), (judges, other), 0.7)

    def plain():  # once more in NumPy
        V, v, U, u = (
            p.detach().numpy() for p in (adaptor.inner, adaptor.inner_bias, adaptor.outer, adaptor.outer_bias)
        )
        W, b, A, B = (part.numpy() for part in (*head, X, judges))

        z = A @ W.T + b
        r = np.maximum(softmax(z) @ V + v, 0) @ U.T + u
        errors = (softmax(z + r) - np.eye(5)[columns]) * weights.numpy()[:, None]
        z = B @ (W - 0.7 * errors.T @ A).T + b - 0.7 * errors.sum(0)
        return -np.log(softmax(z)[np.arange(6), other]).mean()

    assert loss().item() == pytest.approx(plain(), abs=1e-9)
    gradients = torch.autograd.grad(loss(), list(adaptor.parameters()))
    for parameter, gradient in zip(adaptor.parameters(), gradients, strict=True):
        for place in ((0,) * parameter.dim(), tuple(n - 1 for n in parameter.shape)):
            before, values = parameter.data[place].item(), []
            for change in (1e-6, -1e-6):
                parameter.data[place] = before + change
                values.append(plain())
            parameter.data[place] = before
            assert gradient[place].item() == pytest.approx((values[0] - values[1]) / 2e-6, abs=1e-7)


@pytest.mark.parametrize("size", [0.0, 0.3])
def test_a_step_is_two_mean_losses_of_shifted_logits(size, digits, make):
    """CE(z + r) with a constant r = U relu(V p + v) + u, p the softmax of z; frozen at zero it is ER with two means."""
    options = {"memory": 30, "replay": 9, "online": True, "updates": 1, "optimiser": "sgd", "learning_rate": 0.1}
    method = make("cba", adaptor_rate=0.0, momentum=0.0, **options)
    method.learn(digits.features[:40], digits.labels[:40])
    adaptor, generator = method.adaptor, torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in (adaptor.outer, adaptor.outer_bias):
            parameter.copy_(size * torch.randn(parameter.shape, generator=generator))
    steps, loss = [], method.loss
    method.loss = lambda batch: steps.append(batch) or loss(batch)
    W, b = (p.detach().double().numpy().copy() for p in method.student.head.parameters())
    V, v, U, u = (
        p.detach().double().numpy() for p in (adaptor.inner, adaptor.inner_bias, adaptor.outer, adaptor.outer_bias)
    )
    method.learn(digits.features[40:56], digits.labels[40:56])
    X = steps[0]["inputs"].double().numpy()
    z = X @ W.T + b
    r = np.maximum(softmax(z) @ V + v, 0) @ U.T + u
    errors = softmax(z + r) - (steps[0]["labels"].numpy()[:, None] == method.student.head.classes)
    errors[:16] /= 16
    errors[16:] /= 9
    np.testing.assert_allclose(method.student.head.weight.detach(), W - 0.1 * errors.T @ X, atol=1e-6)
    assert (np.abs(r).max() > 0.1) == (size > 0)


def test_a_constant_shift_by_the_prior_is_las_but_for_the_two_means(digits, make):
    method = make("cba", online=True)
    rows = method.rows(digits.features[:40], digits.labels[:40])
    method.meet(rows)
    with torch.no_grad():
        counts = torch.bincount(rows["labels"], minlength=10)[method.student.head.classes]
        method.adaptor.outer_bias.copy_(counts.log())
        method.student.head.weight.normal_(generator=torch.Generator().manual_seed(0))
    las = make("las", online=True)
    las.meet(rows)
    las.student.load_state_dict(method.student.state_dict())
    las.window.note(rows["labels"].tolist())
    torch.testing.assert_close(method.loss(rows), las.loss(rows))


@pytest.mark.parametrize("online", [False, True])
def test_the_adaptor_learns_when_the_memory_is_full_and_every_few_steps(online, digits, make):
    method = make("cba", online=online, memory=40, epochs=1, updates=3, adaptor_every=4)
    taught, teach = [], method.teach_adaptor
    method.teach_adaptor = lambda batch: taught.append(method._steps) or teach(batch)
    phases = digits.stream(5).phases
    digits.teach(method, phases[0], at_most=32)
    assert not taught
    digits.teach(method, phases[1], at_most=64)
    digits.teach(method, phases[2], at_most=64)
    assert taught == list(range(0, taught[-1] + 1, 4))
    assert len(taught) >= 2
    assert method.adaptor.outer.abs().max() > 0
    plain = method.student(torch.from_numpy(digits.test_features)).detach().numpy()
    np.testing.assert_allclose(method.logits(digits.test_features), plain, atol=1e-5)  # predictions know no shift
