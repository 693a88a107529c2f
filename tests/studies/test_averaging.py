"""The engine of docs/averaging_study.md against the library's, and the study's main findings.

`python -m benchmarks.averaging_study` makes the page. Draws here have higher numbers, so they are
fresh ones of the same designs.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.averaging_again import bounded_weights
from benchmarks.averaging_answers import answer, full_form, weightings
from benchmarks.averaging_designs import DESIGNS, draw, truth_of
from benchmarks.averaging_figures import Drawn, coverage, yes_rate
from benchmarks.averaging_methods import Form, enumerate_all, sample

from heckmanfa import HeckmanAverage, HeckmanProbitAverage
from heckmanfa.results.assignment_weights import weights_of

FIRST = 10_000


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.NoExclusionWarning")
@pytest.mark.parametrize(
    "name",
    [
        "linear 2",
        "linear 4",
        "clusters and groups groups half 0.8",
        "clusters and groups clusters few 0",
        "ML 2",
        "binary outcome 1",
    ],
)
def test_the_library_weighs_assignments_as_a_plain_enumeration_does(name):
    design, truth, data = DESIGNS[name], truth_of(name), draw(name, FIRST)
    cov_type = "cluster" if design.clustered else "classical"
    form = full_form(name, FIRST, cov_type)
    found = enumerate_all(form, np.eye(len(form.estimates)))
    weight = weightings(form, found)["bic index"]
    if design.method == "ml":
        weight = bounded_weights(design, truth, data, form, found)

    named = sorted(set(range(data.X.shape[1])) - set(truth.candidates))
    options = {"never": named, "cov_type": cov_type}
    groups = [list(unit) for unit in truth.units if len(unit) > 1]
    if groups:
        options["feature_groups"] = groups
    if design.outcome == "binary":
        model = HeckmanProbitAverage(weights="bic", **options)
    else:
        model = HeckmanAverage(weights="bic", method=design.method, **options)
    model.fit(data.X, data.y, groups=data.groups)

    k = len(truth.candidates)
    mean = weight @ found.estimates
    np.testing.assert_allclose(model.coef_[truth.candidates], mean[1 : k + 1], atol=1e-10)
    shares = model.inclusion_.iloc[: len(truth.units)]
    either = weight @ (found.kept | found.index[:, None])
    np.testing.assert_allclose(shares["bic"], either, atol=1e-10)
    np.testing.assert_allclose(shares["bic_alone"], weight @ found.kept, atol=1e-10)
    correction = weights_of(model._fit).correction["bic"]
    np.testing.assert_allclose(correction, weight @ found.correction, atol=1e-10)


def a_form(K=7):
    """A form with effects of all sizes, a correction and an index that matter a little."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(40, K + 2))
    covariance = np.linalg.inv(rows.T @ rows)
    estimates = 2.0 * np.sqrt(np.diag(covariance)) * rng.normal(size=K + 2)
    direction = np.concatenate([[0.0], rng.normal(size=K), [0.0]])
    units = tuple((place,) for place in range(1, K + 1))
    return Form(estimates, covariance, units, K, K + 1, direction, 500.0)


def test_an_assignment_costs_and_estimates_what_generalized_least_squares_says():
    form = a_form()
    found = enumerate_all(form, np.eye(len(form.estimates)))
    precision, identity = np.linalg.inv(form.covariance), np.eye(len(form.estimates))
    for number in np.random.default_rng(0).integers(len(found.cost), size=100):
        kept = [0, *(1 + np.flatnonzero(found.kept[number]))]
        columns = [identity[place] for place in kept]
        columns += [identity[-1]] if found.correction[number] else []
        columns += [form.direction] if found.index[number] else []
        basis = np.array(columns).T
        covariance = np.linalg.inv(basis.T @ precision @ basis)
        estimates = basis @ covariance @ basis.T @ precision @ form.estimates
        off = form.estimates - estimates
        np.testing.assert_allclose(found.cost[number], off @ precision @ off, atol=1e-9)
        np.testing.assert_allclose(found.estimates[number], estimates, atol=1e-10)
        errors = np.sqrt(np.diag(basis @ covariance @ basis.T))
        np.testing.assert_allclose(found.errors[number], errors, atol=1e-8)


def test_chains_find_the_chances_of_an_enumeration():
    form = a_form()
    targets = np.eye(len(form.estimates))
    found, sampled = enumerate_all(form, targets), sample(form, targets, [1])
    for kind in ("aic", "bic"):
        weight = weightings(form, found)[f"{kind} index"]
        chains = sampled[kind, "index"]
        np.testing.assert_allclose(chains.own, weight @ found.kept, atol=0.05)
        assert chains.correction == pytest.approx(weight @ found.correction, abs=0.05)


@pytest.fixture(scope="module")
def drawn():
    """Fresh draws of a truth that is proportional to gamma, with and without selection."""
    names = ["exclusions 0 0", "exclusions 0.6 0", "exclusions 0.6 0.8"]
    return {
        name: Drawn(name, DESIGNS[name], [answer(name, FIRST + i) for i in range(60)], 0)
        for name in names
    }


@pytest.mark.study
def test_selection_is_not_found_where_there_is_none(drawn):
    null = [drawn["exclusions 0 0"], drawn["exclusions 0.6 0"]]
    assert yes_rate(null, "today").value > 0.2
    for kind in ("aic", "half", "bic"):
        assert yes_rate(null, f"classical {kind} index").value <= 0.05


@pytest.mark.study
def test_a_named_exclusion_finds_strong_selection(drawn):
    assert yes_rate([drawn["exclusions 0.6 0.8"]], "classical aic index").value >= 0.75


@pytest.mark.study
def test_intervals_cover_effects_that_are_proportional_to_gamma(drawn):
    own = coverage(drawn.values(), "classical aic index", "nonzero")
    today = coverage(drawn.values(), "today aic", "nonzero")
    assert own.value >= 0.9
    assert today.value < own.value
