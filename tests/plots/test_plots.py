"""Pictures: what is drawn is what the reports hold."""

import re
import sys
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from heckmanfa import Heckman, HeckmanBestSubset, HeckmanFA, plots
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import (
    AllObservedWarning,
    InputError,
    MissingExtraError,
    NotIdentifiedError,
    NotSearchedError,
    UnknownFeatureError,
)
from heckmanfa.inference.profile_likelihood import profile_rho
from heckmanfa.plots.svg import render_svg
from heckmanfa.plots.svg_shapes import NARROW, WIDE

SELECTION = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]
MANY = [*SELECTION, "city", "unem", "motheduc", "fatheduc", "huseduc", "husage", "huswage"]


@pytest.fixture(scope="module")
def model():
    mroz = load_mroz()
    return Heckman(["educ", "exper", "expersq"]).fit(mroz[SELECTION], mroz["lwage"])


@pytest.fixture(scope="module")
def interval(model):
    return model.uncertainty_interval((-0.8, 0.5), n_grid=27)


@pytest.fixture(scope="module")
def rows():
    mroz = load_mroz()
    return mroz[MANY], mroz["lwage"]


@pytest.fixture(scope="module")
def learned(rows):
    """Heckman-FA with a window that most of what it draws is outside of."""
    return HeckmanFA(
        criterion="bic",
        rho_range=(-0.4, -0.2),
        epochs=200,
        n_draws=400,
        record_path=20,
        random_state=0,
    ).fit(*rows)


@pytest.fixture(scope="module")
def best(rows):
    return HeckmanBestSubset(tolerance=4).fit(*rows)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def drawn(panel, marker):
    """Points of the lines with a marker."""
    return [line.get_xydata() for line in panel.lines if line.get_marker() == marker]


def test_every_coefficient_has_a_panel_with_the_numbers_of_the_path(interval):
    axes = interval.plot()
    assert isinstance(axes, np.ndarray)
    assert [panel.get_title() for panel in axes] == ["educ", "exper", "expersq"]
    table = interval.tidy().set_index("term")
    for panel in axes:
        term = panel.get_title()
        path = interval.path()
        path = path[path["term"] == term]
        (curve,) = [line for line in panel.lines if len(line.get_xdata()) == 27]
        np.testing.assert_array_equal(curve.get_xydata(), path[["rho", "estimate"]])
        (band,) = panel.collections
        edges = band.get_paths()[0].vertices
        for name in ("ci_low", "ci_high"):
            for point in path[["rho", name]].to_numpy():
                assert np.any(np.all(edges == point, axis=1))
        level = {line.get_ydata()[0] for line in panel.lines if line.get_linestyle() == "--"}
        assert level == {table.loc[term, "bound_low"], table.loc[term, "bound_high"]}
        np.testing.assert_array_equal(drawn(panel, "o"), [[[0.0, table.loc[term, "ols"]]]])
        assert panel.get_xlabel() == "rho"
        assert panel.get_ylabel() == "coefficient"
        assert panel.get_xlim() == (-0.8, 0.5)


def test_tipping_points_are_marked_where_they_are_inside_the_range(model, interval):
    table = interval.tidy().set_index("term")
    educ, exper, expersq = interval.plot()
    assert drawn(educ, "X") == drawn(educ, "D") == []
    for panel in (exper, expersq):
        row = table.loc[panel.get_title()]
        np.testing.assert_array_equal(drawn(panel, "X"), [[[row["sign_change"], 0.0]]])
        np.testing.assert_array_equal(drawn(panel, "D"), [[[row["significance_low"], 0.0]]])
    labels = [text.get_text() for text in exper.figure.legends[0].get_texts()]
    assert "95% confidence interval" in labels
    assert "sign changes" in labels
    _, narrow, _ = model.uncertainty_interval((0.1, 0.2)).plot()
    assert drawn(narrow, "X") == drawn(narrow, "D") == drawn(narrow, "o") == []


def test_terms_and_axes_may_be_chosen(interval):
    figure, axes = plt.subplots(1, 2)
    got = interval.plot(["Intercept", "exper"], axes=axes)
    assert list(got) == list(axes)
    assert [panel.get_title() for panel in axes] == ["Intercept", "exper"]
    assert axes[0].get_legend() is not None
    assert plt.get_fignums() == [figure.number]
    (single,) = interval.plot("exper", axes=plt.figure().gca())
    assert single.get_title() == "exper"
    four = plots.uncertainty(interval, ["Intercept", "educ", "exper", "expersq"])
    assert len(four) == len(four[0].figure.axes) == 4


