"""Other exclusions, one at a time or tested together: against refits with those features."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, norm

from heckmanfa import Heckman, HeckmanBestSubset, HeckmanProbit
from heckmanfa.datasets import make_selection
from heckmanfa.errors import (
    DroppedFeaturesWarning,
    HeckmanfaWarning,
    InputError,
    UnknownFeatureError,
)
from heckmanfa.fit import linear

SELECTION = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]
PREDICTION = ["educ", "exper", "expersq"]


@pytest.fixture(scope="module")
def model(mroz):
    return Heckman(PREDICTION).fit(mroz[SELECTION], mroz["lwage"])


@pytest.fixture(scope="module")
def wide():
    """Data whose two-step rho leaves (-1, 1) without feature 2."""
    return make_selection(6000, 5, prediction_features=[0, 1, 2], rho=0.5, random_state=2)


@pytest.fixture(scope="module")
def twins():
    """Among the selected rows "twin" is a; elsewhere it is not."""
    rng = np.random.default_rng(5)
    data = make_selection(600, 3, prediction_features=[0, 1], random_state=1)
    twin = np.where(data.selected, data.X[:, 0], rng.normal(size=600))
    X = np.column_stack([data.X, twin])
    return pd.DataFrame(X, columns=["a", "b", "c", "twin"]), data.y


def refit(features, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return Heckman(features, **options).fit(X, y)


def estimates(model):
    """Terms of the prediction equation, and those of the errors."""
    table = model.tidy()
    return table[table["equation"] != "selection"].set_index("term")


def check_against_refits(model, X, y, names):
    """Every number of what-if, from models that are fitted anew."""
    answer = model.what_if()
    table, long = answer.tidy(), answer.coefficients()
    inside = list(model.prediction_features_)
    base = refit(inside, X, y)
    before = estimates(base)
    assert set(table["feature"]) == {names[column] for column in model.fit_.moments.columns}
    for row in table.itertuples():
        place = names.index(row.feature)
        feature = row.feature if isinstance(X, pd.DataFrame) else place
        assert (row.change == "take out") == (feature in inside)
        others = [name for name in inside if name != feature]
        features = others if row.change == "take out" else [*inside, feature]
        other = refit(features, X, y)
        after = estimates(other)
        holder = before if row.change == "take out" else after
        assert row.t == pytest.approx(holder.loc[row.feature, "statistic"], rel=1e-8)
        assert row.p_value == pytest.approx(2 * norm.sf(abs(row.t)))
        assert row.rho == pytest.approx(other.rho_, rel=1e-8)
        assert row.rho_shift == pytest.approx(other.rho_ - base.rho_, abs=1e-9)
        assert row.sigma == pytest.approx(other.sigma_, rel=1e-8)
        assert row.adjusted_r2 == pytest.approx(other.adjusted_r2_, rel=1e-8)
        assert row.bic == pytest.approx(other.bic_, rel=1e-8)
        left = set(other.selection_features_) - set(other.prediction_features_)
        assert row.n_excluded == len(left)
        rows = long[(long["change"] == row.change) & (long["feature"] == row.feature)]
        rows = rows.set_index("term")
        assert rows.index[0] == "Intercept"
        assert rows.index[-3:].tolist() == ["imr", "rho", "sigma"]
        for terms, values in ((before, rows["before"]), (after, rows["after"])):
            np.testing.assert_allclose(values.dropna(), terms["estimate"], rtol=1e-8)
            assert values.dropna().index.tolist() == terms.index.tolist()
        shift = after["estimate"].reindex(rows.index) - before["estimate"].reindex(rows.index)
        np.testing.assert_allclose(rows["shift"], shift, atol=1e-9)
        error = before["std_error"].reindex(rows.index)
        np.testing.assert_allclose(rows["shift_in_se"], shift / error, rtol=1e-6, atol=1e-8)
        moves = rows["shift_in_se"].iloc[1:-3].dropna()
        assert row.most_moved == moves.abs().idxmax()
        assert row.most_moved_by == moves[row.most_moved]


def test_what_if_equals_refits_with_and_without_names_and_after_a_search(model, mroz, simulated):
    X, y = mroz[SELECTION], mroz["lwage"]
    check_against_refits(model, X, y, SELECTION)
    plain = Heckman([0, 2, 3]).fit(simulated.X, simulated.y)
    check_against_refits(plain, simulated.X, simulated.y, [f"x{i}" for i in range(6)])
    search = HeckmanBestSubset(criterion="bic", rho_range=(-0.9, 0.9)).fit(X, y)
    check_against_refits(search, X, y, SELECTION)
    assert "window" in str(search.what_if())


def test_candidates_of_a_search_that_only_predict_are_put_back(simulated):
    model = HeckmanBestSubset(selection_features=[0, 1, 4], prediction_features=[0, 2, 3, 5])
    model.fit(simulated.X, simulated.y)
    table = model.what_if().tidy()
    assert sorted(table["feature"]) == [f"x{i}" for i in range(6)]


def test_maximum_likelihood_and_robust_models_are_told_what_they_get(model, mroz):
    other = Heckman(PREDICTION, method="ml", cov_type="robust")
    other.fit(mroz[SELECTION], mroz["lwage"])
    answer = other.what_if()
    pd.testing.assert_frame_equal(answer.tidy(), model.what_if().tidy(), rtol=1e-9)
    assert "classical" in str(answer)
    assert "classical" not in str(model.what_if())


def test_features_may_have_the_names_of_other_terms(simulated):
    names = ["rho", "sigma", "imr", "Intercept", "a", "b"]
    X = pd.DataFrame(simulated.X, columns=names)
    named = Heckman(["rho", "imr", "Intercept"]).fit(X, simulated.y).what_if()
    plain = Heckman([0, 2, 3]).fit(simulated.X, simulated.y).what_if()
    numbers = ["t", "rho", "most_moved_by", "bic"]
    pd.testing.assert_frame_equal(named.tidy()[numbers], plain.tidy()[numbers])
    pd.testing.assert_frame_equal(
        named.coefficients().iloc[:, 3:], plain.coefficients().iloc[:, 3:]
    )


def test_what_gives_no_model_has_a_reason(twins):
    X, y = twins
    table = Heckman(["a", "b"]).fit(X, y).what_if().tidy().set_index("feature")
    assert "collinear" in table.loc["twin", "note"]
    assert table.loc["twin", ["t", "p_value", "rho", "bic", "most_moved_by"]].isna().all()
    assert table.loc["c", "note"] == ""
    assert table.loc["a", "change"] == "take out"
    with pytest.warns(DroppedFeaturesWarning):
        model = Heckman(["a", "b", "twin"], on_collinear="drop").fit(X, y)
    assert "collinear" in model.what_if().tidy().set_index("feature").loc["twin", "note"]
    model = refit(["a"], X, y)
    for method in ("two-step", "ml"):
        row = model.exclusion_test(X, y, ["twin"], method=method).tidy().iloc[0]
        assert np.isnan(row["statistic"])
        assert "collinear" in row["note"]


def test_a_lambda_that_would_be_linear_in_the_features_is_said():
    rng = np.random.default_rng(0)
    x = (rng.random(400) < 0.5).astype(float)
    z = rng.normal(size=400)
    y = np.where(rng.normal(size=400) + x > 0, z + rng.normal(size=400), np.nan)
    answer = refit([1], np.column_stack([x, z]), y, selection_features=[0]).what_if()
    table = answer.tidy().set_index("feature")
    assert "collinear" in table.loc["x0", "note"]
    assert "exclusion" in table.loc["x0", "note"]
    assert np.isnan(table.loc["x0", "t"])
    assert len(answer.coefficients()) == 0
    text = " ".join(str(answer).split())
    assert " x1 is " in text
    assert "x0: " in text


def test_the_last_exclusion_put_back_leaves_the_normal_law_alone(simulated):
    model = Heckman([0, 1, 2, 3, 4]).fit(simulated.X, simulated.y)
    table = model.what_if().tidy()
    last = table[table["change"] == "put back"]
    assert last["feature"].tolist() == ["x5"]
    assert last["n_excluded"].tolist() == [0]


def test_a_rho_outside_is_said(wide):
    answer = Heckman([0, 1, 2]).fit(wide.X, wide.y).what_if()
    table = answer.tidy().set_index("feature")
    assert table.loc["x2", "rho"] > 1
    assert table.loc["x2", "note"] == "rho outside (-1, 1)"
    assert "x2: rho" in str(answer)
    test = refit([0, 1], wide.X, wide.y).exclusion_test(features=[3])
    row = test.tidy().iloc[0]
    assert row["rho"] == pytest.approx(refit([0, 1, 3], wide.X, wide.y).rho_)
    assert row["rho"] > 1
    assert row["note"] == "rho outside (-1, 1)"
    assert "2, 4" in str(test)


def test_beside_honest_estimates_the_fit_to_all_rows_is_named_with_its_rho(mroz):
    X = mroz[["educ", "exper", "nwifeinc", "age", "kids5"]]
    model = HeckmanBestSubset(honest=True, n_splits=6, random_state=0).fit(X, mroz["lwage"])
    whole = Heckman(list(model.prediction_features_)).fit(X, mroz["lwage"])
    assert abs(whole.rho_ - model.rho_) > 1e-3
    note = " ".join(str(model.what_if()).split())
    assert f"{model.rho_:.4f}" in note
    assert f"{whole.rho_:.4f}" in note
    assert model.adjusted_r2_ == pytest.approx(whole.adjusted_r2_, rel=1e-9)
    line = next(line for line in model.diagnostics().lines() if line[0] == "honest estimates")
    assert f"{whole.rho_:.4f}" in line[3]


def test_one_coefficient_is_counted_in_the_singular(mroz):
    model = Heckman(["educ"]).fit(mroz[["educ", "exper", "age", "kids5"]], mroz["lwage"])
    value = model.uncertainty_interval(rho=(-0.3, 0.3)).findings()[0].value
    assert "0 of 1 coefficient " in value


def test_dummies_of_a_category_move_as_one_and_are_tested_together(mroz):
    levels = np.array(["none", "one", "more"], dtype=object)
    kids = pd.Categorical(levels[mroz["kids618"].clip(upper=2)], levels)
    X = mroz[["educ", "exper", "age", "kids5"]].assign(kids=kids, town=mroz["city"].astype(str))
    model = Heckman(["educ", "exper"], method="two-step").fit(X, mroz["lwage"])
    answer = model.what_if()
    table = answer.tidy().set_index("feature")
    assert list(table.index) == ["age", "kids5", "kids", "town[1]", "educ", "exper"]
    other = Heckman(["educ", "exper", "kids"]).fit(X, mroz["lwage"])
    row = table.loc["kids"]
    assert row["rho"] == pytest.approx(other.rho_, rel=1e-9)
    assert np.isnan(row["t"])
    terms = other.tidy()
    inside = terms["term"].str.startswith("kids[") & (terms["equation"] == "prediction")
    positions = np.flatnonzero(inside)
    covariance = other.vcov().to_numpy()[np.ix_(positions, positions)]
    estimate = terms.loc[inside, "estimate"].to_numpy()
    wald = estimate @ np.linalg.solve(covariance, estimate)
    assert row["p_value"] == pytest.approx(chi2.sf(wald, 2), rel=1e-8)
    assert {"kids[one]", "kids[more]"} <= {*answer.coefficients()["term"]}
    taken = other.what_if().tidy().set_index("feature")
    assert taken.loc["kids", "change"] == "take out"
    assert taken.loc["kids", "p_value"] == pytest.approx(row["p_value"], rel=1e-8)
    alone = Heckman(["kids"]).fit(X, mroz["lwage"]).what_if()
    assert "kids is " in str(alone)
    # A factor of a formula moves as one, too.
    data = X.assign(lwage=mroz["lwage"])
    by_formula = Heckman.from_formula(
        "lwage ~ educ + exper", "~ educ + exper + age + kids5 + C(kids) + C(town)", data
    )
    known = by_formula.what_if().tidy()
    assert known["p_value"].min() == pytest.approx(table["p_value"].min(), rel=1e-6)
    assert known["p_value"].round(9).tolist().count(round(row["p_value"], 9)) == 1


def test_the_diagnostics_name_a_category_that_appears_to_predict(mroz):
    taught = np.where(mroz["educ"] > 13, "long", np.where(mroz["educ"] < 11, "short", "middle"))
    X = mroz[["exper", "age", "kids5", "nwifeinc"]].assign(taught=taught)
    (found,) = Heckman(["exper"]).fit(X, mroz["lwage"]).what_if().findings()
    assert found.value.startswith("smallest p < 0.001 (taught), which moves rho by")
    assert found.verdict == "caution"


def test_dummies_of_a_category_move_as_one_in_a_probit(mroz):
    taught = np.where(mroz["educ"] > 13, "long", np.where(mroz["educ"] < 11, "short", "middle"))
    X = mroz[["exper", "kids5", "nwifeinc"]].assign(taught=taught)
    high = (mroz["lwage"] > 1.2).where(mroz["lwage"].notna())
    model = HeckmanProbit(["exper", "taught"]).fit(X, high)
    table = model.what_if(X, high).tidy().set_index("feature")
    assert list(table.index) == ["kids5", "nwifeinc", "exper", "taught"]
    assert table.loc["taught", "p_value"] < 0.05


# Several features, tested together. ------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.FewClustersWarning")
@pytest.mark.parametrize("method", ["two-step", "ml"])
@pytest.mark.parametrize("cov_type", [None, "robust", "cluster"])
def test_an_exclusion_test_is_the_wald_test_of_a_refit(cov_type, method, mroz):
    X, y = mroz[SELECTION], mroz["lwage"]
    groups = mroz["age"] if cov_type == "cluster" else None
    model = Heckman(PREDICTION, cov_type=cov_type).fit(X, y, groups=groups)
    test = model.exclusion_test(X, y, ["kids5", "age"], method=method, groups=groups)
    row = test.tidy().iloc[0]
    other = Heckman([*PREDICTION, "kids5", "age"], method=method, cov_type=cov_type)
    other.fit(X, y, groups=groups)
    wald = other.wald_test("kids5 = 0, age = 0")
    assert row["tested"] == ("age", "kids5")
    assert row["stays_out"] == ("nwifeinc", "kids618")
    assert row["statistic"] == pytest.approx(wald.statistic, rel=1e-8)
    assert row["df"] == 2
    assert row["p_value"] == pytest.approx(wald.p_value, rel=1e-8)
    assert row["rho"] == pytest.approx(other.rho_, rel=1e-8)
    if method == "ml":
        assert row["log_likelihood"] == pytest.approx(other.log_likelihood_, rel=1e-12)
    else:
        assert np.isnan(row["log_likelihood"])
    assert row["note"] == ""
    assert len(test.tidy()) == 1
    text = str(test)
    assert "age, kids5" in text
    assert (cov_type or "classical") in text
    assert ("maximum likelihood" if method == "ml" else "two-step") in text


def test_the_two_step_test_needs_no_rows_and_is_the_default(model, mroz):
    X, y = mroz[SELECTION], mroz["lwage"]
    with_rows, without = model.exclusion_test(X, y), model.exclusion_test()
    assert with_rows.method == "two-step"
    pd.testing.assert_frame_equal(with_rows.tidy(), without.tidy(), rtol=1e-9)
    some = model.exclusion_test(features=["age"]).tidy().iloc[0]
    t = model.what_if().tidy().set_index("feature").loc["age", "t"]
    assert some["statistic"] == pytest.approx(t**2, rel=1e-9)


def test_rows_that_are_needed_are_asked_for(model, mroz):
    with pytest.raises(InputError, match="'ml'"):
        model.exclusion_test(method="ml")
    robust = Heckman(PREDICTION, cov_type="robust").fit(mroz[SELECTION], mroz["lwage"])
    with pytest.raises(InputError, match=r"cov_type.*'robust'"):
        robust.exclusion_test()
    with pytest.raises(InputError, match=r"'two-step'.*'ml'.*'mle'"):
        model.exclusion_test(method="mle")


def test_the_method_says_what_it_is_worth(model, mroz):
    assert "skewed" not in str(model.exclusion_test())
    likely = model.exclusion_test(mroz[SELECTION], mroz["lwage"], method="ml")
    assert "skewed" in str(likely)


def test_each_exclusion_stays_out_in_turn(model, mroz):
    X, y = mroz[SELECTION], mroz["lwage"]
    test = model.exclusion_test(X, y)
    table = test.tidy()
    excluded = ("nwifeinc", "age", "kids5", "kids618")
    assert table["stays_out"].tolist() == [(name,) for name in excluded]
    for row in table.itertuples():
        assert row.tested == tuple(name for name in excluded if name not in row.stays_out)
        other = Heckman([*PREDICTION, *row.tested]).fit(X, y)
        wald = other.wald_test([f"{name} = 0" for name in row.tested])
        assert row.statistic == pytest.approx(wald.statistic, rel=1e-7)


def test_positions_weights_and_selected_go_through(simulated):
    rng = np.random.default_rng(0)
    weight = rng.random(len(simulated.y)) + 0.2
    given = {"selected": simulated.selected, "sample_weight": weight}
    options = {"cov_type": "robust", "weight_kind": "sampling"}
    model = Heckman([0, 2, 3], **options).fit(simulated.X, simulated.complete_y, **given)
    for method in ("two-step", "ml"):
        test = model.exclusion_test(
            simulated.X, simulated.complete_y, [5, 1], method=method, **given
        )
        row = test.tidy().iloc[0]
        assert (row["tested"], row["stays_out"]) == ((1, 5), (4,))
        other = Heckman([0, 1, 2, 3, 5], method=method, **options)
        other.fit(simulated.X, simulated.complete_y, **given)
        wald = other.wald_test("x1 = 0, x5 = 0")
        assert row["statistic"] == pytest.approx(wald.statistic, rel=1e-8)


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.FewClustersWarning")
def test_a_formula_model_takes_its_frame(mroz):
    prediction = "lwage ~ educ + exper + I(exper**2)"
    selection = "lfp ~ nwifeinc + educ + exper + I(exper**2) + age + kids5 + kids618"
    model = Heckman.from_formula(
        prediction, selection, mroz, cov_type="cluster", groups="age", method="ml"
    )
    for method in ("two-step", "ml"):
        row = model.exclusion_test(mroz, features=["kids5"], method=method).tidy().iloc[0]
        other = Heckman.from_formula(
            prediction + " + kids5",
            selection,
            mroz,
            cov_type="cluster",
            groups="age",
            method=method,
        )
        wald = other.wald_test("kids5 = 0")
        assert row["statistic"] == pytest.approx(wald.statistic, rel=1e-7)
        assert row["stays_out"] == ("nwifeinc", "age", "kids618")
    with pytest.raises(InputError, match="groups"):
        model.exclusion_test(mroz, groups=[1, 2])


def test_a_searched_model_is_tested_with_a_caution(mroz):
    model = HeckmanBestSubset(criterion="bic").fit(mroz[SELECTION], mroz["lwage"])
    test = model.exclusion_test(mroz[SELECTION], mroz["lwage"])
    outside = [name for name in SELECTION if name not in model.prediction_features_]
    assert test.tidy()["stays_out"].tolist() == [(name,) for name in outside]


def test_an_exclusion_that_does_not_hold_is_found(wide):
    right = Heckman([0, 1, 2]).fit(wide.X, wide.y).exclusion_test(wide.X, wide.y, [3])
    wrong = refit([0, 1], wide.X, wide.y).exclusion_test(wide.X, wide.y, [2])
    assert right.tidy()["p_value"].iloc[0] > 0.01
    assert wrong.tidy()["p_value"].iloc[0] < 1e-10


def test_a_second_maximum_is_told(case):
    data = case("mroz_greene")
    model = refit(data.prediction, data.X, data.y, selection_features=data.selection)
    row = model.exclusion_test(data.X, data.y, ["faminc"], method="ml").tidy().iloc[0]
    assert "higher maximum" in row["note"]


def test_a_fit_that_fails_is_told(model, mroz, monkeypatch):
    X, y = mroz[SELECTION], mroz["lwage"]

    def answer(**changes):
        def broken(*args):
            return dataclasses.replace(fit_likelihood(*args), **changes)

        monkeypatch.setattr(linear, "fit_likelihood", broken)
        return model.exclusion_test(X, y, ["age"], method="ml")

    fit_likelihood = linear.fit_likelihood
    assert answer(converged=False).tidy()["note"].item()
    test = answer(information_is_positive=False, covariance=np.full((14, 14), np.nan))
    assert test.tidy()[["statistic", "p_value"]].isna().all(axis=None)


def test_tests_that_nothing_would_identify_are_refused(model, mroz):
    X, y = mroz[SELECTION], mroz["lwage"]
    one_excluded = Heckman([*PREDICTION, "age", "kids5", "kids618"]).fit(X, y)
    for tested, features, error, words in (
        (model, ["educ"], InputError, "'educ'"),
        (model, ["kids"], UnknownFeatureError, "'kids5'"),
        (model, ["nwifeinc", "age", "kids5", "kids618"], InputError, "stay out"),
        (model, [], InputError, "features.*nwifeinc"),
        (one_excluded, None, InputError, "nwifeinc"),
        (refit(SELECTION, X, y), None, InputError, "excluded"),
    ):
        with pytest.raises(error, match=words):
            tested.exclusion_test(X, y, features)
