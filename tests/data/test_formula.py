import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from heckmanfa import Heckman
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import (
    CollinearError,
    FormulaError,
    InputError,
    MissingFeaturesWarning,
    TextNumbersWarning,
    TooFewRowsError,
    UnknownFeatureError,
)

WAGE = "log(wage) ~ educ + exper + I(exper**2)"
WORK = "lfp ~ nwifeinc + educ + exper + I(exper**2) + age + kids5 + kids618"


@pytest.fixture
def mroz():
    return load_mroz()


@pytest.fixture
def by_hand(case):
    data = case("mroz_wooldridge")
    return Heckman(data.prediction, data.selection).fit(data.X, data.y)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_formulas_give_the_model_written_out_by_hand_for_every_frame(kind, mroz, by_hand):
    data = {
        "pandas": lambda: mroz,
        "polars": lambda: pl.from_pandas(mroz),
        "pyarrow": lambda: pa.Table.from_pandas(mroz),
    }[kind]()
    model = Heckman.from_formula(WAGE, WORK, data)
    ours, theirs = model.tidy(), by_hand.tidy()
    np.testing.assert_allclose(ours["estimate"], theirs["estimate"], rtol=1e-12)
    np.testing.assert_allclose(ours["std_error"], theirs["std_error"], rtol=1e-10)
    assert model.prediction_features_ == ["educ", "exper", "I(exper ** 2)"]
    predicted = model.predict(data, kind="selected")
    assert predicted.shape == (753,)
    assert np.isfinite(predicted).all()


def test_without_a_left_side_the_rows_with_an_outcome_are_selected(mroz, by_hand):
    model = Heckman.from_formula(WAGE, WORK.split("~")[1], mroz)
    np.testing.assert_allclose(model.tidy()["estimate"], by_hand.tidy()["estimate"], rtol=1e-12)
    model = Heckman.from_formula(WAGE, "~ " + WORK.split("~")[1], mroz)
    assert model.n_selected_ == 428


def test_a_zero_wage_of_someone_who_does_not_work_is_ignored(mroz, by_hand):
    mroz["wage"] = mroz["wage"].fillna(0.0)
    model = Heckman.from_formula(WAGE, WORK, mroz)
    np.testing.assert_allclose(model.coef_, Heckman.from_formula(WAGE, WORK, load_mroz()).coef_)


def test_rows_without_a_regressor_they_need_are_left_out_and_counted(mroz):
    worker = mroz.index[mroz["lfp"] == 1]
    other = mroz.index[mroz["lfp"] == 0]
    mroz["tenure"] = np.arange(753.0) % 17
    mroz.loc[worker[:4], "age"] = np.nan  # needed by everyone
    mroz.loc[other[:3], "age"] = np.nan
    mroz.loc[worker[10:12], "tenure"] = np.nan  # needed where selected
    mroz.loc[other[10:60], "tenure"] = np.nan  # not needed
    model = Heckman.from_formula(WAGE + " + tenure", WORK, mroz)
    assert model.row_counts_["left_out_regressor_missing"] == 9
    assert model.row_counts_["total"] == 753
    assert model.row_counts_["selected"] == 428 - 6
    assert model.row_counts_["unselected"] == 325 - 3
    assert sum(v for k, v in model.row_counts_.items() if k != "total") == 753
    assert "9 rows left out: a regressor is missing" in str(model.summary())
    predicted = model.predict(mroz, missing="nan")
    assert predicted.shape == (753,)
    assert np.isnan(predicted).sum() == 52  # those without tenure; age is not in this equation
    assert np.isnan(model.predict(mroz, kind="selected", missing="nan")).sum() == 59


def test_functions_that_give_nan_count_as_missing(mroz):
    mroz["odd"] = np.where(np.arange(753) < 5, -1.0, 2.0 + np.arange(753) % 7)
    with pytest.warns(MissingFeaturesWarning, match=r"NaN in 5 rows .*'log\(odd\)'"):
        model = Heckman.from_formula(WAGE, WORK + " + log(odd)", mroz)
    assert model.row_counts_["left_out_regressor_missing"] == 5


