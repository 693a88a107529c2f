"""Ordered probit with selection against an independent maximiser, HeckmanProbit and simulations."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import optimize, special, stats
from sklearn.base import clone, is_classifier

import heckmanfa
import heckmanfa.plots
from heckmanfa import HeckmanOrdered, HeckmanProbit
from heckmanfa.errors import (
    ConstantOutcomeError,
    InputError,
    InputTypeError,
    SeparationError,
    TooFewRowsError,
)
from heckmanfa.fit import PassedRows
from heckmanfa.inference.rows_of_fit import read_fit_rows

TRUE = {"coef": [0.8, -0.5], "cuts": [-1.0, 0.0, 1.0], "rho": 0.5}
NAMES = ["a", "b", "c"]
LEVELS = ["bad", "fair", "good", "top"]


def simulate(n: int, cuts: Any = TRUE["cuts"], seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features, and classes of the selected rows: a only selects."""
    rng, rho = np.random.default_rng(seed), TRUE["rho"]
    X = rng.normal(size=(n, 3))
    e, v = rng.normal(size=(2, n))
    selected = 0.3 + X[:, 0] + 0.3 * X[:, 1] + rho * e + np.sqrt(1 - rho**2) * v > 0
    y = np.digitize(X[:, 1:] @ TRUE["coef"] + e, cuts).astype(float)
    return pd.DataFrame(X, columns=NAMES), np.where(selected, y, np.nan)


def texts(y: np.ndarray) -> pd.Series:
    """Return the classes as an ordered category of texts."""
    named = [LEVELS[int(code)] if code == code else None for code in y]
    return pd.Series(pd.Categorical(named, LEVELS, ordered=True), name="health")


@pytest.fixture(scope="module")
def data() -> tuple[pd.DataFrame, np.ndarray]:
    return simulate(1200)


@pytest.fixture(scope="module")
def model(data: Any) -> HeckmanOrdered:
    return HeckmanOrdered(["b", "c"]).fit(*data)


# Estimates. ----------------------------------------------------------------------------------


