"""The page of an outcome of two classes speaks of probabilities from its first word to its last."""

from __future__ import annotations

import re

import pytest

from heckmanfa import HeckmanProbitAverage
from heckmanfa.datasets import make_selection
from heckmanfa.results.catalogue import facts_of_fit

# What only a linear outcome has.
LINEAR = ("least squares", "R2", "R\u00b2", "sigma", "residual", "two-step", "two steps")


def test_nothing_linear_is_left(page_of):
    html = page_of("binary").html.split("<script")[0].split("</style>")[1]
    text = re.sub(r"<[^>]*>", " ", html).lower()
    assert not [words for words in LINEAR if words.lower() in text]
    assert "lambda" not in page_of("binary").said("matter")


def test_the_class_is_foreign_text(page_of):
    page = page_of("binary")
    assert "<paid>" not in page.html
    assert "P(wage4 = 'well <paid>')" in page.said("answer")


def test_held_out_rows_are_judged_with_a_warning(case, page_of):
    held, said = case("binary").held_out, page_of("binary").said("trust")
    assert f"AUC {held.picture.auc:.3f}; Brier score {held.picture.brier:.3f}" in said
    assert "These rows are selected" in said
    assert held.how in said


@pytest.mark.parametrize(
    "words",
    [
        "Heckman probit of P(wage4 = 'well <paid>'). For the other class, pass positive='low'.",
        "which is proven; these are then fitted by maximum likelihood and ranked",
        "Maximum likelihood of the Heckman probit",
        "The coefficients, beside a probit of the rows with an outcome alone",
        "van de Ven and B. M. S. van Praag (1981)",
    ],
)
def test_details_say_which_model_was_fitted_and_how(page_of, words):
    assert words in page_of("binary").said("details")


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_an_average_has_a_probit_beside_it_and_nothing_linear():
    made = make_selection(500, 4, 2, outcome_kind="binary", random_state=0)
    model = HeckmanProbitAverage().fit(made.X, made.y)
    text = str(model.pictures().forest.text())
    assert "naive probit, averaged alike" in text
    assert "least squares" not in text
    assert "adjusted_r2" not in [fact.key for fact in facts_of_fit(model.fit_)]
