"""Laws of predicting: only what was taught counts, only the row itself counts, and nothing changes by it."""

from __future__ import annotations

import numpy as np

from aircl.benchmark.contract.comparison import difference, differing_files, saved_state
from aircl.benchmark.contract.exam import Exam, after_phase
from aircl.benchmark.contract.material import SEED
from aircl.benchmark.contract.pupil import ViolationError
from aircl.scenarios import Phase
from aircl.scenarios.stream import Labels

# With wrong labels taught, at most this many times as good as guessing.
AT_CHANCE = 2.5
# Rows of a class from which little is learned, so that who knows more stands out.
FEW = 4
# What share of rows may change, as sums and draws by label may be in another order.
RENAMED = 0.02
# Products of matrices of other shapes round differently, which may turn a draw between two classes.
ROUNDING = 0.01


def predicts_exposed(exam: Exam) -> str:
    """Try test rows of all classes at the end of every phase, and from the second on in its midst."""
    pupil = exam.pupil()
    ended = 0
    for lesson in exam.course():
        pupil.attend(lesson)
        at_end = isinstance(lesson, Phase)
        ended += at_end
        # In its first phase a method need not have an answer yet.
        if ended and (strange := sorted(set(pupil.predict_test().tolist()) - pupil.exposed)):
            raise ViolationError(
                f"{f'at the end of phase {ended}' if at_end else f'within phase {ended + 1}'} it predicted the classes "
                f"{strange}, of which it had seen no sample; exposed were {sorted(pupil.exposed)}."
            )
    return f"no other class in {ended} phases, at their ends and within them."


def knows_no_test_label(exam: Exam) -> str:
    """Teach a wrong label with every row, drawn at random: who is right about test rows has it from elsewhere."""
    truth = exam.material.train_labels
    wrong = (truth + np.random.default_rng(SEED).integers(1, 10, len(truth))) % 10
    pupil = exam.pupil(wrong)
    pupil.attend(*exam.course(exam.material.rows_of(*range(10)), labels=wrong))
    share = float(np.mean(pupil.predict_test() == exam.material.test_labels))
    found = f"taught wrong labels only, drawn at random, it is right about {share:.0%} of the test digits"
    if share > AT_CHANCE / 10:
        raise ViolationError(f"{found}; guessing gives 10%, so it gets at test labels by another way than learning.")
    return f"{found}, no better than guessing."


def takes_names_for_names(exam: Exam) -> str:
    """Teach few rows twice, the second time with every class under another name, in the same order of names.

    A name says nothing about a row, so the same classes must be predicted. Who knows the true labels from elsewhere,
    and uses them where they agree with what is taught, is no longer right about as much.
    """
    material = exam.material
    rows = material.rows_of(*range(10), at_most=FEW)
    names, truth = 11 + 3 * material.train_labels, 11 + 3 * material.test_labels
    plain, renamed = exam.pupil(), exam.pupil(names)
    plain.attend(*exam.course(rows))
    renamed.attend(*exam.course(rows, labels=names))
    first, second = 11 + 3 * plain.predict_test(), renamed.predict_test()
    right = [float(np.mean(answer == truth)) for answer in (first, second)]
    changed = int(np.count_nonzero(first != second))
    found = (
        f"{changed} of {len(first)} test rows get another class when classes are called 11, 14, 17, .. and not 0, 1, 2"
    )
    if changed > RENAMED * len(first):
        raise ViolationError(
            f"{found}; {right[0]:.0%} are right with the true names and {right[1]:.0%} with others. A name must not "
            "matter: true labels may come from elsewhere than learn."
        )
    return f"{found}."


def judges_rows_alone(exam: Exam) -> str:
    """Try the same test rows in other company: class by class, and one at a time."""
    pupil = exam.pupil()
    pupil.attend(*exam.course(exam.material.rows_of(*range(10), at_most=60)))
    inputs = exam.material.test_inputs
    together = pupil.predict_test()
    order = np.argsort(exam.material.test_labels, kind="stable")
    for what, groups in (
        ("in groups of one class", np.array_split(order, 10)),
        ("one row at a time", list(order[::9, None])),
    ):
        rows = np.concatenate(groups)
        apart = np.concatenate([pupil.predict(inputs[group]) for group in groups])
        _agree(together[rows], apart, f"encoded and predicted {what}")
        encoded = pupil.encode(inputs)
        apart = np.concatenate([pupil.predict_encoded(encoded[group], len(group)) for group in groups])
        _agree(together[rows], apart, f"encoded together and predicted {what}")
    return "predictions do not depend on what else is predicted."


def encodes_alike(exam: Exam) -> str:
    """Encode test rows before anything is learned and at the end: predictions must not tell the two apart."""
    pupil = exam.pupil()
    early = pupil.encode(exam.material.test_inputs)
    pupil.attend(*exam.course())
    n_rows = len(exam.material.test_inputs)
    from_early = pupil.predict_encoded(early, n_rows)
    from_late = pupil.predict(exam.material.test_inputs)
    if changed := int(np.count_nonzero(from_early != from_late)):
        raise ViolationError(
            f"{changed} of {n_rows} test rows get another label when they were encoded before the stream than when "
            "they are afterwards. What changes by learning belongs into predict."
        )
    return "rows that were encoded before the stream are predicted like those encoded after it."


def predicting_is_pure(exam: Exam) -> str:
    """Ask for the same answer and the same files twice, and for the same end of the stream as without any question."""
    course = exam.course()
    half = after_phase(course, 2)
    asked, left_alone = exam.pupil(), exam.pupil()
    asked.attend(*course[:half])
    left_alone.attend(*course[:half])
    first = asked.predict_test()  # what is computed when it is first asked for may be kept ..
    before = saved_state(asked)
    if changed := int(np.count_nonzero(first != asked.predict_test())):
        raise ViolationError(f"predicted twice in a row, {changed} of {len(first)} test rows got different labels.")
    asked.predict(exam.material.test_inputs[::-1])
    if files := differing_files(before, saved_state(asked)):
        raise ViolationError(f"predict changed what is saved: {', '.join(files[:3])} differs before and after.")
    asked.attend(*course[half:])  # .. but must make no difference to what is learned
    left_alone.attend(*course[half:])
    if different := difference(left_alone, asked):
        raise ViolationError(
            f"a method that was asked for predictions on the way ends up elsewhere than one that was not: {different}."
        )
    return "same answers, same saved state, same end of the stream."


def _agree(together: Labels, apart: Labels, what: str) -> None:
    """Refuse predictions that differ in more than a few rows."""
    changed = int(np.count_nonzero(together != apart))
    if changed > ROUNDING * len(together):
        raise ViolationError(
            f"{changed} of {len(together)} test rows get another label when they are {what}: a prediction depends on "
            "the other rows of its batch."
        )
