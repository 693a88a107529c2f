"""The form of a fit: its estimates and their covariance, on the scales that `Form` has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heckmanfa.data.rows import Rows
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.fit.fitted import Fit
from heckmanfa.model.covariance import CLASSICAL, CovarianceKind
from heckmanfa.model.linalg import dependencies, symmetric
from heckmanfa.search.choices import Choices
from heckmanfa.search.form import Errors, Form, two_step_form, wald_excess


def form_of_fit(fit: Fit, *, both: bool = False) -> Form:
    """Return the form of a fit in which every candidate predicts; refuse one that is singular.

    With ``both``, the selection equation is searched as well: the fit is a likelihood's. A rho that
    is held must be zero: the form then has no correction.
    """
    probit, moments = fit.probit, fit.moments
    assert probit is not None
    n = 2 + len(fit.features) + len(probit.features)
    shown, bend = fit.covariance, 1.0 - fit.rho**2
    errors: Errors = "likelihood"
    jacobian = np.zeros((n + 2, len(shown) + 1))
    jacobian[:n, :n] = np.eye(n)
    # Of all terms, and sigma after them.
    whole = np.zeros((len(shown) + 1, len(shown) + 1))
    whole[:-1, :-1] = shown
    held = fit.held_rho is not None
    if not fit.family.has_sigma:
        errors, ends = "binary", [np.arctanh(fit.rho)]
        jacobian = jacobian[:-1]
        jacobian[n, fit.terms.index(("errors", "rho"))] = 0.0 if held else 1.0 / bend
    elif held:
        ends = [0.0, float(np.log(fit.sigma))]
        jacobian[n + 1, n + 2] = 1.0 / fit.sigma
    elif fit.atanh_rho is not None:
        ends = [fit.atanh_rho[0], float(np.log(fit.sigma))]
        jacobian[n, n + 1], jacobian[n + 1, n + 2] = 1.0 / bend, 1.0 / fit.sigma
    else:
        errors = "two-step"
        rest = max(fit.sigma**2 - moments.mean_delta * fit.imr_coef**2, np.finfo(float).tiny)
        ends = [fit.imr_coef, 0.5 * float(np.log(rest))]
        jacobian[n, n] = 1.0
        of_sigma = fit.sigma_covariance
        if of_sigma is not None:
            whole[-1], whole[:, -1] = of_sigma, of_sigma
            jacobian[n + 1, -1] = fit.sigma / rest
            jacobian[n + 1, n] = -moments.mean_delta * fit.imr_coef / rest
    covariance = symmetric(np.asarray(jacobian @ whole @ jacobian.T))
    if held:
        # A correction that was not estimated, on its own, costs nothing and moves nothing.
        covariance[n, n] = 1.0
    excess = 0.0
    if fit.log_likelihood is not None and not held and not fit.spec.errors_differ:
        likelihoods = fit.log_likelihood, fit.family.naive(fit)[1]
        excess = wald_excess(ends[0], covariance[n, n], *likelihoods)
    columns, selection = fit.features, list(probit.features)
    slopes = [fit.intercept, *fit.coef[columns]]
    slopes += [fit.selection_intercept, *fit.selection_coef[selection]]
    return Form(
        columns=tuple(columns),
        selection=tuple(selection),
        n_features=fit.n_features,
        n_selected=float(probit.n if both else moments.n_selected),
        errors=errors,
        searched=tuple(selection) if both else (),
        estimates=np.array([*slopes, *ends], dtype=np.float64),
        covariance=covariance,
        mean_delta=moments.mean_delta if errors == "two-step" else 0.0,
        knows_correction=not held,
        correction_excess=excess if np.isfinite(excess) else 0.0,
        known_sigma=fit.sigma if fit.family.has_imr and not fit.family.has_sigma else None,
    ).check()


def form_of_candidates(fit: Fit, choices: Choices) -> Form:
    """Return the form of the model in which every candidate of a search predicts.

    A search of both equations or by a likelihood has it; another one has its two-step estimates in
    the compressed data, with Heckman's covariance.
    """
    search = fit.search
    if search is not None and search.form is not None:
        return search.form
    if "two steps" in fit.family.supports:
        return form_of_two_steps(fit, choices.columns)
    form = None if search is None or search.result is None else search.result.goal.form
    if form is None:
        raise NotIdentifiedError("the search did not fit the model of all features.")
    # The index has the selection equation of the fit.
    estimates = form.estimates.copy()
    slopes = fit.selection_coef[list(form.selection)]
    estimates[len(form.columns) + 1 : form.correction] = [fit.selection_intercept, *slopes]
    return replace(form, estimates=estimates).check()


def form_of_two_steps(
    fit: Fit,
    columns: tuple[int, ...],
    kind: CovarianceKind = CLASSICAL,
    rows: Rows | None = None,
) -> Form:
    """Return the form of two-step estimates of all candidates.

    The compressed data have it with the classical covariance; another kind reads ``rows``.
    """
    moments = fit.moments
    few = moments.n_selected <= len(columns) + 2
    if few or dependencies(moments.subset(columns, outcome=False)):
        why = "more than the selected rows can identify" if few else "collinear among them"
        raise NotIdentifiedError(
            f"the {len(columns)} features that may predict cannot be fitted at once to the "
            f"selected rows: they are {why}."
        )
    return two_step_form(moments, columns, kind, rows).check()
