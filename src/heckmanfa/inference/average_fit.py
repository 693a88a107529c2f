"""Averaging over assignments as a step of a fit.

Every assignment is weighed by a criterion of its two-step fit, from the compressed data alone. One
pass over the rows gathers what standard errors need. Maximum likelihood refits the heaviest
assignments, each of which reads the rows again.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.errors import (
    ConvergenceWarning,
    HeckmanfaError,
    HeckmanfaWarning,
    NoExclusionWarning,
    NoFeasibleAssignmentError,
    warn,
)
from heckmanfa.fit import Choice, Choose, Fit, Spec, label_terms
from heckmanfa.model.covariance import CLASSICAL, CovarianceKind
from heckmanfa.model.equations import Selection
from heckmanfa.model.likelihood import fit_likelihood
from heckmanfa.model.likelihood_guards import LikelihoodGuards, guard_likelihood
from heckmanfa.model.likelihood_starts import elsewhere, read_start
from heckmanfa.model.linalg import dependencies, symmetric
from heckmanfa.model.moments import Moments
from heckmanfa.model.quantiles import total_covariance
from heckmanfa.model.score_moments import gather_score_moments
from heckmanfa.model.two_step import fit_two_step
from heckmanfa.search.averaging.average_outcome import AverageOutcome, Refits
from heckmanfa.search.averaging.averages import average_and_chances
from heckmanfa.search.averaging.result import Average
from heckmanfa.search.averaging.weights import Weighting
from heckmanfa.search.choices import Choices, feasible_choices
from heckmanfa.text.progress import Show, progress_line

PROBABLE = 0.5
"""A feature with at least this BIC share is a prediction feature of an average."""


@dataclass(frozen=True)
class Averaging(Choose):
    """Averages over the assignments that are allowed."""

    choices: Choices
    weights: Weighting
    rho_range: tuple[float, float] | None
    n_refits: int
    verbose: int = 0
    errors: bool = True
    """whether standard errors are needed"""

    def __call__(
        self,
        spec: Spec,
        selection: Selection,
        moments: Moments,
        kind: CovarianceKind,
        random_state: Any,
    ) -> Choice:
        """Weigh the assignments; the features are those that probably predict."""
        choices = feasible_choices(
            self.choices, moments, selection.separating, selection.dropped, spec.labels
        )
        found, by_bic = average_and_chances(
            moments,
            choices,
            weights=self.weights,
            rho_range=self.rho_range,
            random_state=random_state,
            names=spec.labels,
            verbose=self.verbose,
        )
        features = _probable(moments, found)
        if set(selection.probit.features) <= set(features):
            warn(
                "every selection feature probably predicts as well: with no excluded feature, only "
                "the normality of the errors identifies the model. A feature that drives selection "
                "alone, named in never=[...], would identify it.",
                NoExclusionWarning,
            )
        scores = refits = None
        if spec.method == "ml":
            n = min(self.n_refits, len(found.leading))
            line = progress_line(self.verbose, "maximum likelihood", "assignments", n)
            with line as show:
                refits = _refit(spec, selection, moments, kind, found, n, show)
        if self.errors:
            scores = gather_score_moments(moments, choices.columns, selection.rows, kind)
        return Choice(features, average=AverageOutcome(self.choices, found, scores, refits, by_bic))

    def finish(self, fit: Fit) -> Fit:
        """Put averages in place of the estimates of one assignment."""
        assert fit.average is not None
        return _with_averages(fit, fit.average)

    def for_replicates(self) -> Self:
        """Return the same average for many fits of which only the estimates are used."""
        return replace(self, verbose=0, errors=False)


def _probable(moments: Moments, found: Average) -> tuple[int, ...]:
    """Return the columns with a BIC share of at least one half, without dependent ones."""
    likely = [int(column) for column in np.flatnonzero(found.shares["bic"] >= PROBABLE)]
    # Two equal columns have one half each, and cannot predict together.
    dependent = {
        item.column - 1 for item in dependencies(moments.subset(likely, imr=False, outcome=False))
    }
    return tuple(column for i, column in enumerate(likely) if i not in dependent)


def _refit(
    spec: Spec,
    selection: Selection,
    moments: Moments,
    kind: CovarianceKind,
    found: Average,
    n_refits: int,
    show: Show | None,
) -> Refits:
    """Maximise the likelihood of the heaviest assignments."""
    probit, columns = selection.probit, found.choices.columns
    start = elsewhere(read_start(spec.start, spec.method))
    p = 1 + len(probit.features)
    size = 1 + len(columns) + p + 3
    masks = found.leading_masks[:n_refits]
    kept: list[int] = []
    estimates, covariances = [], []
    guards: LikelihoodGuards | None = None
    for i, mask in enumerate(masks):
        if show is not None:
            show(i, "")
        features = [int(column) for column in np.flatnonzero(mask)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HeckmanfaWarning)
            try:
                two_step = fit_two_step(moments, probit, features, CLASSICAL)
                fitted = fit_likelihood(moments, probit, two_step, kind, selection.rows, start)
            except HeckmanfaError:
                continue
        if not (fitted.converged and fitted.errors_hold):
            continue
        if spec.guarded and not kept:
            given = moments, probit, two_step, fitted, kind, selection.rows, moments.n_selected
            guards = guard_likelihood(*given)
        held = [0, *(1 + columns.index(column) for column in features)]
        held += range(1 + len(columns), size)
        values, covariance = np.zeros(size), np.zeros((size, size))
        errors = [fitted.rho * fitted.sigma, fitted.rho, fitted.sigma]
        values[held] = np.concatenate([fitted.coef, fitted.selection_coef, errors])
        covariance[np.ix_(held, held)] = fitted.reported_covariance()
        kept.append(i)
        estimates.append(values)
        covariances.append(covariance)
    if not kept:
        raise NoFeasibleAssignmentError(
            f"maximum likelihood did not converge, or was flat in rho, for each of the "
            f"{len(masks)} heaviest assignments; use method='two-step'"
        )
    failed = len(masks) - len(kept)
    if failed:
        warn(
            f"maximum likelihood did not converge, or was flat in rho, for {failed} of the "
            f"{len(masks)} heaviest assignments, which are left out of the average",
            ConvergenceWarning,
        )
    weight = found.leading_weight[kept]
    return Refits(
        weight=weight / weight.sum(),
        share=float(weight.sum()),
        estimates=np.array(estimates),
        covariance=np.array([symmetric(covariance) for covariance in covariances]),
        guards=guards,
    )


def _with_averages(fit: Fit, outcome: AverageOutcome) -> Fit:
    """Return the fit of probable features with the averages in place of its estimates."""
    found, columns, probit = outcome.average, outcome.columns, fit.probit
    assert probit is not None
    nan = float("nan")
    of_probit = probit.covariance
    if outcome.scores is not None:
        back = probit.coordinates.back()
        of_probit = symmetric(back @ outcome.scores.selection_covariance(probit) @ back.T)
    fit = replace(
        fit,
        coef=found.coef,
        intercept=found.intercept,
        imr_coef=found.imr_coef,
        rho=found.rho,
        sigma=found.sigma,
        adjusted_r2=found.adjusted_r2,
        aic=nan,
        bic=nan,
        terms=label_terms(fit.spec, columns, probit, ["imr", "rho", "sigma"]),
        covariance=_selection_block(len(columns), of_probit),
    )
    if outcome.refits is None:
        return fit
    refits = outcome.refits
    covariance = total_covariance(refits.weight, refits.estimates, refits.covariance)
    fit = with_refit(fit, refits.weight @ refits.estimates, covariance)
    return replace(fit, guards=refits.guards)


def with_refit(fit: Fit, estimates: Floats, covariance: Floats) -> Fit:
    """Return the fit of an average with other estimates, in the order of `Refits.estimates`."""
    assert fit.probit is not None
    j = 1 + len(fit.equation)
    coef, selection_coef = np.zeros((2, fit.n_features))
    coef[fit.equation] = estimates[1:j]
    selection_coef[list(fit.probit.features)] = estimates[j + 1 : -3]
    return replace(
        fit,
        coef=coef,
        intercept=float(estimates[0]),
        imr_coef=float(estimates[-3]),
        rho=float(estimates[-2]),
        sigma=float(estimates[-1]),
        selection_coef=selection_coef,
        selection_intercept=float(estimates[j]),
        covariance=covariance,
    )


def _selection_block(k: int, of_probit: Floats) -> Floats:
    """Return a covariance of which only the selection equation's part is known."""
    p = len(of_probit)
    covariance = np.full((k + p + 4, k + p + 4), np.nan)
    covariance[k + 1 : k + 1 + p, k + 1 : k + 1 + p] = of_probit
    return covariance
