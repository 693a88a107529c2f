"""The search for the prediction features of a Heckman probit."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from heckmanfa import HeckmanProbit, HeckmanProbitBestSubset
from heckmanfa.datasets import make_selection
from heckmanfa.errors import HeckmanfaWarning

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")


def draw(n: int = 500, k: int = 4, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    data = make_selection(n, k, k // 2, outcome_kind="binary", random_state=seed)
    return np.asarray(data.X), np.asarray(data.y)


@pytest.fixture(scope="module")
def small() -> tuple[np.ndarray, np.ndarray, HeckmanProbitBestSubset]:
    X, y = draw()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return X, y, HeckmanProbitBestSubset().fit(X, y)


def test_candidates_are_the_exact_fits_of_every_assignment(
    small: tuple[np.ndarray, np.ndarray, HeckmanProbitBestSubset],
) -> None:
    X, y, model = small
    m = np.sum(~np.isnan(y))
    found = model.candidates_
    assert len(found) == 16
    assert sorted(map(tuple, found["features"])) == sorted(
        columns for size in range(5) for columns in itertools.combinations(range(4), size)
    )
    for row in found.dropna().head(4).itertuples():
        alone = HeckmanProbit(prediction_features=list(row.features)).fit(X, y)
        assert row.log_likelihood == pytest.approx(alone.log_likelihood_, abs=1e-6)
        assert row.rho == pytest.approx(alone.rho_, abs=1e-3)
        assert row.bic == pytest.approx(alone.bic_, abs=1e-5)
        assert row.aic == pytest.approx(-2 * row.log_likelihood + 2 * row.n_features)
        assert row.bic == pytest.approx(-2 * row.log_likelihood + row.n_features * np.log(m))
    fitted = found["bic"].dropna()
    assert fitted.is_monotonic_increasing
    assert model.bic_ == pytest.approx(fitted.iloc[0], abs=1e-6)
    assert tuple(model.prediction_features_) == found["features"].iloc[0]
    full = found[found["n_features"] == 4].iloc[0]
    assert full["approximate"] == pytest.approx(full["bic"], abs=1e-6)
    assert sorted(found["approximate_rank"]) == list(range(1, 17))
    assert model.optimal_
    assert model.gap_ == 0.0
