"""The pictures of an answer as Matplotlib draws them: of which models, and nothing cut off."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset, plots
from heckmanfa.analysis import analyse
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputTypeError, NotIdentifiedError

FEATURES = ["educ", "exper", "age", "kids5", "nwifeinc"]
LONG = {name: f"the {name} of a person, in $US$ or years of a life" for name in FEATURES}
WITHOUT_ROWS = ("forest", "chances", "assignments", "rho_by_assignment")
WITH_ROWS = ("imr_estimates", "selection_margins", "profiles", "people", "overlap", "residuals")
NEED_A_SEARCH = ("chances", "assignments", "rho_by_assignment")


@pytest.fixture(scope="module")
def rows():
    table = load_mroz()
    return table[FEATURES].rename(columns=LONG), table["lwage"].rename("log wage, $ per hour")


@pytest.fixture(scope="module")
def average(rows):
    return HeckmanAverage().fit(*rows)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def draw(name, model, rows, **ax):
    return getattr(plots, name)(model, *(rows if name in WITH_ROWS else ()), **ax)


def check_whole(axes):
    """Everything is on the page."""
    figure = axes[0].figure
    figure.canvas.draw()
    boxes = [panel.get_tightbbox() for panel in axes]
    boxes += [legend.get_window_extent() for legend in figure.legends]
    for box in boxes:
        assert figure.bbox.x0 <= box.x0 + 1
        assert box.x1 <= figure.bbox.x1 + 1
        assert figure.bbox.y0 <= box.y0 + 1
        assert box.y1 <= figure.bbox.y1 + 1


@pytest.mark.parametrize("name", WITHOUT_ROWS + WITH_ROWS)
def test_a_picture_of_long_names_fits_a_column(name, average, rows):
    panel = draw(name, average, rows)
    assert panel.figure.get_figwidth() == pytest.approx(3.4)
    check_whole([panel])
    _, given = plt.subplots()
    assert draw(name, average, rows, ax=given) is given
    with pytest.raises(InputTypeError, match="Matplotlib"):
        draw(name, average, rows, ax=3)


def test_titles_of_panels_are_cut_to_their_width(rows):
    model = HeckmanBestSubset(always=list(LONG.values())[:4]).fit(*rows)
    panels = plots.over_rho(model, *rows)
    assert len(panels) == 4
    check_whole(panels)
    _, given = plt.subplots(1, 4)
    assert np.all(plots.over_rho(model, *rows, axes=given) == given)


def test_a_model_without_a_search_says_which_pictures_need_one(rows):
    given = Heckman([LONG["educ"]]).fit(*rows)
    for name in WITHOUT_ROWS + WITH_ROWS:
        if name in NEED_A_SEARCH:
            with pytest.raises(NotIdentifiedError, match="nothing was searched"):
                draw(name, given, rows)
        else:
            assert draw(name, given, rows).has_data()


def test_an_analysis_brings_its_rows(rows):
    X, y = rows
    analysis = analyse(X.assign(**{y.name: y}), outcome=y.name)
    for name in WITHOUT_ROWS + WITH_ROWS:
        assert getattr(plots, name)(analysis).has_data()
    assert len(plots.over_rho(analysis)) > 0


def test_what_is_no_source_is_refused(average):
    with pytest.raises(InputTypeError, match="uncertainty_interval"):
        plots.uncertainty(average)
    with pytest.raises(InputTypeError, match="got a int"):
        plots.specification_curve(3)
    for name in WITHOUT_ROWS + WITH_ROWS:
        with pytest.raises(InputTypeError, match="Heckman"):
            getattr(plots, name)(3)
