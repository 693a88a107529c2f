"""The form of a fit: its estimates and their covariance, on the scales that `Form` has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Rows
from heckmanfa.errors import NotIdentifiedError
from heckmanfa.fit.fitted import Fit
from heckmanfa.model.covariance import CLASSICAL, CovarianceKind
from heckmanfa.model.error_terms import RHO, SIGMA
from heckmanfa.model.linalg import dependencies, symmetric
from heckmanfa.model.moments import Moments
from heckmanfa.search.choices import Choices
from heckmanfa.search.ends import Ends, Errors, transform_of
from heckmanfa.search.form import Form, two_step_form, wald_excess


def form_of_fit(fit: Fit, moments: Moments | None = None, *, both: bool = False) -> Form:
    """Return the form of a fit in which every candidate predicts; refuse one that is singular.

    ``moments`` are those of its first step, by default those that it keeps. With ``both``, the
    selection equation is searched as well: the fit is a likelihood's. A rho that is held must be
    zero: the form then has no correction.
    """
    probit, family = fit.probit, fit.family
    assert probit is not None
    moments = fit.moments if moments is None else moments
    held = fit.held_rho is not None
    errors, shown = _errors_of(fit), fit.spec.error_terms
    deltas: tuple[float, ...] = ()
    if errors == "two-step":
        deltas = moments.mean_deltas
        shown = tuple(name for name in shown if name.startswith("imr"))
        # The scale has no row in the covariance, but what is known of it is beside that.
        shown = () if fit.family.can("two steps") else shown
    elif {*shown} == {"imr", "rho", "sigma"}:
        shown = ()
    known = fit.sigma if family.has_imr and not family.has_sigma else None
    ends = Ends.of(errors, shown, deltas, known, np.zeros(0))
    last, covariance = _last_estimates(fit, ends)
    n = len(covariance) - len(last)
    own = slice(n, n + len(ends.correction))
    if held:
        # A correction that was not estimated, on its own, costs nothing and moves nothing.
        covariance[own, own] = np.eye(len(ends.correction))
    excess = 0.0
    if fit.log_likelihood is not None and not held and not fit.spec.errors_differ:
        likelihoods = fit.log_likelihood, family.naive(fit)[1]
        excess = wald_excess(last[: len(ends.correction)], covariance[own, own], *likelihoods)
    columns = {"prediction": fit.features, "selection": list(probit.features), "none": []}
    coefs = []
    for each in family.equations:
        equation = fit.equations[each.name]
        coefs += [float(np.nan_to_num(equation.intercept)), *equation.coef[columns[each.columns]]]
    everyone = both or family.sees_everyone
    return Form(
        columns=tuple(fit.features),
        selection=tuple(probit.features),
        n_features=fit.n_features,
        n_selected=float(probit.n if everyone else moments.n_selected),
        errors=errors,
        searched=tuple(probit.features) if both else (),
        estimates=np.array([*coefs, *last], dtype=np.float64),
        covariance=covariance,
        mean_delta=deltas[0] if len(deltas) == 1 else 0.0,
        mean_deltas=deltas if len(deltas) > 1 else (),
        knows_correction=not held,
        correction_excess=excess if np.isfinite(excess) else 0.0,
        known_sigma=known,
        equations=tuple(each.columns for each in family.equations),
        shown=shown,
    ).check()


def _errors_of(fit: Fit) -> Errors:
    """Return what the last estimates of a fit are."""
    if fit.spec.method == "series":
        return "series"
    scales = [term for term in fit.family.error_terms if term.in_units or term.name == SIGMA.name]
    if not scales and fit.family.likelihood_terms:
        return "binary"
    estimated = any(each.transformed is not None for each in fit.errors.values())
    return "likelihood" if estimated or fit.spec.method == "ml" else "two-step"


def _last_estimates(fit: Fit, ends: Ends) -> tuple[list[float], Floats]:
    """Return the last estimates of a form, and the covariance of all of them."""
    n, size = sum(equation != "errors" for equation, _ in fit.terms), len(fit.terms)
    jacobian = np.zeros((n + len(ends.names), size + 1))
    jacobian[:n, :n] = np.eye(n)
    # Of all terms, and sigma after them.
    whole = np.zeros((size + 1, size + 1))
    whole[:-1, :-1] = fit.covariance
    if ends.errors == "two-step":
        return _of_two_steps(fit, ends, jacobian, whole)
    return _of_error_terms(fit, ends, jacobian, whole)


def _of_two_steps(
    fit: Fit, ends: Ends, jacobian: Floats, whole: Floats
) -> tuple[list[float], Floats]:
    """Return beta_H and log s of each regime, and the covariance of all estimates.

    ``jacobian`` has the rows of the coefficients already, and ``whole`` is the covariance of all
    terms and of sigma, which only some fits know.
    """
    n = len(jacobian) - len(ends.names)
    last = [fit.errors[name].value for name in ends.correction]
    for place, name in enumerate(ends.correction, n):
        jacobian[place, fit.terms.index(("errors", name))] = 1.0
    of_sigma = fit.sigma_covariance if fit.family.can("two steps") else None
    pairs = zip(ends.regimes, ends.mean_deltas, strict=True)
    for place, (suffix, delta) in enumerate(pairs, n + len(last)):
        imr, sigma = fit.errors[f"imr{suffix}"].value, fit.errors[f"sigma{suffix}"].value
        rest = max(sigma**2 - delta * imr**2, np.finfo(float).tiny)
        last.append(0.5 * float(np.log(rest)))
        if of_sigma is not None:
            whole[-1], whole[:, -1] = of_sigma, of_sigma
            jacobian[place, -1] = sigma / rest
            jacobian[place, n] = -delta * imr / rest
    return last, symmetric(np.asarray(jacobian @ whole @ jacobian.T))


def _of_error_terms(
    fit: Fit, ends: Ends, jacobian: Floats, whole: Floats
) -> tuple[list[float], Floats]:
    """Return the error terms on the scales that a form has, and the covariance of all estimates."""
    last: list[float] = []
    unknown = []
    for place, name in enumerate(ends.names, len(jacobian) - len(ends.names)):
        estimate, transform = fit.errors[name], transform_of(name)
        value, slope = estimate.value, 1.0
        if transform is not None:
            value = float(transform.to(estimate.value))
            if name == RHO.name and estimate.transformed is not None:
                value = estimate.transformed[0]
            slope = 1.0 / transform.slope(estimate.value)
        last.append(value)
        if not np.isfinite(estimate.value):
            unknown.append(place)
        elif name not in fit.spec.held:
            jacobian[place, fit.terms.index(("errors", name))] = slope
    # What is infinite is taken as known: its row of the covariance says nothing.
    unused = ~np.any(jacobian, axis=0)
    whole[:, unused] = whole[unused] = 0.0
    covariance = symmetric(np.asarray(jacobian @ whole @ jacobian.T))
    covariance[unknown, unknown] = 1.0
    return last, covariance


def with_equations(fit: Fit, estimates: Floats) -> Fit:
    """Return the fit of an average with other coefficients, given all estimates of its form."""
    form = fit.way.averaging.form
    columns = {"prediction": form.columns, "selection": form.selection, "none": ()}
    for equation, span in zip(fit.family.equations, form.spans, strict=True):
        coef, own = np.zeros(fit.n_features), estimates[list(span)]
        coef[list(columns[equation.columns])] = own[1:]
        level = fit.equations[equation.name].intercept
        # Nothing identifies an intercept that is NaN.
        intercept = level if np.isnan(level) else float(own[0])
        fit = fit.with_equation(equation.name, coef, intercept)
    return fit


def form_of_candidates(fit: Fit, choices: Choices) -> Form:
    """Return the form of the model in which every candidate of a search predicts.

    A search of both equations or by a likelihood has it; another one has its two-step estimates in
    the compressed data, with Heckman's covariance.
    """
    search = fit.search
    if search is not None and search.form is not None:
        return search.form
    if fit.family.can("two steps"):
        return form_of_two_steps(fit, choices.columns)
    form = None if search is None or search.result is None else search.result.goal.form
    if form is None:
        raise NotIdentifiedError("the search did not fit the model of all features.")
    # The index has the selection equation of the fit.
    estimates = form.estimates.copy()
    slopes = fit.selection_coef[list(form.selection)]
    estimates[list(form.selecting)] = [fit.selection_intercept, *slopes]
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
