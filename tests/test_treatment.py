"""Treatment models, by both methods and with both kinds of regimes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from heckmanfa import TreatmentModel
from heckmanfa.data.arrays import Floats
from heckmanfa.errors import (
    InputError,
)

REGIMES = ["common", "separate"]
METHODS = ["two-step", "ml"]


@dataclass(frozen=True)
class Data:
    """Rows with features x1 and x2 of the outcome, x1 and z of treatment."""

    X: pd.DataFrame
    y: Floats
    d: Any
    group: Any = None

    def fit(self, **options: Any) -> Any:
        groups = self.group if options.get("cov_type") == "cluster" else None
        model = TreatmentModel(["x1", "x2"], ["x1", "z"], **options)
        return model.fit(self.X, self.y, treated=self.d, groups=groups)

    def part(self, rows: Any) -> Data:
        frame = self.X.iloc[np.arange(len(self.y))[rows]].reset_index(drop=True)
        return Data(frame, self.y[rows], self.d[rows])

    @property
    def designs(self) -> tuple[Floats, Floats]:
        one = np.ones(len(self.y))
        return (
            np.column_stack([one, self.X["x1"], self.X["x2"]]),
            np.column_stack([one, self.X["x1"], self.X["z"]]),
        )


def _draw(n: int, seed: int, *, separate: bool = True) -> Data:
    rng = np.random.default_rng(seed)
    X, u, v = rng.normal(size=(n, 3)), *rng.normal(size=(2, n))
    d = 0.2 + 0.5 * X[:, 0] + X[:, 2] + u > 0
    one = 2.0 - 0.3 * X[:, 0] + 0.8 * X[:, 1] + 0.8 * (-0.5 * u + np.sqrt(0.75) * v)
    zero = 1.0 + 0.7 * X[:, 0] - 0.4 * X[:, 1] + 1.2 * (0.4 * u + np.sqrt(0.84) * v)
    if not separate:
        zero = one - 1.5
    frame = pd.DataFrame(X, columns=["x1", "x2", "z"])
    return Data(frame, np.where(d, one, zero), d, rng.integers(0, 60, n))


@pytest.fixture(scope="module")
def data() -> Data:
    return _draw(800, 8)


@pytest.fixture(scope="module")
def fits(data: Data) -> dict[tuple[str, str], Any]:
    return {
        (regimes, method): data.fit(regimes=regimes, method=method)
        for regimes in REGIMES
        for method in METHODS
    }


# R. ------------------------------------------------------------------------------------------


def _of_r(oracle_frame: Any, name: str, treated: str, case: str) -> tuple[Data, pd.DataFrame]:
    frame = oracle_frame(f"siblings/{name}.csv")
    numbers = oracle_frame("siblings/sampleselection.csv").query("case == @case")
    d = frame[treated].to_numpy() == 1
    return Data(frame[["x1", "x2", "z"]], frame["y"].to_numpy(), d), numbers


@pytest.mark.parametrize(
    ("name", "treated", "case", "regimes", "order"),
    [
        # R has treatment first, then regime 0 with its sigma and rho, then regime 1.
        (
            *("sim_switching", "s", "tobit5_sim_ml", "separate"),
            [6, 7, 8, 3, 4, 5, 14, 13, 0, 1, 2, 12, 11],
        ),
        ("sim_treatment", "t", "treat_sim_ml", "common", [4, 5, 6, 0, 3, 1, 2, 9, 8]),
    ],
)
def test_maximum_likelihood_agrees_with_r(
    oracle_frame: Any, name: str, treated: str, case: str, regimes: str, order: list[int]
) -> None:
    rows, numbers = _of_r(oracle_frame, name, treated, case)
    model = rows.fit(regimes=regimes, method="ml")
    table, fitted = numbers[numbers["equation"] != "fit"], model.tidy()
    for own, other in (("estimate", "estimate"), ("std_error", "se")):
        assert fitted[own].to_numpy()[order] == pytest.approx(table[other].to_numpy(), abs=1e-6)
    height = numbers.query("term == 'logLik'")["estimate"].item()
    assert model.log_likelihood_ == pytest.approx(height, abs=1e-6)


def test_two_steps_agree_with_r(oracle_frame: Any) -> None:
    rows, numbers = _of_r(oracle_frame, "sim_treatment", "t", "treat_sim_2step")
    fitted = rows.fit()
    order = [4, 5, 6, 0, 3, 1, 2, 7]
    assert fitted.tidy()["estimate"].to_numpy()[order] == pytest.approx(
        numbers["estimate"].to_numpy(), abs=1e-6
    )
    rows, numbers = _of_r(oracle_frame, "sim_switching", "s", "tobit5_sim_2step")
    fitted = rows.fit(regimes="separate").tidy()["estimate"].to_numpy()
    known = numbers["estimate"].to_numpy()
    # R's sigma and rho of two steps are not those of the model, and are left out here.
    assert fitted[[6, 7, 8, 3, 4, 5]] == pytest.approx(known[:6], abs=1e-6)
    assert fitted[[0, 1, 2]] == pytest.approx(known[9:12], abs=1e-6)
    # R's coefficient of lambda in regime 0 is that of the turned index.
    assert [fitted[10], fitted[9]] == pytest.approx([-known[6], known[12]], abs=1e-6)


# Programs written out. -----------------------------------------------------------------------


def _row_log_likelihoods(params: Floats, data: Data, separate: bool) -> Floats:
    """The log-likelihood of each row; parameters as in ``params_``."""
    x, z = data.designs
    if separate:
        coefs, gamma = {1: params[:3], 0: params[3:6]}, params[6:9]
        ends = {0: params[9:11], 1: params[11:13]}
    else:
        zero, gamma = params[:3], params[4:7]
        coefs = {0: zero, 1: zero + np.array([params[3], 0.0, 0.0])}
        ends = {0: params[7:], 1: params[7:]}
    terms, u = np.empty(len(data.y)), z @ gamma
    for regime, sign in ((1, 1.0), (0, -1.0)):
        own = data.d == (regime == 1)
        sigma, rho = np.exp(ends[regime][0]), np.tanh(ends[regime][1])
        e = (data.y[own] - x[own] @ coefs[regime]) / sigma
        chance = stats.norm.logcdf(sign * (u[own] + rho * e) / np.sqrt(1.0 - rho**2))
        terms[own] = chance + stats.norm.logpdf(e) - np.log(sigma)
    return terms


def _jacobian(function: Any, at: Floats, step: float) -> Floats:
    """Derivatives by central differences, the parameter last."""
    unit = step * np.eye(len(at))
    moved = [(function(at + move) - function(at - move)) / (2.0 * step) for move in unit]
    return np.moveaxis(np.array(moved), 0, -1)


def _meat(scores: Floats, kind: str, groups: Any) -> Floats:
    if kind == "cluster":
        scores = np.array([scores[groups == group].sum(axis=0) for group in np.unique(groups)])
    return scores.T @ scores * len(scores) / (len(scores) - 1.0)


@pytest.mark.parametrize("regimes", REGIMES)
def test_maximum_likelihood_is_that_of_a_plain_optimiser(
    fits: Any, data: Data, regimes: str
) -> None:
    separate, model = regimes == "separate", fits[regimes, "ml"]

    def scores(params: Floats) -> Floats:
        return _jacobian(lambda at: _row_log_likelihoods(at, data, separate), params, 1e-5)

    best = optimize.minimize(
        lambda params: -_row_log_likelihoods(params, data, separate).sum(),
        np.zeros(13 if separate else 9),
        jac=lambda params: -scores(params).sum(axis=0),
        method="BFGS",
        options={"gtol": 1e-5},
    )
    assert model.log_likelihood_ == pytest.approx(-best.fun, abs=1e-6)
    assert model.params_ == pytest.approx(best.x, abs=1e-5)
    information = -_jacobian(lambda at: scores(at).sum(axis=0), best.x, 1e-4)
    inverse, at_best = np.linalg.inv(information), scores(model.params_)
    n = 9 if separate else 7
    for kind in ("classical", "robust", "cluster"):
        spread = inverse
        if kind != "classical":
            spread = inverse @ _meat(at_best, kind, data.group) @ inverse
        fitted = data.fit(regimes=regimes, method="ml", cov_type=kind)
        errors = fitted.tidy()["std_error"].to_numpy()
        assert errors[:n] == pytest.approx(np.sqrt(np.diag(spread))[:n], rel=1e-4)
        # Those of the errors' parameters by the delta method, as in rho sigma.
        name = "imr1" if separate else "imr"
        slopes = _jacobian(
            lambda at: np.array([np.tanh(at[-1]) * np.exp(at[-2])]), model.params_, 1e-6
        )
        own = fitted.tidy().set_index("term").loc[name, "std_error"]
        assert own == pytest.approx(np.sqrt(slopes @ spread @ slopes.T).item(), rel=1e-4)


def _hazard(u: Floats, d: Any) -> Floats:
    sign = np.where(d, 1.0, -1.0)
    return sign * np.exp(stats.norm.logpdf(u) - stats.norm.logcdf(sign * u))


def _second_step(data: Data, u: Floats, separate: bool) -> Floats:
    """Columns of the second step, in the order of its coefficients."""
    x, hazard = data.designs[0], _hazard(u, data.d)[:, None]
    if not separate:
        return np.column_stack([x, data.d, hazard])
    one, zero = np.where(data.d, 1.0, 0.0)[:, None], np.where(data.d, 0.0, 1.0)[:, None]
    return np.column_stack([one * x, zero * x, one * hazard, zero * hazard])


def _stacked(theta: Floats, data: Data, separate: bool) -> Floats:
    """Estimating equations of each row: the probit's scores, and least squares with the hazard."""
    gamma, alpha = theta[:3], theta[3:]
    u = data.designs[1] @ gamma
    w = _second_step(data, u, separate)
    first = _hazard(u, data.d)[:, None] * data.designs[1]
    return np.column_stack([first, w * (data.y - w @ alpha)[:, None]])


