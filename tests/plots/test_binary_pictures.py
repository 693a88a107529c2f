"""Pictures of a binary outcome: probabilities, percentage points, and what does not exist."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import heckmanfa.plots
from heckmanfa import HeckmanProbit, HeckmanProbitBestSubset
from heckmanfa.errors import HeckmanfaError, InputError, InputTypeError


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(4)
    n = 400
    w, e = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]], n).T
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["age", "city", "kids"])
    chosen = 0.4 + 0.4 * X["age"] + 0.8 * X["kids"] + w > 0
    yes = 0.7 * X["age"] - 0.5 * X["city"] + e > 0
    y = pd.Series(np.where(yes, "a & b", "<c>"), dtype=object, name="default").where(chosen)
    model = HeckmanProbit(["age", "city"], ["age", "city", "kids"]).fit(X, y)
    return model, X, y, model.pictures(X, y)


def test_average_slopes_over_rho_are_those_of_the_model_and_of_the_naive_probit(fitted):
    model, _, _, pictures = fitted
    fit, found = model.fit_, model.fit_.details
    panels = {panel.feature: panel for panel in pictures.over_rho.panels}
    panel, column = panels["age"], 0
    at_hat = 100 * fit.coef[column] * found.mean_slope
    assert panel.at_hat.estimate == pytest.approx(at_hat, rel=1e-4)
    slope = found.naive_mean_slope
    coef = found.naive_coef[1 + column]
    assert panel.at(0.0).estimate == pytest.approx(100 * coef * slope, rel=1e-6)
    gradient = coef * found.naive_mean_slope_gradient
    gradient[1 + column] += slope
    reach = 195.9963984540054 * np.sqrt(gradient @ found.naive_covariance @ gradient)
    assert panel.at(0.0).high - panel.at(0.0).estimate == pytest.approx(reach, rel=1e-5)
    words = pictures.over_rho.text()
    assert "percentage points" in words.caption
    assert "naive probit (rho = 0)" in [item.label for item in words.legend]
    assert "coefficient" not in words.caption + words.alt + words.table.caption


def test_calibration_is_of_the_probabilities_given_selection(fitted):
    model, X, y, pictures = fitted
    found = pictures.calibration
    seen = y.notna()
    chance = model.predict_proba(X[seen], kind="selected")[:, 1]
    outcome = (y[seen] == model.classes_[1]).to_numpy(dtype=float)
    assert found.brier == pytest.approx(np.mean((chance - outcome) ** 2), rel=1e-10)
    assert found.n_rows == seen.sum()
    assert "In sample" in found.text().caption
    for width in (540, 358):
        drawn = found.svg(width) + pictures.over_rho.svg(width)
        assert "<c>" not in drawn
        assert "a & b" not in drawn


def test_pictures_that_make_no_sense_are_refused_with_the_one_to_use(fitted):
    model, X, y, pictures = fitted
    assert pictures.residuals is None
    assert pictures.imr is None
    with pytest.raises(InputError, match=r"use plots\.calibration"):
        heckmanfa.plots.residuals(model, X, y)
    with pytest.raises(InputError, match=r"use plots\.over_rho"):
        heckmanfa.plots.imr_estimates(model, X, y)
    with pytest.raises(InputError, match="'over_rho'"):
        heckmanfa.plots.over_rho(model)
    for searched, named in (
        (heckmanfa.plots.chances, r"Fit HeckmanProbitAverage or HeckmanProbitBestSubset\."),
        (heckmanfa.plots.specification_curve, "fit HeckmanProbitBestSubset$"),
    ):
        with pytest.raises(HeckmanfaError, match=named):
            searched(model)
    with pytest.raises(InputError, match="outcome"):
        heckmanfa.plots.assignment_path(model)
    axes = heckmanfa.plots.calibration(model, X, y)
    assert axes.get_xlabel() == "predicted probability"


def test_the_specification_curve_takes_no_rows(fitted):
    _, X, y, _ = fitted
    model = HeckmanProbitBestSubset(n_refits=2).fit(X, y)
    with pytest.raises(InputTypeError, match="needs no rows"):
        heckmanfa.plots.specification_curve(model, X, y)


def test_a_search_shows_the_rho_and_the_coefficients_of_its_refits(fitted):
    _, X, y, _ = fitted
    model = HeckmanProbitBestSubset(selection_features=["age", "city", "kids"]).fit(X, y)
    picture = model.pictures().rho
    result = model.fit_.search.result
    # Every assignment has the rho of the approximation, with the correction and without it.
    assert picture.is_approximate
    assert "approximation" in picture.text().caption
    axes = heckmanfa.plots.specification_curve(model, term="age")
    (drawn,) = (line for line in axes[0].lines if len(line.get_xdata()) > 2)
    held = result.masks[:, 0] & np.isfinite(result.values)
    np.testing.assert_allclose(
        np.asarray(drawn.get_ydata()), result.refits.coef[held, 0], rtol=1e-12
    )


def test_rows_by_their_probability_have_no_scale_of_lambda(fitted):
    _, _, _, pictures = fitted
    overlap = pictures.overlap
    text = overlap.text()
    assert "lambda" not in text.caption
    assert [column.title for column in text.table.columns][1:] == ["With an outcome", "Without"]
    assert {len(line) for line in text.table.rows} == {3}
    assert "lambda" not in overlap.svg(1000)
