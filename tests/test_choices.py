"""What a search may decide: counting it, and turning it into masks."""

import itertools

import numpy as np
import pytest

from heckmanfa.choices import Choices


@pytest.mark.parametrize(
    "choices",
    [
        Choices(5, (), ((0,), (1,), (2,), (3,), (4,)), 5),
        Choices(5, (), ((0,), (1,), (2,), (3,), (4,)), 2),
        Choices(7, (6,), ((0, 5), (1,), (2, 3, 4)), 4),
        Choices(7, (0, 6), ((1, 2),), 7),
        Choices(3, (0, 1), (), 2),
        Choices(3, (), ((0, 1, 2),), 2),
    ],
)
def test_assignments_are_counted_as_a_list_of_all_of_them_counts(choices):
    every = np.array(list(itertools.product([False, True], repeat=len(choices.units))), dtype=bool)
    every = every.reshape(2 ** len(choices.units), len(choices.units))
    allowed = every[choices.allowed(every)]
    masks = choices.masks(allowed)
    assert choices.n_assignments == len(allowed) == len({mask.tobytes() for mask in masks})
    assert all(1 <= mask.sum() <= choices.max_features for mask in masks)
    assert masks[:, list(choices.always)].all()
    for unit in choices.units:
        assert (masks[:, list(unit)].sum(axis=1) % len(unit) == 0).all()


def test_leaving_columns_out_keeps_the_rest_of_their_units():
    choices = Choices(6, (5,), ((0, 3), (1,), (2,)), 6)
    assert choices.columns == (0, 1, 2, 3, 5)
    fewer = choices.without_columns([2, 3, 5])
    assert fewer.units == ((0,), (1,))
    assert fewer.always == ()