def test_a_single_rho_is_drawn_as_a_point(model):
    interval = model.uncertainty_interval((0.3, 0.3))
    panel = interval.plot()[0]
    row = interval.path().set_index("term").loc["educ"]
    np.testing.assert_array_equal(drawn(panel, "s"), [[[0.3, row["estimate"]]]])
    panel.figure.canvas.draw()


def test_what_cannot_be_drawn_is_refused(interval):
    with pytest.raises(UnknownFeatureError, match="'educ'"):
        interval.plot(["eduk"])
    with pytest.raises(InputError, match="terms is empty"):
        interval.plot([])
    with pytest.raises(InputError, match="the picture needs 3 Axes; got 1"):
        interval.plot(axes=plt.figure().gca())


def test_matplotlib_is_asked_for_where_it_is_missing(interval, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'heckmanfa\[plots\]'"):
        interval.plot()


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_nothing_is_cut_off_or_overlaps(interval, count):
    axes = interval.plot(["Intercept", "educ", "exper", "expersq"][:count])
    figure = axes[0].figure
    figure.canvas.draw()
    page = figure.bbox
    boxes = [panel.get_tightbbox() for panel in axes]
    boxes.append(figure.legends[0].get_window_extent())
    for place, box in enumerate(boxes):
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
        assert not any(box.overlaps(other) for other in boxes[:place])


# A search. --------------------------------------------------------------------------------------


def sorted_candidates(model):
    table = model.candidates_
    name = model.criterion
    return table.sort_values(
        name, ascending=name != "adjusted_r2", kind="stable", ignore_index=True
    )


@pytest.mark.parametrize("name", ["learned", "best"])
def test_every_candidate_is_drawn_in_the_order_of_the_criterion(name, request):
    model = request.getfixturevalue(name)
    table = sorted_candidates(model).dropna(subset=[model.criterion])
    above, below = plots.specification_curve(model)
    for panel, column in ((above, model.criterion), (below, "rho")):
        for marker, rows in (("o", table[table["in_range"]]), ("x", table[~table["in_range"]])):
            points = [one for one in drawn(panel, marker) if len(one)]
            assert len(points) == (len(rows) > 0)
            if points:
                np.testing.assert_array_equal(points[0], np.c_[rows.index + 1, rows[column]])
        (chosen,) = drawn(panel, "D")
        (place,) = table.index[
            [set(one) == set(model.prediction_features_) for one in table["features"]]
        ]
        np.testing.assert_array_equal(chosen, [[place + 1, table[column][place]]])
    assert above.get_ylabel() == "BIC"
    assert below.get_ylabel() == "estimate of rho"
    count = f"{len(table):,}" if name == "learned" else f"{len(table)} of {model.n_assignments_:,}"
    assert below.get_xlabel() == f"{count} assignments, best first by BIC"


def test_the_window_of_rho_is_shaded(learned, best):
    _, below = plots.specification_curve(learned)
    (shade,) = below.collections
    ends = shade.get_paths()[0].get_extents().intervaly
    np.testing.assert_allclose(ends, (-0.4, -0.2))
    labels = [text.get_text() for text in below.figure.legends[0].get_texts()]
    assert labels == ["window of rho", "rho in the window", "rho outside it", "chosen"]
    _, below = plots.specification_curve(best)
    assert not below.collections
    labels = [text.get_text() for text in below.figure.legends[0].get_texts()]
    assert labels == ["an assignment", "chosen"]


def test_the_coefficient_of_a_feature_is_that_of_each_assignment(best, rows):
    X, y = rows
    table = sorted_candidates(best)
    above, _ = plots.specification_curve(best, term="huswage")
    points = np.concatenate([one for one in drawn(above, "o") if len(one)])
    holds = table["features"].map(lambda one: "huswage" in one)
    assert 0 < holds.sum() < len(table)
    np.testing.assert_array_equal(points[:, 0], table.index[holds] + 1)
    for place, value in points[[0, -1]]:
        fitted = Heckman(list(table["features"][int(place) - 1])).fit(X, y)
        assert value == pytest.approx(fitted.coef_[MANY.index("huswage")], rel=1e-7)
    assert above.get_title() == "huswage"
    assert above.get_ylabel() == "coefficient"


def test_features_without_names_go_by_position():
    data = make_selection(400, 4, 2, random_state=1)
    model = HeckmanBestSubset("adjusted_r2", tolerance=1.0).fit(data.X, data.y)
    feature = model.prediction_features_[0]
    by_place, by_label = (
        plots.specification_curve(model, term=term)[0] for term in (feature, f"x{feature}")
    )
    np.testing.assert_array_equal(drawn(by_place, "o")[0], drawn(by_label, "o")[0])
    best_first = drawn(plots.specification_curve(model)[0], "o")[0][:, 1]
    assert np.all(np.diff(best_first) <= 0)


def test_a_single_assignment_is_drawn(rows):
    model = HeckmanBestSubset(prediction_features=["educ"], always=["educ"]).fit(*rows)
    _, below = plots.specification_curve(model)
    assert below.get_xlabel() == "1 assignment, best first by BIC"
    below.figure.canvas.draw()
    inside = [one for one in below.get_xticks() if 0.5 <= one <= 1.5]
    assert inside == [1.0]


def test_many_candidates_are_saved_as_pixels(tmp_path):
    data = make_selection(300, 12, 3, random_state=0)
    model = HeckmanBestSubset("aic", tolerance=1e6).fit(data.X, data.y)
    assert len(model.candidates_) > 4000
    above, below = plots.specification_curve(model)
    for panel in (above, below):
        (dots,) = [line for line in panel.lines if len(line.get_xdata()) > 1]
        assert dots.get_rasterized()
    path = tmp_path / "many.pdf"
    above.figure.savefig(path)
    assert path.stat().st_size < 200_000


def test_there_is_no_curve_without_a_search(model, best, rows):
    with pytest.raises(NotSearchedError, match="Heckman"):
        plots.specification_curve(model)
    X, y = rows
    with pytest.warns(AllObservedWarning):
        nothing = HeckmanBestSubset().fit(X[y.notna()], y.dropna())
    with pytest.raises(NotSearchedError, match="nothing was searched"):
        plots.specification_curve(nothing)
    with pytest.raises(UnknownFeatureError, match="'exper'"):
        plots.specification_curve(best, term="expr")
    with pytest.raises(InputError, match="the picture needs 2 Axes; got 1"):
        plots.specification_curve(best, ax=plt.figure().gca())
    absent = [one for one in MANY if not any(one in row for row in best.candidates_["features"])]
    with pytest.raises(InputError, match=f"no assignment that was kept holds '{absent[0]}'"):
        plots.specification_curve(best, term=absent[0])


# The training. ----------------------------------------------------------------------------------


def test_the_path_is_that_of_the_training(learned):
    panel = plots.assignment_path(learned, top=5)
    path = learned.path_["inclusion_prob"]
    ranked = np.argsort(-path[-1], kind="stable")
    assert [text.get_text() for text in panel.texts] == [MANY[one] for one in ranked[:5]]
    named = [line for line in panel.lines if line.get_linewidth() > 1]
    others = [line for line in panel.lines if line.get_linewidth() < 1]
    assert (len(named), len(others)) == (5, len(MANY) - 5)
    for line, one in zip(named + others, [*ranked[:5], *ranked[5:]], strict=True):
        np.testing.assert_array_equal(line.get_xdata(), learned.path_["epoch"])
        np.testing.assert_array_equal(line.get_ydata(), path[:, one])
    looks = {(line.get_color(), line.get_linestyle()) for line in named}
    assert len(looks) == 5
    (text,) = panel.figure.legends[0].get_texts()
    assert text.get_text() == "9 other features"


@pytest.mark.parametrize("top", [1, 8, 99])
def test_names_at_the_ends_of_lines_do_not_overlap(learned, top):
    panel = plots.assignment_path(learned, top=top)
    panel.figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in panel.texts), key=lambda box: box.y0)
    assert len(boxes) == min(top, len(MANY))
    for lower, upper in pairwise(boxes):
        assert upper.y0 >= lower.y1 - 0.5
    # In the order of the lines, so that leaders do not cross.
    (leaders,) = panel.collections
    ends, places = np.array([one[:, 1] for one in leaders.get_segments()]).T
    assert places.tolist() == [text.get_position()[1] for text in panel.texts]
    last = learned.path_["inclusion_prob"][-1]
    assert ends.tolist() == [last[MANY.index(text.get_text())] for text in panel.texts]
    assert np.all(np.diff(ends) <= 0)
    assert np.all(np.diff(places) < 0)