def test_categories_become_dummies_and_unseen_levels_are_an_error(mroz):
    mroz["region"] = np.array(["north", "south", "west"])[np.arange(753) % 3]
    model = Heckman.from_formula(WAGE + " + region", WORK + " + region", mroz)
    assert [name for name in model.prediction_features_ if "region" in name] == [
        "region[T.south]",
        "region[T.west]",
    ]
    subset = mroz[mroz["region"] == "west"]  # the reference level is remembered
    np.testing.assert_allclose(
        model.predict(subset), model.predict(mroz)[mroz["region"] == "west"], rtol=1e-12
    )
    mroz.loc[0, "region"] = "east"
    with pytest.raises(
        InputError,
        match="column 'region' has categories that the model was not fitted with: 'east'",
    ):
        model.predict(mroz)
    mroz.loc[0, "region"] = None
    predicted = model.predict(mroz, missing="nan")
    assert np.isnan(predicted[0])
    assert np.isfinite(predicted[1:]).all()


def test_what_a_term_learns_in_the_fit_it_keeps_in_prediction(mroz):
    model = Heckman.from_formula(
        "log(wage) ~ center(educ) + exper", "lfp ~ center(educ) + exper + age", mroz
    )
    np.testing.assert_allclose(model.predict(mroz.iloc[:5]), model.predict(mroz)[:5], rtol=1e-12)
    plain = Heckman.from_formula("log(wage) ~ educ + exper", "lfp ~ educ + exper + age", mroz)
    np.testing.assert_allclose(model.predict(mroz), plain.predict(mroz), rtol=1e-9)


def test_weights_and_groups_by_name_follow_the_rows_that_are_kept(mroz):
    mroz["w"] = 1 + np.arange(753) % 3
    mroz["household"] = np.arange(753) // 4
    mroz.loc[:9, "age"] = np.nan
    model = Heckman.from_formula(
        WAGE, WORK, mroz, sample_weight="w", groups="household", cov_type="cluster", method="ml"
    )
    kept = mroz.iloc[10:]
    other = Heckman.from_formula(
        WAGE,
        WORK,
        kept,
        sample_weight=kept["w"].to_numpy(),
        groups=kept["household"],
        cov_type="cluster",
        method="ml",
    )
    np.testing.assert_allclose(model.fit_.covariance, other.fit_.covariance, rtol=1e-10)


@pytest.mark.parametrize(
    ("prediction", "selection", "error", "words"),
    [
        ("log(wage) ~ educ - 1", WORK, FormulaError, "removes the intercept"),
        ("educ + exper", WORK, FormulaError, "has no left side"),
        ("log(wage) ~ educ | age", WORK, FormulaError, "has several parts"),
        (WAGE, "lfp ~ age | kids5", FormulaError, "has several parts"),
        ("log(wage) ~ educ +", WORK, FormulaError, "cannot be read"),
        ("lwage ~ educ ++* age", WORK, FormulaError, "cannot be read"),
        ("wage + hours ~ educ", WORK, FormulaError, "one variable"),
        (WAGE, 5, FormulaError, "text; got int"),
        (WAGE, "lfp ~ nwifeinc + log(age, 1, 2, 3, 4)", FormulaError, "cannot be evaluated"),
        (WAGE, "lfp ~ nwifeinc + frobnicate(age)", FormulaError, "no function 'frobnicate'"),
        ("log(wage) ~ educ + expr", WORK, UnknownFeatureError, r"'expr', .* mean 'exper'"),
        *(
            (*sides, InputError, "selection_features is empty")
            for sides in (("wage ~", "~"), ("wage ~ 1", "1"), ("wage ~", "lfp ~"))
        ),
    ],
)
def test_formulas_that_cannot_be_used_say_why(prediction, selection, error, words, mroz):
    with pytest.raises(error, match=words) as caught:
        Heckman.from_formula(prediction, selection, mroz)
    # Words of formulaic come without its lines and colors.
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data.to_numpy(), "data frame.* got ndarray"),
        (lambda data: data.assign(lfp=data["lfp"].where(data.index > 2)), "missing in 3 rows"),
        (lambda data: data.assign(lfp=data["lfp"] + 1), r"holds 2; .* such as lfp == 2"),
        (lambda data: pd.concat([data, data], axis=1), "two columns named 'lfp'"),
        (lambda data: pl.from_pandas(data).lazy(), r"\.collect\(\)"),
        (lambda data: data[:0], "0 rows"),
        (lambda data: data.assign(age=np.nan), r"lacks a regressor.*'age' \(753 missing\)"),
    ],
)
def test_data_that_formulas_cannot_use_are_refused(change, words, mroz):
    with pytest.raises(InputError, match=words):
        Heckman.from_formula(WAGE, WORK, change(mroz))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"metod": "ml"}, InputError, r"'metod'. Did you mean 'method'"),
        ({"prediction_features": ["educ"]}, InputError, "'prediction_features'"),
        (
            {"sample_weight": "ww"},
            UnknownFeatureError,
            "sample_weight: the data has no column 'ww'",
        ),
    ],
)
def test_options_that_formulas_do_not_have_are_refused(options, error, words, mroz):
    with pytest.raises(error, match=words):
        Heckman.from_formula(WAGE, WORK, mroz, **options)


