"""Pictures: what is drawn is what the reports hold."""

import sys

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from matplotlib import pyplot as plt

from heckmanfa import Heckman, plots
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError, MissingExtraError, UnknownFeatureError

SELECTION = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]


@pytest.fixture(scope="module")
def model():
    mroz = load_mroz()
    return Heckman(["educ", "exper", "expersq"]).fit(mroz[SELECTION], mroz["lwage"])


@pytest.fixture(scope="module")
def interval(model):
    return model.uncertainty_interval((-0.8, 0.5), n_grid=27)


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
        level = {line.get_ydata()[0] for line in panel.lines if line.get_linestyle() == ":"}
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
    with pytest.raises(UnknownFeatureError, match="Did you mean 'educ'"):
        interval.plot(["eduk"])
    with pytest.raises(InputError, match="terms is empty"):
        interval.plot([])
    with pytest.raises(InputError, match="3 coefficients are to be drawn, but axes has 1"):
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
