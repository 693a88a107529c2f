"""Tests that a fit carries, of rho = 0 and of maximum likelihood, and when it cannot be tested."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from heckmanfa.errors import InputError, NotIdentifiedError
from heckmanfa.fit import Fit
from heckmanfa.model.covariance import is_classical
from heckmanfa.model.likelihood import higher_maximum
from heckmanfa.model.two_step import fit_least_squares
from heckmanfa.results.distribution import Wald, distribution_of
from heckmanfa.results.effects import separating_columns
from heckmanfa.results.naming import held_value

_NAN = float("nan")

ENOUGH_ROWS = 10
"""rows of the rarer kind for each feature, below which a probit's coefficients are too large
(Peduzzi et al., 1996)"""


def unconverged(fit: Fit) -> tuple[str, ...]:
    """Name the iterations of a fit that did not converge.

    Where a column decides the outcome there is nothing to converge to; another fact says so.
    """
    if fit.converged or separating_columns(fit):
        return ()
    if fit.probit is None:
        return ("plain probit",)
    return ("likelihood",) if fit.probit.converged else ("probit",)


def why_untested(fit: Fit) -> str:
    """Say why a fit that did not converge cannot be tested; empty after convergence."""
    which = unconverged(fit)
    return f"the {' and the '.join(which)} did not converge" if which else ""


def rho_wald(fit: Fit) -> Wald:
    """Test rho = 0 by atanh rho after maximum likelihood, otherwise by beta_H."""
    if fit.atanh_rho is not None:
        estimate, error = fit.atanh_rho
        variance = error**2
    else:
        # Not the root of the variance, which may be negative: `wald` then says so.
        position = fit.terms.index(("errors", "imr"))
        estimate, variance = fit.errors["imr"].value, float(fit.covariance[position, position])
    return distribution_of(fit).wald([estimate], np.array([[variance]]), why_untested(fit))


def series_wald(fit: Fit) -> Wald:
    """Test that all terms of a series are zero, so its correction is a constant."""
    names = fit.dependence_terms[1:]
    places = [fit.terms.index(("errors", name)) for name in names]
    values = [fit.errors[name].value for name in names]
    covariance = fit.covariance[np.ix_(places, places)]
    return distribution_of(fit).wald(values, covariance, why_untested(fit))


def has_ratio(fit: Fit) -> bool:
    """Whether a likelihood-ratio test of rho = 0 can be reported for a fitted model."""
    return (
        fit.log_likelihood is not None
        and fit.probit is not None
        and fit.family.can("single rho")
        and fit.family.can("normal errors")
        and is_classical(fit.spec.cov_type)
        and fit.held_rho is None
        and not fit.rho_is_conditioned
    )


def rho_lr(fit: Fit) -> Wald | None:
    """Compare with the model of rho = 0, in which both equations are fitted apart.

    The ratio uses the highest known maximum, even if the estimates are at another. There is none
    after two steps, nor with a robust or cluster covariance. Honest estimates by maximum likelihood
    alone are not at the maximum of all rows, which chose the features: they have Wald's test.
    """
    moved = fit.way.halves_rows and "two steps" not in fit.family.supports
    if not has_ratio(fit) or moved:
        return None
    assert fit.log_likelihood is not None
    why_not = why_untested(fit)
    if why_not:
        return Wald(_NAN, 1, _NAN, note=why_not)
    higher = higher_maximum(fit.log_likelihood, fit.second_maximum)
    top = fit.log_likelihood if higher is None else higher[0]
    statistic = max(2.0 * (top - fit.family.naive(fit)[1]), 0.0)
    return Wald(statistic, 1, float(stats.chi2.sf(statistic, 1)))


HALF = (
    "Infinitely many degrees of freedom are on the boundary of the model, so the p-value is half "
    "that of chi-squared."
)


def half_chi_squared(statistic: float) -> Wald:
    """Return a likelihood-ratio test of a parameter that cannot be beyond its tested value.

    Under the hypothesis it is 0 half of the time (Self and Liang, 1987, "Asymptotic properties of
    maximum likelihood estimators and likelihood ratio tests under nonstandard conditions", Journal
    of the American Statistical Association 82).
    """
    statistic = max(float(statistic), 0.0)
    p_value = 1.0 if statistic == 0.0 else 0.5 * float(stats.chi2.sf(statistic, 1))
    return Wald(statistic, 1, p_value)


def normal_errors_lr(fit: Fit) -> Wald | None:
    """Compare with the same model of normal errors; None if a fit assumes them, or there is none.

    A robust or cluster covariance does not trust the likelihood, so there is no ratio then.
    """
    normal = None if fit.details is None else fit.details.normal_log_likelihood
    valid = fit.converged and is_classical(fit.spec.cov_type)
    if normal is None or np.isnan(normal) or fit.log_likelihood is None or not valid:
        return None
    return half_chi_squared(2.0 * (fit.log_likelihood - normal))


def hausman_test(fit: Fit) -> Wald | None:
    """Test that two-step and maximum likelihood estimate the same beta_H; None if not known."""
    guards, why_not = fit.guards, _why_unguarded(fit)
    if guards is None:
        return Wald(_NAN, 1, _NAN, note=why_not) if why_not else None
    return distribution_of(fit).wald([guards.difference], np.array([[guards.variance]]), why_not)


def equal_variance_test(fit: Fit) -> Wald | None:
    """Test that the outcome's variance is the same for all rows; None if not known."""
    guards, why_not = fit.guards, _why_unguarded(fit)
    if guards is None or not len(guards.spread):
        why_not = why_not or ("" if guards is None else "the variance of the test is not known")
        return Wald(_NAN, 1, _NAN, note=why_not) if why_not else None
    return distribution_of(fit).wald(guards.spread, np.eye(len(guards.spread)), why_not)


