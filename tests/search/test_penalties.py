"""The least penalty that can be reached from a model, against every way to drop units from it."""

import itertools

import numpy as np
import pytest

from heckmanfa.search import Goal
from heckmanfa.search.best_subset.record import Penalties
from heckmanfa.search.choices import Choices


def goal_of(criterion, m, choices):
    return Goal(criterion, None, m, 1.0, choices.units)


def penalty(goal, choices, size, units):
    if not choices.min_features <= size <= choices.max_features:
        return np.inf
    return float(goal.penalty(size) + goal.unit_penalty(units))


@pytest.mark.parametrize("criterion", ["adjusted_r2", "bic", "aic", "ebic"])
@pytest.mark.parametrize("limits", [(0, 30), (0, 28), (0, 7), (1, 30), (3, 20)])
@pytest.mark.parametrize("m", [33.0, 500.0])
def test_the_least_after_single_columns_are_dropped(criterion, limits, m):
    fewest, most = limits
    choices = Choices(32, (30, 31), tuple((column,) for column in range(30)), most, fewest)
    goal = goal_of(criterion, m, choices)
    penalties = Penalties(choices, goal)
    at_the_top = 0
    for units in range(max(fewest - 2, 0), 31):
        dropped = np.arange(units + 1)
        found = penalties.least(np.array(units + 2), np.array(units), dropped)
        each = [penalty(goal, choices, units + 2 - gone, units - gone) for gone in dropped]
        np.testing.assert_allclose(found, np.minimum.accumulate(each), rtol=1e-12)
        at_the_top += int(units > 1 and each[0] < each[1])
    # With few rows, EBIC favours all features over nearly all: both ends matter.
    assert (at_the_top > 0) == (criterion == "ebic" and m == 33.0 and most == 30)


@pytest.mark.parametrize("spare", [3, 300])
@pytest.mark.parametrize(
    ("sizes", "singles", "most"), [((2, 3, 2), 5, 12), ((2, 3, 2), 5, 5), ((2,) * 12, 1, 25)]
)
def test_the_least_after_groups_are_dropped(sizes, singles, most, spare):
    ends = np.cumsum([0, *sizes, *[1] * singles])
    units = tuple(tuple(range(*ends[i : i + 2])) for i in range(len(ends) - 1))
    choices = Choices(int(ends[-1]), (), units, most)
    for criterion in ("bic", "ebic"):
        goal = goal_of(criterion, ends[-1] + spare, choices)
        penalties = Penalties(choices, goal)
        for index in range(max(len(sizes) - 5, 0), len(sizes)):
            undecided = [*sizes[index:], *[1] * singles]
            reached = [
                penalty(goal, choices, ends[-1] - sum(gone), len(units) - len(gone))
                for many in range(1, len(undecided) + 1)
                for gone in itertools.combinations(undecided, many)
            ]
            size, n_units = np.array([ends[-1]]), np.array([len(units)])
            found = penalties.least_of_units(size, n_units, undecided)
            assert found[0] == pytest.approx(min(reached), rel=1e-12)
