"""The page in a real browser, at a real service: see what it knows, teach it, watch it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np
import pytest
from safetensors.numpy import load_file
from sklearn.datasets import load_digits

from aircl import AIRClassifier, Client
from aircl.serve.tokens import add_token
from aircl.serve.versions import Directory

from ..conftest import prefer, resize, settle
from .conftest import wait_until

pytestmark = pytest.mark.slow

X, Y = load_digits(return_X_y=True)
Y = [f"digit {label}" for label in Y]
HOSTILE = [
    '<img src=x onerror="window.hacked = 1">', '"><script>window.hacked = 2</script>', "' onclick='window.hacked = 3",
    "\u202elaw\u202c \u05e9\u05dc\u05d5\u05dd", "constructor", "__proto__", "{{7*7}} ${7*7}", "x" * 1000,
]  # fmt: skip


@pytest.fixture
def small(tmp_path):
    """Return the directory of a service that takes three numbers and has learned nothing."""
    directory = Directory(tmp_path / "small")
    directory.make(AIRClassifier(0.1, expansion=None))
    return directory


@pytest.fixture
def digits(tmp_path):
    """Return the directory of a service that knows digits."""
    directory = Directory(tmp_path / "digits")
    directory.make(AIRClassifier(expansion=None).fit(X[:300], Y[:300]))
    return directory


CLICK = """
const [selector, place] = arguments, element = document.querySelectorAll(selector)[place];
if (!element || element.disabled || !element.checkVisibility()) return null;
element.scrollIntoView({block: "center"});
const box = element.getBoundingClientRect();
if (!element.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2))) return null;
const text = element.textContent;
element.focus();
element.click();
return [text];
"""


class Page:
    """The page, as somebody uses it."""

    def __init__(self, driver, url):
        self.driver, self.url = driver, url

    def open(self, live=True):
        self.driver.get(self.url)
        if live:
            self.wait("connection", "Live")
        return self

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def texts(self, selector):
        """Return what elements say, all at one moment."""
        script = "return [...document.querySelectorAll(arguments[0])].map((element) => element.textContent)"
        return self.driver.execute_script(script, selector)

    def click(self, selector, place=0):
        """Click an element as soon as it is in sight and enabled, and return what was on it."""
        # All at one moment: the page may draw it anew at any time, and something else would be in its place.
        (text,) = wait_until(lambda: self.driver.execute_script(CLICK, selector, place))
        return text

    def text(self, name):
        return self.driver.execute_script("return document.getElementById(arguments[0])?.textContent ?? ''", name)

    def wait(self, name, part):
        """Wait until an element says something."""
        return wait_until(lambda: part in self.text(name))

    def press(self, *keys):
        """Press keys, wherever the focus is."""
        from selenium.webdriver import ActionChains

        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def name(self, label):
        """Teach a class by its name, as soon as one can be typed."""
        self.click("#class-name")
        self.press(label, "\ue007")

    def undo(self):
        """Take back the last change by its key, as soon as that is possible."""
        blocked = "return document.getElementById('undo').disabled || document.querySelector('dialog[open]') !== null"
        wait_until(lambda: not self.driver.execute_script(blocked))
        self.press("u")

    def is_disabled(self, selector):
        return self.driver.execute_script("return document.querySelector(arguments[0]).disabled", selector)

    def show(self, rows):
        text = "\n".join(row if isinstance(row, str) else ",".join(map(str, row)) for row in rows)
        self.driver.execute_script("document.getElementById('input').value = arguments[0]", text)
        self.click("#show")
        wait_until(lambda: self.best() is not None)

    def best(self):
        """Return the first label of what is looked at; None while there is none."""
        return self.driver.execute_script(
            "return document.querySelector('#card .option .label')?.textContent "
            "?? (document.querySelector('#card .said')?.textContent.startsWith('Nothing is learned') ? '' : null)"
        )

    def counts(self):
        """Return the rows of every class, as the table tells them."""
        rows = self.driver.execute_script(
            "return [...document.querySelectorAll('#classes tbody tr:not(.loading)')].map((row) => "
            "[row.querySelector('th .label').textContent, row.querySelector('.bar-cell span').textContent])"
        )
        return {label: float(count.replace(",", "")) for label, count in rows}

    def problems(self):
        """Return what the console complains of."""
        return [entry for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


@pytest.fixture
def open_page(driver):
    """Return a function that opens the page of a running service, wide and in light colours."""
    resize(driver, 1280)
    prefer(driver, "light")
    opened = []

    def show(url, live=True):
        opened.append(Page(driver, url).open(live))
        return opened[-1]

    driver.get_log("browser")
    yield show
    # Chromium notes every request that is refused or not answered at all; some tests provoke them.
    provoked = ("status of 401", "status of 403", "status of 422", "ERR_CONNECTION", "ERR_INTERNET", "ERR_INCOMPLETE")
    assert [entry for entry in opened[-1].problems() if not any(part in entry["message"] for part in provoked)] == []
    driver.get("about:blank")


@pytest.fixture
def closing():
    """Return a function that has something closed at the end."""
    with ExitStack() as stack:
        yield stack.enter_context


def statistics(directory, version):
    """Return everything that a checkpoint has learned, as bytes."""
    arrays = load_file(directory.path / "versions" / f"{version:012d}.safetensors")
    return {name: array.tobytes() for name, array in arrays.items() if name.startswith("statistics.")}


def test_a_class_is_taught_by_keys_alone_and_undo_restores_everything(small, processes, open_page):
    from selenium.webdriver import Keys

    running = processes(small.path, "--checkpoint-rows", "1")
    page = open_page(running.url)
    page.wait("no-classes", "Nothing is learned yet")
    for row, label in (("1,0,0", "cat"), ("0,1,0", "dog"), ("0,0.9,0.2", "dog")):
        page.press("t", row, Keys.ENTER, Keys.ESCAPE)
        wait_until(lambda: page.best() is not None)
        page.press("n", label, Keys.ENTER)
        page.wait("toast", f"Learned as {label}")
        wait_until(lambda label=label: label in page.counts())
        page.press(Keys.ESCAPE)
    wait_until(lambda: page.counts() == {"cat": 1, "dog": 2})
    page.press("t", "0.9,0.1,0", Keys.ENTER, Keys.ESCAPE)
    wait_until(lambda: page.best() == "cat")  # which did not exist a moment ago
    wait_until(lambda: small.read().current.version == 3)
    page.press("1")
    wait_until(lambda: page.counts() == {"cat": 2, "dog": 2})
    wait_until(lambda: small.read().current.version == 4)
    assert statistics(small, 4) != statistics(small, 3)
    page.wait("undo-what", "Learned 1 row: cat")
    page.undo()
    wait_until(lambda: page.counts() == {"cat": 1, "dog": 2})
    wait_until(lambda: small.read().current.version == 5)
    assert statistics(small, 5) == statistics(small, 3)
    page.wait("changes", "taken back")
    wait_until(lambda: page.best() == "cat")  # it waits again
    page.press("?")
    wait_until(page.find("#help").is_displayed)
    page.press(Keys.ESCAPE)
    wait_until(lambda: not page.find("#help").is_displayed())
    page.press("/")
    wait_until(lambda: page.driver.switch_to.active_element.get_attribute("id") == "search")
    page.press("do")
    wait_until(lambda: page.counts() == {"dog": 2})


@pytest.mark.parametrize("ledger", [False, True])
def test_a_correction_changes_the_counts(tmp_path, processes, open_page, ledger):
    directory = Directory(tmp_path / "service")
    known = [[1, 0, 0], [0.8, 0, 0.1], [0, 1, 0], [0.1, 0.8, 0]]
    ids = {"ids": [*"1234"]} if ledger else {}
    directory.make(AIRClassifier(0.1, expansion=None, ledger=ledger).fit(known, [*"aabb"], **ids))
    page = open_page(processes(directory.path).url)
    page.show(["0.9,0.1,0", "0.1,0.9,0"])
    for total in (5, 6):
        page.click("#card .option")
        wait_until(lambda total=total: sum(page.counts().values()) == total)
    assert page.counts() == {"a": 3, "b": 3}
    page.wait("undo-what", "Learned 1 row")
    for correction in (0, 1):  # of the last change, and of one before it
        wait_until(lambda: len(page.all("#taught .entry .plain")) == 4)
        page.click("#taught .entry .plain", 2 * correction)
        page.wait("card", "What should it have been?")
        page.name("c")
        wait_until(lambda correction=correction: page.counts().get("c") == correction + 1)
    assert page.counts() == {"a": 2, "b": 2, "c": 2}
    wait_until(lambda: len(page.all("#taught .entry .plain")) == 4)
    page.click("#taught .entry .plain", 3)  # forget
    wait_until(lambda: page.counts() == {"a": 2, "b": 2, "c": 1})
    with Client(page.url) as client:
        assert client.classes() == page.counts()
    corrections = 2 if ledger else 0  # with ids it is one change

    def told():
        kinds = [text.split()[0] for text in page.texts("#changes tbody td:nth-child(2)")]
        return "Forgot" in kinds and kinds.count("Corrected") == corrections

    wait_until(told)


def test_tokens_restarts_and_a_service_that_is_gone(digits, processes, open_page):
    tokens = digits.path / "tokens.json"
    all_scopes, only_learn = (
        add_token(tokens, name, scopes)
        for name, scopes in (("all", ("predict", "learn", "admin")), ("some", ("learn",)))
    )
    running = processes(digits.path)
    url = running.url
    page = open_page(url, live=False)
    wait_until(lambda: page.find("#token-dialog").is_displayed())

    def enter(token):
        page.find("#token").send_keys(token, "\n")

    def waits(told):
        where = ("no-classes", "no-changes", "no-versions", "chart-rows", "doubt", "teach-hint")
        wait_until(lambda: [page.text(name) for name in where] == [told] * len(where))

    waits("Known with a token")
    assert page.text("name") == urlsplit(url).hostname
    enter("wrong")
    page.wait("token-problem", "not known")
    page.wait("connection", "Refused")
    enter(only_learn)
    page.wait("connection", "lacks the scope 'predict'")
    waits("Not for this token")
    page.driver.execute_script("document.getElementById('token-dialog').close()")
    page.click("#reconnect")
    enter(all_scopes)
    page.wait("connection", "Live")
    wait_until(lambda: not page.find("#token-dialog").is_displayed())
    stored = (
        "return [localStorage.length, sessionStorage.length, document.cookie, location.href.includes(arguments[0])]"
    )
    assert page.driver.execute_script(stored, all_scopes) == [0, 0, "", False]
    page.show([X[400]])
    running.kill()
    page.wait("connection", "Offline")
    assert page.is_disabled("#undo")
    assert page.is_disabled("#card .option")
    assert page.counts() != {}  # what was known stays in sight
    processes(digits.path, port=urlsplit(url).port)
    page.wait("connection", "Live")
    page.wait("toast", "restarted")
    page.press("1")  # the token is still known
    page.wait("toast", "Learned as digit")
    page.driver.execute_cdp_cmd("Network.enable", {})
    offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**offline, "offline": True})
    page.wait("connection", "Offline")
    page.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {**offline, "offline": False})
    page.wait("connection", "Live")
    page.driver.refresh()  # and now it is not
    wait_until(lambda: page.find("#token-dialog").is_displayed())


def test_hostile_labels_and_rows_do_nothing(tmp_path, processes, open_page):
    directory = Directory(tmp_path / "texts")
    directory.make(AIRClassifier(backbone="char-ngrams"))
    url = processes(directory.path, "--checkpoint-rows", "1").url
    with Client(url) as client:
        client.learn([f"row {k}" for k in range(len(HOSTILE))], HOSTILE)
        client.learn(["one", "two", "three", "four"], ["twin", "twin ", "", " "])
    page = open_page(url)
    wait_until(lambda: len(page.counts()) == len(HOSTILE) + 4)
    assert {"twin", "“twin ”", "(empty)", "“ ”"} <= page.counts().keys()  # that differ is seen
    page.show([HOSTILE[0], HOSTILE[1]])
    page.name(HOSTILE[2])
    page.wait("toast", "Learned as")
    page.press("\ue00c", "n")  # Escape, then n
    page.driver.execute_script("document.getElementById('class-name').value = 'y'.repeat(5000)")
    page.press("\ue007")
    page.wait("toast", "Not learned")
    wait_until(lambda: page.counts()[HOSTILE[2]] == 2)
    shown = {*page.counts()}
    assert {label for label in HOSTILE if len(label) < 200} <= shown
    wait_until(lambda: page.all("#versions button"))
    page.driver.execute_script("document.querySelector('#versions tr:last-child button').click()")
    page.wait("rollback-what", "will be lost")
    fits = "const dialog = document.getElementById('rollback-dialog'); return dialog.scrollWidth <= dialog.clientWidth"
    assert page.driver.execute_script(fits)
    assert page.driver.execute_script(
        "return [window.hacked ?? null, document.querySelectorAll('main img, dialog img, main script').length]"
    ) == [None, 0]
    page.click("#rollback-dialog [data-close]")
    spare = "return innerWidth - Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"
    fits = "const table = document.getElementById('class-scroll'); return table.scrollWidth <= table.clientWidth"
    for width in (360, 1280):
        resize(page.driver, width)
        wait_until(lambda: page.driver.execute_script(spare) >= 0)
        wait_until(
            lambda width=width: width > 360 or page.driver.execute_script(fits)
        )  # wider, long names may be scrolled


def test_a_number_that_a_browser_rounds_is_not_sent_back(tmp_path, processes, open_page):
    directory = Directory(tmp_path / "numbers")
    directory.make(AIRClassifier(0.1, expansion=None).fit(np.eye(3), [2**53 + 1, 1, 2]))
    page = open_page(processes(directory.path).url)
    wait_until(lambda: len(page.counts()) == 3)
    page.show(["1,0,0"])
    page.click("#card .option")
    page.wait("toast", "a browser cannot hold this number")
    page.name("7")
    page.wait("toast", "Learned as 7")
    with Client(page.url) as client:
        assert client.classes() == {2**53 + 1: 1, 1: 1, 2: 1, 7: 1}


# The classes are not read.
UNREAD = """
const ask = fetch;
window.fetch = (path, ...more) => path === "classes" ? new Promise(() => {}) : ask(path, ...more);
"""


def test_a_number_is_a_label_before_the_classes_are_read(tmp_path, processes, open_page, driver):
    directory = Directory(tmp_path / "numbers")
    directory.make(AIRClassifier(0.1, expansion=None).fit(np.eye(3), [3, 1, 2]))
    script = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": UNREAD})
    try:
        page = open_page(processes(directory.path).url)
        page.show(["1,0,0"])
        page.name("7")
        page.wait("toast", "Learned as 7")
        with Client(page.url) as client:
            assert client.classes() == {3: 1, 1: 1, 2: 1, 7: 1}
    finally:
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


# A service that does not solve what is learned second while a file is there.
HELD = """
import os, sys, time
from pathlib import Path
import aircl.cli.commands
from aircl.serve import solver

