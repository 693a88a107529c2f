"""Means of a log outcome on its own scale: the model's formula against numerical integration."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

from heckmanfa.data.outcome_scale import from_log
from heckmanfa.inference.log_means import log_mean, own_scale_mean


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
