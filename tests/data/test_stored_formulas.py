"""What a stored formula may ask for is checked before anything is evaluated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman
from heckmanfa.data.formula import stored_formulas
from heckmanfa.data.formula.design import Equation
from heckmanfa.data.formula.stored_formulas import check_design, check_formula
from heckmanfa.errors import FormulaError

LONG = stored_formulas._LONGEST_FACTOR


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (3, "a formula must be text; got int"),
        ("a" * (stored_formulas._LONGEST_FORMULA + 1), "a formula of 200,001 characters is too"),
        ("a + b\u200b", "holds characters that cannot be seen"),
        ("a" * (LONG + 1), "has a term of 20,001 characters"),
        (f"I({'a + ' * (LONG // 4)}a)", "has a term of 20,004 characters"),
    ],
    ids=["no text", "long", "unseen", "long name", "long expression"],
)
def test_a_formula_is_text_of_moderate_length(text, words):
    with pytest.raises(FormulaError, match=words):
        check_formula(text, 5)
    assert list(check_formula("a" * LONG, 5)) == ["a" * LONG]


@pytest.fixture(scope="module")
def design():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["y", "a", "b"])
    frame["g"] = rng.choice(["u", "v", "w"], 200)
    frame.loc[frame["b"] + rng.normal(size=200) < 0, "y"] = np.nan
    return Heckman.from_formula("y ~ a + g", "a + b + g", frame).fit_.origin.design


def _numbers(names):
    return dict.fromkeys(names, ("numerical", None))


MANY = [f"a{place}" for place in range(40)]
WIDE = [f"g{place}" for place in range(12)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"encodings": _numbers(["a", "b"])}, "the term 'g' was not part of the fit"),
        (
            {"encodings": {**_numbers(["a", "b"]), "g": ("categorical", None)}},
            "the term 'g' has no categories",
        ),
        (
            {"text": " + ".join(MANY), "encodings": _numbers(MANY), "numeric": MANY},
            "the formula has 41 terms; the model, 4",
        ),
        (
            {
                "text": " + ".join(WIDE),
                "encodings": {name: ("categorical", [*"uvwxyz"]) for name in WIDE},
                "numeric": [],
            },
            "the formula makes 61 columns; the model has 4",
        ),
    ],
)
def test_an_equation_asks_for_no_more_than_the_model_has(change, words, design):
    names = ["a", "b", "g[T.v]", "g[T.w]"]
    check_design(design, names)
    equation = replace(design.selection, **change)
    texts = (design.texts[0], equation.text)
    with pytest.raises(FormulaError, match=words):
        check_design(replace(design, selection=equation, texts=texts), names)


def test_the_columns_of_a_formula_are_features(design):
    assert isinstance(design.selection, Equation)
    with pytest.raises(FormulaError, match=r"the formulas make 'b', which is not a feature"):
        check_design(design, ["a", "g[T.v]", "g[T.w]"])


def test_nesting_is_allowed_up_to_its_limit():
    deepest = stored_formulas.DEEPEST
    for text in (f"I({'-' * (deepest - 1)}a)", f"{'log(' * deepest}a{')' * deepest}"):
        assert len(check_formula(text, 5)) == 1
    with pytest.raises(FormulaError, match="is nested too deeply"):
        check_formula(f"I({'-' * deepest}a)", 5)
    with pytest.raises(FormulaError, match=f"brackets nested {deepest + 1} deep"):
        check_formula(f"{'log(' * (deepest + 1)}a{')' * (deepest + 1)}", 5)
