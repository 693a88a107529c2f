"""Moving rho: the numbers behind the slider, and what it moves in a real browser."""

from __future__ import annotations

import numpy as np
import pytest
from tests.report.browsing import Visit

from heckmanfa.report.rho_slider import slider_html


def number(text):
    return float(text.replace("\N{MINUS SIGN}", "-").replace(",", "").strip("%"))


def told(page):
    """rho at each value of the slider, and what each panel says there."""
    (slider,) = (one for _, one in page.elements if one.get("id") == "rho-slider")
    panels = [one for tag, one in page.elements if tag == "li" and "data-at" in one]
    return [number(rho) for rho in slider["data-rho"].split("|")], [
        [value.split(";") for value in panel["data-at"].split("|")] for panel in panels
    ]


@pytest.mark.parametrize("name", ["none", "ml", "binary"])
def test_values_are_those_of_the_curve_and_of_an_uncertainty_interval(case, page_of, name):
    analysis = case(name)
    picture = analysis.pictures().over_rho
    rho, panels = told(page_of(name))
    assert 61 <= len(rho) <= 181
    assert len(panels) == len(picture.panels)
    naming, model = analysis.evidence.naming, analysis.model
    for at in (-0.6, 0.0, 0.4, 0.9):
        place = rho.index(at)
        rows = None
        if name == "none":
            rows = model.uncertainty_interval(rho=(at, at)).path().set_index("term")
        for panel, values in zip(picture.panels, panels, strict=True):
            point = panel.at(at)
            wanted = point.estimate, point.low, point.high
            axis = panel.scale()
            places = [float(value) / 1000.0 for value in values[place][:3]]
            assert places == pytest.approx([axis(value) for value in wanted], abs=6e-4)
            if rows is not None:
                row = rows.loc[panel.feature][["estimate", "ci_low", "ci_high"]]
                step = naming.step_of(panel.column)
                assert wanted == pytest.approx(tuple(step * row.to_numpy(dtype=float)), rel=1e-9)
            # The words have the digits of the table beside the picture.
            size, low, high = values[place][3:6]
            assert panel.words(point) == f"{size} ({low} to {high})"
            last = 0.5 * 10.0 ** -len(size.partition(".")[2])
            assert [number(one) for one in (size, low, high)] == pytest.approx(wanted, abs=last)


def test_effects_on_a_logarithm_are_said_in_percent(case, page_of):
    analysis = case("log")
    picture, naming = analysis.pictures().over_rho, analysis.evidence.naming
    interval = analysis.model.uncertainty_interval(rho=(0.4, 0.4))
    rows = interval.path().set_index("term")
    rho, panels = told(page_of("log"))
    for panel, values in zip(picture.panels, panels, strict=True):
        point, (*_, size, low, high, _kind) = panel.at(0.4), values[rho.index(0.4)]
        wanted = [point.estimate, point.low, point.high]
        row = rows.loc[panel.feature][["estimate", "ci_low", "ci_high"]].to_numpy(dtype=float)
        shares = 100.0 * np.expm1(naming.step_of(panel.column) * row)
        assert wanted == pytest.approx(shares, rel=1e-9)
        assert [one[-1] for one in (size, low, high)] == ["%"] * 3
        assert [number(one) for one in (size, low, high)] == pytest.approx(shares, abs=0.051)


def test_what_is_embedded_is_small(case):
    for name in ("average", "binary", "long"):
        html = slider_html(case(name).evidence, case(name).pictures().over_rho)
        assert 3_000 < len(html.encode()) <= 30_000
    assert slider_html(case("average").evidence, None) == ""


PLACES = """() => [...document.querySelectorAll('.over_rho svg[role=group]')].map((drawing) =>
  [...drawing.querySelectorAll('.row[data-x]')].map((panel) => {
    const value = (scale, at) => { const [low, high, start, end] = scale.split(' ').map(Number);
      return low + (at - start) / (end - start) * (high - low); };
    const line = panel.querySelector('line.moved'), point = panel.querySelector('circle.moved');
    const at = (one, key) => Number(one.getAttribute(key));
    return [value(panel.dataset.x, at(point, 'cx')), value(panel.dataset.y, at(point, 'cy')),
      value(panel.dataset.y, at(line, 'y1')), value(panel.dataset.y, at(line, 'y2'))]; }))"""


@pytest.mark.parametrize("name", ["average", "binary", "log"])
def test_the_slider_moves_marks_and_words(browser, file_of, case, name):
    picture = case(name).pictures().over_rho
    with Visit(browser, file_of(name)) as page:
        slider = page.locator("#rho-slider")
        items = page.locator(".what-if li")
        # It starts at the model's own rho.
        assert all("as in" in words for words in items.all_text_contents())
        hat = f"{picture.rho_hat:.2f}".replace("-", "\N{MINUS SIGN}")
        assert page.locator(".what-if output").text_content() == f"rho = {hat}"
        slider.focus()
        for key, rho in (("End", 0.9), ("Home", -0.9), ("ArrowRight", -0.88)):
            page.keyboard.press(key)
            words = items.all_text_contents()
            written = f"{rho:.2f}".replace("-", "\N{MINUS SIGN}")
            assert len(words) == len(picture.panels)
            assert all(one.startswith(f"If rho were {written}, ") for one in words)
            assert slider.get_attribute("aria-valuetext") == " ".join(words)
            for drawing in page.evaluate(PLACES):
                assert len(drawing) == len(picture.panels)
                for panel, places in zip(picture.panels, drawing, strict=True):
                    point = panel.at(rho)
                    reach = max(abs(at.high) + abs(at.low) for at in panel.points)
                    wanted = point.estimate, point.low, point.high
                    assert places[0] == pytest.approx(rho, abs=0.01)
                    assert places[1:] == pytest.approx(wanted, abs=0.01 * reach)


def test_the_slider_is_named_and_leaves_paper_and_pages_without_script_alone(browser, file_of):
    with Visit(browser, file_of("average")) as page:
        slider = page.get_by_role("slider", name="Move rho yourself")
        assert slider.is_visible()
        page.emulate_media(media="print")
        assert not page.locator(".what-if").is_visible()
        assert not page.locator(".moved").first.is_visible()
    with Visit(browser, file_of("average"), 360, 780, color_scheme="dark") as page:
        box = page.locator("#rho-slider").bounding_box()
        assert box["x"] + box["width"] <= 360
        assert box["height"] >= 24
    with Visit(browser, file_of("average"), java_script_enabled=False) as page:
        assert not page.locator(".what-if").is_visible()
        assert page.locator(".over_rho svg[role=group]:visible").count() == 1
