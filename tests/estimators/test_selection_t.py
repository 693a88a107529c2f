"""The selection-t model against plain optimisers, simulation, the normal model and invariances."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import heckmanfa
from heckmanfa.analysis import analyse
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError, NormalTailsWarning, NotIdentifiedError
from heckmanfa.estimators.heckman import Heckman
from heckmanfa.fit import PassedRows
from heckmanfa.inference.profiler import Likelihood
from heckmanfa.inference.rows_of_fit import read_fit_rows
from heckmanfa.model.likelihood import outer_estimates
from heckmanfa.model.newton import newton
from heckmanfa.model.student_problem import StudentProblem

DF, RHO, SIGMA = 5.0, 0.6, 1.5


def _simulated(n: int = 400, df: float = DF, seed: int = 1) -> SimpleNamespace:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    scale = np.sqrt(rng.chisquare(df, n) / df) if np.isfinite(df) else np.ones(n)
    u, v = rng.normal(size=(2, n))
    e = (RHO * u + np.sqrt(1.0 - RHO**2) * v) / scale
    seen = 0.3 + X @ [0.5, 0.0, 0.8] + u / scale > 0
    y = np.where(seen, 1.0 + X @ [0.5, 1.0, 0.0] + SIGMA * e, np.nan)
    return SimpleNamespace(X=X, y=y, seen=seen)


def _model(**options: Any) -> Heckman:
    return Heckman([0, 1], [0, 2], method="ml", errors="t", **options)


@pytest.fixture(scope="module")
def data() -> SimpleNamespace:
    return _simulated()


@pytest.fixture(scope="module")
def model(data: Any) -> Heckman:
    return _model().fit(data.X, data.y)


def _row_log_likelihoods(theta: Any, x: Any, z: Any, y: Any) -> Any:
    """Each row's log-likelihood, written out: beta, gamma, log df, log sigma and atanh rho."""
    j, p = x.shape[1], z.shape[1]
    beta, gamma = theta[:j], theta[j : j + p]
    df, sigma, rho = np.exp(theta[-3]), np.exp(theta[-2]), np.tanh(theta[-1])
    seen, index = ~np.isnan(y), z @ gamma
    e = (y[seen] - x[seen] @ beta) / sigma
    a = np.sqrt((df + 1.0) / (df + e**2)) * (index[seen] + rho * e) / np.sqrt(1.0 - rho**2)
    terms = stats.t.logcdf(-index, df)
    terms[seen] = stats.t.logpdf(e, df) - np.log(sigma) + stats.t.logcdf(a, df + 1.0)
    return terms


def _scores(theta: Any, *rows: Any, step: float = 1e-5) -> Any:
    moves = step * np.eye(len(theta))
    ends = [
        _row_log_likelihoods(theta + m, *rows) - _row_log_likelihoods(theta - m, *rows)
        for m in moves
    ]
    return np.transpose(ends) / (2.0 * step)


def _plain_fit(start: Any, *rows: Any) -> tuple[Any, float, Any, Any]:
    """Return the maximum, its height, the inverse information and the scores."""
    found = optimize.minimize(
        lambda theta: -_row_log_likelihoods(theta, *rows).sum(),
        start,
        jac=lambda theta: -_scores(theta, *rows).sum(axis=0),
        method="BFGS",
        options={"gtol": 1e-5},
    )
    moves = 1e-4 * np.eye(len(start))
    hessian = [
        (_scores(found.x + m, *rows) - _scores(found.x - m, *rows)).sum(axis=0) / 2e-4
        for m in moves
    ]
    return found.x, -found.fun, np.linalg.inv(-np.array(hessian)), _scores(found.x, *rows)


def _as_tables_show(theta: Any, covariance: Any) -> tuple[Any, Any]:
    """Estimates and errors of the equations, then of imr, rho, sigma and df."""
    df, sigma, rho = np.exp(theta[-3]), np.exp(theta[-2]), np.tanh(theta[-1])
    jacobian = np.zeros((len(theta) + 1, len(theta)))
    jacobian[:-4, :-3] = np.eye(len(theta) - 3)
    jacobian[-4, -2:] = rho * sigma, sigma * (1.0 - rho**2)
    jacobian[-3, -1], jacobian[-2, -2], jacobian[-1, -3] = 1.0 - rho**2, sigma, df
    estimates = [*theta[:-3], rho * sigma, rho, sigma, df]
    return np.array(estimates), np.sqrt(np.diag(jacobian @ covariance @ jacobian.T))


