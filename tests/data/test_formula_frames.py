"""What formulas take for a number, a category or a mistake, and the powers that they refuse."""

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from heckmanfa import Heckman
from heckmanfa.errors import (
    AllObservedWarning,
    FormulaError,
    InputError,
    NoOutcomeError,
    UnknownFeatureError,
)

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")

DRIVERS = "~ educ + exper + age + kids5 + nwifeinc"


@pytest.fixture(scope="module")
def data(mroz):
    levels = np.array(["north", "south", "west"], dtype=object)
    return mroz.assign(region=levels[np.random.default_rng(0).integers(0, 3, len(mroz))])


@pytest.fixture(scope="module")
def by_objects(data):
    return fitted(data)


def fitted(data, right="educ + exper + region", drivers=DRIVERS + " + region"):
    return Heckman.from_formula(f"lwage ~ {right}", drivers, data)


def test_an_equation_that_is_not_needed_may_lack_its_columns(data):
    model = fitted(data, "educ + I(exper**2)", "~ educ + age + kids5")
    wanted = model.predict_selection(data)
    found = model.predict_selection(data.drop(columns="exper"))
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(model.predict(data.drop(columns="age")), model.predict(data))
    for ask, gone in ((model.predict, "exper"), (model.predict_selection, "age")):
        with pytest.raises(UnknownFeatureError, match=gone):
            ask(data.drop(columns=gone))


def few(data):
    """Three levels of a number, each with many rows."""
    return data.assign(kids618=data["kids618"].clip(upper=2))


def with_region(data, dtype):
    return data.assign(region=data["region"].astype(dtype))


ENUM = pl.Enum(["north", "south", "west"])
TEXTS = {
    "string": lambda data: with_region(data, "string"),
    "python": lambda data: with_region(data, "string[python]"),
    "pyarrow": lambda data: with_region(data, "string[pyarrow]"),
    "arrow": lambda data: with_region(data, pd.ArrowDtype(pa.string())),
    "large": lambda data: with_region(data, pd.ArrowDtype(pa.large_string())),
    "category": lambda data: with_region(data, "category"),
    "polars": pl.from_pandas,
    "enum": lambda data: pl.from_pandas(data).with_columns(pl.col("region").cast(ENUM)),
    "table": pa.Table.from_pandas,
    "all": lambda data: pa.Table.from_pandas(data).to_pandas(types_mapper=pd.ArrowDtype),
}


@pytest.mark.parametrize("made", TEXTS.values(), ids=TEXTS)
def test_text_of_every_kind_is_categories(made, data, by_objects):
    model = fitted(made(data))
    assert list(model.feature_names_in_) == list(by_objects.feature_names_in_)
    np.testing.assert_allclose(model.coef_, by_objects.coef_, rtol=1e-12)
    np.testing.assert_allclose(by_objects.predict(made(data)), by_objects.predict(data), rtol=1e-12)


def test_missing_text_is_missing(data, by_objects):
    holes = data["region"].where(np.arange(len(data)) % 9 > 0)
    plain = fitted(data.assign(region=holes))
    model = fitted(data.assign(region=holes.astype("string")))
    assert model.row_counts_ == plain.row_counts_
    assert model.row_counts_["left_out_regressor_missing"] == 84
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-12)


def test_decimals_are_numbers(data):
    exact = data.assign(educ=[decimal.Decimal(int(one)) for one in data["educ"]])
    model = fitted(exact, "educ + exper", DRIVERS)
    np.testing.assert_allclose(model.coef_, fitted(data, "educ + exper", DRIVERS).coef_, rtol=1e-12)


DAYS = pd.date_range("2020-01-01", periods=753)


