"""Formulas in the spelling of R and Stata are told the spelling that works."""

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman
from heckmanfa.errors import FormulaError

SELECTION = "~ nwifeinc + educ + age + kids5"


@pytest.mark.parametrize(
    ("foreign", "works"),
    [
        ("factor(city)", "C(city)"),
        ("as.factor(city)", "C(city)"),
        ("factor(I(exper > 10))", "C(I(exper > 10))"),
        ("relevel(city, 1)", "C(city)"),
        ("as.numeric(city)", "city"),
        ("i.city", "C(city)"),
        ("c.exper", "exper"),
        ("c.exper##c.exper", "exper + I(exper**2)"),
        ("c.exper#c.exper", "I(exper**2)"),
        ("i.city##c.educ", "C(city)*educ"),
        ("i.city#c.exper", "C(city):exper"),
        ("ib1.city", "C(city, contr.treatment(1))"),
        ("sqrt(exper)", "np.sqrt(exper)"),
        ("abs(exper)", "np.abs(exper)"),
        ("ifelse(exper > 10, 1, 0)", "np.where(exper > 10, 1, 0)"),
        ("ns(exper, df=3)", "cr(exper, df=3, constraints='center')"),
        ("I(exper)^2", "I(exper ** 2)"),
    ],
)
def test_a_term_of_r_or_stata_is_told_the_spelling_that_works(mroz, foreign, works):
    with pytest.raises(FormulaError) as told:
        Heckman.from_formula("lwage ~ educ", f"{SELECTION} + {foreign}", mroz)
    assert works in str(told.value)
    assert "Did you mean" not in str(told.value)
    Heckman.from_formula("lwage ~ educ", f"{SELECTION} + {works}", mroz)


def test_membership_and_lags_are_told_what_to_do(mroz):
    with pytest.raises(FormulaError, match=r"write I\(\(x == 1\) \| \(x == 2\)\)"):
        Heckman.from_formula("lwage ~ I(city %in% c(1, 2))", SELECTION, mroz)
    with pytest.raises(FormulaError, match=r"L\.educ is a time-series operator .* before the fit"):
        Heckman.from_formula("lwage ~ L.educ", SELECTION, mroz)


def test_columns_that_look_like_stata_are_columns(mroz):
    data = mroz.rename(columns={"educ": "c.educ", "exper": "factor(x)#1", "age": "i.age"})
    model = Heckman.from_formula(
        "lwage ~ c.educ + `factor(x)#1`", "~ nwifeinc + i.age + c.educ + kids5", data
    )
    plain = Heckman.from_formula("lwage ~ educ + exper", "~ nwifeinc + age + educ + kids5", mroz)
    np.testing.assert_allclose(model.tidy()["estimate"], plain.tidy()["estimate"], rtol=1e-10)


def test_text_in_quotes_is_no_spelling_of_another_language(mroz):
    data = mroz.assign(town=np.where(mroz["city"] == 1, "factor(a)#i.b", "other"))
    model = Heckman.from_formula("lwage ~ I(town == 'factor(a)#i.b')", SELECTION, data)
    plain = Heckman.from_formula("lwage ~ city", SELECTION, mroz)
    assert model.rho_ == pytest.approx(plain.rho_, rel=1e-10)
    assert isinstance(model.vcov(), pd.DataFrame)
