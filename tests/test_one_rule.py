"""One rule decides what is said of features and of selection; no output says anything else.

Random tables are analysed in every way. What each output says must follow from the chances.
"""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from heckmanfa import HeckmanAverage
from heckmanfa.analysis import analyse, checking
from heckmanfa.cli.answer_json import as_json
from heckmanfa.cli.answer_screen import show
from heckmanfa.errors import HeckmanfaError
from heckmanfa.report import write_report
from heckmanfa.results.claims import claims_of
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.lede import verdict
from heckmanfa.results.may_write import may_write
from heckmanfa.text.chances import CHANCES_BY, COVERAGE
from heckmanfa.text.wording import chance_text

ROOT = Path(__file__).parent.parent
NAMES = list("abcdef")
# What only an answer of one kind may say, in any output.
ONLY = {
    "yes": (
        r"those without y (would have|differ from others with the same features, but)",
        r"(?<!hether )[sS]election on what was not observed took place",
        r"(?<!no sign that )(?<!Either )\bselection mattered\b(?= *(\n|\"|$))",
    ),
    "no sign": ("no sign that those without y", "no sign of selection on what", "No sign of it"),
    "unknown": (
        "selection mattered cannot be told",
        "same features cannot be told from these data",
        "Either selection mattered",
        "Either those without y",
        "do not tell whether selection",
    ),
    "unreliable": ("is not known: this model is not to be relied on",),
    "not weighed": ("with the same features was not examined",),
}
NEVER = (
    "too little to matter",
    "sign of selection on unobservables",
    "rejects rho = 0",
    "finds it",
)
SHARE = {"aic": 0.3, "bic": 0.1, "ebic": 0.1}[CHANCES_BY]


def a_table(seed):
    """Draw a table and how to ask about it: both families, small, any rho, with an exclusion."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.choice([120, 250, 600])), int(rng.integers(2, 6))
    rho, binary = rng.choice([0.0, 0.5, 0.8]), seed % 4 == 3
    X = rng.normal(size=(n, k))
    gamma = rng.uniform(0.2, 0.9, k) * rng.choice([-1, 1], k)
    truth = rng.integers(4)
    beta = [0.5 * gamma, rng.normal(0, 0.5, k), np.zeros(k), rng.binomial(1, 0.5, k) * 0.8][truth]
    excluded = NAMES[:1] if seed % 2 else []
    if excluded:
        gamma[0], beta[0] = 1.0, 0.0
    u = rng.normal(size=n)
    y = X @ beta + rho * u + np.sqrt(1 - rho**2) * rng.normal(size=n)
    y = (y > 0).astype(float) if binary else y
    table = pd.DataFrame(X, columns=NAMES[:k]).assign(y=np.where(X @ gamma + u > 0, y, np.nan))
    search = ("average", "best-subset", "average", "none")[(seed // 4) % 4]
    options = {"outcome": "y", "search": search}
    if search == "none":
        options["predict_with"] = NAMES[1:k] if excluded else NAMES[:k]
    elif excluded:
        options["select_only"] = excluded
    if seed % 5 == 4 and not binary:
        options["method"] = "ml"
    return table, options


def texts_of(analysis, page):
    """Return every output as plain text, by its name."""
    screen = io.StringIO()
    show(analysis, Console(file=screen, width=100))
    outputs = {
        "answer": str(analysis.answer),
        "may write": "\n".join(f"{item.paper}\n{item.news}" for item in analysis.answer.may_write),
        "claims": "\n".join(map(str, analysis.claims)),
        "checks": "\n".join(map(str, analysis.checks)),
        "summary": str(analysis.model.summary()),
        "diagnostics": str(analysis.model.diagnostics()),
        "console": screen.getvalue(),
        "json": "\n".join(strings(as_json(analysis))),
    }
    if page is not None:
        write_report(analysis, page)
        html = page.read_text(encoding="utf-8")
        html = re.sub(r"<(style|script).*?</\1>", "", html, flags=re.S)
        outputs["report"] = re.sub(r"<[^>]+>", " ", html)
    return {name: re.sub(r"[ \n]+", " ", text) for name, text in outputs.items()}


def strings(value):
    """Yield the texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def says(chance):
    """State the rule a second time."""
    return "yes" if chance >= 0.9 else "no sign" if chance < SHARE else "unknown"


def hold_verdict(analysis, texts):
    """Every output says the same of selection, and it follows from the chance."""
    found, fit = verdict(analysis.evidence), analysis.model.fit_
    judged = analysis.evidence.judgement
    trust = analysis.answer.trust
    if fit.average is not None and fit.average.mixture.correction == "optional":
        shares = analysis.model.inclusion_.set_index("feature")[CHANCES_BY]
        assert judged.chance == shares["correction"]
    if judged.chance is not None:
        assert judged.kind in (says(judged.chance), "unreliable")
        assert (
            f"did is {chance_text(judged.chance)}" in str(found.words)
            or judged.kind == "unreliable"
        )
    if trust.kind == "problem":
        assert judged.kind not in ("yes", "no sign"), trust.words
    if judged.kind == "unreliable":
        known = ("too few rows", "two-step estimates do not confirm it", "rho near its bounds")
        doubt = analysis.evidence.judgement.doubt
        assert trust.kind == "problem" or any(words in doubt for words in known)
        assert ">99%" not in str(found.words)
    for name, text in texts.items():
        for never in NEVER:
            assert never not in text, (name, never)
        for kind, phrases in ONLY.items():
            for phrase in phrases:
                assert kind == judged.kind or not re.search(phrase, text), (name, kind, phrase)
    assert found.title in texts["answer"]
    assert str(found.sentence) in texts["answer"]
    written = as_json(analysis)
    assert written["selection"]["verdict"] == judged.kind
    assert written["answer"]["verdicts"]["selection"]["title"] == found.title
    claims = {claim.key for claim in analysis.claims}
    open_to = judged.chance is not None and judged.kind in ("no sign", "unknown")
    assert ("no_selection" in claims) == open_to


