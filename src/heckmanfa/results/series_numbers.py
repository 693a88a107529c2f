"""The correction of a series over the chance of being selected, and whether it is needed."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from heckmanfa.fit import Fit
from heckmanfa.model.normal import inverse_mills
from heckmanfa.model.series import series_basis
from heckmanfa.plots.series_picture import CorrectionPoint, SeriesCurve
from heckmanfa.results.distribution import distribution_of
from heckmanfa.results.effects import CONF_LEVEL
from heckmanfa.results.evidence import Evidence

_POINTS = 81
# Chances beyond these are hardly those of rows, and the correction is steep there.
_LEAST, _MOST = 0.01, 0.995


def series_curve_of(evidence: Evidence) -> SeriesCurve | None:
    """Return the correction of a series; None for other models."""
    fit = evidence.fit
    terms = fit.dependence_terms[1:]
    if not terms or fit.probit is None:
        return None
    low, high = np.clip(ndtr(np.array(fit.index_range)), _LEAST, _MOST).tolist()
    chance = np.linspace(low, high, _POINTS)
    index = np.asarray(ndtri(chance))
    (basis,) = series_basis(index, len(terms))
    places = [fit.terms.index(("errors", name)) for name in terms]
    coef = np.array([fit.errors[name].value for name in terms])
    covariance = fit.covariance[np.ix_(places, places)]
    with np.errstate(invalid="ignore"):
        error = np.sqrt(np.sum((basis @ covariance) * basis, axis=1))
    reach, value = distribution_of(fit).quantile(CONF_LEVEL) * error, basis @ coef
    normal = normal_imr_coef(fit) * inverse_mills(index)
    points = zip(chance, value, value - reach, value + reach, normal, strict=True)
    return SeriesCurve(
        evidence.naming.outcome,
        tuple(CorrectionPoint(*map(float, point)) for point in points),
        len(terms),
    )


def normal_imr_coef(fit: Fit) -> float:
    """Return the coefficient of lambda of the same features in two steps; NaN if unsolved."""
    solved = fit.moments.solve(np.asarray(fit.support, dtype=bool))
    return float(solved.imr_coef) if bool(solved.feasible) else float("nan")
