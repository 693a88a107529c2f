"""What fits of many kinds say and return is what they said and returned when it was recorded."""

from __future__ import annotations

import contextlib
import re
import warnings
from dataclasses import replace

import pytest
from tests.recorded import compare, flat
from tests.scenes import FITS, LEVELS, MROZ, OTHERS, PLACES, WORKS, X, Y, earns

from heckmanfa import HeckmanProbit
from heckmanfa.errors import HeckmanfaError, HeckmanfaWarning
from heckmanfa.inference.uncertainty import bounds_of
from heckmanfa.results.answer import answer_of, roles_frame
from heckmanfa.results.checks import checks_of
from heckmanfa.results.claims import claims_of
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.may_write import MOST_WORDS, may_write
from heckmanfa.results.reports import Report
from heckmanfa.text.option_words import told

# Left out: a direction whose sign rounding decides, and coefficients that are zero but for it.
ROUNDED = ("5 clusters, ml", "outcome decided")
SCENES = {name: make for name, make in {**FITS, **OTHERS}.items() if name not in ROUNDED}


@pytest.fixture(scope="module", params=SCENES)
def scene(request):
    """A fit's name, the fit, and what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SCENES[request.param]()
    warned = [one for one in caught if issubclass(one.category, HeckmanfaWarning)]
    return request.param, model, warned


def test_every_sentence_is_the_recorded_one(scene):
    name, model, warned = scene
    fit = model.fit_
    facts = model.diagnostics().facts
    evidence = evidence_of(fit)
    checks = checks_of(facts, fit, evidence.outcome)
    asked = evidence.no_exclusion and "bounds of rho" in fit.family.supports
    bounds = bounds_of(fit, evidence.naming) if asked else None
    written = may_write(evidence, checks)
    short_enough(written)
    if any(check.level == "problem" for check in checks):
        # What is in doubt has no number.
        text = " ".join(f"{sentence.paper} {sentence.news}" for sentence in written)
        assert not re.search(r"\d[.%]\d|\d%", text), text
    answer = answer_of(evidence, checks, bounds=bounds, may_write=written)
    parts = [
        *(f"{one.category.__name__}: {one.message}" for one in warned),
        str(model.summary()),
        *(flat(fact, fact.key) for fact in _told(facts)),
        flat(checks, "check"),
        flat(answer, "answer"),
        *(str(claim) for claim in claims_of(evidence, facts, checks)),
        flat(roles_frame(evidence), "roles"),
    ]
    if hasattr(model, "search_report"):
        parts.append(str(model.search_report()))
    compare(f"{name}/words", "\n".join(parts))


JARGON = re.compile(r"\b(lambda|rho|BIC|AIC|weights?|inverse Mills|two-step)\b", re.IGNORECASE)


def short_enough(sentences):
    """Two or three sentences to copy are in plain words, and not long."""
    for sentence in sentences:
        for words in (sentence.paper, sentence.news):
            assert words
            assert len(str(words).split()) <= MOST_WORDS == 60, words
        assert not JARGON.search(str(sentence.news)) or "weight" in str(sentence.news)
    assert 2 <= len(sentences) <= 3
    assert len({sentence.key for sentence in sentences}) == len(sentences)


def _told(facts):
    """Facts as Python tells them, without the values of their titles, which checks have."""
    words = ("meaning", "sentence", "because")
    for fact in facts:
        yield replace(fact, values=None, **{name: told(getattr(fact, name)) for name in words})


def test_every_picture_is_the_recorded_one(scene):
    name, model, _ = scene
    pictures = model.pictures()
    parts = []
    for picture in ("forest", "chances", "assignments", "rho", "over_rho", "imr"):
        try:
            drawn = getattr(pictures, picture)
        except HeckmanfaError as error:
            parts.append(f"{picture}: {error}")
            continue
        if drawn is not None:
            parts.append(flat(drawn.text(), picture))
    compare(f"{name}/pictures", "\n".join(parts))


def test_every_number_of_a_fit_is_the_recorded_one(scene):
    name, model, _ = scene
    compare(f"{name}/fit", flat(model.fit_, "fit"))


# Results that need rows. The arguments are those of the fit.
ROWS = {
    "two-step": (X, Y, {}),
    "ml": (X, Y, {}),
    "12 clusters": (X, Y, {"groups": PLACES % 12}),
    "no exclusion, ml": (X, Y, {}),
    "held": (X, Y, {}),
    "log": (X, MROZ["wage"].where(WORKS), {}),
    "probit": (X, earns(4), {}),
    "average": (X, Y, {}),
    "search": (X, Y, {}),
    "search, probit": (X, earns(4), {}),
    "honest": (X, Y, {}),
    "frequencies": (X, Y, {"sample_weight": 1 + PLACES % 3}),
    "sampling weights, ml": (X, Y, {"sample_weight": 1.0 + PLACES % 3}),
    "categories": (LEVELS, Y, {}),
    "all observed": (X, MROZ["hours"], {}),
}
FEW = [0, 10, 400, 752]
RESULTS = {
    "uncertainty": lambda model, x, y, rows: (
        model.uncertainty_interval(x, y, **rows)
        if isinstance(model, HeckmanProbit)
        else model.uncertainty_interval((-0.6, 0.6), conf_level=0.9, n_grid=5)
    ),
    "what_if": lambda model, x, y, rows: model.what_if(x, y, **rows),
    "exclusion_test": lambda model, x, y, rows: model.exclusion_test(x, y, **rows),
    "specification": lambda model, x, y, rows: model.specification_tests(x, y, **_weights(rows)),
    "rho_profile": lambda model, x, y, rows: model.profile_rho(x, y, grid=7, **_weights(rows)),
    "profile": lambda model, x, y, rows: model.profile(x, y, "educ", grid=5, **_weights(rows)),
    "bootstrap": lambda model, x, y, rows: model.bootstrap(
        x, y, 12, rows.get("groups"), random_state=0, n_jobs=1, **_weights(rows)
    ),
    "margins": lambda model, x, y, rows: model.margins(x, **_weights(rows)),
    "margins_at_means": lambda model, x, y, rows: model.margins(
        x, at="means", conf_level=0.9, **_weights(rows)
    ),
    "margins_fixed": lambda model, x, y, rows: model.margins(
        x, "selection", at={"educ": 12}, features=["exper"], **_weights(rows)
    ),
    "margins_over": lambda model, x, y, rows: model.margins(
        x, "marginal", over=PLACES % 2, what="predictions", **_weights(rows)
    ),
    "mills_ratios": lambda model, x, y, rows: model.mills_ratios(
        x, y, x.iloc[FEW], **_weights(rows)
    ),
    "wald_test": lambda model, x, y, rows: model.wald_test("selection.educ = 2 * selection.age"),
    "tidy": lambda model, x, y, rows: model.tidy(conf_level=0.9),
    "predictions": lambda model, x, y, rows: _predictions(model, x.iloc[FEW]),
}
# A picture of rows for every kind of them.
PICTURES = ("margins", "profiles", "overlap", "residuals", "calibration", "over_rho", "imr")


def _weights(rows):
    return {name: value for name, value in rows.items() if name != "groups"}


def _predictions(model, x):
    found = {"selection": model.predict_selection(x, return_interval="confidence")}
    probit = isinstance(model, HeckmanProbit)
    for kind in ("marginal", "selected", "unselected"):
        predict = model.predict_proba if probit else model.predict
        found[kind] = predict(x, kind=kind)
        for interval in ("confidence",) if probit else ("confidence", "prediction"):
            with contextlib.suppress(HeckmanfaError):
                found[kind, interval] = predict(x, kind=kind, return_interval=interval)
    return found


@pytest.mark.parametrize("scene", ROWS, indirect=True)
def test_every_result_is_the_recorded_one(scene):
    name, model, _ = scene
    x, y, rows = ROWS[name]
    parts = []
    for result, compute in RESULTS.items():
        parts.append(f"== {result}")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", HeckmanfaWarning)
            try:
                found = compute(model, x, y, rows)
            except HeckmanfaError as error:
                parts.append(f"{type(error).__name__}: {error}")
                continue
        parts += [f"{one.category.__name__}: {one.message}" for one in caught]
        if isinstance(found, Report):
            parts += [str(found), *(flat(fact, fact.key) for fact in _told(found.findings()))]
        parts.append(flat(found, result))
    compare(f"{name}/results", "\n".join(parts))


@pytest.mark.parametrize("scene", ROWS, indirect=True)
def test_every_picture_of_rows_is_the_recorded_one(scene):
    name, model, _ = scene
    x, y, rows = ROWS[name]
    pictures = model.pictures(x, y, **_weights(rows))
    drawn = {picture: getattr(pictures, picture) for picture in PICTURES}
    parts = [flat(one.text(), picture) for picture, one in drawn.items() if one is not None]
    compare(f"{name}/row_pictures", "\n".join(parts))


@pytest.mark.parametrize("scene", ["average"], indirect=True)
def test_every_rendering_is_the_recorded_one(scene):
    name, model, _ = scene
    x, y, rows = ROWS[name]
    wanted = ("uncertainty", "margins", "specification", "bootstrap", "rho_profile")
    reports = [RESULTS[result](model, x, y, rows) for result in wanted]
    summary = model.summary(0.9, include=reports)
    labelled = summary.to_latex("A caption", "tab:label"), summary.to_markdown()
    html = summary._repr_html_().replace("><", ">\n<")
    compare(f"{name}/renderings", "\n".join([*labelled, str(summary), html]))