def hold_features(analysis):
    """Roles follow from chances, and intervals from roles, in every output alike."""
    model, evidence = analysis.model, analysis.evidence
    written = {row["feature"]: row for row in as_json(analysis)["roles"]}
    averaged = model.fit_.average is not None
    table = model.tidy().query("equation == 'prediction'").set_index("term")
    for feature in evidence.features:
        row = written[feature.name]
        assert (row["role"], row["chance"]) == (feature.role, feature.chance)
        if feature.chance is None:
            continue
        said = says(feature.chance)
        assert feature.role.startswith("predicts") == (said == "yes")
        assert feature.role.startswith("cannot be told") == (said == "unknown")
        if feature.role == "predicts":
            assert says(feature.alone) == "yes"
        if feature.role.endswith("as it drives selection"):
            assert says(feature.alone) != said
        if not averaged:
            continue
        low, high = feature.effect.low, feature.effect.high
        if said == "yes":
            assert 0.0 not in (low, high)
        else:
            assert low <= 0.0 <= high
        assert table.loc[feature.name, "chance"] == feature.chance
        ends = table.loc[feature.name, ["ci_low", "ci_high"]].to_numpy(float)
        assert np.sign(ends).tolist() == [np.sign(low), np.sign(high)]
    if averaged and evidence.judgement.chance is not None:
        carries = evidence.rho
        if says(evidence.judgement.chance) == "yes":
            assert 0.0 not in (carries.low, carries.high)
        else:
            assert carries.low <= 0.0 <= carries.high


def hold_tests(analysis):
    """A test of lambda in features that the data chose is never called a finding."""
    fit = analysis.model.fit_
    found = {item.key: item for item in analysis.diagnostics.checks()}
    chose = fit.average is not None or (fit.search is not None and fit.search.chose)
    if chose and analysis.evidence.judgement.chance is not None:
        assert "p " in found["all_features_test"].value
        assert "With all features" in str(analysis.answer.selection.numbers)
    test = analysis.diagnostics.rho_wald
    if fit.search is not None and test is not None and test.p_value < 0.05:
        assert found["rho_test"].verdict == "caution"
        assert "proves nothing" in found["rho_test"].meaning


def hold(seed, page=None):
    """Analyse one table, and hold every output to the rule."""
    table, options = a_table(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            analysis = analyse(table, **options)
            texts = texts_of(analysis, page)
        except HeckmanfaError:
            return "refused"
        hold_verdict(analysis, texts)
        hold_features(analysis)
        hold_tests(analysis)
    return analysis.evidence.judgement.kind


@pytest.fixture
def no_bootstrap(monkeypatch):
    monkeypatch.setattr(checking, "resample", lambda *_: "Samples of the rows are left out here")


def test_every_output_of_some_tables_follows_one_rule(no_bootstrap, tmp_path):
    kinds = [hold(seed, tmp_path / "r.html" if seed % 8 == 0 else None) for seed in range(16)]
    assert {"yes", "no sign", "unknown"} <= {*kinds}
    assert kinds.count("refused") < 2


@pytest.mark.study
def test_every_output_of_many_tables_follows_one_rule(no_bootstrap, tmp_path):
    kinds = [hold(seed, tmp_path / "r.html") for seed in range(16, 272)]
    assert {"yes", "no sign", "unknown", "unreliable"} <= {*kinds}


def test_selection_is_not_found_where_what_drives_it_moves_the_outcome_too():
    """The most ordinary design of wage data: beta = 0.3 gamma, independent errors."""
    rng = np.random.default_rng(5)
    gamma, n = np.array([0.4, -0.3, 0.3, 0.4, -0.4, 0.3, 0.3, 0.5]), 1000
    for _ in range(12):
        X = rng.normal(size=(n, 8))
        selected = X @ gamma + rng.normal(size=n) > 0
        y = np.where(selected, 1 + X @ (0.3 * gamma) + rng.normal(size=n), np.nan)
        frame = pd.DataFrame(X, columns=[f"x{place}" for place in range(8)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            evidence = evidence_of(HeckmanAverage().fit(frame, y).fit_)
        assert evidence.judgement.kind in ("unknown", "no sign")
        assert "Selection on what was not observed took place" not in " ".join(
            map(str, may_write(evidence))
        )
        assert "no_selection" in {claim.key for claim in claims_of(evidence, [])}


def test_words_about_coverage_are_one_sentence_everywhere():
    for name in ("README.md", "docs/faq.md", "docs/searching.md"):
        words = " ".join((ROOT / name).read_text(encoding="utf-8").split())
        assert COVERAGE["two-step"] in words, name
    assert COVERAGE["two-step"] in " ".join((HeckmanAverage.__doc__ or "").split())