def stata_log_likelihood(theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    """Log-likelihood with cut points and without an intercept, by quadrature over the error of
    selection: nothing of the package is used."""
    beta, gamma, cuts, t = theta[:2], theta[2:6], theta[6:9], theta[9]
    if np.any(np.diff(cuts) <= 0):
        return -np.inf
    rho, seen = np.tanh(t), ~np.isnan(y)
    eta, u = X[:, 1:] @ beta, gamma[0] + X @ gamma[1:]
    nodes, weights = np.polynomial.legendre.leggauss(48)
    # The error w of selection is above -u; 12 units above the larger of -u and 0 hold all.
    low = np.maximum(-u[seen], -12.0)[:, None]
    high = np.maximum(-u[seen], 0.0)[:, None] + 12.0
    w = low + 0.5 * (high - low) * (nodes + 1.0)
    edges = np.concatenate([[-np.inf], cuts, [np.inf]])
    code = y[seen].astype(int)
    r = np.sqrt(1 - rho**2)
    upper = (edges[code + 1] - eta[seen])[:, None] - rho * w
    lower = (edges[code] - eta[seen])[:, None] - rho * w
    inner = special.ndtr(upper / r) - special.ndtr(lower / r)
    density = np.exp(-0.5 * w**2) / np.sqrt(2 * np.pi)
    chance = 0.5 * (high - low)[:, 0] * ((density * inner) @ weights)
    return float(np.log(chance).sum() + special.log_ndtr(-u[~seen]).sum())


def test_an_independent_maximiser_finds_the_same_in_stata_s_parameters(
    data: Any, model: HeckmanOrdered
) -> None:
    X, y = data[0].to_numpy()[:200], data[1][:200]
    ours = HeckmanOrdered([1, 2]).fit(X, y)
    start = np.array([0.5, -0.3, 0.2, 0.8, 0.2, 0.0, -0.8, 0.1, 0.9, 0.2])
    best = optimize.minimize(
        lambda theta: -stata_log_likelihood(theta, X, y),
        start,
        method="BFGS",
        options={"gtol": 1e-5},
    )
    assert ours.log_likelihood_ == pytest.approx(-best.fun, abs=1e-7)
    cuts = ours.cut_points()
    table = ours.tidy().set_index(["equation", "term"])
    names = [("prediction", "x1"), ("prediction", "x2")]
    names += [("selection", term) for term in ("Intercept", "x0", "x1", "x2")]
    estimates = [*table.loc[names, "estimate"], *cuts["estimate"], np.arctanh(ours.rho_)]
    np.testing.assert_allclose(estimates, best.x, atol=2e-5)
    h, unit = 1e-3, np.eye(10)

    def second(i: int, j: int) -> float:
        terms = [
            a * b * stata_log_likelihood(best.x + h * (a * unit[i] + b * unit[j]), X, y)
            for a in (1, -1)
            for b in (1, -1)
        ]
        return sum(terms) / (4 * h * h)

    upper = np.array([[second(i, j) if j >= i else 0.0 for j in range(10)] for i in range(10)])
    hessian = upper + np.triu(upper, 1).T
    errors = np.sqrt(np.diag(np.linalg.inv(-hessian)))
    at_rho = table.loc[("errors", "rho"), "std_error"] / (1 - ours.rho_**2)
    found = [*table.loc[names, "std_error"], *cuts["std_error"], at_rho]
    np.testing.assert_allclose(found, errors, rtol=1e-3)


def test_a_row_s_likelihood_is_that_of_scipy_s_bivariate_normal(model: HeckmanOrdered) -> None:
    rows = pd.DataFrame([[0.1, 0.4, -0.2], [-1.0, 0.3, 1.0]], columns=NAMES)
    index = model.selection_intercept_ + rows.to_numpy() @ model.selection_coef_
    edges = np.concatenate([[-np.inf], model.cut_points_, [np.inf]])
    shape = [[1.0, -model.rho_], [-model.rho_, 1.0]]
    for code in range(4):
        # The error of selection is above -u: its negative is below u.
        expected = [
            np.log(
                stats.multivariate_normal([0, 0], shape).cdf(
                    [high, u], lower_limit=[low, -30.0], rng=np.random.default_rng(0)
                )
            )
            for u, low, high in zip(
                index,
                np.maximum(edges[code] - rows.to_numpy() @ model.coef_, -30),
                np.minimum(edges[code + 1] - rows.to_numpy() @ model.coef_, 30),
                strict=True,
            )
        ]
        total = model.log_likelihood(rows, np.full(2, float(code)))
        assert total == pytest.approx(sum(expected), abs=1e-6)


@pytest.mark.parametrize(
    "options", [{}, {"cov_type": "robust"}, {"rho": 0.3}, {"start": -0.4}], ids=str
)
def test_two_classes_are_the_heckman_probit(options: dict[str, Any]) -> None:
    X, y = simulate(1000, cuts=[0.2], seed=1)
    ours = HeckmanOrdered(["b", "c"], **options).fit(X, y)
    other = HeckmanProbit(["b", "c"], **options).fit(X, y)
    np.testing.assert_allclose(ours.params_, other.params_, rtol=0, atol=1e-8)
    assert ours.log_likelihood_ == pytest.approx(other.log_likelihood_, abs=1e-8)
    assert (ours.aic_, ours.bic_) == pytest.approx((other.aic_, other.bic_))
    np.testing.assert_allclose(ours.vcov(), other.vcov(), rtol=0, atol=1e-8)
    assert list(ours.vcov().index) == list(other.vcov().index)
    pd.testing.assert_frame_equal(ours.tidy(), other.tidy(), rtol=1e-7)
    for kind in ("marginal", "selected", "unselected"):
        found = ours.predict_proba(X, kind=kind)
        np.testing.assert_allclose(found, other.predict_proba(X, kind=kind), rtol=0, atol=1e-8)
        np.testing.assert_array_equal(ours.predict(X, kind=kind), other.predict(X, kind=kind))
    assert ours.score(X, y) == other.score(X, y)
    assert ours.cut_points_ == pytest.approx([-other.intercept_])


def test_two_classes_have_the_margins_of_the_heckman_probit() -> None:
    X, y = simulate(700, cuts=[0.2], seed=1)
    kinds = ["marginal", "selected", "unselected", "expected", "selection"]
    ours = HeckmanOrdered(["b", "c"]).fit(X, y).margins(X, kind=kinds).tidy()
    other = HeckmanProbit(["b", "c"]).fit(X, y).margins(X, kind=kinds).tidy()
    numbers = ["estimate", "std_error", "ci_low", "ci_high"]
    upper = ours[(ours["class"] == 1.0) | ours["class"].isna()]
    np.testing.assert_allclose(upper[numbers], other[numbers], rtol=0, atol=1e-8)


def test_clusters_and_weights_are_those_of_the_heckman_probit() -> None:
    X, y = simulate(900, cuts=[0.2], seed=3)
    groups, weight = np.arange(900) % 50, 1.0 + np.arange(900) % 3
    fits = [
        [
            cls(["b", "c"], cov_type="cluster").fit(X, y, groups=groups),
            cls(["b", "c"]).fit(X, y, sample_weight=weight),
            cls(["b", "c"], cov_type="robust", weight_kind="sampling").fit(
                X, y, sample_weight=weight / 7
            ),
        ]
        for cls in (HeckmanOrdered, HeckmanProbit)
    ]
    for ours, other in zip(*fits, strict=True):
        np.testing.assert_allclose(ours.params_, other.params_, rtol=0, atol=1e-8)
        np.testing.assert_allclose(ours.vcov(), other.vcov(), rtol=0, atol=1e-8)


def test_a_frequency_weight_of_two_is_two_rows(data: Any) -> None:
    X, y = data
    weight = 1.0 + np.arange(len(y)) % 2
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    weighted = HeckmanOrdered(["b", "c"], cov_type="robust").fit(X, y, sample_weight=weight)
    repeated = HeckmanOrdered(["b", "c"], cov_type="robust").fit(X.iloc[twice], y[twice])
    np.testing.assert_allclose(weighted.params_, repeated.params_, atol=1e-9)
    assert weighted.fit_.class_counts == repeated.fit_.class_counts


def test_gradient_hessian_and_scores_match_differences(model: HeckmanOrdered, data: Any) -> None:
    fit = model.fit_
    read = read_fit_rows(fit, PassedRows(*data))
    beginning = fit.family.begin(read.moments, read.probit, (1, 2), read.rows)
    problem = beginning.problem
    theta = beginning.usual + 0.1 * np.random.default_rng(0).normal(size=problem.size)
    state, h = problem.evaluate(read.rows, theta), 1e-5
    sides = [
        [problem.evaluate(read.rows, theta + s * h * move) for s in (1, -1)]
        for move in np.eye(problem.size)
    ]
    gradient = [(a.log_likelihood - b.log_likelihood) / (2 * h) for a, b in sides]
    hessian = [(a.gradient - b.gradient) / (2 * h) for a, b in sides]
    np.testing.assert_allclose(state.gradient, gradient, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(state.hessian, hessian, rtol=1e-5, atol=1e-4)
    scores = read.rows.map(problem.row_scores, theta, columns=problem.columns)
    np.testing.assert_allclose(sum(part.sum(axis=0) for part in scores), state.gradient, rtol=1e-9)


def test_the_truth_is_found() -> None:
    X, y = simulate(8_000, seed=7)
    fitted = HeckmanOrdered(["b", "c"]).fit(X, y)
    table = fitted.tidy().set_index(["equation", "term"])
    terms = [("prediction", "b"), ("prediction", "c"), ("errors", "rho"), ("selection", "a")]
    away = (table.loc[terms, "estimate"] - [0.8, -0.5, 0.5, 1.0]) / table.loc[terms, "std_error"]
    assert np.abs(away).max() < 3.5
    cuts = fitted.cut_points()
    assert np.abs((cuts["estimate"] - TRUE["cuts"]) / cuts["std_error"]).max() < 3.5
    # Those who are selected are healthier: without the correction, cut points are too low.
    naive = fitted.fit_.details.naive_coef
    assert -naive[0] < -1.2


def test_the_order_of_rows_does_not_matter(model: HeckmanOrdered, data: Any) -> None:
    order = np.random.default_rng(0).permutation(len(data[1]))
    again = HeckmanOrdered(["b", "c"]).fit(data[0].iloc[order], data[1][order])
    np.testing.assert_allclose(again.params_, model.params_, rtol=0, atol=1e-9)


def test_classes_in_reverse_order_flip_signs(model: HeckmanOrdered, data: Any) -> None:
    X, y = data
    turned = HeckmanOrdered(["b", "c"]).fit(X, 3.0 - y)
    np.testing.assert_allclose(turned.coef_, -model.coef_, atol=1e-8)
    np.testing.assert_allclose(turned.cut_points_, -model.cut_points_[::-1], atol=1e-8)
    np.testing.assert_allclose(turned.selection_coef_, model.selection_coef_, atol=1e-8)
    assert turned.rho_ == pytest.approx(-model.rho_, abs=1e-8)
    assert turned.log_likelihood_ == pytest.approx(model.log_likelihood_, abs=1e-8)
    np.testing.assert_allclose(
        turned.cut_points()["std_error"], model.cut_points()["std_error"][::-1], rtol=1e-6
    )
    np.testing.assert_allclose(
        turned.predict_proba(X, kind="selected")[:, ::-1],
        model.predict_proba(X, kind="selected"),
        atol=1e-9,
    )


# Predictions. --------------------------------------------------------------------------------


def test_probabilities_add_up_and_mix(model: HeckmanOrdered, data: Any) -> None:
    X = data[0]
    kinds = {kind: model.predict_proba(X, kind) for kind in ("marginal", "selected", "unselected")}
    chance = model.predict_selection(X)[:, None]
    for each in kinds.values():
        np.testing.assert_allclose(each.sum(axis=1), 1.0, rtol=1e-12)
    mixed = chance * kinds["selected"] + (1 - chance) * kinds["unselected"]
    np.testing.assert_allclose(mixed, kinds["marginal"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), kinds["marginal"])
    edges = np.concatenate([[-np.inf], model.cut_points_, [np.inf]])
    mean = X.to_numpy() @ model.coef_
    expected = np.diff(stats.norm.cdf(edges[None] - mean[:, None]), axis=1)
    np.testing.assert_allclose(kinds["marginal"], expected, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), np.argmax(expected, axis=1))


def test_far_rows_keep_their_digits(model: HeckmanOrdered) -> None:
    far = pd.DataFrame({"a": [-9e3, -2e6, 40.0], "b": [0.1, 0.2, -30.0], "c": 0.0})
    for kind in ("marginal", "selected", "unselected"):
        logs = model.predict_log_proba(far, kind)
        assert np.all(np.isfinite(logs))
        np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0, rtol=1e-6)


