"""Which assignments a trained or ranking search evaluates.

`sample` draws them with the trained probabilities (Algorithm 3); `rank` takes the first J features
for every J (Heckman-FA* and Heckman-C).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError, NoFeasibleAssignmentError
from heckmanfa.model.linalg import subset_factor
from heckmanfa.model.moments import Moments
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import Goal, Search, distinct, evaluate
from heckmanfa.search.training.assignment_function import assign

_DRAWS_AT_ONCE = 4096


def sample(
    moments: Moments,
    choices: Choices,
    goal: Goal,
    log_pi: Floats,
    *,
    names: Sequence[str],
    n_draws: int = 1000,
    noise: Floats | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Search:
    """Evaluate the distinct assignments among B = ``n_draws`` draws with the trained probabilities.

    A draw of more than ``max_features`` columns keeps those with the highest scores. ``log_pi``,
    (2, K), is that of `assignment.train`; Gumbel ``noise``, (B, 2, K), replays a run.
    """
    first = [unit[0] for unit in choices.units]
    unit_log_pi = log_pi[:, first]
    generator = np.random.default_rng(random_state)
    if noise is not None and (noise.ndim != 3 or noise.shape[1:] != log_pi.shape):
        raise InputError(f"noise must have the shape (B, 2, {log_pi.shape[1]}); got {noise.shape}")
    total = n_draws if noise is None else len(noise)
    found = np.zeros((0, len(first)), dtype=bool)
    for start in range(0, total, _DRAWS_AT_ONCE):
        size = min(_DRAWS_AT_ONCE, total - start)
        gumbel = (
            generator.gumbel(size=(size, 2, len(first)))
            if noise is None
            else noise[start : start + size, :, first]
        )
        inside = _cut(choices, assign(unit_log_pi, gumbel), unit_log_pi + gumbel)
        inside = inside[choices.allowed(inside)]
        found = distinct(np.concatenate([found, inside]))
    if len(found) == 0:
        raise NoFeasibleAssignmentError(
            f"each of the {total} draws is empty: the training left every feature a probability "
            f"of at most {np.exp(unit_log_pi[1].max(initial=-np.inf)):.2g}. Use fewer epochs or a "
            "smaller learning_rate."
        )
    return evaluate(moments, goal, choices.masks(found), names=names)


def _cut(choices: Choices, inside: Mask, scores: Floats) -> Mask:
    """Keep the likeliest units of draws with more than ``max_features`` columns."""
    size = inside @ choices.sizes + len(choices.always)
    for row in np.flatnonzero(size > choices.max_features):
        lead = scores[row, 1] - scores[row, 0]
        room = choices.max_features - len(choices.always)
        for unit in np.argsort(-lead, kind="stable"):
            if inside[row, unit]:
                room -= choices.sizes[unit]
                inside[row, unit] = room >= 0
    return inside


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