def test_a_path_that_was_not_recorded_is_asked_for(rows, model, best):
    quick = {"epochs": 5, "n_draws": 20, "random_state": 0}
    with pytest.raises(InputError, match="fit with record_path=40"):
        plots.assignment_path(HeckmanFA(**quick).fit(*rows))
    with pytest.raises(InputError, match="extraction='correlation' trains nothing"):
        plots.assignment_path(HeckmanFA("correlation", record_path=1, **quick).fit(*rows))
    with pytest.raises(InputError, match=r"HeckmanBestSubset trains nothing.*record_path=40"):
        plots.assignment_path(best)
    once = HeckmanFA(record_path=5, **quick).fit(*rows)
    plots.assignment_path(once).figure.canvas.draw()
    with pytest.raises(InputError, match="top must be an integer of at least 1; got 0"):
        plots.assignment_path(once, top=0)


# Coefficients. ----------------------------------------------------------------------------------


def test_dots_and_whiskers_are_the_estimates_and_intervals(model, best):
    models = {"three": model, "best": best}
    panel = plots.coefficients(models, conf_level=0.9)
    lines = [line for line in panel.lines if len(line.get_xdata()) == 2]
    terms = [label.get_text() for label in panel.get_yticklabels()]
    assert terms == list(dict.fromkeys(["educ", "exper", "expersq", *best.prediction_features_]))
    for marker, one in zip("os", models.values(), strict=True):
        table = one.tidy(0.9).query("equation == 'prediction' and term != 'Intercept'")
        points = np.concatenate(drawn(panel, marker))
        table = table.set_index("term").loc[[terms[round(y)] for y in points[:, 1]]]
        assert len(table) == len(one.prediction_features_)
        np.testing.assert_array_equal(points[:, 0], table["estimate"])
        for (_, y), ends in zip(points, table[["ci_low", "ci_high"]].to_numpy(), strict=True):
            (whisker,) = [line for line in lines if np.all(line.get_ydata() == y)]
            np.testing.assert_array_equal(whisker.get_xdata(), ends)
    labels = [text.get_text() for text in panel.figure.legends[0].get_texts()]
    assert labels == ["three", "best"]
    assert panel.get_xlabel() == "coefficient, with 90% interval"


