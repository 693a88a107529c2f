"""Scenes: a picture is a value, and both renderers draw whatever is in it."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from heckmanfa import HeckmanAverage
from heckmanfa.datasets import load_mroz
from heckmanfa.plots.axes import draw_scene
from heckmanfa.plots.scene import (
    Above,
    Axis,
    Band,
    Bar,
    ColumnTip,
    Curve,
    Dots,
    End,
    Group,
    Interval,
    Note,
    Panel,
    Panels,
    Point,
    Row,
    Rows,
    Rule,
    Runs,
    Scene,
)
from heckmanfa.plots.svg import render_svg
from heckmanfa.plots.svg_shapes import NARROW, WIDE, legend_mark
from heckmanfa.results.answer_html import figure
from heckmanfa.text.table import LegendItem, PictureText, lay_out

SVG = "{http://www.w3.org/2000/svg}"
LEGEND = (
    LegendItem("estimate", "-circle", "this"),
    LegendItem("nothing known", "slanted", "pale"),
    LegendItem("both", "framed", "ink"),
)
TEXT = PictureText(
    "How tall they are",
    "Heights of two trees.",
    "In metres.",
    lay_out(["Tree"], ["Height"], [["oak", "20"], ["elm", "30"]], "Heights", "trees-table"),
    LEGEND,
)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def tree_rows(*marks, **others):
    """All that a picture of rows needs."""
    rows = (
        Row("oak", (Point(20.0, 0.0, "this"), *marks), "oak: 20", "oak", "20 m", "Native"),
        Row("elm", (Point(30.0, 0.0, "this"),), "elm: 30", "elm", "30 m", "Native"),
    )
    return Scene("trees", TEXT, Rows(Axis(0.0, 40.0, "height"), rows, 30.0, 2.0, **others))


def tree_panels(*marks, **others):
    """The same over two axes."""
    panel = Panel(Axis(0.0, 10.0, "age"), (Point(20.0, 5.0, "this"), *marks), 100.0, 30.0, **others)
    return Scene("trees", TEXT, Panels(Axis(0.0, 40.0, "height"), (panel,), 2.0))


def shapes(scene, width=WIDE):
    return [item.tag for item in ElementTree.fromstring(render_svg(scene, width)).iter()]


def artists(scene):
    return len(draw_scene(scene).get_children())


MARKS = {
    "point": Point(10.0, 0.1, "ols", "diamond"),
    "hollow": Point(10.0, 0.1, "ols", "hollow"),
    "square": Point(10.0, 0.1, "all", "square"),
    "stroke": Point(10.0, 0.1, "ink", "stroke"),
    "arrow": Point(90.0, 0.1, "ink", arrow=True),
    "interval": Interval(10.0, 12.0, 0.1, "this"),
    "upright": Interval(0.1, 0.2, 10.0, "this", upright=True),
    "bar": Bar((10.0, 20.0), (-0.2, 0.2), "this"),
    "hatch": Bar((10.0, 20.0), (-0.2, 0.2), "ink", "hatch"),
    "slanted": Bar((10.0, 20.0), (-0.2, 0.2), "pale", "slanted"),
    "runs": Runs(((1.0, 2.0), (3.0, 4.0)), "pos"),
    "curve": Curve((1.0, 2.0), (0.1, 0.2), "ols"),
    "dashes": Curve((1.0, 2.0), (0.1, 0.2), "ols", "dashdot"),
    "dots": Dots((1.0, 2.0), (0.1, 0.2), "this"),
    "crosses": Dots((1.0, 2.0), (0.1, 0.2), "pale", "cross", small=True),
    "triangle": Point(10.0, 0.1, "pos", "triangle"),
    "left": Point(10.0, 0.1, "pos", "left"),
    "right": Point(10.0, 0.1, "pos", "right"),
    "cross": Point(10.0, 0.1, "pos", "cross"),
    "band": Band((1.0, 2.0), (0.0, 0.1), (0.2, 0.3), "this"),
    "zero": Rule(1.0),
    "cut": Rule(y=0.2, kind="cut"),
    "coloured cut": Rule(y=0.2, kind="cut", color="ols"),
}


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("make", [tree_rows, tree_panels])
def test_both_renderers_draw_every_mark_in_rows_and_in_panels(make, mark):
    assert len(shapes(make(MARKS[mark]))) > len(shapes(make()))
    assert artists(make(MARKS[mark])) > artists(make())


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_marks_are_where_the_axes_say(width):
    scene = tree_panels(Bar((10.0, 30.0), (0.0, 4.0), "this"), Interval(5.0, 99.0, 2.0, "ols"))
    root = ElementTree.fromstring(render_svg(scene, width))
    left, right = 46.0, width - 14.0
    (circle,) = root.iter(SVG + "circle")
    assert float(circle.get("cx")) == pytest.approx((left + right) / 2, abs=0.06)
    assert float(circle.get("cy")) == pytest.approx(30 + 50, abs=0.06)
    (bar,) = (item for item in root.iter(SVG + "rect") if item.get("class") == "bar this")
    assert float(bar.get("height")) == pytest.approx(40, abs=0.06)
    # A px lies between neighbouring bars.
    assert float(bar.get("width")) == pytest.approx((right - left) / 2 - 1, abs=0.06)
    # The interval runs on beyond the axis.
    (line,) = (item for item in root.iter(SVG + "line") if item.get("class") == "interval ols")
    assert float(line.get("x2")) == pytest.approx(right, abs=0.06)
    assert [item.get("class") for item in root.iter(SVG + "path")] == ["interval arrow ols"]
    panel = draw_scene(scene)
    assert panel.get_xlim() == (0.0, 40.0)
    assert panel.get_ylim() == (0.0, 10.0)
    (patch,) = panel.patches
    assert (patch.get_x(), patch.get_width(), patch.get_height()) == (10.0, 20.0, 4.0)
    arrows = [line.get_xydata().tolist() for line in panel.lines if line.get_marker() == ">"]
    assert arrows == [[[40.0, 2.0]]]


def test_rows_have_names_values_headings_and_tooltips_in_both():
    scene = tree_rows(
        rest="+3 shrubs", hatched=(35.0, 40.0), columns=(ColumnTip((0, 9), "a", "1"),)
    )
    root = ElementTree.fromstring(render_svg(scene, WIDE))
    words = [item.text for item in root.iter(SVG + "text")]
    for text in ("oak", "elm", "20 m", "Native", "+3 shrubs", "height", "1"):
        assert words.count(text) == 1
    tips = [item.get("aria-label") for item in root.iter(SVG + "g") if item.get("role") == "img"]
    assert tips == ["oak: 20", "elm: 30"]
    panel = draw_scene(scene)
    assert [label.get_text() for label in panel.get_yticklabels()] == ["oak", "elm"]
    assert {text.get_text() for text in panel.texts} == {"20 m", "30 m", "Native"}
    assert panel.get_title("left") == "+3 shrubs"
    (hatched,) = panel.patches
    assert (hatched.get_x(), hatched.get_width()) == (35.0, 5.0)


def test_panels_have_words_a_second_axis_and_tooltips():
    group = Group((Bar((1.0, 2.0), (0.0, 3.0), "this"),), "young: 3", (1.0, 2.0))
    scene = tree_panels(
        group,
        Note(20.0, 5.0, "grows", rises=True),
        corners=("tall", "small"),
        above=(Above(10.0, ("mean", "of oaks"), "oak"), Above(11.0, ("mean", "of elms"), "elm")),
        top=((20.0, "66"),),
        top_title="feet",
        shaded=((30.0, 40.0),),
    )
    root = ElementTree.fromstring(render_svg(scene, WIDE))
    words = {item.text for item in root.iter(SVG + "text")}
    assert words >= {
        "tall",
        "small",
        "mean oak",
        "mean elm",
        "of elms",
        "66",
        "feet",
        "grows",
        "age",
    }
    assert [item.get("aria-label") for item in root if item.get("class") == "row"] == ["young: 3"]
    panel = draw_scene(scene)
    (top,) = panel.child_axes
    assert [label.get_text() for label in top.get_xticklabels()] == ["66"]
    assert (panel.get_xlabel(), panel.get_ylabel(), top.get_xlabel()) == ("height", "age", "feet")
    assert len(panel.patches) == 2


@pytest.mark.parametrize("axes", ["beside", "stacked"])
def test_several_panels_are_an_array_of_axes(axes):
    body = tree_panels().body
    scene = replace(tree_panels(), body=replace(body, panels=body.panels * 2, axes=axes))
    assert len(draw_scene(scene)) == 2
    assert shapes(scene).count(SVG + "circle") == 2
    words = [item.text for item in ElementTree.fromstring(render_svg(scene, WIDE)).iter()]
    assert words.count("age") == 2


def test_names_of_curves_at_their_ends_keep_clear_of_each_other():
    ends = tuple(End(5.0, name, "this") for name in ("oak", "elm", "ash"))
    scene = tree_panels(Curve((0.0, 40.0), (1.0, 5.0), "this"), ends=ends)
    root = ElementTree.fromstring(render_svg(scene, NARROW))
    texts = {item.text: item for item in root.iter(SVG + "text")}
    heights = [float(texts[end.name].get("y")) for end in ends]
    assert all(low - high >= 15.9 for high, low in pairwise(heights))
    assert all(30 < height < 135 for height in heights)
    panel = draw_scene(scene)
    assert [text.get_text() for text in panel.texts] == ["oak", "elm", "ash"]
    heights = [text.get_position()[1] for text in panel.texts]
    assert all(high > low for high, low in pairwise(heights))


LEGEND_MARKS = (
    *("-triangle", "left", "right", "cross", "dot", "dot-cross"),
    *("band", "line", "thin", "dotted", "cut"),
)


def test_every_mark_of_a_legend_is_drawn_by_both():
    items = tuple(LegendItem(mark, mark, "ols") for mark in LEGEND_MARKS)
    scene = replace(tree_rows(), text=replace(TEXT, legend=items))
    assert len({legend_mark(item) for item in items}) == len(items)
    (legend,) = draw_scene(scene).figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(LEGEND_MARKS)


def test_counts_have_integers_along_their_axis():
    body = tree_panels().body
    scene = replace(tree_panels(), body=replace(body, x=Axis(10.4, 12.6, "rank", numbers="count")))
    words = [item.text for item in ElementTree.fromstring(render_svg(scene, WIDE)).iter()]
    assert [word for word in words if word in ("10.5", "11", "11.0", "12", "12.0")] == ["11", "12"]
    ticks = draw_scene(scene).get_xticks()
    assert all(tick.is_integer() for tick in ticks)


@pytest.mark.parametrize("high", [10.0, 39.0])
def test_rows_below_the_axis_have_their_names_where_there_is_room(high):
    marks = Interval(5.0, high, 0.0, "this"), Point(7.0, 0.0, "this")
    below = (Row("of all trees", marks, "all: 7"), Row("unknown", (), "unknown"))
    scene = tree_panels()
    scene = replace(scene, body=replace(scene.body, below=below))
    root = ElementTree.fromstring(render_svg(scene, WIDE))
    groups = [item for item in root if item.get("class") == "row"]
    assert [group.get("aria-label") for group in groups] == ["all: 7", "unknown"]
    (line,) = (item for item in groups[0].iter(SVG + "line"))
    (words,) = (item for item in groups[0].iter(SVG + "text"))
    beside = float(words.get("x")) > float(line.get("x2"))
    # The second has no interval, and as much room as the axis leaves: none.
    assert not beside
    alone = replace(scene, body=replace(scene.body, below=below[:1]))
    (words,) = (
        item
        for item in ElementTree.fromstring(render_svg(alone, WIDE)).iter(SVG + "text")
        if item.text == "of all trees"
    )
    assert (float(words.get("x")) > float(line.get("x2"))) == (high == 10.0)


def test_a_function_that_returns_a_scene_is_a_picture_of_a_page():
    page = figure(tree_rows())
    start = '<figure class="trees" data-tables="trees-table"><h3>How tall they are</h3>'
    assert page.startswith(start)
    assert page.count('role="group" aria-label="Heights of two trees."') == 2
    assert page.count('class="key"') == 3
    assert "<figcaption>In metres.</figcaption>" in page


def test_a_legend_is_that_of_the_words_unless_matplotlib_has_its_own():
    labels = [text.get_text() for text in draw_scene(tree_rows()).figure.legends[0].get_texts()]
    assert labels == ["estimate", "nothing known", "both"]
    assert not draw_scene(replace(tree_rows(), legend=())).figure.legends


def test_a_scene_is_a_frozen_value():
    mroz = load_mroz()
    model = HeckmanAverage().fit(mroz[["educ", "exper", "age", "kids5"]], mroz["lwage"])
    pictures = model.pictures()
    for picture in (pictures.forest, pictures.chances, pictures.assignments, pictures.over_rho):
        assert picture.scene() == picture.scene()
        with pytest.raises(FrozenInstanceError):
            picture.scene().body = None


def test_a_picture_as_svg_stands_alone():
    mroz = load_mroz()
    picture = HeckmanAverage().fit(mroz[["educ", "age", "kids5"]], mroz["lwage"]).pictures().forest
    root = ElementTree.fromstring(picture.svg(WIDE))
    assert root.find(SVG + "title").text == picture.text().title
    assert root.find(SVG + "desc").text == picture.text().caption
    style = root.find(SVG + "style").text
    # Every class of the drawing has a rule that holds without a page around it.
    assert ".hfa" not in style
    for name in ("lab", "tick", "interval", "mark", "line"):
        assert f"svg .{name} " in style or f"text.{name}" in style
    assert "--this: #0a58a6" in style
