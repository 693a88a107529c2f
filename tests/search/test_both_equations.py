"""Searches of both equations, against plain loops over all pairs of subsets."""

import itertools
from math import comb

import numpy as np
import pytest
from sklearn.base import clone

from heckmanfa import (
    Heckman,
    HeckmanAverage,
    HeckmanBestSubset,
    HeckmanProbit,
    HeckmanProbitAverage,
    HeckmanProbitBestSubset,
    compress,
)
from heckmanfa.datasets import make_selection
from heckmanfa.model.joint_problem import LinearProblem
from heckmanfa.model.probit_likelihood import ProbitProblem
from heckmanfa.model.refit_together import evaluate_many
from heckmanfa.results.assignment_weights import weights_of
from heckmanfa.search.averaging.averages import with_drivers
from heckmanfa.search.choices import Choices
from heckmanfa.search.form import Form

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")


def data_of(kind, seed, n=400, k=4, **options):
    options |= {"outcome_kind": "binary"} if kind == "binary" else {}
    return make_selection(n, k, max(k - 2, 1), random_state=seed, **options)


def free_parameters(model, kind):
    """Slopes, atanh rho and selection slopes of a fit, and their covariance, by public results."""
    vcov, rho = model.vcov(), model.rho_
    names = list(vcov.index)
    k = model.n_features_in_
    places = [names.index(("prediction", f"x{i}")) for i in range(k)]
    places += [names.index(("errors", "rho"))]
    places += [names.index(("selection", f"x{i}")) for i in range(k)]
    theta = np.array([*model.coef_, np.arctanh(rho), *model.selection_coef_])
    scale = np.ones(len(places))
    scale[k] = 1.0 / (1.0 - rho**2)
    covariance = vcov.to_numpy()[np.ix_(places, places)] * scale * scale[:, None]
    return theta, covariance


def frame_of(data):
    import pandas as pd

    return pd.DataFrame(data.X, columns=[f"x{i}" for i in range(data.X.shape[1])])


def chances_to_drive(gamma, covariance, n, units=None, always=()):
    """BIC shares of the selection features, from the estimates of their equation alone."""
    k, shares, total = len(gamma), np.zeros(len(gamma)), 0.0
    units = [(column,) for column in range(k)] if units is None else units
    for inside in itertools.product([False, True], repeat=len(units)):
        held = np.isin(range(k), always)
        for unit, use in zip(units, inside, strict=True):
            held[list(unit)] = use
        away = np.flatnonzero(~held)
        cost = gamma[away] @ np.linalg.solve(covariance[np.ix_(away, away)], gamma[away])
        weight = np.exp(-0.5 * (cost + held.sum() * np.log(n)))
        shares, total = shares + weight * held, total + weight
    return shares / total


def index_of(theta, covariance, n):
    """Gamma-hat of what probably drives selection, and zero elsewhere."""
    k = len(theta) // 2
    gamma = theta[k + 1 :]
    chances = chances_to_drive(gamma, covariance[k + 1 :, k + 1 :], n)
    return np.where(chances >= 0.5, gamma, 0.0)


def every_state(theta, covariance, index, n, fixed, ratio):
    """Cost, criteria and estimates of every assignment, by generalised least squares on each.

    ``ratio`` is the likelihood ratio of rho = 0 in the model of everything, if there is one.
    """
    k = len(theta) // 2
    excess = 0.0 if ratio is None else theta[k] ** 2 / covariance[k, k] - ratio
    most = max(0.98, abs(np.tanh(theta[k])) * (1 + 1e-9))
    precision = np.linalg.inv(covariance)
    moved = index != 0.0
    index = np.append(index, np.zeros(k + 1))
    found = []
    for state in itertools.product([False, True], repeat=2 * k + 2):
        held, with_index = np.array(state[:-1]), state[-1]
        if with_index and np.sum(moved & ~held[:k]) < 2:
            continue
        columns = np.eye(2 * k + 1)[:, held]
        if with_index:
            columns = np.column_stack([columns, index])
        left = columns.T @ precision
        estimate, within = np.zeros(2 * k + 1), np.zeros((2 * k + 1, 2 * k + 1))
        if columns.shape[1]:
            within = columns @ np.linalg.solve(left @ columns, columns.T)
            estimate = within @ precision @ theta
        cost = (theta - estimate) @ precision @ (theta - estimate)
        if abs(np.tanh(estimate[k])) > most:
            continue
        p = fixed + held.sum() + with_index
        units = int(held.sum()) - int(held[k])
        weighed = cost - excess * (not held[k])
        bic = weighed + p * np.log(n)
        aic = weighed + 2 * p * n / (n - p - 1)
        ebic = bic + 2 * np.log(comb(2 * k, units))
        found.append((held, with_index, estimate, within, cost, (aic, bic, ebic)))
    return [np.array(part) for part in zip(*found, strict=True)]