@pytest.mark.parametrize("regimes", REGIMES)
def test_two_step_errors_are_those_of_stacked_equations(
    fits: Any, data: Data, regimes: str
) -> None:
    separate, table = regimes == "separate", fits[regimes, "two-step"].tidy()
    n = 6 if separate else 4
    ends = table["term"].str.startswith("imr").to_numpy()
    gamma = table.query("equation == 'selection'")["estimate"].to_numpy()
    alpha = np.concatenate([table["estimate"].to_numpy()[:n], table["estimate"][ends]])
    theta = np.concatenate([gamma, alpha])
    each = _stacked(theta, data, separate)
    assert np.abs(each.sum(axis=0)).max() < 1e-6
    bread = np.linalg.inv(
        _jacobian(lambda at: _stacked(at, data, separate).sum(axis=0), theta, 1e-5)
    )
    for kind in ("robust", "cluster"):
        expected = np.sqrt(np.diag(bread @ _meat(each, kind, data.group) @ bread.T))
        fitted = data.fit(regimes=regimes, cov_type=kind).tidy()["std_error"].to_numpy()
        assert fitted[n : n + 3] == pytest.approx(expected[:3], rel=1e-5)
        both = np.concatenate([fitted[:n], fitted[ends]])
        assert both == pytest.approx(expected[3:], rel=1e-5)


