"""Answers about searches and averages of ordered outcomes and treatments."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from heckmanfa import HeckmanAverage, TreatmentAverage, TreatmentBestSubset
from heckmanfa.analysis import analyse
from heckmanfa.errors import InputError
from heckmanfa.report import write_report
from heckmanfa.results.average_tables import all_features_terms

FEATURES = ["a", "b", "c", "e"]


@pytest.fixture(scope="module")
def ratings():
    """1,500 rows of which some have a rating from 1 to 4; a and c predict, a and b select."""
    rng = np.random.default_rng(7)
    table = pd.DataFrame(rng.normal(size=(1500, 4)), columns=FEATURES)
    u, v = rng.normal(size=(2, 1500))
    rating = 1.0 + np.digitize(0.5 * table["a"] + 0.4 * table["c"] + 0.5 * u + v, [-1, 0, 1])
    seen = 0.3 + 0.5 * table["a"] + 0.5 * table["b"] + u > 0
    return table.assign(rating=np.where(seen, rating, np.nan))


@pytest.fixture(scope="module")
def trained():
    """1,500 treated and untreated rows; only way drives treatment alone."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.normal(size=(1500, 3)), columns=["educ", "way", "noise"])
    u, v = rng.normal(size=(2, 1500))
    treated = 0.3 * table["educ"] - table["way"] + u > 0
    y = 1.0 + table["educ"] + 0.5 * treated + 0.6 * u + 0.8 * v
    return table.assign(y=y, treated=treated.astype(int))


def test_effects_of_an_averaged_ordered_outcome_are_its_margins(ratings, tmp_path):
    answer = analyse(ratings, outcome="rating", outcome_kind="ordered", search="average")
    margins = answer.model.margins(ratings.loc[ratings["rating"].notna(), FEATURES]).tidy()
    top = margins[(margins["class"] == 4) & (margins["target"] == "marginal")].set_index("term")
    roles = answer.roles.set_index("feature")
    np.testing.assert_allclose(
        roles.loc[FEATURES, "effect"], top.loc[FEATURES, "estimate"], rtol=0.005, atol=1e-4
    )
    assert roles.loc["c", "chance"] > 0.9 > 0.5 > roles.loc["e", "chance"]
    # The model of all features stands beside it, at the same class.
    whole = analyse(ratings, outcome="rating", outcome_kind="ordered").evidence.fit
    both = all_features_terms(answer.evidence.fit)
    np.testing.assert_allclose(both[0], [whole.intercept, whole.covariance[0, 0] ** 0.5], rtol=1e-6)
    write_report(answer, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 50_000


@pytest.mark.parametrize("positive", [2, 4])
def test_the_best_sets_of_an_ordered_outcome_have_the_effects_of_their_fit(ratings, positive):
    answer = analyse(
        ratings, outcome="rating", outcome_kind="ordered", search="best-subset", positive=positive
    )
    best, roles = answer.evidence.best, answer.roles.set_index("feature")
    assert best is not None
    assert {*best.names} == {*answer.model.prediction_features_} == {"a", "c"}
    for name in best.names:
        own = best.coef.of(FEATURES.index(name))
        np.testing.assert_allclose(own.estimate, roles.loc[name, "effect"], rtol=0.02)


def test_an_answer_about_a_treatment_may_choose_its_features(trained, tmp_path):
    answer = analyse(
        *(trained, None),
        outcome="y",
        model="treatment",
        treated="treated",
        search="best-subset",
    )
    own = TreatmentBestSubset(feature_groups=None).fit(
        trained[["educ", "way", "noise"]], trained["y"], treated=trained["treated"]
    )
    effect, expected = answer.effects.iloc[0], own.effects().iloc[0]
    assert answer.treatment.instruments == ("way", "noise")
    np.testing.assert_allclose(effect["estimate"], expected["estimate"], rtol=1e-9)
    write_report(answer, tmp_path / "page.html")
    assert "ignore the search" in str(answer.answer) + str([check.title for check in answer.checks])


def test_what_an_average_cannot_show_is_refused_in_a_sentence(trained, ratings, tmp_path):
    X = trained[["educ", "way", "noise"]]
    average = TreatmentAverage().fit(X, trained["y"], treated=trained["treated"])
    with pytest.raises(InputError, match="use summary\\(\\), inclusion_ and effects\\(\\)"):
        average.report(tmp_path / "page.html", X, trained["y"], treated=trained["treated"])
    y = trained["y"].where(trained["treated"] == 1)
    series = HeckmanAverage(method="series", never=["way"]).fit(X, y)
    for show in (lambda: series.pictures(), lambda: series.report(tmp_path / "page.html")):
        with pytest.raises(InputError, match="average of the series model has no report"):
            show()
    with pytest.raises(InputError, match="search is none or best-subset"):
        analyse(trained, outcome="y", model="treatment", treated="treated", search="average")
