"""Averages over assignments, against every assignment fitted on its own by `Heckman`."""

import functools
import itertools
import pickle
import warnings

import numpy as np
import pytest
from scipy import optimize, stats
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from heckmanfa import Heckman, HeckmanAverage
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import (
    HeckmanfaWarning,
    InputError,
    NoExclusionWarning,
    NoFeasibleAssignmentError,
    NotIdentifiedError,
    NotSearchedError,
)

FEATURES = ["educ", "exper", "age", "kids5"]
MROZ = load_mroz()
X, Y = MROZ[FEATURES], MROZ["lwage"]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        yield


def each_assignment(**options):
    """Fit every assignment of the four features on its own."""
    for size in range(5):
        for chosen in itertools.combinations(FEATURES, size):
            yield chosen, Heckman(list(chosen), **options).fit(X, Y)


@pytest.fixture(scope="module")
def alone():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return list(each_assignment())


@functools.cache
def squares(model):
    rows = Y.notna().to_numpy()
    fitted = model.predict(X, kind="selected")[rows]
    return np.sum((Y[rows].to_numpy() - fitted) ** 2)


def criterion(model, kind):
    """Return a criterion from the residuals of a fitted model."""
    m, j = int(Y.notna().sum()), int(model.support_.sum())
    fit = m * np.log(squares(model) / m)
    if kind == "aic":
        return fit + 2 * (j + 2) * m / (m - j - 3)
    extra = 2 * np.log(len(list(itertools.combinations(range(4), j)))) if kind == "ebic" else 0
    return fit + (j + 2) * np.log(m) + extra


def weights(alone, kind):
    if kind == "mean":
        return (weights(alone, "aic") + weights(alone, "bic")) / 2
    values = np.array([criterion(model, kind) for _, model in alone])
    raw = np.exp(-(values - values.min()) / 2)
    return raw / raw.sum()


def test_check_estimator_passes_with_no_expected_failure():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(HeckmanAverage(), on_fail=None, on_skip=None)
    assert [one["check_name"] for one in results if one["status"] == "failed"] == []


@pytest.mark.parametrize("kind", ["aic", "bic", "ebic", "mean"])
def test_estimates_are_averages_of_all_assignments(alone, kind):
    w = weights(alone, kind)
    found = HeckmanAverage(kind).fit(X, Y)
    models = [model for _, model in alone]
    for name in ("coef_", "intercept_", "imr_coef_", "rho_", "sigma_", "adjusted_r2_"):
        expected = sum(share * getattr(model, name) for share, model in zip(w, models, strict=True))
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-9, atol=1e-12)
    assert np.isnan(found.aic_)
    assert np.isnan(found.bic_)
    assert abs(found.imr_coef_ - found.rho_ * found.sigma_) > 1e-4
    for target in ("marginal", "selected", "unselected"):
        expected = sum(
            share * model.predict(X, kind=target) for share, model in zip(w, models, strict=True)
        )
        np.testing.assert_allclose(found.predict(X, kind=target), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["aic", "bic"])
def test_inclusion_is_the_share_of_weight_and_roles_follow_bic(alone, kind):
    found = HeckmanAverage(kind).fit(X, Y)
    table = found.inclusion_.set_index("feature")
    own = weights(alone, kind)
    for name in FEATURES:
        for column in ("aic", "bic", "ebic"):
            held = [name in chosen for chosen, _ in alone]
            expected = weights(alone, column)[held].sum()
            assert table.loc[name, column] == pytest.approx(expected, abs=1e-10)
        signs = np.array([np.sign(model.coef_[FEATURES.index(name)]) for _, model in alone])
        assert table.loc[name, "positive"] == pytest.approx(own[signs > 0].sum(), abs=1e-10)
        assert table.loc[name, "negative"] == pytest.approx(own[signs < 0].sum(), abs=1e-10)
    for name, chance in table["bic"].items():
        role = table.loc[name, "role"]
        assert role == (
            "predicts"
            if chance >= 0.9
            else "no sign that it predicts"
            if chance < 0.1
            else "cannot be told"
        )
    np.testing.assert_array_equal(found.support_, table.loc[FEATURES, "bic"] >= 0.5)


