"""Left sides of formulas that compare or hold classes: a missing value stays missing."""

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.formula.stored_formulas import check_design, check_formula
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
