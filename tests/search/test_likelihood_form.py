"""A likelihood's quadratic form: its best assignments, its estimates in each, and their weights."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import kendalltau, rankdata

from heckmanfa.search.averaging import average, imr_shares
from heckmanfa.search.averaging.weights import Refitted
from heckmanfa.search.best_subset.of_form import best_of_form
from heckmanfa.search.choices import Choices
from heckmanfa.search.exact_refits import ExactRefits
from heckmanfa.search.quadratic import AtanhRho, QuadraticForm

M = 500.0
K = 6
CHOICES = Choices(K, (), ((0, 1), *((column,) for column in range(2, K))), K)
MASKS = np.array(
    [CHOICES.masks(np.array(bits, bool)) for bits in itertools.product([0, 1], repeat=K - 1)]
)


def draw(seed: int) -> tuple[QuadraticForm, np.ndarray, np.ndarray]:
    """Return a form with atanh rho, and the estimates and covariance of all K + 1."""
    random = np.random.default_rng(seed)
    root = random.normal(size=(K + 1, K + 1))
    covariance = root @ root.T / 200
    estimates = 0.3 * random.normal(size=K + 1)
    rho = AtanhRho(float(estimates[K]), float(covariance[K, K]), covariance[:K, K])
    form = QuadraticForm(tuple(range(K)), estimates[:K], covariance[:K, :K], rho)
    return form, estimates, covariance


def weigh(criterion: np.ndarray) -> np.ndarray:
    weight = np.exp(0.5 * (criterion.min() - criterion))
    return weight / weight.sum()


def test_estimates_in_an_assignment_are_those_of_a_conditional_normal() -> None:
    form, estimates, covariance = draw(0)
    found = form.restricted(MASKS)
    for row, mask in enumerate(MASKS):
        away = np.flatnonzero(~mask)
        share = covariance[:, away] @ np.linalg.inv(covariance[np.ix_(away, away)])
        left = estimates - share @ estimates[away]
        spread = np.diag(covariance - share @ covariance[away])
        np.testing.assert_allclose(found.coef[row], np.where(mask, left[:K], 0.0), atol=1e-12)
        np.testing.assert_allclose(found.variance[row], np.where(mask, spread[:K], 0.0), atol=1e-12)
        assert found.atanh_rho[row] == pytest.approx(left[K], abs=1e-12)
        assert found.atanh_rho_variance[row] == pytest.approx(spread[K], abs=1e-12)
    assert np.isnan(replace(form, atanh_rho=None).restricted(MASKS).atanh_rho).all()


@pytest.mark.parametrize("criterion", ["aic", "bic", "ebic"])
def test_the_best_by_each_criterion_is_that_of_brute_force(criterion: str) -> None:
    form, _, _ = draw(1)
    units = MASKS[:, [unit[0] for unit in CHOICES.units]].sum(axis=1)
    u = len(CHOICES.units)
    ways = gammaln(u + 1) - gammaln(units + 1) - gammaln(u - units + 1)
    each = 2.0 if criterion == "aic" else np.log(M)
    value = form.dropped(MASKS) + each * MASKS.sum(axis=1)
    value = np.sort(value + (2.0 * ways if criterion == "ebic" else 0.0))
    found = best_of_form(form, CHOICES, n_rows=M, criterion=criterion, n_best=7)  # type: ignore[arg-type]
    np.testing.assert_allclose(found.values, value[:7], atol=1e-9)
    assert found.beyond == pytest.approx(value[7])
    assert best_of_form(form, CHOICES, n_rows=M).beyond == np.inf


def test_a_tree_that_is_cut_short_knows_the_neighbours_of_its_best() -> None:
    random = np.random.default_rng(0)
    k = 30
    root = random.normal(size=(k, k)) + 4.0 * np.eye(k)
    estimates = np.where(np.arange(k) < 3, 3.0, 0.02 * random.normal(size=k))
    form = QuadraticForm(tuple(range(k)), estimates, root @ root.T / 500)
    choices = Choices(k, (), tuple((column,) for column in range(k)), k)
    found = best_of_form(form, choices, n_rows=M, n_best=k, max_nodes=1)
    assert not found.complete
    near = found.masks[0] ^ np.eye(k, dtype=bool)
    known = {mask.tobytes() for mask in found.masks}
    values = form.dropped(near) + np.log(M) * near.sum(axis=1)
    kept = values <= found.values[-1]
    assert kept.sum() > k // 2
    assert all(mask.tobytes() in known for mask in near[kept])


def test_weights_and_averages_by_a_form_are_those_of_brute_force() -> None:
    form, _, _ = draw(2)
    moments = form.as_moments(K, M, with_rho=True)
    cost, held = form.dropped(MASKS), MASKS.sum(axis=1)
    chosen = [3, 7, 30]
    exact = cost.copy()
    exact[chosen] += [1.0, -1.0, 0.5]
    refitted = Refitted(MASKS[chosen], exact[chosen])
    for given, costs in ((None, cost), (refitted, exact)):
        found = average(moments, CHOICES, weights="bic", form=form, refitted=given)
        weight = weigh(costs + held * np.log(M))
        np.testing.assert_allclose(found.shares["bic"], weight @ MASKS, atol=1e-10)
        assert found.best_weight["bic"] == pytest.approx(weight.max())
        inside = form.restricted(MASKS)
        assert found.rho == pytest.approx(float(weight @ np.tanh(inside.atanh_rho)))
        np.testing.assert_allclose(found.coef, weight @ inside.coef, atol=1e-10)
        best = int(np.argmax(weight))
        assert found.leading_sse[0] == pytest.approx(costs[best])
        np.testing.assert_array_equal(found.leading_masks[0], MASKS[best])
    sampled = average(
        moments, CHOICES, weights="bic", form=form, max_units=2, random_state=0, max_sweeps=100
    )
    weight = weigh(cost + held * np.log(M))
    np.testing.assert_allclose(sampled.shares["bic"], weight @ MASKS, atol=0.01)


def test_rho_is_optional_in_a_form() -> None:
    form, _, _ = draw(3)
    inside = form.restricted(MASKS)
    held = MASKS.sum(axis=1)
    both = np.concatenate(
        [
            form.dropped(MASKS) + (held + 2.0) * np.log(M),
            form.dropped(MASKS)
            + inside.atanh_rho**2 / inside.atanh_rho_variance
            + (held + 1.0) * np.log(M),
        ]
    )
    found = imr_shares(form.as_moments(K, M, with_rho=True), CHOICES, form=form)
    assert found.imr["bic"] == pytest.approx(float(weigh(both)[: len(MASKS)].sum()))


def test_agreement_of_two_orders() -> None:
    random = np.random.default_rng(4)
    exact = np.sort(random.normal(size=30))
    refits = ExactRefits(
        approximate=exact + 0.3 * random.normal(size=30),
        log_likelihood=-0.5 * exact,
        coef=np.zeros((30, 2)),
        beyond=exact[0] + 2.0,
        full_log_likelihood=0.0,
    )
    tau = kendalltau(exact, refits.approximate).statistic
    assert refits.same_order(exact) == pytest.approx(0.5 * (1.0 + tau))
    np.testing.assert_array_equal(refits.approximate_rank(), rankdata(refits.approximate))
    assert refits.best_is_same(exact) == (refits.approximate_rank()[0] == 1)
    assert refits.margin(exact) == pytest.approx(2.0)
    assert refits.largest_error(exact) == (refits.approximate - exact).max()
    np.testing.assert_allclose(refits.costs(), exact)
    exact[-1] = np.nan
    assert np.isfinite(refits.same_order(exact))
