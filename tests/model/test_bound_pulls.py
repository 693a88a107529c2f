"""How far each row pulls an end of bounds: its derivative by the row's weight, by differences."""

import numpy as np
import pytest

from heckmanfa.model.trimming import trim
from heckmanfa.model.worst_case import SeenRows, effect_ends, mean_ends, projection_ends

N, STEP = 90, 1e-6
SPAN = (-3.0, 5.0)


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(2)
    seen = rng.random(N) < 0.7
    rows = SeenRows(np.where(seen, rng.normal(1, 1, N), 0.0), seen, rng.uniform(0.5, 2.0, N))
    return rows, rng.random(N) < 0.5, rng.integers(0, 3, N), rng.normal(size=(N, 2))


KINDS = {
    "mean": lambda rows, side, cells, x: [mean_ends(rows, None, SPAN)],
    "mean of a group": lambda rows, side, cells, x: [mean_ends(rows, side, SPAN)],
    "higher": lambda rows, side, cells, x: [mean_ends(rows, side, SPAN, "higher")],
    "effect": lambda rows, side, cells, x: [effect_ends(rows, side, SPAN)],
    "projection": lambda rows, side, cells, x: projection_ends(
        rows, np.column_stack([np.ones(N), x]), SPAN
    ),
    "trimming": lambda rows, side, cells, x: [trim(rows, side, 0 * cells, 1, "treated").ends],
    "trimming the untreated": lambda rows, side, cells, x: [
        trim(rows, ~side, 0 * cells, 1, "untreated").ends
    ],
    "trimming in cells": lambda rows, side, cells, x: [trim(rows, side, cells, 3, "treated").ends],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_pull_is_the_derivative_by_the_weight_of_a_row(drawn, kind):
    rows, *rest = drawn
    ends = [end for pair in KINDS[kind](rows, *rest) for end in pair]
    for row in range(0, N, 7):
        values = []
        for sign in (1.0, -1.0):
            weight = rows.weight.copy()
            weight[row] *= 1.0 + sign * STEP
            moved = KINDS[kind](rows.weighing(weight), *rest)
            values.append([end.value for pair in moved for end in pair])
        slopes = (np.array(values[0]) - values[1]) / (2 * STEP)
        np.testing.assert_allclose([end.pull[row] for end in ends], slopes, rtol=1e-5, atol=1e-9)
    for end in ends:
        assert abs(end.pull.sum()) < 1e-12
