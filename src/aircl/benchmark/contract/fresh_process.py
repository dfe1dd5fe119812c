"""A method in a process that has never taught it: what is not in its files is not there.

A server, started once and given nothing to learn, forks for every request, so that each costs no imports. Requests and
answers are files that this process writes and reads itself, in a directory that is gone afterwards.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from aircl.benchmark.contract.comparison import State, saved_state
from aircl.benchmark.contract.pupil import Lesson, NotApplicableError, Pupil, ViolationError


class Place(NamedTuple):
    """Where a class can be found by another process: a module or a file, and its name there."""

    module: str
    file: str | None
    name: str


class Answer(NamedTuple):
    """What a method is in the other process, before and after it learned on.

    Attributes
    ----------
    restored, ended : tuple
        Predictions and scores of the test rows.
    state : State
        What it saves there right after it was restored.
    """

    restored: tuple[Any, Any]
    ended: tuple[Any, Any]
    state: State


def find_place(factory: Any) -> Place | None:
    """Return where a class is; None if another process could not import it."""
    module, name = getattr(factory, "__module__", None), getattr(factory, "__qualname__", "<")
    if module is None or module == "__main__" or "<" in name:
        return None
    loaded = sys.modules.get(module)
    if loaded is None or getattr(loaded, name.partition(".")[0], None) is None:
        return None
    from_file = module.startswith("aircl_method_file_")
    return Place(module, str(loaded.__file__) if from_file else None, name)


def continue_elsewhere(pupil: Pupil, course: Sequence[Lesson]) -> Answer:
    """Save a method, restore it in a process that never taught it, and let it attend the rest of a course there.

    Raises
    ------
    ViolationError
        If it cannot be restored or taught there.
    """
    place = find_place(pupil.factory)
    assert place is not None
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "method").mkdir()
        pupil.save(folder / "method")
        with (folder / "request").open("wb") as file:
            pickle.dump(sys.path, file)
            pickle.dump((place, pupil.material, pupil.setup, pupil.labels, course), file)
        _ask(folder)
        answer = pickle.loads((folder / "answer").read_bytes())
    if isinstance(answer, ImportError):
        raise NotApplicableError(f"another process cannot import its class ({answer}). Put it into a file of its own.")
    if isinstance(answer, str):
        raise ViolationError(f"restored in another process, {answer}")
    return Answer(*answer)


def _ask(folder: Path) -> None:
    if hasattr(os, "fork"):
        server = _server("torch" in sys.modules)
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(f"{folder}\n")
        server.stdin.flush()
        server.stdout.readline()
    else:
        subprocess.run([*_COMMAND, str(folder)], env=_environment(str(folder)), check=False)
    if not (folder / "answer").exists():
        raise ViolationError("restored in another process, it ended that process.")


_COMMAND = [sys.executable, "-c", "from aircl.benchmark.contract.fresh_process import main; main()"]


def _environment(temporary: str) -> dict[str, str]:
    """Return the variables of the other process, which has a temporary directory of its own."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": temporary}


@functools.cache
def _server(with_torch: bool) -> subprocess.Popen[str]:
    """Start a server, once; another one when torch has been imported since, which takes seconds."""
    folder = TemporaryDirectory()
    server = subprocess.Popen(
        [*_COMMAND, "--serve", *(["torch"] if with_torch else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=_environment(folder.name),
    )
    atexit.register(_stop, server, folder)
    return server


def _stop(server: subprocess.Popen[str], folder: TemporaryDirectory[str]) -> None:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.close()
    server.wait()
    server.stdout.close()
    folder.cleanup()


# -- in the other process --
def _serve(modules: list[str]) -> None:
    """Fork for every line that names a directory, and write a line when its answer is there."""
    from aircl.methods.registry import load_methods

    load_methods()
    for module in modules:
        importlib.import_module(module)
    for line in sys.stdin:
        if child := os.fork():
            os.waitpid(child, 0)
            print("done", flush=True)
        else:
            try:
                _answer(Path(line.rstrip("\n")))
            finally:
                os._exit(0)


def _answer(folder: Path) -> None:
    from threadpoolctl import threadpool_limits

    from aircl.benchmark.contract.randomness import global_randomness

    answer: Any
    try:
        with threadpool_limits(1), global_randomness(4):
            answer = _go_on(folder)
    except ImportError as error:
        answer = ImportError(str(error))
    except Exception as error:
        text = str(error) if isinstance(error, ViolationError) else "".join(traceback.format_exception_only(error))
        answer = text.strip()
    temporary = folder / "answer.tmp"
    temporary.write_bytes(pickle.dumps(answer))
    temporary.rename(folder / "answer")


def _go_on(folder: Path) -> tuple[Any, Any, State]:
    # Classes in the request may be of modules that the other process has found since this one began.
    with (folder / "request").open("rb") as file:
        sys.path[:] = pickle.load(file)
        place, material, setup, labels, course = pickle.load(file)
    if place.file is None:
        factory: Any = importlib.import_module(place.module)
        for part in place.name.split("."):
            factory = getattr(factory, part)
    else:
        from aircl.benchmark.contract.module import load_method_class

        factory = load_method_class(place.file, place.name)
    pupil = Pupil(factory, material, setup, labels)
    pupil.method.restore(folder / "method")
    state = saved_state(pupil)
    restored = pupil.predict_test(), pupil.score_test()
    pupil.attend(*course)
    return restored, (pupil.predict_test(), pupil.score_test()), state


def main() -> None:
    """Answer one request, or serve many."""
    if sys.argv[1] == "--serve":
        _serve(sys.argv[2:])
    else:
        _answer(Path(sys.argv[1]))
