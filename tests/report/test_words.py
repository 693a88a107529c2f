"""The answer in words, for every kind of question."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from heckmanfa.analysis import Question, analyse
from heckmanfa.report import answer, render
from heckmanfa.report.request_words import describe_question, rows_by_use
from heckmanfa.text.wording import count, listed, number, p_value, plural, some

SPECIFIED = {"search": "none", "predict_with": ("educ", "exper", "expersq")}
SELECT_ONLY = ("kids5", "kids618", "nwifeinc")


def claims(analysis) -> str:
    caveats = answer(analysis)[2]
    assert all(one.startswith("That ") for one in caveats)
    assert len(set(caveats)) == len(caveats)
    return " ".join(caveats)


def test_best_subset_says_that_it_is_proven(ask):
    which, how_much, _ = answer(ask())
    assert which == (
        "Of 15 features, educ and exper predict lwage; of those kept out, expersq, age, kids5 and "
        "hushrs drive who is selected, and there is no evidence that the other 9 do (best by "
        "BIC of all 32,768 assignments, proven optimal)."
    )
    row = ask().model.tidy().set_index(["equation", "term"]).loc[("prediction", "educ")]
    assert f"one more unit of educ goes with {row['estimate']:.3f} more lwage" in how_much
    assert f"(95% interval {row['ci_low']:.4f} to {row['ci_high']:.3f}" in how_much
    assert how_much.endswith("least squares on the selected rows says 0.109.")


def test_caveats_after_a_search(ask):
    said = claims(ask())
    assert "account for the search" in said
    assert "5 other assignments are within 2 of the best in BIC" in said
    assert "no data can show that. That they were not chosen to predict is no evidence" in said
    assert "they are weak" in said
    assert "not a causal effect" in said


def test_the_report_of_an_average_has_the_chances_and_speaks_of_no_exclusion(ask):
    analysis = ask(search="average")
    page = " ".join(render(analysis).split())
    role = "<td>no sign that it predicts</td>"
    assert page.count(role) == (analysis.model.inclusion_["bic"] < 0.1).sum()
    assert "rho times sigma in each assignment" in page
    assert "Only features with a BIC share of 50% or more" in page
    assert "excluded features" not in page
    assert "should not predict" not in page


def test_without_a_search_nothing_is_said_of_one(ask):
    analysis = ask(**SPECIFIED)
    which, how_much, _ = answer(analysis)
    assert which == (
        "Of 15 features, educ, exper and expersq are taken to predict lwage; of those kept out, "
        "age, kids5 and hushrs drive who is selected, and there is no evidence that the other 9 do."
    )
    assert "one more unit of educ goes with" in how_much
    said = claims(analysis)
    assert "search" not in said
    assert "is no evidence of it" not in said


def test_without_an_exclusion_only_the_normal_law_identifies(ask):
    analysis = ask(search="none")
    assert answer(analysis)[0] == (
        "All 15 features are taken to predict lwage; none is kept out of the prediction equation."
    )
    said = claims(analysis)
    assert "only normality of the errors identifies the model" in said
    assert "exclusions are valid" not in said


def test_a_window_says_that_rho_tests_nothing(ask):
    analysis = ask(rho_range=(0.05, 0.5))
    assert "among those with rho from 0.05 to 0.5, proven optimal" in answer(analysis)[0]
    said = claims(analysis)
    assert "chosen so that rho is in [0.05, 0.5], and it tests nothing" in said
    assert "does not differ from zero" not in said


def test_heckman_fa_claims_no_proof(ask):
    analysis = ask(search="fa", criterion="bic")
    which = answer(analysis)[0]
    n = analysis.model.n_assignments_
    assert f"(best by BIC of {n:,} assignments evaluated, out of 32,768)" in which
    assert "proof" not in which
    assert f"{n:,} of 32,768 were evaluated" in claims(analysis)


def test_heckman_fa_star_and_correlation(ask):
    for search in ("fa-star", "correlation"):
        analysis = ask(search=search)
        assert "best by adjusted R2 of" in answer(analysis)[0]
        assert "no assignment is better" in claims(analysis)


def test_honest_estimates_may_be_said_to_account_for_the_search(ask):
    analysis = ask(honest=True)
    which = answer(analysis)[0]
    assert "chosen by BIC in at least half of 50 random halves of the rows" in which
    said = claims(analysis)
    assert "account for the search" not in said
    assert "honest estimates are those of a true model" in said


def test_maximum_likelihood(ask):
    analysis = ask(method="ml", **SPECIFIED)
    assert "does not differ from zero at 5%" in claims(analysis)
    assert ("Estimation", "Maximum likelihood of both equations together.") in describe_question(
        analysis
    )


def test_weights_and_clusters_are_told(ask):
    said = dict(describe_question(ask(weights="weight", **SPECIFIED)))
    assert said["Weights"] == "weight (frequency): a row counts as often as its weight says."
    said = dict(
        describe_question(
            ask(weights="weight", weight_kind="sampling", cluster="county", **SPECIFIED)
        )
    )
    assert "that much of the population" in said["Weights"]
    assert "the same county" in said["Standard errors"]
    assert "Robust" in dict(describe_question(ask(robust=True, **SPECIFIED)))["Standard errors"]


def test_a_category_is_compared_with_its_reference(ask):
    analysis = ask(search="none", features=("region", "kids5", "age"), select_only=("kids5", "age"))
    which, how_much, _ = answer(analysis)
    assert which == (
        "Of 3 features, region is taken to predict lwage; age and kids5 drive who is selected."
    )
    reference = analysis.encoding.references["region"]
    assert f" rather than region[{reference}] goes with " in how_much


def test_a_feature_of_0_and_1_is_no_amount(ask):
    analysis = ask(search="none", features=("city", "kids5", "age"), predict_with=("city",))
    assert ", city = 1 rather than 0 goes with " in answer(analysis)[1]


def test_less_is_said_of_a_negative_coefficient(ask):
    analysis = ask(search="none", features=("kids618", "kids5"), predict_with=("kids618",))
    assert analysis.model.coef_[list(analysis.loaded.X).index("kids618")] < 0
    assert " less lwage (" in answer(analysis)[1]


def test_rows_that_miss_a_feature_are_counted_and_not_claimed_for(ask):
    analysis = ask(search="none", features=("educ", "kids5", "gaps"), predict_with=("educ",))
    fates = rows_by_use(analysis)
    assert sum(n for _, n in fates) == 753
    assert ("Left out: a feature is missing", 76) in fates
    assert "the rows left out are like the others: 76 of 753 (10%) lack a feature" in claims(
        analysis
    )


def test_filled_in_means_are_not_claimed_for(ask):
    analysis = ask(
        search="none", features=("educ", "kids5", "gaps"), predict_with=("educ",), missing="mean"
    )
    assert sum(n for _, n in rows_by_use(analysis)) == 753
    assert "standard errors take the average as if it had been observed" in claims(analysis)


def test_with_no_outcome_missing_it_is_least_squares(mroz_file):
    frame = pd.read_csv(mroz_file)[["educ", "exper", "age", "lwage"]]
    frame["weight"] = frame["lwage"].notna().astype(int)
    path = mroz_file.parent / "observed.csv"
    frame.to_csv(path, index=False)
    analysis = analyse(Question(str(path), "lwage", weights="weight"))
    which, how_much, caveats = answer(analysis)
    assert which == (
        "All 3 features predict lwage; no outcome is missing in the fit, so no selection was "
        "modelled."
    )
    assert how_much.startswith(
        "With the other features held equal, one more unit of educ goes with 0.1"
    )
    assert caveats[0].startswith("That selection was corrected for: no outcome is missing")
    assert ("Left out: the weight is zero", 325) in rows_by_use(analysis)
    pytest.importorskip("plotly", reason="the page needs the extra plots")
    html = render(analysis)
    assert "there is no selection equation" in html
    assert 'id="plot-predicted"' in html
    assert 'id="plot-lambda"' not in html


def test_selected_by_a_column(ask):
    said = dict(describe_question(ask(selected="lfp", **SPECIFIED)))
    assert said["Who is selected"] == "The rows in which lfp says so."


def test_roles_are_told(ask):
    said = dict(
        describe_question(ask(always=("educ",), select_only=SELECT_ONLY, exclude=("hushrs",)))
    )
    assert said["Always predict"] == "educ."
    assert said["Kept out of prediction"] == "kids5, kids618 and nwifeinc."
    assert "but hushrs" in said["Features"]
    assert said["Window of rho"].startswith("None")
    assert said["Search"].startswith("Branch and bound")
    assert dict(describe_question(ask(**SPECIFIED)))["Predict"] == "Only educ, exper and expersq."


def test_trouble_comes_first(ask):
    analysis = ask(**SPECIFIED)
    found = analysis.model.diagnostics(analysis.loaded.X)
    outside = replace(found, rho=1.2, rho_outside=True, share_outside=0.4, imr_vif=50.0)
    model = copy.deepcopy(analysis.model)
    model._fit = replace(model.fit_, rho=1.2, converged=False, second_maximum=(-1.0, 0.87))
    broken = replace(analysis, model=model)
    vars(broken)["diagnostics"] = outside
    said = answer(broken)[2]
    assert said[0].startswith("That these are the estimates: the iteration did not converge")
    assert said[1].startswith("That rho is a correlation: its estimate, 1.200, is outside (-1, 1)")
    assert "at rho = 0.870" in said[2]
    text = " ".join(said)
    assert "40% of the rows lie beyond" in text
    assert "(VIF 50.0)" in text


def test_comparison_is_that_of_the_summary(ask):
    analysis = ask()
    table = analysis.coefficients
    beside = analysis.model.summary().comparison.set_index("term")
    ours = table.set_index("term")
    for term in beside.index:
        np.testing.assert_allclose(ours.loc[term, "all_features"], beside.loc[term, "all_features"])
        np.testing.assert_allclose(ours.loc[term, "least_squares"], beside.loc[term, "naive"])


def test_comparison_without_a_search(ask):
    analysis = ask(select_only=SELECT_ONLY, **SPECIFIED)
    found = analysis.comparison
    assert found.n_all == 12
    assert found.is_solved
    assert set(found.terms[found.terms["kind"] == "left out"]["term"]).isdisjoint(SELECT_ONLY)
    whole = ask(search="none")
    assert whole.comparison.is_whole
    assert whole.coefficients["all_features"].isna().all()


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.10386, 3, "0.104"),
        (9.9996, 4, "10.00"),
        (-1234.5, 3, "-1,234"),
        (0.0, 4, "0"),
        (float("nan"), 4, ""),
        (2.4e-6, 3, "2.40e-06"),
        (3.2e8, 3, "3.20e+08"),
        (float("inf"), 3, "infinite"),
    ],
)
def test_numbers(value, digits, text):
    assert number(value, digits) == text


def test_counts_and_lists():
    assert count(2**20 - 1) == "1,048,575"
    assert count(2**99) == "about 6.3e+29"
    assert plural(1, "row") == "1 row"
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert some([str(one) for one in range(9)]) == "0, 1, 2, 3, 4, 5 and 3 more"
    assert p_value(0.0001) == "<0.001"
    assert p_value(float("nan")) == ""
