"""The treatment models: outcomes of everyone, and a treatment that depends on their errors.

Both have two regimes, the treated and the untreated. Either one equation holds in both, in which
treatment has a coefficient, or each regime has its own: the switching regression. The rows that are
treated are the selected ones, and the selection equation is that of treatment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import special

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Rows, total
from heckmanfa.data.sample import Sample
from heckmanfa.errors import (
    ConstantOutcomeError,
    InputError,
    NoExclusionWarning,
    RhoOutsideWarning,
    RhoUncertainWarning,
    SeparationError,
    TooFewRowsError,
    warn,
)
from heckmanfa.fit.family import Details, Equation, register
from heckmanfa.fit.fitted import Fit, Spec
from heckmanfa.fit.linear import LINEAR, select_and_compress
from heckmanfa.fit.making import (
    Inputs,
    count,
    error_estimates,
    fit_of_equations,
    fit_of_maximum,
)
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.equations import Selection, gather
from heckmanfa.model.error_terms import IMR, RHO, SIGMA
from heckmanfa.model.likelihood import (
    NEAR_ONE,
    Doubt,
    JointMaximum,
    maximize,
    warn_of_likelihood,
)
from heckmanfa.model.linalg import solve_upper, stack
from heckmanfa.model.regimes import (
    RHO0,
    RHO1,
    SIGMA0,
    SIGMA1,
    CommonProblem,
    CommonStarts,
    RegimeMoments,
    SeparateProblem,
    TurnedRows,
    turned_probit,
)
from heckmanfa.model.regimes_two_step import (
    RegimesTwoStep,
    apart_log_likelihood,
    common_maps,
    difference_of_means,
    fit_regimes,
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
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted_list

IMR1, IMR0 = replace(IMR, name="imr1"), replace(IMR, name="imr0")
OUTCOME = Equation("outcome", "Outcome equation ({outcome})", "prediction", "all")
EFFECT = Equation("effect", "Effect of treatment", "none", "all", "treated")
REGIME1 = Equation("regime1", "Treated ({outcome})", "prediction", "selected")
REGIME0 = Equation("regime0", "Untreated ({outcome})", "prediction", "unselected")
TREATMENT = Equation("selection", "Treatment equation (probit)", "selection", "all")

_REGIMES = ("treated", "untreated")
# A smaller share of the squares of an outcome is rounding, about a mean that is all of them.
_ROUNDING = 1e-24
# An instrument whose test has a larger p-value may do nothing.
_DOES_NOTHING = 0.05
_NAMED = 5


@dataclass(frozen=True, eq=False)
class TreatmentDetails(Details):
    """What a fit of a treatment model keeps, for T terms of its covariance."""

    effects: Floats
    """(4,) average effects of the rows of the fit, in the order of `KINDS`"""
    gradients: Floats
    """(4, T) their derivatives in what the covariance is of"""
    n_rows: Floats
    """(4,) rows that each is an average of"""
    means: tuple[float, float]
    """difference of the mean outcomes of both groups, and its standard error"""
    least_squares: tuple[float, float]
    """coefficient of treatment by least squares, and its standard error"""
    naive: Floats
    """(1 + J,) the other coefficients of these least squares"""
    apart: float
    """log-likelihood of the same equations without correlations"""
    ranges: Floats
    """(2, 2) range of the treatment index among the treated, and among the untreated"""


def first_step(
    spec: Spec, sample: Sample, check_left: Callable[[Rows], None]
) -> tuple[Selection, RegimeMoments]:
    """Fit the treatment equation, and compress the rows of both regimes."""
    counts = sample.row_counts
    n_used = counts["selected"] + counts["unselected"]
    for kind, other in (("selected", "nobody is treated"), ("unselected", "everybody is treated")):
        if not counts[kind]:
            raise InputError(
                f"{other} among the {n_used} rows with an outcome and a treatment: there is nobody "
                "to compare with. Check the column that says who is treated."
            )
    try:
        selection, treated = select_and_compress(spec, sample, check_left)
    except SeparationError as error:
        raise SeparationError(
            f"{error} Here the selected are the treated.", error.columns
        ) from error
    prediction = [column for column in spec.prediction if column not in selection.separating]
    probit, n_untreated = turned_probit(selection.probit), counts["unselected"]
    others = Selection(TurnedRows(selection.rows), probit)
    untreated = gather(others, prediction, spec.labels, n_untreated)
    moments = RegimeMoments.of(treated, untreated, shared=spec.family is COMMON)
    for regime, own in zip(_REGIMES, (treated, untreated), strict=True):
        if not moments.shared and own.n_selected <= len(prediction) + 2:
            raise TooFewRowsError(
                f"the {regime} have an equation of their own with {len(prediction) + 2} "
                f"coefficients (features, an intercept and lambda), and {own.n_selected:g} rows. "
                f"Use fewer outcome features, or {option('regimes', 'common')}."
            )
        squares = float(np.sum(own.factor[:, -1] ** 2))
        if not moments.shared and own.total_squares <= _ROUNDING * squares:
            raise ConstantOutcomeError(
                f"the outcome is the same for all {own.n_selected:g} {regime} rows, so their "
                f"regime has no error. Check the outcome, or use {option('regimes', 'common')}."
            )
    return selection, moments


# Estimates. ----------------------------------------------------------------------------------


def estimate(inputs: Inputs) -> Fit:
    """Estimate both regimes by either method."""
    assert isinstance(inputs.moments, RegimeMoments)
    moments, spec = inputs.moments, inputs.spec
    kind = CLASSICAL if spec.method == "ml" else inputs.kind
    rows, features = inputs.rows, inputs.features
    two_step = fit_regimes(moments, inputs.probit, features, kind, rows)
    # What is kept of the rows is as for other models: the selected ones.
    inputs = replace(inputs, moments=moments.treated)
    if spec.method == "ml":
        build = _common_likelihood if moments.shared else _separate_likelihood
        fit = _of_likelihood(inputs, moments, two_step, build)
    else:
        fit = _of_two_steps(inputs, moments, two_step)
    if not spec.guarded:
        return fit
    _warn_of_weak_instruments(fit)
    details = _details(inputs, moments, fit)
    low, high = details.ranges[:, 0].min(), details.ranges[:, 1].max()
    return replace(fit, details=details, index_range=(float(low), float(high)))


def _warn_of_weak_instruments(fit: Fit) -> None:
    """Warn if what drives treatment alone is not shown to drive it."""
    driving = [] if fit.probit is None else list(fit.probit.features)
    alone = [column for column in driving if not fit.support[column]]
    if not alone or not np.all(np.isfinite(fit.covariance)):
        return
    first = [name for name, _ in fit.terms].index("selection") + 1
    places = [first + driving.index(column) for column in alone]
    gamma, own = fit.selection_coef[alone], fit.covariance[np.ix_(places, places)]
    size = float(gamma @ np.linalg.lstsq(own, gamma, rcond=None)[0])
    p_value = float(special.chdtrc(len(alone), size))
    if p_value >= _DOES_NOTHING:
        names = quoted_list([fit.labels[column] for column in alone], _NAMED)
        single = len(alone) == 1
        which, does = ("the instrument", "drives") if single else ("the instruments", "drive")
        warn(
            f"there is no evidence that {which} {names} {does} treatment "
            f"(chi2({len(alone)}) = {size:.3g}, p = {p_value:.2g}), so the effect rests on "
            "normality. Look for a stronger instrument, or do not claim an effect.",
            NoExclusionWarning,
        )


def _of_two_steps(inputs: Inputs, moments: RegimeMoments, found: RegimesTwoStep) -> Fit:
    """Return the fit by two steps."""
    j = len(inputs.features) + 1
    equations = {"selection": inputs.probit.coef}
    if moments.shared:
        equations |= {"outcome": found.coef[:j], "effect": found.coef[j : j + 1]}
        errors = {"imr": found.imr[0], "rho": found.rho[0], "sigma": found.sigma[0]}
        own, terms = j + 1, ["imr"]
    else:
        equations |= {"regime1": found.coef[:j], "regime0": found.coef[j : 2 * j]}
        errors = {
            f"{name}{regime}": value
            for name, both in (("imr", found.imr), ("rho", found.rho), ("sigma", found.sigma))
            for regime, value in zip("10", both, strict=True)
        }
        own, terms = 2 * j, ["imr1", "imr0"]
    a = len(found.coef)
    # Tables have the coefficients of lambda last.
    order = [*range(own), *range(a, len(found.covariance)), *range(own, a)]
    counted = a
    n = moments.n_selected + moments.untreated.n_selected
    for name, value in errors.items():
        if name.startswith("rho") and not abs(value) < 1 and inputs.spec.guarded:
            warn(
                f"the two-step estimate of {name} is {value:.4g}, outside (-1, 1): the data do not "
                "fit the model well, or only normality identifies it. Use "
                f"{option('method', 'ml')}, or a stronger instrument.",
                RhoOutsideWarning,
            )
    return fit_of_equations(
        inputs,
        inputs.features,
        equations,
        error_estimates(**errors),
        terms,
        adjusted_r2=_adjusted_r2(found, n),
        aic=found.deviance + 2.0 * counted,
        bic=found.deviance + counted * float(np.log(n)),
        covariance=found.covariance[np.ix_(order, order)],
        index_range=moments.range_of_index,
    )


@dataclass(frozen=True)
class TreatmentMaximum(JointMaximum):
    """Maximum-likelihood estimates of a treatment model."""

    usual_start: ClassVar[str] = "the two-step estimates"
    hiding: ClassVar[frozenset[Doubt]] = frozenset({"flat"})

    @property
    def instead(self) -> str:
        """What to do if Newton's method does not converge."""
        return f"use {option('method', 'two-step')}, or another set of features"

    @property
    def cures(self) -> str:
        """What to do if rho is practically one, or not known."""
        return (
            "Look for outliers and a stronger instrument, and compare with "
            f"{option('method', 'two-step')}."
        )

    @property
    def values(self) -> dict[str, float]:
        """Parameters of the errors by name, on their own scales, and each rho sigma."""
        values = super().values
        regimes = [name.removeprefix("rho") for name in values if name.startswith("rho")]
        return values | {f"imr{r}": values[f"rho{r}"] * values[f"sigma{r}"] for r in regimes}

    @property
    def sigma(self) -> float:
        """Standard deviation of the outcome's error, if there is one."""
        return self.values.get("sigma", float("nan"))

    def reported_covariance(self) -> Floats:
        """Covariance of the equations, each rho sigma, and each rho and sigma."""
        n = len(self.covariance) - len(self.terms)
        values, places = self.values, {term.name: n + i for i, term in enumerate(self.terms)}
        regimes = ["1", "0"] if "rho1" in values else [""]
        rows = [*np.eye(len(self.covariance))[:n]]
        products, others = [], []
        for regime in regimes:
            rho, sigma = values[f"rho{regime}"], values[f"sigma{regime}"]
            in_rho, in_sigma = np.eye(len(self.covariance))[
                [places[f"rho{regime}"], places[f"sigma{regime}"]]
            ]
            slope = 1.0 - rho**2
            products.append(sigma * slope * in_rho + rho * sigma * in_sigma)
            others += [slope * in_rho, sigma * in_sigma]
        jacobian = np.array([*rows, *products, *others])
        return np.asarray(jacobian @ self.covariance @ jacobian.T)


