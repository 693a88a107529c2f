"""Both methods and the Heckman probit against R's sampleSelection, and Stata's heckman."""

import warnings

import numpy as np
import pytest

from heckmanfa import Heckman
from heckmanfa.errors import SecondMaximumWarning
from heckmanfa.estimators.heckman_probit import HeckmanProbit

CASES = ["mroz_greene", "mroz_wooldridge", "womenwk"]
RTOL = 1e-6


def fit(case, method):
    model = Heckman(case.prediction, case.selection, method=method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecondMaximumWarning)
        return model.fit(case.X, case.y)


def in_order_of_r(model, case, column):
    """A column of tidy() as R orders it: selection, outcome, errors; terms as the case has them."""
    table = model.tidy().set_index(["equation", "term"])[column]
    terms = [("selection", name) for name in ["Intercept", *case.selection]]
    terms += [("prediction", name) for name in ["Intercept", *case.prediction]]
    return table.loc[terms].to_numpy(), table


@pytest.mark.parametrize("name", CASES)
def test_two_step_estimates_and_standard_errors_equal_r(name, case, oracle):
    data, expected = case(name), oracle("r_sampleselection")[name]["2step"]
    model = fit(data, "two-step")
    estimates, table = in_order_of_r(model, data, "estimate")
    np.testing.assert_allclose(estimates, expected["estimate"][:-3], rtol=RTOL)
    imr, sigma, rho = expected["estimate"][-3:]
    assert table["errors"]["imr"] == pytest.approx(imr, rel=RTOL)
    assert model.sigma_ == pytest.approx(sigma, rel=RTOL)
    assert model.rho_ == pytest.approx(rho, rel=RTOL)
    errors, table = in_order_of_r(model, data, "std_error")
    np.testing.assert_allclose(errors, expected["se"][:-3], rtol=RTOL)
    assert table["errors"]["imr"] == pytest.approx(expected["se"][-3], rel=RTOL)
    assert np.isnan(table["errors"]["rho"])
    assert np.isnan(table["errors"]["sigma"])


@pytest.mark.parametrize("name", CASES)
def test_maximum_likelihood_estimates_and_standard_errors_equal_r(name, case, oracle):
    data, expected = case(name), oracle("r_sampleselection")[name]["ml"]
    model = fit(data, "ml")
    for column, wanted in (("estimate", "estimate"), ("std_error", "se")):
        values, table = in_order_of_r(model, data, column)
        values = [*values, table["errors"]["sigma"], table["errors"]["rho"]]
        np.testing.assert_allclose(values, expected[wanted], rtol=RTOL)


@pytest.mark.parametrize("method", ["two-step", "ml"])
@pytest.mark.parametrize("name", CASES)
def test_joint_covariance_equals_r(name, method, case, oracle):
    data = case(name)
    expected = oracle("r_sampleselection")[name]["2step" if method == "two-step" else "ml"]
    theirs = np.array(expected["vcov"], dtype=float)
    terms = [("selection", one) for one in ["Intercept", *data.selection]]
    terms += [("prediction", one) for one in ["Intercept", *data.prediction]]
    terms += (
        [("errors", "imr")] if method == "two-step" else [("errors", "sigma"), ("errors", "rho")]
    )
    ours = fit(data, method).vcov().loc[terms, terms].to_numpy()
    theirs = theirs[: len(terms), : len(terms)]
    known = ~np.isnan(theirs)  # R gives no covariance between the equations after two steps
    scale = np.sqrt(np.outer(np.diag(ours), np.diag(ours)))
    assert known.sum() > len(terms)
    # The ML covariance files were written before the last iterations that the coefficient files
    # had: on womenwk, R's own two outputs differ by 1.2e-6 in a standard error.
    atol = RTOL if method == "two-step" else 3e-6
    np.testing.assert_allclose((ours / scale)[known], (theirs / scale)[known], atol=atol, rtol=0)