def test_margins_are_derivatives_and_add_up_to_zero(model: HeckmanOrdered, data: Any) -> None:
    X, h = data[0], 1e-5
    margins = model.margins(X, kind="selected", features=["b"])
    high, low = (model.predict_proba(X.assign(b=X["b"] + s * h), "selected") for s in (1, -1))
    table = margins.tidy()
    assert list(table["class"]) == [0.0, 1.0, 2.0, 3.0]
    np.testing.assert_allclose(table["estimate"], (high - low).mean(axis=0) / (2 * h), atol=1e-8)
    np.testing.assert_allclose(margins.vcov().sum(axis=1), 0.0, atol=1e-12)
    shares = model.margins(X, kind="selected", what="predictions").tidy()
    np.testing.assert_allclose(
        shares["estimate"], model.predict_proba(X, "selected").mean(axis=0), rtol=1e-9
    )


def test_standard_errors_of_margins_are_those_of_all_parameters(model: Any, data: Any) -> None:
    X, params, h = data[0].to_numpy(), model.params_, 1e-5

    def shares(theta: np.ndarray) -> np.ndarray:
        beta, gamma, steps, rho = theta[:3], theta[3:7], np.exp(theta[7:9][::-1]), np.tanh(theta[9])
        mean, u = beta[0] + X[:, 1:] @ beta[1:], gamma[0] + X @ gamma[1:]
        cuts = np.concatenate([[-np.inf, 0.0], np.cumsum(steps), [np.inf]])
        w, weights = np.polynomial.legendre.leggauss(60)
        w = 5.0 * (w + 1.0) - u[:, None]
        dense = 5.0 * weights * stats.norm.pdf(w) / stats.norm.cdf(u)[:, None]
        r = np.sqrt(1 - rho**2)
        below = [
            (dense * stats.norm.cdf((cut - mean[:, None] - rho * w) / r)).sum(axis=1).mean()
            for cut in cuts
        ]
        return np.diff(below)

    jacobian = np.column_stack(
        [(shares(params + h * move) - shares(params - h * move)) / (2 * h) for move in np.eye(10)]
    )
    # From the scales of tables (rho, step2, step3 last) to those of the likelihood.
    order = [0, 1, 2, 3, 4, 5, 6, 9, 8, 7]
    slope = np.ones(10)
    slope[7:] = (
        1 - model.rho_**2,
        *model.tidy().set_index("term").loc[["step2", "step3"], "estimate"],
    )
    covariance = model.vcov().to_numpy() / slope / slope[:, None]
    expected = np.sqrt(np.diag(jacobian[:, order] @ covariance @ jacobian[:, order].T))
    found = model.margins(data[0], kind="selected", what="predictions").tidy()
    np.testing.assert_allclose(found["std_error"], expected, rtol=1e-4)


