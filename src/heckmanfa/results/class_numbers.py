"""Effects on the probability of each class of an ordered outcome, averaged over the selected rows.

The slope of the probability of class j or a higher one is the coefficient times the average of
phi(x'b - c_j), so that of a class is a difference of two of these. No rows are needed.
"""

from __future__ import annotations

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.fit import Fit
from heckmanfa.fit.ordered_cut import OrderedOutcome, steps_below
from heckmanfa.plots.class_pictures import ClassEffect, ClassEffects
from heckmanfa.results.distribution import distribution_of
from heckmanfa.results.effects import CONF_LEVEL
from heckmanfa.results.evidence import Evidence
from heckmanfa.results.naming import said_class

_MOST_ROWS = 24
_FEWEST_CLASSES = 3


def class_slopes(fit: Fit, column: int) -> tuple[Floats, Floats]:
    """Return the average slopes of all J classes in a column of X, and their standard errors."""
    details = fit.details
    assert isinstance(details, OrderedOutcome)
    place, coef = 1 + fit.equation.index(column), float(fit.coef[column])
    mean, bent = details.mean_slopes[0], details.mean_slope_gradients[0]
    reaching, gradient = coef * mean, np.zeros((len(mean), len(fit.terms)))
    gradient[:, : bent.shape[1]] = coef * bent
    gradient[:, place] += mean
    for cut in range(1, len(mean)):
        gradient[cut, steps_below(fit, cut)] = -coef * bent[cut, 0]
    # Every row reaches the lowest class, and none one above the highest.
    slopes = -np.diff(reaching, prepend=0.0, append=0.0)
    gradient = -np.diff(gradient, axis=0, prepend=0.0, append=0.0)
    with np.errstate(invalid="ignore"):
        return slopes, np.sqrt(np.diag(gradient @ fit.covariance @ gradient.T))


def class_effects_of(evidence: Evidence) -> ClassEffects | None:
    """Return the effects of the first features on each class; None unless there are three."""
    fit, naming = evidence.whole, evidence.naming
    classes = fit.ordered_classes
    if classes is None or len(classes) < _FEWEST_CLASSES:
        return None
    reach = distribution_of(fit).quantile(CONF_LEVEL)
    factor = evidence.words.factor
    effects: list[ClassEffect] = []
    for feature in evidence.ordered():
        if not feature.in_model or (len(effects) and len(effects) + len(classes) > _MOST_ROWS):
            continue
        step = factor * naming.step_of(feature.lead)
        for label, slope, error in zip(classes, *class_slopes(fit, feature.lead), strict=True):
            ends = step * (slope - reach * error), step * (slope + reach * error)
            named = said_class(naming.outcome, label)
            words = feature.name, naming.step_words(feature.lead), named
            effects.append(ClassEffect(*words, step * float(slope), *map(float, ends)))
    return ClassEffects(naming.outcome, tuple(effects)) if effects else None
