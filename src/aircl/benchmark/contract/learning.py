"""Laws of learning: what a method knows after it was taught, whatever the shape of the stream."""

from __future__ import annotations

import numpy as np

from aircl.benchmark.contract.exam import Exam, after_phase
from aircl.benchmark.contract.material import SEED
from aircl.benchmark.contract.pupil import Pupil, ViolationError
from aircl.scenarios import Phase
from aircl.scenarios.stream import Labels

# What share of test digits must be right after one phase of all ten classes, where guessing gives a tenth. Low enough
# for one pass of gradient steps, and far above any accident.
LEARNED = 0.5
# How many times better than guessing a method must be on the classes that it has just learned, whatever it forgot.
ABOVE_CHANCE = 2.0
# The same where there are but three classes.
ABOVE_CHANCE_OF_THREE = 1.5


def learns(exam: Exam) -> str:
    """Try all classes in one phase, so that a method that forgets has nothing to forget."""
    pupil = exam.pupil()
    pupil.attend(*exam.course(exam.material.rows_of(*range(10))))
    share = float(np.mean(pupil.predict_test() == exam.material.test_labels))
    found = f"{share:.0%} of the test digits are right after one phase of all ten classes"
    if share < LEARNED:
        raise ViolationError(f"{found}; it should be {LEARNED:.0%} at least, guessing gives 10%.")
    return f"{found} ({LEARNED:.0%} needed)."


def learns_newest(exam: Exam) -> str:
    """Try phase after phase; what was forgotten of earlier ones is the method's affair."""
    pupil = exam.pupil()
    course = exam.course()
    pupil.attend(*course)
    end = course[-1]
    assert isinstance(end, Phase)
    return _newest_are_learned(pupil, end.classes)


def learns_online(exam: Exam) -> str:
    """Try samples of a class on both sides of a phase's end, which is announced only to methods that ask for it."""
    rows = exam.material.rows_of
    returning = [rows(digit, at_most=90)[-30:] for digit in (0, 1)]
    second = np.concatenate([rows(3, 4, 5, at_most=60), *returning])
    pupil = exam.pupil(online=True)
    pupil.attend(*exam.course(rows(0, 1, 2, at_most=60), np.random.default_rng(SEED).permutation(second)))
    return _newest_are_learned(pupil, np.array([3, 4, 5]))


def survives_emptiness(exam: Exam) -> str:
    """Try an empty phase before anything was learned, one in the midst, and batches and queries of no rows."""
    rows, nothing = exam.material.rows_of, np.zeros(0, np.intp)
    course = exam.course(nothing, rows(0, 1, 2, 3, at_most=60), nothing, rows(4, 5, at_most=60))
    pupil = exam.pupil()
    pupil.attend(course[0])
    pupil = pupil.stopped_and_restored()
    for lesson in course[1:]:
        pupil.attend(lesson)
        if isinstance(lesson, Phase):
            pupil.attend(nothing)
            pupil.predict(exam.material.test_inputs[:0])
    return _newest_are_learned(pupil, np.array([4, 5]))


def learns_one_sample(exam: Exam) -> str:
    """Try a class of one sample in the first phase, one beside others later, and one that is a whole phase."""
    rows = exam.material.rows_of
    trains = [
        np.concatenate([rows(0, 1, at_most=30), rows(2, at_most=1)]),
        np.concatenate([rows(3, at_most=1), rows(4, at_most=30)]),
        rows(5, at_most=1),
    ]
    pupil = exam.pupil()
    for lesson in exam.course(*trains):
        pupil.attend(lesson)
        if isinstance(lesson, Phase):
            pupil.predict_test()
    pupil.stopped_and_restored().predict_test()
    return "such classes among others and alone in a phase."


def takes_any_batch(exam: Exam) -> str:
    """Try phases smaller than the batch that was announced, and batches of one row."""
    rows = exam.material.rows_of
    small, single = exam.pupil(batch_size=64), exam.pupil(batch_size=1)
    small.attend(*exam.course(rows(0, 1, at_most=3), rows(2, at_most=4), batch_size=64))
    single.attend(*exam.course(rows(0, 1, at_most=10), rows(2, at_most=10), batch_size=1))
    small.predict_test()
    single.predict_test()
    return "phases smaller than a batch, and batches of one row."


def takes_labels_with_gaps(exam: Exam) -> str:
    """Try labels such as 40, 3 and 7, in no order, with classes that are new in the midst of a phase."""
    names = np.array([40, 3, 7, 1000, 12, 500, 501, 502, 503, 504])
    labels, truth = names[exam.material.train_labels], names[exam.material.test_labels]
    rows = exam.material.rows_of
    first = np.concatenate([rows(0, at_most=20), rows(0, 1, 2)])
    second = np.concatenate([rows(3, at_most=40), rows(4, at_most=40)])
    course = exam.course(first, second, labels=labels)
    pupil = exam.pupil(labels)
    pupil.attend(*course[: after_phase(course, 1)])
    asked = np.isin(truth, names[:3])
    share = float(np.mean(pupil.predict_test()[asked] == truth[asked]))
    if share < ABOVE_CHANCE_OF_THREE / 3:
        raise ViolationError(
            f"with the labels 40, 3 and 7 it is right about {share:.0%} of the test digits of these classes; guessing "
            "gives 33%. Labels are names, not positions."
        )
    pupil.attend(*course[after_phase(course, 1) :])
    strange = sorted(set(pupil.predict_test().tolist()) - pupil.exposed)
    if strange:
        raise ViolationError(f"taught the labels {sorted(pupil.exposed)}, it predicted {strange}.")
    return f"{share:.0%} are right with the labels 40, 3 and 7; 1000 and 12 came later."


def _newest_are_learned(pupil: Pupil, newest: Labels) -> str:
    """Refuse a method that does no better than guessing on test rows of classes that it has just learned."""
    truth = pupil.material.test_labels
    asked = np.isin(truth, newest)
    share = float(np.mean(pupil.predict_test()[asked] == truth[asked]))
    chance = 1 / len(pupil.exposed)
    found = (
        f"{share:.0%} of the test digits of the newest classes {', '.join(map(str, newest.tolist()))} are right, with "
        f"{len(pupil.exposed)} classes to choose from"
    )
    needed = f"more than {ABOVE_CHANCE * chance:.0%}"
    if share <= ABOVE_CHANCE * chance:
        raise ViolationError(f"{found}; it should be {needed}, guessing gives {chance:.0%}.")
    return f"{found} ({needed} needed)."