def _ones(X: Any, *columns: int) -> Any:
    return np.column_stack([np.ones(len(X)), X[:, list(columns)]])


def test_estimates_and_errors_are_those_of_a_plain_optimiser(model: Heckman, data: Any) -> None:
    rows = _ones(data.X, 0, 1), _ones(data.X, 0, 2), data.y
    start = np.array([0.0] * 6 + [1.5, 0.0, 0.0])
    theta, height, inverse, scores = _plain_fit(start, *rows)
    estimates, errors = _as_tables_show(theta, inverse)
    table = model.tidy()
    assert table["term"].tolist()[-4:] == ["imr", "rho", "sigma", "df"]
    assert model.log_likelihood_ == pytest.approx(height, abs=1e-7)
    assert model.log_likelihood(data.X, data.y) == pytest.approx(height, abs=1e-7)
    assert table["estimate"].to_numpy() == pytest.approx(estimates, rel=1e-4, abs=1e-5)
    assert table["std_error"].to_numpy() == pytest.approx(errors, rel=1e-4)
    robust = _model(cov_type="robust").fit(data.X, data.y).tidy()
    n = len(data.y)
    sandwich = inverse @ (scores.T @ scores) @ inverse * n / (n - 1.0)
    assert robust["std_error"].to_numpy() == pytest.approx(
        _as_tables_show(theta, sandwich)[1], rel=1e-4
    )
    groups = np.arange(n) // 4
    summed = np.add.reduceat(scores, np.arange(0, n, 4))
    g = len(summed)
    clusters = inverse @ (summed.T @ summed) @ inverse * g / (g - 1.0)
    by_cluster = _model(cov_type="cluster").fit(data.X, data.y, groups=groups).tidy()
    assert by_cluster["std_error"].to_numpy() == pytest.approx(
        _as_tables_show(theta, clusters)[1], rel=1e-4
    )


def test_mroz_is_fitted_as_by_a_plain_optimiser() -> None:
    mroz = load_mroz()
    z = mroz[["nwifeinc", "educ", "exper", "expersq", "age", "kids5", "kids618"]]
    model = Heckman(["educ", "exper", "expersq"], method="ml", errors="t").fit(z, mroz["lwage"])
    scaled = (z - z.mean()) / z.std()
    of_x, of_z = _ones(scaled.to_numpy(), 1, 2, 3), _ones(scaled.to_numpy(), *range(7))
    rows = of_x, of_z, mroz["lwage"].to_numpy()
    own = Heckman([1, 2, 3], method="ml", errors="t").fit(scaled.to_numpy(), mroz["lwage"])
    start = own.params_.copy()
    start[-3] = np.log(own.fit_.errors["df"].value)
    theta, height, inverse, _ = _plain_fit(start, *rows)
    assert own.log_likelihood_ == pytest.approx(model.log_likelihood_, abs=1e-7)
    assert model.log_likelihood_ == pytest.approx(height, abs=1e-6)
    estimates, errors = _as_tables_show(theta, inverse)
    table = own.tidy()
    assert table["estimate"].to_numpy() == pytest.approx(estimates, rel=1e-3, abs=1e-3)
    assert table["std_error"].to_numpy() == pytest.approx(errors, rel=1e-3)
    spread = z.std().to_numpy()[1:4]
    assert model.coef_[1:4] * spread == pytest.approx(own.coef_[1:4], rel=1e-6)
    normal = Heckman(["educ", "exper", "expersq"], method="ml").fit(z, mroz["lwage"])
    # lwage has heavy tails.
    assert model.log_likelihood_ > normal.log_likelihood_ + 20.0
    assert model.fit_.details.normal_log_likelihood == pytest.approx(normal.log_likelihood_)