@pytest.mark.parametrize("regimes", REGIMES)
def test_classical_two_step_errors_are_heckmans_and_maddalas(
    fits: Any, data: Data, regimes: str
) -> None:
    separate, model = regimes == "separate", fits[regimes, "two-step"]
    z, errors = data.designs[1], model.fit_.error_values
    u = model.predict_treatment(data.X, scale="link")
    hazard, w = _hazard(u, data.d), _second_step(data, u, separate)
    delta = hazard * (hazard + u)
    ends = {d: str(d) if separate else "" for d in (1, 0)}
    b = np.where(data.d, errors[f"imr{ends[1]}"], errors[f"imr{ends[0]}"])
    alpha = np.linalg.lstsq(w, data.y, rcond=None)[0]
    rest = data.y - w @ alpha
    spread, free = np.sum((data.y - data.y.mean()) ** 2), len(u) - (6 if separate else 4)
    adjusted = 1.0 - np.sum(rest**2) / spread * (len(u) - 1.0) / free
    assert model.adjusted_r2_ == pytest.approx(adjusted)
    known = rest**2 + b**2 * delta
    if separate:
        variance = np.where(data.d, known[data.d].mean(), known[~data.d].mean())
    else:
        variance = np.full(len(u), known.mean())
    assert np.sqrt(variance[data.d][0]) == pytest.approx(errors[f"sigma{ends[1]}"])
    probit = np.linalg.inv((z * (hazard * (hazard + u))[:, None]).T @ z)
    inverse, slope = np.linalg.inv(w.T @ w), (w * (b * delta)[:, None]).T @ z
    middle = (w * (variance - b**2 * delta)[:, None]).T @ w + slope @ probit @ slope.T
    expected = np.sqrt(np.diag(inverse @ middle @ inverse))
    fitted, n = model.tidy(), 6 if separate else 4
    own = fitted["term"].str.startswith("imr").to_numpy()
    both = np.concatenate([fitted["std_error"][:n], fitted["std_error"][own]])
    assert both == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("regimes", REGIMES)
