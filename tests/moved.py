"""Fits with one estimate moved, for derivatives by differences."""

from __future__ import annotations

import copy
from typing import Any

from heckmanfa.fit import Fit


def moved(fit: Fit, term: tuple[str, str], step: float) -> Fit:
    """Return the fit with the estimate of one of its terms, or of ("errors", "sigma"), moved."""
    equation, name = term
    if equation == "errors":
        return fit.with_errors(**{name: fit.errors[name].value + step})
    estimate = fit.equations[equation]
    coef, intercept = estimate.coef.copy(), estimate.intercept
    if name == "Intercept":
        intercept += step
    else:
        coef[fit.labels.index(name)] += step
    return fit.with_equation(equation, coef, intercept)


def moved_model(model: Any, term: tuple[str, str], step: float) -> Any:
    """Return a copy of a fitted model whose fit is `moved`."""
    other = copy.copy(model)
    other._fit = moved(model.fit_, term, step)
    return other