@pytest.mark.parametrize(
    ("kind", "seed", "strength", "cov_type", "n_drivers"),
    [
        ("linear", 0, 1.0, None, 4),
        ("linear", 1, 0.5, "robust", 3),
        ("linear", 4, 0.5, None, 2),
        ("linear", 3, 0.3, None, 1),
        ("binary", 0, 1.0, None, 4),
        ("binary", 3, 0.3, "robust", 3),
        ("binary", 5, 0.3, None, 2),
    ],
)
def test_averages_equal_a_loop_over_all_pairs_of_subsets(kind, seed, strength, cov_type, n_drivers):
    data = data_of(kind, seed, n=400 if kind == "linear" else 600, strength=strength)
    X = frame_of(data)
    full, average = (
        (Heckman(method="ml", cov_type=cov_type), HeckmanAverage)
        if kind == "linear"
        else (HeckmanProbit(cov_type=cov_type), HeckmanProbitAverage)
    )
    theta, covariance = free_parameters(full.fit(X, data.y), kind)
    ratio = None
    if cov_type is None:
        apart = clone(full).set_params(rho=0.0).fit(X, data.y)
        ratio = 2 * (full.log_likelihood_ - apart.log_likelihood_)
    k, fixed = 4, 3 if kind == "linear" else 2
    index = index_of(theta, covariance, len(X))
    assert np.count_nonzero(index) == n_drivers
    found = every_state(theta, covariance, index, len(X), fixed, ratio)
    held, with_index, estimates, within, cost, criteria = found
    model = average("bic", search_in="both", cov_type=cov_type).fit(X, data.y)
    found = model.fit_.average.mixture
    assert found.exhaustive
    assert found.has_index == (n_drivers >= 2)
    assert model.n_assignments_ == len(held)
    weights = np.exp(-0.5 * (criteria - criteria.min(axis=0)))
    weights /= weights.sum(axis=0)
    near = {"rtol": 1e-10, "atol": 1e-10}
    for place, name in enumerate(("aic", "bic", "ebic")):
        weight = weights[:, place]
        np.testing.assert_allclose(found.selection_shares[name], weight @ held[:, k + 1 :], **near)
        np.testing.assert_allclose(found.alone[name], weight @ held[:, :k], **near)
        acts = held[:, :k] | (with_index[:, None] & (index != 0.0))
        np.testing.assert_allclose(found.shares[name], weight @ acts, **near)
        np.testing.assert_allclose(found.correction_share[name], weight @ held[:, k], **near)
        np.testing.assert_allclose(found.index_share[name], weight @ with_index, **near)
    mean = weights[:, 1] @ estimates
    np.testing.assert_allclose(model.coef_, mean[:k], **near)
    np.testing.assert_allclose(model.selection_coef_, mean[k + 1 :], **near)
    np.testing.assert_allclose(model.rho_, weights[:, 1] @ np.tanh(estimates[:, k]), **near)
    own = weights[:, 1]
    # Half of the weight of intervals goes to everything.
    shared = 0.5 * own + 0.5 * (held.all(axis=1) & ~with_index)
    slopes = [*range(k), *range(k + 1, 2 * k + 1)]
    away = (estimates - shared @ estimates)[:, slopes]
    total = np.einsum("n,nij->ij", shared, within)[np.ix_(slopes, slopes)]
    total += (away.T * shared) @ away
    names = [(eq, f"x{i}") for eq in ("prediction", "selection") for i in range(k)]
    np.testing.assert_allclose(model.vcov().loc[names, names], total, rtol=1e-8, atol=1e-10)
    signs = [own @ (estimates[:, k + 1 :] > 0), own @ (estimates[:, k + 1 :] < 0)]
    np.testing.assert_allclose(found.selection_signs, signs, **near)
    # The heaviest assignments, with their costs.
    order = np.argsort(criteria[:, 1], kind="stable")[:20]
    np.testing.assert_allclose(found.leading_cost[:20], cost[order], **near)
    np.testing.assert_allclose(model.assignments_["bic"][:20], criteria[order, 1], **near)


def form_of_both(k, rng, n=500.0):
    """A form of k features in both equations, some of which hardly drive selection."""
    d = 2 * k + 4
    root = rng.normal(size=(2 * d, d))
    theta = 0.3 * rng.normal(size=d)
    every = tuple(range(k))
    covariance = root.T @ root / (2 * d) / n * 5.0
    return Form(every, every, k, n, "likelihood", theta, covariance, searched=every)