def test_assignments_come_best_first_with_their_tests(alone):
    found = HeckmanAverage("bic").fit(X, Y).assignments_
    assert len(found) == 16
    assert found["weight"].sum() == pytest.approx(1.0)
    assert found["weight"].is_monotonic_decreasing
    by_set = {frozenset(chosen): model for chosen, model in alone}
    for row in found.head(12).to_dict("records"):
        model = by_set[frozenset(row["features"])]
        assert row["rho"] == pytest.approx(model.rho_, abs=1e-9)
        for kind in ("aic", "bic", "ebic"):
            assert row[kind] == pytest.approx(criterion(model, kind), abs=1e-7)
        imr = model.tidy().query("term == 'imr'").iloc[0]
        assert row["imr"] == pytest.approx(imr["estimate"], rel=1e-8)
        if abs(model.rho_) > 0.98:  # its variance is that of a smaller beta_H
            continue
        assert row["imr_statistic"] == pytest.approx(imr["statistic"], rel=1e-6)
        assert row["imr_p_value"] == pytest.approx(imr["p_value"], rel=1e-5)


def quantile(level, share, centres, errors):
    """A quantile of a mixture of normals and point masses, by bracketing."""

    def below(x):
        smooth = errors > 0
        jump = share[~smooth] @ (centres[~smooth] <= x)
        return share[smooth] @ stats.norm.cdf(x, centres[smooth], errors[smooth]) + jump - level

    if below(-1e-12) < 0 <= below(0.0) and (errors == 0).any():
        return 0.0
    return optimize.brentq(below, -50, 50, xtol=1e-12)


def test_intervals_are_quantiles_of_the_mixture(alone):
    found = HeckmanAverage().fit(X, Y).tidy().set_index(["equation", "term"])
    share = weights(alone, "aic")
    assert found.loc["prediction"]["p_value"].isna().all()
    assert found.loc["errors"]["p_value"].isna().all()
    tables = [model.tidy().set_index(["equation", "term"]) for _, model in alone]
    for term in [("prediction", name) for name in ("Intercept", *FEATURES)] + [("errors", "imr")]:
        centres = np.array([t["estimate"].get(term, 0.0) for t in tables])
        errors = np.array([t["std_error"].get(term, 0.0) for t in tables])
        # The assignments that carry 99% of the weight are used, so the last digits differ.
        order = np.argsort(-share)
        kept = order[: np.searchsorted(np.cumsum(share[order]), 0.99) + 1]
        part = share[kept] / share[kept].sum()
        for name, level in (("ci_low", 0.025), ("ci_high", 0.975)):
            expected = quantile(level, part, centres[kept], errors[kept])
            assert found.loc[term, name] == pytest.approx(expected, abs=1e-6 * errors.max())
    rho = found.loc[("errors", "rho")]
    assert -1 <= rho["ci_low"] < rho["estimate"] < rho["ci_high"] <= 1


def test_the_selection_equation_keeps_its_tests(alone):
    found = HeckmanAverage().fit(X, Y).tidy().query("equation == 'selection'")
    expected = alone[0][1].tidy().query("equation == 'selection'")
    for name in ("estimate", "std_error", "p_value", "ci_low"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-8)


@pytest.mark.parametrize("cov_type", ["robust", "cluster"])
def test_all_that_is_said_of_selection_has_one_covariance(cov_type):
    given = {} if cov_type == "robust" else {"groups": np.arange(len(Y)) % 60}
    average = HeckmanAverage(cov_type=cov_type).fit(X, Y, **given)
    alone = Heckman(["educ"], cov_type=cov_type).fit(X, Y, **given)
    found, expected = (
        one.wald_test("selection.age = 0, selection.kids5 = 0") for one in (average, alone)
    )
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-8)
    found, expected = (one.margins(X, kind="selection").tidy() for one in (average, alone))
    np.testing.assert_allclose(found["std_error"], expected["std_error"], rtol=1e-8)
    part = average.vcov().loc["selection", "selection"]
    np.testing.assert_allclose(part, alone.vcov().loc["selection", "selection"], rtol=1e-7)


