"""No feature predicts: every search may say so, and every report can speak of it."""

import numpy as np
import pandas as pd
import pytest

from heckmanfa import Heckman, HeckmanBestSubset, HeckmanFA, HeckmanLasso
from heckmanfa.datasets import make_selection
from heckmanfa.errors import NoFeasibleAssignmentError

CRITERIA = ("bic", "ebic")


@pytest.fixture(scope="module")
def table():
    data = make_selection(600, 4, prediction_features=[], rho=0.5, random_state=3)
    return pd.DataFrame(data.X, columns=list("abcd")), data.y


@pytest.fixture(scope="module")
def nothing(table):
    return HeckmanBestSubset().fit(*table)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    "make",
    [
        HeckmanBestSubset,
        HeckmanLasso,
        lambda criterion: HeckmanFA("correlation", criterion=criterion),
        lambda criterion: HeckmanFA("rank", criterion=criterion, epochs=50, random_state=0),
        lambda criterion: HeckmanFA(criterion=criterion, init_prob=0.5, epochs=50, random_state=0),
    ],
)
def test_every_search_chooses_no_feature_where_none_predicts(table, make, criterion):
    model = make(criterion).fit(*table)
    assert model.prediction_features_ == []
    assert model.candidates_["features"].iloc[0] == ()
    assert model.bic_ == pytest.approx(Heckman([]).fit(*table).bic_, rel=1e-12)
    assert not model.coef_.any()


def test_a_best_subset_counts_the_empty_assignment(table, nothing):
    X, y = table
    assert nothing.optimal_
    assert nothing.gap_ == 0.0
    assert nothing.search_report().n_possible == 16
    every = HeckmanBestSubset(tolerance=1e6).fit(X, y)
    assert every.n_assignments_ == len(every.candidates_) == 16
    # C(4, u) ways to choose u features.
    extra = every.candidates_["ebic"] - every.candidates_["bic"]
    ways = every.candidates_["n_features"].map({0: 1, 1: 4, 2: 6, 3: 4, 4: 1})
    np.testing.assert_allclose(extra, 2 * np.log(ways), atol=1e-9)


def test_forced_features_stay_where_nothing_else_predicts(table):
    model = HeckmanBestSubset("ebic", always=["b"]).fit(*table)
    assert model.prediction_features_ == ["b"]
    assert model.search_report().n_possible == 8


def test_a_window_without_an_assignment_names_the_empty_one(table):
    with pytest.raises(NoFeasibleAssignmentError, match="with no feature"):
        HeckmanBestSubset(rho_range=(-0.99, -0.98), prediction_features=["a"]).fit(*table)


@pytest.mark.parametrize("options", [{}, {"method": "ml"}, {"cov_type": "robust"}])
def test_every_report_of_a_model_without_features(table, options):
    X, y = table
    model = HeckmanBestSubset(**options).fit(X, y)
    assert model.prediction_features_ == []
    terms = model.tidy()
    assert terms.loc[terms["equation"] == "prediction", "term"].tolist() == ["Intercept"]
    np.testing.assert_allclose(model.predict(X), model.intercept_)
    parts = [model.uncertainty_interval(), model.what_if()]
    assert "coefficient" not in str(model.diagnostics(include=parts))
    assert model.margins(X).tidy()["estimate"].notna().all()
    report = str(model.search_report())
    assert "none" in report.split("The best assignments")[1].splitlines()[2]


def test_honest_halves_may_choose_no_feature(table):
    model = HeckmanBestSubset(honest=True, n_splits=6, random_state=0).fit(*table)
    assert model.prediction_features_ == []
    words = str(model.diagnostics(include=[model.honest_]))
    assert "no feature" in words
    assert np.isfinite(model.tidy().query("equation == 'prediction'")["std_error"]).all()


def test_a_bootstrap_repeats_the_search(table, nothing):
    X, y = table
    repeated = nothing.bootstrap(X, y, n_boot=5, random_state=0)
    assert "Intercept" in str(repeated)


def test_formulas_may_end_without_terms(table):
    X, y = table
    frame = X.assign(y=y)
    model = HeckmanBestSubset.from_formula("y ~ a + C(b > 0)", "~ a + b + c + d", frame)
    assert model.prediction_features_ == []
    assert np.ptp(model.predict(frame)) == 0.0


def test_a_summary_of_no_feature_says_so_and_has_an_exact_zero(nothing):
    printed = " ".join(str(nothing.summary()).split())
    assert "empty assignment" in printed
    assert "e-16" not in printed
