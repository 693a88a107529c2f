"""The SVG writer: well-formed whatever it is given, classes only, places by its scales."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from xml.etree import ElementTree

import pytest

from heckmanfa.plots.scale import Scale
from heckmanfa.plots.svg_shapes import NARROW, WIDE, Drawing, escape, legend_mark, px
from heckmanfa.text.printable import cells, cut
from heckmanfa.text.table import LegendItem
from heckmanfa.text.wording import figure, interval, signed

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = (
    "<script>alert(1)</script>",
    "a\x00b\x1b[2J\x7f\ud800",
    "\u202egnp.exe",
    '"onload="x" \'&amp;',
    "=cmd|' /C calc'!A0",
    "n" * 300,
    "e\u0301\u0301\u0301\u0301\u0301\u0301",
    "",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_harmless_wherever_it_enters(name: str) -> None:
    drawn = Drawing(WIDE, 30, name)
    with drawn.group(name, data_f=name, label=name, title=name):
        drawn.text(1, 2, name, name)
        drawn.path(name, name)
    root = ElementTree.fromstring(drawn.svg())
    assert {child.tag for child in root.iter()} <= {
        SVG + tag for tag in ("svg", "g", "title", "text", "path")
    }
    assert all(
        attribute in {"class", "d", "x", "y", "data-f", "role", "aria-label"}
        for element in root.iter()
        if element is not root
        for attribute in element.attrib
    )
    assert "\u202e" not in root.get("aria-label", "")


def test_shapes_without_a_finite_place_are_left_out() -> None:
    drawn = Drawing(WIDE, 30, "")
    for bad in (math.nan, math.inf, -math.inf, 1e300):
        drawn.line(0, bad, 1, 1, "x")
        drawn.rect(0, 0, bad, 1, "x")
        drawn.circle(bad, 0, "x")
        drawn.polygon(0, bad, "diamond", "x")
        drawn.point(bad, 0, "square", "x")
        drawn.text(bad, 0, "t", "x")
        drawn.hatch(bad, 0, 5, 5)
        drawn.curve([0, bad], [0, 1], "x")
        drawn.ribbon([0, bad], [0, 1], [1, 2], "x")
    drawn.interval(Scale(0, 1, 0, 10), 5, math.nan, 1, "x")
    assert len(ElementTree.fromstring(drawn.svg())) == 0


def test_curves_break_where_a_point_has_no_place() -> None:
    drawn = Drawing(WIDE, 30, "")
    drawn.curve([0, 1, 2, 3, 4], [0, 1, math.nan, 3, 4], "x")
    (path,) = ElementTree.fromstring(drawn.svg())
    assert path.get("d") == "M0 0L1 1M3 3L4 4"


def test_intervals_beyond_the_scale_end_in_an_arrow() -> None:
    scale = Scale(0, 1, 100, 200)
    drawn = Drawing(WIDE, 30, "")
    drawn.interval(scale, 5, 0.25, math.inf, "this")
    line, arrow = ElementTree.fromstring(drawn.svg())
    assert (line.get("x1"), line.get("x2")) == ("125", "200")
    assert arrow.get("class") == "interval arrow this"
    assert arrow.get("d", "").startswith("M195.5 0.5")


def test_hatches_stay_inside_and_lie_on_one_lattice() -> None:
    for lines, sign in (("/", 1), ("\\", -1)):
        drawn = Drawing(WIDE, 100, "")
        drawn.hatch(10.3, 20, 31, 17.5, lines=lines)
        (path,) = ElementTree.fromstring(drawn.svg())
        numbers = [float(value) for value in re.findall(r"-?[\d.]+", path.get("d", ""))]
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        assert len(points) > 10
        for x, y in points:
            assert 10.25 <= x <= 41.35
            assert 19.95 <= y <= 37.55
            level = (x + sign * y) / 6
            assert abs(level - round(level)) < 0.04


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-0.21, 0.61),
        (0, 0),
        (7, 7),
        (-1e308, 1e308),
        (1e9, 1e9 + 1),
        (-1e-9, 2e-9),
        (math.nan, math.inf),
        (0, 5e-324),
        (5, -5),
        (0, 1),
        (12345, 98765),
    ],
)
def test_ticks_are_few_round_in_view_and_alike(low: float, high: float) -> None:
    scale = Scale(low, high, 100, 500)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 6
    texts = [tick.text for tick in ticks]
    assert len(set(texts)) == len(texts)
    assert len({len(text.partition(".")[2]) for text in texts if text != "0"}) == 1
    for tick in ticks:
        assert 99.9 <= tick.at <= 500.1
        assert tick.at == pytest.approx(scale(tick.value))
        written = tick.text.replace("\N{MINUS SIGN}", "-").replace(",", "")
        assert "-" not in tick.text
        assert float(written) == pytest.approx(tick.value, rel=1e-9, abs=1e-320)
    steps = [b.at - a.at for a, b in itertools.pairwise(ticks)]
    assert max(steps) == pytest.approx(min(steps))


def test_signed_ticks_have_a_plus_but_at_zero() -> None:
    texts = [tick.text for tick in Scale(-0.21, 0.61, 0, 1).ticks(signed=True)]
    assert texts == ["−0.2", "0", "+0.2", "+0.4", "+0.6"]
    assert [tick.text for tick in Scale(0, 100, 0, 1).ticks(3, unit="%")] == ["0%", "50%", "100%"]


def test_scales_over_values_ignore_what_is_not_finite() -> None:
    scale = Scale.over([1.0, math.nan, 3.0, math.inf], 0, 100, pad=0.1, include=(0.0,))
    assert (scale.low, scale.high) == (0.0, pytest.approx(3.2))
    assert scale.clipped(-1) == (0, -1)
    assert scale.clipped(9) == (100, 1)
    assert scale.clipped(1.6) == (pytest.approx(50), 0)
    assert Scale.over([], 0, 1).low < Scale.over([], 0, 1).high


@pytest.mark.parametrize("most", [14, 10])
@pytest.mark.parametrize("name", [*HOSTILE, "年収と学歴と経験年数", "äöüß" * 9, "short"])
def test_names_are_cut_in_the_middle_and_never_to_nothing(name: str, most: int) -> None:
    short = cut(name, most)
    assert cells(short) <= most
    assert short or not name
    if "…" in short:
        assert not short.startswith("…")
        assert not short.endswith("…")
        # A mark never loses its letter.
        after = short[short.index("…") + 1]
        assert not unicodedata.category(after).startswith("M")
    assert cut("a" * 300, most) == "a" * (most // 2) + "…" + "a" * ((most - 1) // 2)


def test_coordinates_have_one_decimal() -> None:
    assert [px(value) for value in (1.0, -0.01, 2.34, -3.96)] == ["1", "0", "2.3", "-4"]


@pytest.mark.parametrize(
    "mark", ["circle", "-hollow", "-diamond", "-square", "bar", "hatch", "line"]
)
def test_legend_marks_are_hidden_from_screen_readers(mark: str) -> None:
    root = ElementTree.fromstring(legend_mark(LegendItem("this model", mark, "this")))
    assert root.get("aria-hidden") == "true"
    assert root.get("role") is None
    assert len(root) == 1 + mark.startswith("-")


def test_numbers_are_written_as_in_prose() -> None:
    assert figure(-0.25) == "−0.250"
    assert figure(0.0971) == "0.097"
    assert figure(1234.5) in ("1,234", "1,235")
    assert figure(math.nan) == ""
    assert interval(-0.53, 0.08) == "−0.530 to 0.080"
    assert signed("0.2") == "+0.2"
    assert signed("0") == "0"
    assert signed("−1") == "−1"


def test_the_two_widths_are_those_of_the_page() -> None:
    assert (WIDE, NARROW) == (540, 358)
    root = ElementTree.fromstring(Drawing(NARROW, 99.2, "a < b").svg())
    assert root.get("viewBox") == "0 0 358 100"
    assert root.get("role") == "group"
    assert root.get("aria-label") == "a < b"
    assert escape("a\x00") == "a\\x00"