TIMES = {
    "date": DAYS,
    "zone": DAYS.tz_localize("UTC"),
    "span": DAYS - DAYS[0],
    "period": pd.period_range("2020-01-01", periods=753),
    "day": [datetime.date(2020, 1, 1) + datetime.timedelta(k) for k in range(753)],
    "clock": [datetime.time(k % 24) for k in range(753)],
    "arrow": pd.Series(DAYS).astype("timestamp[ns][pyarrow]"),
    "arrow span": pd.Series(DAYS - DAYS[0]).astype("duration[ns][pyarrow]"),
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("term", ["when", "C(when)", "I(when)"])
def test_dates_and_times_are_refused_with_what_to_do(data, times, term):
    with pytest.raises(InputError, match=r"'when' holds dates or times.* make it a number"):
        fitted(data.assign(when=times), f"educ + {term}", f"{DRIVERS} + {term}")


def test_dates_of_polars_are_refused_with_what_to_do(data):
    frame = pl.from_pandas(data.assign(when=DAYS))
    for kind in (pl.Date, pl.Datetime, pl.Time):
        with pytest.raises(InputError, match=r"'when' holds dates or times"):
            fitted(
                frame.with_columns(pl.col("when").cast(kind)), "educ + when", f"{DRIVERS} + when"
            )


@pytest.mark.parametrize(
    "formulas", [("when ~ educ", DRIVERS), ("lwage ~ educ", f"when {DRIVERS}")]
)
def test_dates_on_the_left_are_refused(data, formulas):
    with pytest.raises(InputError, match="'when' holds dates or times"):
        Heckman.from_formula(*formulas, data.assign(when=DAYS))


def test_a_number_made_of_a_date_in_the_formula_is_fine(data):
    """A formula may do itself what the refusal advises."""
    frame = data.assign(when=np.random.default_rng(1).permutation(DAYS))
    model = fitted(frame, "educ + {when.dt.day_of_year}", f"{DRIVERS} + {{when.dt.day_of_year}}")
    assert "when.dt.day_of_year" in model.feature_names_in_


def test_what_is_neither_a_number_nor_a_category_gets_an_error_of_ours(data):
    with pytest.raises(InputError, match="holds neither numbers nor text"):
        fitted(data.assign(region=[[1]] * len(data)))


# Categories that the fit did not have. ------------------------------------------------------------


@pytest.mark.parametrize(
    "term", ["region", "C(region)", "C(region, Sum)", "C(region, Treatment('west'))"]
)
@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_unseen_text_is_named_whole(data, term, dtype):
    model = fitted(data, f"educ + {term}", f"{DRIVERS} + {term}")
    new = pd.Series(["it's `new`. Really: {yes}", "north"], dtype=dtype)
    with pytest.raises(InputError, match=r"'region' .*unknown='missing'") as caught:
        model.predict(data.head(2).assign(region=new))
    assert ': "it\'s `new`. Really: {yes}". ' in str(caught.value)


@pytest.mark.parametrize("value", [70, 7.5])
def test_unseen_numbers_are_named_as_they_look_in_the_table(data, value):
    model = fitted(few(data), "educ + C(kids618)", "~ educ + exper + age + C(kids618)")
    with pytest.raises(InputError, match=rf"'kids618' has categories .* with: {value}\."):
        model.predict(data.assign(kids618=value))
    # The same category, though it comes as another type.
    whole = model.predict(few(data))
    np.testing.assert_allclose(
        model.predict(few(data).astype({"kids618": float})), whole, rtol=1e-12
    )


def test_unseen_results_of_expressions_are_named(data):
    model = fitted(few(data), "educ + C(kids618 + 10)", "~ educ + exper + age + C(kids618 + 10)")
    with pytest.raises(InputError, match=r"not fitted with: 80$"):
        model.predict(data.assign(kids618=70))


# Powers. ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "meant"),
    [
        ("I(exper^2)", r"write I\(exper \*\* 2\)"),
        ("I( exper ^ 2 )", r"write I\( exper \*\* 2 \)"),
        ("{exper^2}", r"write exper \*\* 2"),
        ("I(2^exper)", r"write I\(2 \*\* exper\)"),
        ("I(exper^-1)", r"write I\(exper \*\* -1\)"),
        ("I(exper^0.5)", r"write I\(exper \*\* 0.5\)"),
        ("I((exper + age)^2)", r"write I\(\(exper \+ age\) \*\* 2\)"),
        ("np.log(exper^2 + 1)", r"write np.log\(exper \*\* 2 \+ 1\)"),
        ("center(exper^2)", r"write center\(exper \*\* 2\)"),
        ("I(`exper`^2)", r"write I\(`exper` \*\* 2\)"),
        ("C(exper^2)", r"write C\(exper \*\* 2\)"),
        ("exper^2", r"for its power, write I\(exper \*\* 2\)"),
        ("exper**2", r"for its power, write I\(exper \*\* 2\)"),
    ],
)
def test_a_power_that_is_none_is_refused_with_the_spelling_that_works(mroz, term, meant):
    for formulas in (
        (f"lwage ~ educ + {term}", DRIVERS),
        ("lwage ~ educ", f"{DRIVERS} + {term}"),
        (f"{term} ~ educ", DRIVERS),
    ):
        with pytest.raises(FormulaError, match=meant):
            Heckman.from_formula(*formulas, mroz)


def test_other_carets_mean_what_they_say(mroz):
    crossed = Heckman.from_formula("lwage ~ (educ + exper)^2", f"{DRIVERS} + educ:exper", mroz)
    assert crossed.prediction_features_ == ["educ", "exper", "educ:exper"]
    either = "I((kids5 > 0) ^ (kids618 > 0))"
    model = Heckman.from_formula(f"lwage ~ educ + {either}", f"{DRIVERS} + {either}", mroz)
    frame = Heckman.from_formula(
        "lwage ~ educ + one",
        f"{DRIVERS} + one",
        mroz.assign(one=(mroz.kids5 > 0) != (mroz.kids618 > 0)),
    )
    np.testing.assert_allclose(model.coef_, frame.coef_, rtol=1e-12)


