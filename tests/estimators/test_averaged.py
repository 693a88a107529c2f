"""Models that average over assignments; `tests/search` has the averages themselves."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset, HeckmanProbitAverage
from heckmanfa.datasets import load_mroz, make_selection
from heckmanfa.errors import (
    CollinearError,
    HeckmanfaWarning,
    InputError,
    NoExclusionWarning,
    NoFeasibleAssignmentError,
    NotIdentifiedError,
    NotSearchedError,
    TooFewRowsError,
)
from heckmanfa.results.judgement import judgement_of
from heckmanfa.text.chances import COVERAGE
from heckmanfa.text.wording import chance_text

FEATURES = ["educ", "exper", "age", "kids5"]
MROZ = load_mroz()
X, Y = MROZ[FEATURES], MROZ["lwage"]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        yield


def quantile(level, share, centres, errors):
    """A quantile of a mixture of normals and point masses, by bracketing."""

    def below(x):
        smooth = errors > 0
        jump = share[~smooth] @ (centres[~smooth] <= x)
        return share[smooth] @ stats.norm.cdf(x, centres[smooth], errors[smooth]) + jump - level

    if below(-1e-12) < 0 <= below(0.0) and (errors == 0).any():
        return 0.0
    return optimize.brentq(below, -50, 50, xtol=1e-12)


def each_assignment(model, *, intervals=False):
    """Weights, of averages or of intervals, estimates and covariance of every assignment."""
    outcome = model.fit_.average
    members = outcome.interval_members if intervals else outcome.members
    for i, weight in enumerate(members.weights):
        yield weight, members.estimates[i], members.covariance(i)


@pytest.mark.parametrize("kind", ["aic", "bic", "ebic", "mean"])
def test_estimates_are_averages_of_all_assignments(kind):
    model = HeckmanAverage(kind).fit(X, Y)
    members = model.fit_.average.members
    assert len(members.weights) == model.n_assignments_ == 64 - 2 * 5
    terms = model.tidy().set_index(["equation", "term"])["estimate"]
    np.testing.assert_allclose(terms, members.weights @ members.terms, rtol=1e-9, atol=1e-12)
    assert np.isnan(model.aic_)
    assert np.isnan(model.bic_)
    assert abs(model.imr_coef_ - model.rho_ * model.sigma_) > 1e-4
    index = model.selection_intercept_ + X.to_numpy() @ model.selection_coef_
    ratio = stats.norm.pdf(index) / stats.norm.cdf(index)
    mean = model.intercept_ + X.to_numpy() @ model.coef_
    np.testing.assert_allclose(model.predict(X), mean, rtol=1e-9)
    expected = mean + model.imr_coef_ * ratio
    np.testing.assert_allclose(model.predict(X, kind="selected"), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["aic", "bic"])
def test_inclusion_is_the_share_of_weight_and_roles_follow_bic(kind):
    model = HeckmanAverage(kind).fit(X, Y)
    table, rows = model.inclusion_.set_index("feature"), model.assignments_
    assert list(table.index) == [*FEATURES, "correction"]
    own, members = rows["weight"].to_numpy(), model.fit_.average.members
    for name in FEATURES:
        alone = rows["features"].map(lambda features, name=name: name in features).to_numpy()
        with_index = rows["index"].to_numpy() & ~alone
        assert table.loc[name, f"{kind}_alone"] == pytest.approx(own @ alone, abs=1e-10)
        assert table.loc[name, f"{kind}_index"] == pytest.approx(own @ with_index, abs=1e-10)
        assert table.loc[name, kind] == pytest.approx(own @ (alone | with_index), abs=1e-10)
        effect = members.estimates[:, 1 + FEATURES.index(name)]
        for sign, column in ((1, "positive"), (-1, "negative")):
            share = members.weights @ (sign * effect > 0)
            assert table.loc[name, column] == pytest.approx(share, abs=1e-10)
    held = own @ rows["correction"].to_numpy()
    assert table.loc["correction", kind] == pytest.approx(held, abs=1e-10)
    for name, chance in table["bic"].items():
        is_feature = name in FEATURES
        sure = "predicts" if is_feature else "selection mattered"
        none = "no sign that it predicts" if is_feature else "no sign that selection mattered"
        alone = table.loc[name, "bic_alone"]
        if chance >= 0.9:
            role = sure if alone >= 0.9 else "predicts, on its own or as it drives selection"
        elif chance < 0.1:
            role = none
        else:
            index = ": only as it drives selection" if alone < 0.1 else ""
            role = f"cannot be told{index}"
        assert table.loc[name, "role"] == role
    np.testing.assert_array_equal(model.support_, table.loc[FEATURES, "bic"] >= 0.5)


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_assignments_come_best_first_with_their_tests(method):
    model = HeckmanAverage("bic", method=method, cov_type="classical").fit(X, Y)
    found = model.assignments_
    assert len(found) == 54
    assert found["weight"].sum() == pytest.approx(1.0)
    assert found["weight"].is_monotonic_decreasing
    size = 1 + found["n_features"] + found["correction"] + found["index"]
    cost = found["bic"] - size * np.log(428)
    assert cost.min() > -1e-9
    everything = Heckman(method=method).fit(X, Y)
    whole = (found["n_features"] == 4) & found["correction"]
    row = found[whole].iloc[0]
    assert cost[whole].iloc[0] == pytest.approx(0.0, abs=1e-8)
    assert row["rho"] == pytest.approx(everything.rho_, rel=1e-8)
    term = {"two-step": "imr", "ml": "rho"}[method]
    statistic = everything.tidy().query("equation == 'errors'").set_index("term")["statistic"][term]
    assert row["imr_statistic"] == pytest.approx(statistic, rel=1e-6)
    without = found[~found["correction"]]
    assert (without["rho"] == 0.0).all()
    assert without["imr_p_value"].isna().all()
    # Each is close to the same features fitted on their own.
    for row in found[found["correction"] & ~found["index"]].head(5).to_dict("records"):
        alone = Heckman(list(row["features"]), method=method).fit(X, Y)
        assert row["imr"] == pytest.approx(alone.imr_coef_, abs=0.1)


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_intervals_are_quantiles_of_the_mixture(method):
    model = HeckmanAverage(method=method).fit(X, Y)
    found = model.tidy().set_index(["equation", "term"])
    assert found.loc["prediction"]["p_value"].isna().all()
    assert found.loc["errors"]["p_value"].isna().all()
    weight, estimates, covariances = (
        np.array(part) for part in zip(*each_assignment(model, intervals=True), strict=True)
    )
    # The model of all features has half of the weight, whatever it has as an assignment.
    np.testing.assert_allclose(weight[-1], 0.5)
    everything = Heckman(method=method).fit(X, Y)
    expected = [everything.intercept_, *everything.coef_]
    np.testing.assert_allclose(estimates[-1, :5], expected, rtol=1e-7)
    for place, term in enumerate(("Intercept", *FEATURES)):
        errors = np.sqrt(np.maximum(covariances[:, place, place], 0.0))
        errors[estimates[:, place] == 0.0] = 0.0
        chance = found.loc[("prediction", term), "chance"]
        held = np.ones(len(weight), dtype=bool)
        if chance >= 0.9:
            # What predicts has the interval over the assignments in which it does.
            held = estimates[:, place] != 0.0
        for name, level in (("ci_low", 0.025), ("ci_high", 0.975)):
            own = weight[held] / weight[held].sum()
            expected = quantile(level, own, estimates[held, place], errors[held])
            if chance < 0.9:
                # What does not surely predict has zero in its interval.
                expected = min(expected, 0.0) if name == "ci_low" else max(expected, 0.0)
            got = found.loc[("prediction", term), name]
            assert got == pytest.approx(expected, abs=1e-6 * errors.max())
    rho = found.loc[("errors", "rho")]
    assert -1 <= rho["ci_low"] < rho["estimate"] < rho["ci_high"] <= 1


def test_the_selection_equation_keeps_its_tests():
    found = HeckmanAverage().fit(X, Y).tidy().query("equation == 'selection'")
    alone = Heckman(["educ"], cov_type="robust").fit(X, Y)
    expected = alone.tidy().query("equation == 'selection'")
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


def test_margins_are_averages_with_intervals_of_mixtures():
    model = HeckmanAverage().fit(X, Y)
    found = model.margins(X).tidy().set_index(["target", "term"])
    shown = model.tidy().set_index(["equation", "term"])
    numbers = ["estimate", "std_error", "ci_low", "ci_high"]
    for name in FEATURES:
        # On E[y | x] the effect is the coefficient, by the same rule.
        own, same = (
            table.loc[at, numbers].to_numpy(dtype=float)
            for table, at in ((found, ("marginal", name)), (shown, ("prediction", name)))
        )
        np.testing.assert_allclose(own, same, rtol=1e-6, atol=1e-9)
        assert np.isnan(found.loc[("selected", name), "p_value"])
    index = model.selection_intercept_ + X.to_numpy() @ model.selection_coef_
    ratio = stats.norm.pdf(index) / stats.norm.cdf(index)
    slope = -np.mean(ratio * (ratio + index))
    expected = model.coef_ + model.imr_coef_ * slope * model.selection_coef_
    given = found.loc["selected"].loc[FEATURES, "estimate"]
    np.testing.assert_allclose(given, expected, rtol=1e-8)
    selection = found.loc["selection"]
    first = Heckman(["educ"], cov_type="robust").fit(X, Y).margins(X, kind="selection").tidy()
    np.testing.assert_allclose(selection["estimate"], first["estimate"], rtol=1e-9)
    np.testing.assert_allclose(selection["p_value"], first["p_value"], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("target", ["marginal", "selected", "unselected"])
def test_predictions_have_intervals_of_mixtures(target):
    rows = X.iloc[:6]
    model = HeckmanAverage().fit(X, Y)
    _, limits = model.predict(rows, kind=target, return_interval="confidence")
    design = np.column_stack([np.ones(6), rows])
    index = design @ np.append(model.selection_intercept_, model.selection_coef_)
    side = 1.0 if target == "selected" else -1.0
    ratio = side * stats.norm.pdf(index) / stats.norm.cdf(side * index)
    by_index = -ratio * (ratio + index)
    for row in range(6):
        centres, errors, share = [], [], []
        for weight, estimates, covariance in each_assignment(model, intervals=True):
            gradient = np.zeros(len(estimates))
            gradient[:5] = design[row]
            centre = design[row] @ estimates[:5]
            if target != "marginal":
                gradient[5:10] = estimates[10] * by_index[row] * design[row]
                gradient[10] = ratio[row]
                centre += estimates[10] * ratio[row]
            share.append(weight)
            centres.append(centre)
            errors.append(np.sqrt(gradient @ covariance @ gradient))
        parts = [np.array(part) for part in (share, centres, errors)]
        width = limits[row, 1] - limits[row, 0]
        for end, level in zip(limits[row], (0.025, 0.975), strict=True):
            # Assignments that agree on what is most in doubt are taken together.
            assert end == pytest.approx(quantile(level, *parts), abs=0.02 * width)
    _, wide = model.predict(rows, kind=target, return_interval="prediction")
    assert (wide[:, 0] < limits[:, 0]).all()
    assert (wide[:, 1] > limits[:, 1]).all()


@pytest.mark.parametrize("kind", ["marginal", "selected", "unselected"])
def test_probabilities_are_averages_over_assignments(kind):
    data = make_selection(600, 5, 2, outcome_kind="binary", random_state=0)
    model = HeckmanProbitAverage().fit(data.X, data.y)
    rows = data.X[:5]
    design = np.column_stack([np.ones(5), rows])
    expected = np.zeros(5)
    for weight, estimates, _ in each_assignment(model):
        mean, index = design @ estimates[:6], design @ estimates[6:12]
        rho = np.tanh(estimates[12])
        if kind == "marginal":
            expected += weight * stats.norm.cdf(mean)
            continue
        side = 1.0 if kind == "selected" else -1.0
        cov = [[1.0, side * rho], [side * rho, 1.0]]
        both = [
            stats.multivariate_normal.cdf([v, side * u], [0, 0], cov)
            for v, u in zip(mean, index, strict=True)
        ]
        expected += weight * np.array(both) / stats.norm.cdf(side * index)
    found, limits = model.predict_proba(rows, kind=kind, return_interval="confidence")
    np.testing.assert_allclose(found[:, 1], expected, atol=2e-3)
    assert np.all((limits[:, 0] < found[:, 1]) & (found[:, 1] < limits[:, 1]))
    logarithms = model.predict_log_proba(rows, kind=kind)
    np.testing.assert_allclose(np.exp(logarithms), found, rtol=1e-10)


def test_new_outcomes_fall_into_prediction_intervals():
    data = make_selection(4000, 5, 2, random_state=3)
    model = HeckmanAverage().fit(data.X[:2000], data.y[:2000])
    seen = ~np.isnan(data.y[2000:])
    _, ends = model.predict(data.X[2000:], kind="selected", return_interval="prediction")
    y = data.y[2000:][seen]
    inside = np.mean((y > ends[seen, 0]) & (y < ends[seen, 1]))
    assert 0.93 < inside < 0.97


def test_maximum_likelihood_moves_the_selection_equation():
    model = HeckmanAverage("bic", method="ml").fit(X, Y)
    everything = Heckman(method="ml").fit(X, Y)
    moved = model.selection_coef_ - everything.selection_coef_
    assert 0.0 < np.abs(moved).max() < 0.01
    probit = Heckman().fit(X, Y)
    steps = HeckmanAverage("bic").fit(X, Y)
    np.testing.assert_allclose(steps.selection_coef_, probit.selection_coef_, rtol=1e-10)
    expected = np.zeros(len(Y))
    for weight, estimates, _ in each_assignment(model):
        expected += weight * stats.norm.cdf(estimates[5] + X.to_numpy() @ estimates[6:10])
    np.testing.assert_allclose(model.predict_selection(X), expected, rtol=1e-6)
    assert model.margins(X).tidy()["p_value"].isna().all()
    table = model.tidy()
    assert (table["ci_low"] <= table["estimate"]).all()


def test_the_correction_may_be_held_or_left_out():
    always = HeckmanAverage(correction="always").fit(X, Y)
    assert always.assignments_["correction"].all()
    assert always.inclusion_["role"].iloc[-1] == "always included"
    never = HeckmanAverage(correction="never").fit(X, Y)
    assert not never.assignments_["correction"].any()
    assert never.imr_coef_ == never.rho_ == 0.0
    assert never.inclusion_["role"].iloc[-1] == "never included"
    np.testing.assert_allclose(never.predict(X), never.predict(X, kind="selected"))
    with pytest.raises(InputError, match="correction"):
        HeckmanAverage(correction="maybe").fit(X, Y)


def test_more_columns_than_a_third_of_the_rows_are_refused():
    rng = np.random.default_rng(0)
    Z = np.column_stack([X, rng.normal(size=(len(Y), 150))])
    with pytest.raises(TooFewRowsError, match=r"all 154 columns .* Name at most 142 in"):
        HeckmanAverage(selection_features=[0, 1, 2, 3]).fit(Z, Y)


def test_collinear_candidates_are_refused_or_dropped():
    twice = X.assign(again=X["educ"] * 2.0)
    given = {"selection_features": FEATURES}
    with pytest.raises(CollinearError, match="again"):
        HeckmanAverage(**given).fit(twice, Y)
    model = HeckmanAverage(on_collinear="drop", **given).fit(twice, Y)
    assert model.coef_[4] == 0.0
    np.testing.assert_allclose(model.coef_[:4], HeckmanAverage().fit(X, Y).coef_, rtol=1e-7)


def test_groups_forced_features_and_windows():
    options = {"always": ["educ"], "never": ["age"], "feature_groups": [["exper", "kids5"]]}
    model = HeckmanAverage(**options).fit(X, Y)
    assert model.n_assignments_ == 6
    table = model.inclusion_.set_index("feature")
    assert table.loc["educ", "role"] == "always included"
    assert np.isnan(table.loc[[("exper", "kids5")], "positive"].iloc[0])
    assert model.coef_[2] == 0
    assert "age" in str(model.summary())
    window = HeckmanAverage(rho_range=(-0.3, 0.1)).fit(X, Y)
    assert window.assignments_["rho"].between(-0.3, 0.1).all()
    assert window.tidy().query("term == 'rho'")[["ci_low", "p_value"]].isna().all(axis=None)
    with pytest.raises(NoFeasibleAssignmentError, match=r"-0\.999"):
        HeckmanAverage(rho_range=(-0.999, -0.998)).fit(X, Y)


def test_what_an_average_cannot_do_is_refused():
    model = HeckmanAverage().fit(X, Y)
    with pytest.raises(NotIdentifiedError, match=r"average.*Wald"):
        model.wald_test("educ = 0")
    assert model.wald_test("selection.kids5 = 0").p_value < 0.001
    with pytest.raises(InputError, match="weights"):
        HeckmanAverage("bicc").fit(X, Y)
    observed = HeckmanAverage().fit(X, MROZ["educ"] + MROZ["age"] % 7)
    with pytest.raises(NotSearchedError, match="averaged"):
        observed.inclusion_  # noqa: B018


def test_words_never_say_that_a_feature_does_not_predict():
    model = HeckmanAverage().fit(X, Y)
    printed = f"{model.summary()}\n{model.diagnostics()}\n{model.inclusion_.to_string()}"
    for words in ("does not predict", "is excluded", "excluded from", "excluded features"):
        assert words not in printed


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, COVERAGE["two-step"]),
        ({"method": "ml"}, COVERAGE["likelihood"]),
        ({"all_features_share": 0.25}, "95% intervals cover fewer effects than they should"),
    ],
)
def test_the_stated_coverage_is_that_of_the_intervals(options, said):
    printed = " ".join(str(HeckmanAverage(**options).fit(X, Y).summary()).split())
    assert said in printed
    assert printed.count("95% intervals") == 1


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
    assert "chosen" not in str(found)
    table = found.tidy()
    row = table.query("equation == 'prediction' and term == 'educ'").iloc[0]
    assert row["percentile_low"] < model.coef_[0] < row["percentile_high"]
    assert row["chosen"] == 1.0


def test_a_profile_of_an_average_is_about_the_features_that_probably_predict():
    given = ["age", "kids5", "exper", "educ"]
    model = HeckmanAverage("bic").fit(MROZ[given], Y)
    plain = Heckman(model.prediction_features_, method="ml").fit(MROZ[given], Y)
    found = model.profile(MROZ[given], Y, "educ")
    assert (found.term, len(found.maxima)) == ("educ", 1)
    np.testing.assert_allclose(found.estimate, plain.coef_[3], rtol=1e-6)
    with pytest.raises(InputError, match="'kids5'"):
        model.profile(MROZ[given], Y, "kids5")


def test_groups_are_named_by_their_term_in_words():
    data = MROZ.assign(level=MROZ["educ"].clip(10, 13))
    model = HeckmanAverage.from_formula("lwage ~ exper + C(level)", "exper + C(level) + age", data)
    shown = [line.split()[:2] for line in str(model.summary()).splitlines() if "C(level)[" in line]
    chance = chance_text(model.inclusion_["bic"][1])
    assert shown == [[f"C(level)[T.{n}]", chance] for n in (11, 12, 13)]
    assert model.inclusion_["feature"][1] == tuple(f"C(level)[T.{n}]" for n in (11, 12, 13))
    positions = HeckmanAverage().fit(X.to_numpy(), Y.to_numpy())
    assert "\nx0      " in str(positions.summary())


def test_the_interval_of_sigma_is_positive():
    only = HeckmanAverage().fit(MROZ[["kids618"]], Y).tidy().set_index("term")
    assert only.loc["sigma", "ci_low"] >= 0.0


def test_maximum_likelihood_of_all_features_is_guarded():
    rng = np.random.default_rng(7)
    Z = rng.normal(size=(1500, 4))
    u = rng.normal(size=1500)
    noise = 0.5 * u + np.exp(0.6 * Z[:, 0]) * rng.normal(size=1500)
    y = np.where(0.2 + Z @ [0.5, 0.5, 0.5, -0.5] + u > 0, Z[:, 0] - Z[:, 1] + noise, np.nan)
    model = HeckmanAverage("bic", method="ml").fit(Z, y)
    everything = Heckman(method="ml").fit(Z, y)
    found, expected = model.diagnostics(), everything.diagnostics()
    assert found.hausman.p_value == pytest.approx(expected.hausman.p_value, rel=1e-6)
    assert found.equal_variance.p_value == pytest.approx(expected.equal_variance.p_value, rel=1e-6)
    assert found.equal_variance.p_value < 0.001
    assert "two-step" in str(model.summary())


def test_two_steps_confirm_what_maximum_likelihood_says_of_selection():
    data = make_selection(3000, 4, 2, rho=0.7, random_state=1)
    never = np.flatnonzero(~data.support).tolist()
    model = HeckmanAverage(method="ml", never=never).fit(data.X, data.y)
    outcome = model.fit_.average
    steps = HeckmanAverage(never=never).fit(data.X, data.y)
    confirmed = steps.inclusion_["bic"].iloc[-1]
    assert outcome.two_step_chance == pytest.approx(confirmed, rel=1e-9)
    assert outcome.mixture.correction_share["bic"] > 0.9
    assert judgement_of(model.fit_).kind == "yes"
    doubted = replace(model.fit_, average=replace(outcome, two_step_chance=0.3))
    found = judgement_of(doubted)
    assert found.kind == "unreliable"
    assert "30%" in found.doubt
    assert steps.fit_.average.two_step_chance is None


def test_replicates_weigh_by_the_kind_of_covariance_that_the_model_has():
    expected = [
        (HeckmanAverage(), "robust"),
        (HeckmanAverage(cov_type="classical"), None),
        (HeckmanAverage(method="ml"), None),
        (HeckmanBestSubset("corrected_bic", cov_type="robust"), "robust"),
        (HeckmanBestSubset(cov_type="robust"), None),
    ]
    for model, cov_type in expected:
        assert model.fit(X, Y)._refit().spec.cov_type == cov_type


def test_everything_has_no_part_of_an_interval_where_it_is_not_allowed():
    for options in ({"max_features": 3}, {"rho_range": (-0.1, 0.1)}):
        average = HeckmanAverage(**options).fit(X, Y).fit_.average.mixture
        assert average.all_features_share == 0.0
    assert HeckmanAverage().fit(X, Y).fit_.average.mixture.all_features_share == 0.5
    with pytest.raises(InputError, match="all_features_share"):
        HeckmanAverage(all_features_share=1.5).fit(X, Y)