def _why_unguarded(fit: Fit) -> str:
    """Say why a maximum-likelihood fit cannot be tested; empty if it can, or is another fit."""
    guarded = fit.spec.method == "ml" and "two steps" in fit.family.supports
    if not guarded or fit.probit is None or fit.held_rho is not None:
        return ""
    unknown = "the covariance of the estimates is not known" if lacks_errors(fit) else ""
    return why_untested(fit) or unknown


def lacks_errors(fit: Fit) -> bool:
    """Whether some variance of a selection model is unknown; averages have intervals instead."""
    if fit.way.is_average or not fit.way.is_corrected:
        return False
    # At infinity, the end of its range, a parameter has none.
    errors = {("errors", name) for name, value in fit.error_values.items() if np.isposinf(value)}
    known = [variance >= 0 for variance in np.diag(fit.covariance)]
    return not all(own or term in errors for own, term in zip(known, fit.terms, strict=True))


def withholds_errors(fit: Fit) -> bool:
    """Whether the likelihood says too little about rho for standard errors but of selection."""
    own = np.array([equation == "selection" for equation, _ in fit.terms], dtype=bool)
    known = np.diag(fit.covariance) >= 0
    return bool(fit.doubts) and lacks_errors(fit) and bool(np.all(known[own]))


def rows_per_feature(fit: Fit) -> float:
    """Rows of the rarer kind, selected or not, for each feature of the selection equation."""
    if fit.probit is None or not len(fit.probit.features):
        return float("inf")
    counts = fit.row_counts
    return min(counts["selected"], counts["unselected"]) / len(fit.probit.features)


def is_crowded(fit: Fit) -> bool:
    """Whether the selection equation has too many features for its rows."""
    return rows_per_feature(fit) < ENOUGH_ROWS


def r2_of(fit: Fit) -> float:
    """R^2 of the prediction equation among the selected rows, lambda included if it is there.

    NaN where outcomes are classes.
    """
    if fit.family.reads_labels:
        return _NAN
    if fit.probit is None:
        return fit_least_squares(fit.moments, fit.features).r2
    n_more = len(fit.dependence_terms) - 1
    if fit.held_rho is not None or n_more:
        m, spent = fit.moments.n_selected, len(fit.features) + n_more
        return 1.0 - (1.0 - fit.adjusted_r2) * (m - spent - 1.0) / (m - 1.0)
    return float(fit.moments.solve(np.asarray(fit.support, dtype=bool)).r2)


def is_saturated(fit: Fit) -> bool:
    """Whether there are as many prediction coefficients as rows with an outcome, or more."""
    return bool(fit.row_counts["selected"] <= np.count_nonzero(fit.support) + 1)


def rho_of_maximum(fit: Fit) -> float:
    """Return rho at the maximum that was reached; honest estimates move away from it."""
    place = fit.family.rho_in_params
    return fit.rho if fit.params is None or place is None else float(np.tanh(fit.params[place]))


def refuse_test_of_held_rho(fit: Fit) -> None:
    """Refuse a hypothesis about a rho that was not estimated."""
    if fit.held_rho is not None:
        raise NotIdentifiedError(
            f"rho is {held_value(fit.held_rho)}, so no hypothesis about it can be tested; fit "
            "without a rho to test it"
        )


def refuse_exclusions_of_held_rho(fit: Fit, name: str) -> None:
    """Refuse what examines exclusions, which a rho that is held does not need."""
    if fit.held_rho is not None:
        raise InputError(
            f"{name} examines exclusions, and a fixed rho needs no exclusion restriction (rho is "
            f"{held_value(fit.held_rho)}): let the features predict, with the same rho, and use "
            "wald_test"
        )


def selection_test(fit: Fit, columns: Sequence[int]) -> Wald:
    """Test jointly that columns of X have no coefficient in the selection equation.

    An average over selection equations is a mixture, which has no test: then the test is that of
    the model with everything in it.
    """
    assert fit.probit is not None
    first = fit.terms.index(("selection", "Intercept"))
    features = [int(column) for column in fit.probit.features]
    positions = [first + 1 + features.index(column) for column in columns]
    coef, covariance = fit.selection_coef[list(columns)], fit.covariance
    form = fit.way.form_of_both
    if fit.way.is_average and form is not None:
        coef, covariance = form.estimates[positions], form.covariance
    covariance = covariance[np.ix_(positions, positions)]
    return distribution_of(fit).wald(coef, covariance, why_untested(fit))
