"""What-if: against refits of the model with other features."""

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
)

SELECTION = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]
PREDICTION = ["educ", "exper", "expersq"]


@pytest.fixture(scope="module")
def model(mroz):
    return Heckman(PREDICTION).fit(mroz[SELECTION], mroz["lwage"])


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
    assert set(table["feature"]) == {names[one] for one in model.fit_.moments.columns}
    for row in table.itertuples():
        place = names.index(row.feature)
        feature = row.feature if isinstance(X, pd.DataFrame) else place
        assert (row.change == "take out") == (feature in inside)
        others = [one for one in inside if one != feature]
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
        part = long[(long["change"] == row.change) & (long["feature"] == row.feature)]
        part = part.set_index("term")
        assert part.index[0] == "Intercept"
        assert part.index[-3:].tolist() == ["imr", "rho", "sigma"]
        for terms, values in ((before, part["before"]), (after, part["after"])):
            np.testing.assert_allclose(values.dropna(), terms["estimate"], rtol=1e-8)
            assert values.dropna().index.tolist() == terms.index.tolist()
        shift = after["estimate"].reindex(part.index) - before["estimate"].reindex(part.index)
        np.testing.assert_allclose(part["shift"], shift, atol=1e-9)
        error = before["std_error"].reindex(part.index)
        np.testing.assert_allclose(part["shift_in_se"], shift / error, rtol=1e-6, atol=1e-8)
        moves = part["shift_in_se"].iloc[1:-3].dropna()
        assert row.most_moved == moves.abs().idxmax()
        assert row.most_moved_by == moves[row.most_moved]


def test_what_if_equals_refits_on_mroz(model, mroz):
    check_against_refits(model, mroz[SELECTION], mroz["lwage"], SELECTION)


def test_what_if_equals_refits_without_names(simulated):
    names = [f"x{i}" for i in range(6)]
    model = Heckman([0, 2, 3]).fit(simulated.X, simulated.y)
    check_against_refits(model, simulated.X, simulated.y, names)


def test_what_if_after_a_search_says_so(mroz):
    model = HeckmanBestSubset(criterion="bic", rho_range=(-0.9, 0.9))
    model.fit(mroz[SELECTION], mroz["lwage"])
    check_against_refits(model, mroz[SELECTION], mroz["lwage"], SELECTION)
    assert "window" in str(model.what_if())


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


def test_what_gives_no_model_has_a_reason():
    rng = np.random.default_rng(5)
    data = make_selection(600, 3, prediction_features=[0, 1], random_state=1)
    # Among the selected rows "twin" is x0; elsewhere it is not.
    twin = np.where(data.selected, data.X[:, 0], rng.normal(size=600))
    X = pd.DataFrame(np.column_stack([data.X, twin]), columns=["a", "b", "c", "twin"])
    table = Heckman(["a", "b"]).fit(X, data.y).what_if().tidy().set_index("feature")
    assert "collinear" in table.loc["twin", "note"]
    assert table.loc["twin", ["t", "p_value", "rho", "bic", "most_moved_by"]].isna().all()
    assert table.loc["c", "note"] == ""
    assert table.loc["a", "change"] == "take out"
    with pytest.warns(DroppedFeaturesWarning):
        model = Heckman(["a", "b", "twin"], on_collinear="drop").fit(X, data.y)
    assert "collinear" in model.what_if().tidy().set_index("feature").loc["twin", "note"]


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


def test_a_rho_outside_is_said():
    data = make_selection(6000, 5, prediction_features=[0, 1, 2], rho=0.5, random_state=2)
    answer = Heckman([0, 1, 2]).fit(data.X, data.y).what_if()
    table = answer.tidy().set_index("feature")
    assert table.loc["x2", "rho"] > 1
    assert table.loc["x2", "note"] == "rho outside (-1, 1)"
    assert "x2: rho" in str(answer)


def test_beside_honest_estimates_the_fit_to_all_rows_is_named_with_its_rho(mroz):
    X = mroz[["educ", "exper", "nwifeinc", "age", "kids5"]]
    model = HeckmanBestSubset(honest=True, n_splits=6, random_state=0).fit(X, mroz["lwage"])
    whole = Heckman(list(model.prediction_features_)).fit(X, mroz["lwage"])
    assert abs(whole.rho_ - model.rho_) > 1e-3
    note = " ".join(str(model.what_if()).split())
    assert f"{model.rho_:.4f}" in note
    assert f"{whole.rho_:.4f}" in note
    assert model.adjusted_r2_ == pytest.approx(whole.adjusted_r2_, rel=1e-9)
    line = next(one for one in model.diagnostics().lines() if one[0] == "honest estimates")
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


def test_the_diagnostics_name_a_category_that_asks_to_come_back(mroz):
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
