"""The search for the prediction features of a Heckman probit."""

from __future__ import annotations

import itertools
import re
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from heckmanfa import HeckmanProbit, HeckmanProbitBestSubset, scan_parquet
from heckmanfa.datasets import make_selection
from heckmanfa.errors import (
    CollinearError,
    HeckmanfaWarning,
    InputError,
    NoFeasibleAssignmentError,
    SearchWarning,
    TooFewRowsError,
)
from heckmanfa.fit import binary
from heckmanfa.model.probit_likelihood import ProbitMaximum, fit_probit_likelihood
from heckmanfa.search.full_model import fit_all
from heckmanfa.search.refitted_subset import RefittedSubset

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")


def draw(n: int = 300, k: int = 4, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
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
        assert row.aic == pytest.approx(-2 * row.log_likelihood + 2 * row.n_features)
        assert row.bic == pytest.approx(-2 * row.log_likelihood + row.n_features * np.log(m))
    fitted = found["bic"].dropna()
    assert fitted.is_monotonic_increasing
    assert model.log_likelihood_ == pytest.approx(found["log_likelihood"].iloc[0], abs=1e-6)
    assert tuple(model.prediction_features_) == found["features"].iloc[0]
    full = found[found["n_features"] == 4].iloc[0]
    assert full["approximate"] == pytest.approx(full["bic"], abs=1e-6)
    assert sorted(found["approximate_rank"]) == list(range(1, 17))
    assert model.optimal_
    assert model.gap_ == 0.0


def test_the_best_by_exact_bic_is_that_of_brute_force() -> None:
    data = make_selection(250, 2, 1, outcome_kind="binary", rho=0.6, strength=0.4, random_state=7)
    every = {}
    for size in range(3):
        for columns in itertools.combinations(range(2), size):
            model = HeckmanProbit(prediction_features=list(columns)).fit(data.X, data.y)
            if model.converged_ and abs(model.rho_) < 0.9999:
                every[columns] = -2 * model.log_likelihood_ + size * np.log(model.n_selected_)
    found = HeckmanProbitBestSubset().fit(data.X, data.y)
    assert tuple(found.prediction_features_) == min(every, key=every.__getitem__)


def test_constraints_hold_as_in_the_linear_search(
    small: tuple[np.ndarray, np.ndarray, HeckmanProbitBestSubset],
) -> None:
    X, y, _ = small
    model = HeckmanProbitBestSubset(
        n_refits=3, always=[0], never=[1], feature_groups=[[2, 3]], max_features=3
    ).fit(X, y)
    found = model.candidates_["features"].tolist()
    assert sorted(found) == [(0,), (0, 2, 3)]
    few = HeckmanProbitBestSubset("aic", n_refits=4, max_features=2).fit(X, y)
    assert len(few.candidates_) == 4
    assert few.candidates_["n_features"].max() <= 2
    report = few.search_report()
    assert report.n_possible == 11
    words = " ".join(report.notes)
    assert re.search("4 assignments.*all 11", words)
    assert few.candidates_["aic"].dropna().is_monotonic_increasing


@pytest.mark.parametrize("criterion", ["adjusted_r2", "corrected_bic"])
def test_criteria_of_linear_outcomes_are_refused_by_name(criterion: str) -> None:
    X, y = draw()
    with pytest.raises(InputError, match=f"'{criterion}'"):
        HeckmanProbitBestSubset(criterion).fit(X, y)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="criterion") as refused:
        HeckmanProbitBestSubset([criterion]).fit(X, y)  # type: ignore[arg-type]
    assert "adjusted_r2'," not in str(refused.value)


def test_collinear_candidates_are_refused_or_dropped() -> None:
    X, y = draw()
    X = np.column_stack([X, X[:, 1] + X[:, 2]])
    selecting = [0, 1, 2, 3]
    with pytest.raises(CollinearError, match="features"):
        HeckmanProbitBestSubset(selection_features=selecting).fit(X, y)
    model = HeckmanProbitBestSubset(
        n_refits=2, selection_features=selecting, on_collinear="drop"
    ).fit(X, y)
    assert model.fit_.search is not None
    assert model.fit_.search.candidates == (0, 1, 2, 3)
    # Columns that are always in stay.
    kept = HeckmanProbitBestSubset(
        n_refits=2, selection_features=selecting, on_collinear="drop", always=[4]
    ).fit(X, y)
    assert kept.support_[4]


