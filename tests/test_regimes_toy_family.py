"""A fifth family, in this file alone: a regression whose rows follow one of two regimes.

It is the endogenous switching regression (Tobit-5): y is seen for everyone, and who is in regime 1
depends on z'gamma + u > 0. It has two outcome equations, two scales and two correlations, and rows
that are not selected have an outcome, too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import heckmanfa
from heckmanfa.analysis import model_classes
from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Block, Rows, total
from heckmanfa.errors import InputError
from heckmanfa.estimators.fitting import attributes
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.fit import LINEAR, Family, Fit, Inputs
from heckmanfa.fit.family import SELECTION, Equation, register
from heckmanfa.fit.making import error_estimates, fit_of_maximum
from heckmanfa.model.error_terms import RHO, SIGMA, ErrorTerm
from heckmanfa.model.joint_problem import JointProblem, State
from heckmanfa.model.likelihood import Doubt, JointMaximum, maximize, warn_of_likelihood
from heckmanfa.model.normal import log_cdf_and_mills

RHO1, SIGMA1 = replace(RHO, name="rho1"), replace(SIGMA, name="sigma1")
RHO0, SIGMA0 = replace(RHO, name="rho0"), replace(SIGMA, name="sigma0")
REGIME1 = Equation("regime1", "Regime 1 ({outcome})", "prediction", "selected")
REGIME0 = Equation("regime0", "Regime 0 ({outcome})", "prediction", "unselected")


@dataclass(frozen=True)
class RegimesProblem(JointProblem):
    """The joint likelihood, in the coordinates of the features themselves."""

    ends: ClassVar[tuple[ErrorTerm, ...]] = (SIGMA0, RHO0, SIGMA1, RHO1)
    n_selecting: int
    """the first columns are those of the selection equation"""
    predicting: tuple[int, ...]
    """places of the prediction features among the columns"""

    @property
    def backs(self) -> dict[str, Floats]:
        outcome = np.eye(1 + len(self.predicting))
        return {"selection": np.eye(1 + self.n_selecting), "regime1": outcome, "regime0": outcome}

    def designs(self, block: Block) -> tuple[Floats, Floats]:
        z, x = block.features[:, : self.n_selecting], block.features[:, self.predicting]
        return np.insert(z, 0, 1.0, axis=1), np.insert(x, 0, 1.0, axis=1)

    def row_terms(self, block: Block, theta: Floats) -> tuple[Floats, Floats]:
        """Log-likelihood of each row, and its derivatives."""
        z, x = self.designs(block)
        values, scores = np.empty(len(z)), np.zeros((len(z), self.size))
        gamma = self.equation("selection")
        for regime, sign in (("1", 1.0), ("0", -1.0)):
            own = np.flatnonzero(block.selected == (sign > 0))
            beta, s, t = (
                self.equation(f"regime{regime}"),
                self.place(f"sigma{regime}"),
                self.place(f"rho{regime}"),
            )
            sigma, cosh, sinh = np.exp(theta[s]), np.cosh(theta[t]), np.sinh(theta[t])
            u, e = z[own] @ theta[gamma], (block.outcome[own] - x[own] @ theta[beta]) / sigma
            log_cdf, ratio, _ = log_cdf_and_mills(sign * (cosh * u + sinh * e))
            in_e = sign * sinh * ratio - e
            values[own] = log_cdf + stats.norm.logpdf(e) - theta[s]
            scores[own, gamma] = (sign * cosh * ratio)[:, None] * z[own]
            scores[own, beta] = (-in_e / sigma)[:, None] * x[own]
            scores[own, s] = -e * in_e - 1.0
            scores[own, t] = sign * ratio * (sinh * u + cosh * e)
        return values, scores

    def row_scores(self, block: Block, theta: Floats) -> Floats:
        return self.row_terms(block, theta)[1]

    def evaluate(self, rows: Rows, theta: Floats) -> State:
        def sums(at: Floats) -> Any:
            return total(rows.map(_sums, self, at, columns=self.columns))

        value, n, gradient = sums(theta)
        step = 1e-4 * np.eye(len(theta))
        slopes = [(sums(theta + move)[2] - sums(theta - move)[2]) / 2e-4 for move in step]
        hessian = np.add(slopes, np.transpose(slopes)) / 2.0
        return State.of(theta, float(value), gradient, hessian, float(n), len(self.ends))


def _sums(block: Block, problem: RegimesProblem, theta: Floats) -> tuple[float, float, Floats]:
    values, scores = problem.row_terms(block, theta)
    weight = np.ones(len(values)) if block.weight is None else block.weight
    return float(weight @ values), float(weight.sum()), weight @ scores


def _squares(block: Block, problem: RegimesProblem) -> tuple[Floats, ...]:
    """Sums of squares and products of [1, x, y], by regime."""
    weight = np.ones(len(block.selected)) if block.weight is None else block.weight
    both = np.column_stack([problem.designs(block)[1], block.outcome])
    weights = weight * block.selected, weight * ~block.selected
    return tuple((both * own[:, None]).T @ both for own in weights)


@dataclass(frozen=True)
class RegimesMaximum(JointMaximum):
    usual_start: ClassVar[str] = "a probit and two regressions"
    hiding: ClassVar[frozenset[Doubt]] = frozenset()
    instead: ClassVar[str] = "use another set of features"  # type: ignore[misc]
    cures: ClassVar[str] = "Look for a stronger exclusion."  # type: ignore[misc]


def _estimate(inputs: Inputs) -> Fit:
    probit, features, rows, spec = inputs.probit, inputs.features, inputs.rows, inputs.spec
    alone = [feature for feature in features if feature not in probit.features]
    columns = (*probit.features, *alone)
    places = tuple(columns.index(feature) for feature in features)
    problem = RegimesProblem(columns, 0.0, 1.0, len(probit.features), places)
    usual = np.zeros(problem.size)
    usual[problem.equation("selection")] = probit.coef
    squares = total(rows.map(_squares, problem, columns=columns))
    for regime, products in zip("10", squares, strict=True):
        beta = np.linalg.solve(products[:-1, :-1], products[:-1, -1])
        rest = products[-1, -1] - beta @ products[:-1, -1]
        usual[problem.equation(f"regime{regime}")] = beta
        usual[problem.place(f"sigma{regime}")] = 0.5 * np.log(rest / products[0, 0])
    estimates = maximize(
        rows, problem, features, inputs.kind, usual, None, start := spec.starting_point
    )
    maximum = RegimesMaximum(**estimates, index_range=inputs.moments.index_range)
    warn_of_likelihood(maximum, start)
    return fit_of_maximum(inputs, maximum)


REGIMES: Family = register(
    replace(
        LINEAR,
        name="regimes",
        words=replace(
            LINEAR.words,
            model="switching regression",
            title="Switching regression",
            lacking={
                "single outcome equation": "an outcome equation for each regime: use of_regime()",
                "single rho": "a correlation for each regime, rho1 and rho0: use of_regime()",
                "profiles": "no profiles of its likelihood",
            },
        ),
        equations=(REGIME1, REGIME0, SELECTION),
        error_terms=(RHO1, SIGMA1, RHO0, SIGMA0),
        dependence="rho1",
        methods=("ml",),
        supports=frozenset(),
        estimate=_estimate,
        begin=None,
        refit=None,
        needs_missing=False,
    )
)


class Regimes(Heckman):
    """The estimator of the family."""

    family: ClassVar[Family] = REGIMES

    def of_regime(self, regime: int) -> Heckman:
        """Return the model of one regime, whose outcome everyone would have had in it."""
        return _with_fit(Heckman(method="ml"), _fit_of_regime(self.fit_, regime))

    def predict(self, X: Any, kind: Any = "marginal", *, regime: int = 1, **options: Any) -> Any:
        return self.of_regime(regime).predict(X, kind, **options)


def _with_fit(model: Heckman, fit: Fit) -> Heckman:
    vars(model).update(attributes(fit))
    return model


def _fit_of_regime(fit: Fit, regime: int) -> Fit:
    """A fit of the linear model, with the estimates of one regime and their covariance."""
    own = [i for i, (name, _) in enumerate(fit.terms) if name in (f"regime{regime}", "selection")]
    s, t = (fit.terms.index(("errors", f"{name}{regime}")) for name in ("sigma", "rho"))
    rho, sigma = (fit.error_values[f"{name}{regime}"] for name in ("rho", "sigma"))
    jacobian = np.eye(len(fit.terms))[[*own, t, t, s]]
    jacobian[len(own), [t, s]] = sigma, rho
    terms = [
        ("prediction", fit.terms[i][1]) if "regime" in fit.terms[i][0] else fit.terms[i]
        for i in own
    ]
    return replace(
        fit,
        spec=replace(fit.spec, outcome_kind="linear"),
        equations={
            "prediction": fit.equations[f"regime{regime}"],
            "selection": fit.equations["selection"],
        },
        errors=error_estimates(imr=rho * sigma, rho=rho, sigma=sigma),
        terms=(*terms, ("errors", "imr"), ("errors", "rho"), ("errors", "sigma")),
        covariance=jacobian @ fit.covariance @ jacobian.T,
        params=None,
        log_likelihood=None,
    )


@dataclass(frozen=True)
class Data:
    X: pd.DataFrame
    y: Floats
    d: Any

    def fit(self, **options: Any) -> Regimes:
        model = Regimes(["x1", "x2"], ["x1", "z"], **options)
        return model.fit(self.X, self.y, selected=self.d)


@pytest.fixture(scope="module")
def data() -> Data:
    rng = np.random.default_rng(8)
    X, u, v = rng.normal(size=(1200, 3)), *rng.normal(size=(2, 1200))
    d = 0.2 + 0.5 * X[:, 0] + X[:, 2] + u > 0
    one = 2.0 - 0.3 * X[:, 0] + 0.8 * X[:, 1] + 0.8 * (-0.5 * u + np.sqrt(0.75) * v)
    zero = 1.0 + 0.7 * X[:, 0] - 0.4 * X[:, 1] + 1.2 * (0.4 * u + np.sqrt(0.84) * v)
    return Data(pd.DataFrame(X, columns=["x1", "x2", "z"]), np.where(d, one, zero), d)


@pytest.fixture(scope="module")
def model(data: Data) -> Regimes:
    return data.fit()


def _row_log_likelihoods(params: Floats, data: Data) -> Floats:
    """The log-likelihood of each row, written out; parameters as in ``params_``."""
    one, zero, gamma = params[:3], params[3:6], params[6:9]
    sigma0, rho0, sigma1, rho1 = (
        np.exp(params[9]),
        np.tanh(params[10]),
        np.exp(params[11]),
        np.tanh(params[12]),
    )
    x = np.column_stack([np.ones(len(data.y)), data.X["x1"], data.X["x2"]])
    u = np.column_stack([np.ones(len(data.y)), data.X["x1"], data.X["z"]]) @ gamma
    terms = np.empty(len(data.y))
    for own, beta, sigma, rho, sign in (
        (data.d, one, sigma1, rho1, 1.0),
        (~data.d, zero, sigma0, rho0, -1.0),
    ):
        e = (data.y[own] - x[own] @ beta) / sigma
        chance = stats.norm.logcdf(sign * (u[own] + rho * e) / np.sqrt(1.0 - rho**2))
        terms[own] = chance + stats.norm.logpdf(e) - np.log(sigma)
    return terms


def _scores(params: Floats, data: Data, step: float = 1e-5) -> Floats:
    unit = step * np.eye(len(params))
    moved = [
        _row_log_likelihoods(params + move, data) - _row_log_likelihoods(params - move, data)
        for move in unit
    ]
    return np.transpose(moved) / (2.0 * step)


def _information(params: Floats, data: Data, step: float = 1e-4) -> Floats:
    unit = step * np.eye(len(params))
    ends = [_scores(params + s * move, data).sum(axis=0) for move in unit for s in (1.0, -1.0)]
    return -(np.array(ends[::2]) - np.array(ends[1::2])) / (2.0 * step)


def _reported_errors(covariance: Floats, params: Floats) -> Floats:
    """Standard errors in the order of tables: the equations, rho1, sigma1, rho0 and sigma0."""
    errors = np.sqrt(np.diag(covariance))
    slopes = [np.exp(params[9]), 1 - np.tanh(params[10]) ** 2] * 2
    slopes[2:] = [np.exp(params[11]), 1 - np.tanh(params[12]) ** 2]
    return np.concatenate([errors[:9], (errors[9:] * slopes)[::-1]])


def test_estimates_and_errors_are_those_of_a_plain_optimiser(model: Any, data: Data) -> None:
    best = optimize.minimize(
        lambda params: -_row_log_likelihoods(params, data).sum(),
        np.zeros(13),
        jac=lambda params: -_scores(params, data).sum(axis=0),
        method="BFGS",
        options={"gtol": 1e-5},
    )
    assert model.log_likelihood_ == pytest.approx(-best.fun, abs=1e-7)
    assert model.params_ == pytest.approx(best.x, abs=1e-5)
    inverse = np.linalg.inv(_information(best.x, data))
    table = model.tidy()
    assert table["std_error"].to_numpy() == pytest.approx(
        _reported_errors(inverse, best.x), rel=1e-5
    )
    robust = data.fit(cov_type="robust")
    scores = _scores(model.params_, data)
    sandwich = inverse @ (scores.T @ scores) @ inverse * len(scores) / (len(scores) - 1.0)
    expected = _reported_errors(sandwich, best.x)
    assert robust.tidy()["std_error"].to_numpy() == pytest.approx(expected, rel=1e-5)


def test_it_agrees_with_r(oracle_frame: Any) -> None:
    frame = oracle_frame("siblings/sim_switching.csv")
    numbers = oracle_frame("siblings/sampleselection.csv").query("case == 'tobit5_sim_ml'")
    model = Data(frame[["x1", "x2", "z"]], frame["y"].to_numpy(), frame["s"].to_numpy() == 1).fit()
    table, fitted = numbers[numbers["equation"] != "fit"], model.tidy()
    # R has selection first, then regime 0 with its sigma and rho, then regime 1.
    order = [6, 7, 8, 3, 4, 5, 12, 11, 0, 1, 2, 10, 9]
    for own, other in (("estimate", "estimate"), ("std_error", "se")):
        assert fitted[own].to_numpy()[order] == pytest.approx(table[other].to_numpy(), abs=1e-6)
    height = numbers.query("term == 'logLik'")["estimate"].item()
    assert model.log_likelihood_ == pytest.approx(height, abs=1e-6)


def test_tables_have_a_block_for_each_equation(model: Any) -> None:
    table, terms = model.tidy(), ["Intercept", "x1", "x2"]
    assert table["equation"].unique().tolist() == ["regime1", "regime0", "selection", "errors"]
    assert table["term"].tolist()[:6] == [*terms, *terms]
    assert table["term"].tolist()[-4:] == ["rho1", "sigma1", "rho0", "sigma0"]
    assert np.sqrt(np.diag(model.vcov())) == pytest.approx(table["std_error"])
    rho = table.set_index("term").loc["rho1"]
    assert -1.0 < rho["ci_low"] < rho["estimate"] < rho["ci_high"] < 0.0
    text = str(model.summary())
    assert text.index("Regime 1") < text.index("Regime 0") < text.index("Selection equation")
    assert model.diagnostics() is not None
    same = model.wald_test("regime1.x1 = regime0.x1, regime1.x2 = regime0.x2")
    assert same.df == 2
    assert same.p_value < 1e-6


@pytest.mark.parametrize("regime", [1, 0])
def test_each_regime_predicts_and_has_margins(model: Any, data: Data, regime: int) -> None:
    equation, errors = model.fit_.equations[f"regime{regime}"], model.fit_.error_values
    mean = equation.intercept + data.X.to_numpy() @ equation.coef
    u = model.selection_intercept_ + data.X.to_numpy() @ model.selection_coef_
    shift = errors[f"rho{regime}"] * errors[f"sigma{regime}"]
    assert model.predict(data.X, regime=regime) == pytest.approx(mean)
    treated = mean + shift * stats.norm.pdf(u) / stats.norm.cdf(u)
    assert model.predict(data.X, "selected", regime=regime) == pytest.approx(treated)
    values, limits = model.predict(
        data.X[:5], "selected", regime=regime, return_interval="confidence"
    )
    assert np.all((limits[:, 0] < values) & (values < limits[:, 1]))
    margins = model.of_regime(regime).margins(data.X, kind="selected").tidy().set_index("term")
    high, low = (
        model.predict(data.X.assign(x1=data.X["x1"] + move), "selected", regime=regime)
        for move in (1e-5, -1e-5)
    )
    assert margins.loc["x1", "estimate"] == pytest.approx(np.mean(high - low) / 2e-5, rel=1e-5)


def test_it_is_bootstrapped_and_has_a_model_file(
    model: Any, data: Data, tmp_path: Path, monkeypatch: Any
) -> None:
    rows = data.X, data.y
    boot = model.bootstrap(*rows, selected=data.d, n_boot=8, random_state=0, n_jobs=1).tidy()
    assert boot[["equation", "term"]].equals(model.tidy()[["equation", "term"]])
    ratio = boot["std_error"] / model.tidy()["std_error"]
    assert np.all((ratio > 0.2) & (ratio < 3.0))
    monkeypatch.setitem(model_classes.MODELS, "Regimes", __name__)
    heckmanfa.save(model, tmp_path / "toy.heckmanfa")
    again = heckmanfa.load(tmp_path / "toy.heckmanfa")
    assert again.tidy().equals(model.tidy())
    assert np.array_equal(again.predict(data.X, regime=0), model.predict(data.X, regime=0))


def test_what_is_about_one_outcome_or_one_rho_is_refused_in_its_words(
    model: Any, data: Data, tmp_path: Path
) -> None:
    rows: dict[str, Any] = {"X": data.X, "y": data.y, "selected": data.d}
    refused = [
        (lambda: model.margins(data.X), "an outcome equation for each regime"),
        (lambda: model.log_likelihood(**rows), "an outcome equation for each regime"),
        (lambda: model.fit_.rho, "a correlation for each regime"),
        (lambda: model.profile_rho(**rows), "no profiles of its likelihood"),
        (lambda: model.what_if(**rows), "switching regression has"),
        (lambda: model.uncertainty_interval(**rows), "switching regression has"),
        (lambda: model.report(tmp_path / "toy.html", **rows), "switching regression has"),
        (lambda: data.fit(start=0.3), "a correlation for each regime"),
        (lambda: data.fit(rho=0.3), "a correlation for each regime"),
    ]
    for call, words in refused:
        with pytest.raises(InputError, match=words):
            call()
    assert not (tmp_path / "toy.html").exists()
    again = data.fit(start=model.params_)
    assert again.params_ == pytest.approx(model.params_, abs=1e-8)
    with pytest.raises(InputError, match=r"start has 2 entries.*13 parameters"):
        data.fit(start=[0.0, 1.0])
