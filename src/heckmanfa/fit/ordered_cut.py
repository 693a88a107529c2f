"""An ordered outcome seen at one of its cut points: whether a row reaches a class.

The probability of a class or a higher one is that of a Heckman probit whose intercept is less by a
cut point. So answers about an ordered outcome, which need one effect for each feature, are those of
such a fit: effects are on the probability of reaching a class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.ordered_classes import MOST_CLASSES
from heckmanfa.fit.binary import BINARY, BinaryOutcome
from heckmanfa.fit.family import Details, register
from heckmanfa.fit.fitted import Fit
from heckmanfa.model.error_terms import RHO
from heckmanfa.model.ordered_likelihood import cuts_of, step_terms
from heckmanfa.model.ordered_slopes import cut_index
from heckmanfa.search.form import Form


@dataclass(frozen=True, eq=False)
class OrderedOutcome(Details):
    """An ordered outcome among the selected rows, and the models that ignore selection.

    C is the number of cut points, J that of prediction features.
    """

    independent_log_likelihood: float
    """of both equations apart, which is the model with rho = 0"""
    naive_coef: Floats
    """(1 + J,) ordered probit of the selected rows, intercept first"""
    naive_steps: Floats
    """(C - 1,) its steps between cut points, the first of them first"""
    naive_covariance: Floats
    """(J + C, J + C) of these coefficients, then of the steps"""
    mean_slopes: Floats
    """(2, C) average of phi(x'b - c) over the selected rows, and that of the ordered probit"""
    mean_slope_gradients: Floats
    """(2, C, 1 + J) their derivatives in the coefficients; those in c are minus the first"""
    class_counts: tuple[float, ...] | None = None
    """selected rows of each class, the lowest first"""

    @property
    def naive_errors(self) -> Mapping[str, float]:
        """Steps between cut points of the ordered probit."""
        terms = step_terms(len(self.naive_steps) + 2)
        return {term.name: float(step) for term, step in zip(terms, self.naive_steps, strict=True)}


@dataclass(frozen=True, eq=False)
class ReachedClass(BinaryOutcome):
    """Whether rows reach a class of an ordered outcome."""

    place: int = 1
    """of that class"""
    or_higher: bool = False
    """whether there are higher ones"""


def cuts_by(errors: Mapping[str, float]) -> Floats:
    """Return cut points, the first of them zero, given the estimates of the errors by name."""
    steps = [errors[term.name] for term in step_terms(MOST_CLASSES) if term.name in errors]
    return cuts_of(np.array(steps))


def steps_below(fit: Fit, cut: int) -> list[int]:
    """Return the rows of the covariance that belong to the steps up to a cut point."""
    names = [("errors", term.name) for term in step_terms(cut + 2)]
    return [fit.terms.index(name) for name in names]


def at_class(fit: Fit, place: int | None = None) -> Fit:
    """Return the Heckman probit of reaching a class; unless one is named, the highest.

    ``place`` is that of the class, the lowest being 0, which every row reaches.
    """
    details, classes = fit.details, fit.ordered_classes
    assert isinstance(details, OrderedOutcome)
    assert classes is not None
    counts = details.class_counts
    assert counts is not None
    place = len(classes) - 1 if place is None else place
    cut = place - 1
    own = [row for row, (_, name) in enumerate(fit.terms) if not name.startswith("step")]
    jacobian = np.eye(len(fit.terms))[own]
    jacobian[0, steps_below(fit, cut)] = -1.0
    k = len(details.naive_coef)
    naive = np.eye(len(details.naive_covariance))[:k]
    naive[0, k : k + cut] = -1.0
    above, below = sum(counts[place:]), sum(counts[:place])
    reached = ReachedClass(
        n_positive=above,
        n_negative=below,
        independent_log_likelihood=details.independent_log_likelihood,
        naive_coef=cut_index(details.naive_coef, details.naive_steps, cut),
        naive_covariance=naive @ details.naive_covariance @ naive.T,
        mean_slope=float(details.mean_slopes[0, cut]),
        mean_slope_gradient=details.mean_slope_gradients[0, cut],
        naive_mean_slope=float(details.mean_slopes[1, cut]),
        naive_mean_slope_gradient=details.mean_slope_gradients[1, cut],
        place=place,
        or_higher=place < len(classes) - 1,
    )
    equation = fit.equations["prediction"]
    intercept = equation.intercept - float(cuts_by(fit.error_values)[cut])
    average, search = fit.average, fit.search
    if average is not None:
        average = replace(average, form=_form_at(average.form, cut))
    if search is not None and search.result is not None and search.result.goal.form is not None:
        goal = replace(search.result.goal, form=_form_at(search.result.goal.form, cut))
        search = replace(search, result=replace(search.result, goal=goal))
    return replace(
        fit,
        average=average,
        search=search,
        spec=replace(fit.spec, outcome_kind=REACHED.name, number=None, class_order=()),
        equations=fit.equations | {"prediction": replace(equation, intercept=intercept)},
        errors={name: fit.errors[name] for name in ("rho",)},
        terms=tuple(fit.terms[row] for row in own),
        covariance=jacobian @ fit.covariance @ jacobian.T,
        details=reached,
        origin=replace(fit.origin, classes=(classes[place - 1], classes[place])),
    )


def _form_at(form: Form, cut: int) -> Form:
    """Return the form of reaching a class: its intercept is less by the cut point, to first order.

    Steps between cut points are estimated as logarithms, and the first cut point is zero.
    """
    n = form.correction + form.n_corrections
    steps = np.exp(form.estimates[n : n + cut])
    jacobian = np.eye(len(form.estimates))[:n]
    jacobian[0, n : n + cut] = -steps
    estimates = form.estimates[:n].copy()
    estimates[0] -= steps.sum()
    covariance = jacobian @ form.covariance @ jacobian.T
    return replace(form, estimates=estimates, covariance=covariance, shown=())


def naive_at_class(fit: Fit) -> tuple[Floats, float]:
    """Return the coefficients of the ordered probit, and both equations' log-likelihood apart."""
    assert isinstance(fit.details, ReachedClass)
    return fit.details.naive_coef, fit.details.independent_log_likelihood


REACHED = register(
    replace(
        BINARY,
        name="reached class",
        words=replace(
            BINARY.words,
            model="Heckman ordered probit",
            title="Ordered probit with sample selection",
            short="Heckman ordered probit",
            all_features_model="Heckman ordered probit",
            naive="an ordered probit of the rows with an outcome alone",
            naive_short="naive ordered probit",
            naive_of="an ordered probit of",
            plain="an ordered probit",
            plain_short="ordered probit",
            by_naive="By an ordered probit",
            searches="HeckmanOrderedBestSubset",
            weighing="HeckmanOrderedAverage or HeckmanOrderedBestSubset",
            averages="HeckmanOrderedAverage",
            sources=(
                "G. De Luca and V. Perotti (2011). Estimation of ordered response models with "
                "sample selection. Stata Journal 11(2), 213\u2013239.",
            ),
            estimation="Maximum likelihood of the Heckman ordered probit: a probit for who is "
            "selected and an ordered probit of the outcome together, whose errors are correlated "
            "by rho.",
            only_normality=BINARY.words.only_normality.replace("a binary", "an ordered"),
            lacking={
                "residuals": "no residuals that could be normal: compare predict_proba with the "
                "shares of the classes",
                "lambda": "no coefficient of lambda: use profile_rho, which shows what the data "
                "say of rho",
                "two steps": "no two-step estimates: use method='ml'",
                "specification tests": "no specification tests: compare predict_proba with the "
                "shares of the classes, and the estimates with those of fewer classes",
            },
        ),
        error_terms=(RHO,),
        supports=frozenset(),
        begin=None,
        refit=None,
        naive=naive_at_class,
    )
)