def test_the_search_does_not_depend_on_the_order_or_the_units_of_columns() -> None:
    X, y = draw(n=300, k=3, seed=3)
    model = HeckmanProbitBestSubset(n_refits=4).fit(X, y)
    order, scale = [2, 1, 0], np.array([10.0, 0.01, -3.0])
    other = HeckmanProbitBestSubset(n_refits=4).fit(X[:, order] * scale, y)
    same = [tuple(sorted(order[column] for column in row)) for row in other.candidates_["features"]]
    assert same == model.candidates_["features"].tolist()
    for name in ("bic", "approximate", "log_likelihood"):
        np.testing.assert_allclose(other.candidates_[name], model.candidates_[name], atol=1e-5)
    flipped = HeckmanProbitBestSubset(n_refits=4).fit(X, 1.0 - y)
    np.testing.assert_allclose(flipped.candidates_["bic"], model.candidates_["bic"], atol=1e-5)


def test_rows_of_files_give_the_same_search(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    X, y = draw(n=300, k=3, seed=4)
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(3)]).assign(y=y)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=110)
    memory = HeckmanProbitBestSubset(n_refits=4).fit(X, y)
    files = HeckmanProbitBestSubset(n_refits=4).fit(scan_parquet(tmp_path, outcome="y"))
    assert files.prediction_features_ == [f"x{i}" for i in memory.prediction_features_]
    for name in ("bic", "rho", "approximate"):
        np.testing.assert_allclose(files.candidates_[name], memory.candidates_[name], atol=1e-6)


def test_weights_are_those_of_the_quadratic_approximation(
    small: tuple[np.ndarray, np.ndarray, HeckmanProbitBestSubset],
) -> None:
    _, _, model = small
    report = model.search_report()
    assert report.weights is not None
    # Between assignments that hold the correction, as all that a search evaluates do.
    found = model.candidates_
    weight = np.exp(-0.5 * (found["approximate"] - found["approximate"].min()))
    average = report.weights.mixture
    corrected = average.leading_states[:, -2] & ~average.leading_states[:, -1]
    masks, shares = average.leading_masks[corrected], average.leading_weight[corrected]
    assert len(found) == 2 ** masks.shape[1]
    known = {tuple(np.flatnonzero(mask)): share for mask, share in zip(masks, shares, strict=True)}
    expected = dict(zip(found["features"], weight, strict=True))
    best = max(known, key=lambda features: known[features])
    # The others have rho near its bounds, where the approximation says nothing.
    assert len(known) >= 4
    for features, share in known.items():
        ratio = expected[features] / expected[best]
        assert share / known[best] == pytest.approx(ratio, rel=1e-6, abs=1e-12)
    assert "quadratic approximation" in str(report)
    assert "lambda" not in str(report)


def test_honest_halves_and_a_bootstrap_repeat_the_search() -> None:
    X, y = draw(n=400, k=2, seed=5)
    model = HeckmanProbitBestSubset(n_refits=2, honest=True, n_splits=2, random_state=0).fit(X, y)
    assert model.honest_.estimates.shape[1] == 2 + 2
    plain = HeckmanProbitBestSubset(n_refits=2).fit(X, y)
    found = plain.bootstrap(X, y, n_boot=2, random_state=0)
    assert {"rho", "x0", "x1"} <= {*found.tidy()["term"]}
    many = RefittedSubset(n_refits=50, verbose=1).for_replicates()
    assert many == RefittedSubset(n_refits=5)


