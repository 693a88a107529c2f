"""Features that decide a binary outcome, rare classes, and outcomes of which none is missing."""

import re
import warnings

import numpy as np
import pytest
from scipy.special import ndtr

from heckmanfa.data.rows import ArrayRows, Matrix
from heckmanfa.errors import (
    AllObservedWarning,
    CollinearError,
    ConstantOutcomeError,
    ConvergenceWarning,
    DroppedFeaturesWarning,
    LeakageError,
    SeparationError,
    TooFewRowsError,
)
from heckmanfa.estimators.heckman_probit import HeckmanProbit
from heckmanfa.model.equations import count_rows
from heckmanfa.model.outcome_probit import OutcomeRows
from heckmanfa.text.option_words import at_command_line

N = 400


@pytest.fixture(scope="module")
def data():
    """Four features, of which the last drives selection alone, and who is selected."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    e = rng.normal(size=N)
    selected = X @ [0.5, 0.0, 0.0, 1.0] + 0.3 + e > 0
    y = X @ [0.7, -0.5, 0.0, 0.0] + 0.5 * e + rng.normal(size=N) > 0
    return X, np.where(selected, y, np.nan), selected


def with_level(data, fill=0.0):
    """A rare level, d = 1 in 20 rows: the outcome of those that are selected is 1."""
    X, y, selected = data
    d = np.zeros(N)
    d[:20] = 1.0
    y = np.where((d == 1) & selected, 1.0, y)
    return np.column_stack([X, np.where(selected, d, np.maximum(d, 0) if fill == 0 else fill)]), y


def test_a_column_that_decides_the_outcome_is_named(data):
    X, y = with_level(data)
    certain = int(np.sum((X[:, 4] == 1) & ~np.isnan(y)))
    with pytest.raises(
        SeparationError,
        match=rf"'x4' separates the two classes .* outcome of {certain} rows is certain.*'drop'",
    ):
        HeckmanProbit([0, 1, 4]).fit(X, y)


@pytest.mark.parametrize("selecting", [[0, 1, 2, 3], [0, 1, 2, 3, 4]])
def test_dropping_leaves_out_the_column_and_every_row_it_decides(data, selecting):
    X, y = with_level(data)
    with pytest.warns(DroppedFeaturesWarning) as told:
        model = HeckmanProbit([0, 1, 4], selecting, on_separation="drop").fit(X, y)
    said = [str(one.message) for one in told]
    assert re.search("20 rows .*'x4'", said[0])
    assert "'x4'" in said[1]
    assert len(said) == 2
    assert list(model.dropped_features_) == [4]
    assert model.row_counts_["left_out_separation"] == 20
    rest = X[:, 4] == 0
    alone = HeckmanProbit([0, 1], [0, 1, 2, 3]).fit(X[rest], y[rest])
    np.testing.assert_allclose(model.coef_, alone.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.selection_coef_, alone.selection_coef_, rtol=1e-9)
    assert model.n_obs_ == alone.n_obs_ == N - 20


def test_a_column_that_is_the_outcome_is_not_taken_for_the_selection(data):
    X, y, _ = data
    # Rows that are not selected have values of either sign.
    after = np.where(np.isnan(y), X[:, 3], np.where(y == 1, 1, -1) * (0.1 + abs(X[:, 3])))
    model = HeckmanProbit([0, 4], [0, 1, 2, 3])
    with pytest.raises(SeparationError, match="outcome") as no:
        model.fit(np.column_stack([X, after]), y)
    with at_command_line():
        assert "--exclude" in str(no.value)
        assert "--selected" not in str(no.value)


def test_a_column_without_whose_rows_one_class_is_left_is_named(data):
    X, y, _ = data
    # A count that is known of one class alone: it decides selection, too.
    after = np.where(y == 1, 1.0 + np.arange(N) % 3, 0.0)
    with (
        pytest.raises(ConstantOutcomeError, match="'x4'"),
        pytest.warns(DroppedFeaturesWarning),
    ):
        HeckmanProbit([0, 1], on_separation="drop").fit(np.column_stack([X, after]), y)


def test_unselected_rows_without_the_column_stay(data):
    X, y = with_level(data, fill=np.nan)
    decided = int(np.sum((X[:, 4] == 1) & ~np.isnan(y)))
    model = HeckmanProbit([0, 1, 4], [0, 1, 2, 3], on_separation="drop")
    with pytest.warns(DroppedFeaturesWarning) as told:
        model.fit(X, y)
    assert [str(one.message) for one in told] == [
        f"{decided} rows were left out: their outcome is determined by 'x4'",
        "left out 'x4': without those rows, the prediction features are collinear",
    ]
    assert model.row_counts_["unselected"] == np.isnan(y).sum()
    assert list(model.dropped_features_) == [4]


def test_an_empty_corner_of_two_levels_is_found(data):
    """No level decides, but one cell of their table has a single class."""
    X, y, selected = data
    rng = np.random.default_rng(1)
    a, b = (rng.random((2, N)) < 0.3).astype(float)
    y = np.where(selected & (a * b == 1), 1.0, y)
    both = np.column_stack([X, a, b, a * b])
    HeckmanProbit([0, 1, 4, 5], [0, 3]).fit(both, y)
    with pytest.raises(SeparationError, match=r"^'x6' separates"):
        HeckmanProbit([0, 1, 4, 5, 6], [0, 3]).fit(both, y)


@pytest.mark.parametrize("on_separation", ["error", "drop"])
def test_columns_that_decide_together_are_named_together(data, on_separation):
    X, _, selected = data
    y = np.where(selected, X[:, 1] + X[:, 2] > 0, np.nan)
    model = HeckmanProbit([0, 1, 2], on_separation=on_separation)
    with pytest.raises(SeparationError, match=r"'x1'.*'x2'"):
        model.fit(X, y)


def test_as_many_coefficients_as_rows_of_a_class_are_refused(data):
    X, _, selected = data
    rare = np.where(selected, 0.0, np.nan)
    rare[np.flatnonzero(selected)[:4]] = 1.0
    said = r"^3 prediction features .* more than 4 selected rows of each class: of \d+, 4 are of"
    with pytest.raises(TooFewRowsError, match=said):
        HeckmanProbit([0, 1, 2]).fit(X, rare)
    rare[np.flatnonzero(selected)[4]] = 1.0
    assert HeckmanProbit([0, 1, 2]).fit(X, rare).fit_.details.n_positive == 5


def test_copies_and_collinear_columns_are_refused(data):
    X, y, selected = data
    with pytest.raises(LeakageError, match="'x4'"):
        HeckmanProbit([0, 4], [0, 3]).fit(np.column_stack([X, np.where(selected, 2 * y, 0)]), y)
    double = np.column_stack([X, X[:, 0] - X[:, 1]])
    with pytest.raises(CollinearError, match=r"'x4'.*'x0'.*'x1'"):
        HeckmanProbit([0, 1, 4], [0, 3]).fit(double, y)
    with pytest.warns(DroppedFeaturesWarning, match="left out 'x4'"):
        model = HeckmanProbit([0, 1, 4], [0, 3], on_collinear="drop").fit(double, y)
    assert list(model.prediction_features_) == [0, 1]


def test_without_missing_outcomes_it_is_a_plain_probit():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    y = (X @ [1.0, -0.5] + rng.normal(size=300) > 0).astype(int)
    with pytest.warns(AllObservedWarning, match=r"300 rows.* a plain probit is fitted"):
        model = HeckmanProbit().fit(X, y)
    assert np.isnan(model.rho_)
    assert model.converged_
    # The score of a probit is zero at its maximum.
    design = np.column_stack([np.ones(300), X])
    index = design @ np.append(model.intercept_, model.coef_)
    p, density = ndtr(index), np.exp(-0.5 * index**2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(design.T @ (density * (y - p) / (p * (1 - p))), 0, atol=1e-8)
    assert np.isfinite(model.tidy()["std_error"]).all()
    assert model.fit_.details.mean_slope == pytest.approx(density.mean())


def test_separated_outcomes_of_which_none_is_missing_are_a_warning():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] > 0
    with pytest.warns(AllObservedWarning), pytest.warns(ConvergenceWarning, match="^'x0' decides"):
        model = HeckmanProbit().fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isnan(model.tidy()["std_error"]).all()
    assert not model.converged_
    assert model.fit_.details.separated == (0,)
    np.testing.assert_array_equal(model.predict(X), y)


def test_collinear_columns_of_a_plain_probit_share_the_coefficient():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(100, 2))
    y = X[:, 0] + rng.normal(size=100) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AllObservedWarning)
        once = HeckmanProbit().fit(X, y)
        twice = HeckmanProbit().fit(np.column_stack([X, X[:, 0] + 3]), y)
    np.testing.assert_allclose(twice.coef_, once.coef_[[0, 1, 0]] * [0.5, 1, 0.5], rtol=1e-8)
    np.testing.assert_allclose(
        twice.predict_proba(np.column_stack([X, X[:, 0] + 3])), once.predict_proba(X), rtol=1e-8
    )


def test_rows_of_an_outcome_are_the_selected_ones():
    X = np.arange(8.0)[:, None]
    selected = X[:, 0] < 6
    rows = ArrayRows(Matrix(X), np.array([0.0, 1, 1, 0, 1, 1, 1, 0]), selected, block_rows=3)
    outcomes = OutcomeRows(rows)
    assert count_rows(outcomes) == (6, 4)
    assert outcomes.pilot(100) is outcomes
    assert (outcomes.in_memory, outcomes.weighted, len(outcomes)) == (True, False, 8)
    fewer = outcomes.without(lambda block, least: block.features[:, 0] >= least, 4.0, columns=[0])
    assert count_rows(fewer) == (4, 2)
    assert count_rows(fewer.rows) == (6, 4)  # the unselected rows stay


def test_features_that_are_the_outcome_together_are_a_separation_and_not_a_leak(data):
    X, y, selected = data
    first = np.where(selected & (np.arange(N) % 2 == 0), y, 0.0)
    second = np.where(selected, y, 0.0) - first
    noise = np.random.default_rng(1).normal(size=N)
    first[~selected], second[~selected] = noise[~selected] > 0.5, noise[~selected] < -0.5
    # A leak would be warned of first, and warnings are errors here.
    with pytest.raises(SeparationError, match="the outcome"):
        HeckmanProbit([0, 4, 5]).fit(np.column_stack([X, first, second]), y)
