"""Searches of both equations, against plain loops over all pairs of subsets."""

import itertools
from math import comb

import numpy as np
import pytest

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
from heckmanfa.model.likelihood_terms import Problem
from heckmanfa.model.probit_likelihood_terms import ProbitProblem
from heckmanfa.model.probit_together import evaluate_many

pytestmark = pytest.mark.filterwarnings("ignore::heckmanfa.errors.HeckmanfaWarning")


def data_of(kind, seed, n=400, k=4, **options):
    options = {"outcome_kind": "binary"} if kind == "binary" else {}
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


def every_state(theta, covariance, n, fixed):
    """Cost, criteria and estimates of every assignment, by generalised least squares on each."""
    k = len(theta) // 2
    precision = np.linalg.inv(covariance)
    index = np.append(theta[k + 1 :], np.zeros(k + 1))
    found = []
    for state in itertools.product([False, True], repeat=2 * k + 2):
        held, with_index = np.array(state[:-1]), state[-1]
        if with_index and held[:k].sum() > k - 2:
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
        p = fixed + held.sum() + with_index
        units = int(held.sum()) - int(held[k])
        bic = cost + p * np.log(n)
        aic = cost + 2 * p * n / (n - p - 1)
        ebic = bic + 2 * np.log(comb(2 * k, units))
        found.append((held, with_index, estimate, within, cost, (aic, bic, ebic)))
    return [np.array(part) for part in zip(*found, strict=True)]


@pytest.mark.parametrize(
    ("kind", "seed", "cov_type"),
    [("linear", 0, None), ("linear", 1, "robust"), ("binary", 0, None), ("binary", 0, "robust")],
)
def test_averages_equal_a_loop_over_all_pairs_of_subsets(kind, seed, cov_type):
    data = data_of(kind, seed, n=400 if kind == "linear" else 600)
    X = frame_of(data)
    full, average = (
        (Heckman(method="ml", cov_type=cov_type), HeckmanAverage)
        if kind == "linear"
        else (HeckmanProbit(cov_type=cov_type), HeckmanProbitAverage)
    )
    theta, covariance = free_parameters(full.fit(X, data.y), kind)
    k, fixed = 4, 3 if kind == "linear" else 2
    found = every_state(theta, covariance, len(X), fixed)
    held, with_index, estimates, within, cost, criteria = found
    model = average("bic", search_in="both", cov_type=cov_type).fit(X, data.y)
    found = model.fit_.average.average
    assert found.exhaustive
    assert model.n_assignments_ == len(held)
    weights = np.exp(-0.5 * (criteria - criteria.min(axis=0)))
    weights /= weights.sum(axis=0)
    near = {"rtol": 1e-10, "atol": 1e-10}
    for place, name in enumerate(("aic", "bic", "ebic")):
        weight = weights[:, place]
        np.testing.assert_allclose(found.selection_shares[name], weight @ held[:, k + 1 :], **near)
        np.testing.assert_allclose(found.alone[name], weight @ held[:, :k], **near)
        acts = held[:, :k] | with_index[:, None]
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


@pytest.mark.parametrize("problem", [Problem, ProbitProblem])
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
