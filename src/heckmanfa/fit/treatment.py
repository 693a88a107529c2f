"""The treatment models: outcomes of everyone, and a treatment that depends on their errors.

Both have two regimes, the treated and the untreated. Either one equation holds in both, in which
treatment has a coefficient, or each regime has its own: the switching regression. The rows that are
treated are the selected ones, and the selection equation is that of treatment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from heckmanfa.data.rows import Rows
from heckmanfa.data.sample import Sample
from heckmanfa.errors import (
    ConstantOutcomeError,
    InputError,
    TooFewRowsError,
)
from heckmanfa.fit.family import Equation, register
from heckmanfa.fit.fitted import Fit, Part, Spec
from heckmanfa.fit.linear import LINEAR, select_and_compress
from heckmanfa.fit.treatment_details import averaged_details, independent
from heckmanfa.fit.treatment_estimates import estimate
from heckmanfa.model.equations import Selection, gather
from heckmanfa.model.error_terms import IMR, RHO, SIGMA
from heckmanfa.model.regimes import (
    RHO0,
    RHO1,
    SIGMA0,
    SIGMA1,
    RegimeMoments,
    TurnedRows,
    turned_probit,
)
from heckmanfa.model.separation import TREATMENT as SEPARATED
from heckmanfa.text.option_words import option

IMR1, IMR0 = replace(IMR, name="imr1"), replace(IMR, name="imr0")
OUTCOME = Equation("outcome", "Outcome equation ({outcome})", "prediction", "all")
EFFECT = Equation("effect", "Effect of treatment", "none", "all", "treated")
REGIME1 = Equation("regime1", "Treated ({outcome})", "prediction", "selected")
REGIME0 = Equation("regime0", "Untreated ({outcome})", "prediction", "unselected")
TREATMENT = Equation("selection", "Treatment equation (probit)", "selection", "all")

_REGIMES = ("treated", "untreated")
# A smaller share of the squares of an outcome is rounding, about a mean that is all of them.
_ROUNDING = 1e-24


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
    selection, treated = select_and_compress(spec, sample, check_left, SEPARATED)
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
    part = None
    if fit.way.is_average:
        part = Part(fit, partial(fit_of_regime, regime=regime), whole)
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
        part=part,
    )


# The families. -------------------------------------------------------------------------------

_OF_REGIME = "use of_regime(1) or of_regime(0), which is a model of one outcome"
_OF_AVERAGE = "use predict(X, regime=1) or predict(X, regime=0), and effects()"
_BOTH, _EACH = "an outcome with and without treatment", "an outcome equation for each regime"
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
    searches="TreatmentBestSubset",
    weighing="TreatmentAverage or TreatmentBestSubset",
    averages="TreatmentAverage",
    near_one=", which usually means that the model does not fit: look for outliers and skewness in "
    "the outcome, look for a stronger instrument, and compare with the two-step estimates.",
    separates="treatment",
    rows=("Treated", "Untreated"),
    sources=(
        "G. S. Maddala (1983). Limited-dependent and qualitative variables in econometrics. "
        "Cambridge University Press.",
        "L.-F. Lee (1978). Unionism and wage rates: a simultaneous equations model with "
        "qualitative and limited dependent variables. International Economic Review 19(2), "
        "415\u2013433.",
    ),
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
                "single outcome equation": f"{_BOTH}: {_OF_REGIME}",
            },
            lacking_averaged={"single outcome equation": f"{_BOTH}: {_OF_AVERAGE}"},
        ),
        equations=(OUTCOME, EFFECT, TREATMENT),
        error_terms=(IMR, RHO, SIGMA),
        supports=frozenset(),
        first_step=first_step,
        estimate=estimate,
        begin=None,
        refit=None,
        naive=independent,
        average_details=averaged_details,
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
                "single outcome equation": f"{_EACH}: {_OF_REGIME}",
                "single rho": "a correlation for each regime, rho1 and rho0: start from params_",
            },
            lacking_averaged={"single outcome equation": f"{_EACH}: {_OF_AVERAGE}"},
        ),
        equations=(REGIME1, REGIME0, TREATMENT),
        error_terms=(IMR1, IMR0, RHO1, SIGMA1, RHO0, SIGMA0),
        dependence=("imr1",),
    )
)