def test_models_and_terms_may_be_chosen(model, best):
    single = plots.coefficients(model)
    assert not single.figure.legends
    panel = plots.coefficients([model, best, model], terms=["Intercept", "educ"])
    labels = [text.get_text() for text in panel.figure.legends[0].get_texts()]
    assert labels == ["Heckman (1)", "HeckmanBestSubset", "Heckman (3)"]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["Intercept", "educ"]
    axes = plt.figure().gca()
    assert plots.coefficients([model, best], ax=axes) is axes
    assert axes.get_legend() is not None
    with pytest.raises(UnknownFeatureError, match="'educ'"):
        plots.coefficients(model, terms=["eduk"])
    with pytest.raises(InputError, match="terms is empty"):
        plots.coefficients(model, terms=[])
    with pytest.raises(InputError, match="models is empty"):
        plots.coefficients({})
    with pytest.raises(InputError, match="'one'"):
        plots.coefficients({"one": 1})


# Overlap. ---------------------------------------------------------------------------------------


def outlines(panel):
    """The histograms in fitting and in prediction."""
    return [line.get_xydata() for line in panel.lines if len(line.get_xdata()) > 2]


def check_outline(points, values, weights=None):
    edges = np.unique(points[:, 0])
    values = np.minimum(values, edges[-1])
    heights, _ = np.histogram(values, edges, weights=weights, density=True)
    np.testing.assert_allclose(points[1:-1:2, 1], heights)
    np.testing.assert_allclose(points[2:-1:2, 1], heights)


def test_the_ratio_in_fitting_is_set_against_that_in_prediction(model):
    mroz = load_mroz()
    X, y = mroz[SELECTION], mroz["lwage"]
    panel = plots.imr_overlap(model, X, y)
    ratio, worked = model.inverse_mills(X), y.notna().to_numpy()
    (shade,) = panel.patches
    ends = shade.get_extents().transformed(panel.transData.inverted()).intervalx
    np.testing.assert_allclose(ends, [ratio[worked].min(), ratio[worked].max()])
    np.testing.assert_allclose(ends, model.diagnostics().imr_range)
    for outline, values in zip(outlines(panel), (ratio[worked], ratio), strict=True):
        check_outline(outline, values)
    fitting, prediction, _ = (text.get_text() for text in panel.figure.legends[0].get_texts())
    share = model.diagnostics(X).share_outside
    assert fitting == "fitting: 428 selected rows"
    assert prediction == f"prediction: 753 rows, {100 * share:.2g}% outside"
    assert 0 < share < 0.1


