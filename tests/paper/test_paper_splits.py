"""The paper's two data sets, split as it split them; skipped where the data is not found."""

import numpy as np
import pytest

from heckmanfa import HeckmanBestSubset, HeckmanFA
from heckmanfa.errors import NoFeasibleAssignmentError
from heckmanfa.paper.protocol import COMPAS, PublishedSearch

CRIME_WINDOW, COMPAS_WINDOW = (0.01, 0.1), (0.3, 0.5)


def numbered(model):
    """Features as the paper counts them, from 1."""
    return [feature + 1 for feature in model.prediction_features_]


def error_of(model, split):
    return np.mean((split.y_test - model.predict(split.X_test, kind="selected")) ** 2)


def test_the_best_assignment_on_crime_within_the_papers_window(crime):
    model = HeckmanBestSubset("adjusted_r2", rho_range=CRIME_WINDOW).fit(crime.X, crime.y)
    assert numbered(model) == [1, 2, 5, 11, 12, 13, 15, 20, 21, 23, 24, 26]
    assert model.adjusted_r2_ == pytest.approx(0.484544, abs=5e-7)
    assert CRIME_WINDOW[0] <= model.rho_ <= CRIME_WINDOW[1]
    assert model.optimal_
    assert (model.n_obs_, model.n_selected_) == (1395, 976)


def test_the_best_assignment_on_crime_without_a_window(crime):
    # R's leaps package, with lambda forced in, finds the same.
    model = HeckmanBestSubset("adjusted_r2").fit(crime.X, crime.y)
    assert len(numbered(model)) == 19
    assert model.adjusted_r2_ == pytest.approx(0.501171, abs=5e-7)
    assert len(numbered(HeckmanBestSubset("bic").fit(crime.X, crime.y))) == 8


def test_the_best_assignment_on_compas_within_the_papers_window(compas):
    model = HeckmanBestSubset("adjusted_r2", rho_range=COMPAS_WINDOW).fit(compas.X, compas.y)
    assert numbered(model) == [1, 2, 5, 7, 10]
    assert model.adjusted_r2_ == pytest.approx(0.345599, abs=5e-7)
    assert model.optimal_
    assert (model.n_obs_, model.n_selected_) == (3694, 2585)


def test_75_of_the_1023_assignments_on_compas_are_in_the_papers_window(compas):
    # A tolerance wider than the criterion can be lets no assignment be ruled out.
    model = HeckmanBestSubset("adjusted_r2", rho_range=COMPAS_WINDOW, tolerance=2.0)
    model.fit(compas.X, compas.y)
    assert model.n_assignments_ == 1024  # the empty one too, which is not in the window
    assert len(model.candidates_) == 75


def test_ranks_on_compas_are_the_papers_after_its_misprint(compas):
    model = HeckmanFA(
        "rank",
        rho_range=COMPAS_WINDOW,
        learning_rate=0.05,
        standardize="features",
        random_state=0,
    ).fit(compas.X, compas.y)
    assert numbered(model) == [2, 5, 6, 8]
    assert model.rho_ == pytest.approx(0.3489, abs=5e-5)
    assert model.adjusted_r2_ == pytest.approx(0.3392, abs=5e-5)
    assert error_of(model, compas) == pytest.approx(0.2495, abs=5e-5)


def test_ranks_on_crime_are_the_papers_but_for_the_last(crime):
    model = HeckmanFA(
        "rank", rho_range=CRIME_WINDOW, learning_rate=0.75, standardize="features", random_state=0
    ).fit(crime.X, crime.y)
    assert set(numbered(model)) | {24} == {2, 3, 8, 12, 16, 18, 21, 24}


def test_no_correlation_rank_on_crime_is_in_the_window_as_the_paper_says(crime):
    with pytest.raises(NoFeasibleAssignmentError, match="none of the 25 assignments"):
        PublishedSearch("correlation", rho_range=CRIME_WINDOW).fit(crime.X, crime.y)


def test_the_papers_protocol_has_no_empty_assignment(compas):
    # After one epoch with a start near zero, most draws are empty.
    options = {"seed": 0, "epochs": 1, "init_prob": 0.05, "rho_range": None}
    published = COMPAS.search(compas, **options)
    assert published.candidates_["n_features"].min() == 1
    parameters = published.get_params()
    ours = HeckmanFA(**parameters).fit(compas.X, compas.y)
    assert ours.candidates_["n_features"].min() == 0
    assert ours.n_assignments_ == published.n_assignments_ + 1
    assert ours.prediction_features_ == published.prediction_features_


@pytest.mark.parametrize(
    ("name", "window", "learning_rate", "expected", "within"),
    [
        ("crime", CRIME_WINDOW, 0.75, 0.0204, 0.0004),
        ("compas", COMPAS_WINDOW, 0.05, 0.2502, 0.0005),
    ],
)
def test_five_seeds_of_draws_give_the_papers_test_error(
    name, window, learning_rate, expected, within, request
):
    split = request.getfixturevalue(name)
    errors = []
    for seed in range(5):
        model = HeckmanFA(
            rho_range=window,
            epochs=4000,
            n_draws=1000,
            learning_rate=learning_rate,
            standardize="features",
            random_state=seed,
        ).fit(split.X, split.y)
        errors.append(error_of(model, split))
    assert np.mean(errors) == pytest.approx(expected, abs=within)
