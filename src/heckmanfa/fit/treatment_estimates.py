"""Estimates of the treatment models: two steps, and maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import (
    NoExclusionWarning,
    RhoOutsideWarning,
    RhoUncertainWarning,
    warn,
)
from heckmanfa.fit.fitted import Fit
from heckmanfa.fit.making import (
    Inputs,
    count,
    error_estimates,
    fit_of_equations,
    fit_of_maximum,
)
from heckmanfa.fit.treatment_details import by_lot, details_of
from heckmanfa.model.covariance import CLASSICAL
from heckmanfa.model.likelihood import (
    NEAR_ONE,
    JointMaximum,
    maximize,
    warn_of_likelihood,
)
from heckmanfa.model.linalg import solve_upper, stack
from heckmanfa.model.regimes import (
    CommonProblem,
    CommonStarts,
    RegimeMoments,
    SeparateProblem,
)
from heckmanfa.model.regimes_two_step import (
    RegimesTwoStep,
    common_maps,
    fit_regimes,
)
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted_list

# An instrument whose test has a larger p-value may do nothing.
_DOES_NOTHING = 0.05
_NAMED = 5


def estimate(inputs: Inputs) -> Fit:
    """Estimate both regimes by either method."""
    assert isinstance(inputs.moments, RegimeMoments)
    moments, spec = inputs.moments, inputs.spec
    kind = CLASSICAL if spec.method == "ml" else inputs.kind
    rows, features = inputs.rows, inputs.features
    two_step = fit_regimes(moments, inputs.probit, features, kind, rows)
    inputs = replace(inputs, moments=moments.kept())
    if spec.method == "ml":
        build = _common_likelihood if moments.shared else _separate_likelihood
        fit = _of_likelihood(inputs, moments, two_step, build)
    else:
        fit = _of_two_steps(inputs, moments, two_step)
    treated = count(moments.treated.n_selected, inputs.counts["selected"], inputs.kind)
    fit = replace(fit, n_selected=treated)
    everything = inputs.choice.everything
    if not (spec.guarded or everything):
        return replace(fit, details=by_lot(inputs, moments))
    if not everything:
        _warn_of_weak_instruments(fit)
    details = details_of(inputs, moments, fit)
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
    n = moments.n_rows
    for name, value in errors.items():
        warns = inputs.spec.guarded and not inputs.choice.everything
        if name.startswith("rho") and not abs(value) < 1 and warns:
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
    n = moments.n_rows
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
    design, n = whole[: j + 1, : j + 1], moments.n_rows
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