def test_data_to_predict_for_must_have_the_columns_of_the_formula(mroz):
    with pytest.raises(UnknownFeatureError, match="'exper'"):
        Heckman.from_formula(WAGE, WORK, mroz).predict(mroz.drop(columns="exper"))


def test_boolean_columns_may_say_who_is_selected_and_predict(mroz):
    mroz["works"] = mroz["lfp"] == 1
    mroz["urban"] = mroz["city"] == 1
    model = Heckman.from_formula(
        "log(wage) ~ educ + urban", "works ~ educ + urban + age + kids5", mroz
    )
    expected = Heckman.from_formula(
        "log(wage) ~ educ + city", "lfp ~ educ + city + age + kids5", mroz
    )
    np.testing.assert_allclose(model.tidy()["estimate"], expected.tidy()["estimate"], rtol=1e-12)


def test_a_formula_model_survives_pickling(mroz):
    mroz["region"] = np.array(["north", "south", "west"])[np.arange(753) % 3]
    model = Heckman.from_formula(WAGE + " + center(age)", WORK + " + region", mroz)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        again.predict(mroz, kind="selected"), model.predict(mroz, kind="selected")
    )


def test_a_frame_with_an_odd_index_is_no_trouble(mroz):
    odd = mroz.set_index(pd.Index(["a"] * 753))
    np.testing.assert_array_equal(
        Heckman.from_formula(WAGE, WORK, odd).coef_, Heckman.from_formula(WAGE, WORK, mroz).coef_
    )


def test_text_where_the_fit_had_numbers_is_refused_in_prediction(mroz):
    model = Heckman.from_formula(WAGE, WORK, mroz)
    for rows, text in ((1, "12"), (3, "twelve")):
        with pytest.raises(InputError, match="'educ' held numbers in the fit and holds text"):
            model.predict(mroz[:rows].assign(educ=text))
    assert np.isnan(model.predict(mroz[:2].assign(educ=None), missing="nan")).all()


def test_infinite_regressors_are_refused_in_prediction(mroz):
    model = Heckman.from_formula(WAGE, WORK, mroz)
    with pytest.raises(InputError, match=r"infinite values in 'educ' \(753 rows\)"):
        model.predict(mroz.assign(educ=np.inf))
    with pytest.raises(InputError, match=r"infinite values in 'age'"):
        model.predict_selection(mroz.assign(age=np.inf))


def test_the_likelihood_refuses_rows_without_a_regressor(mroz):
    model = Heckman.from_formula(WAGE, WORK, mroz)
    broken = mroz.assign(educ=mroz["educ"].where(mroz.index > 9))
    with pytest.raises(InputError, match="10 rows lack a regressor"):
        model.log_likelihood(broken, mroz["lwage"])


def test_numbers_kept_as_objects_are_numbers_and_as_text_a_warning(mroz):
    expected = Heckman.from_formula(WAGE, WORK, mroz)
    objects = mroz.assign(educ=mroz["educ"].astype(object), wage=mroz["wage"].astype(object))
    np.testing.assert_allclose(Heckman.from_formula(WAGE, WORK, objects).coef_, expected.coef_)
    text = mroz.assign(size=(mroz["educ"] > 12).map({True: "1", False: "2"}))
    with pytest.warns(TextNumbersWarning, match="'size' holds numbers as text, and becomes 2"):
        Heckman.from_formula(WAGE + " + size", WORK + " + size", text)
    Heckman.from_formula(WAGE + " + C(size)", WORK + " + C(size)", text)
    with pytest.raises(FormulaError, match="column 'lwage' holds text or categories"):
        Heckman.from_formula("lwage ~ educ", WORK, mroz.assign(lwage=mroz["lwage"].astype(str)))