def test_it_recovers_what_was_simulated() -> None:
    data = _simulated(8_000, seed=3)
    model = _model().fit(data.X, data.y)
    table = model.tidy()
    truth = [1.0, 0.5, 1.0, 0.3, 0.5, 0.8, RHO * SIGMA, RHO, SIGMA, DF]
    assert np.all(np.abs(table["estimate"] - truth) < 3.5 * table["std_error"])
    assert np.all(table["std_error"] < 0.12 * np.maximum(1.0, truth))


def test_many_degrees_of_freedom_give_the_normal_model(data: Any) -> None:
    normal = Heckman([0, 1], [0, 2], method="ml").fit(data.X, data.y)
    profile = _model().fit(data.X, data.y).profile_df(data.X, data.y, grid=[3.0, 1e6]).tidy()
    by_df = profile.set_index("df")["log_likelihood"]
    assert by_df[np.inf] == pytest.approx(normal.log_likelihood_, abs=1e-7)
    assert by_df[1e6] == pytest.approx(normal.log_likelihood_, abs=1e-2)


def test_held_at_a_million_degrees_of_freedom_estimates_are_normal_ones(data: Any) -> None:
    normal = Heckman([0, 1], [0, 2], method="ml").fit(data.X, data.y)
    fit = _model().fit(data.X, data.y).fit_
    likelihood = Likelihood.build(fit, read_fit_rows(fit, PassedRows(data.X, data.y)).rows)
    problem, theta = likelihood.problem, likelihood.usual.copy()
    place = problem.place("df")
    theta[place] = 1e-3
    state, _, converged = newton(likelihood.rows, problem, theta, free=problem.all_but(place))
    assert converged
    held = np.delete(outer_estimates(problem, state.theta)[0], -3)
    assert held == pytest.approx(normal.params_, abs=1e-4)
    # The normal model is a saddle, which Newton's method leaves unless it is held there.
    theta = likelihood.usual.copy()
    theta[place] = 0.0
    state, _, converged = newton(likelihood.rows, problem, theta, free=problem.all_but(place))
    assert state.theta[place] == 0.0
    state, _, converged = newton(likelihood.rows, problem, state.theta)
    assert converged
    assert abs(state.theta[place]) == pytest.approx(likelihood.usual[place], abs=1e-5)


def test_newtons_method_steps_in_the_inverse_of_df(model: Heckman, data: Any) -> None:
    fit = model.fit_
    likelihood = Likelihood.build(fit, read_fit_rows(fit, PassedRows(data.X, data.y)).rows)
    problem, rows = likelihood.problem, likelihood.rows
    theta = likelihood.usual + 0.01
    state = problem.stepping(problem.evaluate(rows, theta))
    values, gradients = [], []
    step = 1e-4
    for move in step * np.eye(problem.size):
        ends = [problem.evaluate(rows, problem.moved(theta, side * move)) for side in (1, -1)]
        values.append((ends[0].log_likelihood - ends[1].log_likelihood) / (2 * step))
        slopes = [problem.stepping(end).gradient for end in ends]
        gradients.append((slopes[0] - slopes[1]) / (2 * step))
    scale = np.sqrt(np.abs(np.diag(state.hessian)))
    assert state.gradient / scale == pytest.approx(np.array(values) / scale, abs=1e-5)
    assert state.hessian / np.outer(scale, scale) == pytest.approx(
        np.array(gradients) / np.outer(scale, scale), abs=1e-5
    )
    # A step beyond infinitely many degrees of freedom ends there.
    far = np.zeros(problem.size)
    far[problem.place("df")] = -1.0
    assert problem.moved(theta, far)[problem.place("df")] == 0.0


