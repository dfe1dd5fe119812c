"""Laws of repeating: the same seed gives the same method, also with a stop on the way."""

from __future__ import annotations

from aircl.benchmark.contract.comparison import answers_differ, difference, saved_state, states_differ
from aircl.benchmark.contract.exam import Exam, after_phase
from aircl.benchmark.contract.fresh_process import continue_elsewhere, find_place
from aircl.benchmark.contract.material import SEED
from aircl.benchmark.contract.pupil import NotApplicableError, Pupil, ViolationError
from aircl.benchmark.contract.randomness import global_randomness
from aircl.scenarios import Phase


def is_deterministic(exam: Exam) -> str:
    """Try another run with the same seed, while the random states of the process are others."""
    if different := difference(*_two_runs(exam)):
        raise ViolationError(
            f"two runs with seed {SEED} differ: {different}. Draw everything from a generator of your own, seeded with "
            "setup.seed."
        )
    return f"two runs with seed {SEED} agree, whatever the random states of the process."


def saves_the_same(exam: Exam) -> str:
    """Compare what two runs with one seed save: noise in a state may change no prediction here, and one elsewhere."""
    exam.need_saving()
    one, other = map(saved_state, _two_runs(exam))
    if different := states_differ(one, other):
        raise ViolationError(
            f"two runs with seed {SEED} save different states: {', '.join(different[:3])} differs. Draw everything "
            "from a generator of your own, seeded with setup.seed."
        )
    return f"two runs with seed {SEED} save the same."


def _two_runs(exam: Exam) -> tuple[Pupil, Pupil]:
    """Return two methods that were taught the same, while the random states of the process were others."""
    pupils = []
    for state in (1, 2):
        with global_randomness(state):
            pupil = exam.pupil()
            pupil.attend(*exam.course())
            pupil.predict_test()
        pupils.append(pupil)
    return pupils[0], pupils[1]


def resumes_between_phases(exam: Exam) -> str:
    """Save at the end of the second phase, and restore into a new object."""
    return _resumes_at(exam, 0, "at the end of phase 2")


def resumes_within_phase(exam: Exam) -> str:
    """Save after three batches of the third phase, and restore into a new object."""
    return _resumes_at(exam, 3, "within phase 3")


def resumes_elsewhere(exam: Exam) -> str:
    """Save at the end of the second phase, and restore in a process that has never seen the method at work.

    What it holds in a module, in a class or anywhere else but in its files is not there.
    """
    exam.need_saving()
    if find_place(exam.factory) is None:
        raise NotApplicableError("another process cannot import its class. Put it into a file of its own.")
    course = exam.course()
    stop = after_phase(course, 2)
    steady = exam.pupil()
    steady.attend(*course[:stop])
    before, elsewhere = saved_state(steady), continue_elsewhere(steady, course[stop:])
    if changed := states_differ(before, elsewhere.state):
        raise ViolationError(
            f"restored in another process, it saves something else: {', '.join(changed[:3])} differs. What is saved "
            "must follow from what was learned, not from the process, the order of a set or the hash of a text."
        )
    moments = ("right after", "at the end of the stream after")
    for moment, answer in zip(moments, (elsewhere.restored, elsewhere.ended), strict=True):
        if different := answers_differ((steady.predict_test(), steady.score_test()), answer):
            raise ViolationError(
                f"{moment} a restore in another process: {different}. save must write everything, also what is kept "
                "outside of the object."
            )
        steady.attend(*course[stop:] if moment == "right after" else [])
    return "restored in a process that never taught it, it is the same to the end of the stream."


def _resumes_at(exam: Exam, batches: int, where: str) -> str:
    """Compare a method that stops so many batches after phase 2 with one that never stops, to the end of the stream."""
    exam.need_saving()
    course = exam.course()
    stop = after_phase(course, 2) + batches
    steady, stopped = exam.pupil(), exam.pupil()
    steady.attend(*course[:stop])
    stopped.attend(*course[:stop])
    with global_randomness(3):  # a new process would not have the old one's either
        stopped = stopped.stopped_and_restored()
        if different := difference(steady, stopped):
            raise ViolationError(f"right after save and restore {where}: {different}. save must write everything.")
        for number, lesson in enumerate(course[stop:]):
            steady.attend(lesson)
            stopped.attend(lesson)
            # Within phases too, as for curves of any-time accuracy.
            if (isinstance(lesson, Phase) or number % 5 == 0) and (different := difference(steady, stopped)):
                raise ViolationError(
                    f"restored {where}, it learns on differently from a method that never stopped: {different}. "
                    "save must write everything, the random state included."
                )
    return f"stopped {where} and restored, it is the same to the end of the stream."
