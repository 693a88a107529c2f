"""Whether selection mattered is decided once, from the fit, by the rule of docs/searching.md."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.results.shared import fitted

from heckmanfa import Heckman, HeckmanAverage, HeckmanBestSubset
from heckmanfa.analysis import analyse, checking
from heckmanfa.errors import HeckmanfaWarning
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.judgement import Judgement, judgement_of
from heckmanfa.results.lede import verdict
from heckmanfa.text.chances import HIGH, LOW, NO_SIGN_BELOW, SURE_FROM, says
from heckmanfa.text.wording import NO_EXCLUSION


@pytest.fixture(scope="module")
def rows():
    """Selection matters, x0 is an exclusion, and what drives selection moves y too."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1500, 4)), columns=[f"x{place}" for place in range(4)])
    gamma, u = np.array([1.0, 0.4, -0.4, 0.3]), rng.normal(size=1500)
    y = X.to_numpy() @ [0.0, 0.2, -0.2, 0.15] + 0.8 * u + 0.6 * rng.normal(size=1500)
    return X, pd.Series(np.where(X.to_numpy() @ gamma + u > 0, y, np.nan), name="y")


def test_a_chance_at_a_cut_belongs_above_it():
    assert [says(SURE_FROM), says(SURE_FROM - 1e-9)] == ["sure", "unknown"]
    assert [says(NO_SIGN_BELOW), says(NO_SIGN_BELOW - 1e-9)] == ["unknown", "no sign"]
    assert (f"{100 * NO_SIGN_BELOW:.0f}%", f"{100 * SURE_FROM:.0f}%") == (LOW, HIGH)


def test_a_named_exclusion_gives_a_verdict(rows):
    for model in (HeckmanAverage(never=["x0"]), HeckmanBestSubset(never=["x0"])):
        found = evidence_of(fitted(model, *rows).fit_).judgement
        assert (found.kind, found.test) == ("yes", None)
        assert found.chance > 0.99
        assert found.all_features.test.p_value < 0.001


def test_features_named_beforehand_are_judged_by_their_test(rows):
    given = judgement_of(fitted(Heckman(["x1", "x2", "x3"]), *rows).fit_)
    assert (given.kind, given.chance) == ("yes", None)
    said = str(verdict(evidence_of(fitted(Heckman(["x1", "x2", "x3"]), *rows).fit_)).sentence)
    assert said.startswith("If the excluded features have no effect of their own, those without ")
    nothing = judgement_of(fitted(Heckman(), *rows).fit_)
    assert nothing.kind == "unknown"
    assert nothing.doubt == NO_EXCLUSION


def test_what_is_fixed_is_not_asked(rows):
    for model in (
        HeckmanAverage(correction="always"),
        HeckmanAverage(correction="never"),
        HeckmanAverage(rho_range=(-0.9, 0.9)),
        Heckman(["x1"], rho=0.2),
    ):
        fit = fitted(model, *rows).fit_
        assert judgement_of(fit).kind == "not asked"
        assert verdict(evidence_of(fit)).title.startswith("Not asked: ")


def test_a_model_that_is_not_to_be_relied_on_settles_nothing():
    for kind in ("yes", "no sign"):
        assert Judgement(kind, 0.5).doubted("rho: 1.2").kind == "unreliable"
    for kind in ("unknown", "not asked", "not weighed", "nothing missing"):
        assert Judgement(kind).doubted("rho: 1.2").kind == kind


def test_too_few_rows_for_the_features_settle_nothing(rows):
    fit = fitted(HeckmanAverage(never=["x0"]), *rows).fit_
    few = replace(fit, row_counts=fit.row_counts | {"unselected": 39})
    assert judgement_of(few).kind == "unreliable"
    assert "too few rows" in judgement_of(few).doubt


def test_an_outcome_with_codes_for_missing_settles_nothing(rows, monkeypatch):
    monkeypatch.setattr(checking, "resample", lambda *_: "Samples are left out here")
    X, y = rows
    coded = y.where(y.isna() | (np.arange(len(y)) % 9 > 0), -999.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        analysis = analyse(X.assign(y=coded), outcome="y", select_only=["x0"])
    assert analysis.answer.trust.title == "Do not rely on it"
    assert analysis.evidence.judgement.kind in ("unreliable", "unknown")
    assert "look like codes for missing" in analysis.evidence.judgement.doubt