@pytest.mark.parametrize(
    ("df", "seed", "most"),
    # The normal model is the estimate; nearly so; and heavy tails.
    [(np.inf, 3, 2), (np.inf, 7, 5), (5.0, 1, 5)],
)
def test_few_passes_read_all_rows(
    df: float, seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = _simulated(12_000, df, seed)
    passes = []
    evaluate = StudentProblem.evaluate

    def counted(problem: StudentProblem, rows: Any, theta: Any) -> Any:
        state = evaluate(problem, rows, theta)
        passes.append(state.n == len(data.y))
        return state

    monkeypatch.setattr(StudentProblem, "evaluate", counted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NormalTailsWarning)
        found = _model().fit(data.X, data.y).fit_.errors["df"].value
    assert np.isinf(found) == (seed == 3)
    assert sum(passes) <= most
    assert len(passes) < 120


def test_normal_errors_end_at_the_normal_model_and_say_so() -> None:
    data = _simulated(400, np.inf, seed=3)
    normal = Heckman([0, 1], [0, 2], method="ml").fit(data.X, data.y)
    with pytest.warns(NormalTailsWarning, match="infinite degrees of freedom"):
        model = _model().fit(data.X, data.y)
    assert np.isinf(model.fit_.errors["df"].value)
    assert model.log_likelihood_ == pytest.approx(normal.log_likelihood_, abs=1e-8)
    same = ["estimate", "std_error", "ci_low", "ci_high"]
    table = model.tidy()
    assert table[same].iloc[:-1].to_numpy() == pytest.approx(normal.tidy()[same].to_numpy())
    last = table.iloc[-1]
    assert np.isnan(last["std_error"])
    assert 1.0 < last["ci_low"] < np.inf
    assert np.isposinf(last["ci_high"])
    for kind in ("marginal", "selected", "unselected", "expected"):
        ours = model.predict(data.X[:9], kind, return_interval="confidence")
        theirs = normal.predict(data.X[:9], kind, return_interval="confidence")
        assert ours[0] == pytest.approx(theirs[0])
        assert ours[1] == pytest.approx(theirs[1])
    text = str(model.summary())
    assert "infinite" in text
    assert "standard_errors" not in {fact.key for fact in model.diagnostics().facts}
    assert model.profile_df(data.X, data.y, grid=3).test.p_value == 1.0
    with pytest.warns(NormalTailsWarning):
        robust = _model(cov_type="robust").fit(data.X, data.y).tidy()
    assert np.isnan(robust.iloc[-1]["ci_low"])
    assert robust["std_error"].iloc[:-1].gt(0).all()


def test_units_order_and_weights_change_nothing_else(model: Heckman, data: Any) -> None:
    table = model.tidy()["estimate"].to_numpy()
    in_cents = _model().fit(data.X, 100.0 * data.y).tidy()["estimate"].to_numpy()
    scale = np.array([100.0] * 3 + [1.0] * 3 + [100.0, 1.0, 100.0, 1.0])
    assert in_cents == pytest.approx(table * scale, rel=1e-6)
    order = np.random.default_rng(0).permutation(len(data.y))
    moved = _model().fit(data.X[order], data.y[order]).tidy()
    assert moved["estimate"].to_numpy() == pytest.approx(table, rel=1e-7)
    twice = np.repeat(np.arange(len(data.y)), 2)
    weighted = _model().fit(data.X, data.y, sample_weight=np.full(len(data.y), 2.0))
    doubled = _model().fit(data.X[twice], data.y[twice])
    for column in ("estimate", "std_error"):
        assert weighted.tidy()[column].to_numpy() == pytest.approx(
            doubled.tidy()[column].to_numpy(), rel=1e-6
        )
    assert weighted.log_likelihood_ == pytest.approx(2.0 * model.log_likelihood_)


def test_sampling_weights_do_not_depend_on_their_scale(data: Any) -> None:
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(data.y))
    one, other = (
        _model(weight_kind="sampling", cov_type="robust")
        .fit(data.X, data.y, sample_weight=factor * weight)
        .tidy()
        for factor in (1.0, 7.0)
    )
    assert one["estimate"].to_numpy() == pytest.approx(other["estimate"].to_numpy())
    assert one["std_error"].to_numpy() == pytest.approx(other["std_error"].to_numpy())


