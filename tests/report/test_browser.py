"""The page in a real browser: quiet, small, readable, usable by keyboard, by touch and on paper."""

from __future__ import annotations

import io
import os
import re
import shutil
import unicodedata

import pytest

from heckmanfa.text.passage import Name

driver = pytest.importorskip(
    "playwright.sync_api", reason="no driver of a browser: pip install playwright"
)

# One report for each special case; the cases whose layout differs most are looked at in every way.
EACH = (
    *("average", "none", "ml", "honest", "window", "category", "sampling", "no exclusion"),
    *("cluster", "observed", "streamed", "wide", "hostile", "long", "clear"),
)
# The others are opened by `make study`; their sizes are tested without a browser.
SHOWN = ("average", "category", "hostile", "long")
WIDTHS = (360, 390, 700, 1200)
SIDEWAYS = """() => [document.documentElement.scrollWidth, innerWidth,
  [...document.querySelectorAll('main *, header *')].filter((one) =>
    !one.closest('.scroll, nav, pre, .unseen, svg') && one.getClientRects().length
    && one.getBoundingClientRect().right > innerWidth + 1)
  .map((one) => one.outerHTML.slice(0, 120))]"""
CLIPPED = """() => [...document.querySelectorAll('main *, header *')].filter((one) =>
  ['hidden', 'clip'].includes(getComputedStyle(one).overflowY) && !one.closest('.unseen')
  && one.scrollHeight > one.clientHeight + 1).map((one) => one.outerHTML.slice(0, 80))"""
IN_VIEW = """(query) => [...document.querySelectorAll(query)].map((one) => {
  const box = one.getBoundingClientRect();
  return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
})"""


@pytest.fixture(scope="module")
def browser():
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    program = next((shutil.which(name) for name in names if shutil.which(name)), None)
    if program is None:
        pytest.skip("no Chromium or Chrome is installed")
    with driver.sync_playwright() as started:
        # Root may not use the sandbox, and a container's /dev/shm is small.
        flags = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
        flags += ["--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking"]
        try:
            opened = started.chromium.launch(executable_path=program, args=flags)
        except driver.Error as error:
            pytest.skip(f"{program} does not start: {str(error).splitlines()[0]}")
        yield opened
        opened.close()