def test_margins_are_averages_with_intervals_of_mixtures(alone):
    share = weights(alone, "aic")
    found = HeckmanAverage().fit(X, Y).margins(X).tidy().set_index(["target", "term"])
    tables = [
        model.margins(X, features=FEATURES).tidy().set_index(["target", "term"])
        for _, model in alone
    ]
    order = np.argsort(-share)
    kept = order[: np.searchsorted(np.cumsum(share[order]), 0.99) + 1]
    part = share[kept] / share[kept].sum()
    for at in [("marginal", "educ"), ("selected", "exper"), ("selected", "age")]:
        centres = np.array([t["estimate"].get(at, 0.0) for t in tables])
        errors = np.array([t["std_error"].get(at, 0.0) for t in tables])
        assert found.loc[at, "estimate"] == pytest.approx(share @ centres, rel=1e-8)
        low = quantile(0.025, part, centres[kept], errors[kept])
        assert found.loc[at, "ci_low"] == pytest.approx(low, abs=1e-6)
        assert np.isnan(found.loc[at, "p_value"])
    selection, first = found.loc["selection"], tables[0].loc["selection"]
    np.testing.assert_allclose(selection["estimate"], first["estimate"], rtol=1e-9)
    np.testing.assert_allclose(selection["p_value"], first["p_value"], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("target", ["marginal", "selected", "unselected"])
def test_predictions_have_intervals_of_mixtures(alone, target):
    share = weights(alone, "aic")
    rows = X.iloc[:4]
    model = HeckmanAverage().fit(X, Y)
    _, limits = model.predict(rows, kind=target, return_interval="confidence")
    found = [
        one.predict(rows, kind=target, return_interval="confidence", conf_level=0.95)
        for _, one in alone
    ]
    order = np.argsort(-share)
    kept = order[: np.searchsorted(np.cumsum(share[order]), 0.99) + 1]
    part = share[kept] / share[kept].sum()
    for row in range(4):
        centres = np.array([values[row] for values, _ in found])[kept]
        errors = np.array([(ends[row, 1] - ends[row, 0]) / 2 for _, ends in found])[kept]
        errors = errors / stats.norm.ppf(0.975)
        expected = quantile(0.025, part, centres, errors)
        assert limits[row, 0] == pytest.approx(expected, abs=1e-5)
    _, wide = model.predict(rows, kind=target, return_interval="prediction")
    assert (wide[:, 0] < limits[:, 0]).all()
    assert (wide[:, 1] > limits[:, 1]).all()


def test_new_outcomes_fall_into_prediction_intervals():
    data = make_selection(4000, 5, 2, random_state=3)
    model = HeckmanAverage().fit(data.X[:2000], data.y[:2000])
    seen = ~np.isnan(data.y[2000:])
    _, ends = model.predict(data.X[2000:], kind="selected", return_interval="prediction")
    y = data.y[2000:][seen]
    inside = np.mean((y > ends[seen, 0]) & (y < ends[seen, 1]))
    assert 0.93 < inside < 0.97


def test_maximum_likelihood_refits_the_heaviest_and_keeps_their_weights(alone):
    model = HeckmanAverage("bic", method="ml").fit(X, Y)
    share = weights(alone, "bic")
    heaviest = np.argsort(-share)[:3]
    refits = [Heckman(list(alone[i][0]), method="ml").fit(X, Y) for i in heaviest]
    part = share[heaviest] / share[heaviest].sum()
    for name in ("coef_", "rho_", "sigma_", "imr_coef_", "selection_coef_"):
        expected = sum(w * getattr(one, name) for w, one in zip(part, refits, strict=True))
        np.testing.assert_allclose(getattr(model, name), expected, rtol=1e-7, atol=1e-12)
    expected = sum(w * one.predict(X, "selected") for w, one in zip(part, refits, strict=True))
    np.testing.assert_allclose(model.predict(X, "selected"), expected, rtol=1e-9)
    expected = sum(w * one.predict_selection(X) for w, one in zip(part, refits, strict=True))
    np.testing.assert_allclose(model.predict_selection(X), expected, rtol=1e-9)
    assert model.margins(X).tidy()["p_value"].isna().all()
    table = model.tidy()
    assert (table["ci_low"] <= table["estimate"]).all()
    assert "3 heaviest assignments" in str(model.summary())


def test_groups_forced_features_and_windows():
    options = {"always": ["educ"], "never": ["age"], "feature_groups": [["exper", "kids5"]]}
    model = HeckmanAverage(**options).fit(X, Y)
    assert model.n_assignments_ == 2
    table = model.inclusion_.set_index("feature")
    assert table.loc["educ", "role"] == "always included"
    assert np.isnan(table.loc[[("exper", "kids5")], "positive"].iloc[0])
    assert model.coef_[2] == 0
    assert "age" in str(model.summary())
    window = HeckmanAverage(rho_range=(-0.3, 0.1)).fit(X, Y)
    assert window.assignments_["rho"].between(-0.3, 0.1).all()
    assert window.tidy().query("term == 'rho'")[["ci_low", "p_value"]].isna().all(axis=None)
    with pytest.raises(NoFeasibleAssignmentError, match=r"none of the 16 assignments evaluated"):
        HeckmanAverage(rho_range=(0.95, 0.99)).fit(X, Y)


def test_the_same_with_formulas_weights_and_copies():
    base = HeckmanAverage(cov_type="robust").fit(X, Y)
    terms = " + ".join(FEATURES)
    formula = HeckmanAverage.from_formula(f"lwage ~ {terms}", terms, MROZ, cov_type="robust")
    for other in (formula, clone(base).fit(X, Y), pickle.loads(pickle.dumps(base))):
        numbers = ["estimate", "std_error", "ci_low", "ci_high"]
        np.testing.assert_allclose(other.tidy()[numbers], base.tidy()[numbers], rtol=1e-10)
    twice = HeckmanAverage().fit(X, Y, sample_weight=np.full(len(Y), 2))
    stacked = HeckmanAverage().fit(np.tile(X, (2, 1)), np.tile(Y, 2))
    np.testing.assert_allclose(twice.coef_, stacked.coef_, rtol=1e-10)
    np.testing.assert_allclose(twice.tidy()["ci_low"], stacked.tidy()["ci_low"], rtol=1e-8)


def test_what_an_average_cannot_do_is_refused():
    model = HeckmanAverage().fit(X, Y)
    with pytest.raises(NotIdentifiedError, match="an average over assignments has no Wald test"):
        model.wald_test("educ = 0")
    assert model.wald_test("selection.kids5 = 0").p_value < 0.001
    with pytest.raises(InputError, match="weights"):
        HeckmanAverage("bicc").fit(X, Y)
    observed = HeckmanAverage().fit(X, MROZ["educ"] + MROZ["age"] % 7)
    with pytest.raises(NotSearchedError, match="nothing was averaged"):
        observed.inclusion_  # noqa: B018


def test_words_never_say_that_a_feature_does_not_predict():
    model = HeckmanAverage().fit(X, Y)
    printed = f"{model.summary()}\n{model.diagnostics()}\n{model.inclusion_.to_string()}"
    for words in ("does not predict", "is excluded", "excluded from", "excluded features"):
        assert words not in printed
    assert "no p-value of an average" in " ".join(printed.split())


@pytest.mark.parametrize(
    ("weights", "said"),
    [("aic", "cover about 90 to 95%"), ("bic", "93% of strong and 66% of weak coefficients")],
)
def test_the_stated_coverage_is_that_of_the_weights(weights, said):
    printed = " ".join(str(HeckmanAverage(weights).fit(X, Y).summary()).split())
    assert said in printed
    assert printed.count("95% intervals cover") == 1


def test_probable_features_that_all_select_warn():
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(3000, 2))
    u = rng.normal(size=3000)
    y = np.where(0.3 + Z @ [1.0, 0.8] + u > 0, Z @ [1.0, -1.0] + rng.normal(size=3000), np.nan)
    with pytest.warns(NoExclusionWarning, match="probably predicts"):
        HeckmanAverage().fit(Z, y)