def test_the_profile_of_df_has_its_interval_and_its_test(model: Heckman, data: Any) -> None:
    profile = model.profile_df(data.X, data.y, grid=7)
    table = profile.tidy()
    df = model.fit_.errors["df"].value
    top = table.set_index("df")["log_likelihood"]
    assert top.idxmax() == pytest.approx(df)
    assert top.max() == pytest.approx(model.log_likelihood_)
    assert np.isposinf(table["df"].iloc[-1])
    low, high = profile.interval()
    assert low < df < high < np.inf
    ends = model.profile_df(data.X, data.y, grid=[low, high]).tidy().set_index("df")["deviance"]
    assert ends[[low, high]].tolist() == pytest.approx([stats.chi2.ppf(0.95, 1)] * 2, abs=0.05)
    statistic = 2.0 * (model.log_likelihood_ - model.fit_.details.normal_log_likelihood)
    assert profile.test.statistic == pytest.approx(statistic, abs=1e-6)
    assert profile.test.p_value == pytest.approx(0.5 * stats.chi2.sf(statistic, 1))
    assert "half" in str(profile)
    robust = _model(cov_type="robust").fit(data.X, data.y).profile_df(data.X, data.y, grid=2)
    assert np.isnan(robust.interval()[0])
    assert "robust" in robust.test.note


def test_predictions_are_the_expectations_of_a_simulation(model: Heckman) -> None:
    rng = np.random.default_rng(0)
    n = 200_000
    errors = model.fit_.error_values
    df, rho, sigma = errors["df"], errors["rho"], errors["sigma"]
    scale = np.sqrt(rng.chisquare(df, n) / df)
    u, v = rng.normal(size=(2, n)) / scale
    e = sigma * (rho * u + np.sqrt(1.0 - rho**2) * v)
    row = np.array([[0.4, -0.3, -0.6]])
    mean = model.predict(row)[0]
    seen = model.predict_selection(row, scale="link")[0] + u > 0
    assert model.predict_selection(row)[0] == pytest.approx(seen.mean(), abs=3e-3)
    assert model.predict(row, "selected")[0] == pytest.approx((mean + e)[seen].mean(), abs=0.02)
    assert model.predict(row, "unselected")[0] == pytest.approx((mean + e)[~seen].mean(), abs=0.02)
    expected = np.where(seen, mean + e, 0.0).mean()
    assert model.predict(row, "expected")[0] == pytest.approx(expected, abs=0.02)
    ratio = model.inverse_mills(row)[0]
    assert model.predict(row, "selected")[0] == pytest.approx(mean + rho * sigma * ratio)
    low, high = model.predict(row, return_interval="prediction")[1][0]
    assert np.mean((mean + e > low) & (mean + e < high)) == pytest.approx(0.95, abs=5e-3)


@pytest.mark.parametrize("kind", ["selected", "unselected", "expected", "selection"])
def test_errors_of_predictions_are_those_of_the_delta_method(
    model: Heckman, data: Any, kind: str
) -> None:
    fit, row = model.fit_, np.array([[0.4, -0.3, -0.6]])
    names = [f"{equation}.{term}" for equation, term in fit.terms]
    values = model.tidy()["estimate"].to_numpy()

    def value(at: Any) -> float:
        own = dict(zip(names, at, strict=True))
        mean = at[0] + row[0, [0, 1]] @ at[1:3]
        index = at[3] + row[0, [0, 2]] @ at[4:6]
        df, imr = own["errors.df"], own["errors.imr"]
        partial = (df + index**2) / (df - 1.0) * stats.t.pdf(index, df)
        chance = stats.t.cdf(index, df)
        return float(
            {
                "selection": chance,
                "selected": mean + imr * partial / chance,
                "unselected": mean - imr * partial / (1.0 - chance),
                "expected": chance * mean + imr * partial,
            }[kind]
        )

    gradient = np.array(
        [(value(values + m) - value(values - m)) / 2e-5 for m in 1e-5 * np.eye(len(values))]
    )
    error = np.sqrt(gradient @ fit.covariance @ gradient)
    table = model.margins(row, kind=kind, what="predictions").tidy()
    assert table["estimate"].item() == pytest.approx(value(values))
    assert table["std_error"].item() == pytest.approx(error, rel=1e-6)
    if kind == "selection":
        assert model.predict_selection(row, return_std=True)[1][0] == pytest.approx(error)
    step = np.array([[1e-5, 0.0, 0.0]])

    def predicted(at: Any) -> float:
        if kind == "selection":
            return float(model.predict_selection(at)[0])
        return float(model.predict(at, kind)[0])

    slopes = model.margins(row, kind=kind).tidy()
    slope = (predicted(row + step) - predicted(row - step)) / 2e-5
    assert slopes["estimate"].iloc[0] == pytest.approx(slope, rel=1e-6)
    assert slopes["std_error"].iloc[0] > 0


