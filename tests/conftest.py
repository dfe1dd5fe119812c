"""Commands in processes of their own, quickly; and a browser."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass
class Command:
    """A command that was started; `wait` gives its exit code, a negative one for a signal."""

    server: Forks
    pid: int
    files: dict[str, Path] = field(default_factory=dict)
    code: int | None = None

    def wait(self):
        try:
            while self.code is None:
                time.sleep(0.005)
                self.code = self.server.ask({"wait": self.pid})
        except BaseException:  # it took too long: nothing of it stays behind for the next test
            os.kill(self.pid, signal.SIGKILL)
            raise
        return self.code

    @property
    def stdout(self):
        return self._read("stdout")

    @property
    def stderr(self):
        return self._read("stderr")

    def _read(self, name):
        """Return what was written by now; the process may not have come to open the file."""
        return self.files[name].read_text(errors="replace") if self.files[name].exists() else ""


class Forks:
    """Starts commands by forking a process that has imported everything; see `forkserver.py`."""

    def __init__(self, folder):
        self.folder, self.number = folder, 0
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("forkserver.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self, *args, stdout="", stderr="", **options):
        """Start a command. A stream goes to a file of ours, to another one that is named, or is closed (None)."""
        self.number += 1
        files = {name: self.folder / f"{self.number}.{name}" for name in ("stdout", "stderr")}
        streams = {
            name: str(files[name]) if where == "" else where for name, where in (("stdout", stdout), ("stderr", stderr))
        }
        request = {"args": list(map(str, args)), "cwd": os.getcwd(), "env": {}, **streams, **options}
        return Command(self, self.ask(request), files)

    def run(self, *args, **options):
        """Run a command to its end."""
        command = self.start(*args, **options)
        command.wait()
        return command


@pytest.fixture(scope="session")
def forks(tmp_path_factory):
    pytest.importorskip("pyarrow")
    server = Forks(tmp_path_factory.mktemp("forks"))
    yield server
    server.process.stdin.close()
    server.process.wait()
    server.process.stdout.close()


# -- a browser --
FLAGS = ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
         "disable-component-update", "disable-sync", "disable-dev-shm-usage", "hide-scrollbars")  # fmt: skip


@contextmanager
def open_browser(profile):
    """Give a Chromium without a window, whose profile is a folder."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"user-data-dir={profile}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    browser.set_script_timeout(300)
    try:
        yield browser
    finally:
        browser.quit()


# Ends when the page has drawn what it draws at its next frame: pages hear of a new size, or that they scrolled, then.
FRAMES = """
const [width, done] = arguments;
let frames = 0;
const look = () => {
  frames += width === null || innerWidth === width;
  if (frames > 2) done();
  else requestAnimationFrame(look);
};
look();
"""


def settle(browser, width=None):
    """Wait until the page has drawn, in a width if there is a new one."""
    browser.execute_async_script(FRAMES, width)


def resize(browser, width, height=900):
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    settle(browser, width)


def prefer(browser, colours):
    """Have the system wish for light or dark colours."""
    wish = {"name": "prefers-color-scheme", "value": colours}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [wish]})


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """Return the one browser of all tests."""
    pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install selenium")
    for command, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver")):
        if shutil.which(command) is None:
            pytest.skip(f"there is no {command} (Debian package {package})")
    with open_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser
