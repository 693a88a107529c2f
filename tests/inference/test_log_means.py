"""Means of a log outcome on its own scale: the model's formula against numerical integration."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr, ndtri
from scipy.stats import norm, qmc
from tests.moved import moved

from heckmanfa import Heckman, HeckmanAverage
from heckmanfa.data.outcomes import from_log
from heckmanfa.errors import InputError
from heckmanfa.inference.log_means import log_mean, log_parts, own_scale_mean, own_scale_parts
from heckmanfa.inference.prediction import predict
from heckmanfa.search.averaging.members import Members


def integrated(kind, mean, index, rho, sigma, transform):
    """Integrate the outcome over its density, given selection or not, without its moments."""
    r = np.sqrt(1 - rho**2)
    side = {"selected": 1.0, "expected": 1.0, "unselected": -1.0}.get(kind)

    def density(e):
        chance = 1.0 if side is None else ndtr(side * (index + rho * e) / r)
        return math.exp(-0.5 * e * e) / math.sqrt(2 * math.pi) * chance

    def amount(e):
        y = math.exp(mean + sigma * e)
        return density(e) * (y if transform == "log" else y - 1)

    limits = {"epsabs": 0, "epsrel": 1e-12, "limit": 400, "points": [-6, -2, 0, 2, 6]}
    whole = quad(amount, -14, 14, **limits)[0]
    return whole if kind == "expected" else whole / quad(density, -14, 14, **limits)[0]


@pytest.mark.parametrize("transform", ["log", "log1p"])
@pytest.mark.parametrize("kind", ["marginal", "selected", "unselected", "expected"])
def test_means_are_those_of_the_integrated_model(kind, transform):
    for mean, index, rho, sigma in [(0.4, 0.3, 0.6, 0.8), (1.2, -1.7, -0.9, 1.3)]:
        known = integrated(kind, mean, index, rho, sigma, transform)
        args = np.array([mean]), np.array([index]), rho * sigma, sigma
        assert own_scale_mean(transform, kind, *args)[0] == pytest.approx(known, rel=1e-10)


@pytest.mark.parametrize("transform", ["log", "log1p"])
def test_means_are_those_of_many_draws_of_the_model(transform):
    mean, index, rho, sigma = 0.7, -0.4, 0.5, 0.9
    # Quasi-random pairs of normal errors, the same in every run.
    points = qmc.Sobol(2, scramble=False).random_base2(18)[1:]
    w, other = ndtri(points).T
    outcome = np.exp(mean + sigma * (rho * w + np.sqrt(1 - rho**2) * other))
    outcome = outcome - (transform == "log1p")
    seen = w > -index
    known = {
        "marginal": outcome.mean(),
        "selected": outcome[seen].mean(),
        "unselected": outcome[~seen].mean(),
        "expected": (seen * outcome).mean(),
    }
    for kind, value in known.items():
        args = np.array([mean]), np.array([index]), rho * sigma, sigma
        assert own_scale_mean(transform, kind, *args)[0] == pytest.approx(value, rel=1e-3), kind


def test_means_do_not_underflow_where_selection_is_unlikely():
    index = np.array([-60.0, -38.0, 38.0, 60.0])
    selected = log_mean("selected", 0.0 * index, index, 0.5, 1.0)
    # Phi(u + b) / Phi(u) is close to exp(-u b - b^2 / 2) far left, up to u / (u + b).
    far = 0.5 - index[:2] * 0.5 - 0.125 + np.log(index[:2] / (index[:2] + 0.5))
    np.testing.assert_allclose(selected[:2], far, rtol=1e-5)
    np.testing.assert_allclose(selected[2:], 0.5)
    unselected = log_mean("unselected", 0.0 * index, -index, -0.5, 1.0)
    np.testing.assert_allclose(unselected, selected, rtol=1e-13)
    assert from_log(np.array([800.0]), "log")[0] == np.inf


def numerical(function, at, step=1e-5):
    return (function(at + step) - function(at - step)) / (2 * step)


@pytest.mark.parametrize("transform", ["log", "log1p"])
@pytest.mark.parametrize("kind", ["marginal", "selected", "unselected", "expected", "selection"])
def test_derivatives_are_those_of_finite_differences(kind, transform):
    v, u, b, s = np.array([0.4, -1.2, 2.0]), np.array([0.3, -4.5, 1.7]), -0.7, 0.9

    def parts(v=v, u=u, b=b, s=s):
        return own_scale_parts(transform, kind, v, u, b, s)

    found = parts()
    moved = {
        "mean": numerical(lambda at: parts(v=v + at).value, 0.0),
        "index": numerical(lambda at: parts(u=u + at).value, 0.0),
        "dependence": numerical(lambda at: parts(b=b + at).value, 0.0),
        "sigma": numerical(lambda at: parts(s=s + at).value, 0.0),
        "index_index": numerical(lambda at: parts(u=u + at).index, 0.0),
        "index_dependence": numerical(lambda at: parts(b=b + at).index, 0.0),
        "index_sigma": numerical(lambda at: parts(s=s + at).index, 0.0),
    }
    for name, known in moved.items():
        np.testing.assert_allclose(getattr(found, name), known, rtol=1e-7, atol=1e-9, err_msg=name)
    if kind == "selection":
        return
    bends = {
        "mean_mean": numerical(lambda at: parts(v=v + at).mean, 0.0),
        "mean_index": numerical(lambda at: parts(u=u + at).mean, 0.0),
        "mean_dependence": numerical(lambda at: parts(b=b + at).mean, 0.0),
        "mean_sigma": numerical(lambda at: parts(s=s + at).mean, 0.0),
    }
    for name, known in bends.items():
        np.testing.assert_allclose(getattr(found.bend, name), known, rtol=1e-7, atol=1e-9)
    shift = 0.0 if transform == "log" else 1.0
    logs = log_parts(transform, kind, v, u, b, s)
    np.testing.assert_allclose(logs.value, np.log(found.value + shift), rtol=1e-10, atol=1e-12)
    for name in ("mean", "index", "dependence", "sigma"):
        known = getattr(found, name) / (found.value + shift)
        np.testing.assert_allclose(getattr(logs, name), known, rtol=1e-10, atol=1e-12)


def make_rows(n=300):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 3))
    u, e = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 0.64]], size=n).T
    wage = np.exp(0.2 + 0.6 * X[:, 0] - 0.5 * X[:, 1] + e)
    wage[0.3 + 0.8 * X[:, 0] + 0.7 * X[:, 2] + u <= 0] = np.nan
    return X, wage


X, WAGE = make_rows()


def moved_by(fit, steps):
    """The fit with all estimates moved: those of ``terms``, then sigma."""
    terms = [*[term for term in fit.terms if term[0] != "errors"], ("errors", "imr")]
    for term, step in zip([*terms, ("errors", "sigma")], steps, strict=True):
        fit = moved(fit, term, step)
    return fit


def joint(fit):
    """Covariance of the estimates that `moved` moves."""
    whole = np.empty((9, 9))
    whole[:8, :8] = fit.covariance[:8, :8]
    whole[8, :8] = whole[:8, 8] = fit.sigma_covariance[:8]
    whole[8, 8] = fit.sigma_covariance[-1]
    return whole


@pytest.mark.parametrize(("method", "transform"), [("two-step", "log1p"), ("ml", "log")])
def test_intervals_and_margins_are_the_delta_method_with_numerical_gradients(method, transform):
    model = Heckman([0, 1], method=method, outcome_transform=transform).fit(X, WAGE)
    fit, shift = model.fit_, 0.0 if transform == "log" else 1.0
    covariance, steps = joint(fit), np.eye(9) * 1e-5
    quantile = norm.ppf(0.95)
    for kind in ("marginal", "selected", "unselected", "expected"):

        def value(step, kind=kind):
            return predict(moved_by(fit, step), X[:4], kind, None, 0.9, "error")

        gradient = np.array([value(step) - value(-step) for step in steps]).T / 2e-5
        means, limits = model.predict(X[:4], kind, "confidence", 0.9)
        error = np.sqrt(np.sum(gradient @ covariance * gradient, axis=1)) / (means + shift)
        for sign, side in zip((-1, 1), limits.T, strict=True):
            known = (means + shift) * np.exp(sign * quantile * error) - shift
            np.testing.assert_allclose(side, known, rtol=1e-6)
        if kind in ("marginal", "unselected"):
            continue

        def effect(step, kind=kind):
            moves = [np.array([h, 0, 0]) for h in (1e-4, -1e-4)]
            rows = X[:50]
            up, down = (
                predict(moved_by(fit, step), rows + m, kind, None, 0.9, "error") for m in moves
            )
            return np.mean(up - down) / 2e-4

        gradient = np.array([effect(step * 10) - effect(-step * 10) for step in steps]) / 2e-4
        table = model.margins(X[:50], kind=kind, features=[0]).tidy().iloc[0]
        assert table["estimate"] == pytest.approx(effect(np.zeros(9)), rel=1e-6)
        assert table["std_error"] == pytest.approx(
            np.sqrt(gradient @ covariance @ gradient), rel=1e-5
        )


def test_limits_of_a_new_outcome_are_those_of_its_logarithm():
    model = Heckman([0, 1], method="ml", outcome_transform="log").fit(X, WAGE)
    for kind in ("marginal", "selected", "unselected"):
        own = model.predict(X, kind, "prediction", 0.8)[1]
        link = model.predict(X, kind, "prediction", 0.8, scale="link")[1]
        np.testing.assert_allclose(own, np.exp(link), rtol=1e-14)


def test_without_a_transform_both_scales_are_the_same():
    model = Heckman([0, 1]).fit(X, np.log(WAGE))
    link = model.predict(X, "selected", "confidence", scale="link")
    own = model.predict(X, "selected", "confidence")
    for found, known in zip(own, link, strict=True):
        np.testing.assert_array_equal(found, known)
    with pytest.raises(InputError, match=r"'response'.*'link'"):
        model.predict(X, scale="log")


def test_an_average_mixes_the_means_of_its_assignments():
    options = {"always": [0], "never": [2], "outcome_transform": "log", "correction": "always"}
    two_step = HeckmanAverage(cov_type="classical", **options).fit(X, WAGE)
    members = two_step.fit_.average.members
    expected = np.zeros(len(X))
    for weight, terms in zip(members.weights, members.terms, strict=True):
        expected += weight * np.exp(terms[0] + X[:, :2] @ terms[1:3] + 0.5 * terms[-1] ** 2)
    np.testing.assert_allclose(two_step.predict(X, "marginal"), expected, rtol=1e-4)
    ml = HeckmanAverage(**options, method="ml").fit(X, WAGE)
    for average in (two_step, ml):
        method = average.method
        alone = Heckman([0, 1], method=method, outcome_transform="log").fit(X, WAGE)
        means, limits = average.predict(X, "selected", "confidence")
        assert np.all((limits[:, 0] < means) & (means < limits[:, 1]))
        # Nearly all weight is on one assignment.
        known = alone.predict(X, "selected", "confidence")[1]
        np.testing.assert_allclose(limits, known, rtol=0.02)
        table, other = (one.margins(X).tidy() for one in (average, alone))
        rows = table["term"].isin(["x0", "x1"]) & (table["target"] != "selection")
        numbers = [one.loc[rows, ["estimate", "std_error"]] for one in (table, other)]
        np.testing.assert_allclose(*numbers, rtol=0.03)


@pytest.mark.parametrize("cov_type", ["classical", "robust"])
def test_an_assignment_of_an_average_has_the_covariance_of_its_own_fit(cov_type):
    options = {"outcome_transform": "log", "cov_type": cov_type}
    average = HeckmanAverage(never=[2], **options).fit(X, WAGE).fit_
    fit = Heckman([0, 1], **options).fit(X, WAGE).fit_
    states = np.array([[True, True, False, True, False], [False, True, False, True, False]])
    whole, part = (
        Members(average.average.form, state[None], np.ones(1)).term_covariance()[1]
        for state in states
    )
    # Terms end with beta_H, rho and sigma.
    order = [*range(len(fit.covariance)), -1]
    np.testing.assert_allclose(whole[-1, order], fit.sigma_covariance, rtol=1e-6)
    assert not part[1].any()
    assert np.linalg.eigvalsh(part).min() > -1e-12


def test_margins_at_values_average_the_predictions_there():
    model = Heckman([0, 1], outcome_transform="log1p").fit(X, WAGE)
    there = X.copy()
    there[:, 0] = 0.5
    for scale in ("response", "link"):
        asked = {"at": {0: [0.5]}, "what": "predictions", "scale": scale}
        table = model.margins(X, kind=["selected", "expected"], **asked).tidy()
        known = [model.predict(there, kind, scale=scale).mean() for kind in table["target"]]
        np.testing.assert_allclose(table["estimate"], known, rtol=1e-12)
