"""Draw docs/page.png, the page of `aircl serve`, in the browser of the tests: support questions, learned and shown."""

from __future__ import annotations

import csv
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import time
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from aircl import Client

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "docs" / "page.png"
WIDTH, HEIGHT = 1280, 900


def questions(part: str) -> list[tuple[str, str]]:
    """Return questions and intents of a part of the example."""
    with (ROOT / "examples" / "support-questions.csv").open(encoding="utf-8", newline="") as file:
        return [(row["text"], row["intent"]) for row in csv.DictReader(file) if row["part"] == part]


def long_tailed(rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return fewer questions of every further intent, down to three."""
    intents = list(dict.fromkeys(intent for _, intent in rows))
    left = {intent: max(3, round(17 * 0.82**place)) for place, intent in enumerate(intents)}
    kept = []
    for text, intent in rows:
        left[intent] -= 1
        if left[intent] >= 0:
            kept.append((text, intent))
    return kept


def tests_browser() -> Any:
    """Return what the tests open their browser with."""
    spec = importlib.util.spec_from_file_location("tests_conftest", ROOT / "tests" / "conftest.py")
    assert spec is not None and spec.loader is not None  # noqa: PT018
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def draw(page: Any, url: str, tests: Any) -> None:
    """Teach a service, show it questions, and take the picture."""
    with Client(url) as client:
        known = long_tailed(questions("train"))
        for start in range(0, len(known), 10):
            texts, intents = zip(*known[start : start + 10], strict=True)
            for text in texts if start else ():  # predicted one by one, as they arrive, and learned then
                client.ask([text], novelty=0.01)
            client.learn(list(texts), list(intents))
            solved(client)
            time.sleep(2)  # charts have a point every two seconds
    tests.resize(page, WIDTH, HEIGHT)
    tests.prefer(page, "light")
    page.get(url)
    until(page, "return document.querySelectorAll('#helpful li').length > 2")
    shown = "\n".join(["Do you sell pizza with pineapple?", *(text for text, _ in questions("test")[:11])])
    page.execute_script("document.getElementById('input').value = arguments[0]", shown)
    page.find_element("id", "show").click()
    until(page, "return document.querySelectorAll('#waiting .share:not(:empty)').length === 11")
    for taught in (1, 2):
        page.execute_script("document.querySelector('#waiting li:last-child button').click()")
        page.find_element("css selector", "#card .option").click()
        until(page, f"return document.getElementById('taught-title').textContent.endsWith(': {taught}')")
    with Client(url) as client:
        solved(client)
    until(page, "return document.getElementById('glance').textContent.includes('up to date')")
    page.execute_script("document.activeElement.blur(); document.getElementById('toast').className = ''")
    tests.resize(page, WIDTH, page.execute_script("return document.documentElement.scrollHeight"))
    time.sleep(2)
    with Image.open(BytesIO(page.get_screenshot_as_png())) as picture:
        few = picture.convert("RGB").quantize(96, Image.Quantize.MAXCOVERAGE)  # keeps what is rare, such as a green dot
        few.save(PLACE, optimize=True)


def solved(client: Client) -> None:
    """Wait until predictions know everything."""
    while (status := client.health())["solved"] is None or status["rows_behind"]:
        time.sleep(0.1)


def until(page: Any, script: str) -> None:
    """Wait until something is so."""
    end = time.monotonic() + 600  # the machine may be busy
    while not page.execute_script(script):
        if time.monotonic() > end:
            raise SystemExit(f"it did not happen: {script}")
        time.sleep(0.1)


def main() -> None:
    """Serve, draw, and say how large the picture is."""
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        raise SystemExit("nothing to draw with: install the Debian packages chromium and chromium-driver.")
    tests = tests_browser()
    with tempfile.TemporaryDirectory() as place, tests.open_browser(Path(place, "profile")) as page:
        command = [str(Path(sys.executable).with_name("aircl")), "serve", str(Path(place, "support")), "--init"]
        command += ["--backbone", "wordllama", "--port", "0", "--checkpoint-rows", "40", "--log-level", "error"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
            try:
                assert service.stdout is not None
                found = re.search(r"http://\S+", service.stdout.readline())
                assert found is not None
                draw(page, found[0], tests)
            finally:
                service.terminate()
    print(f"{PLACE.relative_to(ROOT)}: {PLACE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