def test_a_full_model_at_the_boundary_holds_rho() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    error = random.normal(size=300)
    # The same error in both equations: rho is one.
    y = np.where(X @ [0.8, 0.0, 0.6] + error > 0, (X @ [0.0, 0.7, 0.6] + error > 0) * 1.0, np.nan)
    model = HeckmanProbitBestSubset(n_refits=3).fit(X, y)
    refits = model.fit_.search.result.refits  # type: ignore[union-attr]
    assert refits is not None
    assert refits.held_rho == pytest.approx(0.98)
    assert any("0.98" in note for note in model.search_report().notes)


def draw_many(n: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw many columns for selection, of which the first two predict, with a rho of .6."""
    random = np.random.default_rng(seed)
    X, errors = random.standard_normal((n, k)), random.standard_normal((n, 2))
    other = 0.6 * errors[:, 0] + 0.8 * errors[:, 1]
    selected = 0.3 + X[:, [0, 2, 3]] @ [0.6, 0.8, 0.5] + errors[:, 0] > 0
    return X, np.where(selected, (0.2 + X[:, :2] @ [1.0, -0.8] + other > 0) * 1.0, np.nan)


def test_rho_is_held_where_a_good_assignment_has_it() -> None:
    X, y = draw_many(300, 20, seed=8)
    model = HeckmanProbitBestSubset(n_refits=10, prediction_features=range(8)).fit(X, y)
    refits = model.fit_.search.result.refits  # type: ignore[union-attr]
    assert refits is not None
    assert model.prediction_features_ == [0, 1]
    assert refits.held_rho == pytest.approx(model.rho_, abs=0.005 + 1e-9)
    # At .98, the approximation is further off.
    assert refits.largest_error(model.candidates_["bic"].to_numpy()) < 1.0
    assert refits.best_is_same(model.candidates_["bic"].to_numpy())


def test_without_a_maximum_the_advice_is_on_an_overfitted_selection() -> None:
    X, y = draw_many(300, 20, seed=4)
    with pytest.raises(NoFeasibleAssignmentError, match="20 selection features for 119 unselected"):
        HeckmanProbitBestSubset(n_refits=2, prediction_features=range(4)).fit(X, y)


def test_the_chosen_model_is_fitted_at_the_maximum_that_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rhos = []

    def fitted(*args: Any, **options: Any) -> ProbitMaximum:
        found = fit_probit_likelihood(*args, **options)
        rhos.append(found.rho)
        return found

    likelihood = replace(binary.LIKELIHOOD, fit=fitted)
    monkeypatch.setattr(binary, "LIKELIHOOD", likelihood)
    X, y = draw_many(250, 25, seed=23)
    model = HeckmanProbitBestSubset(always=[0, 1, 2], prediction_features=[0, 1, 2]).fit(X, y)
    # From separate probits, the climb ends at a rho of one.
    assert rhos == [pytest.approx(1.0, abs=1e-4), model.rho_]
    assert model.rho_ == pytest.approx(model.candidates_["rho"].iloc[0], abs=1e-3)
    best = model.candidates_.iloc[0]
    assert model.log_likelihood_ == pytest.approx(best["log_likelihood"], abs=1e-4)
    assert model.converged_


def test_a_search_that_ends_early_says_what_could_be_better() -> None:
    data = make_selection(400, 6, 2, outcome_kind="binary", random_state=1)
    with pytest.warns(SearchWarning, match=r"max_nodes.*2"):
        model = HeckmanProbitBestSubset(n_refits=1, max_nodes=2).fit(data.X, data.y)
    assert not model.optimal_
    assert model.gap_ > 0.0
    assert " 64 " in " ".join(model.search_report().notes)


def test_the_model_of_all_features_needs_more_selected_rows_than_parameters() -> None:
    class EnoughError(Exception):
        """Raised where the fit would begin."""

    class Selection:
        rows = None

        @property
        def outcome(self) -> None:
            raise EnoughError

    few: Any = SimpleNamespace(n_selected=5)
    selection: Any = Selection()
    with pytest.raises(TooFewRowsError, match="more than 5 selected rows; there are 5"):
        fit_all(few, selection, (0, 1, 2))
    few.n_selected = 6
    with pytest.raises(EnoughError):
        fit_all(few, selection, (0, 1, 2))