def _of_likelihood(
    inputs: Inputs,
    moments: RegimeMoments,
    two_step: RegimesTwoStep,
    build: Callable[..., Any],
) -> Fit:
    """Return the fit by maximum likelihood."""
    problem, usual, starts = build(inputs, moments, two_step)
    start = inputs.spec.starting_point
    found = maximize(inputs.rows, problem, inputs.features, inputs.kind, usual, starts, start)
    n = moments.n_selected + moments.untreated.n_selected
    offset = n * float(np.log(problem.scale))
    second = found["second_maximum"]
    found |= {
        "log_likelihood": found["log_likelihood"] - offset,
        "second_maximum": None if second is None else (second[0] - offset, second[1]),
    }
    maximum = TreatmentMaximum(**found, index_range=moments.range_of_index).reported()
    warn_of_likelihood(maximum, start)
    fit = fit_of_maximum(inputs, maximum)
    several = [name for name in maximum.values if name.startswith("rho") and name != "rho"]
    for name in several:
        if abs(maximum.values[name]) > NEAR_ONE and maximum.converged:
            warn(
                f"{name} is estimated at {maximum.values[name]:.3f}, practically one: the model "
                "does not fit, or hardly anything but normality identifies it. "
                f"{maximum.cures}",
                RhoUncertainWarning,
            )
    return replace(fit, adjusted_r2=_adjusted_r2(two_step, n))


