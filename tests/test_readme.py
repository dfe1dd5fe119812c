"""What README.md shows is what a reader gets."""

import re
import subprocess
import sys
from pathlib import Path

import aircl

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def run(*command, cwd):
    return subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True, check=True).stdout


def test_the_two_commands_come_first():
    assert re.findall(r"^make ([\w-]+)", blocks("sh")[0], re.MULTILINE) == ["run", "test"]
    assert README.index("make run") < README.index("pip install")


def test_the_example_prints_what_is_shown(tmp_path):
    (tmp_path / "example.py").write_text(blocks("python")[0])
    assert run("example.py", cwd=tmp_path).strip() == blocks("text")[0].strip()


def test_the_quickstart_prints_what_is_shown(tmp_path):
    assert run(ROOT / "examples" / "quickstart.py", cwd=tmp_path).strip() == blocks("text")[1].strip()


def test_the_wheel_is_that_of_this_version():
    assert f"aircl-{aircl.__version__}-py3-none-any.whl" in README
