"""Student's t against mpmath in its far tails, and its derivatives against differences."""

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from heckmanfa.model.links import NormalLink, StudentLink, student_parts
from heckmanfa.model.normal import log_cdf, mills
from heckmanfa.model.student import log_density, student_curves, student_sums, student_terms
from heckmanfa.model.student_problem import selected_terms

_POINTS = (-1e4, -300.0, -44.0, -9.0, -2.0, -1.01, -0.99, -0.2, 0.0, 0.4, 1.5, 8.0, 100.0)


def _log_cdf(x: float, w: Any) -> Any:
    nu = 1 / mp.mpf(w)
    share = nu / (nu + mp.mpf(x) ** 2)
    tail = mp.betainc(nu / 2, mp.mpf(1) / 2, 0, share, regularized=True) / 2
    return mp.log(tail if x < 0 else 1 - tail)


def _ratio(x: float, w: Any) -> Any:
    nu = 1 / mp.mpf(w)
    constant = mp.gamma((nu + 1) / 2) / mp.gamma(nu / 2) / mp.sqrt(nu * mp.pi)
    density = constant * (1 + mp.mpf(x) ** 2 / nu) ** (-(nu + 1) / 2)
    return density / mp.exp(_log_cdf(x, w))


@pytest.mark.parametrize("w", [0.004, 0.03, 0.2, 1.0, 5.0])
def test_terms_and_their_derivatives_match_mpmath_from_minus_1e4_to_100(w: float) -> None:
    points = np.array(_POINTS)
    with mp.workdps(40):
        exact = np.array(
            [
                [
                    float(_log_cdf(x, w)),
                    float(_ratio(x, w)),
                    float(mp.diff(lambda v, x=x: _log_cdf(x, v), mp.mpf(w))),
                    float(mp.diff(lambda v, x=x: _ratio(x, v), mp.mpf(w))),
                    float(mp.diff(lambda v, x=x: _log_cdf(x, v), mp.mpf(w), 2)),
                ]
                for x in _POINTS
            ]
        ).T
    # The last digits of the derivatives near nu = 30 are those of a difference of digammas.
    by_integrals = np.array(student_terms(points, w))
    assert by_integrals == pytest.approx(exact, rel=5e-10, abs=1e-15)
    assert by_integrals[:2] == pytest.approx(exact[:2], rel=1e-13, abs=1e-15)
    assert np.array_equal(student_sums(points, w), by_integrals, equal_nan=True)
    on_the_grid = np.array(student_curves(w)(points))
    assert on_the_grid == pytest.approx(exact, rel=5e-10, abs=1e-13)
    assert on_the_grid[:2] == pytest.approx(exact[:2], rel=1e-12, abs=1e-13)


def test_at_infinite_degrees_of_freedom_they_are_normal() -> None:
    points = np.linspace(-40.0, 40.0, 81)
    terms = student_terms(points, 0.0)
    ratio = mills(points)[0]
    assert terms.log_cdf == pytest.approx(log_cdf(points), rel=1e-14, abs=1e-15)
    assert terms.ratio == pytest.approx(ratio, rel=1e-13)
    assert student_terms(points, 1e-9).log_cdf == pytest.approx(
        log_cdf(points) + 1e-9 * terms.in_w, rel=1e-11, abs=1e-13
    )
    assert log_density(points, 0.0)[0] == pytest.approx(stats.norm.logpdf(points))
    assert StudentLink(np.inf).mean_error(points) == pytest.approx(ratio, rel=1e-12)


def test_missing_points_stay_missing() -> None:
    values = student_curves(0.2)(np.array([np.nan, 0.0, -np.inf, np.inf]))
    assert np.isnan(values.log_cdf[0])
    assert values.log_cdf[1] == pytest.approx(np.log(0.5))


_NAMES = "umost"


def _log_likelihood(at: dict[str, Any], y: Any) -> Any:
    df, sigma, rho = at["o"] ** -2, np.exp(at["s"]), np.tanh(at["t"])
    e = (y - at["m"]) / sigma
    a = np.sqrt((df + 1.0) / (df + e**2)) * (at["u"] + rho * e) / np.sqrt(1.0 - rho**2)
    return stats.t.logpdf(e, df) - at["s"] + np.log(stats.t.cdf(a, df + 1.0))


