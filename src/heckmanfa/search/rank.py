"""Heckman-FA* and Heckman-C: rank the features, and evaluate the first J for every J."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.model.linalg import subset_factor
from heckmanfa.model.moments import Moments
from heckmanfa.search.candidates import Search, evaluate
from heckmanfa.search.choices import Choices
from heckmanfa.search.criteria import Goal


def rank(
    moments: Moments, choices: Choices, goal: Goal, scores: Floats, *, names: Sequence[str]
) -> Search:
    """Evaluate the top J features by a score, (K,), for J from 1 to one less than all.

    Ties go in column order. A unit of several columns has the score of its first. ``names`` label
    the columns of X.
    """
    n_units = len(choices.units)
    order = np.argsort(-scores[[unit[0] for unit in choices.units]], kind="stable")
    # With all features only normality identifies the model; a single feature is evaluated anyway.
    longest = max(n_units - 1, min(n_units, 1))
    inside = np.zeros((longest + 1, n_units), dtype=bool)
    for length in range(1, longest + 1):
        inside[length:, order[length - 1]] = True
    inside = inside[choices.allowed(inside)]
    return evaluate(moments, goal, choices.masks(inside), names=names)


def correlations(moments: Moments, choices: Choices) -> Floats:
    """Absolute correlation of each feature with the outcome among the selected rows, (K,).

    Columns of a unit share their multiple correlation; features that may not predict have zero.
    """
    strength = np.zeros(moments.n_features)
    for unit in choices.units:
        r = subset_factor(moments.factor, [0, *moments.places(unit), len(moments.columns) + 2])
        explained = float(np.sum(r[1:-1, -1] ** 2))
        strength[list(unit)] = np.sqrt(explained / moments.total_squares)
    return strength