def test_rho_may_be_held_started_and_profiled(model: Heckman, data: Any) -> None:
    held = _model(rho=0.3).fit(data.X, data.y)
    assert held.rho_ == 0.3
    again = _model(start=-0.5).fit(data.X, data.y)
    assert again.params_ == pytest.approx(model.params_, abs=1e-6)
    assert _model(start=model.params_).fit(data.X, data.y).rho_ == pytest.approx(model.rho_)
    profile = model.profile_rho(data.X, data.y, grid=5).tidy()
    assert profile["log_likelihood"].max() == pytest.approx(model.log_likelihood_, abs=1e-6)
    at = model.profile_rho(data.X, data.y, grid=[0.0, 0.3]).at([0.3])[0]
    assert at == pytest.approx(held.log_likelihood_, abs=1e-6)


def test_formulas_wald_tests_and_categories(data: Any) -> None:
    frame = pd.DataFrame(data.X, columns=["a", "b", "c"]).assign(
        y=data.y, g=np.where(np.arange(len(data.y)) % 3 == 0, "u", "v")
    )
    options: dict[str, Any] = {"method": "ml", "errors": "t"}
    model = Heckman.from_formula("y ~ a + b + g", "a + c + g", frame, **options)
    plain = Heckman(["a", "b", "g"], ["a", "c", "g"], **options).fit(
        frame[list("abcg")], frame["y"]
    )
    keys = ["equation", "term"]
    own, other = (each.tidy().set_index(keys)["estimate"] for each in (model, plain))
    own = own.rename(lambda term: term.replace("[T.", "["))
    assert own[other.index].to_numpy() == pytest.approx(other.to_numpy(), rel=1e-6)
    assert model.wald_test("b = 1").p_value > 0.001
    assert model.wald_test("imr = 0").p_value < 0.01
    assert list(model.vcov().index[-1]) == ["errors", "df"]
    assert model.predict(frame[:3]) == pytest.approx(plain.predict(frame[list("abcg")][:3]))
    changed = model.what_if(frame).coefficients()
    assert "df" in set(changed["term"])


def test_it_is_bootstrapped_and_has_a_model_file(model: Heckman, data: Any, tmp_path: Path) -> None:
    boot = model.bootstrap(data.X, data.y, n_boot=12, random_state=0, n_jobs=1).tidy()
    ratio = boot["std_error"] / model.tidy()["std_error"]
    assert np.all((ratio > 0.4) & (ratio < 2.2))
    heckmanfa.save(model, tmp_path / "t.heckmanfa")
    again = heckmanfa.load(tmp_path / "t.heckmanfa")
    assert again.errors == "t"
    assert again.tidy().equals(model.tidy())
    assert np.array_equal(again.predict(data.X, "selected"), model.predict(data.X, "selected"))
    assert again.fit_.details.normal_log_likelihood == model.fit_.details.normal_log_likelihood


