"""Left sides of formulas that compare or hold classes: a missing value stays missing."""

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanProbit
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.formula.stored_formulas import check_design, check_formula
from heckmanfa.data.outcome_classes import read_classes
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import BinaryOutcomeWarning, FormulaError, InputError

WORK = "lfp ~ educ + age + kids5"


@pytest.fixture(scope="module")
def mroz():
    data = load_mroz().copy()
    data["wage"] = data["wage"].where(data["lfp"] == 1)
    data["a wage"] = data["wage"]
    high = data["wage"] >= 5
    data["high"] = high.astype(object).where(data["wage"].notna(), None)
    data["word"] = pd.Series(np.where(high, "high", "low")).where(data["wage"].notna())
    data["level"] = data["word"].astype("category")
    data["flag"] = data["high"].astype("boolean")
    return data


COMPARISONS = [
    "wage >= 5",
    "I(wage >= 5)",
    "`a wage` >= 5",
    "(wage >= 5) & (educ > 0)",
    "word == 'high'",
    "I(level == 'high')",
]


@pytest.mark.parametrize("left", COMPARISONS)
def test_a_comparison_with_a_missing_value_is_missing(left, mroz):
    missing = mroz["wage"].isna().to_numpy()
    numbers = FormulaDesign.build(f"{left} ~ educ", WORK, mroz).outcome
    labels = FormulaDesign.build(f"{left} ~ educ", WORK, mroz, labels=True).outcome
    np.testing.assert_array_equal(np.isnan(numbers), missing)
    np.testing.assert_array_equal(pd.isna(labels), missing)
    assert {type(label) for label in labels[~missing]} == {bool}
    np.testing.assert_array_equal(labels[~missing], mroz["wage"][~missing] >= 5)
    np.testing.assert_array_equal(numbers[~missing], labels[~missing])


@pytest.mark.parametrize("left", ["word", "level", "high", "flag", "I(word)"])
def test_a_column_of_classes_keeps_its_labels_and_gaps(left, mroz):
    design = FormulaDesign.build(f"{left} ~ educ", WORK, mroz, labels=True)
    column = mroz[left.removeprefix("I(").removesuffix(")")].astype(object)
    assert (pd.isna(design.outcome) == mroz["wage"].isna()).all()
    present = ~pd.isna(design.outcome)
    assert list(design.outcome[present]) == list(column[present])
    # What scores read from other data is the same.
    np.testing.assert_array_equal(design.outcome_of(mroz, labels=True), design.outcome)


def test_selected_rows_whose_outcome_is_missing_are_left_out_of_a_comparison(mroz):
    some = mroz.copy()
    some.loc[some.index[:10], "wage"] = np.nan  # the first 428 rows work
    with pytest.warns(BinaryOutcomeWarning):
        model = Heckman.from_formula("wage >= 5 ~ educ", WORK, some)
    assert model.row_counts_["left_out_outcome_missing"] == 10
    assert model.n_selected_ == 418
    assert model.fit_.origin.design.texts[0] == "wage >= 5 ~ educ"


def test_who_is_selected_may_be_a_comparison_but_must_be_known(mroz):
    design = FormulaDesign.build("wage ~ educ", "hours > 0 ~ educ + age", mroz)
    np.testing.assert_array_equal(design.selected, mroz["lfp"] == 1)
    with pytest.raises(InputError, match="left side is missing in 325 rows"):
        FormulaDesign.build("wage ~ educ", "wage > 0 ~ educ + age", mroz)


@pytest.mark.parametrize("left", ["3 < wage < 5", "wage > 3 and educ > 1", "I(3 < wage < 5)"])
def test_comparisons_in_a_chain_are_refused_with_the_spelling_that_works(left, mroz):
    with pytest.raises(
        FormulaError, match=r"cannot be decided row by row: .*\(3 < x\) & \(x < 5\)"
    ):
        FormulaDesign.build(f"{left} ~ educ", WORK, mroz, labels=True)


def test_text_is_no_outcome_of_a_linear_model(mroz):
    with pytest.raises(FormulaError, match="must be one number per row; column 'word' holds text"):
        FormulaDesign.build("word ~ educ", WORK, mroz)


