"""A model from formulas is scored on its data frame alone."""

import dask.dataframe as dd
import numpy as np
import polars as pl
import pytest

from heckmanfa import Heckman
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.model_selection import joint_log_likelihood, observed_mse

WORK = "nwifeinc + educ + exper + age + kids5"


@pytest.mark.parametrize("left", ["lwage", "log(wage)", "np.log(wage)", "I(lwage * 1)"])
@pytest.mark.parametrize("who", ["", "lfp ~ "])
def test_a_data_frame_alone_is_scored_by_the_left_side_of_the_formula(mroz, left, who):
    model = Heckman.from_formula(f"{left} ~ educ + exper", who + WORK, mroz)
    half = mroz.iloc[::2].reset_index(drop=True)
    r2, total = model.score(half, half["lwage"]), model.log_likelihood(half, half["lwage"])
    for data in (half, pl.from_pandas(half)):
        assert model.score(data) == pytest.approx(r2, rel=1e-9)
        assert model.log_likelihood(data) == pytest.approx(total, rel=1e-9)
    assert observed_mse(model, half) == pytest.approx(observed_mse(model, half, half["lwage"]))
    assert joint_log_likelihood(model, half) == pytest.approx(
        joint_log_likelihood(model, half, half["lwage"])
    )


def test_a_dask_frame_alone_is_scored_likewise(mroz):
    model = Heckman.from_formula("log(wage) ~ educ + exper", f"lfp ~ {WORK}", mroz)
    parts = dd.from_pandas(mroz, npartitions=2)
    assert model.score(parts) == pytest.approx(model.score(mroz), rel=1e-9)
    assert model.log_likelihood(parts) == pytest.approx(model.log_likelihood(mroz), rel=1e-9)


def test_the_log_likelihood_of_the_rows_of_the_fit_is_that_of_the_fit(mroz):
    model = Heckman.from_formula("log(wage) ~ educ + exper", WORK, mroz, method="ml")
    assert model.log_likelihood(mroz) == pytest.approx(model.log_likelihood_, rel=1e-9)


def test_an_outcome_that_is_given_goes_before_that_of_the_frame(mroz):
    model = Heckman.from_formula("lwage ~ educ + exper", WORK, mroz)
    other = mroz["lwage"] + np.arange(len(mroz)) % 3
    assert model.score(mroz, other) != model.score(mroz)
    assert model.score(mroz, other) == model.score(mroz.drop(columns="lwage"), other)


def test_a_frame_without_the_outcome_is_told_to_pass_it(mroz):
    model = Heckman.from_formula("log(wage) ~ educ + exper", WORK, mroz)
    with pytest.raises(UnknownFeatureError, match=r"'log\(wage\)'.*no column 'wage'.*Pass y"):
        model.score(mroz.drop(columns="wage"))


@pytest.mark.parametrize(
    "left", ["center(lwage)", "I(lwage - lwage.mean())", "I(lwage / np.std(lwage))"]
)
def test_a_left_side_that_goes_by_other_rows_is_not_guessed_in_other_data(mroz, left):
    model = Heckman.from_formula(f"{left} ~ educ + exper", WORK, mroz)
    with pytest.raises(InputError, match=r"depends on other rows.*pass y"):
        model.score(mroz.iloc[:300])
    assert np.isfinite(model.score(mroz, mroz["lwage"]))


def test_who_is_selected_is_not_guessed_in_other_data_either(mroz):
    who = "I(hours > 0 * hours.mean())"
    model = Heckman.from_formula("lwage ~ educ + exper", f"{who} ~ {WORK}", mroz)
    with pytest.raises(InputError, match=r"depends on other rows.*pass selected"):
        model.score(mroz)
    assert np.isfinite(model.score(mroz, selected=mroz["hours"] > 0))


def test_a_model_of_arrays_asks_for_y_as_before(mroz):
    X = mroz[["nwifeinc", "educ", "exper", "age", "kids5"]]
    model = Heckman(["educ", "exper"]).fit(X, mroz["lwage"])
    for ask in (model.score, model.log_likelihood):
        with pytest.raises(InputError, match="the target y is None: pass the outcome"):
            ask(X)
