"""Pictures saved from their corner in a real browser: as SVG, as PNG, and their numbers as CSV."""

from __future__ import annotations

import csv
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.report.browsing import Visit

SVG = "{http://www.w3.org/2000/svg}"
MINUS = "\N{MINUS SIGN}"


def _wait_after_ten(page):
    """Chromium drops the eleventh file that a page saves within a second, without a word."""
    number = page.evaluate("window.filesSaved = (window.filesSaved || 0) + 1")
    if number % 10 == 0:
        page.wait_for_timeout(1100)


def saved(page, kind, ending):
    """The bytes and the name of what the corner of a picture saves."""
    # A picture may be folded away.
    page.evaluate(
        "document.querySelectorAll('details:not(.save)').forEach((one) => { one.open = true })"
    )
    figure = page.locator(f"figure.{kind}")
    # The best sets of features are folded.
    figure.evaluate("(one) => { if (one.closest('details')) one.closest('details').open = true; }")
    figure.locator(".save summary").click()
    _wait_after_ten(page)
    with page.expect_download() as download:
        figure.locator(".save button", has_text=ending).click()
    assert figure.locator(".save").get_attribute("open") is None
    return download.value.path().read_bytes(), download.value.suggested_filename


def kinds_of(page):
    return page.locator("figure").evaluate_all("(all) => all.map((one) => one.classList[0])")


def lines_of(content):
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))


@pytest.mark.parametrize(
    "name",
    [*(pytest.param(name, marks=pytest.mark.study) for name in ("average", "binary")), "hostile"],
)
def test_a_picture_saved_as_svg_stands_alone(browser, file_of, name):
    with Visit(browser, file_of(name), color_scheme="dark") as page:
        for kind in kinds_of(page):
            content, file_name = saved(page, kind, "SVG")
            root = ElementTree.fromstring(content)
            figure = page.locator(f"figure.{kind}")
            assert root.find(SVG + "title").text == figure.locator("h3").text_content()
            assert root.find(SVG + "desc").text == figure.locator("figcaption").text_content()
            assert re.fullmatch(rf"[\w-]{{1,90}}-{kind.replace('_', '-')}\.svg", file_name)
            # Every shape has its own colours, and they are those of a light page.
            shapes = [one for one in root.iter() if one.tag in {SVG + "rect", SVG + "text"}]
            assert shapes[0].get("fill") == "rgb(255, 255, 255)"
            assert all(re.match(r"rgb|none", one.get("fill")) for one in shapes)
            inks = {one.get("fill") for one in shapes if one.tag == SVG + "text"}
            assert inks <= {"rgb(23, 32, 44)", "rgb(79, 91, 107)"}
            assert not re.search(rb'(class|style|data-[a-z]+|on\w+)="|var\(|color\(', content)
            # The words of the drawing, its title and its legend.
            words = {one.text for one in root.iter(SVG + "text")}
            drawn = figure.locator("svg[role=group]:visible text").all_text_contents()
            legend = " ".join(figure.locator(".legend span").all_text_contents())
            assert {one for one in drawn if one.strip()} <= words
            assert {*legend.split()} <= {*" ".join(word for word in words if word).split()}


def test_a_picture_saved_as_png_shows_what_the_page_shows(browser, file_of):
    image = pytest.importorskip("PIL.Image", reason="no reader of images: pip install pillow")
    with Visit(browser, file_of("average")) as page:
        for kind in kinds_of(page):
            content, _ = saved(page, kind, "PNG")
            picture = image.open(io.BytesIO(content)).convert("RGB")
            drawing = page.locator(f"figure.{kind} svg[role=group]:visible")
            drawing.scroll_into_view_if_needed()
            # Away from it, so that no row is washed.
            page.mouse.move(2, 2)
            shot = image.open(io.BytesIO(drawing.screenshot())).convert("RGB")
            assert picture.width == pytest.approx(2 * shot.width + 48, abs=60)
            # The drawing is at the bottom, 12 px from the edge, twice as large.
            left, bottom = 24, picture.height - 24
            box = left, bottom - 2 * shot.height, left + 2 * shot.width, bottom
            # Letters differ in their smoothing, and thin cells have hard edges on the page.
            small = shot.width // 6, shot.height // 6
            seen, wanted = (
                np.asarray(one.resize(small, image.Resampling.BOX), dtype=float)
                for one in (picture.crop(box), shot)
            )
            assert wanted.std() > 5
            assert np.abs(seen - wanted).mean() < 6.0, kind


