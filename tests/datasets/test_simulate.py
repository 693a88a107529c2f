"""The simulator draws from the model it says, and hands out the truth it used."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

from heckmanfa.datasets import Selection, make_selection
from heckmanfa.errors import HeckmanfaError, InputError

LARGE = 200_000


def errors_of(data: Selection) -> np.ndarray:
    """The outcome's error of every sample, divided by sigma."""
    return (data.complete_y - data.intercept - data.X @ data.coef) / data.sigma


def test_shapes_are_those_documented() -> None:
    data = make_selection(120, 7, 3, random_state=0)
    assert data.X.shape == (120, 7)
    for rows in (data.y, data.selected, data.complete_y):
        assert rows.shape == (120,)
    for columns in (data.coef, data.selection_coef, data.support):
        assert columns.shape == (7,)
    assert data.selected.dtype == data.support.dtype == np.bool_
    assert data.feature_names == ("x0", "x1", "x2", "x3", "x4", "x5", "x6")
    assert (data.rho, data.sigma, data.intercept) == (0.5, 1.0, 1.0)


def test_outcome_is_hidden_exactly_where_not_selected() -> None:
    data = make_selection(random_state=1)
    np.testing.assert_array_equal(np.isnan(data.y), ~data.selected)
    np.testing.assert_array_equal(data.y[data.selected], data.complete_y[data.selected])
    assert np.isfinite(data.complete_y).all()


def test_support_is_where_the_prediction_coefficients_are() -> None:
    data = make_selection(50, 12, 4, random_state=2)
    assert data.support.sum() == 4
    np.testing.assert_array_equal(data.coef != 0, data.support)
    assert (np.abs(data.coef[data.support]) >= 0.5).all()
    assert (np.abs(data.coef) <= 1.5).all()


def test_every_feature_selects() -> None:
    gamma = make_selection(50, 12, 4, random_state=2).selection_coef
    # Magnitudes span a factor of three at most, so none is negligible beside the others.
    assert np.abs(gamma).max() <= 3 * np.abs(gamma).min()


@pytest.mark.parametrize("positions", [[0, 3], (3, 0), np.array([3, 0]), []])
def test_given_prediction_features_are_used(positions: Any) -> None:
    data = make_selection(10, 5, prediction_features=positions, random_state=0)
    assert set(np.flatnonzero(data.support)) == set(positions)


def test_given_prediction_features_leave_the_other_draws_alone() -> None:
    chosen = make_selection(40, 6, 6, random_state=5)
    given = make_selection(40, 6, prediction_features=[1], random_state=5)
    np.testing.assert_array_equal(given.X, chosen.X)
    np.testing.assert_array_equal(given.selected, chosen.selected)
    assert given.coef[1] == chosen.coef[1]


def test_which_features_predict_is_random() -> None:
    supports = {tuple(make_selection(1, 10, 5, random_state=seed).support) for seed in range(20)}
    assert len(supports) > 10


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("correlation", [0.0, 0.7])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.85])
def test_selected_share_is_the_rate_asked_for(rate: float, correlation: float, seed: int) -> None:
    data = make_selection(
        LARGE, selection_rate=rate, correlation=correlation, strength=1.5, random_state=seed
    )
    assert data.selected.mean() == pytest.approx(rate, abs=5 * np.sqrt(rate * (1 - rate) / LARGE))


