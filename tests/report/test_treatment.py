"""The page of an answer about a treatment: its numbers, its words, and a browser's view."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from tests.report.browsing import Visit
from tests.report.test_browser import findings, fits, unfold

from heckmanfa import TreatmentModel, plots
from heckmanfa.analysis import analyse
from heckmanfa.errors import InputError
from heckmanfa.report import render, write_report

LABELS = {"trained": "Took <the> training", "lwage": "Log of wage", "way": "Way to the course"}
PARAMETERS = re.compile(r"\b(rho[01]?|lambda|sigma[01]?|hazard|probit|Mills|chi2|ρ|λ)\b")


@pytest.fixture(scope="module")
def workers():
    """500 workers of whom some chose a training."""
    rng = np.random.default_rng(11)
    n = 500
    educ, way = rng.integers(8, 18, n), rng.uniform(0, 3, n)
    drive, luck = rng.normal(size=(2, n))
    trained = 1.0 + 0.05 * (educ - 12) - 0.9 * way + drive > 0
    wage = 2.0 + 0.08 * (educ - 12) + np.where(trained, 0.3 + 0.1 * drive, 0.2 * drive) + luck / 4
    frame = pd.DataFrame({"lwage": wage, "educ": educ, "way": way, "trained": trained * 1})
    return frame.assign(region=np.where(educ >= 12, "north", "south"))


def asked(frame, **options):
    options = {"regimes": "separate", "method": "ml", "by": "region"} | options
    return analyse(
        frame,
        outcome="lwage",
        model="treatment",
        treated="trained",
        select_only=["way"],
        exclude=["region"],
        **options,
    )


@pytest.fixture(scope="module")
def analysis(workers):
    return asked(workers)


@pytest.fixture(scope="module")
def model(workers):
    model = TreatmentModel(["educ"], ["educ", "way"], regimes="separate", method="ml")
    return model.fit(workers[["educ", "way"]], workers["lwage"], treated=workers["trained"])


@pytest.fixture(scope="module")
def page(analysis, read_page):
    return read_page(render(analysis))


def said(row):
    return f"{row['estimate']:.3f} ({row['ci_low']:.3f} to {row['ci_high']:.3f})".replace("-", "−")


def test_the_page_has_the_effects_of_the_model(page, model, workers):
    for row in model.effects().to_dict("records"):
        assert said(row) in page.html
    groups = model.effects(
        workers[["educ", "way"]], treated=workers["trained"], by=workers["region"]
    ).query("effect == 'ate'")
    for row in groups.to_dict("records"):
        assert f"<strong>{row['group']}:</strong> {said(row)}" in page.html


def test_the_first_screen_answers_four_questions_without_a_parameter(analysis, page):
    start = page.html.index("<h1")
    first = page.html[start : page.html.index('<section id="whom"')]
    first = re.sub(r"<(svg|table).*?</\1>", " ", first, flags=re.S)
    words = re.sub(r"<[^>]*>", " ", first)
    asks = ["What was the effect?", "For whom?", "Did selection into treatment matter?"]
    for question in (*asks, "Can it be trusted?"):
        assert question in words
    assert not PARAMETERS.search(words)
    assert "Least squares" in words


def test_the_page_of_a_treatment_explains_its_own_words(page):
    explained = page.html[page.html.index('id="glossary"') :]
    assert "Some rows lack the outcome" not in explained
    assert "a lottery" in explained


def test_the_overlap_counts_rows_by_their_probability(model, workers):
    X = workers[["educ", "way"]]
    shown = model.pictures(X, workers["lwage"], treated=workers["trained"]).overlap
    index = model.selection_intercept_ + X.to_numpy() @ model.selection_coef_
    probability = stats.norm.cdf(index)
    treated = workers["trained"] == 1
    for side, bars in ((treated, shown.selected), (~treated, shown.unselected)):
        expected = [
            np.sum((probability[side] >= low) & (probability[side] < low + 0.05))
            for low in np.arange(20) * 0.05
        ]
        np.testing.assert_allclose(bars, expected)
    low = max(probability[treated].min(), probability[~treated].min())
    high = min(probability[treated].max(), probability[~treated].max())
    outside = (probability < low) | (probability > high)
    assert shown.n_outside == outside.sum() > 0
    assert shown.outside == (outside[treated].sum(), outside[~treated].sum())
    ax = plots.treatment_overlap(model, X, workers["lwage"], treated=workers["trained"])
    assert "treatment" in ax.get_xlabel()


def test_typical_rows_are_predicted_in_both_regimes(model, workers):
    X = workers[["educ", "way"]]
    pictures = model.pictures(X, workers["lwage"], treated=workers["trained"])
    people = pictures.people
    assert [person.group for person in people.people] == ["treated"] * 2 + ["untreated"] * 2
    for person in people.people:
        values = np.array([float(value) for _, value in person.features])
        assert np.abs(X.to_numpy() - values).max(axis=1).min() < 0.006
    # A medoid is a row of the data, so the effect on it is that of a row.
    effects = [
        person.expected["treated"].value - person.expected["untreated"].value
        for person in people.people
    ]
    every = model.predict(X, regime=1) - model.predict(X, regime=0)
    assert all(np.abs(every - effect).min() < 1e-9 for effect in effects)


def test_a_profile_is_predicted_with_treatment_and_without(workers, model):
    analysis = asked(workers, profile=["educ=16,way=0.5"])
    row = pd.DataFrame({"educ": [16.0], "way": [0.5]})
    table = analysis.people.set_index("quantity")["estimate"]
    assert table["treated"] == pytest.approx(model.predict(row, regime=1)[0], rel=1e-9)
    assert table["untreated"] == pytest.approx(model.predict(row, regime=0)[0], rel=1e-9)
    assert table["selection"] == pytest.approx(model.predict_treatment(row)[0], rel=1e-9)


def test_what_no_overlap_means_is_a_check_and_a_claim():
    rng = np.random.default_rng(5)
    way, u, e = rng.uniform(-2, 2, 600), *rng.normal(size=(2, 600))
    d = 2.5 * way + u > 0
    frame = pd.DataFrame({"y": d + 0.5 * u + e, "way": way, "x": rng.normal(size=600), "d": d})
    analysis = analyse(frame, outcome="y", model="treatment", treated="d", select_only=["way"])
    check = next(check for check in analysis.checks if check.key == "overlap")
    assert check.level == "caution"
    outside = analysis.treatment.outside
    assert outside.share > 0.05
    assert f"({outside.n_rows} rows)" not in check.value
    assert f"({outside.n_rows})" in check.value
    claim = next(claim for claim in analysis.claims if claim.key == "overlap")
    assert "average over everyone" in str(claim.lead)


def test_a_fitted_model_writes_the_same_effects(model, workers, analysis, tmp_path, read_page):
    X = workers[["educ", "way"]]
    path = tmp_path / "model.html"
    model.report(path, X, workers["lwage"], treated=workers["trained"], by=workers["region"])
    own = read_page(path.read_text(encoding="utf-8"))
    for row in analysis.effects.query("effect == 'ate'").to_dict("records"):
        assert said(row) in own.html
    assert "rows.csv" in own.html
    assert "treated=treated" in own.html


def test_a_fitted_model_says_what_its_page_lacks_without_rows(model, tmp_path):
    path = tmp_path / "model.html"
    model.report(path)
    html = path.read_text(encoding="utf-8")
    assert "pass X and y to report()" in html
    assert "probability of treatment</text>" not in html
    with pytest.raises(InputError, match="by"):
        model.report(path, by="region", force=True)


def test_a_brief_and_a_table_have_the_answer(analysis, tmp_path, model):
    write_report(analysis, tmp_path / "brief.html", brief=True)
    html = (tmp_path / "brief.html").read_text(encoding="utf-8")
    ate = model.effects().iloc[0].to_dict()
    assert f"{ate['estimate']:.3f}" in html
    analysis.save_table(tmp_path / "table.md")
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert said(ate) in text
    assert "Coefficients for lwage" in text


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.study)])
def test_axe_has_no_findings_in_the_page_of_a_treatment(browser, workers, tmp_path, scheme):
    path = tmp_path / "page.html"
    write_report(asked(workers, labels=LABELS), path)
    assert path.stat().st_size < 250_000
    options = {"color_scheme": scheme, "reduced_motion": "reduce"}
    with Visit(browser, path, 1200 if scheme == "light" else 390, **options) as page:
        unfold(page)
        assert findings(page) == []
        fits(page)
        assert "<the>" in page.locator("h1").inner_text()
