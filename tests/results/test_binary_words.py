"""What the results of a Heckman probit say: of a probability, and never of a linear model."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from tests.results.shared import PREDICT, SELECT, earns_four, fitted

from heckmanfa import HeckmanProbit, HeckmanProbitBestSubset
from heckmanfa.fit import BINARY
from heckmanfa.fit.fitted import ErrorEstimate
from heckmanfa.results.answer import answer_of
from heckmanfa.results.answer_html import card_html
from heckmanfa.results.assignment_weights import weights_of
from heckmanfa.results.catalogue import TableFacts, facts_of_answer, facts_of_fit
from heckmanfa.results.checks import check_of, checks_of
from heckmanfa.results.claims import claims_of
from heckmanfa.results.effects import Effect, assignments_of, effects_of
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.evidence_pictures import chances_of, columns_of, forest_of
from heckmanfa.results.exclusions import find_exclusions
from heckmanfa.results.fit_tests import rho_lr
from heckmanfa.results.funnel import funnel_of
from heckmanfa.results.judgement import Judgement
from heckmanfa.results.lede import lede, verdict
from heckmanfa.results.may_write import may_write
from heckmanfa.results.naming import EffectWords, class_label
from heckmanfa.results.section_words import selection_words, which_words
from heckmanfa.results.side_by_side import side_by_side

# Words that only a linear model has.
LINEAR = re.compile(
    r"least squares|lambda|Mills|sigma|two[- ]step|R2|logarithm|more wage4|more y\b"
)

# What users of the linear model look for in the diagnostics.
NO_IMR = (
    "lambda on the features: none\n          A Heckman probit has no term in lambda, so there is "
    "no R2 or VIF of it: exclusions separate selection from prediction."
)


@pytest.fixture(scope="module")
def rows():
    return earns_four()


@pytest.fixture(scope="module")
def models(rows):
    """A fit of each mode without a search."""
    X, y = rows
    seen = y.notna()
    return {
        "given": fitted(HeckmanProbit(PREDICT, SELECT), X, y),
        "robust": fitted(HeckmanProbit(PREDICT, SELECT, cov_type="robust"), X, y),
        "no exclusion": fitted(HeckmanProbit(SELECT, SELECT), X, y),
        "observed": fitted(HeckmanProbit(PREDICT, SELECT), X[seen], y[seen]),
    }


def checks_and_facts(model):
    fit, found = model.fit_, model.diagnostics()
    table = TableFacts(funnel_of(fit, fit.row_counts, {}, "y"), False, find_exclusions(fit))
    return checks_of(found.facts, fit, "wage4"), facts_of_answer(fit, found, table)


def everything_said(model):
    """Every sentence about a model, by where it is said."""
    evidence = evidence_of(model.fit_)
    checks, facts = checks_and_facts(model)
    text = forest_of(evidence).text()
    return {
        "summary": str(model.summary()),
        "latex": model.summary().to_latex(),
        "markdown": model.summary().to_markdown(),
        "diagnostics": str(model.diagnostics()).replace(NO_IMR, ""),
        "checks": "\n".join(f"{check} {check.do}" for check in checks),
        "answer": str(answer_of(evidence, checks)),
        "may write": "\n".join(
            f"{item.paper}\n{item.news}" for item in may_write(evidence, checks)
        ),
        "claims": "\n".join(map(str, claims_of(evidence, facts, checks))),
        "selection": " ".join(map(str, (*selection_words(evidence), which_words(evidence)))),
        "forest": f"{text.title} {text.alt} {text.caption} {text.table.caption}",
    }


@pytest.mark.parametrize("mode", ["given", "robust", "no exclusion", "observed"])
def test_nothing_of_a_linear_model_is_said(models, mode):
    for where, words in everything_said(models[mode]).items():
        assert words or where == "selection"
        assert not LINEAR.search(words), (where, LINEAR.search(words))


def test_the_summary_of_a_plain_probit_says_so(models):
    said = str(models["observed"].summary())
    assert said.startswith("Probit (no outcome is missing)")
    assert "rho = 0" not in said
    assert "plain probit" in str(verdict(evidence_of(models["observed"].fit_)).words)


def test_the_answer_speaks_of_points_of_a_probability(models):
    evidence = evidence_of(models["given"].fit_)
    answer = answer_of(evidence)
    points = f"{100 * evidence.main.effect.estimate:.1f}"
    assert str(answer.headline) == (
        f"With selection accounted for, one more educ goes with +{points} percentage points in "
        "P(wage4 = 1)."
    )
    low, high = (
        f"{100 * end:.1f}" for end in (evidence.main.effect.low, evidence.main.effect.high)
    )
    assert f"95% interval {low} to {high}." in str(answer.how_much)
    assert "A probit of the rows with an outcome alone, which ignores selection, says" in str(
        answer.how_much
    )
    assert "The test of rho = 0 has p = " in str(answer.selection.numbers)
    written = " ".join(map(str, may_write(evidence)))
    assert "average marginal effect" in written
    assert "Heckman probit" in written


def test_the_slope_of_a_switch_is_called_a_slope(rows):
    X, y = rows
    model = fitted(HeckmanProbit(["city"], SELECT), X, y)
    assert "an average slope, not the difference" in str(answer_of(evidence_of(model.fit_)))


def test_the_likelihood_ratio_decides_whether_selection_mattered(models):
    fit = models["given"].fit_
    far = replace(fit.details, independent_log_likelihood=fit.log_likelihood - 5.0)
    evidence = evidence_of(replace(fit, details=far))
    assert evidence.judgement.kind == "yes"
    assert "would be rare (p = 0.002)" in str(verdict(evidence).words)
    near = replace(fit.details, independent_log_likelihood=fit.log_likelihood - 0.1)
    assert evidence_of(replace(fit, details=near)).judgement.kind != "yes"


def test_a_yes_says_who_is_likelier_and_how_far_ignoring_it_moves_the_main_effect(models):
    evidence = evidence_of(models["given"].fit_)
    main = evidence.main
    mine, other = (f"{100 * one.estimate:.1f}" for one in (main.effect, main.least_squares))
    moved = f": {other} rather than {mine} percentage points."
    for rho, less in ((0.5, "lower"), (-0.5, "higher")):
        strong = replace(evidence.effects, rho=Effect(rho, rho - 0.1, rho + 0.1))
        judged = Judgement("yes", test=evidence.judgement.test, exclusion_named=True)
        said = str(lede(replace(evidence, effects=strong, judgement=judged)))
        assert f"those without wage4 would have a {less} P(wage4 = 1) than average" in said
        assert said.endswith(moved)


def test_no_exclusion_is_graver_than_in_a_linear_model(models):
    model = models["no exclusion"]
    (fact,) = [item for item in facts_of_fit(model.fit_) if item.key == "exclusions"]
    assert (fact.level, fact.case) == ("problem", "none")
    assert "binary outcome says little" in fact.sentence
    assert "can hardly contradict" in str(model.diagnostics())
    assert str(may_write(evidence_of(model.fit_))[0]).endswith("reported as a finding.")


def test_the_forest_is_in_points_with_an_axis_that_says_so(models):
    evidence = evidence_of(models["given"].fit_)
    forest = forest_of(evidence)
    assert forest.unit == "percentage points"
    assert forest.text().title == "What goes with P(wage4 = 1), by two models"
    assert [one.label for one in forest.series] == ["this model", "naive probit, same features"]
    row = next(row for row in forest.rows if row.name == "educ")
    feature = next(one for one in evidence.features if one.name == "educ")
    assert row.estimates[0].value == pytest.approx(100 * feature.effect.estimate)
    words = "percentage points of P(wage4 = 1), with the step beside each name"
    assert words in forest.svg(1000)
    assert ">points of P(wage4 = 1)<" in forest.svg(320)
    assert "in percentage points" in forest.text().alt


def test_diagnostics_leave_out_what_a_probit_does_not_have(models):
    found = models["given"].diagnostics()
    assert NO_IMR in str(found)
    keys = [check.key for check in found.checks()]
    assert not {"imr_r2", "leakage", "hausman", "equal_variance", "uncertainty"} & {*keys}
    assert {"exclusions", "events", "naive_probit", "rho", "rho_test", "rho_lr_test"} <= {*keys}
    assert (found.n_positive, found.n_negative) == (174, 254)
    assert np.isnan([found.imr_r2, found.imr_vif, found.r2]).all()
    assert not found.imr_collinear
    assert found.to_dict()["n_positive"] == 174


def test_few_rows_of_a_class_are_a_caution_with_its_rule_of_thumb(rows):
    X, y = rows
    rare = y.where(y.isna() | (np.arange(len(y)) % 9 == 0), 0.0)
    model = fitted(HeckmanProbit(PREDICT, SELECT), X, rare)
    (found,) = [check for check in model.diagnostics().checks() if check.key == "events"]
    assert found.level == "caution"
    assert "rule of thumb asks for 10" in found.meaning
    checks, facts = checks_and_facts(model)
    assert any(check.key == "events" and check.level == "caution" for check in checks)
    assert sum(check.key == "events" for check in checks) == 1
    said = [str(claim) for claim in claims_of(evidence_of(model.fit_), facts, checks)]
    assert any("the rarer class has" in words for words in said)


def test_an_interval_of_rho_at_the_boundary_is_not_to_be_claimed(models):
    fit = models["given"].fit_
    wide = fit.with_errors(rho=ErrorEstimate(float(np.tanh(1.5)), (1.5, 0.6)))
    keys = {fact.key for fact in facts_of_fit(wide)}
    assert "rho_near_boundary" in keys
    assert "rho_near_boundary" not in {fact.key for fact in facts_of_fit(fit)}


def test_rho_near_one_advises_nothing_that_a_probit_lacks(models):
    edge = models["given"].fit_.with_errors(rho=ErrorEstimate(0.9999, (4.95, 2.0)))
    (fact,) = [item for item in facts_of_fit(edge) if item.key == "rho"]
    assert fact.case == "near one"
    assert "boundary" in fact.sentence
    assert not LINEAR.search(fact.sentence)


def test_a_column_that_decides_the_outcome_is_named(rows):
    X, y = rows
    seen = y.notna()
    decided = (X["educ"] >= 13).astype(float)
    model = fitted(HeckmanProbit(PREDICT, SELECT), X[seen], decided[seen])
    (found,) = [one for one in model.diagnostics().checks() if one.key == "outcome_separation"]
    assert found.verdict == "problem"
    assert found.names == ("educ",)
    (check,) = check_of(found, model.fit_, "wage4")
    assert check.title == "wage4 is decided by educ."
    assert not any(one.key == "convergence" for one in model.diagnostics().checks())
    assert "outcome_separation" in {fact.key for fact in facts_of_fit(model.fit_)}


def test_rows_that_a_column_decides_are_counted_and_the_column_named(rows):
    X, y = rows
    X = X.assign(mark=((y == 1.0) & (X["exper"] > 15)).astype(float))
    model = fitted(HeckmanProbit([*PREDICT, "mark"], [*SELECT, "mark"], on_separation="drop"), X, y)
    (found,) = [one for one in model.diagnostics().checks() if one.key == "decided_rows"]
    assert found.verdict == "caution"
    assert re.match(r"\d+ rows left out; ", found.value)
    assert "mark" in found.value


HOSTILE = ["=1+1<b>x</b>\u202eb\x1b[2J", "50%_$&#{}~^\\"]


@pytest.mark.parametrize("label", HOSTILE)
def test_hostile_class_labels_are_harmless(rows, label):
    X, y = rows
    hostile = pd.Series(np.where(y.isna(), None, np.where(y == 1.0, label, " no")), name="<i>out")
    model = fitted(HeckmanProbit(PREDICT, SELECT), X, hostile)
    evidence = evidence_of(model.fit_)
    checks, _ = checks_and_facts(model)
    forest = forest_of(evidence)
    answer = answer_of(evidence, checks, may_write=may_write(evidence, checks))
    pages = [
        model.summary()._repr_html_(),
        card_html(answer, forest, evidence.outcome_names),
        forest.svg(1000),
    ]
    for page in pages:
        assert "<b>x" not in page
        assert "<i>out" not in page
    for text in (*pages, str(model.summary()), str(model.diagnostics()), str(answer)):
        assert "\u202e" not in text
        assert "\x1b" not in text
    if label == HOSTILE[-1]:
        assert "50%_$" not in model.summary().to_latex()


@pytest.mark.parametrize(
    ("outcome", "classes", "said"),
    [
        ("recid", ("no", "yes"), "P(recid = 'yes')"),
        ("recid", (0, 1), "P(recid = 1)"),
        ("recid", (0.0, 1.0), "P(recid = 1)"),
        ("recid", (False, True), "P(recid = True)"),
        ("wage >= 4", (False, True), "P(wage >= 4)"),
        ("wage >= 4", (0.0, 1.0), "P(wage >= 4)"),
        ("wage >= 4", (True, False), "P(wage >= 4 = False)"),
    ],
)
def test_a_probability_names_the_class_that_is_modelled(outcome, classes, said):
    assert str(EffectWords(outcome, classes).target) == said


def test_points_have_one_decimal_unless_all_are_below_one():
    words = EffectWords("y", (0, 1), family=BINARY.words)
    assert words.numbers(0.0412, 0.012, 0.07) == ["4.1", "1.2", "7.0"]
    assert words.numbers(-0.00412, 0.0, np.nan) == ["\u22120.41", "0", ""]
    assert str(words.amount(-0.0412, -0.1, 0.02)) == "\u22124.1 percentage points in P(y = 1)"
    assert class_label(1.5) == "1.5"


def test_advice_about_rho_names_no_estimator_that_a_probit_lacks(models):
    edge = models["given"].fit_.with_errors(rho=ErrorEstimate(0.9999, (4.95, 2.0)))
    for fact in facts_of_fit(edge):
        for check in check_of(fact, edge, "wage4"):
            assert not re.search(r"two-step|rho_range|least squares|lambda", check.do), check


@pytest.fixture(scope="module")
def searched(rows):
    X, y = rows
    model = HeckmanProbitBestSubset(n_refits=6, never=["kids5"])
    return fitted(model, X[["educ", "exper", "city", "kids5", "nwifeinc"]], y)


def test_a_search_says_nothing_of_a_linear_model_and_what_is_proven(searched):
    said = everything_said(searched)
    for where, words in said.items():
        assert not LINEAR.search(words), (where, LINEAR.search(words))
    assert "refitted by maximum likelihood, proven the best of all 16" in " ".join(
        said["summary"].split()
    )
    assert "ignore the search" in said["answer"]
    report = str(searched.search_report())
    assert "Refitted exactly:" in report
    assert "Pairs in the same order:" in report
    assert not LINEAR.search(report)


def test_the_model_of_all_features_is_that_of_a_fit_with_them(searched, rows):
    X, y = rows
    columns = ["educ", "exper", "city", "kids5", "nwifeinc"]
    whole = fitted(HeckmanProbit(["educ", "exper", "city", "nwifeinc"]), X[columns], y)
    beside = side_by_side(searched.fit_)
    assert beside.is_solved
    terms = beside.terms.set_index("term")["all_features"]
    expected = [whole.intercept_, *whole.coef_[[0, 1, 2, 4]], whole.rho_, whole.log_likelihood_]
    names = ["Intercept", "educ", "exper", "city", "nwifeinc", "rho", "log_likelihood"]
    np.testing.assert_allclose(terms[names].to_numpy(), expected, rtol=1e-4, atol=1e-6)
    assert terms["bic"] == pytest.approx(whole.bic_)
    found = evidence_of(searched.fit_).all_features
    series = effects_of(whole.fit_).own
    for column in (0, 1, 2, 4):
        mine, other = found.coef.of(column), series.of(column)
        assert mine.estimate == pytest.approx(other.estimate, rel=1e-3, abs=1e-6)
        assert mine.low == pytest.approx(other.low, rel=1e-3, abs=1e-5)
    assert found.rho_interval == pytest.approx(
        tuple(whole.tidy().set_index("term").loc["rho", ["ci_low", "ci_high"]]), abs=1e-3
    )


def test_pictures_of_a_search_have_no_model_without_numbers(searched):
    evidence = evidence_of(searched.fit_)
    forest = forest_of(evidence)
    assert [one.label for one in forest.series] == [
        "this model",
        "naive probit, same features",
        "Heckman probit, all features",
    ]
    chances = chances_of(evidence)
    assert not chances.has_least_squares
    columns = columns_of(evidence)
    assert np.isfinite(columns.bic[0])
    assert np.isfinite(columns.rho[0])
    assert "p of lambda" not in str(columns.text().table.columns)
    assert columns.weight.sum() <= 1.0 + 1e-12
    assert card_html(answer_of(evidence), forest, evidence.outcome_names)


def test_sets_that_were_not_refitted_are_near_their_exact_fits(searched, rows):
    X, y = rows
    columns = ["educ", "exper", "city", "kids5", "nwifeinc"]
    refitted = {tuple(mask) for mask in searched.fit_.search.result.masks}
    # Without educ, which predicts for sure, the approximation is far from its centre.
    masks = [(True, *rest) for rest in product([True, False], repeat=3)]
    masks = np.array([(*mask[:3], False, mask[3]) for mask in masks])
    others = [mask for mask in masks if tuple(mask) not in refitted]
    assert others
    form = weights_of(searched.fit_).form
    states = np.column_stack([others, np.ones(len(others), bool), np.zeros(len(others), bool)])
    for mask, near in zip(
        others, assignments_of(searched.fit_, form, states, effects_of(searched.fit_)), strict=True
    ):
        names = [name for name, held in zip(columns, mask, strict=True) if held]
        exact = fitted(HeckmanProbit(names), X[columns], y)
        scaled = searched.fit_.details.mean_slope * exact.coef_[mask]
        error = exact.tidy()["std_error"][1 : 1 + len(names)] * exact.fit_.details.mean_slope
        found = np.array([near.coef.of(column).estimate for column in np.flatnonzero(mask)])
        assert np.all(np.abs(found - scaled) < 0.5 * error), names
        assert near.rho == pytest.approx(exact.rho_, abs=0.15)
    held = columns_of(evidence_of(searched.fit_)).cells[0]
    assert set(held.tolist()) <= {0, 1}


def test_a_plain_probit_of_a_search_says_that_nothing_was_searched(rows):
    X, y = rows
    seen = y.notna()
    model = fitted(HeckmanProbitBestSubset(), X[seen], y[seen])
    assert "Nothing was searched" in str(model.summary())
    assert not LINEAR.search(str(answer_of(evidence_of(model.fit_))))


@pytest.mark.study
def test_honest_halves_speak_of_points_and_have_walds_test_alone(rows):
    X, y = rows
    model = HeckmanProbitBestSubset(never=["kids5"], honest=True, n_splits=4, random_state=0)
    model = fitted(model, X[["educ", "exper", "kids5"]], y)
    said = everything_said(model)
    for where, words in said.items():
        assert not LINEAR.search(words), (where, LINEAR.search(words))
    assert "Wald test of rho = 0" in said["summary"]
    assert rho_lr(model.fit_) is None
    assert "LR test" not in said["diagnostics"]
    assert "percentage points in P(wage4 = 1)" in said["answer"]
    columns = columns_of(evidence_of(model.fit_))
    assert columns.halves == 4
    assert np.isfinite(columns.rho).all()
