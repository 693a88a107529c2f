"""The first screen speaks plain words, and what it and the sentences to copy say is true."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.report.conftest import ALL, HOSTILE
from tests.report.test_words import ends, estimate, says
from tests.scenes import PLACES, X, Y
from tests.test_records import JARGON, SCENES, short_enough

from heckmanfa.analysis import analyse
from heckmanfa.report import render
from heckmanfa.report.glossary import TERMS
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.lede import lede

NAMES = ("weight", *HOSTILE.values())
SOME = ("average", "none", "ml", "honest", "window", "category", "sampling", "no exclusion")
CASES = (*SOME, "cluster", "observed", "streamed", "crowded", "hostile", "long", "clear", "binary")
CASES = (*CASES, "ordered", "series")


def first_screen(page):
    """The text between the top of a page and the table below its first picture."""
    html = page.html[page.html.index("<header>") : page.html.index('<section id="which"')]
    html = re.sub(r"<(nav|details|table|svg|figcaption)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


@pytest.mark.parametrize("name", CASES)
def test_no_parameter_of_a_model_is_named_on_the_first_screen(page_of, name):
    words = first_screen(page_of(name))
    for column in NAMES:
        words = words.replace(column, "")
    assert "Did selection matter?" in words
    assert not JARGON.search(words), words[max(JARGON.search(words).start() - 90, 0) :][:200]


def test_every_case_is_held_to_plain_words():
    assert {*ALL} - {*CASES} == {"wide"}, "that of 300 columns is made by `make study`"


# The numbers of the lede. -------------------------------------------------------------------------


def test_a_gap_is_that_of_predictions_for_rows_without_an_outcome(case):
    """E[y | x, s = 0] - E[y | x], averaged over the rows without an outcome."""
    analysis = case("clear")
    model, table = analysis.model, pd.read_csv(analysis.question.data)
    X, seen = table[[f"x{place}" for place in range(5)]], table["y"].notna().to_numpy()
    gap = (model.predict(X, kind="unselected") - model.predict(X))[~seen].mean()
    assert analysis.evidence.judgement.kind == "yes"
    found = re.search(r"would have about (\S+) less y .* interval (\S+) to (\S+)\)", said(analysis))
    row = estimate(analysis, "imr", "errors")
    spread = -gap / row["estimate"]
    values = [float(text) for text in found.groups()]
    np.testing.assert_allclose(values, [-gap, *(spread * end for end in ends(row))], atol=5e-3)


def said(analysis):
    return str(analysis.answer.lede)


def test_the_gap_of_a_weighted_probit_counts_rows_by_their_weights():
    evidence = evidence_of(SCENES["frequencies"]().fit_)
    fit = evidence.fit
    assert fit.n_obs == 2 * 753
    share = fit.n_selected / (fit.n_obs - fit.n_selected)
    assert evidence.gap.estimate == pytest.approx(-evidence.imr.estimate * share * _mean_lambda())


def _mean_lambda():
    """Mean of phi / Phi over the selected rows at the probit's own estimates, by their weights."""
    fit = SCENES["frequencies"]().fit_
    index = fit.selection_intercept + X.to_numpy(float) @ fit.selection_coef
    ratio = stats.norm.pdf(index) / stats.norm.cdf(index)
    seen = Y.notna().to_numpy()
    return np.average(ratio[seen], weights=(1 + PLACES % 3)[seen])


@pytest.mark.parametrize("name", ["clear", "none", "average", "ml", "honest", "streamed"])
def test_the_lede_has_the_effects_with_and_without_the_correction(case, name):
    analysis = case(name)
    feature = analysis.evidence.main
    row, kind = estimate(analysis, feature.name), analysis.evidence.judgement.kind
    if kind == "unknown":
        assert says(lede(analysis.evidence), *sorted(map(abs, ends(row))), 95)
        return
    plain, mine = _least_squares(analysis, feature.name), row["estimate"]
    if analysis.model.fit_.way.is_average:
        # Averaged over sets of features, it is near that of all of them.
        assert plain == pytest.approx(feature.least_squares.estimate, abs=0.02)
        plain = feature.least_squares.estimate
    if f"{plain:.3f}" == f"{mine:.3f}":
        assert said(analysis).endswith(f" at {mine:.3f}.")
    else:
        words = f"{plain:.3f} rather than {mine:.3f}.".replace("-", "\N{MINUS SIGN}")
        assert said(analysis).endswith(words)


