"""Tests of rho = 0: whether there is selection on what was not observed."""

from __future__ import annotations

import numpy as np
from scipy import stats

from heckmanfa.fit import Fit
from heckmanfa.model.likelihood import higher_maximum
from heckmanfa.results.problems import has_ratio, why_untested
from heckmanfa.results.reference import Wald, reference_of

_NAN = float("nan")


def rho_wald(fit: Fit) -> Wald:
    """Test rho = 0 by atanh rho after maximum likelihood, otherwise by beta_H."""
    if fit.atanh_rho is not None:
        estimate, error = fit.atanh_rho
        variance = error**2
    else:
        # Not the root of the variance, which may be negative: `wald` then says so.
        position = fit.terms.index(("errors", "imr"))
        estimate, variance = fit.imr_coef, float(fit.covariance[position, position])
    return reference_of(fit).wald([estimate], np.array([[variance]]), why_untested(fit))


def rho_lr(fit: Fit) -> Wald | None:
    """Compare with the model of rho = 0, in which both equations are fitted apart.

    The ratio uses the highest known maximum, even if the estimates are at another. There is none
    after two steps, nor with a robust or cluster covariance. Honest estimates of a binary outcome
    are not at the maximum of all rows, which chose the features: they have Wald's test alone.
    """
    honest = fit.search is not None and fit.search.honest is not None
    if not has_ratio(fit) or (fit.is_binary and honest):
        return None
    assert fit.log_likelihood is not None
    why_not = why_untested(fit)
    if why_not:
        return Wald(_NAN, 1, _NAN, note=why_not)
    higher = higher_maximum(fit.log_likelihood, fit.second_maximum)
    top = fit.log_likelihood if higher is None else higher[0]
    statistic = max(2.0 * (top - fit.family.naive(fit)[1]), 0.0)
    return Wald(statistic, 1, float(stats.chi2.sf(statistic, 1)))
