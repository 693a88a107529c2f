"""Tests of exclusions: against refits of the model with those features."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanBestSubset
from heckmanfa.datasets import make_selection
from heckmanfa.errors import (
    HeckmanfaWarning,
    InputError,
    UnknownFeatureError,
)
from heckmanfa.fit import linear as module

SELECTION = ["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]
PREDICTION = ["educ", "exper", "expersq"]


@pytest.fixture(scope="module")
def model(mroz):
    return Heckman(PREDICTION).fit(mroz[SELECTION], mroz["lwage"])


def refit(features, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return Heckman(features, **options).fit(X, y)


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
    assert table["stays_out"].tolist() == [(one,) for one in excluded]
    for row in table.itertuples():
        assert row.tested == tuple(one for one in excluded if one not in row.stays_out)
        other = Heckman([*PREDICTION, *row.tested]).fit(X, y)
        wald = other.wald_test([f"{one} = 0" for one in row.tested])
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
    outside = [one for one in SELECTION if one not in model.prediction_features_]
    assert test.tidy()["stays_out"].tolist() == [(one,) for one in outside]


def test_an_exclusion_that_does_not_hold_is_found():
    data = make_selection(6000, 5, prediction_features=[0, 1, 2], rho=0.5, random_state=2)
    right = Heckman([0, 1, 2]).fit(data.X, data.y).exclusion_test(data.X, data.y, [3])
    wrong = refit([0, 1], data.X, data.y).exclusion_test(data.X, data.y, [2])
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

        monkeypatch.setattr(module, "fit_likelihood", broken)
        return model.exclusion_test(X, y, ["age"], method="ml")

    fit_likelihood = module.fit_likelihood
    test = answer(converged=False)
    test = answer(information_is_positive=False, covariance=np.full((14, 14), np.nan))
    assert test.tidy()[["statistic", "p_value"]].isna().all(axis=None)


def test_what_is_collinear_cannot_be_tested():
    rng = np.random.default_rng(5)
    data = make_selection(600, 3, prediction_features=[0], random_state=1)
    twin = np.where(data.selected, data.X[:, 0], rng.normal(size=600))
    X = np.column_stack([data.X, twin])
    model = Heckman([0]).fit(X, data.y)
    for method in ("two-step", "ml"):
        table = model.exclusion_test(X, data.y, [3], method=method).tidy()
        assert np.isnan(table["statistic"].iloc[0])
        assert "collinear" in table["note"].iloc[0]


def test_tests_that_nothing_would_identify_are_refused(model, mroz):
    X, y = mroz[SELECTION], mroz["lwage"]
    with pytest.raises(InputError, match="'educ'"):
        model.exclusion_test(X, y, ["educ"])
    with pytest.raises(UnknownFeatureError, match="'kids5'"):
        model.exclusion_test(X, y, ["kids"])
    with pytest.raises(InputError, match="stay out"):
        model.exclusion_test(X, y, ["nwifeinc", "age", "kids5", "kids618"])
    with pytest.raises(InputError, match=r"features.*nwifeinc"):
        model.exclusion_test(X, y, [])
    one = Heckman([*PREDICTION, "age", "kids5", "kids618"]).fit(X, y)
    with pytest.raises(InputError, match="nwifeinc"):
        one.exclusion_test(X, y)
    none = refit(SELECTION, X, y)
    with pytest.raises(InputError, match="excluded"):
        none.exclusion_test(X, y)


def test_a_rho_outside_is_told():
    data = make_selection(6000, 5, prediction_features=[0, 1, 2], rho=0.5, random_state=2)
    test = refit([0, 1], data.X, data.y).exclusion_test(features=[3])
    row = test.tidy().iloc[0]
    assert row["rho"] == pytest.approx(refit([0, 1, 3], data.X, data.y).rho_)
    assert row["rho"] > 1
    assert row["note"] == "rho outside (-1, 1)"
    assert "2, 4" in str(test)