class Visit:
    """A page as it was opened, and what it did on the way."""

    def __init__(self, browser, path, width=1200, height=860, **options):
        self.errors, self.requests = [], []
        self.context = browser.new_context(viewport={"width": width, "height": height}, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        self.page.on(
            "console",
            lambda said: self.errors.append(said.text) if said.type == "error" else None,
        )
        self.page.route("**/*", self._route)
        self.url = path.as_uri()
        self.page.goto(self.url)

    def _route(self, route):
        if route.request.url == self.url:
            route.continue_()
        else:
            self.requests.append(route.request.url)
            route.abort()

    def __enter__(self):
        return self.page

    def __exit__(self, *_):
        self.context.close()
        assert self.errors == []
        assert self.requests == []


def unfold(page):
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")


def findings(page, *rules):
    """What axe finds, by all of its rules or by these."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not there")
    only = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else None
    found = axe.Axe().run(page, options=only).response["violations"]
    return [(one["id"], [node["html"][:150] for node in one["nodes"][:3]]) for one in found]


def fits(page):
    wide, window, beyond = page.evaluate(SIDEWAYS)
    assert beyond == []
    assert wide <= window


# Each report: small, quiet, narrow enough, and open to everyone. ----------------------------------


@pytest.mark.parametrize(
    "name",
    [name if name in SHOWN else pytest.param(name, marks=pytest.mark.study) for name in EACH],
)
def test_every_report_is_small_quiet_and_no_wider_than_a_phone(browser, file_of, name):
    path = file_of(name)
    assert path.stat().st_size <= 400_000
    with Visit(browser, path, 360, 780) as page:
        unfold(page)
        fits(page)
        # A name that is markup is shown as it is, and none became an element.
        assert page.locator("script").count() == 1
        assert page.locator("img, i, iframe").count() == 0


@pytest.mark.parametrize(("scheme", "rules"), [("light", ()), ("dark", ("color-contrast",))])
def test_axe_has_no_findings(browser, file_of, scheme, rules):
    # A scheme changes colours and nothing else.
    with Visit(browser, file_of("hostile"), color_scheme=scheme, reduced_motion="reduce") as page:
        unfold(page)
        assert findings(page, *rules) == []


@pytest.mark.study
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", EACH)
def test_axe_has_no_findings_in_any_report(browser, file_of, name, scheme):
    for width in (390, 1200):
        with Visit(browser, file_of(name), width, color_scheme=scheme) as page:
            unfold(page)
            assert findings(page) == []


@pytest.mark.study
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", EACH)
def test_no_report_scrolls_sideways(browser, file_of, name, width):
    with Visit(browser, file_of(name), width) as page:
        unfold(page)
        fits(page)


@pytest.mark.parametrize("width", WIDTHS)
def test_one_drawing_of_each_picture_is_shown_and_fits(browser, file_of, width):
    with Visit(browser, file_of("average"), width, color_scheme="dark") as page:
        unfold(page)
        fits(page)
        shown = page.locator("figure svg[role=group]:visible")
        assert shown.count() == page.locator("figure").count() >= 8
        wanted = 358 if width < 640 else 540
        widths = shown.evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().width)")
        assert all(abs(one - wanted) < 1 for one in widths)


def test_text_twice_as_large_loses_nothing(browser, file_of):
    for width in (390, 1200):
        with Visit(browser, file_of("average"), width) as page:
            page.evaluate("document.documentElement.style.fontSize = '200%'")
            unfold(page)
            fits(page)
            assert page.evaluate(CLIPPED) == []


# The first screen. --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["average", "none", "category"])
def test_the_answer_is_in_view_on_a_laptop(browser, file_of, name):
    with Visit(browser, file_of(name)) as page:
        assert page.evaluate(IN_VIEW, "h1, .lede, .pill") == [True] * 3
        assert page.evaluate(IN_VIEW, ".tile") == [True] * 4
        assert page.evaluate(IN_VIEW, "#answer figure .wide svg") == [True]


@pytest.mark.parametrize("name", ["average", "none", "category", "honest"])
def test_the_headline_is_in_view_on_a_phone(browser, file_of, name):
    with Visit(browser, file_of(name), 390, 844, is_mobile=True, has_touch=True) as page:
        assert page.evaluate(IN_VIEW, "h1, .lede, .pill") == [True] * 3


@pytest.mark.parametrize("name", ["category", "clear", "crowded", "honest"])
def test_the_trust_tile_is_in_view_however_long_the_others_are(browser, file_of, name):
    with Visit(browser, file_of(name)) as page:
        *_, trust = page.evaluate(IN_VIEW, ".tile")
        assert trust


def test_on_a_phone_the_pill_keeps_off_the_headline_and_the_links_show_that_they_scroll(
    browser, file_of
):
    arrow = "() => getComputedStyle(document.querySelector('nav'), '::after').opacity"
    gap = """() => document.querySelector('h1').getBoundingClientRect().top
      - document.querySelector('.pill').getBoundingClientRect().bottom"""
    with Visit(browser, file_of("average"), 390, 844, is_mobile=True, has_touch=True) as page:
        assert page.evaluate(gap) >= 8
        assert page.evaluate(arrow) == "1"
        page.evaluate("document.querySelector('nav ul').scrollLeft = 9999")
        page.wait_for_timeout(200)
        assert page.evaluate(arrow) == "0"
    with Visit(browser, file_of("average")) as page:
        assert page.evaluate(arrow) == "0"


def test_names_steps_and_the_command_fit_their_lines(browser, file_of):
    lines = """() => [...document.querySelectorAll('#answer td.t:not(.long), #answer tbody th')]
      .filter((cell) => cell.getClientRects().length && cell.clientHeight > 40)
      .map((cell) => cell.textContent)"""
    unwrapped = """() => document.querySelectorAll('td.long').forEach((cell) => {
      cell.style.whiteSpace = 'nowrap'; })"""
    sideways = """() => [...document.querySelectorAll('pre')]
      .filter((one) => one.scrollWidth > one.clientWidth).length"""
    for width in (390, 1200):
        with Visit(browser, file_of("average"), width) as page:
            page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
            assert page.locator("#answer td.t").count()
            # A row with a role that wraps is two lines high; nothing else makes it so.
            page.evaluate(unwrapped)
            assert page.evaluate(lines) == []
            assert page.evaluate(sideways) == 0


def test_without_script_nothing_is_missing(browser, file_of):
    path = file_of("average")
    with Visit(browser, path) as page:
        said = page.locator("body").inner_text().replace("Copy the sentence", "")
    with Visit(browser, path, java_script_enabled=False) as page:
        assert page.locator("body").inner_text().split() == said.split()
        # Folded tables open without a script.
        page.locator("#which summary").click()
        assert page.locator("#which table").first.is_visible()
        assert page.locator("figure svg[role=group]:visible").count() == len(
            page.locator("figure").all()
        )
        # Rows have tooltips of the browser's own, and a wash.
        row = page.locator("figure.forest .wide .row").first
        assert row.locator("title").text_content() != ""
        row.hover()
        wash = row.locator(".hit").evaluate("(one) => getComputedStyle(one).fillOpacity")
        assert float(wash) == pytest.approx(0.13)
        # What only a script can do is not offered.
        assert not page.locator("#copy").is_visible()


# Pictures and their tables. -----------------------------------------------------------------------

MARKS = """(kind) => {
  const at = (one) => { const box = one.getBoundingClientRect(); return box.x + box.width / 2; };
  const value = (text) => parseFloat(text.replace('\u2212', '-').replace('+', ''));
  const drawn = document.querySelector(`figure.${kind} .wide svg`);
  const ticks = [...drawn.querySelectorAll('.tick')].map((one) =>
    [value(one.textContent), at(one)]);
  const marks = [...drawn.querySelectorAll('.row[data-f]')].map((row) =>
    [row.dataset.f, ...[...row.querySelectorAll('circle')].map(at)]);
  return [ticks.filter((one) => !isNaN(one[0])), marks];
}"""
LINES = """(name) => [...document.getElementById(name).closest('table')
  .querySelectorAll('tr[data-f]')].map((line) =>
    [line.dataset.f, ...[...line.cells].map((cell) => cell.textContent)])"""


@pytest.mark.parametrize(
    ("kind", "columns"), [("forest", (5,)), ("margins", (3,)), ("profiles", (2, 3))]
)
def test_marks_are_where_the_table_says(browser, file_of, kind, columns):
    with Visit(browser, file_of("average")) as page:
        unfold(page)
        ticks, marks = page.evaluate(MARKS, kind)
        lines = {line[0]: line for line in page.evaluate(LINES, f"{kind}-table")}
        assert len(marks) >= 5
        (low, left), (high, right) = ticks[0], ticks[-1]
        for name, *places in marks:
            cells = [lines[name][column] for column in columns]
            told = [float(cell.replace("\N{MINUS SIGN}", "-").lstrip("+")) for cell in cells]
            drawn = [low + (at - left) / (right - left) * (high - low) for at in places]
            # To a pixel, and to the last digit of the table.
            last = max(0.5 * 10.0 ** -len(cell.partition(".")[2]) for cell in cells)
            assert sorted(drawn) == pytest.approx(
                sorted(told), abs=(high - low) / (right - left) + last
            ), name


@pytest.mark.parametrize("name", ["average", "none", "honest"])
def test_tooltips_and_tables_have_the_same_numbers(browser, file_of, name):
    number = re.compile(r"\d+(?:\.\d+)?")
    with Visit(browser, file_of(name)) as page:
        found = page.evaluate(
            """() => [...document.querySelectorAll('figure .wide .row[data-f]')].map((row) => {
              const section = row.closest('section');
              const lines = [...section.querySelectorAll('tr[data-f]')].filter((line) =>
                line.dataset.f === row.dataset.f);
              return [row.getAttribute('aria-label').replace(row.dataset.f, ''),
                lines.flatMap((line) => [...line.closest('table').tHead.querySelectorAll('th'),
                  ...line.cells]).map((cell) => cell.textContent).join(' '), row.dataset.f]; })"""
        )
        assert len(found) >= 8
        for said, told, feature in found:
            assert told, feature
            said = said.replace("95% interval", "")
            missing = {*number.findall(said)} - {*number.findall(told)}
            assert missing == set(), (feature, said, told)


# Pointer, touch and keyboard. ---------------------------------------------------------------------


def lit(page):
    """The names that are lit, and where."""
    return page.evaluate(
        "[...document.querySelectorAll('.on')].map((one) => [one.dataset.f, one.tagName])"
    )


def test_pointing_at_a_row_shows_its_numbers_and_lights_its_feature(browser, file_of):
    with Visit(browser, file_of("average")) as page:
        row = page.locator("figure.forest .wide .row").nth(1)
        words = row.get_attribute("aria-label")
        row.hover()
        tip = page.locator("#tip")
        assert tip.is_visible()
        assert tip.inner_text().splitlines() == words.split("; ")
        name = row.get_attribute("data-f")
        assert {one for one, _ in lit(page)} == {name}
        # The chip, the rows of pictures, lines of tables and names in prose.
        assert {tag.upper() for _, tag in lit(page)} == {"LI", "G", "TR", "B"}
        page.keyboard.press("Escape")
        assert not tip.is_visible()
        assert lit(page) == []
        page.locator(".chip").first.hover()
        assert {one for one, _ in lit(page)} == {
            page.locator(".chip").first.get_attribute("data-f")
        }
        page.mouse.move(600, 5)
        assert lit(page) == []


def test_a_column_of_assignments_says_which_features_it_holds(browser, file_of, case):
    best = case("average").evidence.best
    with Visit(browser, file_of("average")) as page:
        column = page.locator("figure.assignments .wide .columns .column").first
        column.scroll_into_view_if_needed()
        column.hover()
        words = page.locator("#tip").inner_text()
        assert words.startswith(f"Number 1: {' and '.join(best.names)}\n")
        assert f"{best.bic:,.2f}".replace("-", "\N{MINUS SIGN}") in words
        stroke = column.evaluate("(one) => getComputedStyle(one).strokeWidth")
        assert stroke == "2px"


def test_a_tap_opens_and_a_tap_elsewhere_closes(browser, file_of):
    with Visit(browser, file_of("average"), 390, 844, is_mobile=True, has_touch=True) as page:
        row = page.locator("figure.forest .narrow .row").first
        row.scroll_into_view_if_needed()
        row.tap()
        tip = page.locator("#tip")
        assert tip.is_visible()
        box = tip.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        page.locator("#answer-title").evaluate("() => document.body.click()")
        assert not tip.is_visible()


def test_the_keyboard_reaches_everything_and_stops_once_in_a_picture(browser, file_of):
    with Visit(browser, file_of("average")) as page:
        stops = []
        for _ in range(120):
            page.keyboard.press("Tab")
            found = page.evaluate(
                """() => { const one = document.activeElement, box = one.getBoundingClientRect();
                const style = getComputedStyle(one);
                return [one.tagName, one.closest('figure') ? one.closest('figure').className : '',
                  box.left >= 0 && box.width > 0, one.getAttribute('href'),
                  style.outlineStyle + style.outlineWidth]; }"""
            )
            if found[0] == "BODY":
                break
            stops.append(found)
        assert all(visible for _, _, visible, _, _ in stops)
        assert all(outline == "solid3px" for _, _, _, _, outline in stops)
        assert stops[0][3] == "#answer"
        pictures = [picture for tag, picture, *_ in stops if tag == "g"]
        shown = page.locator("figure svg[role=group]:visible").count()
        assert len(pictures) == len(set(pictures)) == shown
        page.locator("figure.forest .wide .row").first.focus()
        names = page.locator("figure.forest .wide .row").evaluate_all(
            "(all) => all.map((one) => one.dataset.f)"
        )
        for name in [*names[1:], names[-1]]:
            page.keyboard.press("ArrowDown")
            assert page.evaluate("document.activeElement.dataset.f") == name
            assert page.locator("#tip").is_visible()
        page.keyboard.press("ArrowUp")
        assert page.evaluate("document.activeElement.dataset.f") == names[-2]
        page.keyboard.press("Escape")
        assert not page.locator("#tip").is_visible()


def test_the_sentence_to_write_can_be_copied(browser, file_of, case):
    with Visit(
        browser, file_of("average"), permissions=["clipboard-read", "clipboard-write"]
    ) as page:
        page.locator("#copy").click()
        page.wait_for_function("document.getElementById('copy').textContent === 'Copied'")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == str(case("average").answer.may_write)


# Hostile and long names. --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hostile", "long"])
def test_names_are_shown_and_obeyed_nowhere(browser, file_of, case, name):
    analysis = case(name)
    with Visit(browser, file_of(name)) as page:
        keys = page.locator("figure .wide .row[data-f]").evaluate_all(
            "(all) => all.map((one) => one.dataset.f)"
        )
        known = {Name(feature.name).key for feature in analysis.evidence.features}
        assert known <= set(keys)
        for row in page.locator("figure.forest .wide .row").all():
            row.hover()
            assert page.locator("#tip").inner_text() != ""
        everything = page.locator("html").inner_html()
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f]", everything)
        titles = page.locator("figure:not(.over_rho) .wide .lab").all_text_contents()
        assert max(map(len, titles)) <= 14


# On paper. ----------------------------------------------------------------------------------------


def test_it_prints_with_the_answer_on_page_one(browser, file_of, case):
    pypdf = pytest.importorskip("pypdf", reason="no reader of PDF files: pip install pypdf")
    answer = case("average").answer
    with Visit(browser, file_of("average"), color_scheme="dark") as page:
        printed = page.pdf(prefer_css_page_size=True)
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(255, 255, 255)"
        )
        assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == (
            "rgb(23, 32, 44)"
        )
        for hidden in ("nav", "#copy", "#tip", ".wide"):
            assert not page.locator(hidden).first.is_visible()
        # An A4 page less its margins.
        page.set_viewport_size({"width": 688, "height": 1000})
        assert page.evaluate("document.documentElement.scrollWidth") <= 688
    pages = [
        re.sub(r"\s+", " ", unicodedata.normalize("NFKC", sheet.extract_text()))
        for sheet in pypdf.PdfReader(io.BytesIO(printed)).pages
    ]
    width = float(pypdf.PdfReader(io.BytesIO(printed)).pages[0].mediabox.width)
    assert width == pytest.approx(595, abs=1)
    assert 5 <= len(pages) <= 18
    for tile in (answer.which, answer.how_much, answer.selection, answer.trust):
        assert tile.question in pages[0]
    assert str(answer.headline) in pages[0]
    assert "The same as a table" not in pages[0]
    assert "The same as a table" in pages[1]
    # The words of a section are on the sheet of its pictures, and folded tables are printed.
    for title, caption in (
        ("Which features predict", "Dashed lines"),
        ("Who is selected", "Average"),
    ):
        assert any(title in sheet and caption in sheet for sheet in pages[1:])
    assert "Coefficients for lwage" in " ".join(pages[1:])


def test_the_page_runs_its_own_script_and_no_other(browser, file_of, tmp_path):
    """The same page with a script, a handler and a style that data brought runs none of them."""
    changed = tmp_path / "changed.html"
    html = file_of("average").read_text(encoding="utf-8")
    bad = (
        "<script>document.title = 'run'</script><style>h1 { display: none }</style>"
        "<svg onload=\"document.title = 'run'\"></svg>"
    )
    changed.write_text(html.replace("</header>", bad + "</header>"), encoding="utf-8")
    visit = Visit(browser, changed)
    with visit as page:
        assert page.title() != "run"
        assert page.locator("h1").is_visible()
        # Its own script shows the values of a mark; its own style places the header.
        assert page.evaluate("getComputedStyle(document.querySelector('.skip')).position") == (
            "absolute"
        )
        refused = [error for error in visit.errors if "Content Security Policy" in error]
        assert len(refused) >= 2
        visit.errors.clear()