def test_rows_to_predict_may_be_others(model):
    mroz = load_mroz()
    X, y = mroz[SELECTION], mroz["lwage"]
    new = X.iloc[:100].assign(age=90.0)
    panel = plots.imr_overlap(model, X, y, new)
    prediction = panel.figure.legends[0].get_texts()[1].get_text()
    share = model.diagnostics(new).share_outside
    assert share > 0.3
    assert prediction == f"prediction: 100 rows, {100 * share:.2g}% outside"
    assert "in the last bin" in panel.get_xlabel()
    least = model.diagnostics().imr_range[0]
    inside = X[y.notna()].iloc[:50]
    assert model.diagnostics(inside).share_outside == 0
    panel = plots.imr_overlap(model, X, y, inside)
    assert panel.get_xlabel() == "inverse Mills ratio"
    assert panel.get_xlim()[0] < least


def test_a_model_from_formulas_needs_its_frame_alone():
    mroz = load_mroz()
    mroz.loc[:9, "age"] = np.nan
    fitted = Heckman.from_formula("log(wage) ~ educ + exper", "lfp ~ educ + exper + age", mroz)
    panel = plots.imr_overlap(fitted, mroz)
    fitting, prediction, _ = (text.get_text() for text in panel.figure.legends[0].get_texts())
    assert fitting == "fitting: 418 selected rows"
    assert prediction.startswith("prediction: 743 rows, ")


def test_weighted_rows_weigh_in_the_histogram(model):
    mroz = load_mroz()
    X, y = mroz[SELECTION], mroz["lwage"]
    weight = np.where(X["age"] > 45, 3.0, 1.0)
    heavy = Heckman(["educ", "exper", "expersq"]).fit(X, y, sample_weight=weight)
    panel = plots.imr_overlap(heavy, X, y, sample_weight=weight)
    worked = y.notna().to_numpy()
    check_outline(outlines(panel)[0], heavy.inverse_mills(X)[worked], weight[worked])
    with pytest.raises(InputError, match="sample_weight"):
        plots.imr_overlap(heavy, X, y)


# The likelihood over rho. -----------------------------------------------------------------------


def test_the_curve_is_the_profile(model):
    mroz = load_mroz()
    X, y = mroz[SELECTION], mroz["lwage"]
    profile = profile_rho(model, X, y)
    panel = plots.rho_profile(model, X, y)
    (curve,) = [line for line in panel.lines if len(line.get_xdata()) > 1000]
    rho, height = curve.get_xydata().T
    seen = height > panel.get_ylim()[0]
    np.testing.assert_allclose(height[seen], profile.at(rho)[seen])
    assert np.all(np.isnan(height[~seen]))
    inside = profile.log_likelihood > panel.get_ylim()[0] + 0.1
    np.testing.assert_allclose(
        np.interp(profile.rho[inside], rho, height), profile.log_likelihood[inside], atol=1e-3
    )
    (maximum,) = drawn(panel, "o")
    np.testing.assert_allclose(maximum, profile.maxima[["rho", "log_likelihood"]])
    (shade,) = panel.collections
    np.testing.assert_allclose(shade.get_paths()[0].get_extents().intervalx, profile.interval())
    _, two_step = [line for line in panel.lines if line.get_linestyle() == "--"]
    assert two_step.get_xdata()[0] == pytest.approx(model.rho_)
    labels = [text.get_text() for text in panel.figure.legends[0].get_texts()]
    assert labels == ["95% [\N{MINUS SIGN}0.287, 0.288]", "two-step 0.049", "ML 0.027"]


def test_every_maximum_is_marked(case):
    data = case("mroz_greene")
    fitted = Heckman(data.prediction, data.selection).fit(data.X, data.y)
    panel = plots.rho_profile(fitted, data.X, data.y, n_grid=31, conf_level=0.9)
    reported, other = drawn(panel, "o")
    np.testing.assert_allclose(reported, [[-0.13196, -1581.25768]], atol=1e-4)
    np.testing.assert_allclose(other, [[0.99308, -1479.65392]], atol=1e-4)
    low, high = panel.get_ylim()
    assert low < -1600 < -1479 < high
    labels = [text.get_text() for text in panel.figure.legends[0].get_texts()]
    assert "another maximum 0.993" in labels