@pytest.mark.parametrize("strength", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_strength_is_the_spread_of_the_selection_index(strength: float, correlation: float) -> None:
    data = make_selection(LARGE, strength=strength, correlation=correlation, random_state=3)
    spread = np.std(data.X @ data.selection_coef)
    assert spread == pytest.approx(strength, rel=0.01)


@pytest.mark.parametrize("correlation", [0.0, 0.4, 0.9])
def test_features_are_standard_normal_with_the_correlation_asked_for(correlation: float) -> None:
    data = make_selection(LARGE, 4, 2, correlation=correlation, random_state=4)
    expected = np.where(np.eye(4, dtype=bool), 1.0, correlation)
    np.testing.assert_allclose(np.cov(data.X, rowvar=False), expected, atol=0.02)
    np.testing.assert_allclose(data.X.mean(axis=0), 0.0, atol=0.015)


@pytest.mark.parametrize("rho", [-0.8, 0.0, 0.5, 0.95])
def test_errors_have_the_correlation_asked_for(rho: float) -> None:
    # u itself is not handed out, but without features selecting, E[ε | selected] = ρ λ(γ₀).
    data = make_selection(LARGE, rho=rho, sigma=2.0, strength=0.0, random_state=6)
    mills = np.sqrt(2 / np.pi)
    epsilon = errors_of(data)
    assert epsilon[data.selected].mean() == pytest.approx(rho * mills, abs=0.015)
    assert epsilon[~data.selected].mean() == pytest.approx(-rho * mills, abs=0.015)
    assert epsilon.std() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("rho", [-0.8, 0.0, 0.5, 0.95])
def test_selected_errors_follow_the_inverse_mills_ratio(rho: float) -> None:
    from scipy.special import log_ndtr

    data = make_selection(LARGE, rho=rho, random_state=7)
    index = (data.selection_intercept + data.X @ data.selection_coef)[data.selected]
    mills = np.exp(-(index**2) / 2 - log_ndtr(index)) / np.sqrt(2 * np.pi)
    slope, intercept = np.polyfit(mills, errors_of(data)[data.selected], 1)
    assert slope == pytest.approx(rho, abs=0.03)
    assert intercept == pytest.approx(0.0, abs=0.03)


def test_perfect_correlation_and_no_noise_are_allowed() -> None:
    data = make_selection(100, rho=-1.0, sigma=0.0, random_state=8)
    np.testing.assert_allclose(data.complete_y, data.intercept + data.X @ data.coef)


def test_one_seed_gives_one_data_set() -> None:
    first, again, other = (make_selection(60, random_state=seed) for seed in (9, 9, 10))
    for entry in fields(Selection):
        np.testing.assert_array_equal(getattr(first, entry.name), getattr(again, entry.name))
    assert not np.array_equal(first.X, other.X)


def test_a_generator_is_used_and_moves_on() -> None:
    seeded = make_selection(20, random_state=11)
    rng = np.random.default_rng(11)
    np.testing.assert_array_equal(make_selection(20, random_state=rng).X, seeded.X)
    assert not np.array_equal(make_selection(20, random_state=rng).X, seeded.X)


def test_no_seed_gives_new_data_at_each_call() -> None:
    assert not np.array_equal(make_selection(5).X, make_selection(5).X)


def test_truth_of_a_seed_does_not_depend_on_the_rows_or_the_errors() -> None:
    small = make_selection(10, random_state=12)
    large = make_selection(999, rho=-0.3, sigma=4.0, selection_rate=0.2, random_state=12)
    np.testing.assert_array_equal(small.coef, large.coef)
    np.testing.assert_array_equal(small.selection_coef, large.selection_coef)


def test_frame_holds_what_an_analyst_would_see() -> None:
    data = make_selection(30, 3, 1, random_state=13)
    frame = data.frame
    assert list(frame.columns) == ["x0", "x1", "x2", "y", "selected"]
    np.testing.assert_array_equal(frame[["x0", "x1", "x2"]].to_numpy(), data.X)
    np.testing.assert_array_equal(frame["y"].to_numpy(), data.y)
    np.testing.assert_array_equal(frame["selected"].to_numpy(), data.selected)


def test_frame_is_a_copy() -> None:
    data = make_selection(30, 3, 1, random_state=13)
    before = data.X[0, 0]
    frame = data.frame
    frame.loc[0, "x0"] = before + 1
    assert data.X[0, 0] == before


def test_selection_cannot_be_changed_and_prints_without_its_rows() -> None:
    data = make_selection(500, random_state=14)
    with pytest.raises(FrozenInstanceError):
        data.rho = 0.0  # type: ignore[misc]
    assert "complete_y" not in repr(data)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples must be an integer of at least 1; got 0"),
        ({"n_samples": 10.0}, "n_samples must be an integer of at least 1; got 10.0"),
        ({"n_samples": True}, "n_samples must be an integer of at least 1; got True"),
        ({"n_features": 0}, "n_features must be an integer of at least 1; got 0"),
        ({"n_features": 3}, "n_prediction must be an integer from 0 to 3; got 5"),
        ({"n_prediction": -1}, "n_prediction must be an integer from 0 to 10; got -1"),
        ({"rho": 1.01}, r"rho must be a number in \[-1, 1\]; got 1.01"),
        ({"rho": float("nan")}, r"rho must be a number in \[-1, 1\]; got nan"),
        ({"rho": "0.5"}, r"rho must be a number in \[-1, 1\]; got '0.5'"),
        ({"sigma": -1}, r"sigma must be a number in \[0, inf\); got -1"),
        ({"sigma": float("inf")}, r"sigma must be a number in \[0, inf\); got inf"),
        ({"intercept": float("inf")}, r"intercept must be a number in \(-inf, inf\); got inf"),
        ({"selection_rate": 0}, r"selection_rate must be a number in \(0, 1\); got 0"),
        ({"selection_rate": 1.0}, r"selection_rate must be a number in \(0, 1\); got 1.0"),
        ({"correlation": 1}, r"correlation must be a number in \[0, 1\); got 1"),
        ({"correlation": -0.1}, r"correlation must be a number in \[0, 1\); got -0.1"),
        ({"strength": -0.5}, r"strength must be a number in \[0, inf\); got -0.5"),
        (
            {"prediction_features": [0, 10]},
            "each of prediction_features must be an integer from 0 to 9; got 10",
        ),
        (
            {"prediction_features": [True, False]},
            "each of prediction_features must be an integer from 0 to 9; got True",
        ),
        (
            {"prediction_features": np.array([True, False])},
            "each of prediction_features must be an integer from 0 to 9; got",
        ),
        (
            {"prediction_features": [2, 1, 2]},
            r"prediction_features must name each position once; repeated: \[2\]",
        ),
        ({"prediction_features": "x1"}, "prediction_features must be a sequence of positions"),
        ({"prediction_features": 3}, "prediction_features must be a sequence of positions"),
        (
            {"random_state": -1},
            "random_state must be None, a seed of at least 0 or a random generator; got -1",
        ),
        (
            {"random_state": "seed"},
            "random_state must be None, a seed of at least 0 or a random generator; got 'seed'",
        ),
    ],
)
def test_an_unusable_argument_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make_selection(**arguments)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, HeckmanfaError)


@pytest.mark.parametrize("kind", [np.int64, np.int32])
def test_numpy_numbers_are_welcome(kind: type[np.integer]) -> None:
    data = make_selection(kind(20), kind(4), kind(2), rho=np.float32(0.5), random_state=kind(3))
    assert data.X.shape == (20, 4)
    assert type(data.rho) is float


def test_a_binary_outcome_is_the_sign_of_the_linear_one() -> None:
    linear = make_selection(2000, 4, 2, rho=-0.6, random_state=3)
    binary = make_selection(2000, 4, 2, rho=-0.6, outcome_kind="binary", random_state=3)
    np.testing.assert_array_equal(binary.complete_y, linear.complete_y > 0)
    np.testing.assert_array_equal(np.isnan(binary.y), np.isnan(linear.y))
    np.testing.assert_array_equal(binary.coef, linear.coef)


def test_a_binary_outcome_has_no_scale() -> None:
    with pytest.raises(InputError, match=r"sigma is 2\.0, but the scale of a binary outcome"):
        make_selection(outcome_kind="binary", sigma=2.0)
    with pytest.raises(InputError, match=r"outcome_kind.*'linear'.*'binary'"):
        make_selection(outcome_kind="probit")  # type: ignore[arg-type]