@pytest.mark.parametrize("method", ["two-step", "ml"])
@pytest.mark.parametrize("name", CASES)
def test_predictions_equal_r(name, method, case, oracle):
    data = case(name)
    pred = oracle("r_sampleselection")[name]["2step" if method == "two-step" else "ml"]["pred"]
    model = fit(data, method)
    X = data.X.iloc[:: pred["every"]]
    ours = {
        "uncond": model.predict(X),
        "E[yo|ys=0]": model.predict(X, kind="unselected"),
        "E[yo|ys=1]": model.predict(X, kind="selected"),
        "prob": model.predict_selection(X),
        "link": model.predict_selection(X, scale="link"),
    }
    whole = np.array(pred["prob"], dtype=float) * np.array(pred["E[yo|ys=1]"], dtype=float)
    for values, theirs in [
        *((values, np.array(pred[column], dtype=float)) for column, values in ours.items()),
        (model.predict(X, kind="expected"), whole),
    ]:
        known = ~np.isnan(theirs)
        assert known.sum() > 10
        np.testing.assert_allclose(values[known], theirs[known], rtol=RTOL, atol=1e-7)


# Greene, Econometric Analysis; Stata's manual, [R] heckman, example 1; Wooldridge's via Stata.
PUBLISHED = {"mroz_greene": -1581.258, "womenwk": -5178.304, "mroz_wooldridge": -832.8851}


@pytest.mark.parametrize("name", PUBLISHED)
def test_log_likelihoods_equal_the_published_ones(name, case):
    assert fit(case(name), "ml").log_likelihood_ == pytest.approx(PUBLISHED[name], abs=6e-4)


STATA = {
    "heckman_oim": {},
    "heckman_robust": {"cov_type": "robust"},
    "heckman_cluster": {"cov_type": "cluster"},
    "heckman_pw": {"cov_type": "robust", "weight_kind": "sampling"},
    "heckman_pw_cluster": {"cov_type": "cluster", "weight_kind": "sampling"},
}


@pytest.mark.parametrize("name", STATA)
def test_maximum_likelihood_equals_stata(name, oracle, oracle_frame):
    data, expected = oracle_frame("stata18_rows.csv.gz"), oracle("stata18")[name]
    options = STATA[name]
    weight = data["w"] if "weight_kind" in options else None
    model = Heckman(["x1", "x2"], ["x1", "x2", "z3"], method="ml", **options)
    model.fit(
        data[["x1", "x2", "z3"]],
        data["yh"],
        selected=data["s"],
        sample_weight=weight,
        groups=data["g"] if options.get("cov_type") == "cluster" else None,
    )
    table = model.tidy().set_index(["equation", "term"])
    names = {"Intercept": "_cons", "x1": "x1", "x2": "x2", "z3": "z3"}
    for (equation, term), row in table.iterrows():
        if equation == "errors":
            continue
        b, se = ("b_", "se_") if equation == "prediction" else ("bs_", "ses_")
        assert row["estimate"] == pytest.approx(expected[b + names[term]], rel=RTOL)
        assert row["std_error"] == pytest.approx(expected[se + names[term]], rel=RTOL)
    errors = table.loc["errors"]
    assert errors["estimate"]["rho"] == pytest.approx(expected["rho"], rel=RTOL)
    assert errors["estimate"]["sigma"] == pytest.approx(expected["sigma"], rel=RTOL)
    assert errors["estimate"]["imr"] == pytest.approx(expected["lambda"], rel=RTOL)
    assert errors["std_error"]["imr"] == pytest.approx(expected["se_lambda"], rel=RTOL)
    assert errors["std_error"]["sigma"] == pytest.approx(
        expected["sigma"] * expected["se_lnsigma"], rel=RTOL
    )
    assert errors["std_error"]["rho"] == pytest.approx(
        (1 - expected["rho"] ** 2) * expected["se_athrho"], rel=RTOL
    )
    assert errors["statistic"]["rho"] == pytest.approx(
        expected["athrho"] / expected["se_athrho"], rel=RTOL
    )
    # Stata's log-likelihood has the weights as given; ours are rescaled to mean one.
    scale = 1.0 if weight is None else weight.mean()
    assert model.log_likelihood_ * scale == pytest.approx(expected["ll"], rel=RTOL)
    assert (model.n_obs_, model.n_selected_) == (expected["N"], expected["N_selected"])
    # As `estat ic` counts them: 3 and 4 coefficients, athrho and lnsigma.
    assert model.aic_ == pytest.approx(-2 * expected["ll"] / scale + 2 * 9, rel=RTOL)
    bic = -2 * expected["ll"] / scale + 9 * np.log(expected["N"])
    assert model.bic_ == pytest.approx(bic, rel=RTOL)