def test_a_two_step_estimate_outside_is_an_arrow_at_the_edge(model):
    mroz = load_mroz()
    profile = profile_rho(model, mroz[SELECTION], mroz["lwage"], grid=9)
    for rho, marker in ((1.2, ">"), (-1.4, "<")):
        panel = replace(profile, two_step=rho).plot()
        assert drawn(panel, marker)[0][0, 0] == np.sign(rho)
    panel = replace(profile, no_interval="so").plot(ax=plt.figure().gca())
    assert not panel.collections


# All of them. -----------------------------------------------------------------------------------


def pictures(model, learned, best, rows):
    mroz = load_mroz()
    X, y = mroz[SELECTION], mroz["lwage"]
    return {
        "specification_curve": lambda **ax: plots.specification_curve(learned, **ax),
        "of a feature": lambda **ax: plots.specification_curve(best, term="educ", **ax),
        "assignment_path": lambda **ax: plots.assignment_path(learned, top=12, **ax),
        "coefficients": lambda **ax: plots.coefficients([model, learned, best], **ax),
        "imr_overlap": lambda **ax: plots.imr_overlap(model, X, y, X * 1.4, **ax),
        "rho_profile": lambda **ax: plots.rho_profile(model, X, y, n_grid=15, **ax),
    }


PICTURES = (
    *("specification_curve", "of a feature", "assignment_path"),
    *("coefficients", "imr_overlap", "rho_profile"),
)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_fits_a_column_with_nothing_cut_off(name, model, learned, best, rows):
    axes = np.atleast_1d(pictures(model, learned, best, rows)[name]())
    figure = axes[0].figure
    assert figure.get_figwidth() == pytest.approx(3.4)
    figure.canvas.draw()
    page = figure.bbox
    boxes = [panel.get_tightbbox() for panel in axes]
    boxes += [one.get_window_extent() for one in figure.legends]
    for place, box in enumerate(boxes):
        assert page.x0 <= box.x0 + 1 < box.x1 <= page.x1 + 1
        assert page.y0 <= box.y0 + 1 < box.y1 <= page.y1 + 1
        assert not any(box.overlaps(other) for other in boxes[:place])
    for panel in axes:
        assert panel.get_ylabel() or panel.get_yticklabels()
        sizes = {text.get_fontsize() for text in [panel.xaxis.label, *panel.get_xticklabels()]}
        assert sizes == {8.0}
    assert plt.rcParams["font.size"] == 10.0


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_drawn_on_axes_that_are_given(name, model, learned, best, rows):
    two = name in ("specification_curve", "of a feature")
    figure, axes = plt.subplots(2 if two else 1)
    got = pictures(model, learned, best, rows)[name](ax=axes)
    assert np.all(np.atleast_1d(got) == np.atleast_1d(axes))
    assert plt.get_fignums() == [figure.number]
    figure.canvas.draw()


@pytest.mark.parametrize("name", [*PICTURES, "uncertainty"])
def test_a_picture_is_a_scene_that_a_page_can_show(
    name, model, learned, best, rows, interval, monkeypatch
):
    scenes = []
    monkeypatch.setattr(
        "heckmanfa.plots.picture.draw_scene", lambda scene, ax: scenes.append(scene)
    )
    draw = {"uncertainty": interval.plot, **pictures(model, learned, best, rows)}[name]
    draw()
    (scene,) = scenes
    assert len(scene.text.alt) <= 300
    assert all(table.rows for table in scene.text.tables)
    for width in (WIDE, NARROW):
        drawing = render_svg(scene, width)
        assert not re.search(r"\b(nan|inf)\b", drawing)
        elements = list(ElementTree.fromstring(drawing).iter())
        colours = {word for item in elements for word in (item.get("class") or "").split()}
        assert {item.cls for item in scene.text.legend} <= colours
        places = [float(item.get("x")) for item in elements if item.tag.endswith("text")]
        assert 0 <= min(places) <= max(places) <= width


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_asks_for_matplotlib(name, model, learned, best, rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'heckmanfa\[plots\]'"):
        pictures(model, learned, best, rows)[name]()


def test_nothing_is_drawn_where_no_outcome_was_missing(rows):
    X, y = rows
    with pytest.warns(AllObservedWarning):
        fitted = Heckman(["educ"]).fit(X[y.notna()], y.dropna())
    with pytest.raises(NotIdentifiedError):
        plots.imr_overlap(fitted, X, y)
    with pytest.raises(NotIdentifiedError):
        plots.rho_profile(fitted, X, y)
