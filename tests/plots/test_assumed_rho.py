"""Coefficients over an assumed rho: beside one another, and grey where that says something."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from heckmanfa import HeckmanAverage
from heckmanfa.inference.rho_pictures import over_rho_of
from heckmanfa.plots.assumed_rho import OverRho, RhoBar, RhoPanel, RhoPoint
from heckmanfa.plots.svg_shapes import FULL, NARROW, WIDE
from heckmanfa.results.evidence import evidence_of


def panel(name, slope):
    points = tuple(
        RhoPoint(tenth / 10, 1 + slope * tenth, slope * tenth, 2 + slope * tenth)
        for tenth in range(-9, 10)
    )
    return RhoPanel(name, "", points, points[12], float("nan"))


def picture(n, *bars):
    names = tuple(f"x{place}" for place in range(n))
    panels = tuple(panel(name, 0.02 * (place + 1)) for place, name in enumerate(names))
    return OverRho("y", "this model", names, panels, 0.3, bars=bars)


def groups(svg):
    """The numbers on both axes of each panel, and where its disc is."""
    found = []
    for part in re.split(r'<g class="row"', svg)[1:]:
        scales = [re.search(rf'data-{axis}="([^"]+)"', part) for axis in "xy"]
        disc = re.search(r'<circle class="mark this" cx="([^"]+)" cy="([^"]+)"', part)
        if all(scales):
            found.append(([[*map(float, scale[1].split())] for scale in scales], disc.groups()))
    return found


@pytest.mark.parametrize("n", [2, 3, 4])
def test_panels_are_beside_one_another_across_a_page_and_stacked_in_a_column(n):
    drawn = picture(n)
    beside = [scales for scales, _ in groups(drawn.svg(FULL))]
    assert len({tuple(y[2:]) for _, y in beside}) == 1
    lefts = [x[2] for x, _ in beside]
    assert lefts == sorted(set(lefts))
    assert all(end[3] < start[2] for (end, _), (start, _) in itertools.pairwise(beside))
    assert 0.95 * FULL < beside[-1][0][3] < FULL
    for width in (WIDE, NARROW):
        stacked = [scales for scales, _ in groups(drawn.svg(width))]
        assert len({tuple(x) for x, _ in stacked}) == 1
        assert len({y[2] for _, y in stacked}) == n


@pytest.mark.parametrize("width", [FULL, WIDE])
def test_a_script_finds_where_a_number_is_in_each_panel(width):
    drawn = picture(3)
    for (scales, disc), over in zip(groups(drawn.svg(width)), drawn.panels, strict=True):
        numbers = over.at_hat.rho, over.at_hat.estimate
        for number, (low, high, start, end), at in zip(numbers, scales, disc, strict=True):
            place = start + (number - low) / (high - low) * (end - start)
            assert float(at) == pytest.approx(place, abs=0.1)


def test_one_panel_is_no_wider_than_other_pictures():
    assert not picture(1).scene().body.is_across
    assert picture(2).scene().body.is_across


def test_an_interval_of_nearly_every_rho_is_said_and_not_shaded():
    known = RhoBar("features known", "likelihood", -0.2, 0.5, 0.3, "were the features known")
    every = RhoBar("with the search", "BIC weights", -1.0, 1.0, 0.3, "with the search")
    narrow, both = picture(2, known), picture(2, known, every)
    assert narrow.shaded() == [(-0.2, 0.5)]
    assert all(one.shaded == ((-0.2, 0.5),) for one in narrow.scene().body.panels)
    assert "Grey, and the bar below: 95% interval of rho" in narrow.text().caption
    assert "nearly every" not in narrow.text().caption
    assert both.shaded() == []
    caption = both.text().caption
    assert "Grey" not in caption
    assert "The wider one covers nearly every rho: these data do not say which" in caption
    # A window is shaded outside, whatever is known.
    assert replace(both, window=(-0.4, 0.4)).shaded() == [(-0.9, -0.4), (0.4, 0.9)]


def test_where_the_best_set_holds_the_index_rho_is_that_of_all_features():
    source = np.random.default_rng(0)
    X = source.normal(size=(2_500, 6))
    index = X @ [1.0, -0.4, 0.4, 0.3, -0.3, 0.3]
    u = source.normal(size=2_500)
    outcome = 1.0 - (index - X[:, 0]) - 0.7 * u + 0.7 * source.normal(size=2_500)
    y = np.where(index + 0.3 + u > 0.0, outcome, np.nan)
    evidence = evidence_of(HeckmanAverage().fit(pd.DataFrame(X, columns=[*"abcdef"]), y).fit_)
    assert evidence.best.index
    # The features of the best set alone, without its index, would turn the sign of rho.
    assert evidence.fit.moments.solve(evidence.best.mask).rho > 0.0
    drawn = over_rho_of(evidence, None)
    assert drawn.rho_hat == pytest.approx(-np.sqrt(0.5), abs=0.15)
    assert len(drawn.features) == 6
    assert [bar.low < drawn.rho_hat < bar.high for bar in drawn.bars] == [True, True]