solve, hold = solver.solve, Path(os.environ["HOLD"])

def held(moment):
    while moment.version == 2 and hold.exists():
        time.sleep(0.01)
    return solve(moment)

solver.solve, sys.argv[0] = held, "aircl"
aircl.cli.commands.main()
"""


def test_novelty_is_asked_for_when_it_can_be_told(small, processes, open_page, closing, tmp_path):
    hold = tmp_path / "hold"
    page = open_page(processes(small.path, code=HELD, env={"HOLD": str(hold)}).url)
    client = closing(Client(page.url))
    client.learn(np.eye(3)[:2], ["cat", "dog"])
    wait_until(lambda: client.health()["rows_behind"] == 0)
    hold.touch()
    client.learn([[0, 0.9, 0.2]], ["dog"])
    wait_until(lambda: page.counts() == {"cat": 1, "dog": 2})
    page.show(["0.9,0.1,0"])
    page.wait("card", "It says:")
    assert "novelty" not in page.text("card")
    assert page.problems() == []
    hold.unlink()
    page.wait("card", "novelty")


def test_rows_that_are_taken_back_elsewhere_wait_again(small, processes, open_page, closing):
    page = open_page(processes(small.path).url)
    client = closing(Client(page.url))
    page.show(["1,0,0"])
    page.name("cat")
    page.wait("taught-title", "session: 1")
    client.undo(1)
    page.wait("waiting-title", "To review: 1")
    assert page.text("taught-title") == "Taught in this session"
    page.driver.execute_script(  # now it is answered after the change is taken back
        "const ask = fetch; window.fetch = async (path, ...more) => { const answer = await ask(path, ...more);"
        " if (path === 'learn') await new Promise((done) => { window.goOn = done; }); return answer; }"
    )
    page.name("dog")
    wait_until(lambda: page.counts() == {"dog": 1})
    wait_until(lambda: page.driver.execute_script("return 'goOn' in window"))
    client.undo(3)
    wait_until(lambda: page.counts() == {})
    page.driver.execute_script("goOn()")
    page.wait("toast", "Learned as dog")
    wait_until(lambda: page.text("waiting-title") == "To review: 1, least certain first")
    assert page.text("taught-title") == "Taught in this session"


def test_a_correction_does_not_need_its_change_to_be_the_last(small, processes, open_page, closing):
    url = processes(small.path).url
    client = closing(Client(url))
    client.learn(np.eye(3), [*"abc"])
    page = open_page(url)
    page.show(["0.9,0.1,0"])
    page.click("#card .option")
    page.wait("undo-what", "Learned 1 row: a")
    page.driver.execute_script(  # somebody is faster
        "const ask = fetch; window.fetch = async (path, options) => {"
        " if (path === 'undo') await ask('learn', {...options, headers: {'Content-Type': 'application/json'},"
        " body: JSON.stringify({features: [[0, 0, 1]], labels: ['c']})}); return ask(path, options); }"
    )
    page.click("#taught .entry .plain")
    page.wait("card", "What should it have been?")
    page.name("b")
    page.wait("toast", "Learned as b")
    assert client.classes() == {"a": 1, "b": 2, "c": 2}
    assert all("status of 409" in entry["message"] for entry in page.problems())


def test_the_least_certain_comes_first_and_the_certain_are_accepted_together(digits, processes, open_page):
    url = processes(digits.path).url
    page = open_page(url)
    rows = [*X[300:320], -50 * X[0]]
    page.show(rows)
    wait_until(lambda: page.text("waiting-title") == "To review: 21, least certain first")
    body = json.dumps({"features": np.asarray(rows).tolist(), "top": 5, "novelty": 0.01}).encode()
    with urlopen(Request(f"{url}/predict", body, {"Content-Type": "application/json"})) as answer:
        found = json.load(answer)["predictions"]
    certain = sorted((entry["label"] is not None, entry["probability"]) for entry in found)
    assert not certain[0][0]  # there is something it does not know
    assert "Nothing I know" in page.text("card")
    wait_until(lambda: page.texts("#waiting .share") == [f"{100 * p:.0f} %" for _, p in certain[1:]])
    sure = sum(is_answer and p >= 0.95 for is_answer, p in certain)
    page.click("#accept-sure")
    page.wait("toast", f"Learned {sure} rows")
    page.wait("taught-title", f"session: {sure}")
    wait_until(lambda: sum(page.counts().values()) == 300 + sure)
    page.undo()
    wait_until(lambda: sum(page.counts().values()) == 300)
    page.wait("waiting-title", "To review: 21")
    page.press("u")
    page.wait("toast", "No change can be taken back just now.")
    wait_until(lambda: len(page.all("#doubt circle")) == 10)
    assert page.all("#helpful li")
    page.wait("value-novel", "%")


def test_hours_of_teaching_leave_the_last_rows_and_what_can_be_taken_back(digits, processes, open_page):
    page = open_page(processes(digits.path).url)
    page.show(X[300:480])
    wait_until(lambda: page.text("waiting-title") == "To review: 180, least certain first")
    wait_until(lambda: len(page.texts("#waiting .unknown, #waiting .label")) == 100)

    def accept():
        n = int(page.click("#accept-sure").split()[1])
        assert n > 100
        page.wait("taught-title", f"session: {n}, the last 100 listed")
        assert len(page.all("#taught li")) == 100
        return n

    accept()
    page.undo()
    page.wait("waiting-title", "To review: 180")  # those that were not listed, too
    wait_until(lambda: len(page.texts("#waiting .unknown, #waiting .label")) == 100)
    n = accept()
    page.press("\ue00c", "1")
    page.wait("taught-title", f"session: {n + 1}, the last 100 listed")
    assert len(page.all("#taught li")) == 100


def test_charts_end_where_shares_do(tmp_path, processes, open_page):
    directory = Directory(tmp_path / "sure")
    directory.make(AIRClassifier(0.1, expansion=None, calibrate=False).fit(np.eye(3), ["cat", "dog", "owl"]))
    page = open_page(processes(directory.path).url)
    with Client(page.url) as client:
        client.learn(np.eye(3), ["cat", "dog", "owl"])  # all predicted rightly before

        def shares():
            return [int(text[:-2]) for text in page.texts("#chart-accuracy text") if text.endswith("%")]

        page.wait("value-accuracy", "100 % progressive")
        wait_until(lambda: max(shares(), default=0) == 100)
        client.learn(np.tile(np.eye(3), (200, 1)), [*["cat", "dog", "owl"] * 199, "cat", "dog", "dog"])  # all but one
        wait_until(lambda: "606" in page.text("value-rows"))
        assert len(shares()) == len(set(shares())) > 2


def test_a_line_ends_where_nothing_is_known_any_more(small, processes, open_page, closing):
    page = open_page(processes(small.path).url)
    client = closing(Client(page.url))
    version = client.learn(X[:100], Y[:100])["version"]
    wait_until(lambda: page.all("#chart-accuracy .dot.second"))
    client.undo(version)
    page.wait("value-rows", "0")
    wait_until(lambda: not page.all("#chart-accuracy .dot"))
    assert page.all("#chart-accuracy .line.second")


def test_rolling_back_asks_and_tells_what_is_lost(small, processes, open_page, closing):
    url = processes(small.path, "--checkpoint-rows", "1").url
    client = closing(Client(url))
    client.learn(np.eye(3), ["cat", "dog", "owl"])
    page = open_page(url)
    wait_until(lambda: len(page.all("#versions tbody tr")) == 2)
    client.learn(np.eye(3)[:2], ["cat", "fox"])
    wait_until(lambda: len(page.all("#versions tbody tr")) == 3)
    dialog = page.find("#rollback-dialog")

    def ask():
        page.click('[aria-label="Roll back to version 1"]')
        page.wait("rollback-what", "will be lost")

    ask()
    told = page.text("rollback-what")
    assert "2 rows of 2 classes will be lost" in told
    assert "fox is gone: 1 row" in told
    assert "cat 2 → 1 rows" in told
    page.press("\ue007")  # Enter: the focus is on the harmless answer
    wait_until(lambda: not dialog.is_displayed())
    assert client.classes() == {"cat": 2, "dog": 1, "owl": 1, "fox": 1}
    ask()
    page.click("#rollback-go")
    wait_until(lambda: page.counts() == {"cat": 1, "dog": 1, "owl": 1})
    page.wait("changes", "Rolled back to 1")
    page.undo()
    wait_until(lambda: page.counts() == {"cat": 2, "dog": 1, "owl": 1, "fox": 1})


def test_it_follows_the_system_fits_a_phone_and_does_not_jump(digits, processes, open_page):
    page = open_page(processes(digits.path).url)
    ground = "return getComputedStyle(document.body).backgroundColor"
    wait_until(lambda: len(page.all("#doubt circle")) == 10)
    page.driver.execute_script(
        "window.moved = 0;"
        "new PerformanceObserver((list) => { for (const entry of list.getEntries()) moved += entry.value; })"
        ".observe({type: 'layout-shift', buffered: true});"
    )
    moved = "return window.moved"
    settle(page.driver)
    assert page.driver.execute_script(moved) < 0.05
    page.driver.execute_script("document.body.style.paddingTop = '300px'")
    wait_until(lambda: page.driver.execute_script(moved) > 0.05)  # what is measured is what moves
    page.driver.execute_script("document.body.style.paddingTop = ''")
    light = page.driver.execute_script(ground)
    prefer(page.driver, "dark")
    wait_until(lambda: page.driver.execute_script(ground) != light)
    page.press("d")
    wait_until(lambda: page.driver.execute_script(ground) == light)
    page.driver.execute_script("sessionStorage.clear()")
    resize(page.driver, 360)
    page.open()
    page.show(X[300:305])
    wide = page.driver.execute_script(
        "const apart = '.scroll, .hidden, .skip, svg, dialog';"
        "return [...document.querySelectorAll('body *')].filter((e) => !e.closest(apart)"
        " && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert wide == []
    unnamed = page.driver.execute_script(
        "return [...document.querySelectorAll('button, input, textarea, a')].filter((e) => !(e.textContent.trim() ||"
        " e.getAttribute('aria-label') || e.labels?.[0]?.textContent.trim()) && !e.hidden).map((e) => e.outerHTML)"
    )
    assert unnamed == []
