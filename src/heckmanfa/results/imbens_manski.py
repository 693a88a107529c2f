"""Confidence intervals of a number of which only bounds are estimated.

Imbens and Manski (2004), "Confidence intervals for partially identified parameters", Econometrica
72: the interval holds the number itself, wherever it is between its bounds, with the probability
asked for. The bounds are widened by c standard errors, where F(c + width / largest error) - F(-c)
is the level: c is 1.64 at 95% if they are far apart, and 1.96 if they meet.

Stoye (2009) shows that this needs the width to be estimated well where it is nearly zero. It is if
the upper estimate is never below the lower one, as worst-case and trimming bounds are by
construction. Bounds that may cross have an interval at c of the level alone (`apart`).
"""

from __future__ import annotations

import math

from scipy import optimize, stats

from heckmanfa.results.distribution import NullDistribution

Interval = tuple[float, float]


def interval(
    bounds: tuple[float, float],
    errors: tuple[float, float],
    conf_level: float,
    reference: NullDistribution,
    *,
    ordered: bool = True,
) -> Interval:
    """Return the interval of a number between two estimated bounds.

    An infinite bound is an end of the interval, and a bound without an error has none. ``ordered``
    says whether the estimate of the upper bound is never below that of the lower one.
    """
    widest = max((error for error in errors if math.isfinite(error)), default=0.0)
    width = max(bounds[1] - bounds[0], 0.0)
    reach = reference.quantile(conf_level)
    if ordered and widest > 0:
        reach = critical_value(width / widest, conf_level, reference)
    ends = (
        bound + sign * reach * error if math.isfinite(bound) else bound
        for bound, error, sign in zip(bounds, errors, (-1.0, 1.0), strict=True)
    )
    low, high = ends
    return low, high


def critical_value(width: float, conf_level: float, reference: NullDistribution) -> float:
    """Return c, given the distance of the bounds in units of the larger standard error."""
    known = stats.norm if reference.df is None else stats.t(reference.df)
    two_sided = reference.quantile(conf_level)
    one_sided = float(known.ppf(conf_level))

    def excess(c: float) -> float:
        return float(known.cdf(c + width) - known.cdf(-c) - conf_level)

    if excess(one_sided) >= 0:
        return one_sided
    return float(optimize.brentq(excess, one_sided, two_sided, xtol=1e-12))
