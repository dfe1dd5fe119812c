from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")


def test_without_a_second_stage_it_is_icarl_with_its_head(take_course):
    settings = {"epochs": 2, "at_most": 60, "phases": 3, "learning_rate": 0.05}
    one = take_course("two-stage", second_epochs=0, **settings).method.student.head
    other = take_course("icarl", classify="head", **settings).method.student.head
    assert torch.equal(one.weight, other.weight)
    assert torch.equal(one.bias, other.bias)


def test_the_second_stage_is_sgd_on_scales_and_new_rows_with_balanced_samples(digits, make):
    """dL/ds_c = mean (p_c - y_c) z_c; rows by the chain rule; old rows stay; all goes into the head in the end."""
    method = make("two-stage", epochs=1, second_epochs=1, second_rate=0.5, momentum=0.0)
    first, second, *_ = digits.stream(5).phases
    digits.teach(method, first, at_most=64)
    steps, criterion = [], method.criterion

    def noted(logits, labels, views):
        if method.scales is not None:
            steps.append((views.double().numpy(), labels.numpy()))
            if len(steps) == 1:
                steps.append([p.detach().double().numpy().copy() for p in method.student.head.parameters()])
        return criterion(logits, labels, views)

    method.criterion = noted
    digits.teach(method, second, at_most=40)
    W, b = steps.pop(1)
    classes, s = np.array(method.student.head.classes), np.ones(4)
    assert len(steps) == 5  # 40 samples and 40 exemplars
    counts = np.bincount(np.concatenate([labels for _, labels in steps]), minlength=10)
    assert counts[classes].tolist() == [20] * 4
    for X, labels in steps:
        z = X @ W.T + b
        z -= z.mean(1, keepdims=True)
        p = np.exp(s * z)
        errors = (p / p.sum(1, keepdims=True) - (labels[:, None] == classes)) / len(X)
        back = errors * s
        back -= back.mean(1, keepdims=True)
        back[:, :2] = 0  # old rows
        s = s - 0.05 * (errors * z).sum(0)
        W, b = W - 0.5 * back.T @ X, b - 0.5 * back.sum(0)
    np.testing.assert_allclose(method.student.head.weight.detach(), s[:, None] * (W - W.mean(0)), atol=1e-6)
    np.testing.assert_allclose(method.student.head.bias.detach(), s * (b - b.mean()), atol=1e-6)


def test_the_backbone_rests_in_the_second_stage(digits, make, tiny_network):
    method = make("two-stage", backbone=tiny_network, unfreeze=True, epochs=1, second_epochs=1)
    trunks, pass_again = [], method.pass_again

    def noted(*arguments, **more):
        trunks.append(method.student.trunk[1].weight.clone())
        pass_again(*arguments, **more)
        trunks.append(method.student.trunk[1].weight.clone())
        assert all(p.grad is None for p in method.student.trunk.parameters())

    method.pass_again = noted
    digits.teach(method, digits.stream(5).phases[0], at_most=48)
    assert torch.equal(*trunks)
    assert not torch.equal(trunks[0], tiny_network.module[1].weight)
