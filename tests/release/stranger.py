"""What a stranger does first: install the wheel where nothing else is, first classifier, first report, first service.

    python tests/release/stranger.py ENVIRONMENT WHEEL [OPTIONS OF PIP]

`make test-wheel` runs it. It makes an empty environment, says how long each stop took, and ends with an error at the
first that is not as README.md and docs/serve.md show it. It is no pytest file: the environment has no pytest.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SERVE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
CORE = """
import sys
from importlib.metadata import files, requires
from importlib.util import find_spec
import aircl
assert aircl.__file__.startswith(sys.prefix), f"not the installed one: {aircl.__file__}"
needs = [need for need in requires("aircl") if "extra ==" not in need]
assert needs, "the wheel names no dependencies"
assert not [need for need in needs if need.startswith("torch")], needs
assert find_spec("torch") is None, "aircl alone must not install torch"
kept = [str(path) for path in files("aircl") if not str(path).startswith("..")]  # .. is where the command is
assert not [path for path in kept if not path.startswith(("aircl/", "aircl-"))], kept
assert {"aircl/py.typed", f"aircl-{aircl.__version__}.dist-info/licenses/LICENSE"} <= set(kept), kept
"""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)


class Stranger:
    """Works in a folder of their own with an environment of their own."""

    def __init__(self, environment: Path, folder: Path) -> None:
        self.programs, self.folder = environment.resolve() / "bin", folder

    def run(self, command: str, *more: str) -> str:
        """Run a command of the environment, say how long it took, and return what it printed."""
        program, *arguments = command.split()
        began = time.perf_counter()
        call = [str(self.programs / program), *arguments, *more]
        done = subprocess.run(call, cwd=self.folder, capture_output=True, text=True, check=False)
        print(f"{time.perf_counter() - began:6.1f} s  {command}", flush=True)
        if done.returncode:
            sys.exit(f"{done.stdout}\n{done.stderr}\nfailed with {done.returncode}.")
        return done.stdout

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    @contextmanager
    def service(self, command: str) -> Iterator[str]:
        """Give the address of a service that runs as long as the block does; the system chooses a free port."""
        program, *arguments = command.split()
        call = [str(self.programs / program), *arguments, "--port", "0"]
        began = time.perf_counter()
        with subprocess.Popen(call, cwd=self.folder, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                address = re.search(r"http://\S+", process.stdout.readline())
                assert address, f"{command} did not start"
                print(f"{time.perf_counter() - began:6.1f} s  {command}", flush=True)
                yield address[0]
            finally:
                process.terminate()


def first_classifier(stranger: Stranger) -> None:
    shown = next(block for block in blocks(README, "python") if "AIRClassifier" in block)
    stranger.write("example.py", shown)
    printed = stranger.run("python example.py")
    assert printed in blocks(README, "text"), f"README shows something else than:\n{printed}"
    stranger.run("aircl features digits --backbone identity -o digits.npz")
    stranger.run("aircl learn digits.npz --features X_train --label y_train -o m.safetensors")
    told = json.loads(stranger.run("aircl evaluate m.safetensors digits.npz --features X_test --label y_test --json"))
    assert told["accuracy"] > 0.95, told


def first_report(stranger: Stranger) -> None:
    stranger.run("aircl run --dataset digits --backbone identity --scenario long-tail --seeds 1 -o first")
    assert (stranger.folder / "first" / "report.html").stat().st_size > 10_000


def first_service(stranger: Stranger) -> None:
    install, serve = blocks(SERVE, "sh")[0].splitlines()
    assert install == "pip install 'aircl[serve]'"
    code, shown = blocks(SERVE, "python")[0], blocks(SERVE, "text")[0]
    token = blocks(SERVE, "console")[0].removeprefix("$ ").partition(" > ")
    with stranger.service(serve) as address:
        stranger.write(token[2].strip(), stranger.run(token[0]))
        stranger.write("client.py", code.replace("http://127.0.0.1:8000", address))
        printed = stranger.run("python client.py")
    assert printed == shown, f"docs/serve.md shows something else than:\n{printed}"


def main() -> None:
    environment, wheel, *options = sys.argv[1:]
    installed = str(Path(wheel).resolve())
    options = [str(Path(o).resolve()) if Path(o).is_file() else o for o in options]
    began = time.perf_counter()
    venv.create(environment, clear=True, with_pip=True)
    with tempfile.TemporaryDirectory() as folder:
        stranger = Stranger(Path(environment), Path(folder))
        pip = "python -m pip install --quiet --disable-pip-version-check"
        stranger.run(pip, *options, installed)
        stranger.run("python -c", CORE)
        version = re.search(r"-([\d.]+)-py3", installed)
        assert version is not None
        assert stranger.run("aircl --version") == f"aircl {version[1]}\n"
        first_classifier(stranger)
        first_report(stranger)
        stranger.run(pip, *options, f"{installed}[serve]")
        first_service(stranger)
    print(f"{time.perf_counter() - began:6.1f} s  from an empty environment to a service")


if __name__ == "__main__":
    main()