def test_a_bootstrap_averages_in_every_replicate():
    model = HeckmanAverage().fit(X, Y)
    found = model.bootstrap(X, Y, n_boot=12, random_state=0)
    assert "Every replicate weighs all assignments again." in str(found)
    assert "chosen" not in str(found)
    table = found.tidy()
    row = table.query("equation == 'prediction' and term == 'educ'").iloc[0]
    assert row["percentile_low"] < model.coef_[0] < row["percentile_high"]
    assert row["chosen"] == 1.0


def test_reports_of_an_average_do_not_speak_of_a_search():
    boot = HeckmanAverage().fit(X, Y).bootstrap(X, Y, n_boot=3, random_state=0)
    printed = " ".join(str(boot).split())
    assert "weighs all assignments again" in printed
    assert "search" not in printed
    assert [one.key for one in boot.findings()] == ["bootstrap"]


def test_a_profile_of_an_average_is_about_the_features_that_probably_predict():
    given = ["age", "kids5", "exper", "educ"]
    model = HeckmanAverage("bic").fit(MROZ[given], Y)
    plain = Heckman(model.prediction_features_, method="ml").fit(MROZ[given], Y)
    found = model.profile(MROZ[given], Y, "educ")
    assert (found.term, len(found.maxima)) == ("educ", 1)
    np.testing.assert_allclose(found.estimate, plain.coef_[3], rtol=1e-6)
    assert "This report needs one set of features" in str(found)
    assert "This report needs one set of features" in str(model.profile_rho(MROZ[given], Y))
    with pytest.raises(InputError, match="'kids5' is not among them"):
        model.profile(MROZ[given], Y, "kids5")