# Labels and rooms. ---------------------------------------------------------------------------


def test_labels_have_the_order_of_their_category_or_of_classes(model: Any, data: Any) -> None:
    X, y = data
    named = texts(y)
    words = named.astype(object).where(named.notna(), None).to_numpy()
    enum = pl.Series("health", words.tolist(), dtype=pl.Enum(LEVELS))
    fits = [
        HeckmanOrdered(["b", "c"]).fit(X, named),
        HeckmanOrdered(["b", "c"]).fit(pl.from_pandas(X), enum),
        HeckmanOrdered(["b", "c"], classes=LEVELS).fit(X, words),
    ]
    for fitted in fits:
        np.testing.assert_allclose(fitted.params_, model.params_, rtol=0, atol=1e-12)
        assert fitted.classes_.tolist() == LEVELS
        assert fitted.score(X, words) == model.score(X, y)
    assert fits[0].predict(X[:3].assign(b=[np.nan, 0, 0]), missing="nan")[0] is None
    assert "'top'" in str(fits[0].summary())
    assert list(fits[0].cut_points()["below"]) == LEVELS[:-1]


def test_formulas_model_files_scans_and_copies_give_the_same(
    model: Any, data: Any, tmp_path: Path
) -> None:
    X, y = data
    frame = X.assign(health=texts(y), y=y)
    formula = HeckmanOrdered.from_formula("health ~ b + c", "~ a + b + c", frame)
    assert formula.log_likelihood_ == pytest.approx(model.log_likelihood_, abs=1e-9)
    assert formula.score(frame) == model.score(X, y)
    for fitted in (model, formula):
        heckmanfa.save(fitted, tmp_path / "o.heckmanfa", force=True)
        again = heckmanfa.load(tmp_path / "o.heckmanfa")
        assert again.tidy().equals(fitted.tidy())
        assert again.classes_.tolist() == fitted.classes_.tolist()
        rows = X if fitted is model else frame
        np.testing.assert_array_equal(again.predict_proba(rows), fitted.predict_proba(rows))
    frame[[*NAMES, "y"]].to_parquet(tmp_path / "rows.parquet")
    rows = heckmanfa.scan_parquet(tmp_path / "rows.parquet", outcome="y", features=NAMES)
    scanned = HeckmanOrdered(["b", "c"]).fit(rows)
    np.testing.assert_allclose(scanned.params_, model.params_, rtol=0, atol=1e-9)
    assert pickle.loads(pickle.dumps(model)).cut_points().equals(model.cut_points())
    assert clone(model).get_params() == model.get_params()
    assert is_classifier(model)


