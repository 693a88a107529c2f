"""A fourth family, in this file alone: outcomes of selected rows that are also lost at random.

A share of the selected rows lost its outcome, whoever they are. It has what blocks a family if any
code assumes the usual one: an error term that no other family has, a log-likelihood of rows without
an outcome that is not log Phi(-u), and an optimiser of its own, without a `JointProblem`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import optimize, special

import heckmanfa
from heckmanfa.analysis import model_classes
from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Block
from heckmanfa.errors import InputError, NoExclusionWarning
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.fit import LINEAR, Family, Fit, Inputs
from heckmanfa.fit.family import register
from heckmanfa.fit.fitted import ErrorEstimate
from heckmanfa.fit.making import error_estimates, fit_of_equations
from heckmanfa.model.error_terms import IMR, RHO, SIGMA, ErrorTerm, Transform
from heckmanfa.model.likelihood import likelihood_criteria
from heckmanfa.model.normal import log_cdf
from heckmanfa.model.two_step import solve_two_step

LOST_SHARE = 0.2
LOGIT = Transform(special.logit, special.expit, lambda share: share * (1.0 - share))
LOST = ErrorTerm("lost", 0.0, 1.0, LOGIT, tested=False)


def _log_seen(index: Floats, mean: Floats, outcome: Floats, errors: Any) -> Floats:
    return np.log1p(-errors["lost"]) + LINEAR.log_density(index, mean, outcome, errors)


def _log_unseen(index: Floats, errors: Any) -> Floats:
    return np.log1p(-(1.0 - errors["lost"]) * np.exp(log_cdf(index)))


def _take(block: Block) -> tuple[Floats, Floats, Floats]:
    outcome = np.where(block.selected, block.outcome, np.nan)
    weight = np.ones(len(outcome)) if block.weight is None else block.weight
    return block.features.copy(), outcome, weight


def _by_name(ends: Floats) -> dict[str, float]:
    return dict(zip(("lost", "sigma", "rho"), _plain(ends), strict=True))


def _plain(ends: Floats) -> list[float]:
    return [float(special.expit(ends[0])), float(np.exp(ends[1])), float(np.tanh(ends[2]))]


def _estimate(inputs: Inputs) -> Fit:
    spec, probit, features = inputs.spec, inputs.probit, inputs.features
    columns = sorted({*features, *probit.features})
    parts = list(inputs.rows.map(_take, columns=columns))
    X, outcome, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
    x = np.insert(X[:, [columns.index(column) for column in features]], 0, 1.0, axis=1)
    z = np.insert(X[:, [columns.index(column) for column in probit.features]], 0, 1.0, axis=1)
    seen, j, n = ~np.isnan(outcome), x.shape[1], x.shape[1] + z.shape[1]

    def loss(theta: Floats) -> float:
        mean, index, errors = x @ theta[:j], z @ theta[j:n], _by_name(theta[n:])
        terms = _log_unseen(index, errors)
        terms[seen] = _log_seen(index[seen], mean[seen], outcome[seen], errors)
        return -float(weight @ terms)

    first = solve_two_step(inputs.moments, probit, features)
    assert not isinstance(first, str)
    sigma = float(np.log(first.solution.sigma))
    start = np.array([*first.coef[:-1], *probit.coef, special.logit(0.1), sigma, 0.0])
    best = optimize.minimize(loss, start, method="BFGS", options={"gtol": 1e-3})
    covariance = np.linalg.inv(_hessian(loss, best.x))
    _, sigma, rho = _plain(best.x[n:])
    slopes = np.array([term.transform.slope(value) for term, value in _terms(best.x[n:])])
    # From the scales of the likelihood to imr, rho, sigma and lost.
    ends = np.zeros((4, 3))
    ends[0] = 0.0, rho * slopes[1], sigma * slopes[2]
    ends[[3, 2, 1], [0, 1, 2]] = slopes
    jacobian = np.block([[np.eye(n), np.zeros((n, 3))], [np.zeros((4, n)), ends]])
    errors = error_estimates(imr=rho * sigma)
    spread = np.sqrt(np.diag(covariance)[n:])
    for (term, value), on_scale, error in zip(_terms(best.x[n:]), best.x[n:], spread, strict=True):
        errors[term.name] = ErrorEstimate(value, (float(on_scale), float(error)))
    aic, bic = likelihood_criteria(-best.fun, len(best.x), inputs.n_obs)
    equations = {"prediction": best.x[:j], "selection": best.x[j:n]}
    return fit_of_equations(
        *(inputs, features, equations, errors, spec.error_terms),
        adjusted_r2=float("nan"),
        aic=aic,
        bic=bic,
        log_likelihood=-float(best.fun),
        params=best.x,
        covariance=jacobian @ covariance @ jacobian.T,
    )


def _terms(ends: Floats) -> list[tuple[Any, float]]:
    return list(zip(LOST_AT_RANDOM.likelihood_terms, _plain(ends), strict=True))


def _hessian(function: Any, theta: Floats, step: float = 1e-3) -> Floats:
    """Return second derivatives by central differences."""

    def gradient(point: Floats) -> Floats:
        return optimize.approx_fprime(point, function, 1e-6)

    unit = step * np.eye(len(theta))
    rows = [(gradient(theta + move) - gradient(theta - move)) / (2.0 * step) for move in unit]
    return np.add(rows, np.transpose(rows)) / 2.0


LOST_AT_RANDOM: Family = register(
    replace(
        LINEAR,
        name="lost at random",
        words=replace(LINEAR.words, model="model of lost outcomes"),
        error_terms=(IMR, RHO, SIGMA, LOST),
        methods=("ml",),
        supports=frozenset(),
        estimate=_estimate,
        log_density=_log_seen,
        log_missing=_log_unseen,
        begin=None,
        refit=None,
    )
)


class LostAtRandom(Heckman):
    """The estimator of the family."""

    family: ClassVar[Family] = LOST_AT_RANDOM


@pytest.fixture(scope="module")
def data() -> tuple[Floats, Floats]:
    """Return rows whose selection is strong, so they tell the share of lost outcomes."""
    rng = np.random.default_rng(5)
    X, u, v = rng.normal(size=(3000, 3)), *rng.normal(size=(2, 3000))
    y = 1.0 + X[:, 1] - 0.5 * X[:, 2] + 1.2 * (0.6 * u + 0.8 * v)
    seen = (0.5 + 2.0 * X[:, 0] + X[:, 1] + u > 0) & (rng.random(3000) >= LOST_SHARE)
    return X, np.where(seen, y, np.nan)


@pytest.fixture(scope="module")
def model(data: tuple[Floats, Floats]) -> LostAtRandom:
    return LostAtRandom(prediction_features=[1, 2]).fit(*data)


def test_the_truth_is_found_where_the_usual_model_does_not_find_it(model: Any, data: Any) -> None:
    table = model.tidy().set_index(["equation", "term"])
    truth = [1.0, 1.0, -0.5, 0.5, 2.0, 1.0, 0.0, 0.72, 0.6, 1.2, LOST_SHARE]
    distance = (table["estimate"] - truth) / table["std_error"]
    assert np.all(np.abs(distance) < 3.0)
    usual = Heckman([1, 2], method="ml").fit(*data)
    assert usual.log_likelihood_ < model.log_likelihood_ - 50.0
    assert model.log_likelihood(*data) == pytest.approx(model.log_likelihood_)


def test_its_own_error_term_is_in_every_table(model: Any) -> None:
    table = model.tidy().set_index("term").loc["lost"]
    assert 0.0 < table["ci_low"] < table["estimate"] < table["ci_high"] < 1.0
    assert np.isnan(table["p_value"])
    variance = model.vcov().loc[("errors", "lost"), ("errors", "lost")]
    assert variance == pytest.approx(table["std_error"] ** 2)
    assert "lost" in str(model.summary())
    assert len(model.params_) == 10
    assert model.diagnostics() is not None


def test_it_predicts_and_has_margins_and_a_bootstrap(model: Any, data: Any) -> None:
    X = data[0]
    mean = model.intercept_ + X @ model.coef_
    selected = mean + model.imr_coef_ * model.inverse_mills(X)
    assert model.predict(X, kind="selected") == pytest.approx(selected)
    margins = model.margins(X, kind="selected").tidy().set_index("term")
    step = np.array([0.0, 0.0, 1e-5])
    high, low = (model.predict(X + side * step, kind="selected") for side in (1.0, -1.0))
    assert margins.loc["x2", "estimate"] == pytest.approx(np.mean(high - low) / 2e-5, rel=1e-5)
    boot = model.bootstrap(*data, n_boot=5, random_state=0, n_jobs=1).tidy().set_index("term")
    assert 0.0 < boot.loc["lost", "std_error"] < 0.1


def test_what_it_lacks_is_refused_in_its_words(model: Any, data: Any) -> None:
    for method in (model.profile_rho, model.what_if):
        with pytest.raises(InputError, match="model of lost outcomes has no"):
            method(*data)


def test_it_has_a_model_file_and_a_report(
    model: Any, data: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setitem(model_classes.MODELS, "LostAtRandom", __name__)
    with pytest.warns(NoExclusionWarning):
        whole = LostAtRandom().fit(*data)
    for saved in (model, whole):
        heckmanfa.save(saved, tmp_path / "toy.heckmanfa", force=True)
        again = heckmanfa.load(tmp_path / "toy.heckmanfa")
        assert again.tidy().equals(saved.tidy())
    model.report(tmp_path / "toy.html", *data)
    assert "Did selection matter?" in (tmp_path / "toy.html").read_text(encoding="utf-8")