def test_scanned_rows_and_a_report(model: Heckman, data: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame(data.X, columns=["a", "b", "c"]).assign(y=data.y)
    frame.to_parquet(tmp_path / "rows.parquet")
    scanned = heckmanfa.scan_parquet(tmp_path / "rows.parquet", outcome="y")
    far = Heckman(["a", "b"], ["a", "c"], method="ml", errors="t").fit(scanned)
    assert far.params_ == pytest.approx(model.params_, rel=1e-7)
    model.report(tmp_path / "r.html", data.X, data.y)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "robit" in page
    assert "degrees of freedom" in page


def test_tensors_give_the_same(model: Heckman, data: Any) -> None:
    torch = pytest.importorskip("torch")
    X, y = torch.tensor(data.X), torch.tensor(data.y)
    fitted = _model(cov_type="robust").fit(X, y)
    assert fitted.params_ == pytest.approx(model.params_, rel=1e-8)
    predicted = fitted.predict(X[:5], "selected")
    assert predicted.numpy() == pytest.approx(model.predict(data.X[:5], "selected"))
    assert fitted.predict_selection(X[:5]).numpy() == pytest.approx(
        model.predict_selection(data.X[:5])
    )


def test_a_question_about_a_table_takes_it(data: Any) -> None:
    table = pd.DataFrame(data.X, columns=["a", "b", "c"]).assign(y=data.y)
    asked: dict[str, Any] = {"outcome": "y", "search": "none", "select_only": ["c"]}
    analysis = analyse(table, **asked, method="ml", errors="t")
    own = Heckman(["a", "b"], method="ml", errors="t").fit(table[list("abc")], table["y"])
    assert analysis.model.fit_.errors["df"].value == pytest.approx(own.fit_.errors["df"].value)
    assert "--errors t" in analysis.question.command()
    for wrong, words in (
        ({"search": "none"}, "method"),
        ({"search": "average", "method": "ml"}, "none"),
        ({"search": "none", "method": "ml", "outcome_transform": "log"}, "errors"),
    ):
        with pytest.raises(InputError, match=words):
            analyse(table, outcome="y", errors="t", **wrong)
    with pytest.raises(InputError, match="normal, t"):
        analyse(table, **asked, errors="cauchy")


def test_what_it_lacks_is_refused_in_a_sentence(model: Heckman, data: Any) -> None:
    rows = data.X, data.y
    for call in (
        lambda: model.uncertainty_interval(*rows),
        lambda: model.specification_tests(*rows),
        lambda: model.mills_ratios(*rows),
    ):
        with pytest.raises(InputError, match="selection-t model has t errors"):
            call()
    with pytest.raises(InputError, match="has no return_interval='prediction' given selection"):
        model.predict(data.X, "selected", return_interval="prediction")
    normal = Heckman([0, 1], [0, 2], method="ml").fit(*rows)
    with pytest.raises(InputError, match="errors='t'"):
        normal.profile_df(*rows)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"errors": "t"}, "needs method='ml'"),
        ({"errors": "cauchy", "method": "ml"}, "errors"),
        ({"errors": "t", "method": "ml", "outcome_transform": "log1p"}, "outcome_transform"),
    ],
)
def test_bad_parameters_are_refused(data: Any, options: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Heckman([0, 1], [0, 2], **options).fit(data.X, data.y)


def test_bad_rows_and_grids_are_refused(model: Heckman, data: Any) -> None:
    with pytest.raises(NotIdentifiedError, match="400 rows"):
        _model().fit(data.X, data.X[:, 1])
    for grid in (1, [2.0], [0.0, 3.0], ["a", "b"]):
        with pytest.raises(InputError, match="grid"):
            model.profile_df(data.X, data.y, grid=grid)


def test_tails_without_a_mean_have_no_expectation() -> None:
    data = _simulated(400, 0.6, seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _model().fit(data.X, data.y)
    assert model.fit_.errors["df"].value < 1.0
    assert np.isnan(model.predict(data.X[:3], "selected")).all()
    assert np.isfinite(model.predict(data.X[:3])).all()
    assert "no mean" in str(model.diagnostics())


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")
def test_degrees_of_freedom_that_stay_infinite_have_not_moved() -> None:
    rng = np.random.default_rng(4)
    X, u = rng.normal(size=(500, 3)), rng.uniform(-1.7, 1.7, 500)
    y = 1 + X[:, 0] + X[:, 1] + 0.5 * u + rng.uniform(-1.7, 1.7, 500)
    y = np.where(X[:, 0] + X[:, 2] + u > 0, y, np.nan)
    model = Heckman([0, 1], method="ml", errors="t").fit(X, y)
    assert model.fit_.error_values["df"] == np.inf
    # Warnings of NumPy are errors here.
    terms = model.what_if(X, y).terms.query("term == 'df'")
    assert (terms["shift"][terms["after"] == np.inf] == 0.0).all()
    assert len(terms) == 3