def test_inference_follows() -> None:
    data = simulate(300, cuts=[-1.0, 0.0])
    model = HeckmanOrdered(["b", "c"]).fit(*data)
    profile = model.profile_rho(*data, grid=3)
    assert profile.tidy()["log_likelihood"].max() == pytest.approx(model.log_likelihood_, abs=1e-6)
    alone = HeckmanOrdered(["b", "c"], rho=0.0).fit(*data)
    assert model.profile(*data, term="b", grid=3).naive_probit == pytest.approx(
        alone.coef_[1], abs=1e-7
    )
    boot = model.bootstrap(*data, n_boot=3, random_state=0, n_jobs=1).tidy().set_index("term")
    assert 0.0 < boot.loc["step2", "std_error"] < 0.5
    only_b = HeckmanOrdered(["b"]).fit(*data)
    changed = only_b.what_if(*data).tidy()
    assert {"a", "c"} <= {*changed["feature"].astype(str)}
    assert only_b.exclusion_test(*data).tidy()["p_value"].min() < 0.001
    held = [HeckmanOrdered(["b", "c"], rho=end).fit(*data).coef_[1] for end in (-0.2, 0.2)]
    bounds = model.uncertainty_interval(*data, rho=(-0.2, 0.2), n_grid=3).tidy().set_index("term")
    assert bounds.loc["b", ["bound_low", "bound_high"]].tolist() == pytest.approx(
        sorted(held), abs=1e-4
    )
    assert model.wald_test("step2 = 1").p_value > 0.001
    assert any("rho" in str(line) for line in str(model.diagnostics()).splitlines())