def test_derivatives_of_rows_are_those_of_differences() -> None:
    rng = np.random.default_rng(0)
    u, y = rng.normal(size=40), 2.0 * rng.standard_t(3, size=40)
    point: dict[str, Any] = {"u": u, "m": 0.3, "o": 0.45, "s": 0.2, "t": 0.6}
    terms = selected_terms(u, (y - 0.3) / np.exp(0.2), (0.45, 0.2, 0.6))
    assert terms["value"] == pytest.approx(_log_likelihood(point, y), rel=1e-12)

    def moved(**steps: float) -> Any:
        return _log_likelihood(point | {name: point[name] + h for name, h in steps.items()}, y)

    h = 1e-4
    for place, one in enumerate(_NAMES):
        slope = (moved(**{one: h}) - moved(**{one: -h})) / (2.0 * h)
        assert terms[one] == pytest.approx(slope, rel=1e-6, abs=1e-6)
        for other in _NAMES[place:]:
            if one == other:
                bend = (moved(**{one: h}) - 2.0 * moved() + moved(**{one: -h})) / h**2
            else:
                ends = [moved(**{one: a * h, other: b * h}) for a, b in _SIGNS]
                bend = (ends[0] - ends[1] - ends[2] + ends[3]) / (4.0 * h**2)
            assert terms[one + other] == pytest.approx(bend, rel=1e-5, abs=1e-5)


_SIGNS = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))


@pytest.mark.parametrize("df", [1.3, 4.0, 60.0])
def test_means_given_selection_are_those_of_quadrature(df: float) -> None:
    index = np.array([-6.0, -1.0, 0.3, 2.0])
    means = [stats.t.expect(lambda u: u, (df,), lb=-c, conditional=True, limit=400) for c in index]
    link = StudentLink(df)
    rel = 1e-6 if df > 2 else 1e-2
    assert link.mean_error(index) == pytest.approx(means, rel=rel)
    assert link.chance(index) == pytest.approx(stats.t.cdf(index, df))
    assert link.partial_mean(index) == pytest.approx(link.chance(index) * link.mean_error(index))
    assert np.all(np.isnan(StudentLink(1.0).mean_error(index)))


@pytest.mark.parametrize("kind", ["marginal", "selected", "unselected", "expected", "selection"])
def test_parts_have_the_derivatives_of_their_value(kind: str) -> None:
    v, u, b, df, h = np.array([0.5, -1.0]), np.array([-2.0, 0.7]), 0.8, 4.0, 1e-5
    parts = student_parts(kind, v, u, b, df)

    def difference(field: str, **steps: float) -> Any:
        at = {"v": v, "u": u, "b": b, "df": df}
        up, down = ({k: x + s * steps.get(k, 0.0) for k, x in at.items()} for s in (1, -1))
        ends = (student_parts(kind, p["v"], p["u"], p["b"], p["df"]) for p in (up, down))
        high, low = (getattr(end, field) for end in ends)
        return (high - low) / (2.0 * h)

    def same(known: Any, field: str, **steps: float) -> None:
        assert known == pytest.approx(difference(field, **steps), rel=1e-6, abs=1e-8)

    for name, field in (("v", "mean"), ("u", "index"), ("b", "dependence"), ("df", "sigma")):
        same(getattr(parts, field), "value", **{name: h})
    same(parts.index_index, "index", u=h)
    same(parts.index_dependence, "index", b=h)
    same(parts.index_sigma, "index", df=h)
    if parts.bend is not None:
        same(parts.bend.mean_index, "mean", u=h)
        same(parts.bend.mean_sigma, "mean", df=h)


def test_links_agree_at_many_degrees_of_freedom() -> None:
    index = np.linspace(-4.0, 4.0, 9)
    one, other = StudentLink(1e8), NormalLink()
    for method in ("chance", "mean_error", "partial_mean"):
        assert getattr(one, method)(index) == pytest.approx(getattr(other, method)(index), 1e-6)
    ends = np.array([0.025, 0.5])
    assert one.quantiles(ends) == pytest.approx(other.quantiles(ends), rel=1e-6)
    assert one.index_parts(index).index == pytest.approx(other.index_parts(index).index)
