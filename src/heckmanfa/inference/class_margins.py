"""Marginal effects on the probabilities of ordered classes, and these probabilities themselves.

The probability of more than class j is that of a Heckman probit whose intercept is less by a cut
point. The probability of a class is a difference of two of these, and so are its effects. Their
gradients are in both equations, rho, and the steps between cut points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.fit import Fit
from heckmanfa.fit.ordered_cut import cuts_by
from heckmanfa.inference.average_effects import group_fits, in_terms_of, is_averaged, mixture_of
from heckmanfa.inference.expectations import Estimates
from heckmanfa.model.expectation_parts import probability_parts

OverCells = Callable[[Estimates, Sequence[str]], tuple[Floats, Floats]]
"""effects on some targets and their gradients, ordered by target"""


def quantities_of(fit: Fit, kinds: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return what effects are on: targets or, of ordered classes, targets and classes."""
    classes = fit.ordered_classes
    if classes is None:
        return [(kind,) for kind in kinds]
    return [
        (kind, label) for kind in kinds for label in ((None,) if kind == "selection" else classes)
    ]


def class_effects(
    fit: Fit,
    estimates: Estimates,
    targets: Sequence[str],
    over: OverCells,
    *,
    whole: float,
    conf_level: float,
) -> tuple[Floats, Floats, Floats | None, Floats]:
    """Return effects, standard errors, limits (None unless averaged) and their covariance.

    They are ordered by target, then by class. ``whole`` is what all classes add up to: 1 of
    probabilities, and 0 of effects on them.
    """
    names = [term for term in fit.spec.error_terms if term.startswith("step")]
    steps = [fit.terms.index(("errors", name)) for name in names]

    def at(own: Fit, taken: Estimates) -> tuple[Floats, Floats, Floats]:
        values, gradient = _values_at(own, taken, names, targets, over, whole)
        return values, gradient, gradient @ _with_steps(own, taken, names) @ gradient.T

    if not is_averaged(fit, estimates):
        values, _, covariance = at(fit, estimates)
        with np.errstate(invalid="ignore"):
            return values, np.sqrt(np.diag(covariance)), None, covariance
    groups, parts = group_fits(fit), []
    for group in groups:
        taken = estimates.again(group.fit)
        values, gradient, within = at(group.fit, taken)
        size = len(taken.covariance)
        in_terms = in_terms_of(group.fit, taken, gradient[:, :size])
        in_terms[:, steps] += gradient[:, size:]
        parts.append((values, in_terms, within))
    return mixture_of(fit, groups, parts, conf_level)


def _values_at(
    fit: Fit,
    estimates: Estimates,
    names: Sequence[str],
    targets: Sequence[str],
    over: OverCells,
    whole: float,
) -> tuple[Floats, Floats]:
    """Return effects by one set of estimates, and their gradients in these and in the steps."""
    effects: list[Floats] = []
    gradients: list[Floats] = []

    def with_steps(gradient: Floats, cut: int) -> Floats:
        """Append derivatives in the steps; those up to a cut point lower the index."""
        before = np.arange(len(names)) < cut
        return np.column_stack([gradient, -gradient[:, :1] * before])

    for target in targets:
        if target == "selection":
            values, gradient = over(estimates, [target])
            effects.append(values)
            gradients.append(with_steps(gradient, 0))
            continue
        above = []
        for cut, value in enumerate(cuts_by(fit.error_values)):
            values, gradient = over(_at_cut(estimates, float(value)), [target])
            above.append((values, with_steps(gradient, cut)))
        if target == "expected":
            values, gradient = over(estimates, ["selection"])
            first = values, with_steps(gradient, 0)
        else:
            first = np.full_like(above[0][0], whole), np.zeros_like(above[0][1])
        last = np.zeros_like(above[0][0]), np.zeros_like(above[0][1])
        edges = [first, *above, last]
        for (more, by_more), (less, by_less) in pairwise(edges):
            effects.append(more - less)
            gradients.append(by_more - by_less)
    return np.concatenate(effects), np.concatenate(gradients)


def _at_cut(estimates: Estimates, cut: float) -> Estimates:
    """Return the Heckman probit of more than the classes below a cut point."""
    coef = estimates.coef.copy()
    coef[0] -= cut
    return replace(estimates, coef=coef, form=probability_parts)


def _with_steps(fit: Fit, estimates: Estimates, names: Sequence[str]) -> Floats:
    """Return the covariance of ``estimates`` with the steps between cut points below it."""
    size, k = len(estimates.covariance), len(estimates.columns)
    whole = np.zeros((size + len(names), size + len(names)))
    whole[:size, :size] = estimates.covariance
    if not estimates.prediction:
        return whole
    equations = {"prediction": (0, fit.equation)}
    if estimates.selection and fit.probit is not None:
        equations["selection"] = (1 + k, list(fit.probit.features))
    places: list[int] = []
    rows: list[int] = []
    for name, (offset, columns) in equations.items():
        first = fit.terms.index((name, "Intercept"))
        rows += range(first, first + 1 + len(columns))
        places += [offset, *(offset + estimates.places[column] for column in columns)]
    if estimates.selection:
        rows += [fit.terms.index(("errors", name)) for name in fit.dependence_terms]
        places.append(size - 1)
    steps = [fit.terms.index(("errors", name)) for name in names]
    own = list(range(size, size + len(names)))
    whole[np.ix_(own, own)] = fit.covariance[np.ix_(steps, steps)]
    whole[np.ix_(own, places)] = fit.covariance[np.ix_(steps, rows)]
    whole[np.ix_(places, own)] = fit.covariance[np.ix_(rows, steps)]
    return whole
