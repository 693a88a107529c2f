"""Pictures of rho and lambda: their numbers against plain least squares, and their words."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset, plots
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import AllObservedWarning, HeckmanfaWarning, NotIdentifiedError
from heckmanfa.inference import rho_pictures
from heckmanfa.inference.pictures import imr_estimates_of
from heckmanfa.inference.rho_pictures import over_rho_of, rho_by_assignment_of
from heckmanfa.plots.correction_pictures import RhoByAssignment, bins_of
from heckmanfa.results.evidence import StandInEvidence, evidence_of

FEW = ["educ", "exper", "age", "kids5", "city", "huswage"]
WIDTHS = (540, 358)
HOSTILE = ["<b>&\"'</b>", "\u202eevil\x1b[2J", "=1+1", "x" * 300, "$a_b$ {}", "-->]]>"]


def fitted(model, X, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return model.fit(X, y, **more)


@pytest.fixture(scope="module")
def mroz():
    frame = load_mroz()
    return frame[FEW], frame["lwage"]


@pytest.fixture(scope="module")
def average(mroz):
    return fitted(HeckmanAverage(cov_type="classical"), *mroz)


@pytest.fixture(scope="module")
def plain(mroz):
    """Every assignment of an average by BIC: its mask, weight and rho."""
    rows = fitted(HeckmanAverage("bic", cov_type="classical"), *mroz).assignments_
    masks = np.array([[name in features for name in FEW] for features in rows["features"]])
    weight, rho = rows["weight"].to_numpy(), rows["rho"].to_numpy()
    assert weight.sum() == pytest.approx(1.0)
    return SimpleNamespace(masks=masks, weight=weight, rho=rho)


def test_bins_hold_the_weight_of_all_assignments(average, plain):
    picture = average.pictures().rho
    assert picture.feature == ""
    for bin_ in picture.bins:
        inside = (plain.rho >= bin_.low) & (plain.rho < bin_.high)
        assert bin_.inside == pytest.approx(plain.weight[inside].sum(), abs=1e-6)
        assert bin_.outside == 0.0
    assert picture.weights == "BIC"


def test_a_stand_in_splits_the_bins_by_the_feature_that_tells_most_apart(average, plain):
    one = StandInEvidence("exper", (1,), 0.5, corrected_with=0.1, corrected_without=0.9)
    picture = rho_by_assignment_of(replace(evidence_of(average.fit_), stand_in=one))
    # The feature that explains most of the variance of rho.
    scores = []
    for column in range(len(FEW)):
        held = plain.masks[:, column]
        p = plain.weight[held].sum()
        means = [np.average(plain.rho[part], weights=plain.weight[part]) for part in (held, ~held)]
        scores.append(abs(means[0] - means[1]) * np.sqrt(p * (1 - p)))
    best = int(np.argmax(scores))
    assert picture.feature == FEW[best]
    held = plain.masks[:, best]
    assert picture.chance == pytest.approx(plain.weight[held].sum(), abs=1e-9)
    for bin_ in picture.bins:
        inside = (plain.rho >= bin_.low) & (plain.rho < bin_.high)
        assert bin_.inside == pytest.approx(plain.weight[inside & held].sum(), abs=1e-6)
        assert bin_.outside == pytest.approx(plain.weight[inside & ~held].sum(), abs=1e-6)
    for part, mean in ((held, picture.mean_inside), (~held, picture.mean_outside)):
        assert mean == pytest.approx(
            np.average(plain.rho[part], weights=plain.weight[part]), abs=1e-6
        )


def test_a_rho_beyond_one_and_at_an_edge_is_in_the_right_bin():
    rho = np.array([-1.2, -1.0, -0.3, 0.1, 0.15, 1.0, 1.01, 5.0])
    bins = bins_of(rho, np.full(8, 0.125), np.array([True] * 4 + [False] * 4))
    found = {bin_.words: (bin_.inside, bin_.outside) for bin_ in bins}
    assert found["below \N{MINUS SIGN}1"] == (0.125, 0.0)
    assert found["\N{MINUS SIGN}1.00 to \N{MINUS SIGN}0.95"] == (0.125, 0.0)
    assert found["\N{MINUS SIGN}0.30 to \N{MINUS SIGN}0.25"] == (0.125, 0.0)
    assert found["0.10 to 0.15"] == (0.125, 0.0)
    assert found["0.15 to 0.20"] == (0.0, 0.125)
    assert found["0.95 to 1.00"] == (0.0, 0.125)
    assert found["above 1"] == (0.0, 0.25)
    assert sum(bin_.inside + bin_.outside for bin_ in bins) == pytest.approx(1.0)
    assert [bin_.edges[0] for bin_ in bins] == pytest.approx(np.arange(-1.05, 1.01, 0.05))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("means", [(0.0, 0.01), (-0.6, 0.6), (0.62, 0.6), (-0.64, -0.63)])
def test_words_above_bars_never_overlap(means, width):
    rho = np.linspace(-0.64, 0.64, 8)
    bins = bins_of(rho, np.full(8, 0.125), np.arange(8) < 4)
    named = {"feature": "experience of a person", "chance": 0.5}
    split = dict(zip(("mean_inside", "mean_outside"), means, strict=True))
    picture = RhoByAssignment("wage", bins, "BIC", 8, 1.0, 0.0, **named, **split)
    root = ElementTree.fromstring(picture.svg(width))
    words = {
        item.text: float(item.get("x"))
        for item in root
        if item.get("class") == "tick" and item.get("y") in ("14", "30")
    }
    assert len(words) == 4
    halves = {text: 3.6 * len(text) for text in words}
    (first, left), (second, right) = sorted(
        ((text, at) for text, at in words.items() if text.startswith("with")),
        key=lambda pair: pair[1],
    )
    assert right - left >= halves[first] + halves[second]
    assert left - halves[first] >= 46 - 12
    assert right + halves[second] <= width
    assert first.startswith("without") == (means[1] < means[0])


def test_curves_are_the_moments_solved_at_each_rho(average, mroz):
    picture = average.pictures().over_rho
    best = evidence_of(average.fit_).best
    assert picture.features == best.names
    X, y = (np.asarray(part, dtype=float) for part in mroz)
    seen = np.isfinite(y)
    lam = average.inverse_mills(mroz[0])[seen]
    index = stats.norm.ppf(average.predict_selection(mroz[0]))[seen]
    design = np.column_stack([np.ones(seen.sum()), X[seen][:, best.mask]])
    m, j = seen.sum(), int(best.mask.sum())
    ols, c = (np.linalg.lstsq(design, target, rcond=None)[0] for target in (y[seen], lam))
    s2 = np.sum((y[seen] - design @ ols) ** 2) / (m - j - 1)
    shrinkage = (np.sum(index * lam) + lam @ design @ c) / (m - j)
    names = [FEW[column] for column in np.flatnonzero(best.mask)]
    for panel in picture.panels:
        place = 1 + names.index(panel.feature)
        assert panel.at(0.0).rho == 0.0
        assert panel.at(0.0).estimate == pytest.approx(ols[place], rel=1e-8)
        for point in panel.points:
            sigma = np.sqrt(s2 / (1 - shrinkage * point.rho**2))
            expected = ols[place] - point.rho * sigma * c[place]
            assert point.estimate == pytest.approx(expected, rel=1e-6)
            assert point.low < point.estimate < point.high
        turn = panel.sign_change
        if not math.isnan(turn):
            sigma = np.sqrt(s2 / (1 - shrinkage * turn**2))
            assert ols[place] - turn * sigma * c[place] == pytest.approx(0.0, abs=1e-9)
    own = Heckman(prediction_features=names).fit(*mroz)
    assert picture.rho_hat == pytest.approx(own.rho_)
    # The model's own intervals: those of uncertainty_interval.
    table = own.uncertainty_interval((-0.9, 0.9), n_grid=37).path()
    first = table[(table["term"] == "educ") & (table["rho"] == -0.9)].iloc[0]
    panel = next(panel for panel in picture.panels if panel.feature == "educ")
    assert panel.points[0].low == pytest.approx(first["ci_low"])
    assert panel.points[0].high == pytest.approx(first["ci_high"])


def test_bars_are_the_likelihood_profile_and_the_mixture(average, mroz):
    picture = average.pictures(*mroz).over_rho
    known, searched = picture.bars
    own = Heckman(prediction_features=list(picture.features), method="ml").fit(*mroz)
    profile = own.profile_rho(*mroz, grid=9)
    assert (known.low, known.high) == pytest.approx(profile.interval(), abs=1e-4)
    assert known.estimate == pytest.approx(own.rho_, abs=1e-6)
    row = average.tidy().set_index("term").loc["rho"]
    assert (searched.low, searched.high) == pytest.approx((row["ci_low"], row["ci_high"]))
    assert searched.estimate == pytest.approx(average.rho_)
    assert not picture.no_bars
    # Without rows there is no likelihood, and the best assignment holds no correction.
    without = average.pictures().over_rho
    assert [bar.how for bar in without.bars] == ["assignments by BIC weights"]


def test_a_slow_profile_and_one_without_a_maximum_are_not_shown(average, mroz, monkeypatch):
    profile_of = rho_pictures.profile_of

    def without_maximum(*args):
        return replace(profile_of(*args), rho_hat=math.nan)

    monkeypatch.setattr(rho_pictures, "profile_of", without_maximum)
    picture = average.pictures(*mroz).over_rho
    assert len(picture.bars) == 1
    assert "has no maximum inside" in picture.text().caption
    monkeypatch.setattr(rho_pictures, "_QUICK", 1e5)
    picture = average.pictures(*mroz).over_rho
    assert len(picture.bars) == 1
    assert "takes long" in picture.text().caption


def test_ways_of_lambda_are_those_that_hold_it(average, mroz):
    picture = average.pictures().imr
    found = {way.label: way for way in picture.estimates}
    # The best two assignments do not hold the correction.
    assert list(found) == ["averaged", "all features"]
    row = average.tidy().set_index("term").loc["imr"]
    assert found["averaged"].estimate == pytest.approx(average.imr_coef_)
    assert (found["averaged"].low, found["averaged"].high) == pytest.approx(
        (row["ci_low"], row["ci_high"])
    )
    always = fitted(HeckmanAverage(correction="always"), *mroz).pictures().imr
    assert [way.label for way in always.estimates][:2] == ["averaged", "best"]
    whole = fitted(Heckman(), *mroz).tidy().set_index("term").loc["imr"]
    assert found["all features"].estimate == pytest.approx(whole["estimate"])
    assert found["all features"].high == pytest.approx(whole["ci_high"])
    n = sum(way.low > 0 or way.high < 0 for way in picture.estimates)
    assert picture.n_found == n
    # It does not set the range, and runs on.
    options = {"all_features_share": 0.0, "cov_type": "classical"}
    narrow = fitted(HeckmanAverage("aic", **options), *mroz).pictures().imr
    assert narrow.ends[1] < found["all features"].high
    assert "arrow" in narrow.text().caption


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_a_model_without_a_search_stands_beside_the_other_method(mroz, method):
    names = ["educ", "exper"]
    model = Heckman(prediction_features=names, method=method).fit(*mroz)
    pictures = model.pictures(*mroz)
    assert pictures.rho is None
    first, second = pictures.imr.estimates
    for way, how in ((first, method), (second, {"ml": "two-step", "two-step": "ml"}[method])):
        own = Heckman(prediction_features=names, method=how).fit(*mroz).tidy()
        row = own.set_index("term").loc["imr"]
        expected = row[["estimate", "ci_low", "ci_high"]].to_list()
        assert [way.estimate, way.low, way.high] == pytest.approx(expected, rel=1e-5)
    (bar,) = pictures.over_rho.bars
    interval = model.profile_rho(*mroz, grid=9).interval()
    assert (bar.low, bar.high) == pytest.approx(interval, abs=1e-4)
    assert pictures.over_rho.rho_hat == model.rho_


def test_a_window_is_shaded_and_tests_nothing(mroz):
    model = fitted(HeckmanAverage(rho_range=(-0.3, 0.3)), *mroz)
    pictures = model.pictures(*mroz)
    rho, over_rho, imr = pictures.rho, pictures.over_rho, pictures.imr
    assert not rho.feature
    assert rho.bins[0].low >= -0.3
    assert rho.bins[-1].high <= 0.3
    assert rho.ends[0] < -0.3 < 0.3 < rho.ends[1]
    assert over_rho.bars == ()
    assert over_rho.shaded() == [(-0.9, -0.3), (0.3, 0.9)]
    assert all(math.isnan(way.low) and math.isnan(way.high) for way in imr.estimates)
    assert "at 5%" not in imr.text().caption
    for picture in (rho, over_rho, imr):
        assert "[\N{MINUS SIGN}0.3, 0.3]" in picture.text().caption


def test_honest_comes_first_and_robust_has_no_likelihood_interval(mroz):
    honest = fitted(HeckmanBestSubset(honest=True, n_splits=4, random_state=0), *mroz)
    first, *others = honest.pictures().imr.estimates
    assert first.label == "honest"
    assert first.estimate == pytest.approx(honest.imr_coef_)
    assert [way.label for way in others] == ["averaged", "all features"]
    robust = fitted(HeckmanBestSubset(cov_type="robust"), *mroz)
    pictures = robust.pictures(*mroz)
    assert pictures.over_rho.bars[0].how == "two-step"
    assert "classical" not in pictures.over_rho.text().caption
    assert "classical" in pictures.imr.text().caption


def test_a_second_maximum_is_marked():
    data = make_selection(600, 4, 2, rho=0.5, random_state=1)
    model = fitted(Heckman(prediction_features=[0, 1], method="ml"), data.X, data.y)
    fit = model.fit_
    for rho, in_view in ((0.7, True), (0.97, False)):
        changed = replace(fit, second_maximum=(-1.0, rho))
        picture = over_rho_of(evidence_of(changed), None)
        marked = [item.mark for item in picture.text().legend]
        assert ("hollow" in marked) == in_view
        assert ("hollow problem" in picture.svg(540)) == in_view


def test_without_selection_there_is_nothing_to_draw(mroz):
    X, y = mroz
    seen = y.notna()
    with pytest.warns(AllObservedWarning):
        model = Heckman().fit(X[seen], y[seen])
    pictures = model.pictures()
    assert (pictures.rho, pictures.over_rho, pictures.imr) == (None, None, None)
    for draw in (plots.rho_by_assignment, plots.over_rho, plots.imr_estimates):
        with pytest.raises(NotIdentifiedError):
            draw(model)


def numbers_in(picture):
    """Every cell of the tables of a picture, and the titles of their columns."""
    tables = picture.text().tables
    cells = {cell for table in tables for row in table.rows for cell in row}
    return cells | {column.title for table in tables for column in table.columns}


def test_tables_hold_what_pictures_show(average, mroz):
    pictures = average.pictures(*mroz)
    cells = numbers_in(pictures.rho)
    for bin_ in pictures.rho.bins:
        if bin_.inside + bin_.outside > 0:
            words = pictures.rho.tooltip(bin_)
            assert bin_.words in cells
            assert set(re.findall(r"<?[\d.]+%", words)) <= cells
    cells = numbers_in(pictures.imr)
    for title in titles(pictures.imr.svg(540)):
        estimate, interval = re.match(r".*?: (\S+)\n95% interval (.*?)\n", title).groups()
        assert {estimate, interval} <= cells
    cells = " ".join(numbers_in(pictures.over_rho))
    for title in titles(pictures.over_rho.svg(540)):
        found = re.findall(r"\N{MINUS SIGN}?\d+\.\d+", title)
        assert found
        assert all(number in cells for number in found)


def titles(svg):
    """The tooltips of a drawing: all titles but its own."""
    root = ElementTree.fromstring(svg)
    return [element.text for element in root.iterfind(".//{*}g/{*}title")]


@pytest.mark.parametrize("searching", [True, False])
def test_hostile_names_stay_text(searching):
    data = make_selection(400, 6, 2, rho=0.5, random_state=0)
    X = pd.DataFrame(data.X, columns=HOSTILE)
    model = HeckmanAverage() if searching else Heckman(prediction_features=HOSTILE[1:5])
    pictures = fitted(model, X, data.y).pictures(X, data.y)
    for picture in (pictures.rho, pictures.over_rho, pictures.imr):
        if picture is None:
            continue
        text = picture.text()
        assert len(text.alt) <= 300
        for width in WIDTHS:
            root = ElementTree.fromstring(picture.svg(width))
            tags = {element.tag.split("}")[1] for element in root.iter()}
            known = {"svg", "g", "title", "rect", "line", "path", "circle", "text"}
            assert tags == {*(tags & known), "title", "desc", "style"}
            everything = picture.svg(width) + text.caption + text.alt
            assert "\x1b" not in everything
            assert "\u202e" not in everything
            assert root.get("width") == str(width)
        picture.draw()
        plt.close("all")


def test_functions_return_axes_that_show_the_numbers(average, mroz):
    picture = average.pictures().rho
    ax = plots.rho_by_assignment(average)
    heights = [patch.get_height() for patch in ax.patches]
    # Nothing stands in for lambda, so bars are not split.
    assert heights == [bin_.inside for bin_ in picture.bins if bin_.inside > 0]
    axes = plots.over_rho(average, *mroz)
    assert len(axes) == len(average.pictures().over_rho.panels)
    ax = plots.imr_estimates(average)
    _, given = plt.subplots()
    assert plots.imr_estimates(average, ax=given) is given
    assert len(ax.get_yticks()) == len(average.pictures().imr.estimates) == 2
    _, given = plt.subplots(1, len(axes))
    assert list(plots.over_rho(average, axes=given)) == list(given)
    plt.close("all")


def test_an_average_of_one_assignment_has_no_histogram(mroz):
    model = fitted(HeckmanAverage(always=FEW, correction="always"), *mroz)
    evidence = evidence_of(model.fit_)
    assert rho_by_assignment_of(evidence) is None
    assert [way.label for way in imr_estimates_of(evidence, None).estimates] == ["averaged"]
