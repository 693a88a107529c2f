"""Pictures draw and say only what is there: rows, marks, levels, hatches and numbers."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from heckmanfa.plots.correction_pictures import RhoBin, RhoByAssignment
from heckmanfa.plots.forest_intervals import Estimate, Forest, ForestRow, Series
from heckmanfa.plots.overlap_bars import overlap_of
from heckmanfa.plots.scene import Axis, Row, Rows
from heckmanfa.plots.selection_rows import (
    Profile,
    SelectionChange,
    SelectionDriver,
    SelectionMargins,
    SelectionProfiles,
)
from heckmanfa.plots.svg_shapes import FULL, NARROW, WIDE

UNKNOWN = Estimate(math.nan, math.nan, math.nan)
THIS, NAIVE = Series("this model", "this", "circle"), Series("naive probit", "ols", "diamond")
ALL = Series("all features", "all", "square")


LABEL = r'<text class="lab" x="([\d.]+)"[^>]*>(x\d+)</text>'
HIT = r'<rect class="hit" x="([\d.]+)" y="[\d.]+" width="([\d.]+)"'


def forest(*rows):
    return Forest("y", (THIS, NAIVE, ALL), rows, "Estimates.", hollow="cannot be told")


def test_a_feature_without_an_estimate_has_no_row_in_the_picture():
    known = Estimate(1.0, 0.5, 1.5)
    drawn = forest(
        ForestRow("debt", "one more", (known, known, UNKNOWN)),
        ForestRow("age", "one more", (UNKNOWN, UNKNOWN, UNKNOWN), is_sure=False),
    )
    assert [row.name for row in drawn.scene().body.rows] == ["debt"]
    assert "1 of 2 features has an estimate." in drawn.text().caption
    # The table holds both.
    assert [row[0] for row in drawn.text().table.rows] == ["debt", "age"]
    assert [item.label for item in drawn.text().legend] == ["this model", "naive probit"]
    assert drawn.text().title.endswith("by two models")


def test_hollow_marks_are_explained_only_where_there_are_some():
    known = Estimate(1.0, 0.5, 1.5)
    others = forest(
        ForestRow("debt", "one more", (known, known, known)),
        ForestRow("age", "one more", (UNKNOWN, UNKNOWN, known), is_sure=False),
    )
    assert "Hollow" not in others.text().caption
    hollow = replace(others.rows[1], estimates=(known, UNKNOWN, UNKNOWN))
    assert "Hollow: cannot be told." in forest(others.rows[0], hollow).text().caption


def test_rows_of_categories_show_their_level():
    south = SelectionChange("online rather than city", -25.0, -30.0, -20.0)
    branch = SelectionDriver("branch", (south,), "category")
    score = SelectionDriver("score", (SelectionChange("100 more", 10.0, 8.0, 12.0),), "number")
    margins = SelectionMargins((branch, score))
    assert [row.under for row in margins.scene().body.rows] == [
        ("online rather than city",),
        ("100 more",),
    ]
    assert ">online rather than city</text>" in margins.svg(WIDE)
    assert ">100 more</text>" in margins.svg(NARROW)
    profiles = SelectionProfiles(
        (Profile("branch", "online", 0.2, 0.4, 0.3, 0.5), Profile("score", "", 5.0, 4.0, 4.5, 1.0))
    )
    assert [row.under for row in profiles.scene().body.rows] == [("share of online",), ()]
    assert ">share of online</text>" in profiles.svg(NARROW)
    # Both have rows of the same height, so that a feature is at one height in both.
    assert profiles.scene().body.height == margins.scene().body.height


def rho(*weights):
    bins = tuple(
        RhoBin(place / 20, (place + 1) / 20, weight, 0.0) for place, weight in enumerate(weights)
    )
    return RhoByAssignment("y", bins, "BIC", 7, 1.0, 0.02)


def test_rho_in_one_bar_is_a_sentence():
    one = rho(0.999, 0.001)
    assert "0.02 on average" in one.one_number
    assert "0.00 to 0.05 in >99% of the weight (by BIC)" in one.one_number
    assert rho(0.9, 0.1).one_number == ""


def test_hatched_is_only_where_rows_without_an_outcome_are_alone():
    probability = np.array([0.3, 0.5, 0.7, 0.12, 0.4, 0.6])
    selected = np.array([True, True, True, False, False, False])
    below = probability < 0.3
    picture = overlap_of(probability, selected, None, "", below)
    hatched = [
        mark.x
        for mark in picture.scene().body.panels[0].marks
        if getattr(mark, "fill", "") == "slanted"
    ]
    ends = [end for span in hatched for end in span]
    assert (min(ends), max(ends)) == pytest.approx((0.12, 0.3))
    assert "Hatched: 16.7% of the rows (1) is where" in picture.text().caption
    # Nothing is hatched where there are no rows at all.
    inside = overlap_of(probability[~below], selected[~below], None, "", below[~below])
    assert not [
        mark
        for mark in inside.scene().body.panels[0].marks
        if getattr(mark, "fill", "") == "slanted"
    ]
    assert [item.label for item in inside.text().legend] == ["with an outcome", "without"]


@pytest.mark.parametrize(("kind", "share"), [("frequency", 0.5), ("sampling", 1 / 6)])
def test_frequencies_count_rows_and_sampling_weights_do_not(kind, share):
    probability = np.array([0.3, 0.5, 0.7, 0.12, 0.4, 0.6])
    selected = np.array([True, True, True, False, False, False])
    weight = np.array([1.0, 1, 1, 5, 1, 1])
    picture = overlap_of(probability, selected, weight, kind, probability < 0.3)
    assert picture.share_outside == pytest.approx(share)
    assert picture.n_outside == (5 if kind == "frequency" else 1)


def rows_of(n, head):
    rows = tuple(Row(f"x{place}", (), "words", f"x{place}", head=head(place)) for place in range(n))
    return Rows(Axis(0.0, 1.0), rows, 24.0, 1.0, in_columns=True)


def test_many_rows_stand_in_two_columns_that_begin_with_a_heading_if_one_is_near():
    assert not rows_of(5, lambda _: "").is_across
    body = rows_of(15, lambda place: "sure" if place < 7 else "unsure")
    assert body.is_across
    first, last = body.halves()
    assert [len(first.rows), len(last.rows)] == [7, 8]
    assert {row.head for row in last.rows} == {"unsure"}
    even = rows_of(20, lambda _: "").halves()
    assert [len(half.rows) for half in even] == [10, 10]


def test_both_columns_of_rows_are_drawn_beside_one_another():
    from heckmanfa.plots.scene import Scene
    from heckmanfa.plots.svg import render_svg
    from heckmanfa.text.table import PictureText, lay_out

    body = rows_of(20, lambda _: "")
    text = PictureText("t", "a", "c", lay_out(["Feature"], [], [], "t", "t"))
    drawn = render_svg(Scene("rows", text, body), FULL)
    # Places are written as they are: a script that saves the picture reads them.
    assert "transform" not in drawn
    places = {name: float(x) for x, name in re.findall(LABEL, drawn)}
    assert all(places[f"x{place}"] < 572 for place in range(10))
    assert all(places[f"x{place}"] > 572 for place in range(10, 20))
    assert places["x10"] - places["x0"] == 572
    hits = [tuple(map(float, box)) for box in re.findall(HIT, drawn)]
    assert {*hits} == {(0.0, 540.0), (572.0, 540.0)}
    tall = render_svg(Scene("rows", text, body), WIDE)
    height = [int(one.split('height="')[1].split('"')[0]) for one in (drawn, tall)]
    assert height[0] < 0.65 * height[1]