def _least_squares(analysis, name):
    """Least squares of the rows with an outcome on the features of the model."""
    fit, path = analysis.model.fit_, analysis.question.data
    table = pd.read_parquet(path) if path.endswith(".parquet") else pd.read_csv(path)
    seen = table[analysis.question.outcome].notna()
    columns = [fit.labels[column] for column in fit.equation]
    design = np.column_stack([np.ones(seen.sum()), table.loc[seen, columns].to_numpy(float)])
    y = table.loc[seen, analysis.question.outcome].to_numpy(float)
    return float(np.linalg.lstsq(design, y, rcond=None)[0][1 + columns.index(name)])


# What you may write. ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_two_or_three_sentences_of_sixty_words_may_be_written(case, page_of, name):
    sentences = case(name).answer.may_write
    short_enough(sentences)
    claims = page_of(name).said("claims")
    for words in (sentences[0].paper, sentences[-1].news):
        assert name in ("hostile", "long") or str(words) in claims
    copied = [one["data-copy"] for _, one in page_of(name).elements if "data-copy" in one]
    written = [key for key in copied if key.startswith("write-")]
    ids = {one.get("id") for _, one in page_of(name).elements}
    assert len({*written}) == 2 * len(sentences)
    assert {*written} <= ids


@pytest.mark.parametrize("name", ["average", "none", "ml", "honest", "observed", "clear"])
def test_what_may_be_written_of_an_effect_has_its_numbers(case, name):
    analysis = case(name)
    row = estimate(analysis, analysis.evidence.main.name)
    sentence = analysis.answer.may_write[0]
    for words in (sentence.paper, sentence.news):
        assert says(words, abs(row["estimate"]))
        assert says(words, *sorted(map(abs, ends(row))))


def test_what_may_be_written_of_a_binary_outcome_is_in_points(case):
    analysis = case("binary")
    effect = analysis.evidence.main.effect
    sentence = analysis.answer.may_write[0]
    assert says(sentence.paper, 100 * effect.estimate)
    assert says(sentence.news, 100 * effect.estimate)
    assert "P(" not in str(sentence.news)
    assert "percentage points" in str(sentence.news)


# Claims and glossary. -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_three_claims_are_open_and_the_rest_is_folded(case, page_of, name):
    html = page_of(name).html
    section = html[html.index('<section id="claims"') :]
    opened = section[: section.index("<details")] if "<details" in section else section
    n = len(case(name).claims)
    assert opened.count("<li><strong>") == min(3, n)
    if n > 3:
        assert f"<summary>{n - 3} more thing" in section


@pytest.mark.parametrize("name", CASES)
def test_no_title_of_a_claim_denies_twice(case, name):
    for claim in case(name).claims:
        negatives = re.findall(r"\b(?:not|no|none|never|nothing|without)\b", str(claim.lead))
        assert len(negatives) <= 1, claim.lead
        assert ", or that " not in str(claim.lead)


@pytest.mark.parametrize("name", ["average", "none", "observed", "binary", "hostile"])
def test_terms_are_explained_where_they_first_stand(page_of, name):
    page = page_of(name)
    ids = {one.get("id") for _, one in page.elements}
    parts = re.split(r'<section id="', page.html)
    for part in [parts[0] + parts[1], *parts[2:]]:
        terms = re.findall(r'<a class="term" href="#(term-[\w-]+)" aria-describedby="\1">', part)
        assert len({*terms}) == len(terms)
        assert {*terms} <= ids
    marked = {*re.findall(r'class="term" href="#(term-[\w-]+)"', page.html)}
    assert {"term-selection", "term-interval"} <= marked
    assert marked == {name for name in ids if name and name.startswith("term-")}
    listed = page.html[page.html.index('<dl class="glossary">') :]
    for term in TERMS:
        if term.key in marked:
            assert f'<dd id="{term.key}">' in listed


def test_rho_and_lambda_are_explained_where_they_stand(page_of):
    marked = {*re.findall(r'class="term" href="#(term-[\w-]+)"', page_of("average").html)}
    assert {f"term-{name}" for name in ("rho", "lambda", "BIC", "weight", "chance")} <= marked


def test_the_outcome_is_not_marked_as_a_feature_by_any_of_its_names(mroz_file):
    table = pd.read_csv(mroz_file)[["educ", "exper", "kids5", "lwage"]]
    table["wage"] = np.exp(table.pop("lwage"))
    analysis = analyse(
        table, outcome="wage", outcome_transform="log", search="none", predict_with=("educ",)
    )
    html = render(analysis)
    assert "those without wage" in str(analysis.answer.lede)
    assert analysis.evidence.outcome_names == ("log(wage)", "wage")
    assert 'data-f="educ"' in html
    assert 'data-f="wage"' not in html
    assert 'data-f="wage"' not in analysis._repr_html_()