NUMBER = re.compile(r"[+-]?\d[\d,]*(\.\d+)?%?")
LINES = """(names) => names.flatMap((name) => [...document.getElementById(name).closest('table')
  .querySelectorAll('tbody tr:not(.part)')]).map((line) => [...line.cells].map((cell) =>
    cell.textContent).join(' '))"""


def numbers_of(text):
    return [float(one.group().strip("%").replace(",", "")) for one in NUMBER.finditer(text)]


@pytest.mark.parametrize(
    "name",
    ["average", *(pytest.param(name, marks=pytest.mark.study) for name in ("binary", "category"))],
)
def test_the_numbers_of_a_picture_are_those_of_its_tables(browser, file_of, name):
    with Visit(browser, file_of(name)) as page:
        for kind in kinds_of(page):
            titles, *lines = lines_of(saved(page, kind, "CSV")[0])
            assert len(set(titles)) == len(titles)
            assert {len(line) for line in lines} == {len(titles)}
            named = page.locator(f"figure.{kind}").get_attribute("data-tables").split()
            rows = page.evaluate(LINES, named)
            assert len(rows) == len(lines) > 0
            for line, row in zip(lines, rows, strict=True):
                told = numbers_of(row.replace(MINUS, "-"))
                assert numbers_of(" ".join(line[len(named) > 1 :])) == pytest.approx(told), kind


def test_a_number_is_a_number_and_a_text_no_formula(browser, file_of, tmp_path):
    path = tmp_path / "changed.html"
    html = file_of("average").read_text(encoding="utf-8")
    path.write_text(
        html.replace(
            '<tr data-f="educ"><th scope="row">educ<', '<tr data-f="=1+2"><th scope="row">-a, "b"<'
        ),
        encoding="utf-8",
    )
    with Visit(browser, path) as page:
        titles, *lines = lines_of(saved(page, "forest", "CSV")[0])
        assert titles[:2] == ["Feature", "Label"]
        assert lines[0][:2] == ["'=1+2", '\'-a, "b"']
        estimate = next(place for place, title in enumerate(titles) if title.endswith("Estimate"))
        assert [title.rpartition(" ")[2] for title in titles[estimate : estimate + 3]] == [
            "Estimate",
            "low",
            "high",
        ]
        for line in lines:
            middle, low, high = (float(cell) for cell in line[estimate : estimate + 3])
            assert low <= middle <= high
        titles, *lines = lines_of(saved(page, "assignments", "CSV")[0])
        weights = [line[titles.index("Weight (%)")] for line in lines]
        assert 0 < sum(float(weight) for weight in weights if weight) < 100
        # Words among the ranges keep these whole, but no formula.
        lines = lines_of(saved(page, "rho", "CSV")[0])
        assert re.fullmatch(r"-0\.\d\d to -?0\.\d\d", lines[1][0])


def test_the_corner_is_reached_by_keyboard_and_by_touch_and_is_not_printed(browser, file_of):
    opacity = "(one) => getComputedStyle(one).opacity"
    with Visit(browser, file_of("average")) as page:
        corner = page.locator("figure.forest .save summary")
        assert corner.evaluate(opacity) == "0"
        corner.focus()
        assert corner.evaluate(opacity) == "1"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "SVG"
        page.keyboard.press("Escape")
        assert not page.locator("figure.forest .save button").first.is_visible()
        with page.expect_download() as download:
            for key in ("Enter", "Tab", "Enter"):
                page.keyboard.press(key)
        assert download.value.suggested_filename.endswith("forest.svg")
        page.emulate_media(media="print")
        assert not page.locator(".save").first.is_visible()
    with Visit(browser, file_of("average"), 390, 844, is_mobile=True, has_touch=True) as page:
        corner = page.locator("figure.margins .save summary")
        assert corner.evaluate(opacity) == "1"
        content, _ = saved(page, "margins", "SVG")
        assert int(ElementTree.fromstring(content).get("width")) <= 390
    with Visit(browser, file_of("average"), java_script_enabled=False) as page:
        assert page.locator(".save").count() == 0