def _adjusted_r2(found: RegimesTwoStep, n: float) -> float:
    """Return the adjusted R^2 of two steps, which does not count the hazard."""
    n_hazards = 1 if found.shared else 2
    return 1.0 - (1.0 - found.r2) * (n - 1.0) / (n - len(found.coef) + n_hazards)


def _separate_likelihood(
    inputs: Inputs, moments: RegimeMoments, found: RegimesTwoStep
) -> tuple[SeparateProblem, Floats, None]:
    problem = SeparateProblem.build(moments, inputs.probit, inputs.features)
    j = len(inputs.features) + 1
    coefs = found.coef[:j], found.coef[j : 2 * j]
    starts = [*zip(coefs, found.sigma, found.rho, strict=True)]
    return problem, problem.start(inputs.probit, starts), None


def _common_likelihood(
    inputs: Inputs, moments: RegimeMoments, found: RegimesTwoStep
) -> tuple[CommonProblem, Floats, CommonStarts]:
    features, probit = inputs.features, inputs.probit
    problem = CommonProblem.build(moments, probit, features)
    j = len(features) + 1
    coef, effect = found.coef[:j], float(found.coef[j])
    usual = problem.start(probit, coef, effect, found.sigma[0], found.rho[0])
    # The hazard and the outcome on [1, X, treatment].
    maps = common_maps(len(features))
    parts = []
    for own, to, sign in zip((moments.treated, moments.untreated), maps, (1.0, -1.0), strict=True):
        r = own.subset(features)
        parts.append(np.column_stack([r[:, :-2] @ to[:-1, :-1], sign * r[:, -2], r[:, -1]]))
    whole = stack(parts, j + 3)
    design, n = whole[: j + 1, : j + 1], moments.n_selected + moments.untreated.n_selected
    solved = solve_upper(design, whole[: j + 1, j + 1 :])
    deltas = sum(own.n_selected * own.mean_delta for own in (moments.treated, moments.untreated))
    starts = CommonStarts(
        problem,
        probit,
        solved[:, 1],
        solved[:, 0],
        float(np.sum(whole[j + 1 :, -1] ** 2)) / n,
        float(deltas / n - whole[j + 1, j + 1] ** 2 / n),
    )
    return problem, usual, starts


