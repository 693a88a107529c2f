"""The effects of a treatment in the rows of a fit, and what a fit keeps of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Rows, total
from heckmanfa.errors import (
    InputError,
)
from heckmanfa.fit.family import Details
from heckmanfa.fit.fitted import Fit
from heckmanfa.fit.making import (
    FirstStep,
    Inputs,
    count,
)
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.moments import Moments
from heckmanfa.model.regimes import (
    RegimeMoments,
)
from heckmanfa.model.regimes_two_step import (
    apart_log_likelihood,
    difference_of_means,
    least_squares_of_all,
)
from heckmanfa.model.treatment_effects import (
    AverageEffect,
    EffectEstimates,
    average_effect,
    block_sums,
    index_ranges,
    widest_ranges,
)


@dataclass(frozen=True, eq=False)
class ByLot(Details):
    """Estimates that take treatment as if it were drawn by lot: all that a refit keeps."""

    means: tuple[float, float]
    """difference of the mean outcomes of both groups, and its standard error"""
    least_squares: tuple[float, float]
    """coefficient of treatment by least squares, and its standard error"""

    @property
    def beside(self) -> tuple[float, ...]:
        """The difference of means, and the effect by least squares."""
        return self.means[0], self.least_squares[0]

    def with_errors_beside(self, errors: Floats) -> Details:
        """Return the same with other standard errors of these."""
        means, least_squares = zip(self.beside, map(float, errors), strict=True)
        return replace(self, means=means, least_squares=least_squares)


@dataclass(frozen=True, eq=False)
class TreatmentDetails(ByLot):
    """What a fit of a treatment model keeps, for T terms of its covariance."""

    effects: Floats
    """(4,) average effects of the rows of the fit, in the order of `KINDS`"""
    gradients: Floats
    """(4, T) their derivatives in what the covariance is of"""
    n_rows: Floats
    """(4,) rows that each is an average of"""
    naive: Floats
    """(1 + J,) the other coefficients of these least squares"""
    apart: float
    """log-likelihood of the same equations without correlations"""
    ranges: Floats
    """(2, 2) range of the treatment index among the treated, and among the untreated"""


@dataclass(frozen=True, eq=False)
class AveragedTreatment(TreatmentDetails):
    """The same of an average, whose effects are those of its G groups of assignments."""

    group_effects: Floats
    """(G, 4) average effects in each group, as `group_fits` has them"""
    group_gradients: Floats
    """(G, 4, T)"""


def averaged_details(
    fit: Fit, groups: Sequence[tuple[float, Fit]], first: FirstStep
) -> AveragedTreatment:
    """Return the effects of the rows of an average, given the weights and fits of its groups."""
    details = treatment_details(fit)
    each = [effects_of_rows(own, first.moments, first.rows) for _, own in groups]
    values = np.array([[effect.value for effect in own] for own in each])
    gradients = [
        [gradient_in_terms(own, effect) for effect in effects]
        for (_, own), effects in zip(groups, each, strict=True)
    ]
    weights = np.array([weight for weight, _ in groups])
    known = {field.name: getattr(details, field.name) for field in fields(TreatmentDetails)}
    known |= {
        "effects": weights @ values,
        "gradients": np.tensordot(weights, np.array(gradients), axes=1),
    }
    return AveragedTreatment(**known, group_effects=values, group_gradients=np.array(gradients))


def effect_estimates(fit: Fit) -> EffectEstimates:
    """Return what effects depend on."""
    columns = [0, *(1 + column for column in fit.equation)]
    driving = [] if fit.probit is None else list(fit.probit.features)
    gamma = np.append(fit.selection_intercept, fit.selection_coef[driving])
    if "effect" in fit.equations:
        difference = np.zeros(len(columns))
        difference[0] = fit.equations["effect"].intercept
        return EffectEstimates(difference, 0.0, gamma)
    one, zero = (
        np.append(each.intercept, each.coef)[columns]
        for each in (fit.equations["regime1"], fit.equations["regime0"])
    )
    errors = fit.error_values
    return EffectEstimates(one - zero, errors["imr1"] - errors["imr0"], gamma)


def gradient_in_terms(fit: Fit, effect: AverageEffect) -> Floats:
    """Return the derivative of an effect in what the covariance of a fit is of, (T,)."""
    gradient = np.zeros(len(fit.terms))
    names = [name for name, _ in fit.terms]

    def own(equation: str) -> slice:
        return slice(names.index(equation), names.index(equation) + names.count(equation))

    if "effect" in fit.equations:
        gradient[own("effect")] = effect.in_difference[0]
        return gradient
    gradient[own("regime1")], gradient[own("regime0")] = effect.in_difference, -effect.in_difference
    gradient[own("selection")] = effect.in_gamma
    gradient[fit.terms.index(("errors", "imr1"))] = effect.in_kappa
    gradient[fit.terms.index(("errors", "imr0"))] = -effect.in_kappa
    return gradient


def effects_of_rows(fit: Fit, moments: Moments, rows: Rows) -> list[AverageEffect]:
    """Return the average effects of rows, in the order of `KINDS`."""
    assert fit.probit is not None
    estimates, columns = effect_estimates(fit), moments.columns
    places = [moments.positions(each) for each in (fit.equation, fit.probit.features)]
    (sums,) = total(rows.map(block_sums, estimates, *places, columns=columns, merge=total))
    sizes = len(estimates.difference), len(estimates.gamma)
    return [average_effect(own, *sizes) for own in sums]


def by_lot(inputs: Inputs, moments: RegimeMoments) -> ByLot:
    """Return what a refit keeps, with classical standard errors, which read no rows."""
    naive = least_squares_of_all(moments, inputs.features, CLASSICAL, inputs.rows)
    means = difference_of_means(moments, CLASSICAL, inputs.rows)
    return ByLot(means, (naive.effect, naive.error))


def details_of(inputs: Inputs, moments: RegimeMoments, fit: Fit) -> TreatmentDetails:
    """Return the effects of the rows of the fit, and what stands beside them."""
    features, rows = inputs.features, inputs.rows
    estimates, effects = effect_estimates(fit), effects_of_rows(fit, moments, rows)
    naive = least_squares_of_all(moments, features, inputs.kind, rows)
    apart = naive.log_likelihood if moments.shared else apart_log_likelihood(moments, features)
    driving, gamma = inputs.probit.features, estimates.gamma
    parts = rows.map(index_ranges, gamma, columns=driving, merge=widest_ranges)
    ranges = widest_ranges([*parts])
    treated = fit.n_selected
    untreated = count(moments.untreated.n_selected, inputs.counts["unselected"], inputs.kind)
    return TreatmentDetails(
        effects=np.array([each.value for each in effects]),
        gradients=np.array([gradient_in_terms(fit, each) for each in effects]),
        n_rows=np.array([fit.n_obs, treated, untreated, fit.n_obs], dtype=np.float64),
        means=difference_of_means(moments, inputs.kind, rows),
        least_squares=(naive.effect, naive.error),
        naive=naive.coef,
        apart=inputs.probit.log_likelihood + apart,
        ranges=ranges,
    )


def treatment_details(fit: Fit) -> TreatmentDetails:
    """Return what a fit of a treatment model keeps."""
    if not isinstance(fit.details, TreatmentDetails):
        raise InputError("this fit does not keep its effects: fit the model again")
    return fit.details


def independent(fit: Fit) -> tuple[Floats, float]:
    """Coefficients of least squares, and the log-likelihood of all equations apart."""
    details = treatment_details(fit)
    return details.naive, details.apart
