"""Averaging over assignments as a step of a fit.

The model with every candidate in it is fitted as any other. Its estimates and their covariance, the
`Form`, then give every assignment.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import (
    ConvergenceWarning,
    NotIdentifiedError,
    SearchWarning,
    TooFewRowsError,
    warn,
)
from heckmanfa.fit import Choice, Choose, Fit, Inputs, Spec, label_terms
from heckmanfa.fit.full_form import form_of_fit, two_step_form
from heckmanfa.fit.linear import with_linear_details
from heckmanfa.inference.searching import COULD_IDENTIFY, warn_no_exclusion
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.equations import Selection, weighted_count
from heckmanfa.model.held_two_step import gather_rho_scores
from heckmanfa.model.moments import Moments
from heckmanfa.search.averaging import average
from heckmanfa.search.averaging.averages import with_drivers
from heckmanfa.search.averaging.gibbs import LEAST_SWEEPS
from heckmanfa.search.averaging.members import Members
from heckmanfa.search.averaging.result import PROBABLE, AverageOutcome
from heckmanfa.search.averaging.weights import (
    ALL_FEATURES_SHARE,
    MOST_COLUMNS,
    Correction,
    Weighting,
)
from heckmanfa.search.choices import Choices, feasible_choices
from heckmanfa.search.form import Form
from heckmanfa.search.full_model import without_collinear
from heckmanfa.text.chances import CHANCES_BY
from heckmanfa.text.option_words import IN_NEVER, option

# The same fit gets the same chance.
_SEED = 0


@dataclass(frozen=True)
class Averaging(Choose):
    """Averages over the assignments that are allowed."""

    choices: Choices
    weights: Weighting
    all_features_share: float = ALL_FEATURES_SHARE
    correction: Correction = "optional"
    rho_range: tuple[float, float] | None = None
    verbose: int = 0
    errors: bool = True
    """whether standard errors are needed"""
    selecting: Choices | None = None
    """those of the selection equation, if both equations are searched"""

    def __call__(
        self,
        spec: Spec,
        selection: Selection,
        moments: Moments,
        kind: CovarianceKind,
        random_state: Any,
    ) -> Choice:
        """Let all candidates predict, as far as they can together."""
        choices = self._feasible(spec, selection, moments)
        k, m = len(choices.columns), moments.n_selected
        if k > MOST_COLUMNS * m:
            raise TooFewRowsError(
                f"an average starts from the model of all {k} columns that may predict, and that "
                f"needs three selected rows for each; there are {weighted_count(m)}. Name at most "
                f"{int(MOST_COLUMNS * m)} in {option('prediction_features')}, or leave some out "
                f"with {option('never', [...])}. To predict with so few rows, least squares "
                "(NaiveOLS) had a smaller error in simulations than any search."
            )
        return Choice(choices.columns, everything=True)

    def _feasible(self, spec: Spec, selection: Selection, moments: Moments) -> Choices:
        choices = feasible_choices(
            self.choices, moments, selection.separating, selection.dropped, spec.labels
        )
        return without_collinear(choices, moments, spec.labels, spec.on_collinear)

    def finish(
        self, fit: Fit, selection: Selection, kind: CovarianceKind, random_state: Any
    ) -> Fit:
        """Put averages in place of the estimates of the model with everything in it."""
        away = {*self.choices.columns} - {*fit.features}
        choices = self.choices.without_columns([*away])
        selecting = self.selecting
        if selecting is not None:
            selecting = selecting.without_columns([*selection.dropped, *selection.separating])
        fit, form = _with_form(fit, selection, kind, both=selecting is not None)
        if selecting is not None:
            form = with_drivers(form, selecting)
        found = average(
            form,
            choices,
            weights=self.weights,
            all_features_share=self.all_features_share,
            correction=self.correction if form.knows_correction else "never",
            rho_range=self.rho_range,
            random_state=random_state,
            verbose=self.verbose,
            selecting=selecting,
        )
        chance = None
        two_steps = "two steps" in fit.family.supports and form.errors == "likelihood"
        if two_steps and self.errors and found.correction == "optional":
            chance = _two_step_chance(fit, selection, kind, choices)
        outcome = AverageOutcome(self.choices, found, form, self.selecting, chance)
        probable = found.shares[CHANCES_BY] >= PROBABLE
        features = [int(column) for column in np.flatnonzero(probable)]
        fit = replace(fit, support=probable, average=outcome)
        if np.all(found.alone[CHANCES_BY][fit.driving] >= PROBABLE):
            warn_no_exclusion("probably predicts as well", COULD_IDENTIFY)
        fit = _with_averages(fit, outcome, errors=self.errors)
        known = "compressed data" in fit.family.supports
        if not (fit.spec.errors_differ and fit.spec.guarded and known):
            return fit
        rows, moments = selection.rows, fit.moments
        scores = gather_rho_scores(moments, selection.probit, features, kind, rows)
        return with_linear_details(fit, rho_scores=scores)

    @property
    def by_covariance(self) -> bool:
        """Assignments are weighed by the covariance of the estimates of all features."""
        return True

    def for_replicates(self) -> Self:
        """Return the same average for many fits of which only the estimates are used."""
        return replace(self, verbose=0, errors=False)


def _with_form(
    fit: Fit, selection: Selection, kind: CovarianceKind, *, both: bool
) -> tuple[Fit, Form]:
    """Return a fit of everything and its form, with the selection equation's units if ``both``.

    A likelihood that rises towards |rho| = 1, or is flat in rho, has no covariance. The model is
    then fitted with rho = 0, and nothing can be said of the correction.
    """
    try:
        return fit, form_of_fit(fit, both=both)
    except NotIdentifiedError:
        if fit.atanh_rho is None:
            raise
    spec = replace(fit.spec, held={"rho": 0.0}, start=None)
    choice = Choice(tuple(fit.features), everything=True)
    inputs = Inputs(spec, selection, fit.moments, choice, kind, fit.row_counts)
    held: Fit = fit.family.estimate(inputs)
    form = form_of_fit(held, both=both)
    warn(
        "the likelihood of all features has no maximum with rho inside (-1, 1) that standard "
        "errors could be taken from, so the correction cannot be weighed, and is left out. A "
        f"feature that drives selection alone, named {IN_NEVER}, may identify it.",
        ConvergenceWarning,
    )
    held = replace(held, n_clusters=fit.n_clusters, weighted=fit.weighted, origin=fit.origin)
    return replace(held, spec=fit.spec), form


def _two_step_chance(
    fit: Fit, selection: Selection, kind: CovarianceKind, choices: Choices
) -> float | None:
    """Return the chance of the correction by two-step estimates; None if these are not known.

    Their covariance is robust: maximum likelihood is doubted where errors are not normal.
    """
    robust = replace(kind, cov_type="robust") if kind.cov_type == "classical" else kind
    try:
        form = two_step_form(fit, choices.columns, robust, selection.rows)
    except NotIdentifiedError:
        return None
    with warnings.catch_warnings():
        # Chains that agree roughly are enough to confirm a chance.
        warnings.simplefilter("ignore", SearchWarning)
        found = average(form, choices, random_state=_SEED, max_sweeps=LEAST_SWEEPS)
    return found.correction_share[CHANCES_BY]


def _with_averages(fit: Fit, outcome: AverageOutcome, *, errors: bool) -> Fit:
    """Return the fit of everything with the averages in place of its estimates."""
    found, form, nan = outcome.mixture, outcome.form, float("nan")
    members, probit = outcome.members, fit.probit
    assert probit is not None
    terms = label_terms(fit.spec, form.columns, probit, fit.spec.error_terms)
    covariance = np.full((len(terms), len(terms)), nan)
    if errors:
        covariance = outcome.interval_members.term_covariance()[1]
    adjusted_r2 = _adjusted_r2(fit.moments, members) if fit.family.has_imr else nan
    errors_known = {"rho": found.rho, "sigma": found.sigma}
    if fit.family.has_imr:
        two_steps = form.errors == "two-step"
        errors_known["imr"] = found.free[len(form.columns)] if two_steps else members.mean_imr
    fit = replace(
        fit.with_errors(**errors_known),
        adjusted_r2=adjusted_r2,
        aic=nan,
        bic=nan,
        log_likelihood=None,
        params=None,
        doubts=(),
        second_maximum=None,
        details=None if fit.details is None else fit.details.averaged(),
        terms=terms,
        covariance=covariance,
    )
    return with_equations(fit, form.all_of(found.free))


def with_equations(fit: Fit, estimates: Floats) -> Fit:
    """Return the fit of an average with other coefficients, given all estimates of its form."""
    form = fit.way.averaging.form
    k = len(form.columns)
    coef, selection_coef = np.zeros((2, fit.n_features))
    coef[list(form.columns)] = estimates[1 : k + 1]
    selection_coef[list(form.selection)] = estimates[k + 2 : form.correction]
    fit = fit.with_equation("prediction", coef, float(estimates[0]))
    return fit.with_equation("selection", selection_coef, float(estimates[k + 1]))


def _adjusted_r2(moments: Moments, members: Members) -> float:
    """Average of adjusted R^2 over the assignments that intervals use."""
    form, m = members.form, moments.n_selected
    r = moments.subset(form.columns)
    estimates = members.estimates
    imr = members.terms[:, form.correction]
    coef = np.column_stack([estimates[:, : 1 + len(form.columns)], imr, -np.ones(len(imr))])
    squares = np.sum((coef @ r.T) ** 2, axis=1)
    held = members.states[:, : form.n_features].sum(axis=1) + members.states[:, -1]
    ratio = squares / moments.total_squares * (m - 1.0) / (m - held - 1.0)
    return float(1.0 - members.weights @ ratio)
