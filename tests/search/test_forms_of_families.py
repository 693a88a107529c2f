"""Averages of every family by the one form, against plain loops over all assignments."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanOrdered,
    HeckmanOrderedAverage,
    TreatmentAverage,
    TreatmentModel,
)
from heckmanfa.data.arrays import Floats
from heckmanfa.search.averaging import average
from heckmanfa.search.choices import Choices

K, P, N = 4, 5, 700
pytestmark = pytest.mark.filterwarnings("ignore:every selection feature")


def _draw(seed: int = 3, n: int = N) -> dict[str, Any]:
    """Rows of which feature 4 drives selection alone; features 0 and 2 predict."""
    rng = np.random.default_rng(seed)
    X, u, v = rng.normal(size=(n, P)), *rng.normal(size=(2, n))
    chosen = 0.3 + 0.5 * X[:, 0] + 0.7 * X[:, 1] + 0.8 * X[:, 4] + u > 0
    error = 0.6 * u + 0.8 * v
    y = 1.0 + 0.7 * X[:, 0] - 0.5 * X[:, 2] + error
    heavy = y + (stats.t.ppf(stats.norm.cdf(v), 4) - v) * 0.8
    other = 0.5 + 0.4 * X[:, 0] + 0.6 * X[:, 2] - 0.3 * u + v
    seen = np.where(chosen, y, np.nan)
    grade = np.where(chosen, np.digitize(y, [0.3, 1.6]).astype(float), np.nan)
    return {
        "X": X,
        "d": chosen,
        "y": seen,
        "heavy": np.where(chosen, heavy, np.nan),
        "grade": grade,
        "common": y + 1.5 * chosen,
        "separate": np.where(chosen, y, other),
    }


DATA = _draw()
CANDIDATES = list(range(K))


@dataclass(frozen=True)
class Case:
    """A family, its average and its model of all features."""

    average: Any
    plain: Any
    outcome: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def roles(self) -> dict[str, Any]:
        return {self.plain.roles[0]: CANDIDATES}

    @property
    def own(self) -> dict[str, Any]:
        two_steps = self.options.get("method") in ("two-step", "series")
        return self.options | ({"cov_type": "robust"} if two_steps else {})

    def rows(self, data: dict[str, Any] = DATA) -> dict[str, Any]:
        rows = {"X": data["X"], "y": data[self.outcome]}
        return rows | ({"treated": data["d"]} if self.treats else {})

    @property
    def treats(self) -> bool:
        return self.plain is TreatmentModel

    @property
    def shares_selection(self) -> bool:
        return self.options.get("method") in ("two-step", "series")

    def fit_plain(self, **options: Any) -> Any:
        return self.plain(**self.roles | self.own | options).fit(**self.rows())

    def fit_average(self, data: dict[str, Any] = DATA, **options: Any) -> Any:
        return self.average(**self.roles | self.own | options).fit(**self.rows(data))


CASES = {
    "ordered": Case(HeckmanOrderedAverage, HeckmanOrdered, "grade"),
    "t": Case(HeckmanAverage, Heckman, "heavy", {"method": "ml", "errors": "t"}),
    "series": Case(HeckmanAverage, Heckman, "y", {"method": "series", "n_terms": 3}),
} | {
    f"{regimes}, {method}": Case(
        TreatmentAverage, TreatmentModel, regimes, {"regimes": regimes, "method": method}
    )
    for regimes in ("common", "separate")
    for method in ("two-step", "ml")
}
TO = {
    "rho": np.arctanh,
    "sigma": np.log,
    "step": np.log,
    "df": lambda df: df**-0.5,
    "imr": lambda imr: imr,
    "s": lambda s: s,
}
SLOPE = {
    "rho": lambda rho: 1 / (1 - rho**2),
    "sigma": lambda sigma: 1 / sigma,
    "step": lambda step: 1 / step,
    "df": lambda df: -0.5 * df**-1.5,
    "imr": lambda imr: 1.0,
    "s": lambda s: 1.0,
}
BACK = {"rho": np.tanh, "sigma": np.exp, "step": np.exp}


@dataclass
class Everything:
    """The model of all features on the scales of its estimation, from public tables."""

    names: list[tuple[str, str]]
    theta: Floats
    V: Floats
    free: list[int]
    slopes: list[list[int]]
    corrections: list[int]
    selection: list[int]


def _everything(case: Case) -> Everything:
    model = case.fit_plain()
    table, V = model.tidy().set_index(["equation", "term"])["estimate"], model.vcov()
    errors = [term for equation, term in V.index if equation == "errors"]
    if not case.shares_selection:
        errors = [term for term in errors if not term.startswith("imr")]
    correction = "rho" if not case.shares_selection else "imr"
    held = [term for term in errors if term.startswith(correction)]
    if case.options.get("method") == "series":
        held = ["s1", "s2", "s3"]
    keep = [key for key in V.index if key[0] != "errors"]
    keep += [("errors", term) for term in errors]
    kind = [term.rstrip("0123456789") if name == "errors" else "s" for name, term in keep]
    values = np.nan_to_num(table.loc[keep].to_numpy())
    scale = np.array([SLOPE[k](v) for k, v in zip(kind, values, strict=True)])
    theta = np.array([TO[k](v) for k, v in zip(kind, values, strict=True)])
    covariance = V.loc[keep, keep].to_numpy() * scale[:, None] * scale
    outcomes = [name for name in dict.fromkeys(name for name, _ in keep) if name in OUTCOMES]
    slopes = [[keep.index((equation, f"x{j}")) for j in CANDIDATES] for equation in outcomes]
    corrections = [keep.index(("errors", term)) for term in held]
    selection = [i for i, (name, _) in enumerate(keep) if name == "selection"]
    free = [*itertools.chain(*slopes), *corrections]
    return Everything(keep, theta, covariance, free, slopes, corrections, selection)


OUTCOMES = ("prediction", "outcome", "regime1", "regime0")


def _ratio(case: Case, model: Any) -> float | None:
    """Twice the log-likelihood that no correlation costs, from models fitted apart."""
    if case.shares_selection or case.outcome == "heavy":
        return None
    if case.outcome == "grade":
        apart = case.fit_plain(rho=0.0).log_likelihood_
        return 2.0 * (model.log_likelihood_ - apart)
    X, y, d = DATA["X"], DATA[case.outcome], DATA["d"]
    probit = TreatmentModel(CANDIDATES, regimes=case.options["regimes"]).fit(X, y, treated=d)
    chance = probit.predict_treatment(X)
    apart = np.sum(np.log(np.where(d, chance, 1 - chance)))
    groups = [(X[:, :K], y)] if case.outcome == "common" else []
    groups += [] if groups else [(X[d][:, :K], y[d]), (X[~d][:, :K], y[~d])]
    for features, outcome in groups:
        own = [np.ones(len(outcome)), features]
        W = np.column_stack([*own, d] if case.outcome == "common" else own)
        residual = outcome - W @ np.linalg.lstsq(W, outcome, rcond=None)[0]
        apart += np.sum(stats.norm.logpdf(residual, scale=np.sqrt(np.mean(residual**2))))
    return 2.0 * (model.log_likelihood_ - apart)


@dataclass
class Loop:
    states: Floats
    weights: Floats
    estimates: Floats


def _loop(case: Case, everything: Everything, ratio: float | None, m: float) -> Loop:
    """Weigh all assignments one by one, by restricted estimates written out."""
    theta, V, free = everything.theta, everything.V, everything.free
    r, c = len(everything.slopes), len(everything.corrections)
    center = np.linalg.inv(V[np.ix_(free, free)])
    follow = V[:, free] @ center
    if case.shares_selection:
        follow[everything.selection] = 0.0
    gamma = theta[everything.selection[1:]][:K]
    wald = theta[everything.corrections] @ np.linalg.solve(
        V[np.ix_(everything.corrections, everything.corrections)], theta[everything.corrections]
    )
    excess = 0.0 if ratio is None else wald - ratio
    constants = 2 if case.outcome in ("common", "separate") else 1
    states, criteria, estimates = [], [], []
    eye = np.eye(len(free))
    index = np.array([np.concatenate([gamma * (e == f) for f in range(r)]) for e in range(r)])
    index = np.hstack([index, np.zeros((r, c))])
    for held in itertools.product([False, True], repeat=K):
        for corrected, with_index in itertools.product([False, True], repeat=2):
            if with_index and K - sum(held) < 2:
                continue
            columns = [eye[e * K + j] for e in range(r) for j in CANDIDATES if held[j]]
            columns += [eye[r * K + place] for place in range(c)] * corrected
            columns += [*index] * with_index
            B = np.array(columns).T.reshape(len(free), -1)
            b = np.linalg.solve(B.T @ center @ B, B.T @ center @ theta[free]) if columns else []
            own = B @ b if columns else np.zeros(len(free))
            away = theta[free] - own
            every = theta - follow @ away
            rho = np.tanh([every[i] for i in everything.corrections])
            full = np.abs(np.tanh(theta[everything.corrections]))
            if not case.shares_selection and np.any(np.abs(rho) > np.maximum(0.98, full)):
                continue
            p = r * sum(held) + c * corrected + r * with_index + constants
            cost = away @ center @ away - excess * (not corrected)
            states.append([*held, corrected, with_index])
            criteria.append(cost + p * np.log(m))
            estimates.append(every)
    weights = np.exp(-0.5 * (np.array(criteria) - np.min(criteria)))
    return Loop(np.array(states), weights / weights.sum(), np.array(estimates))


@pytest.fixture(scope="module", params=CASES)
def fitted(request: Any) -> Any:
    case = CASES[request.param]
    model = case.fit_average()
    everything = _everything(case)
    m = N if case.treats else int(DATA["d"].sum())
    return case, model, everything, _loop(case, everything, _ratio(case, case.fit_plain()), m)


def test_chances_are_those_of_a_plain_loop_over_all_assignments(fitted):
    _, model, _, loop = fitted
    moved = loop.states[:, :K] | loop.states[:, -1:]
    table = model.inclusion_
    assert table["bic"][:K].to_numpy() == pytest.approx(loop.weights @ moved, abs=1e-6)
    alone = loop.weights @ loop.states[:, :K]
    assert table["bic_alone"][:K].to_numpy() == pytest.approx(alone, abs=1e-6)
    assert table["bic"].iloc[-1] == pytest.approx(loop.weights @ loop.states[:, -2], abs=1e-6)
    assert model.n_assignments_ == len(loop.weights)
    heaviest = model.assignments_["weight"][:5].to_numpy()
    assert heaviest == pytest.approx(np.sort(loop.weights)[::-1][:5], abs=1e-6)


def test_averages_are_those_of_the_restricted_estimates(fitted):
    _, model, everything, loop = fitted
    table = model.tidy().set_index(["equation", "term"])["estimate"]
    for place, (equation, term) in enumerate(everything.names):
        kind = term.rstrip("0123456789") if equation == "errors" else ""
        if (equation, term) not in table.index or np.isnan(table[equation, term]):
            continue
        values = BACK.get(kind, lambda value: value)(loop.estimates[:, place])
        mean = loop.weights @ values
        mean = mean**-2.0 if kind == "df" else mean
        assert table[equation, term] == pytest.approx(mean, rel=1e-5, abs=1e-7), (equation, term)


def test_signs_are_those_of_the_effects_in_every_outcome_equation(fitted):
    _, model, everything, loop = fitted
    effects = np.array([loop.estimates[:, places] for places in everything.slopes])
    held = np.abs(effects) > 1e-12
    above = np.all((effects > 0) & held, axis=0)
    below = np.all((effects < 0) & held, axis=0)
    table = model.inclusion_
    assert table["positive"][:K].to_numpy() == pytest.approx(loop.weights @ above, abs=1e-6)
    assert table["negative"][:K].to_numpy() == pytest.approx(loop.weights @ below, abs=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_an_average_of_the_one_assignment_allowed_is_that_fit(name):
    case = CASES[name]
    model, fixed = case.fit_average(always=CANDIDATES, correction="always"), case.fit_plain()
    for error, value in fixed.fit_.error_values.items():
        assert model.fit_.error_values[error] == pytest.approx(value, rel=1e-6), error
    plain = fixed.tidy().set_index(["equation", "term"])
    for row in model.tidy().itertuples():
        beside = plain.loc[(row.equation, row.term)]
        assert row.estimate == pytest.approx(beside["estimate"], rel=1e-6, nan_ok=True)
        if not np.isnan(row.estimate):
            assert row.std_error == pytest.approx(beside["std_error"], rel=1e-6)


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_a_regression_with_its_regimes_swapped_has_the_same_chances(method):
    case = CASES[f"separate, {method}"]
    own = case.fit_average()
    turned = case.average(**case.roles | case.own)
    turned.fit(DATA["X"], DATA["separate"], treated=~DATA["d"])
    kinds = ["aic", "bic", "ebic"]
    assert own.inclusion_[kinds].to_numpy() == pytest.approx(
        turned.inclusion_[kinds].to_numpy(), abs=1e-5
    )
    effect, other = own.effects(), turned.effects()
    for kind, turned_kind in (("ate", "ate"), ("att", "atu"), ("atu", "att")):
        one = effect.set_index("effect").loc[kind]
        two = other.set_index("effect").loc[turned_kind]
        assert one["estimate"] == pytest.approx(-two["estimate"], rel=1e-4)
        assert one["ci_low"] == pytest.approx(-two["ci_high"], rel=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_what_predicts_has_a_chance_above_90_percent_and_noise_below_half(name):
    chances = CASES[name].fit_average(_draw(11, 3000)).inclusion_["bic"].to_numpy()
    assert np.all(chances[[0, 2]] > 0.9)
    assert chances[3] < 0.5


@pytest.mark.parametrize("name", ["separate, two-step", "ordered", "series"])
def test_a_sampler_finds_the_shares_of_all_assignments(name):
    model = CASES[name].fit_average()
    form = model.fit_.average.form
    choices = Choices(P, (), tuple((j,) for j in CANDIDATES), K)
    exact = average(form, choices)
    drawn = average(form, choices, max_units=3, random_state=0)
    assert exact.exhaustive
    assert not drawn.exhaustive
    assert drawn.shares["bic"] == pytest.approx(exact.shares["bic"], abs=0.02)
    assert drawn.correction_share["bic"] == pytest.approx(exact.correction_share["bic"], abs=0.02)
    for one, other in zip(drawn.ends.values(), exact.ends.values(), strict=True):
        assert one == pytest.approx(other, abs=0.05)
    assert drawn.positive == pytest.approx(exact.positive, abs=0.03)


# Expectations. -------------------------------------------------------------------------------


def _few(name: str) -> tuple[Any, Loop, Everything]:
    """An average of few assignments, so that each is a group of its own."""
    case = replace(CASES[name])
    always = [0, 2, 3]
    model = case.fit_average(always=always)
    everything = _everything(case)
    m = N if case.treats else int(DATA["d"].sum())
    loop = _loop(case, everything, _ratio(case, case.fit_plain()), m)
    allowed = np.all(loop.states[:, always], axis=1) & ~loop.states[:, -1]
    weights = loop.weights[allowed] / loop.weights[allowed].sum()
    return model, Loop(loop.states[allowed], weights, loop.estimates[allowed]), everything


def test_probabilities_of_classes_are_averages_of_those_of_the_assignments():
    model, loop, everything = _few("ordered")
    X, expected = DATA["X"][:6], np.zeros((6, 3))
    names = everything.names
    for weight, theta in zip(loop.weights, loop.estimates, strict=True):
        eta = theta[0] + X[:, :K] @ theta[1 : K + 1]
        second = np.exp(theta[names.index(("errors", "step2"))])
        ends = stats.norm.cdf(np.column_stack([-eta, second - eta]))
        expected += weight * np.column_stack([ends[:, 0], ends[:, 1] - ends[:, 0], 1 - ends[:, 1]])
    assert model.predict_proba(X) == pytest.approx(expected, rel=1e-6)
    assert np.exp(model.predict_log_proba(X)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("method", ["two-step", "ml"])
def test_effects_are_averages_of_those_of_the_assignments(method):
    model, loop, everything = _few(f"separate, {method}")
    X, d = DATA["X"], DATA["d"]
    means, values = [], {name: [] for name in ("ate", "att", "atu")}
    for theta in loop.estimates:
        at = dict(zip(everything.names, theta, strict=True))
        one, zero = (
            np.array([at[f"regime{r}", t] for t in ("Intercept", *(f"x{j}" for j in CANDIDATES))])
            for r in "10"
        )
        gamma = np.array([at["selection", t] for t in ("Intercept", *(f"x{j}" for j in range(P)))])
        if method == "two-step":
            kappa = at["errors", "imr1"] - at["errors", "imr0"]
        else:
            kappa = np.subtract(
                *(
                    np.tanh(at["errors", f"rho{r}"]) * np.exp(at["errors", f"sigma{r}"])
                    for r in "10"
                )
            )
        u = gamma[0] + X @ gamma[1:]
        effect = one[0] - zero[0] + X[:, :K] @ (one - zero)[1:]
        hazard = np.where(d, stats.norm.pdf(u) / stats.norm.cdf(u), 0.0)
        hazard -= np.where(d, 0.0, stats.norm.pdf(u) / stats.norm.cdf(-u))
        values["ate"].append(effect.mean())
        values["att"].append((effect + kappa * hazard)[d].mean())
        values["atu"].append((effect + kappa * hazard)[~d].mean())
        means.append(stats.norm.cdf(u))
    table = model.effects().set_index("effect")
    for name, each in values.items():
        assert table.loc[name, "estimate"] == pytest.approx(loop.weights @ each, rel=1e-5)
    assert model.predict_treatment(X) == pytest.approx(loop.weights @ np.array(means), rel=1e-6)
    assert model.fit_.details.effects == pytest.approx(table["estimate"].to_numpy())
    own = model.effects(X, treated=d).set_index("effect")
    assert own["estimate"].to_numpy() == pytest.approx(table["estimate"].to_numpy(), rel=1e-8)
    assert own["ci_low"].to_numpy() == pytest.approx(table["ci_low"].to_numpy(), rel=1e-6)


@pytest.mark.parametrize("name", [name for name in CASES if "," in name])
def test_effects_and_predictions_of_the_one_assignment_allowed_are_those_of_that_fit(name):
    case = CASES[name]
    own = case.fit_average(always=CANDIDATES, correction="always")
    plain, X = case.fit_plain(), DATA["X"][:5]
    columns = ["estimate", "std_error", "ci_low", "ci_high", "n_rows"]
    one, other = (model.effects()[columns].astype(float).to_numpy() for model in (own, plain))
    assert one == pytest.approx(other, rel=1e-5)
    assert own.predict(X) == pytest.approx(plain.predict(X))
    for regime, given in ((1, None), (0, 1), (1, 1)):
        asked = {"regime": regime, "given": given, "return_interval": "confidence"}
        one, other = own.predict(X, **asked), plain.predict(X, **asked)
        assert one[0] == pytest.approx(other[0], rel=1e-6)
        assert one[1] == pytest.approx(other[1], rel=1e-5)
