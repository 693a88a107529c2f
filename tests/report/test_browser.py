"""The page in a real browser: drawn, quiet, narrow enough, and readable in the dark."""

from __future__ import annotations

import os
import shutil

import pytest

from heckmanfa.report import write_report

pytest.importorskip("plotly", reason="the report needs the extra plots")
driver = pytest.importorskip(
    "playwright.sync_api", reason="no driver of a browser: pip install playwright"
)

WINDOW = {"search": "fa", "criterion": "bic", "rho_range": (-0.3, 0.3)}
DRAWN = "document.querySelectorAll('.picture:not([data-drawn])').length === 0"

# Contrast of every text with what is behind it, as the guidelines for accessible pages count it.
CONTRAST = """() => {
  const read = (text) => {
    const parts = text.match(/[\\d.]+/g).map(Number);
    return parts.length < 4 ? [...parts, 1] : parts;
  };
  const level = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => {
      v /= 255;
      return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (let one = node; one; one = one.parentElement) {
      const c = read(getComputedStyle(one).backgroundColor);
      if (c[3] > 0) return c;
    }
    return [255, 255, 255, 1];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !node.getClientRects().length) continue;
    if (node.closest('script, style, .hoverlayer, select')) continue;
    const style = getComputedStyle(node);
    const svg = node instanceof SVGElement;
    const a = level(read(svg ? style.fill : style.color));
    const b = level(behind(svg ? node.closest('.picture') : node));
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), svg,
      walker.currentNode.textContent.trim().slice(0, 40)]);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser():
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    program = next((shutil.which(one) for one in names if shutil.which(one)), None)
    if program is None:
        pytest.skip("no Chromium or Chrome is installed")
    with driver.sync_playwright() as started:
        # Root may not use the sandbox, and a container's /dev/shm is small.
        flags = ["--no-sandbox"] if os.name == "posix" and os.geteuid() == 0 else []
        try:
            one = started.chromium.launch(
                executable_path=program, args=[*flags, "--disable-dev-shm-usage"]
            )
        except driver.Error as error:
            pytest.skip(f"{program} does not start: {str(error).splitlines()[0]}")
        yield one
        one.close()


class Visit:
    """A page as it was opened, and what it did on the way."""

    def __init__(self, browser, path, width=1200, **options):
        self.errors, self.requests = [], []
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
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

    def drawn(self):
        self.page.wait_for_function(DRAWN)
        return self.page

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()


@pytest.fixture(scope="module")
def files(ask, hostile, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, analysis in (("plain", ask()), ("window", ask(**WINDOW)), ("hostile", hostile)):
        made[name] = folder / f"{name}.html"
        write_report(analysis, made[name])
    return made


@pytest.mark.parametrize(
    ("name", "scheme"), [("plain", "light"), ("window", "dark"), ("hostile", "light")]
)
def test_it_is_quiet_and_asks_for_nothing(browser, files, name, scheme):
    with Visit(browser, files[name], color_scheme=scheme) as visit:
        page = visit.drawn()
        page.wait_for_timeout(200)
        assert visit.errors == []
        assert visit.requests == []
        # A name that is a script has not run, and none became an element.
        assert page.locator("script").count() == page.locator("body script").count() + 1
        assert page.locator("td b, th b, li b, .picture b, img").count() == 0


def test_every_candidate_is_drawn(browser, files, ask):
    n = len(ask(**WINDOW).model.candidates_)
    with Visit(browser, files["window"]) as visit:
        page = visit.drawn()
        drawn = page.evaluate(
            "[...document.querySelectorAll('#plot-curve .scatterlayer .trace')]"
            ".map((one) => one.querySelectorAll('.point').length)"
        )
        # Outside and inside the window, and the chosen one; above and below.
        assert len(drawn) == 6
        assert drawn[0] + drawn[1] == n
        assert drawn[3] + drawn[4] == n
        assert drawn[2] == drawn[5] == 1


def test_a_point_says_which_features_it_has(browser, files, ask):
    frame = ask().model.candidates_
    with Visit(browser, files["plain"]) as visit:
        page = visit.drawn()
        point = page.locator("#plot-curve .scatterlayer").first.locator(".trace").first
        point = point.locator(".point").nth(3)
        point.scroll_into_view_if_needed()
        box = point.bounding_box()
        page.mouse.move(box["x"] - 30, box["y"] - 30)
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=5)
        label = page.locator("#plot-curve .hoverlayer .hovertext")
        label.wait_for()
        lines = label.locator("tspan.line").all_text_contents()
        row = frame.sort_values("bic", kind="stable").iloc[3]
        assert lines[0] == "rank 4"
        assert lines[1].replace("\N{MINUS SIGN}", "-") == f"BIC {row['bic']:.6g}"
        text = "".join(lines[2:])
        assert text == f"{len(row['features'])} features: {', '.join(row['features'])}"


def test_hostile_names_are_shown_as_they_are(browser, files, hostile):
    with Visit(browser, files["hostile"]) as visit:
        page = visit.drawn()
        page.evaluate("Plotly.Fx.hover('plot-curve', [{curveNumber: 0, pointNumber: 0}])")
        label = page.locator("#plot-curve .hoverlayer .hovertext")
        label.wait_for()
        text = "".join(label.locator("tspan.line").all_text_contents())
        assert ", ".join(hostile.model.prediction_features_) in text
        assert page.title().startswith(hostile.question.outcome)


def test_another_feature_can_be_picked_by_keyboard(browser, files):
    with Visit(browser, files["plain"]) as visit:
        page = visit.drawn()
        read = "[...document.getElementById('plot-coefficients-over').data[0].y]"
        before = page.evaluate(read)
        page.locator("#pick-coefficients-over").focus()
        page.keyboard.press("ArrowDown")
        page.wait_for_function(f"JSON.stringify({read}) !== {str(before).replace(' ', '')!r}")
        assert visit.errors == []


def test_tabs_stop_at_what_can_be_used(browser, files):
    with Visit(browser, files["plain"]) as visit:
        page = visit.drawn()
        stops = []
        for _ in range(60):
            page.keyboard.press("Tab")
            tag, kind, left = page.evaluate(
                "[document.activeElement.tagName, document.activeElement.className, "
                "document.activeElement.getBoundingClientRect().left]"
            )
            if tag == "BODY":
                break
            assert left >= 0
            stops.append((tag, kind))
        assert stops[0] == ("A", "skip")
        assert set(stops) == {
            ("A", "skip"),
            ("A", ""),
            ("DIV", "scroll"),
            ("PRE", ""),
            ("SELECT", ""),
            ("SUMMARY", ""),
            ("BUTTON", "save"),
        }


def test_a_picture_can_be_saved(browser, files):
    with Visit(browser, files["plain"], color_scheme="dark") as visit:
        page = visit.drawn()
        with page.expect_download() as download:
            page.locator("#save-lambda").click()
        text = download.value.path().read_text(encoding="utf-8")
        assert text.startswith("<svg")
        assert "lambda (inverse Mills ratio)" in text
        assert download.value.suggested_filename == "lambda.svg"
        assert visit.errors == []
        assert visit.requests == []


@pytest.mark.parametrize(
    ("name", "width"), [("plain", 320), ("window", 390), ("hostile", 390), ("window", 768)]
)
def test_it_is_no_wider_than_a_phone(browser, files, name, width):
    with Visit(browser, files[name], width, is_mobile=True, has_touch=True) as visit:
        page = visit.drawn()
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert visit.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_what_is_behind_it(browser, files, scheme):
    with Visit(browser, files["window"], color_scheme=scheme) as visit:
        page = visit.drawn()
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true })")
        found = page.evaluate(CONTRAST)
        assert sum(svg for _, svg, _ in found) > 30
        assert [one for one in found if one[0] < 4.5] == []


def test_figures_follow_the_theme(browser, files):
    with Visit(browser, files["plain"], color_scheme="light") as visit:
        page = visit.drawn()
        ink = "document.getElementById('plot-lambda').layout.font.color"
        light = page.evaluate(ink)
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(f"{ink} !== {light!r}")
        assert [one for one in page.evaluate(CONTRAST) if one[0] < 4.5] == []


def test_it_prints_in_the_light_and_within_the_page(browser, files):
    with Visit(browser, files["plain"], color_scheme="dark") as visit:
        # Printed at once, with no time to draw anything before.
        page = visit.page
        page.evaluate(
            """() => window.addEventListener('beforeprint', () => {
              window.seen = [...document.querySelectorAll('.picture')].map((one) => [
                one.dataset.drawn, one.layout.width, one.layout.font.color]);
            })"""
        )
        assert page.pdf(format="A4").startswith(b"%PDF")
        seen = page.evaluate("window.seen")
        assert len(seen) == 5
        assert all(drawn == "yes" and width <= 680 for drawn, width, _ in seen)
        assert len({colour for _, _, colour in seen}) == 1
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(255, 255, 255)"
        )
        # An A4 page less its margins; the figures follow a moment later.
        page.set_viewport_size({"width": 673, "height": 1000})
        page.wait_for_function("document.documentElement.scrollWidth <= 673")
        assert page.evaluate(
            "[...document.querySelectorAll('table')].every((one) => one.offsetWidth <= 673)"
        )


def test_ten_thousand_candidates_open_quickly(browser, crime_analysis, tmp_path):
    path = tmp_path / "crime.html"
    write_report(crime_analysis, path)
    with Visit(browser, path) as visit:
        loaded = "performance.getEntriesByType('navigation')[0].loadEventEnd"
        assert visit.page.evaluate(loaded) < 2000
        page = visit.drawn()
        drawn = page.evaluate(
            "document.getElementById('plot-curve').data.map((one) => [one.type, one.x.length])"
        )
        assert drawn == [["scattergl", 10_000], ["scattergl", 1]] * 2
        assert visit.errors == []
        assert visit.requests == []
