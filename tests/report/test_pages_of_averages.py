"""Pages of averages of treatments, ordered outcomes and series: they hold the model's own numbers."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from heckmanfa import HeckmanAverage, HeckmanOrderedAverage, TreatmentAverage
from heckmanfa.errors import HeckmanfaWarning

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


@pytest.mark.parametrize("options", [{}, {"regimes": "separate"}, {"method": "ml"}])
def test_an_averaged_treatment_has_its_effects_chances_and_people_on_its_page(
    rows, tmp_path, options
):
    X, y, treated = rows
    y = y + 1.5 * treated
    model = TreatmentAverage(never=["z"], **options).fit(X, y, treated=treated)
    text = text_of(model, tmp_path / "page.html", X, y, treated=treated)
    ate = model.effects().iloc[0]
    assert f"{ate['estimate']:.2f} more y on average" in text
    assert f"{ate['ci_low']:.2f} to {ate['ci_high']:.2f}" in text
    # An average has the chance of the correction, and no test of it.
    assert "The chance that it did is >99%." in text.replace("&gt;", ">")
    assert "test of rho" not in text
    # What is expected of somebody is the average's own prediction.
    found = re.search(r"a = (\S+), b = (\S+), z = (\S+) Expected y: (\S+) .*? if treated; (\S+)", text)
    row = pd.DataFrame([[float(value.replace("−", "-")) for value in found.groups()[:3]]], columns=X.columns)
    for regime, said in ((1, found[4]), (0, found[5])):
        own = model.predict(row, regime=regime)[0]
        assert float(said.replace("−", "-")) == pytest.approx(own, abs=0.02)


def test_an_averaged_ordered_outcome_reaches_a_class_with_its_own_probability(rows, tmp_path):
    X, y, seen = rows
    rating = pd.Series(np.digitize(y, [0.0, 1.0, 2.2]), dtype=float).where(seen)
    model = HeckmanOrderedAverage(never=["z"]).fit(X, rating.rename("rating"))
    text = text_of(model, tmp_path / "page.html", X, rating.rename("rating"))
    people = re.findall(r"P\(rating = 3\): (\d+)% .*? anyone like this: .*?3 (\d+)%", text)
    assert people
    for reached, of_class in people:
        assert abs(int(reached) - int(of_class)) <= 1


def test_the_page_of_an_averaged_series_gives_no_rho(rows, tmp_path):
    X, y, seen = rows
    model = HeckmanAverage(method="series", never=["z"]).fit(X, y.where(seen).rename("y"))
    text = text_of(model, tmp_path / "page.html", X, y.where(seen).rename("y"))
    assert "it has no rho" in text.replace(" .", ".")
    assert "Weight BIC rho" not in text
    assert "test of rho" not in text
    assert "coefficient of lambda" not in text
    assert "test of rho" not in str(model.diagnostics())