def test_groups_are_named_by_their_term_in_words():
    data = MROZ.assign(level=MROZ["educ"].clip(10, 13))
    model = HeckmanAverage.from_formula("lwage ~ exper + C(level)", "exper + C(level) + age", data)
    assert "\nC(level) " in str(model.summary())
    assert model.inclusion_["feature"][1] == tuple(f"C(level)[T.{n}]" for n in (11, 12, 13))
    positions = HeckmanAverage().fit(X.to_numpy(), Y.to_numpy())
    assert "\nx0      " in str(positions.summary()).split("Chance that")[1]


def test_the_interval_of_sigma_is_positive():
    only = HeckmanAverage().fit(MROZ[["kids618"]], Y).tidy().set_index("term")
    assert only.loc["sigma", "ci_low"] >= 0.0


def test_maximum_likelihood_of_the_heaviest_assignment_is_guarded():
    rng = np.random.default_rng(7)
    Z = rng.normal(size=(1500, 4))
    u = rng.normal(size=1500)
    noise = 0.5 * u + np.exp(0.6 * Z[:, 0]) * rng.normal(size=1500)
    y = np.where(0.2 + Z @ [0.5, 0.5, 0.5, -0.5] + u > 0, Z[:, 0] - Z[:, 1] + noise, np.nan)
    model = HeckmanAverage("bic", method="ml").fit(Z, y)
    heaviest = Heckman(list(model.assignments_["features"][0]), method="ml").fit(Z, y)
    found, expected = model.diagnostics(), heaviest.diagnostics()
    assert found.hausman.p_value == pytest.approx(expected.hausman.p_value, rel=1e-6)
    assert found.equal_variance.p_value == pytest.approx(expected.equal_variance.p_value, rel=1e-6)
    assert found.equal_variance.p_value < 0.001
    assert "(in the heaviest assignment)" in str(found)
    assert "two-step" in str(model.summary())
