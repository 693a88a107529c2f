"""The adaptive lasso: assignments along its path, the inverse Mills ratio partialled out.

The features and the outcome of the selected rows are made orthogonal to the constant and to
lambda; the lasso then weights every feature by its least-squares coefficient. As the penalty
grows, features leave the path and become exclusions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import lars_path_gram

from heckmanfa.errors import InputError
from heckmanfa.model.linalg import collinear_error, dependencies, solve_upper, subset_factor
from heckmanfa.model.moments import Moments
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import Goal, Search, distinct, evaluate
from heckmanfa.text.printable import quoted

_LENGTH = 1e6
_LIGHTEST = 1e-6


def lasso(
    moments: Moments, choices: Choices, goal: Goal, *, names: Sequence[str], power: float = 1.0
) -> Search:
    """Evaluate the assignments on the path of the adaptive lasso.

    Units must be single columns; columns that are always in are also partialled out. The weights
    are the least-squares coefficients to a ``power``. ``names`` label the columns of X.
    """
    group = next((unit for unit in choices.units if len(unit) > 1), None)
    if group is not None:
        raise InputError(
            "the lasso chooses single columns, and cannot keep a group together, such as that of "
            f"{quoted(names[group[0]])}: use another search, such as HeckmanBestSubset, or name "
            "each of these columns in its own group in feature_groups"
        )
    columns = [unit[0] for unit in choices.units]
    if not columns:
        return evaluate(moments, goal, choices.masks(np.zeros((1, 0), dtype=bool)), names=names)
    k = len(moments.columns)
    first = [0, k + 1, *moments.places(choices.always)]
    r = subset_factor(moments.factor, [*first, *moments.places(columns), k + 2])
    # The factor's rows below those of the partialled-out columns hold the residuals.
    rest = r[len(first) :, len(first) :]
    features, outcome = rest[:, :-1], rest[:, -1]
    scale = np.linalg.norm(features, axis=0)
    found = dependencies(r[:-1, :-1])
    if found:
        every = [*choices.always, *columns]
        raise collinear_error(
            found,
            ["constant", "inverse Mills ratio", *(names[column] for column in every)],
            every,
            "the features are collinear among the selected rows",
            "The adaptive lasso then has no least-squares weights; leave some out with "
            "never=[...], or pass on_collinear='drop'",
        )
    # Rescaled: the path ends at a penalty of 1e-7 and treats shorter columns as collinear.
    features = features / scale
    outcome = outcome * (_LENGTH / (np.linalg.norm(outcome) or 1.0))
    ordinary = np.abs(solve_upper(features[: len(columns)], outcome[: len(columns)]))
    weight = (ordinary / (ordinary.max() or 1.0)) ** power
    entering = weight > _LIGHTEST
    weighted = (features * weight)[:, entering]
    _, _, path = lars_path_gram(
        weighted.T @ outcome, weighted.T @ weighted, n_samples=1, method="lasso"
    )
    inside = np.zeros((path.shape[1], len(columns)), dtype=bool)
    inside[:, entering] = path.T != 0.0
    inside = distinct(inside)
    inside = inside[choices.allowed(inside)]
    return evaluate(moments, goal, choices.masks(inside), names=names)