def test_thirty_classes_are_fitted() -> None:
    X, y = simulate(1000, cuts=np.linspace(-1.6, 1.6, 29), seed=4)
    fitted = HeckmanOrdered(["b", "c"]).fit(X, y)
    assert fitted.fit_.spec.number == 30
    assert fitted.predict_proba(X[:2]).shape == (2, 30)
    assert np.all(np.diff(fitted.cut_points_) > 0)


# Refusals. -----------------------------------------------------------------------------------


def test_bad_outcomes_are_refused(data: Any) -> None:
    X, y = data
    fit = HeckmanOrdered(["b", "c"]).fit
    named = texts(y)
    words = named.astype(object).where(named.notna(), None).to_numpy()
    rare = np.where(np.arange(len(y)) == np.flatnonzero(y == 3)[0], 4.0, y)
    cases = [
        (words, InputTypeError, r"ordered category.*classes"),
        (y + 0.5, InputError, "Heckman for an amount"),
        (np.where(np.isnan(y), np.nan, np.arange(len(y))), InputError, "at most 50"),
        (np.where(np.isnan(y), np.nan, 1.0), ConstantOutcomeError, "one class"),
        (rare, TooFewRowsError, "merge it with its neighbour"),
        (np.where(np.isnan(y), 1.0, y), InputError, "no outcome is missing"),
        (named.cat.add_categories("great"), InputError, "'great'.*remove_unused_categories"),
    ]
    for outcome, error, message in cases:
        with pytest.raises(error, match=message):
            fit(X, outcome)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ("abc", "classes"),
        ([0], "two are needed"),
        ([0, 1, 1], "twice"),
        ([0, 1, 2], "3.0 in y is not among the classes"),
        ([0, 1, 2, 3, 4], "no selected row"),
        (list(range(60)), "at most 50"),
    ],
)
def test_bad_lists_of_classes_are_refused(data: Any, classes: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        HeckmanOrdered(["b", "c"], classes=classes).fit(*data)


def test_a_column_that_decides_the_class_is_refused_by_name(data: Any) -> None:
    X, y = data
    noise = np.random.default_rng(0).uniform(0.0, 0.9, len(y))
    with pytest.raises(SeparationError, match=r"'code' decides.*every cut point"):
        HeckmanOrdered(["b", "code"]).fit(X.assign(code=np.nan_to_num(y) + noise), y)
    # A column that decides one of several cuts leaves a maximum.
    top = np.where(np.isnan(y), 0.0, y == 3)
    fitted = HeckmanOrdered(["b", "code"]).fit(X.assign(code=top + noise), y)
    assert fitted.converged_


def test_what_it_lacks_is_refused_in_a_sentence(model: Any, data: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="margins"):
        model.predict_proba(data[0], return_interval="confidence")
    with pytest.raises(InputError, match="Heckman ordered probit has no"):
        model.specification_tests(*data)
    data[0].to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="no intervals"):
        heckmanfa.predict_parquet(
            model,
            tmp_path / "rows.parquet",
            tmp_path / "out.parquet",
            return_interval="confidence",
        )
    for kind in ("expected", "joint"):
        with pytest.raises(InputError, match="kind must be"):
            model.predict_proba(data[0], kind)
    with pytest.raises(InputError, match="HeckmanOrdered"):
        HeckmanProbit(["b", "c"]).fit(*data)
