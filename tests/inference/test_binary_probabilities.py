"""Probabilities of a binary outcome: against mpmath, finite differences and simulation."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import special

from heckmanfa import HeckmanProbit
from heckmanfa.inference.probabilities import probit_points
from heckmanfa.model.expectation_parts import probability_parts

KINDS = ("marginal", "selected", "unselected")


def _exact(kind, mean, index, rho):
    """Return a probability with 20 digits."""
    with mpmath.workdps(20):
        v, u, r = mpmath.mpf(mean), mpmath.mpf(index), mpmath.mpf(rho)
        if kind == "marginal":
            return mpmath.ncdf(v)
        if kind == "unselected":
            u, r = -u, -r
        root, below = mpmath.sqrt(1 - r * r), mpmath.ncdf(u)

        def slice_at(w):
            # Quadrature stops at an absolute error.
            return mpmath.npdf(w) / below * mpmath.ncdf((v - r * w) / root)

        low = min(u, 0) - 12
        nodes = sorted({low, u, *(place for place in (u - 3, u - 1, -4, 0, 4) if low < place < u)})
        return mpmath.quad(slice_at, nodes)


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_are_right_where_selection_is_unlikely(kind):
    points = [(-1.0, -9.0, 0.5), (2.0, 7.0, -0.8)]
    for mean, index, rho in points:
        ours = probability_parts(kind, np.array([mean]), np.array([index]), rho).value[0]
        assert ours == pytest.approx(float(_exact(kind, mean, index, rho)), rel=1e-11)


@pytest.mark.parametrize("kind", [*KINDS, "expected", "selection"])
def test_derivatives_are_those_of_finite_differences(kind):
    rng = np.random.default_rng(5)
    mean, index, step = rng.normal(size=40), rng.normal(size=40), 1e-5
    rho = 0.45

    def at(dv=0.0, du=0.0, dr=0.0):
        return probability_parts(kind, mean + dv, index + du, rho + dr)

    def slope(part, **direction):
        size = dict.fromkeys(direction, step)
        less = dict.fromkeys(direction, -step)
        return (getattr(at(**size), part) - getattr(at(**less), part)) / (2.0 * step)

    here = at()
    pairs = [
        (here.mean, slope("value", dv=1)),
        (here.index, slope("value", du=1)),
        (here.dependence, slope("value", dr=1)),
        (here.index_index, slope("index", du=1)),
        (here.index_dependence, slope("index", dr=1)),
    ]
    if here.bend is not None:
        pairs += [
            (here.bend.mean_mean, slope("mean", dv=1)),
            (here.bend.mean_index, slope("mean", du=1)),
            (here.bend.mean_dependence, slope("mean", dr=1)),
        ]
    else:
        assert kind == "selection"
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)


def _slopes(points):
    return np.column_stack([points.mean, points.index, points.dependence])


def _indexes(x, scale=1.0):
    """Both indexes over a feature."""
    return scale * (0.2 + np.asarray(x)), scale * (0.1 - 0.8 * np.asarray(x))


@pytest.mark.parametrize("kind", [*KINDS, "joint"])
def test_the_probit_scale_of_intervals_has_the_slopes_of_finite_differences(kind):
    here = np.array([*_indexes(np.linspace(-3.0, 3.0, 9)), np.full(9, 0.5)])
    slopes = _slopes(probit_points(kind, *here[:2], 0.5))

    def value(place, step):
        mean, index, rho = here + step * np.eye(3)[place][:, None]
        return probit_points(kind, mean, index, rho[0]).value

    for place in range(3):
        there = (value(place, 1e-5) - value(place, -1e-5)) / 2e-5
        np.testing.assert_allclose(slopes[:, place], there, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", ["selected", "unselected"])
def test_the_probit_scale_keeps_its_digits_near_zero_and_one(kind):
    means, indexes = _indexes([-1.1, 1.3], scale=4.0)
    points = probit_points(kind, means, indexes, 0.5).value
    for point, mean, index in zip(points, means, indexes, strict=True):
        # The other class has the probability of -v and -rho, without a difference to one.
        side = -1.0 if mean > 0 else 1.0
        small = float(_exact(kind, side * mean, index, side * 0.5))
        assert small < 1e-3
        assert point == pytest.approx(side * special.ndtri(small), rel=1e-10)
    far = probit_points(kind, *_indexes([-1.1, 1.3], scale=40.0), 0.5)
    assert np.all(np.abs(far.value) > 20.0)
    assert np.all(np.isfinite(_slopes(far)))


@pytest.mark.parametrize("kind", ["selected", "unselected"])
def test_probabilities_of_rows_that_are_never_selected_sum_to_one(kind):
    """Far out, the quotient of two probabilities has no digits left: the limit takes its place."""
    rng = np.random.default_rng(8)
    X, u = rng.normal(size=(800, 2)), rng.normal(size=800)
    e = 0.5 * u + 0.9 * rng.normal(size=800)
    y = np.where(X @ [0.5, 1.0] + u > 0, X[:, 0] + e > 0, np.nan)
    model = HeckmanProbit([0]).fit(X, y)
    for size in (1.0, 1e4, 1e8, 1e300):
        both = model.predict_proba(size * X, kind=kind)
        np.testing.assert_allclose(both.sum(axis=1), 1.0, atol=2e-8)
    side = 1.0 if kind == "selected" else -1.0
    rho = side * model.rho_
    # Two rows on both sides of where the limit begins, with the same moderate probability.
    index = side * -1e4 * np.array([1 - 1e-12, 1 + 1e-12])
    mean = 0.3 - rho * 1e4
    first = np.full(2, (mean - model.intercept_) / model.coef_[0])
    rest = index - model.selection_intercept_ - first * model.selection_coef_[0]
    rows = np.column_stack([first, rest / model.selection_coef_[1]])
    (near, _), (far, limit) = model.predict_proba(rows, kind=kind)
    assert near == pytest.approx(far, rel=1e-7)
    assert limit == pytest.approx(special.ndtr(0.3 / np.sqrt(1 - rho**2)), rel=1e-4)
    mean = model.intercept_ + rows @ model.coef_
    index = model.selection_intercept_ + rows @ model.selection_coef_
    points = probit_points(kind, mean, index, model.rho_)
    np.testing.assert_allclose(*_slopes(points), rtol=1e-4)