# Effects. ------------------------------------------------------------------------------------


def effect_estimates(fit: Fit) -> EffectEstimates:
    """Return what effects depend on."""
    columns = [0, *(1 + column for column in fit.features)]
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


def _details(inputs: Inputs, moments: RegimeMoments, fit: Fit) -> TreatmentDetails:
    """Return the effects of the rows of the fit, and what stands beside them."""
    estimates, columns = effect_estimates(fit), moments.columns
    places = [moments.positions(each) for each in (fit.features, inputs.probit.features)]
    (sums,) = total(inputs.rows.map(block_sums, estimates, *places, columns=columns, merge=total))
    sizes = len(estimates.difference), len(estimates.gamma)
    effects = [average_effect(own, *sizes) for own in sums]
    features, rows = inputs.features, inputs.rows
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
        means=difference_of_means(moments),
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


# One regime. ---------------------------------------------------------------------------------


def fit_of_regime(fit: Fit, regime: int) -> Fit:
    """Return a fit of the linear model: what everyone's outcome would be in one regime.

    Its selection equation is that of treatment, so "selected" rows are the treated.
    """
    n = len(fit.terms)
    eye, names = np.eye(n), [name for name, _ in fit.terms]
    shared = "effect" in fit.equations
    suffix, source = ("", "outcome") if shared else (str(regime), f"regime{regime}")
    outcome = [i for i, name in enumerate(names) if name == source]
    driving = [i for i, name in enumerate(names) if name == "selection"]
    jacobian = eye[outcome]
    equation = fit.equations[source]
    if shared and regime:
        jacobian[0] += eye[names.index("effect")]
        effect = fit.equations["effect"].intercept
        equation = replace(equation, intercept=equation.intercept + effect)
    known = [name for name in ("imr", "rho", "sigma") if ("errors", f"{name}{suffix}") in fit.terms]
    ends = [fit.terms.index(("errors", f"{name}{suffix}")) for name in known]
    whole = np.vstack([jacobian, eye[driving], eye[ends]])
    terms = [("prediction", fit.terms[i][1]) for i in outcome]
    return replace(
        fit,
        spec=replace(fit.spec, outcome_kind=LINEAR.name),
        equations={"prediction": equation, "selection": fit.equations["selection"]},
        errors={name: fit.errors[f"{name}{suffix}"] for name in ("imr", "rho", "sigma")},
        terms=(*terms, *(fit.terms[i] for i in driving), *(("errors", name) for name in known)),
        covariance=whole @ fit.covariance @ whole.T,
        params=None,
        log_likelihood=None,
        details=None,
    )


