"""The numbers of a Heckman probit's results, against formulas over rows and plain optimisation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats
from tests.results.shared import PREDICT, SELECT, earns_four, fitted

from heckmanfa import HeckmanProbit
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.model.probit_likelihood import average_slopes
from heckmanfa.results.effects import effects_of, naive_slopes, own_slopes
from heckmanfa.results.fit_facts import events_per_coefficient
from heckmanfa.results.fit_tests import rho_lr, rho_wald
from heckmanfa.results.side_by_side import side_by_side


@pytest.fixture(scope="module")
def rows():
    return earns_four()


@pytest.fixture(scope="module")
def model(rows):
    return fitted(HeckmanProbit(PREDICT, SELECT), *rows)


def numbers(series, columns):
    """Estimates and ends of intervals, a row for each column of X."""
    found = [series.of(column) for column in columns]
    return np.array([[one.estimate, one.low, one.high] for one in found])


def design(rows, columns):
    X, y = rows
    seen = y.notna().to_numpy()
    return np.column_stack([np.ones(seen.sum()), X.loc[seen, columns].to_numpy(float)]), seen


def probit_by_scipy(x, q):
    """A probit by a general optimiser, in scaled coordinates: its coefficients and height."""
    mean, scale = x[:, 1:].mean(axis=0), x[:, 1:].std(axis=0)
    z = np.column_stack([x[:, 0], (x[:, 1:] - mean) / scale])

    def loss(b):
        return -np.sum(stats.norm.logcdf(q * (z @ b)))

    found = optimize.minimize(loss, np.zeros(x.shape[1]), method="BFGS", options={"gtol": 1e-7})
    slopes = found.x[1:] / scale
    return np.append(found.x[0] - mean @ slopes, slopes), -found.fun


def test_effects_are_averages_over_the_rows_with_an_outcome(model, rows):
    x, _ = design(rows, PREDICT)
    found = effects_of(model.fit_)
    b = np.append(model.intercept_, model.coef_[:3])
    naive = model.fit_.details.naive_coef
    for series, coef in ((found.own, b), (found.least_squares, naive)):
        brute = [np.mean(stats.norm.pdf(x @ coef) * slope) for slope in coef[1:]]
        np.testing.assert_allclose(numbers(series, range(3))[:, 0], brute, rtol=1e-8)
        assert np.isnan(numbers(series, range(3, 6))).all()


def test_intervals_of_effects_follow_from_a_jacobian_by_differences(model, rows):
    x, _ = design(rows, PREDICT)
    fit = model.fit_

    def averages(coef):
        return np.mean(stats.norm.pdf(x @ coef)) * coef[1:]

    b = np.append(fit.intercept, fit.coef[:3])
    naive, by_naive = fit.details.naive_coef, fit.details.naive_covariance
    for coef, covariance, slopes in (
        (b, fit.covariance[:4, :4], own_slopes(fit)),
        (naive, by_naive, naive_slopes(fit)),
    ):
        steps = 1e-5 * np.diag(np.maximum(np.abs(coef), 1e-2))
        jacobian = np.column_stack(
            [(averages(coef + h) - averages(coef - h)) / (2.0 * h.sum()) for h in steps]
        )
        np.testing.assert_allclose(slopes[0], averages(coef), rtol=1e-8)
        np.testing.assert_allclose(slopes[1], jacobian @ covariance @ jacobian.T, rtol=1e-5)
    effect, covariance = own_slopes(fit)
    reach = stats.norm.ppf(0.975) * np.sqrt(np.diag(covariance))
    found = numbers(effects_of(fit).own, range(3))
    np.testing.assert_allclose(found[:, 1:], np.column_stack([effect - reach, effect + reach]))


def test_a_probit_without_slopes_has_no_effects():
    slopes, covariance = average_slopes(np.array([0.3]), np.eye(1), 0.4, np.array([-0.1]))
    assert slopes.shape == (0,)
    assert covariance.shape == (0, 0)


def test_the_naive_probit_and_the_ratio_are_those_of_a_general_optimiser(model, rows):
    x, seen = design(rows, PREDICT)
    X, y = rows
    q = 2.0 * y[seen].to_numpy() - 1.0
    coef, height = probit_by_scipy(x, q)
    beside = side_by_side(model.fit_)
    naive = beside.terms.set_index("term")["least_squares"]
    np.testing.assert_allclose(naive[["Intercept", *PREDICT]], coef, rtol=2e-4)
    z = np.column_stack([np.ones(len(X)), X[SELECT].to_numpy(float)])
    _, selection = probit_by_scipy(z, np.where(seen, 1.0, -1.0))
    ratio = rho_lr(model.fit_)
    expected = 2.0 * (model.log_likelihood_ - height - selection)
    assert ratio.statistic == pytest.approx(expected, abs=1e-5)
    assert ratio.p_value == pytest.approx(stats.chi2.sf(expected, 1), abs=1e-5)
    assert naive["log_likelihood"] == pytest.approx(height + selection, abs=1e-6)
    assert {*beside.terms["kind"]} <= {"prediction", "left out", "errors", "fit"}
    assert beside.terms.query("kind == 'errors'")["term"].tolist() == ["rho"]


def test_tidy_has_rho_alone_among_the_errors_on_the_scale_of_atanh(model):
    table = model.tidy()
    assert table["equation"].unique().tolist() == ["prediction", "selection", "errors"]
    (row,) = table[table["equation"] == "errors"].to_dict("records")
    estimate, error = model.fit_.atanh_rho
    assert row["term"] == "rho"
    assert row["estimate"] == model.rho_
    assert row["std_error"] == pytest.approx(error * (1.0 - model.rho_**2))
    assert row["statistic"] == pytest.approx(estimate / error)
    assert row["p_value"] == pytest.approx(2.0 * stats.norm.sf(abs(estimate / error)))
    ends = np.tanh(estimate + np.array([-1.0, 1.0]) * stats.norm.ppf(0.975) * error)
    assert [row["ci_low"], row["ci_high"]] == pytest.approx(ends.tolist())
    assert model.vcov().shape == (len(table), len(table))
    assert rho_wald(model.fit_).statistic == pytest.approx((estimate / error) ** 2)


def test_rho_can_be_tested_and_what_a_probit_lacks_is_refused(model):
    position = model.fit_.terms.index(("errors", "rho"))
    variance = model.fit_.covariance[position, position]
    assert model.wald_test("rho = 0").statistic == pytest.approx(model.rho_**2 / variance)
    assert model.wald_test("educ = 0, selection.kids5 = 0").df == 2
    for asked in ("imr = 0", "sigma = 1", "educ = 0, imr = 0"):
        with pytest.raises(InputError, match="nothing but rho links both equations"):
            model.wald_test(asked)
    with pytest.raises(UnknownFeatureError):
        model.wald_test("imr_of_mine = 0")


def test_a_feature_may_be_called_sigma(rows):
    X, y = rows
    named = X.rename(columns={"city": "sigma"})
    found = fitted(HeckmanProbit(["educ", "exper", "sigma"], SELECT), named, y)
    assert found.wald_test("sigma = 0").df == 1


def test_the_naive_probit_has_the_covariance_that_was_asked_for(rows):
    plain = fitted(HeckmanProbit(PREDICT, SELECT), *rows).fit_.details
    robust = fitted(HeckmanProbit(PREDICT, SELECT, cov_type="robust"), *rows).fit_.details
    np.testing.assert_allclose(plain.naive_coef, robust.naive_coef)
    assert not np.allclose(plain.naive_covariance, robust.naive_covariance)


def test_events_are_rows_of_the_rarer_class(model, rows):
    _, y = rows
    assert events_per_coefficient(model.fit_) == min((y == 1).sum(), (y == 0).sum()) / 3
