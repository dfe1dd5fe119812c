from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


def test_it_forgets(take_course):
    course = take_course("fine-tuning", compare="exposed", epochs=5)
    assert course.last < 0.3
    assert course.forgetting > 0.8


@pytest.mark.parametrize(("compare", "still"), [("phase", True), ("exposed", False)])
def test_rows_of_classes_of_other_phases_move_only_if_samples_are_told_from_them(compare, still, digits, make):
    method = make("fine-tuning", compare=compare, epochs=2)
    first, second, *_ = digits.stream(5).phases
    digits.teach(method, first)
    before = method.student.head.weight.detach().clone()
    digits.teach(method, second)
    assert torch.equal(method.student.head.weight[:2], before) == still
    assert method.student.head.weight[2:].abs().max() > 0.01


def test_within_a_phase_it_predicts_what_it_knew_before(digits, make):
    method = make("fine-tuning", epochs=1)
    first, second, *_ = digits.stream(5).phases
    method.learn(digits.features[first.train[:5]], digits.labels[first.train[:5]])
    assert set(method.predict(digits.test_features)) <= set(first.classes)  # not trained yet, but asked
    digits.teach(method, first)
    before = method.predict(digits.test_features)
    method.learn(digits.features[second.train], digits.labels[second.train])
    assert (method.predict(digits.test_features) == before).all()
    assert method.samples_kept == 0


def test_a_phase_is_let_go_of_when_it_ends(digits, make):
    method = make("fine-tuning", epochs=1)
    digits.teach(method, digits.stream(5).phases[0])
    assert method._open == []