def test_the_index_holds_the_groups_that_probably_drive_selection():
    k, seen = 6, set()
    units, always = [(0, 1), (2,), (3, 4)], (5,)
    selecting = Choices(k, always, tuple(units), k)
    for seed in range(30):
        form = form_of_both(k, np.random.default_rng(seed))
        places = form.free[k + 1 :]
        gamma, covariance = form.estimates[places], form.covariance[np.ix_(places, places)]
        drives = chances_to_drive(gamma, covariance, form.n_selected, units, always) >= 0.5
        found = with_drivers(form, selecting)
        (direction,) = found.directions
        np.testing.assert_array_equal(direction[:k], np.where(drives, gamma, 0.0))
        assert not direction[k:].any()
        seen.add(int(drives.sum()))
    assert {1, 2, 3, 4} <= seen


def test_what_hardly_drives_selection_cannot_predict_with_the_index():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    gamma = np.array([0.6, -0.5, 0.5, 0.0, 0.0, 0.0])
    selected = X @ gamma + rng.normal(size=2000) > 0
    y = np.where(selected, 1 + X @ (0.5 * gamma) + rng.normal(size=2000), np.nan)
    average = HeckmanAverage(search_in="both").fit(X, y)
    table = average.inclusion_
    table = table[table["equation"] == "prediction"]
    assert (table["bic_index"][:3] > 0.5).all()
    assert (table[["aic_index", "bic_index", "ebic_index"]][3:] == 0.0).all(axis=None)
    assert (table["role"][3:] == "no sign that it predicts").all()
    # A search weighs its sets by the same index.
    weights = weights_of(HeckmanBestSubset(search_in="both").fit(X, y).fit_)
    assert weights.form.drivers == average.fit_.average.form.drivers == (0, 1, 2)
    np.testing.assert_allclose(weights.mixture.shares["bic"], table["bic"], rtol=1e-6)


def best_of_all_pairs(X, y, make, k):
    """The least BIC over all pairs of subsets, each fitted on its own."""
    best = (np.inf, (), ())
    sets = [s for size in range(k + 1) for s in itertools.combinations(range(k), size)]
    for selecting in sets[1:]:
        for predicting in sets:
            model = make(predicting, selecting).fit(X, y)
            if model.converged_ and abs(model.rho_) < 0.999:
                best = min(best, (model.bic_, predicting, selecting))
    return best


def linear(predicting, selecting):
    return Heckman(list(predicting), list(selecting), method="ml")


def binary(predicting, selecting):
    return HeckmanProbit(list(predicting), list(selecting))


@pytest.mark.parametrize(
    ("make", "search", "k", "seed"),
    [
        (linear, HeckmanBestSubset, 2, 0),
        (binary, HeckmanProbitBestSubset, 2, 0),
        *(
            pytest.param(make, search, k, seed, marks=pytest.mark.study)
            for make, search, k in [
                (linear, HeckmanBestSubset, 3),
                (linear, HeckmanBestSubset, 4),
                (binary, HeckmanProbitBestSubset, 4),
            ]
            for seed in (0, 1)
        ),
    ],
)
def test_the_best_of_both_equations_is_the_best_of_all_pairs(make, search, k, seed):
    data = data_of("binary" if make is binary else "linear", seed, n=500, k=k)
    bic, predicting, selecting = best_of_all_pairs(data.X, data.y, make, k)
    model = search(search_in="both").fit(data.X, data.y)
    assert (model.prediction_features_, model.selection_features_) == (
        list(predicting),
        list(selecting),
    )
    assert model.optimal_
    assert model.gap_ == 0.0
    np.testing.assert_allclose(model.bic_, bic, rtol=1e-9)
    np.testing.assert_allclose(model.candidates_["bic"][0], bic, rtol=1e-9)
    table = model.candidates_
    assert table["selection_features"][0] == tuple(selecting)
    # Criteria count every parameter of the joint likelihood, and all rows.
    held = table["n_features"] + table["selection_features"].map(len)
    held += 3 if make is binary else 4
    known = table["log_likelihood"].notna()
    np.testing.assert_allclose(
        table["bic"][known], (-2 * table["log_likelihood"] + held * np.log(500))[known]
    )
    assert (table["selection_features"].map(len)[known] > 0).all()


@pytest.mark.parametrize("problem", [LinearProblem, ProbitProblem])
def test_many_likelihoods_in_one_pass_are_those_of_each(problem):
    data = data_of("binary" if problem is ProbitProblem else "linear", 3, n=200)
    weight = np.arange(200) % 3 + 1
    found = compress(data.X, data.y, sample_weight=weight)
    joint = problem.build(found.moments, found.probit, (0, 1, 3))
    p, j = joint.sizes
    rng = np.random.default_rng(0)
    thetas = rng.normal(size=(4, p + j + len(joint.ends))) * 0.3
    values, gradients = evaluate_many(found.rows, joint, thetas)
    for theta, value, gradient in zip(thetas, values, gradients, strict=True):
        state = joint.evaluate(found.rows, theta)
        np.testing.assert_allclose(value, state.log_likelihood, rtol=1e-12)
        np.testing.assert_allclose(gradient, state.gradient, rtol=1e-10, atol=1e-10)