def test_the_second_maximum_of_greene_is_reported_with_both_log_likelihoods(case):
    data = case("mroz_greene")
    with pytest.warns(SecondMaximumWarning, match=r"-1581\.2577.*rho -0\.132.*-1479\.65.*0\.993"):
        model = Heckman(data.prediction, data.selection, method="ml").fit(data.X, data.y)
    assert model.rho_ == pytest.approx(-0.132, abs=5e-4)
    assert "-1479.65" in str(model.summary())


def test_womenwk_without_an_exclusion_restriction_has_a_rho_beyond_one(case):
    data = case("womenwk")
    both = ["education", "age"]
    with pytest.warns() as caught:
        model = Heckman(both, both).fit(data.X, data.y)
    said = [type(one.message).__name__ for one in caught]
    assert said == ["NoExclusionWarning", "RhoOutsideWarning"]
    assert model.rho_ == pytest.approx(1.278, abs=5e-4)
    diagnostics = model.diagnostics()
    # By statsmodels 0.15 (Probit, then OLS of lambda on both features among the selected).
    assert diagnostics.imr_r2 == pytest.approx(0.9815090962, abs=1e-9)
    assert diagnostics.imr_vif == pytest.approx(1 / (1 - 0.9815090962), rel=1e-6)
    assert diagnostics.rho_outside


BINARY = ["hp_mroz_manual", "hp_mroz_wooldridge", "hp_sim_pos"]
EQUATIONS = {"betaS": "selection", "outcome": "prediction", "errTerms": "errors"}


@pytest.mark.parametrize("name", BINARY)
def test_the_heckman_probit_equals_r(name, binary_case, oracle):
    data, expected = binary_case(name), oracle("heckman_probit")[name]
    model = HeckmanProbit(data.prediction, data.selection).fit(data.X, data.y)
    table = model.tidy().set_index(["equation", "term"])
    terms = {
        (EQUATIONS[equation], {"(Intercept)": "Intercept"}.get(term, term)): numbers
        for equation, rows in expected.items()
        if equation != "fit"
        for term, numbers in rows.items()
    }
    assert set(table.index) == set(terms)
    ours = table.loc[list(terms), ["estimate", "std_error"]].to_numpy()
    np.testing.assert_allclose(ours[:, 0], [one for one, _ in terms.values()], rtol=RTOL)
    np.testing.assert_allclose(ours[:, 1], [one for _, one in terms.values()], rtol=RTOL)
    assert model.rho_ == pytest.approx(expected["errTerms"]["rho"][0], rel=RTOL)
    assert model.log_likelihood_ == pytest.approx(expected["fit"]["logLik"][0], rel=1e-12)
    assert model.n_obs_ == expected["fit"]["nObs"][0]
    # As AIC() and BIC() of R's logLik.
    deviance, k, n = -2 * expected["fit"]["logLik"][0], len(terms), expected["fit"]["nObs"][0]
    assert model.aic_ == pytest.approx(deviance + 2 * k, rel=1e-12)
    assert model.bic_ == pytest.approx(deviance + k * np.log(n), rel=1e-12)