def test_a_bootstrap_finds_the_two_step_errors(data: Data, regimes: str) -> None:
    model = data.fit(regimes=regimes)
    options: dict[str, Any] = {"n_boot": 60, "random_state": 0, "n_jobs": 1}
    boot = model.bootstrap(data.X, data.y, treated=data.d, **options).tidy()
    own = model.tidy().dropna()
    terms = pd.MultiIndex.from_frame(own[["equation", "term"]])
    boot = boot.set_index(["equation", "term"]).loc[terms]
    ratio = boot["std_error"].to_numpy() / own["std_error"].to_numpy()
    assert np.all((ratio > 0.7) & (ratio < 1.4))


# Effects. ------------------------------------------------------------------------------------


def _effects(terms: pd.Series, data: Data) -> dict[str, float]:
    """Effects of the rows of the fit, written out; ``terms`` by (equation, term)."""
    x, z = data.designs
    u = z @ terms["selection"].to_numpy()
    gap = x @ (terms["regime1"].to_numpy() - terms["regime0"].to_numpy())
    kappa = terms["errors", "imr1"] - terms["errors", "imr0"]
    of_rows = gap + kappa * _hazard(u, data.d)
    return {
        "ate": gap.mean(),
        "att": of_rows[data.d].mean(),
        "atu": of_rows[~data.d].mean(),
        "margin": np.average(gap - kappa * u, weights=stats.norm.pdf(u)),
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cov_type", ["classical", "robust", "cluster"])
def test_effects_are_averages_with_errors_by_the_delta_method(
    data: Data, method: str, cov_type: str
) -> None:
    model = data.fit(regimes="separate", method=method, cov_type=cov_type)
    covariance = model.vcov()
    terms = model.tidy().set_index(["equation", "term"])["estimate"].loc[covariance.index]
    table = model.effects().set_index("effect")
    assert table["estimate"].to_dict() == pytest.approx(_effects(terms, data))

    def values(at: Floats) -> Floats:
        return np.array([*_effects(pd.Series(at, index=terms.index), data).values()])

    slopes = _jacobian(values, terms.to_numpy(), 1e-5)
    errors = np.sqrt(np.diag(slopes @ covariance.to_numpy() @ slopes.T))
    assert table["std_error"].to_numpy() == pytest.approx(errors, rel=1e-5)
    n, treated = len(data.y), int(data.d.sum())
    assert table["n_rows"].tolist() == [n, treated, n - treated, n]


def test_effects_of_rows_of_groups_and_at_given_features(fits: Any, data: Data) -> None:
    model = fits["separate", "ml"]
    whole = model.effects(data.X, treated=data.d)
    numbers = ["estimate", "std_error", "n_rows"]
    assert whole[numbers].to_numpy() == pytest.approx(model.effects()[numbers].to_numpy())
    one, zero = (model.predict(data.X[:1], regime=d) for d in (1, 0))
    at = model.effects(data.X[:1]).set_index("effect")["estimate"]
    assert at["ate"] == pytest.approx((one - zero).item())
    for given, kind in ((1, "att"), (0, "atu")):
        one, zero = (model.predict(data.X[:1], regime=d, given=given) for d in (1, 0))
        assert at[kind] == pytest.approx((one - zero).item())
    groups = np.where(data.X["x1"] > 0, "high", "low")
    by = model.effects(data.X.assign(region=groups), treated=data.d, by="region")
    high = data.part(groups == "high")
    expected = model.effects(high.X, treated=high.d)["estimate"].to_numpy()
    assert by.query("group == 'high'")["estimate"].to_numpy() == pytest.approx(expected)
    assert by.query("effect == 'ate'")["n_rows"].sum() == len(data.y)
    # Whoever is treated by the model's probability is nearly who was.
    drawn = model.effects(data.X).set_index("effect")["estimate"]
    assert drawn["att"] == pytest.approx(whole.loc[1, "estimate"], abs=0.1)
    # Far from the middle, the weights of single rows vanish, but not their effects.
    far = model.effects(data.X[:1].assign(z=60.0)).set_index("effect")["estimate"]
    assert np.isfinite(far).all()


def test_the_effect_of_common_regimes_is_one_number(fits: Any) -> None:
    for method in METHODS:
        model = fits["common", method]
        own = model.tidy().set_index("equation").loc["effect"]
        table = model.effects()
        assert table["estimate"].to_numpy() == pytest.approx(np.full(4, own["estimate"]))
        assert table["std_error"].to_numpy() == pytest.approx(np.full(4, own["std_error"]))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("regimes", REGIMES)
def test_predictions_are_expectations(fits: Any, data: Data, regimes: str, method: str) -> None:
    model = fits[regimes, method]
    x, errors = data.designs[0], model.fit_.error_values
    u = model.predict_treatment(data.X, scale="link")
    assert model.predict_treatment(data.X) == pytest.approx(stats.norm.cdf(u))
    table = model.tidy().set_index("equation")["estimate"]
    both = {}
    for d in (1, 0):
        end = str(d) if regimes == "separate" else ""
        if regimes == "separate":
            mean = x @ table[f"regime{d}"].to_numpy()
        else:
            mean = x @ table["outcome"].to_numpy() + d * table["effect"]
        both[d] = mean, errors[f"imr{end}"]
        assert model.predict(data.X, regime=d) == pytest.approx(mean)
        for given in (1, 0):
            expected = mean + errors[f"imr{end}"] * _hazard(u, np.full(len(u), given == 1))
            assert model.predict(data.X, regime=d, given=given) == pytest.approx(expected)
        assert model.predict(data.X, given=d) == pytest.approx(
            model.predict(data.X, regime=d, given=d)
        )
    density, chance = stats.norm.pdf(u), stats.norm.cdf(u)
    observed = sum(
        weight * mean + sign * imr * density
        for (mean, imr), weight, sign in ((both[1], chance, 1.0), (both[0], 1.0 - chance, -1.0))
    )
    assert model.predict(data.X) == pytest.approx(observed)
    values, limits = model.predict(data.X[:5], 1, 0, return_interval="confidence")
    assert np.all((limits[:, 0] < values) & (values < limits[:, 1]))
    with pytest.raises(InputError, match="regime=1"):
        model.predict(data.X, return_interval="confidence")
    given = np.where(data.d, model.predict(data.X, given=1), model.predict(data.X, given=0))
    rest = np.sum((data.y - given) ** 2) / np.sum((data.y - data.y.mean()) ** 2)
    assert model.score(data.X, data.y, treated=data.d) == pytest.approx(1.0 - rest)


# Recovery and invariances. -------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_it_recovers_what_was_drawn(method: str) -> None:
    rows = _draw(60_000, 3)
    errors = rows.fit(regimes="separate", method=method)
    drawn = np.array([2.0, -0.3, 0.8, 1.0, 0.7, -0.4, 0.2, 0.5, 1.0, -0.4, 0.48])
    table = errors.tidy().iloc[: len(drawn)]
    assert np.all(np.abs(table["estimate"] - drawn) < 4.0 * table["std_error"])
    assert errors.fit_.error_values["rho1"] == pytest.approx(-0.5, abs=0.05)
    same = _draw(60_000, 3, separate=False).fit(method=method).effects().loc[0]
    assert abs(same["estimate"] - 1.5) < 4.0 * same["std_error"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("regimes", REGIMES)
def test_units_order_and_names_of_regimes_do_not_matter(
    fits: Any, data: Data, regimes: str, method: str
) -> None:
    table, options = fits[regimes, method].effects(), {"regimes": regimes, "method": method}
    numbers = ["estimate", "std_error"]
    scaled = Data(data.X, 1e4 + 1000.0 * data.y, data.d).fit(**options).effects()
    assert scaled[numbers].to_numpy() == pytest.approx(1000.0 * table[numbers].to_numpy(), rel=1e-6)
    mixed = data.part(np.random.default_rng(0).permutation(len(data.y)))
    assert mixed.fit(**options).effects()[numbers].to_numpy() == pytest.approx(
        table[numbers].to_numpy(), rel=1e-7
    )
    # Swapped, the treated are the untreated: effects change their sign and change places.
    swapped = Data(data.X, data.y, ~data.d).fit(**options).effects().loc[[0, 2, 1, 3]]
    assert -swapped["estimate"].to_numpy() == pytest.approx(table["estimate"].to_numpy(), rel=1e-6)
    assert swapped["std_error"].to_numpy() == pytest.approx(table["std_error"].to_numpy(), rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("regimes", REGIMES)
def test_a_frequency_weight_is_so_many_rows(data: Data, regimes: str, method: str) -> None:
    rows, weight = data.part(slice(0, 400)), np.random.default_rng(1).integers(1, 4, 400)
    options: dict[str, Any] = {"regimes": regimes, "method": method, "cov_type": "robust"}
    model = TreatmentModel(["x1", "x2"], ["x1", "z"], **options)
    model = model.fit(rows.X, rows.y, treated=rows.d, sample_weight=weight)
    longer = rows.part(np.repeat(np.arange(400), weight)).fit(**options)
    numbers = ["estimate", "std_error", "n_rows"]
    assert model.effects()[numbers].to_numpy() == pytest.approx(
        longer.effects()[numbers].to_numpy(), rel=1e-6
    )
    again = model.effects(rows.X, treated=rows.d, sample_weight=weight)
    assert again[numbers].to_numpy() == pytest.approx(model.effects()[numbers].to_numpy())
    with pytest.raises(InputError, match="fitted with weights"):
        model.effects(rows.X)
    sampled = TreatmentModel(["x1", "x2"], ["x1", "z"], weight_kind="sampling", **options)
    sampled = sampled.fit(rows.X, rows.y, treated=rows.d, sample_weight=weight / 7.0)
    assert sampled.effects()["estimate"].to_numpy() == pytest.approx(
        model.effects()["estimate"].to_numpy(), rel=1e-6
    )
    assert sampled.effects()["n_rows"].tolist()[0] == 400
