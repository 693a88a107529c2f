"""Best subsets of treatments, ordered outcomes and t errors, against fits of every subset."""

from __future__ import annotations

import functools
import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import heckmanfa
from heckmanfa import (
    Heckman,
    HeckmanBestSubset,
    HeckmanOrdered,
    HeckmanOrderedBestSubset,
    TreatmentBestSubset,
    TreatmentModel,
)
from heckmanfa.errors import HeckmanfaWarning, InputError

N, K = 400, 3
_RNG = np.random.default_rng(2)
X, _U, _V = _RNG.normal(size=(N, K + 1)), *_RNG.normal(size=(2, N))
D = 0.2 + 0.5 * X[:, 0] + 0.8 * X[:, K] + _U > 0
_Y = 1.0 + 0.6 * X[:, 0] - 0.3 * X[:, 2] + 0.5 * _U + 0.8 * _V
Y = {
    "ordered": np.where(D, np.digitize(_Y, [0.3, 1.6]).astype(float), np.nan),
    "t": np.where(D, _Y + 0.1 * _V**3, np.nan),
    "common": _Y + 1.5 * D,
    "separate": np.where(D, _Y, 0.4 + 0.5 * X[:, 0] + _V - 0.3 * _U),
}
SETS = [list(s) for size in range(K + 1) for s in itertools.combinations(range(K), size)]
KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "ordered": (HeckmanOrderedBestSubset, HeckmanOrdered, {}),
    "t": (HeckmanBestSubset, Heckman, {"method": "ml", "errors": "t"}),
    "common": (TreatmentBestSubset, TreatmentModel, {"method": "ml"}),
    "separate": (TreatmentBestSubset, TreatmentModel, {"method": "ml", "regimes": "separate"}),
}


def _fit(model: Any, name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HeckmanfaWarning)
        return model.fit(X, Y[name], **({"treated": D} if "treat" in model.roles[1] else {}))


def _search(name: str, **options: Any) -> Any:
    search, _, own = KINDS[name]
    return _fit(search(**{search.roles[0]: list(range(K))} | own | options), name)


@functools.cache
def _searched(name: str) -> Any:
    """The search without options, made once for tests that only ask it."""
    return _search(name)


@pytest.mark.parametrize("name", KINDS)
def test_refits_are_the_fits_of_these_features_and_the_best_is_the_best_of_all(name):
    model, (_, plain, own) = _searched(name), KINDS[name]
    table = model.candidates_.set_index("features")
    m = N if name in ("common", "separate") else D.sum()
    each = 2 if name == "separate" else 1
    criteria = {}
    for features in SETS:
        fit = _fit(plain(features, **own), name)
        row = table.loc[[tuple(features)]].iloc[0]
        assert row["log_likelihood"] == pytest.approx(fit.log_likelihood_, abs=1e-4)
        if name != "separate":
            assert row["rho"] == pytest.approx(fit.rho_, abs=1e-3)
        criteria[tuple(features)] = -2 * fit.log_likelihood_ + each * len(features) * np.log(m)
        assert row["bic"] == pytest.approx(criteria[tuple(features)], abs=1e-3)
    best = min(criteria, key=criteria.get)
    assert model.prediction_features_ == [*best]
    assert model.optimal_
    chosen = _fit(plain([*best], **own), name)
    ends = ["estimate", "std_error"]
    one, other = (each.tidy()[ends].to_numpy() for each in (model, chosen))
    assert one == pytest.approx(other, rel=1e-4, nan_ok=True)


@pytest.mark.parametrize("regimes", ["common", "separate"])
def test_two_steps_choose_by_the_wald_statistic_of_what_is_left_out(regimes):
    search = TreatmentBestSubset(outcome_features=list(range(K)), regimes=regimes)
    table = _fit(search, regimes).candidates_.set_index("features")
    whole = _fit(TreatmentModel(list(range(K)), regimes=regimes), regimes)
    estimates = whole.tidy().set_index(["equation", "term"])["estimate"]
    equations = ["outcome"] if regimes == "common" else ["regime1", "regime0"]
    values = {}
    for features in SETS:
        away = [(e, f"x{j}") for e in equations for j in range(K) if j not in features]
        theta, V = estimates.loc[away].to_numpy(), whole.vcov().loc[away, away].to_numpy()
        wald = theta @ np.linalg.solve(V, theta) if away else 0.0
        values[tuple(features)] = wald + len(equations) * len(features) * np.log(N)
        row = table.loc[[tuple(features)]].iloc[0]
        assert row["bic"] == pytest.approx(values[tuple(features)], rel=1e-6, abs=1e-8)
        assert row["aic"] == pytest.approx(
            wald + 2 * len(equations) * len(features), rel=1e-6, abs=1e-8
        )
    assert search.prediction_features_ == [*min(values, key=values.get)]
    assert search.optimal_


@pytest.mark.parametrize("name", ["ordered", "separate"])
def test_constraints_and_groups_hold_in_every_equation(name):
    model = _search(name, always=[1], feature_groups=[[0, 2]], n_refits=5)
    assert {tuple(features) for features in model.candidates_["features"]} == {(1,), (0, 1, 2)}
    assert set(_search(name, max_features=1).candidates_["n_features"]) <= {0, 1}
    ebic = _search(name, criterion="ebic").candidates_
    assert (ebic["ebic"].diff().dropna() >= 0).all()


@pytest.mark.parametrize("name", KINDS)
def test_a_model_file_keeps_the_search(name, tmp_path):
    model = _searched(name)
    heckmanfa.save(model, tmp_path / "model.json")
    again = heckmanfa.load(tmp_path / "model.json")
    assert again.candidates_.equals(model.candidates_)
    assert again.optimal_ == model.optimal_


@pytest.mark.parametrize("name", KINDS)
def test_the_bootstrap_searches_again(name):
    model = _searched(name) if name == "t" else _search(name, n_refits=2)
    treated = {"treated": D} if name in ("common", "separate") else {}
    boot = model.bootstrap(X, Y[name], n_boot=2, random_state=0, **treated)
    assert len(boot.replicates.support) == 2


@pytest.mark.parametrize("name", KINDS)
def test_the_summary_says_that_standard_errors_ignore_the_search(name):
    said = " ".join(str(_searched(name).summary()).split())
    assert "ignore the search" in said


def test_what_these_searches_do_not_have_is_refused_in_a_sentence():
    for options in ({"criterion": "adjusted_r2"}, {"honest": True}, {"search_in": "both"}):
        with pytest.raises(InputError, match=r"has no .*: leave that out"):
            _search("t", **options)
    with pytest.raises(InputError, match="about one outcome equation"):
        _searched("common").search_report()
    with pytest.raises(ValueError, match="criterion"):
        _search("ordered", criterion="corrected_bic")
