"""What a search may decide: counting it, and turning it into masks."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest

from heckmanfa import HeckmanBestSubset, HeckmanFA
from heckmanfa.datasets import make_selection
from heckmanfa.errors import InputError
from heckmanfa.search.choices import Choices


@pytest.mark.parametrize(
    "choices",
    [
        Choices(5, (), ((0,), (1,), (2,), (3,), (4,)), 5),
        Choices(5, (), ((0,), (1,), (2,), (3,), (4,)), 2),
        Choices(7, (6,), ((0, 5), (1,), (2, 3, 4)), 4),
        Choices(7, (0, 6), ((1, 2),), 7),
        Choices(3, (0, 1), (), 2),
        Choices(3, (), ((0, 1, 2),), 2),
        Choices(4, (), ((0, 1), (2,), (3,)), 4, min_features=1),
        Choices(4, (3,), ((0, 1), (2,)), 4, min_features=3),
    ],
)
def test_assignments_are_counted_as_a_list_of_all_of_them_counts(choices):
    every = np.array(list(itertools.product([False, True], repeat=len(choices.units))), dtype=bool)
    every = every.reshape(2 ** len(choices.units), len(choices.units))
    allowed = every[choices.allowed(every)]
    masks = choices.masks(allowed)
    assert choices.n_assignments == len(allowed) == len({mask.tobytes() for mask in masks})
    sizes = masks.sum(axis=1)
    assert ((sizes >= choices.min_features) & (sizes <= choices.max_features)).all()
    assert masks[:, list(choices.always)].all()
    for unit in choices.units:
        assert (masks[:, list(unit)].sum(axis=1) % len(unit) == 0).all()


def test_leaving_columns_out_keeps_the_rest_of_their_units():
    choices = Choices(6, (5,), ((0, 3), (1,), (2,)), 6)
    assert choices.columns == (0, 1, 2, 3, 5)
    fewer = choices.without_columns([2, 3, 5])
    assert fewer.units == ((0,), (1,))
    assert fewer.always == ()


@pytest.fixture(scope="module")
def table():
    data = make_selection(400, 6, 3, random_state=0)
    return pd.DataFrame(data.X, columns=list("abcdef")), data.y


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"feature_groups": [["a", "b", "c"]], "max_features": 2},
            "'a', 'b', 'c' predict together or not at all: 3 columns, which could never predict. "
            "Raise max_features to 3 or more",
        ),
        (
            {"feature_groups": [["a", "b"]], "always": ["c", "d"], "max_features": 3},
            "2 columns beside the 2 of always, which could never predict. Raise max_features to 4",
        ),
    ],
)
@pytest.mark.parametrize("kind", [HeckmanBestSubset, HeckmanFA])
def test_a_group_that_max_features_has_no_room_for_is_refused(kind, options, words, table):
    with pytest.raises(InputError, match=re.escape(words)):
        kind(**options).fit(*table)


@pytest.mark.filterwarnings("ignore::heckmanfa.errors.RhoOutsideWarning")
def test_a_term_of_a_formula_that_has_no_room_is_refused_and_may_be_left_out(table):
    X, y = table
    data = X.assign(y=y, kind=np.array(["p", "q", "r", "s"])[np.arange(len(X)) % 4])
    formulas = ("y ~ a + b + C(kind)", "~ a + b + c + C(kind)")
    with pytest.raises(InputError, match="3 columns, which could never predict"):
        HeckmanBestSubset.from_formula(*formulas, data, max_features=2)
    model = HeckmanBestSubset.from_formula(*formulas, data, max_features=2, never=["C(kind)"])
    assert {*model.prediction_features_} <= {"a", "b"}


def test_max_features_may_be_what_always_names(table):
    X, y = table
    model = HeckmanBestSubset(always=["a", "b"], max_features=2, feature_groups=[["c", "d"]])
    assert model.fit(X, y).prediction_features_ == ["a", "b"]
