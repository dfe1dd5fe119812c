"""The page in a real browser: it draws, answers clicks and keys, and fits a phone."""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from aircl.benchmark.results import Details, Row, RunDirectory
from aircl.report import read_experiments, write_report

from ..conftest import prefer, resize, settle

MISSING = "\N{EN DASH}"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(run, tmp_path_factory):
    return write_report(run, tmp_path_factory.mktemp("page") / "report.html")[0].as_uri()


@pytest.fixture
def page(driver, address):
    """Return the page, freshly loaded on a wide screen in light colours."""
    resize(driver, 1280)
    prefer(driver, "light")
    driver.get(address)
    driver.execute_script("try { localStorage.clear(); } catch {}")
    driver.refresh()
    yield driver
    assert [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


def find(page, selector):
    return page.find_element("css selector", selector)


def find_all(page, selector):
    return page.find_elements("css selector", selector)


def drawn(page, chart):
    """Return the methods that a chart shows."""
    return {element.get_attribute("data-method") for element in find_all(page, f'[data-chart="{chart}"] [data-method]')}


def wait_until(page, condition):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(page, 120, 0.02).until(lambda _: condition())


def hover(page, element, part, x=0.5, y=0.5):
    """Point at an element, and return what the tooltip says when it says this; with None, there is none."""
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    settle(page)  # scrolling hides a tooltip
    box = page.execute_script(
        "const b = arguments[0].getBoundingClientRect(); return [b.x, b.y, b.width, b.height]", element
    )
    point = {"type": "mouseMoved", "x": box[0] + x * box[2], "y": box[1] + y * box[3]}
    tooltip = find(page, "#tooltip")

    def is_told():
        page.execute_cdp_cmd("Input.dispatchMouseEvent", point)
        return part in tooltip.text if part is not None else not tooltip.is_displayed()

    wait_until(page, is_told)
    return tooltip.text


RAN = {"air", "acil", "air-shared", "centroids"}
LINEAR = RAN - {"centroids"}
CHARTS = {"anytime": RAN, "phases": RAN, "groups": RAN, "class_phases": RAN, "weight_norms": LINEAR,
          "test_loss": LINEAR, "train_loss": LINEAR, "seconds": RAN, "memory": RAN, "pareto_seconds": RAN,
          "pareto_state": RAN}  # fmt: skip


SIDES = ('[data-side="left"]', '[data-side="right"]')


def test_every_chart_is_drawn(page):
    for chart, methods in CHARTS.items():
        assert drawn(page, chart) == methods, chart
    assert len(find_all(page, '[data-chart="stream"] rect.cell')) == 10
    assert all(len(find_all(page, f"{side} rect.cell")) >= 10 for side in SIDES)
    assert find(page, "svg.flow").is_displayed()


@pytest.mark.parametrize("width", [1280, 390])
def test_names_of_points_have_room(width, page):
    resize(page, width)
    for chart in ("pareto_seconds", "pareto_state"):
        boxes = page.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((e) => { const b = e.getBoundingClientRect();"
            " return [e.textContent, b.left, b.right, b.top + 3, b.bottom - 3]; })",
            f'[data-chart="{chart}"] text.name',
        )
        assert {box[0] for box in boxes} == RAN
        for one, other in itertools.combinations(boxes, 2):
            apart = one[2] <= other[1] or other[2] <= one[1] or one[4] <= other[3] or other[4] <= one[3]
            assert apart, (one, other)
    drawn = find(page, '[data-chart="pareto_state"] text.name')
    assert drawn.value_of_css_property("paint-order").startswith("stroke")


def test_a_toggle_hides_a_method_everywhere(page):
    chip = find(page, '[data-toggle="acil"]')
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false"
    for chart, methods in CHARTS.items():
        assert drawn(page, chart) == methods - {"acil"}, chart
    chip.send_keys(" ")
    assert drawn(page, "anytime") == RAN
    find(page, '[data-toggle-all="hide"]').click()
    assert drawn(page, "phases") == set()
    assert "No method shown" in find(page, '[data-chart="phases"] svg').text
    find(page, '[data-toggle-all="show"]').click()
    assert drawn(page, "phases") == RAN


def column(page, index):
    """Return what the visible table shows in a column, and how it says it is sorted."""
    rows = find_all(page, "section.comparison:not([hidden]) table.sortable tbody tr:not([hidden])")
    texts = [row.find_elements("css selector", "th, td")[index].text.lstrip("≈") for row in rows]
    header = find_all(page, "section.comparison:not([hidden]) table.sortable thead tr:last-child th")[index]
    return [text.split("±")[0].split("\n")[0] for text in texts], header.get_attribute("aria-sort"), header


@pytest.mark.parametrize("by", ["click", "keyboard"])
def test_the_table_sorts_both_ways(by, page):
    press = (
        functools.partial(press_key, page)
        if by == "keyboard"
        else lambda header: header.find_element("tag name", "button").click()
    )
    before, how, header = column(page, 3)
    assert how == "none"
    numbers = sorted(float(text) for text in before if text != MISSING)
    press(header)
    texts, how, header = column(page, 3)
    assert how == "descending"
    assert texts == [f"{value:.2f}" for value in reversed(numbers)] + [MISSING, MISSING]
    press(header)
    texts, how, _ = column(page, 3)
    assert how == "ascending"
    assert texts == [f"{value:.2f}" for value in numbers] + [MISSING, MISSING]
    press(column(page, 0)[2])
    names, how, _ = column(page, 0)
    assert how == "ascending"
    assert names == sorted(names)
    assert column(page, 3)[1] == "none"


def press_key(page, header):
    button = header.find_element("tag name", "button")
    page.execute_script("arguments[0].focus()", button)
    button.send_keys("\n")


def test_class_balanced_is_one_click_away(page):
    before = column(page, 3)[0]
    line = find(page, '[data-chart="phases"] [data-method="acil"] .line').get_attribute("d")
    find(page, 'input[value="balanced"]').click()
    assert column(page, 3)[0] != before
    assert find(page, '[data-chart="phases"] [data-method="acil"] .line').get_attribute("d") != line


def colours(page):
    return page.execute_script(
        "const s = getComputedStyle(document.body); const line = document.querySelector('[data-method=air] .line');"
        "return [s.backgroundColor, s.color, getComputedStyle(line).stroke]"
    )


def test_dark_and_light(page):
    light = colours(page)
    find(page, "#theme").click()
    dark = colours(page)
    assert all(a != b for a, b in zip(light, dark, strict=True))
    # It is remembered; what a page stores may be there only after the next one has looked.
    wait_until(page, lambda: page.refresh() or colours(page) == dark)
    find(page, "#theme").click()
    assert colours(page) == light


def test_the_system_s_wish_is_followed(page, address):
    light = colours(page)
    prefer(page, "dark")
    page.get(address)
    wait_until(page, lambda: colours(page) != light)


@pytest.mark.parametrize("width", [375, 768, 1280])
def test_the_page_is_never_wider_than_the_screen(width, page):
    resize(page, width)
    page.refresh()
    for button in find_all(page, ".experiments button"):
        button.click()
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
    for summary in find_all(page, "summary"):
        summary.click()
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_tooltips_tell_values(page):
    told = hover(page, find(page, '[data-chart="phases"] svg'), "Phase 5", 0.99)
    assert all(name in told for name in RAN)
    assert "±" in told
    hover(page, find(page, '[data-chart="groups"] [data-method="acil"] rect'), "head\nacil")
    hover(page, find(page, '[data-chart="stream"] rect.cell'), "training samples")
    hover(page, find(page, '[data-chart="memory"] [data-method="air"] rect'), "MB")
    assert "test samples" in hover(page, find(page, '[data-side="left"] svg'), "acil, seed 1: true ", 0.1, 0.1)
    hover(page, find(page, '[data-chart="pareto_state"] [data-method="air"] path'), "last accuracy")
    hover(page, find(page, "h1"), None)


def test_values_by_keyboard(page):
    chart = find(page, '[data-chart="phases"] svg')
    page.execute_script("arguments[0].focus()", chart)
    settle(page)
    for key, title in (("\ue014", "Phase 1"), ("\ue014", "Phase 2"), ("\ue010", "Phase 5"), ("\ue011", "Phase 1")):
        chart.send_keys(key)  # right, right, end, home
        assert find(page, "#tooltip").text.startswith(title)
    assert page.execute_script("return getComputedStyle(document.activeElement).outlineStyle") != "none"


def matrices(page):
    return [find(page, f"figure{side} svg").get_attribute("innerHTML") for side in SIDES]


def select(page, side, what):
    return find(page, f"figure{side} select[data-what={what}]")


def test_any_two_confusion_matrices_can_be_compared(page):
    left, right = (select(page, side, "method") for side in SIDES)
    assert [left.get_property("value"), right.get_property("value")] == ["acil", "air"]
    before = matrices(page)
    assert before[0] != before[1]
    left.find_element("css selector", 'option[value="centroids"]').click()
    after = matrices(page)
    assert after[0] not in before
    assert after[1] == before[1]
    right.find_element("css selector", 'option[value="centroids"]').click()
    assert len(set(matrices(page))) == 1


def test_confusions_are_of_one_seed_with_names_and_counts(page, run):
    seed = select(page, SIDES[0], "seed")
    assert [option.text for option in seed.find_elements("tag name", "option")] == ["1", "2", "3"]
    experiment = read_experiments(run)[0]
    for which in (1, 2):
        seed.find_element("css selector", f'option[value="{which}"]').click()
        counts = experiment.method("acil").confusions(experiment.classes)[which]
        texts = [element.text for element in find_all(page, "figure[data-side=left] svg text")]
        assert sorted(map(int, texts[: np.count_nonzero(counts)])) == sorted(counts[counts > 0].tolist())
        assert texts.count("7") >= 2  # on both axes


def test_a_filter_changes_table_and_headline_too(page):
    assert [row.text.split()[0] for row in visible_rows(page)] == ["air", "acil", "air-shared", "centroids", *FAILED]
    headline = find(page, "section.comparison:not([hidden]) [data-headline]")
    assert headline.text.startswith("air ends at")
    written = headline.text
    assert "more of 597 test samples than the runner-up, air-shared (95 % interval -" in written
    assert "no clear difference" in written
    assert marks(page, "A_last") == {"air": "tied", "air-shared": "tied", "acil": "", "centroids": ""}
    find(page, '[data-toggle="air-shared"]').click()
    find(page, '[data-toggle="centroids"]').click()
    assert [row.text.split()[0] for row in visible_rows(page)] == ["air", "acil", *FAILED]
    assert headline.text.startswith("air ends at")
    assert "test samples than the runner-up, acil" in headline.text
    assert "a clear difference" in headline.text
    assert marks(page, "A_last") == {"air": "1", "acil": "2"}
    assert [option.text for option in find_all(page, "select[data-side=left][data-what=method] option")] == [
        "air",
        "acil",
    ]
    find(page, '[data-toggle="air"]').click()
    find(page, '[data-toggle="centroids"]').click()
    assert set(marks(page, "A_last").values()) == {"1", "2"}
    assert set(marks(page, "A_avg").values()) == {""}  # differences to the best of these were not tested
    assert "Not marked: columns whose best method is hidden." in find(page, "section.comparison p.note").text
    find(page, '[data-toggle-all="show"]').click()
    assert headline.text == written
    assert marks(page, "A_last")["air-shared"] == "tied"
    find(page, 'input[value="balanced"]').click()
    assert "points above the runner-up" in headline.text  # classes that weigh the same cannot be counted


def marks(page, key):
    """Return how the cells of a column are marked, by method."""
    return page.execute_script(
        "const table = document.querySelector('section.comparison:not([hidden]) table.sortable');"
        "const heads = [...table.querySelectorAll('thead tr:last-child th')];"
        "const at = heads.findIndex((head) => head.dataset.key === arguments[0]);"
        "return Object.fromEntries([...table.querySelectorAll('tbody tr:not([hidden])')].flatMap((row) => {"
        "  const cell = row.children[at].querySelector('.of-' + document.body.dataset.accuracy + '[data-mark]');"
        "  return cell ? [[row.dataset.method, cell.dataset.mark]] : []; }));",
        key,
    )


FAILED = ["brokenfailed", "promptsincompatible"]  # names and flags


def visible_rows(page):
    rows = find_all(page, "section.comparison:not([hidden]) table.sortable tbody tr")
    return [row for row in rows if row.is_displayed()]


def test_what_is_shown_is_in_the_address(page):
    find_all(page, ".experiments button")[1].click()
    find(page, '[data-toggle="acil"]').click()
    find(page, 'input[value="balanced"]').click()
    column(page, 3)[2].find_element("tag name", "button").click()
    address = page.current_url
    assert "#view:" in address
    page.get("about:blank")
    page.get(address)
    assert find_all(page, ".experiments button")[1].get_attribute("aria-pressed") == "true"
    assert drawn(page, "phases") == {"air"}
    assert find(page, 'input[value="balanced"]').is_selected()
    assert column(page, 3)[1] == "descending"


DOWNLOADS = """
const made = []; window.made = made;
made.texts = [];
URL.createObjectURL = (blob) => { made.texts.push(blob.text()); return "#"; };
HTMLAnchorElement.prototype.click = function () { made.names = [...(made.names ?? []), this.download]; };
"""


def test_every_figure_and_table_can_be_downloaded(page):
    page.execute_script(DOWNLOADS)
    figures = find_all(page, "figure[data-chart] .save")
    assert len(figures) == len(find_all(page, "figure[data-chart]")) == 15
    for button in [*figures, *find_all(page, "section.comparison:not([hidden]) [data-table]")]:
        page.execute_script("arguments[0].click()", button)
    names = page.execute_script("return made.names")
    texts = page.execute_async_script("Promise.all(made.texts).then(arguments[0])")
    assert [name.rpartition(".")[2] for name in names] == ["svg"] * 15 + ["csv", "tex", "md"]
    for text in texts[:15]:
        root = ElementTree.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in text  # colours are those of the page, not its names
    assert texts[15].startswith("dataset,backbone,scenario")


def test_more_columns_and_what_the_theme_button_does(page):
    theme = find(page, "#theme")
    assert theme.text == "Use dark colours"
    theme.click()
    assert theme.text == "Use light colours"
    theme.click()
    assert not find(page, "#facts").get_property("open")
    find(page, 'a[href="#about"]').click()
    assert find(page, "#facts").get_property("open")


def test_the_filter_stays_in_sight_on_a_phone(page):
    resize(page, 375)
    page.refresh()
    page.execute_script("window.scrollTo(0, 1500)")
    place = page.execute_script("return document.querySelector('.controls').getBoundingClientRect().top")
    height = page.execute_script("return document.querySelector('.controls').getBoundingClientRect().height")
    assert place == 0
    assert height < 110


def test_another_experiment_is_drawn_from_its_own_numbers(page):
    line = find(page, '[data-chart="phases"] [data-method="air"] .line').get_attribute("d")
    second = find_all(page, ".experiments button")[1]
    second.click()
    assert second.get_attribute("aria-pressed") == "true"
    assert drawn(page, "phases") == {"air", "acil"}
    assert find(page, '[data-chart="phases"] [data-method="air"] .line').get_attribute("d") != line
    assert [chip.text for chip in find_all(page, ".chip") if chip.is_displayed()] == ["air", "acil"]
    assert "ascending" in find(page, "section.comparison:not([hidden]) h2").text


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """Return the address of a page of fifteen methods and sixty classes, with numbers drawn at random."""
    directory, rng, n = RunDirectory(tmp_path_factory.mktemp("crowded")), np.random.default_rng(0), 60
    directory.write_about({"name": "crowded", "classes": {"birds": [f"a bird of kind {k}" for k in range(n)]}})
    for name in (f"method-{k}" for k in range(15)):
        confusion = rng.multinomial(10, np.full(n, 0.5 / n) + np.eye(n) / 2)
        share = confusion.trace() / confusion.sum()
        row = Row("crowded", name, "birds", "net", "cil", "", name, 1, 1, 900, "phase", "accuracy", share, 1.0, 10**6)
        final = replace(row, phase=0, point="final", metric="A_last")
        directory.append([row, final, replace(final, metric="expected_accuracy", value=0.9)])
        counts = np.arange(2 * n, n, -1)[None]
        Details(np.arange(n), counts, confusion, np.ones(n), np.ones(n), np.ones(n), np.ones((1, 1))).save(
            directory.details_path(name)
        )
    return write_report(directory)[0].as_uri()


def test_many_methods_can_be_told_apart_and_many_classes_are_named(page, crowded):
    page.get(crowded)
    looks = page.execute_script(
        "return [...document.querySelectorAll('.chip path')].map((path) => { const s = getComputedStyle(path);"
        "return [path.getAttribute('d'), s.fill, s.stroke].join(); })"
    )
    assert len(set(looks)) == len(looks) == 15
    expected = find(page, '[data-chart="expected"] svg').text.split()
    assert ("expected" in expected, "measured" in expected, "samples" in expected) == (True, True, False)
    for width in (1280, 375):
        resize(page, width)
        page.refresh()
        texts = [text.text for text in find_all(page, "figure[data-side=left] svg text") if "bird" in text.text]
        assert 20 <= len(texts) <= 40  # on both axes
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