def test_names_with_spaces_and_dots_are_quoted_with_backticks(mroz):
    odd = mroz.rename(columns={"educ": "my educ", "age": "a.b"})
    model = Heckman.from_formula(
        "lwage ~ `my educ` + exper", "lfp ~ `my educ` + exper + `a.b` + kids5", odd
    )
    expected = Heckman.from_formula(
        "lwage ~ educ + exper", "lfp ~ educ + exper + age + kids5", mroz
    )
    np.testing.assert_allclose(model.tidy()["estimate"], expected.tidy()["estimate"], rtol=1e-10)
    np.testing.assert_allclose(model.predict(odd), expected.predict(mroz), rtol=1e-10)


@pytest.mark.parametrize("term", ["center(age)", "bs(age, df=4)", "scale(age)", "poly(age, 2)"])
def test_rows_that_miss_a_variable_of_a_stateful_term_are_left_out(term):
    frame = load_mroz().astype({"age": float})
    frame.loc[[2, 600], "age"] = np.nan
    model = Heckman.from_formula(
        f"lwage ~ educ + {term}", f"~ educ + kids5 + nwifeinc + {term}", frame
    )
    assert model.row_counts_["left_out_regressor_missing"] == 2
    predicted = model.predict(frame, missing="nan")
    assert np.isnan(predicted[[2, 600]]).all()
    assert np.isfinite(np.delete(predicted, [2, 600])).all()


def test_columns_that_sum_to_one_are_collinear_with_the_intercept(mroz):
    with pytest.raises(CollinearError, match=r"\[3\]' and the intercept\. Leave"):
        Heckman.from_formula("lwage ~ cr(age, df=4)", "nwifeinc + educ + age + kids5", mroz)
    data = mroz.assign(both=mroz["educ"] + mroz["exper"])
    with pytest.raises(CollinearError, match=r"combination of 'educ', 'exper'\. Leave"):
        Heckman.from_formula("lwage ~ educ + exper + both", "nwifeinc + educ + exper", data)


@pytest.mark.parametrize("term", ["day", "C(day)", "C(number)", "kind"])
def test_more_categories_than_rows_can_carry_are_refused_by_the_column_and_their_number(mroz, term):
    days = pd.Series(pd.date_range("2020-01-01", periods=len(mroz)))
    data = mroz.assign(
        day=days.dt.strftime("%Y-%m-%d"),
        number=np.arange(len(mroz)),
        kind=days.astype(str).astype("category"),
    )
    name = term.removeprefix("C(").removesuffix(")")
    told = f"column '{name}' of the selection formula has 753 categories in 753 rows"
    with pytest.raises(TooFewRowsError, match=told):
        Heckman.from_formula("lwage ~ educ", f"nwifeinc + educ + age + {term}", data)
    told = f"column '{name}' of the prediction formula has 753 categories"
    with pytest.raises(TooFewRowsError, match=told):
        Heckman.from_formula(f"lwage ~ educ + {term}", "nwifeinc + educ + age", data)


def test_the_advice_about_dates_is_to_make_a_column_before_the_fit_and_works(mroz):
    data = mroz.assign(t=pd.date_range("2020-01-01", periods=len(mroz)))
    with pytest.raises(InputError, match=r"new column of the data before the fit.*'days'"):
        Heckman.from_formula("lwage ~ educ + t", "nwifeinc + educ + age", data)
    with pytest.raises(FormulaError, match="in the data before the fit"):
        Heckman.from_formula("lwage ~ I((t - t.min()).dt.days)", "nwifeinc + educ + age", data)
    t = data["t"]
    data["days"], data["quarter"] = (t - t.min()).dt.days, "m" + t.dt.quarter.astype(str)
    Heckman.from_formula("lwage ~ educ + days + quarter", "nwifeinc + educ + age", data)


def test_params_are_labelled_by_the_covariance(mroz):
    model = Heckman.from_formula(
        "lwage ~ exper + educ", "nwifeinc + educ + exper + age + kids5", mroz, method="ml"
    )
    labels = [one for one in model.vcov().index if one[0] != "errors"]
    estimates = model.tidy().set_index(["equation", "term"])["estimate"]
    assert labels[:3] == [("prediction", one) for one in ("Intercept", "educ", "exper")]
    np.testing.assert_allclose(model.params_[:-2], estimates.loc[labels])
    np.testing.assert_allclose(model.params_[-2:], [np.log(model.sigma_), np.arctanh(model.rho_)])
