"""The page in a real browser: quiet, small, readable, usable by keyboard, by touch and on paper."""

from __future__ import annotations

import re

import pytest
from tests.report.browsing import Visit, sheets

from heckmanfa.results.checks import fine_lines
from heckmanfa.text.passage import Name

# One report for each special case; the cases whose layout differs most are looked at in every way.
EACH = (
    *("average", "none", "ml", "honest", "window", "category", "sampling", "no exclusion"),
    *("cluster", "observed", "streamed", "wide", "hostile", "long", "clear", "ordered", "series"),
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


@pytest.mark.parametrize(
    "width", [pytest.param(360, marks=pytest.mark.study), *(one for one in WIDTHS if one != 360)]
)
def test_one_drawing_of_each_picture_is_shown_and_fits(browser, file_of, width):
    with Visit(browser, file_of("average"), width, color_scheme="dark") as page:
        unfold(page)
        fits(page)
        shown = page.locator("figure svg[role=group]:visible")
        assert shown.count() == page.locator("figure").count() >= 8
        wanted = 358 if width < 640 else 540
        widths = shown.evaluate_all(
            """(all) => all.map((one) => [one.closest('.full') ? 1112 : 0,
              one.getBoundingClientRect().width])"""
        )
        assert all(abs(one - (across or wanted)) < 1 for across, one in widths if one != 358)


def test_panels_over_rho_are_beside_one_another_unless_the_page_is_narrow(browser, file_of):
    boxes = """() => [...document.querySelectorAll('figure.over_rho .row[data-f]')]
      .map((one) => one.getBoundingClientRect()).filter((box) => box.width)
      .map((box) => [box.left, box.right, box.top])"""
    for width in (1200, 700, 390):
        with Visit(browser, file_of("none"), width) as page:
            panels = page.evaluate(boxes)
            assert len(panels) >= 2
            tops = {top for _, _, top in panels}
            if width == 1200:
                assert len(tops) == 1
                section = page.locator("#matter").bounding_box()
                reach = panels[-1][1] - panels[0][0]
                assert reach >= 0.95 * section["width"]
            else:
                assert len(tops) == len(panels)


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


@pytest.mark.parametrize(
    "name",
    [
        "average",
        "honest",
        *(pytest.param(name, marks=pytest.mark.study) for name in ("none", "category")),
    ],
)
def test_the_headline_is_in_view_on_a_phone(browser, file_of, name):
    with Visit(browser, file_of(name), 390, 844, is_mobile=True, has_touch=True) as page:
        assert page.evaluate(IN_VIEW, "h1, .lede, .pill") == [True] * 3


# The test of a laptop's first screen has the others.
@pytest.mark.parametrize(
    "name",
    [*(pytest.param(name, marks=pytest.mark.study) for name in ("clear", "honest")), "crowded"],
)
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
        # What only a script can do is not offered without one.
        page.locator("[data-copy], .save, .what-if").evaluate_all(
            "(all) => all.forEach((one) => one.remove())"
        )
        said = page.locator("body").inner_text()
    with Visit(browser, path, java_script_enabled=False) as page:
        assert page.locator("body").inner_text().split() == said.split()
        # Folded tables open without a script.
        page.locator("#which > details summary").click()
        assert page.locator("#which table").first.is_visible()
        page.get_by_text("The best sets of features, one by one").click()
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
        assert not page.locator("[data-copy]").first.is_visible()


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


@pytest.mark.parametrize(
    ("name", "width"), [("average", 1200), pytest.param("binary", 390, marks=pytest.mark.study)]
)
def test_a_tooltip_hides_neither_the_title_nor_the_legend_of_its_picture(
    browser, file_of, name, width
):
    hidden = """(row) => {
      const box = (one) => one.getBoundingClientRect();
      const figure = row.closest('figure'), tip = box(document.getElementById('tip'));
      const over = [...figure.querySelectorAll('h3, .legend')].map(box).filter((words) =>
        tip.top < words.bottom && tip.bottom > words.top
        && tip.left < words.right && tip.right > words.left);
      return [tip.height > 0, over.length, tip.top >= 0 && tip.bottom <= innerHeight]; }"""
    with Visit(browser, file_of(name), width, reduced_motion="reduce") as page:
        unfold(page)
        figures = page.locator("figure").all()
        assert len(figures) >= 8
        for figure in figures:
            rows = figure.locator("svg:visible .row")
            for row in (rows.first, rows.nth(1), rows.last):
                if row.count():
                    # The whole picture is in view, as when someone reads it.
                    row.evaluate("""(one) => { const at = one.closest('figure');
                      scrollTo(0, scrollY + at.getBoundingClientRect().top - 60); }""")
                    row.evaluate("(one) => one.focus({ preventScroll: true })")
                    assert row.evaluate(hidden) == [True, 0, True]


def test_the_best_sets_are_folded_and_their_numbers_explained(browser, file_of):
    with Visit(browser, file_of("average")) as page:
        columns = page.locator("figure.assignments")
        assert not columns.is_visible()
        page.get_by_text("The best sets of features, one by one").click()
        assert columns.is_visible()
        above = columns.locator(".wide .columns text").all_text_contents()
        assert above == ["1", "2", "3"][: len(above)]
        assert above
        ranks = ["1 is the best", "2 is the second best", "3 is the third best"]
        caption = columns.locator("figcaption").inner_text()
        assert all(rank in caption for rank in ranks)


@pytest.mark.parametrize("name", ["average", "binary", "category"])
def test_no_column_of_pictures_is_empty_beside_a_long_one(browser, file_of, name):
    holes = """() => [...document.querySelectorAll('.pair')].map((pair) =>
      [...pair.children].map((one) => one.getBoundingClientRect()).filter((box) => box.height))
      .filter((boxes) => boxes.length === 2 && boxes[0].left !== boxes[1].left)
      .map((boxes) => Math.abs(boxes[0].height - boxes[1].height))"""
    with Visit(browser, file_of(name)) as page:
        assert max(page.evaluate(holes)) <= 260


def test_a_column_of_assignments_says_which_features_it_holds(browser, file_of, case):
    best = case("average").evidence.best
    with Visit(browser, file_of("average")) as page:
        unfold(page)
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
        # The words of a button come back after a while, which passes at once.
        page.clock.install()
        for button in page.locator("button[data-copy]:not(.tabs *)").all():
            words = button.text_content()
            button.click()
            page.get_by_role("button", name="Copied", exact=True).wait_for()
            copied = page.evaluate("navigator.clipboard.readText()")
            named = page.locator(f"[id='{button.get_attribute('data-copy')}']")
            assert copied == " ".join(named.text_content().split())
            page.clock.fast_forward(10_000)
            assert button.text_content() == words
        assert copied == str(case("average").answer.may_write[-1].news)


def test_tabs_of_code_work_by_keyboard_and_copies_keep_their_lines(browser, file_of, case):
    with Visit(
        browser, file_of("hostile"), permissions=["clipboard-read", "clipboard-write"]
    ) as page:
        page.locator("#tab-python").focus()
        for language, code in vars(case("hostile").code).items():
            shown = page.locator(".tabs pre:visible code")
            assert shown.evaluate_all("(all) => all.map((one) => one.id)") == [f"code-{language}"]
            page.locator(".tabs button:visible").click()
            page.get_by_role("button", name="Copied", exact=True).wait_for()
            assert page.evaluate("navigator.clipboard.readText()") == code
            page.locator(f"#tab-{language}").focus()
            page.keyboard.press("ArrowRight")
        fits(page)
        assert findings(page) == []


def test_tabs_of_code_work_without_script_and_the_chosen_one_prints(browser, file_of):
    with Visit(browser, file_of("average"), java_script_enabled=False) as page:
        page.get_by_text("Stata", exact=True).click()
        assert page.locator("#code-stata").is_visible()
        assert page.locator(".tabs pre:visible").count() == 1
        page.emulate_media(media="print")
        assert page.locator("#code-stata").is_visible()
        assert page.locator(".tabs label:visible").all_text_contents() == ["Stata"]


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
        for hidden in ("nav", "[data-copy]", "#tip", ".wide"):
            assert not page.locator(hidden).first.is_visible()
        # An A4 page less its margins.
        page.set_viewport_size({"width": 688, "height": 1000})
        assert page.evaluate("document.documentElement.scrollWidth") <= 688
    pages = [" ".join(lines) for lines in sheets(printed)]
    assert 5 <= len(pages) <= 10
    for tile in (answer.which, answer.how_much, answer.selection, answer.trust):
        assert tile.question in pages[0]
    assert str(answer.headline) in pages[0]
    # The words of a section are on the sheet of its pictures.
    for title, caption in (
        ("Which features predict", "Dashed lines"),
        ("Who is selected", "Average"),
    ):
        assert any(title in sheet and caption in sheet for sheet in pages[1:])
    # Long tables are left to the file, and paper says so; what is short is open.
    everything = " ".join(pages)
    assert "The same as a table" not in everything
    assert "Coefficients for lwage" not in everything
    assert "Tables are not printed" in everything
    fine = [line.split(":")[0] for line in fine_lines(case("average").checks)]
    assert len(fine) >= 5
    assert [title for title in fine if title not in everything] == []
    assert "In the fit: not selected" in everything


@pytest.mark.parametrize(
    "name",
    [
        "hostile",
        *(pytest.param(name, marks=pytest.mark.study) for name in ("average", "binary", "crowded")),
    ],
)
def test_every_sheet_has_its_number_the_table_and_the_date(browser, file_of, case, name):
    analysis = case(name)
    with Visit(browser, file_of(name)) as page:
        titles = set(page.locator("h2, h3, summary, dt").all_text_contents())
        printed = sheets(page.pdf(prefer_css_page_size=True))
    assert len(printed) <= 10
    for place, lines in enumerate(printed, 1):
        foot, corner = f"{analysis.question.called} · {analysis.made_on}", f"page {place} of "
        assert {foot, f"{corner}{len(printed)}"} <= {
            part for line in lines for part in re.findall(rf"{corner}\d+|{re.escape(foot)}", line)
        }
        # A heading is never the last line of a sheet.
        text = [line for line in lines if not re.search(rf"{corner}|{re.escape(foot)}", line)]
        assert text[-1] not in titles


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
