"""Margins, profiles, uncertainty intervals and resampling of a binary outcome's model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.moved import moved

from heckmanfa import Heckman, HeckmanProbit
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import ConvergenceWarning, InputError, NotIdentifiedError
from heckmanfa.inference.margins import margins
from heckmanfa.inference.probabilities import predict_probability
from heckmanfa.model import likelihood

TARGETS = ("marginal", "selected", "unselected", "expected", "selection")
# A slope and a change from 0 to 1 have different gradients; each target has one of them checked.
_DIFFERENTIATED = {
    ("age", "marginal"),
    ("age", "selected"),
    ("city", "selected"),
    ("age", "unselected"),
    ("age", "expected"),
    ("city", "expected"),
    ("city", "selection"),
}


def _data(n=500, seed=11):
    rng = np.random.default_rng(seed)
    w, e = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], n).T
    X = pd.DataFrame(
        {"age": rng.normal(size=n), "city": rng.integers(0, 2, n), "kids": rng.normal(size=n)}
    ).astype(float)
    chosen = 0.3 + 0.4 * X["age"] - 0.5 * X["city"] + 0.8 * X["kids"] + w > 0
    yes = -0.2 + 0.7 * X["age"] + 0.6 * X["city"] + e > 0
    y = pd.Series(np.where(yes, "yes", "no"), dtype=object).where(chosen)
    return X, y


@pytest.fixture(scope="module")
def fitted():
    X, y = _data()
    return HeckmanProbit(["age", "city"], ["age", "city", "kids"]).fit(X, y), X, y


def _margins(fit, X, kind=TARGETS, at="average", **options):
    return margins(fit, X, kind, at, None, sample_weight=None, conf_level=0.95, **options)


def _probability(fit, X, target):
    if target != "selection":
        return predict_probability(fit, X, "joint" if target == "expected" else target)
    index = fit.selection_intercept + X.to_numpy() @ fit.selection_coef
    return stats.norm.cdf(index)


def _effect(fit, X, target, term):
    """Return the average effect of a feature by differences of probabilities alone."""
    if term == "city":
        ends = (X.assign(city=level) for level in (0.0, 1.0))
        before, after = (_probability(fit, rows, target) for rows in ends)
        return float(np.mean(after - before))
    step = 1e-5
    below, above = (
        _probability(fit, X.assign(**{term: X[term] + s}), target) for s in (-step, step)
    )
    return float(np.mean(above - below)) / (2.0 * step)


@pytest.mark.parametrize("target", TARGETS)
def test_margins_and_their_errors_are_those_of_differences_of_probabilities(fitted, target):
    model, X, _ = fitted
    fit, X = model.fit_, X.head(20)
    table = _margins(fit, X).tidy()
    table = table[table["target"] == target].set_index("term")
    for term in ("age", "city"):
        row, step = table.loc[term], 1e-4
        assert row["estimate"] == pytest.approx(_effect(fit, X, target, term), rel=1e-6, abs=1e-9)
        if (term, target) not in _DIFFERENTIATED:
            continue
        gradient = np.array(
            [
                _effect(moved(fit, own, step), X, target, term)
                - _effect(moved(fit, own, -step), X, target, term)
                for own in fit.terms
            ]
        ) / (2.0 * step)
        error = np.sqrt(gradient @ fit.covariance @ gradient)
        assert row["std_error"] == pytest.approx(error, rel=1e-4, abs=1e-8)


def test_margins_say_which_probability_they_are_about(fitted):
    model, X, _ = fitted
    words = str(_margins(model.fit_, X))
    for quantity in ("P(y = 'yes' | x)", "P(y = 'yes' | x, s = 1)", "P(y = 'yes' | x, s = 0)"):
        assert quantity in words
    assert "Effects expected: on P(y = 'yes', s = 1 | x)" in words
    assert "E[y" not in words
    means = _margins(model.fit_, X, "selected", "means").tidy()
    row = X.mean().to_frame().T
    theirs = _effect(model.fit_, row, "selected", "age")
    assert means.set_index("term").loc["age", "estimate"] == pytest.approx(theirs, rel=1e-6)


def test_probabilities_add_up_by_selection(fitted):
    model, X, _ = fitted
    fit = model.fit_
    inside, outside, joint, whole = (
        predict_probability(fit, X, kind)
        for kind in ("selected", "unselected", "joint", "marginal")
    )
    chosen = model.predict_selection(X)
    np.testing.assert_allclose(inside * chosen, joint, rtol=1e-10)
    np.testing.assert_allclose(joint + outside * (1.0 - chosen), whole, rtol=1e-10)


def test_intervals_of_probabilities_lie_inside_zero_and_one_around_the_estimate(fitted):
    model, X, _ = fitted
    far = X * 12.0
    for kind in ("marginal", "selected", "unselected", "joint"):
        values, limits = predict_probability(model.fit_, far, kind, "error", "confidence")
        assert np.all((limits[:, 0] <= values + 1e-12) & (values <= limits[:, 1] + 1e-12))
        assert limits.min() >= 0.0
        assert limits.max() <= 1.0
    with pytest.raises(InputError, match="meaning"):
        predict_probability(model.fit_, X, "marginal", "error", "prediction")


def test_the_interval_of_the_marginal_probability_is_that_of_the_index(fitted):
    model, X, _ = fitted
    fit = model.fit_
    design = np.column_stack([np.ones(len(X)), X[["age", "city"]]])
    error = np.sqrt(np.sum((design @ fit.covariance[:3, :3]) * design, axis=1))
    index = design @ np.array([fit.intercept, *fit.coef[:2]])
    _, limits = predict_probability(fit, X, "marginal", "error", "confidence")
    np.testing.assert_allclose(limits[:, 1], stats.norm.cdf(index + 1.959963984540054 * error))


def test_rows_that_lack_a_feature_have_no_probability_if_asked(fitted):
    model, X, _ = fitted
    rows = X.head(4).copy()
    rows.iloc[1, 2] = np.nan
    values, limits = predict_probability(model.fit_, rows, "selected", "nan", "confidence")
    assert np.isnan(values).tolist() == [False, True, False, False]
    assert np.isnan(limits[1]).all()
    assert np.isfinite(predict_probability(model.fit_, rows, "marginal", "nan")).all()


def test_the_profile_at_zero_is_that_of_two_separate_probits(fitted):
    model, X, y = fitted
    fit = model.fit_
    found = model.profile_rho(X, y, grid=[-0.6, 0.0, 0.6])
    at_zero = found.tidy().set_index("rho").loc[0.0, "log_likelihood"]
    assert at_zero == pytest.approx(fit.details.independent_log_likelihood, abs=1e-7)
    assert found.rho_hat == pytest.approx(fit.rho, abs=1e-7)
    assert found.height == pytest.approx(fit.log_likelihood, abs=1e-7)
    low, high = found.interval()
    assert low < fit.rho < high
    assert "two-step" not in str(found)


def test_a_coefficient_outside_its_likelihood_interval_is_rejected(fitted):
    model, X, y = fitted
    fit = model.fit_
    found = model.profile(X, y, "age", grid=5)
    low, high = found.interval()
    error = np.sqrt(fit.covariance[1, 1])
    assert found.estimate == pytest.approx(fit.coef[0], abs=1e-7)
    np.testing.assert_allclose([low, high], fit.coef[0] + np.array([-1.96, 1.96]) * error, rtol=0.1)
    ends = found.at(np.array([low, high]))
    np.testing.assert_allclose(2.0 * (found.height - ends), stats.chi2.ppf(0.95, 1), rtol=1e-5)
    assert found.naive_probit == pytest.approx(fit.details.naive_coef[1], abs=1e-7)


def _uncertainty(model, X, y, rho=(-0.3, 0.6)):
    return model.uncertainty_interval(X, y, rho, n_grid=31)


@pytest.fixture(scope="module")
def over_rho(fitted):
    return _uncertainty(*fitted)


def test_estimates_over_rho_pass_through_the_naive_probit_and_the_estimates(fitted, over_rho):
    fit, found = fitted[0].fit_, over_rho
    table = found.tidy()
    np.testing.assert_allclose(table["probit"], fit.details.naive_coef, rtol=1e-6)
    errors = found.curve.std_error(np.zeros(1))[0]
    np.testing.assert_allclose(errors, np.sqrt(np.diag(fit.details.naive_covariance)), rtol=1e-5)
    at_hat = found.curve.estimate(np.array([fit.rho]))[0]
    np.testing.assert_allclose(at_hat, [fit.intercept, *fit.coef[:2]], rtol=1e-4)
    assert (table["ui_low"] < table["bound_low"]).all()
    assert list(found.path().columns[:3]) == ["rho", "term", "estimate"]


def test_estimates_between_refits_are_those_of_a_refit_there(fitted, over_rho):
    model, X, y = fitted
    wide = over_rho
    rho = float(wide.tidy()["sign_change"].iloc[0])
    exact, at = _uncertainty(model, X, y, (rho, rho)), np.array([rho])
    np.testing.assert_allclose(
        wide.curve.estimate(at), exact.curve.estimate(at), rtol=2e-4, atol=2e-5
    )
    np.testing.assert_allclose(wide.curve.std_error(at), exact.curve.std_error(at), rtol=2e-3)
    assert exact.tidy()["bound_low"].iloc[0] == pytest.approx(0.0, abs=1e-4)


def test_assumptions_are_tested_by_fits_with_columns_added(fitted):
    model, X, y = fitted
    found = model.specification_tests(X, y)
    index = X["age"] * model.coef_[0] + X["city"] * model.coef_[1]
    more = X.assign(square=index**2, cube=index**3, age_index=index * X["age"])
    more["city_index"] = index * X["city"]
    for test, added in (
        (found.normality_prediction, ["square", "cube"]),
        (found.heteroskedasticity_prediction, ["age_index", "city_index"]),
    ):
        refit = HeckmanProbit(["age", "city", *added], ["age", "city", "kids"]).fit(more, y)
        ratio = 2.0 * (refit.log_likelihood_ - model.log_likelihood_)
        assert test.statistic == pytest.approx(ratio, abs=1e-5)
        assert test.df == 2
        assert test.p_value == pytest.approx(stats.chi2.sf(ratio, 2), rel=1e-4)
    assert found.tidy()["test"].tolist() == list(found.names)
    assert [finding.key for finding in found.findings()] == list(found.names)
    with pytest.raises(InputError, match="'reset'"):
        found["reset"]
    groups = np.arange(len(X)) % 50
    clustered = HeckmanProbit(["age", "city"], ["age", "city", "kids"], cov_type="cluster")
    same = clustered.fit(X, y, groups=groups).specification_tests(X, y)
    assert same.normality_prediction.statistic == pytest.approx(
        found.normality_prediction.statistic, abs=1e-6
    )


def test_tests_of_the_selection_equation_do_not_depend_on_the_outcome(fitted):
    model, X, y = fitted
    amount = pd.Series(np.random.default_rng(1).normal(size=len(X))).where(y.notna())
    linear = Heckman(["age", "city"], ["age", "city", "kids"]).fit(X, amount)
    ours, theirs = model.specification_tests(X, y), linear.specification_tests(X, amount)
    for name in ("normality_selection", "heteroskedasticity_selection"):
        assert ours[name].statistic == pytest.approx(theirs[name].statistic, rel=1e-9)


@pytest.fixture(scope="module")
def two_excluded():
    X, y = _data(400, seed=6)
    X["income"] = np.random.default_rng(7).normal(size=len(X))
    chosen = ["age", "city", "kids", "income"]
    return HeckmanProbit(["age", "city"], chosen).fit(X, y), X, y


def test_other_exclusions_are_refits_of_the_model(two_excluded):
    model, X, y = two_excluded
    found = model.what_if(X, y)
    table = found.tidy().set_index(["change", "feature"])
    for key, features in (
        (("put back", "income"), ["age", "city", "income"]),
        (("take out", "city"), ["age"]),
    ):
        refit = HeckmanProbit(features, model.selection_features_).fit(X, y).fit_
        assert table.loc[key, "rho"] == pytest.approx(refit.rho, abs=1e-6)
        assert table.loc[key, "bic"] == pytest.approx(refit.bic, rel=1e-9)
        assert table.loc[key, "rho_shift"] == pytest.approx(refit.rho - model.rho_, abs=1e-6)
    terms = found.coefficients()
    assert set(terms["term"]) == {"Intercept", "age", "city", "kids", "income", "rho"}
    assert "two-step" not in str(found).lower()


def test_refits_of_which_no_second_maximum_is_said_do_not_look_for_one(two_excluded, monkeypatch):
    model, X, y = two_excluded
    looked = []
    look = likelihood.higher_maxima
    monkeypatch.setattr(likelihood, "higher_maxima", lambda *a: looked.append(1) or look(*a))
    model.what_if(X, y)
    model.specification_tests(X, y)
    assert looked == []
    model.exclusion_test(X, y, ["income"])
    assert looked == [1]


def test_a_refit_whose_likelihood_levels_off_towards_the_boundary_is_refused():
    rng = np.random.default_rng(25)
    X, u = rng.normal(size=(120, 3)), rng.normal(size=120)
    e = -0.8 * u + 0.6 * rng.normal(size=120)
    y = np.where(X @ [0.5, 0.3, 0.8] + u > -0.3, X[:, :2] @ [0.7, -0.5] + e > -0.2, np.nan)
    with pytest.warns(ConvergenceWarning):
        model = HeckmanProbit([0, 1]).fit(X, y)
    with pytest.raises(NotIdentifiedError, match="likelihood"):
        model.what_if(X, y)


def test_exclusions_are_tested_by_the_likelihood_ratio_and_by_wald_if_that_is_not_valid(
    two_excluded,
):
    model, X, y = two_excluded
    found = model.exclusion_test(X, y, ["income"])
    refit = HeckmanProbit(["age", "city", "income"], model.selection_features_).fit(X, y)
    ratio = 2.0 * (refit.log_likelihood_ - model.log_likelihood_)
    row = found.tidy().iloc[0]
    assert row["statistic"] == pytest.approx(ratio, abs=1e-6)
    assert row["p_value"] == pytest.approx(stats.chi2.sf(ratio, 1), rel=1e-5)
    robust = HeckmanProbit(["age", "city"], model.selection_features_, cov_type="robust").fit(X, y)
    wald = robust.exclusion_test(X, y, ["income"])
    z = HeckmanProbit(["age", "city", "income"], model.selection_features_, cov_type="robust")
    line = z.fit(X, y).tidy().set_index(["equation", "term"]).loc[("prediction", "income")]
    assert wald.tidy()["statistic"].iloc[0] == pytest.approx(line["statistic"] ** 2, rel=1e-5)
    assert "likelihood ratio" not in str(wald)


def test_a_bootstrap_has_rho_alone_of_the_errors_and_counts_resamples_of_one_class(fitted):
    model, X, y = fitted
    fit = model.fit_
    found = model.bootstrap(X, y, n_boot=4, random_state=0)
    table = found.tidy()
    assert table.loc[table["equation"] == "errors", "term"].tolist() == ["rho"]
    assert table["estimate"].iloc[-1] == fit.rho
    assert found.replicates.estimates.shape == (4 - found.n_failed, 2 * 3 + 3)
    few = y.copy()
    few[(y == "yes") & (np.cumsum(y == "yes") > 5)] = "no"
    rare = HeckmanProbit(["age"], ["age", "kids"]).fit(X, few)
    found = rare.bootstrap(X, few, n_boot=10, random_state=2)
    assert found.n_failed > 0


def test_a_fit_without_selection_has_marginal_effects_alone():
    X, _ = _data(200)
    rng = np.random.default_rng(0)
    y = X["age"].to_numpy() + rng.normal(size=200) > 0
    with pytest.warns(match="outcome"):
        model = HeckmanProbit(["age", "city"], ["age", "city"]).fit(X, y)
    found = _margins(model.fit_, X, ("marginal", "selected", "selection"))
    assert set(found.tidy()["target"]) == {"marginal", "selected"}
    selected = predict_probability(model.fit_, X, "selected")
    np.testing.assert_array_equal(selected, predict_probability(model.fit_, X, "marginal"))
    np.testing.assert_array_equal(selected, predict_probability(model.fit_, X, "joint"))
    with pytest.raises(NotIdentifiedError, match="change"):
        _uncertainty(model, X, y)


def test_one_signature_serves_both_families():
    for name in ("uncertainty_interval", "what_if", "exclusion_test", "specification_tests"):
        assert getattr(HeckmanProbit, name) is getattr(Heckman, name)
    rows = make_selection(300, 3, 1, outcome_kind="binary", random_state=0)
    model = HeckmanProbit([0]).fit(rows.X, rows.y)
    for call in (model.uncertainty_interval, model.what_if, model.exclusion_test):
        with pytest.raises(InputError, match=r"needs the rows of the fit"):
            call()
    with pytest.raises(InputError, match=r"needs the rows of the fit"):
        model.uncertainty_interval((-0.3, 0.3))
    mroz = load_mroz()
    X, y = mroz[["educ", "exper", "age", "kids5"]], mroz["lwage"]
    plain = Heckman(["educ", "exper"]).fit(X, y)
    asked = (plain.uncertainty_interval(rho=(-0.2, 0.1), conf_level=0.9, n_grid=5),)
    asked += (plain.uncertainty_interval((-0.2, 0.1), 0.9, 5),)
    asked += (plain.uncertainty_interval(X, y, (-0.2, 0.1), 0.9, 5),)
    first, *others = (interval.path() for interval in asked)
    for other in others:
        assert other.equals(first)
    with pytest.raises(InputError):
        plain.uncertainty_interval(0.5)