def test_comparisons_in_a_model_file_are_checked_as_any_other_expression(mroz):
    design = FormulaDesign.build("wage >= 5 ~ educ", "hours > 0 ~ educ + age", mroz)
    check_design(design.without_data(), ["educ", "age"])
    for hostile in (
        "__import__('os') == 1 ~ educ",
        "open('x') > 3 ~ educ",
        "(lambda: 1)() == 1 ~ educ",
        "educ.__class__ == 1 ~ educ",
        "(" * 60 + "educ > 1" + ")" * 60 + " ~ educ",
        "educ > 1} + {open('x') ~ educ",
        "educ ~ age > 3",
    ):
        with pytest.raises(FormulaError):
            check_formula(hostile, 3)


# R 4.2.2, sampleSelection 1.2-12, selection(..., maxMethod = "Newton-Raphson"): estimate and
# standard error of each term, and the log-likelihood.
R_CASES = {
    ("wage >= 5 ~ educ", "lfp ~ educ + age + kids5 + kids618 + nwifeinc"): (
        {
            ("selection", "Intercept"): (0.43031295812048, 0.472413828636551),
            ("selection", "educ"): (0.156222240347508, 0.0239208637544345),
            ("selection", "age"): (-0.0347124749403911, 0.00759391475581627),
            ("selection", "kids5"): (-0.890537082342012, 0.114567665456735),
            ("selection", "kids618"): (-0.0381588813689584, 0.0404608853455376),
            ("selection", "nwifeinc"): (-0.0209469547003915, 0.00457635730644134),
            ("prediction", "Intercept"): (-4.52128153157331, 0.533861220876758),
            ("prediction", "educ"): (0.287851191361835, 0.0354810749878423),
            ("errors", "rho"): (0.116389628852594, 0.273604786569744),
        },
        -653.203658061633,
    ),
    (
        "(wage >= 4) ~ educ + exper + I(exper**2) + city",
        "lfp ~ nwifeinc + educ + exper + I(exper**2) + age + kids5 + kids618",
    ): (
        {
            ("selection", "I(exper ** 2)"): (-0.00187284816694143, 0.00059731033091916),
            ("prediction", "Intercept"): (-3.31989701021358, 0.705068844013474),
            ("prediction", "educ"): (0.209772841847497, 0.0363107091324252),
            ("prediction", "exper"): (0.0476303862184112, 0.0351975425860393),
            ("prediction", "I(exper ** 2)"): (-0.000690362386659252, 0.000929764060162102),
            ("prediction", "city"): (0.116237232080391, 0.136939751941091),
            ("errors", "rho"): (-0.263823482055576, 0.248052831602221),
        },
        -651.556914618377,
    ),
}


@pytest.mark.parametrize("formulas", R_CASES)
def test_formulas_of_a_binary_outcome_give_the_numbers_of_r(formulas):
    terms, log_likelihood = R_CASES[formulas]
    # Mroz's file has a wage of zero for those who do not work, which must not be a class.
    raw = load_mroz()
    raw["wage"] = raw["wage"].fillna(0.0)
    model = HeckmanProbit.from_formula(*formulas, raw)
    table = model.tidy().set_index(["equation", "term"])
    for term, (estimate, error) in terms.items():
        assert table.loc[term, "estimate"] == pytest.approx(estimate, rel=1e-6)
        assert table.loc[term, "std_error"] == pytest.approx(error, rel=1e-5)
    assert model.log_likelihood_ == pytest.approx(log_likelihood, rel=1e-9)
    assert model.classes_.tolist() == [False, True]
    assert model.row_counts_["unselected"] == 325


def test_every_spelling_of_the_classes_is_the_same_model(mroz):
    again = HeckmanProbit.from_formula("wage >= 5 ~ educ", "~ educ + age + kids5", mroz)
    # "high" sorts before "low".
    for left, sign in (("high", 1), ("word", -1)):
        model = HeckmanProbit.from_formula(f"{left} ~ educ", WORK, mroz)
        np.testing.assert_allclose(sign * model.coef_, again.coef_, rtol=1e-6, atol=1e-12)
        assert model.score(mroz) == again.score(mroz)
        assert model.log_likelihood(mroz) == pytest.approx(again.log_likelihood_, rel=1e-10)
    # Inference reads the rows again, through the formulas.
    profile = model.profile_rho(mroz, grid=[0.0, 0.1])
    assert profile.tidy()["deviance"].min() == pytest.approx(0.0, abs=1e-8)


def test_a_formula_keeps_the_order_of_the_categories():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": pd.Categorical(list("aba"), ["b", "a"], True)})
    design = FormulaDesign.build("y ~ x", "~ x", frame, labels=True)
    assert read_classes(design.outcome, 3)[1] == ("b", "a")
    assert list(design.outcome_of(frame, labels=True)) == ["a", "b", "a"]
