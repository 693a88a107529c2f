"""What averages, series and t errors say of themselves: their own numbers, and no others."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanAverage, HeckmanOrderedAverage
from heckmanfa.analysis.prediction_request import Request
from heckmanfa.analysis.predictions import usual_interval
from heckmanfa.errors import HeckmanfaWarning, InputError
from heckmanfa.results.evidence import evidence_of
from heckmanfa.results.lede import lede

N = 600


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "z"])
    shock = rng.normal(size=N)
    error = 0.7 * shock + 0.5 * rng.normal(size=N)
    moved = 0.3 + 0.4 * X["a"] + 0.9 * X["z"] + shock > 0
    return X, 1.0 + X["a"] - 0.5 * X["b"] + error, moved


def text_of(model, path, *rows, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        model.report(path, *rows, **given)
    html = path.read_text(encoding="utf-8")
    html = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def test_an_averaged_ordered_outcome_reaches_a_class_with_its_own_probability(rows, tmp_path):
    X, y, seen = rows
    rating = pd.Series(np.digitize(y, [0.0, 1.0, 2.2]), dtype=float).where(seen)
    model = HeckmanOrderedAverage(never=["z"]).fit(X, rating.rename("rating"))
    text = text_of(model, tmp_path / "page.html", X, rating.rename("rating"))
    people = re.findall(r"P\(rating = 3\): (\d+)% .*? anyone like this: .*?3 (\d+)%", text)
    assert people
    for reached, of_class in people:
        assert abs(int(reached) - int(of_class)) <= 1


def test_what_is_said_of_an_averaged_series_has_no_rho(rows):
    X, y, seen = rows
    model = HeckmanAverage(method="series", never=["z"]).fit(X, y.where(seen).rename("y"))
    assert "joint test of the series" in str(model.diagnostics())
    assert "test of rho" not in str(model.diagnostics())


def test_the_lead_of_a_model_with_t_errors_tells_who_would_have_less(rows):
    X, y, seen = rows
    model = Heckman(["a", "b"], method="ml", errors="t", start=0.5).fit(
        X, y.where(seen).rename("y")
    )
    evidence = evidence_of(model.fit_)
    assert evidence.rho.low > 0.0
    assert "would have less y than average for their features" in str(lede(evidence))


def test_intervals_of_a_prediction_say_what_they_are_of(rows):
    X, y, seen = rows
    outcome = y.where(seen).rename("y")
    series = Heckman(["a", "b"], method="series").fit(X, outcome)
    heavy = Heckman(["a", "b"], method="ml", errors="t").fit(X, outcome)
    for model in (series, heavy):
        interval, said = usual_interval(model, Request("selected"))
        assert interval == "confidence"
        assert said.startswith("low and high are of the mean, not of a new outcome")
    with pytest.raises(InputError, match="given selection"):
        heavy.predict(X, kind="selected", return_interval="prediction")