# The families. -------------------------------------------------------------------------------

_OF_REGIME = "use of_regime(1) or of_regime(0), which is a model of one outcome"
_LACKING: Mapping[Any, str] = {
    "compressed data": "no compressed data: fit it again instead",
    "two steps": "no analysis of this kind",
    "residuals": "no picture of residuals",
    "bounds of rho": "no bounds for a range of rho",
    "calibration": "no probabilities, and so no calibration",
    "profiles": "no profiles of its likelihood",
    "refits": "no fits with other features: change outcome_features and fit again",
}
_WORDS = replace(
    LINEAR.words,
    model="treatment model",
    title="Treatment model",
    short="treatment",
    correction="the hazard",
    correction_subject="the hazard",
    correction_parameter="the hazard of treatment",
    naive_of="least squares on",
    near_one=", which usually means that the model does not fit: look for outliers and skewness in "
    "the outcome, look for a stronger instrument, and compare with the two-step estimates.",
    separates="treatment",
    rows=("Treated", "Untreated"),
)

COMMON = register(
    replace(
        LINEAR,
        name="treatment",
        words=replace(
            _WORDS,
            title="Treatment model",
            lacking={
                **_LACKING,
                "single outcome equation": f"an outcome with and without treatment: {_OF_REGIME}",
            },
        ),
        equations=(OUTCOME, EFFECT, TREATMENT),
        error_terms=(IMR, RHO, SIGMA),
        supports=frozenset(),
        first_step=first_step,
        estimate=estimate,
        begin=None,
        refit=None,
        naive=independent,
        needs_missing=False,
    )
)

SEPARATE = register(
    replace(
        COMMON,
        name="switching",
        words=replace(
            _WORDS,
            model="switching regression",
            title="Switching regression",
            short="switching",
            lacking={
                **_LACKING,
                "single outcome equation": f"an outcome equation for each regime: {_OF_REGIME}",
                "single rho": "a correlation for each regime, rho1 and rho0: start from params_",
            },
        ),
        equations=(REGIME1, REGIME0, TREATMENT),
        error_terms=(IMR1, IMR0, RHO1, SIGMA1, RHO0, SIGMA0),
        dependence="imr1",
    )
)