# Names. -------------------------------------------------------------------------------------------


def test_a_tilde_on_the_left_is_not_the_one_between_the_sides(mroz):
    model = Heckman.from_formula("lwage ~ educ", f"I(~(lfp == 0)) {DRIVERS}", mroz)
    plain = Heckman.from_formula("lwage ~ educ", f"lfp {DRIVERS}", mroz)
    np.testing.assert_allclose(
        model.predict(mroz, kind="selected"), plain.predict(mroz, kind="selected"), rtol=1e-12
    )


def test_a_missing_value_in_a_column_named_like_a_function_leaves_its_row_out(mroz):
    frame = mroz.assign(scale=mroz["exper"].where(mroz.index > 4))
    model = Heckman.from_formula("lwage ~ educ + scale", "~ educ + scale + age + kids5", frame)
    assert model.row_counts_["left_out_regressor_missing"] == 5
    with pytest.raises(UnknownFeatureError, match="'scale'"):
        model.predict(mroz)


@pytest.mark.parametrize(
    "right", ["(educ]", "[)", "educ (", "np.log(``)", "I(educ", "{educ", "educ +* age"]
)
def test_brackets_that_do_not_match_get_an_error_of_ours(mroz, right):
    for formulas in ((f"lwage ~ {right}", DRIVERS), ("lwage ~ educ", f"{DRIVERS} + {right}")):
        with pytest.raises(FormulaError, match="cannot be read") as caught:
            Heckman.from_formula(*formulas, mroz)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ("log(lwage, 3, 4)", "^the left side of the prediction formula cannot be evaluated: .*log"),
        ("bs(educ, df=3)", r"formula, bs\(educ, df=3\), must be one number per row"),
        ("C(educ)", r"formula, C\(educ\), must be one number per row"),
    ],
)
def test_a_left_side_is_one_number_per_row(left, words, data):
    with pytest.raises(FormulaError, match=words):
        Heckman.from_formula(f"{left} ~ exper", DRIVERS, data)


@pytest.mark.parametrize("right", ["center(day)", "bs(day, df=3)", "I(educ * day)", "log(day)"])
def test_a_date_inside_a_function_is_named(right, data):
    dated = data.assign(day=pd.date_range("2020-01-01", periods=len(data)))
    with pytest.raises(InputError, match=r"^column 'day' holds dates or times, which a formula"):
        Heckman.from_formula(f"lwage ~ {right}", f"{DRIVERS} + {right}", dated)


def test_columns_of_an_arrow_table_that_share_a_name_are_named(data):
    names = ["lwage", "educ", "kids5", "age"]
    twice = pa.Table.from_pandas(data[names], preserve_index=False).rename_columns(
        ["lwage", "educ", "age", "age"]
    )
    for table in (twice, twice.to_batches()[0], twice.to_pandas()):
        with pytest.raises(InputError, match=r"^the data has two columns named 'age'; rename one"):
            Heckman.from_formula("lwage ~ educ", "educ + age", table)
    # A column may be called as Arrow calls the list of names.
    odd = data.assign(column_names=data["age"])
    wanted = Heckman.from_formula("lwage ~ educ", "educ + age", data).rho_
    assert Heckman.from_formula("lwage ~ educ", "educ + column_names", odd).rho_ == wanted


def test_a_reference_of_a_formula_is_a_level_of_the_fit(data):
    rare = data["region"].where(data.index != 3, "east")
    lost = data.assign(region=rare, educ=data["educ"].where(data.index != 3))
    with pytest.raises(
        InputError, match=r"no row of the fit has the level 'east' of 'region'.*'no"
    ):
        Heckman.from_formula(
            "lwage ~ educ + region", "educ + age + region", lost, reference={"region": "east"}
        )
    with pytest.raises(InputError, match=r"reference must be a dictionary of a level for each"):
        Heckman.from_formula(
            "lwage ~ educ + region", "educ + age + region", data, reference=["region"]
        )


def test_a_category_that_no_selected_row_has_leaves_no_outcome(data):
    for gone in (None, data["region"].where(data["lwage"].isna())):
        with pytest.raises(NoOutcomeError, match="no row has an observed outcome"):
            Heckman.from_formula("lwage ~ educ + region", DRIVERS, data.assign(region=gone))


def test_a_model_of_an_intercept_alone_predicts_without_a_word_about_names():
    frame = pd.DataFrame({"y": [1.0, 2.0, 4.0], "a": [3.0, 1.0, 2.0]})
    with pytest.warns(AllObservedWarning):
        model = Heckman.from_formula("y ~", "~", frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(model.predict(frame), 7 / 3)
