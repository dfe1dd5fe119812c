"""What README.md shows is what a reader gets."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def run(*command, cwd):
    return subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True, check=True).stdout


def test_the_quickstart_prints_what_is_shown(tmp_path):
    assert run(ROOT / "examples" / "quickstart.py", cwd=tmp_path).strip() == blocks("text")[1].strip()


def test_the_example_prints_what_is_shown(tmp_path):
    (tmp_path / "example.py").write_text(blocks("python")[0])
    assert run("example.py", cwd=tmp_path).strip() == blocks("text")[2].strip()
