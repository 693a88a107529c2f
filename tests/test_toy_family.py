"""A third family, in this file alone: a linear outcome whose errors have a known scale.

It has what no other family has together: a coefficient of lambda, no sigma to estimate, and maximum
likelihood only. Everything that users call must follow from its `Family`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import heckmanfa
from heckmanfa.analysis import analyse, compare_methods, model_classes
from heckmanfa.analysis.outcome_models import OUTCOME_MODELS, OutcomeModel
from heckmanfa.data.arrays import Array, Floats
from heckmanfa.data.rows import Rows
from heckmanfa.datasets import make_selection
from heckmanfa.errors import InputError, NoExclusionWarning
from heckmanfa.estimators.averaged import HeckmanAverage
from heckmanfa.estimators.baselines import NaiveOLS
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.fit import LINEAR, Family, Inputs
from heckmanfa.fit.family import Beginning, register
from heckmanfa.fit.making import fit_of_maximum
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.error_terms import IMR, RHO, ErrorTerm
from heckmanfa.model.joint_problem import LinearProblem, State, index_range
from heckmanfa.model.likelihood import (
    Doubt,
    JointMaximum,
    maximize,
    maximize_held,
    warn_of_likelihood,
)
from heckmanfa.model.newton import (
    ProfileStarts,
    StartsByRho,
    read_start,
    starting_point,
)
from heckmanfa.model.two_step import fit_two_step

SIGMA_KNOWN = 1.3


@dataclass(frozen=True)
class KnownScaleProblem(LinearProblem):
    """The linear likelihood without its log sigma, which is known."""

    ends: ClassVar[tuple[ErrorTerm, ...]] = (RHO,)

    def _with_scale(self, theta: Floats) -> Floats:
        return np.insert(theta, -1, np.log(SIGMA_KNOWN / self.scale))

    def evaluate(self, rows: Rows, theta: Floats) -> State:
        whole = _linear(self).evaluate(rows, self._with_scale(theta))
        kept = np.delete(np.arange(len(whole.theta)), -2)
        hessian = whole.hessian[np.ix_(kept, kept)]
        return State(theta, whole.log_likelihood, whole.gradient[kept], hessian, whole.n, 1)

    def slopes_at(self, index: Array, mean: Array, outcome: Array, theta: Floats) -> list[Array]:
        slopes = _linear(self).slopes_at(index, mean, outcome, self._with_scale(theta))
        return [*slopes[:3], slopes[4]]


def _linear(problem: KnownScaleProblem) -> LinearProblem:
    return LinearProblem(**{field.name: getattr(problem, field.name) for field in fields(problem)})


@dataclass(frozen=True)
class KnownScaleStarts(StartsByRho):
    linear: ProfileStarts

    def at(self, atanh_rho: float) -> Floats:
        return np.delete(self.linear.at(atanh_rho), -2)


@dataclass(frozen=True)
class KnownScaleMaximum(JointMaximum):
    usual_start: ClassVar[str] = "the two-step estimates"
    hiding: ClassVar[frozenset[Doubt]] = frozenset({"flat"})
    instead: ClassVar[str] = "use another set of features"  # type: ignore[misc]
    cures: ClassVar[str] = "Look for a stronger exclusion."  # type: ignore[misc]

    @property
    def sigma(self) -> float:
        return SIGMA_KNOWN

    def reported_covariance(self) -> Floats:
        slope = 1.0 - self.rho**2
        jacobian = np.vstack([np.eye(len(self.covariance)), np.zeros(len(self.covariance))])
        jacobian[-2:, -1] = SIGMA_KNOWN * slope, slope
        return np.asarray(jacobian @ self.covariance @ jacobian.T)


def _begin(moments: Any, probit: Any, features: Any, rows: Any) -> Beginning:
    first = fit_two_step(moments, probit, features, CLASSICAL, rows)
    problem = KnownScaleProblem.build(moments, probit, first.features)
    starts = KnownScaleStarts(ProfileStarts.build(moments, probit, first.features, problem))
    return Beginning(first, problem, starts, np.delete(starting_point(problem, probit, first), -2))


def _refit(
    moments: Any, probit: Any, rows: Any, features: Any, kind: Any, start: Any, **_: Any
) -> Any:
    begun = _begin(moments, probit, features, rows)
    found = maximize(rows, begun.problem, features, kind, begun.usual, begun.starts, start)
    return _maximum(moments, begun, rows, found)


def _maximum(moments: Any, begun: Beginning, rows: Any, found: dict[str, Any]) -> Any:
    offset = moments.n_selected * float(np.log(begun.problem.scale))
    found |= {"log_likelihood": found["log_likelihood"] - offset}
    seen = index_range(rows, begun.problem, found["inner_params"])
    return KnownScaleMaximum(**found, index_range=seen).reported()


def _estimate(inputs: Inputs) -> Any:
    spec, moments, rows = inputs.spec, inputs.moments, inputs.rows
    if not spec.held:
        start = read_start(spec.start, spec.method)
        maximum = _refit(moments, inputs.probit, rows, inputs.features, inputs.kind, start)
        warn_of_likelihood(maximum, start)
    else:
        begun = _begin(moments, inputs.probit, inputs.features, rows)
        held = maximize_held(
            rows, begun.problem, inputs.features, inputs.kind, begun.starts, spec.held["rho"]
        )
        maximum = _maximum(moments, begun, rows, held)
    return fit_of_maximum(inputs, maximum)


KNOWN_SCALE: Family = register(
    replace(
        LINEAR,
        name="known scale",
        words=replace(LINEAR.words, model="model of a known scale"),
        error_terms=(IMR, RHO),
        methods=("ml",),
        supports=frozenset({"residuals"}),
        estimate=_estimate,
        begin=_begin,
        refit=_refit,
    )
)


class KnownScale(Heckman):
    """The estimator of the family."""

    family: ClassVar[Family] = KNOWN_SCALE


class KnownScaleAverage(HeckmanAverage):
    """Averages over assignments of the family."""

    family: ClassVar[Family] = KNOWN_SCALE


@pytest.fixture(scope="module")
def data() -> Any:
    return make_selection(800, 4, 2, rho=0.6, sigma=SIGMA_KNOWN, random_state=3)


@pytest.fixture(scope="module")
def model(data: Any) -> KnownScale:
    return KnownScale(prediction_features=[1, 2]).fit(data.X, data.y)


def _log_likelihood(theta: Floats, data: Any) -> float:
    """The joint log-likelihood, written out."""
    beta, gamma, rho = theta[:3], theta[3:8], np.tanh(theta[8])
    seen = ~np.isnan(data.y)
    index = gamma[0] + data.X @ gamma[1:]
    error = (data.y[seen] - beta[0] - data.X[seen, 1:3] @ beta[1:]) / SIGMA_KNOWN
    chance = stats.norm.logcdf((index[seen] + rho * error) / np.sqrt(1.0 - rho**2))
    density = stats.norm.logpdf(error) - np.log(SIGMA_KNOWN)
    return float(np.sum(chance + density) + np.sum(stats.norm.logcdf(-index[~seen])))


def _information(theta: Floats, data: Any, step: float = 1e-4) -> Floats:
    """Minus the second derivatives of the log-likelihood, by central differences."""
    unit = step * np.eye(len(theta))
    return -np.array(
        [
            [
                sum(
                    one * other * _log_likelihood(theta + one * unit[i] + other * unit[j], data)
                    for one in (1.0, -1.0)
                    for other in (1.0, -1.0)
                )
                / (4.0 * step**2)
                for j in range(len(theta))
            ]
            for i in range(len(theta))
        ]
    )


def test_the_estimates_are_those_of_a_plain_optimiser(model: KnownScale, data: Any) -> None:
    found = optimize.minimize(
        lambda theta: -_log_likelihood(theta, data),
        np.zeros(9),
        method="BFGS",
        options={"gtol": 1e-6},
    )
    assert model.log_likelihood_ == pytest.approx(-found.fun, abs=1e-6)
    assert model.params_ == pytest.approx(found.x, abs=1e-4)
    errors = np.sqrt(np.diag(np.linalg.inv(_information(found.x, data))))[:3]
    own = model.tidy().query("equation == 'prediction'")["std_error"]
    assert own.to_numpy() == pytest.approx(errors, rel=1e-3)
    assert model.log_likelihood(data.X, data.y) == pytest.approx(model.log_likelihood_)


def test_tables_show_its_error_terms(model: KnownScale) -> None:
    table = model.tidy()
    assert table.query("equation == 'errors'")["term"].tolist() == ["imr", "rho"]
    assert ("errors", "sigma") not in model.vcov().index
    assert model.sigma_ == SIGMA_KNOWN
    assert "sigma" not in str(model.summary()).split("Prediction", 1)[1].split("Notes")[0]
    assert len(model.params_) == 9


def test_it_predicts_by_its_expectations(model: KnownScale, data: Any) -> None:
    mean = model.intercept_ + data.X @ model.coef_
    ratio = model.inverse_mills(data.X)
    assert model.predict(data.X, kind="selected") == pytest.approx(
        mean + model.rho_ * SIGMA_KNOWN * ratio
    )
    values, limits = model.predict(data.X[:5], kind="selected", return_interval="confidence")
    assert np.all((limits[:, 0] < values) & (values < limits[:, 1]))


def test_margins_are_slopes_of_the_predictions(model: KnownScale, data: Any) -> None:
    table = model.margins(data.X, kind="selected").tidy().set_index("term")
    step = np.zeros(4)
    step[1] = 1e-5
    high, low = (model.predict(data.X + side * step, kind="selected") for side in (1.0, -1.0))
    assert table.loc["x1", "estimate"] == pytest.approx(np.mean(high - low) / 2e-5, rel=1e-5)
    assert table.loc["x1", "std_error"] > 0


def test_it_is_profiled_and_bootstrapped(model: KnownScale, data: Any) -> None:
    profile = model.profile_rho(data.X, data.y, grid=9)
    assert profile.tidy()["log_likelihood"].max() == pytest.approx(model.log_likelihood_, abs=1e-6)
    boot = model.bootstrap(data.X, data.y, n_boot=60, random_state=0, n_jobs=1).tidy()
    own = model.tidy()
    slopes = own["equation"] == "prediction"
    ratio = boot["std_error"].to_numpy()[: slopes.sum()] / own["std_error"][slopes]
    assert np.all((ratio > 0.6) & (ratio < 1.6))


def test_held_rho_and_robust_errors(data: Any) -> None:
    held = KnownScale(prediction_features=[1, 2], rho=0.3).fit(data.X, data.y)
    assert held.rho_ == 0.3
    assert held.vcov().loc[("errors", "rho"), ("errors", "rho")] == 0.0
    robust = KnownScale(prediction_features=[1, 2], cov_type="robust").fit(data.X, data.y)
    errors = robust.tidy()["std_error"]
    assert np.all(errors > 0)


def test_analyses_refit_it(model: KnownScale, data: Any) -> None:
    changed = model.what_if(data.X, data.y)
    assert {"imr", "rho"} <= {*changed.coefficients()["term"]}
    with pytest.raises(InputError, match="model of a known scale"):
        model.what_if()
    bounds = model.uncertainty_interval(data.X, data.y, rho=(-0.2, 0.2), n_grid=3).tidy()
    at_zero = KnownScale(prediction_features=[1, 2], rho=0.2).fit(data.X, data.y)
    assert bounds["bound_high"].iloc[1] >= at_zero.coef_[1] - 1e-6
    assert model.diagnostics() is not None


def test_it_is_averaged(data: Any) -> None:
    model = KnownScaleAverage().fit(data.X, data.y)
    form = model.fit_.average.form
    assert form.known_sigma == SIGMA_KNOWN
    with pytest.warns(NoExclusionWarning):
        whole = KnownScale().fit(data.X, data.y)
    assert form.terms(form.estimates)[-2:] == pytest.approx([whole.imr_coef_, whole.rho_])
    assert model.tidy().query("equation == 'errors'")["term"].tolist() == ["imr", "rho"]
    assert model.sigma_ == pytest.approx(SIGMA_KNOWN)
    assert model.inclusion_.set_index("feature")["bic"].loc[1] > 0.99
    assert "%" in str(model.summary())


def test_it_has_a_model_file(
    model: KnownScale, data: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setitem(model_classes.MODELS, "KnownScale", __name__)
    heckmanfa.save(model, tmp_path / "toy.heckmanfa")
    again = heckmanfa.load(tmp_path / "toy.heckmanfa")
    assert again.fit_.family is KNOWN_SCALE
    assert again.predict(data.X) == pytest.approx(model.predict(data.X), rel=1e-12)
    assert again.tidy().equals(model.tidy())


def test_questions_about_tables_know_it(data: Any, tmp_path: Path, monkeypatch: Any) -> None:
    for name in ("KnownScale", "KnownScaleAverage"):
        monkeypatch.setitem(model_classes.MODELS, name, __name__)
    estimators: Any = {"average": "KnownScaleAverage", "none": "KnownScale"}
    monkeypatch.setitem(OUTCOME_MODELS, "known scale", OutcomeModel(estimators))
    table = pd.DataFrame(data.X, columns=list("abcd")).assign(y=data.y)
    asked = {"outcome": "y", "outcome_kind": "known scale"}
    analysis = analyse(table, **asked, search="none", select_only=["a", "d"])
    own = KnownScale(prediction_features=[1, 2]).fit(data.X, data.y)
    assert type(analysis.model) is KnownScale
    assert analysis.model.coef_ == pytest.approx(own.coef_)
    assert "outcome-kind 'known scale'" in analysis.question.command()
    assert type(analyse(table, **asked).model) is KnownScaleAverage
    with pytest.raises(InputError, match=r"best-subset.*average or none"):
        analyse(table, **asked, search="best-subset")
    compared = compare_methods(
        table[list("abcd")],
        data.y,
        outcome_kind="known scale",
        estimators={"all features": own, "naive OLS": NaiveOLS()},
        n_folds=2,
        n_repeats=1,
    )
    assert {*compared.tidy()["method"]} == {"all features", "naive OLS"}
    analysis.reported()


def test_it_has_a_report(model: KnownScale, data: Any, tmp_path: Path) -> None:
    for name, rows in (("rows", (data.X, data.y)), ("bare", ())):
        model.report(tmp_path / f"{name}.html", *rows)
        page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
        assert "Did selection matter?" in page
        assert "\ue000" not in page
    average = KnownScaleAverage().fit(data.X, data.y)
    average.report(tmp_path / "average.html", data.X, data.y)
