"""An outcome of two classes is read from anything, and every other outcome is explained."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from heckmanfa.data.outcome_classes import encode_classes, read_classes
from heckmanfa.errors import ConstantOutcomeError, InputError, InputTypeError, NoOutcomeError

TEXTS = ["yes", "no", None, "yes"]


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.array([1, 0, np.nan, 1]), (0.0, 1.0)),
        ([True, False, None, True], (False, True)),
        (TEXTS, ("no", "yes")),
        (np.array(["yes", "no", pd.NA, "yes"], dtype=object), ("no", "yes")),
        (np.array([2, -1, None, 2], dtype=object), (-1, 2)),
        (pd.Series(TEXTS, dtype="category"), ("no", "yes")),
        (pd.Series(TEXTS, dtype="string"), ("no", "yes")),
        (pd.array([1, 0, None, 1], dtype="Int64"), (0, 1)),
        (pd.Categorical([1, 0, None, 1], categories=[0, 1, 2]), (0, 1)),
        (pd.Categorical([2, 5, None, 2], categories=[5, 3, 2], ordered=True), (5, 2)),
        (pd.DataFrame({"y": pd.Categorical([2, 5, None, 2], [5, 2], ordered=True)}), (5, 2)),
        (pl.Series(["a", "b", None, "a"], dtype=pl.Enum(["b", "a"])), ("b", "a")),
        (pd.Series(pd.Categorical(TEXTS, ["yes", "no"])), ("no", "yes")),
        (np.array([np.True_, np.False_, None, np.True_], dtype=object), (False, True)),
        (pd.Series([np.int64(4), np.int64(3), None, np.int64(4)], dtype=object), (3, 4)),
        (pd.Series([True, False, None, True], dtype="boolean"), (False, True)),
        (pd.DataFrame({"y": TEXTS}), ("no", "yes")),
        (pl.Series(TEXTS), ("no", "yes")),
        (pl.Series(TEXTS, dtype=pl.Categorical), ("no", "yes")),
        (pl.Series([8, 3, None, 8]), (3, 8)),
        (pa.chunked_array([["yes", "no"], [None, "yes"]]), ("no", "yes")),
        (pa.array([True, False, None, True]), (False, True)),
        (pa.array([1, 0, None, 1]), (0, 1)),
        (pa.array(TEXTS).dictionary_encode(), ("no", "yes")),
        (pa.chunked_array([TEXTS[:1], TEXTS[1:]]).dictionary_encode(), ("no", "yes")),
        (
            pa.DictionaryArray.from_arrays([1, 0, None, 1], ["yes", "no"], ordered=True),
            ("yes", "no"),
        ),
        (np.ma.array([1, 0, 7, 1], mask=[False, False, True, False]), (0.0, 1.0)),
    ],
)
def test_any_two_labels_become_0_and_1_and_nan_where_missing(y, classes):
    codes, found = read_classes(y, 4)
    np.testing.assert_array_equal(codes, [1, 0, np.nan, 1])
    assert found == classes
    assert [type(label) for label in found] == [type(label) for label in classes]
    np.testing.assert_array_equal(encode_classes(y, 4, classes), codes)
    np.testing.assert_array_equal(encode_classes(y, 4, found[::-1]), [0, 1, np.nan, 0])


def test_labels_of_rows_that_are_not_selected_are_ignored():
    y, selected = ["a", "b", "unknown", "a"], np.array([True, True, False, True])
    codes, classes = read_classes(y, 4, selected)
    np.testing.assert_array_equal(codes, [0, 1, np.nan, 0])
    assert classes == ("a", "b")
    np.testing.assert_array_equal(encode_classes(y, 4, classes, selected), codes)
    with pytest.raises(InputError, match="'unknown' in y is not a class of this model"):
        encode_classes(y, 4, classes)


@pytest.mark.parametrize(
    ("y", "error", "words"),
    [
        (["yes"] * 5 + ["no"] * 4 + ["yse"], InputError, "'yse' .1 row.*typo of 'yes'"),
        (["yes"] * 5 + ["no"] * 4 + ["Yes"], InputError, "'Yes' another spelling of 'yes'"),
        (np.array(["a", "a", "b", "b", "nan"]), InputError, "Is 'nan' a missing value"),
        (np.array(["nan", "nan", "a", "b"]), InputError, "Is 'nan' a missing value"),
        (np.array(["a", "a", "nan"]), InputError, "'nan' in 1 selected row, .* missing value"),
        ([0, 1, 2, 1], InputError, "3 classes .* 1 .2 rows., 0 .1 row. and 2 .1 row"),
        (list("abcdefab"), InputError, "2 more and 'f' .1 row."),
        (list("abcdabcaba"), InputError, "'b' .3 rows., 'c' .2 rows. and 'd' .1 row., the rarest"),
        (list("abcdeabcdabcab"), InputError, "'c' .3 rows., 1 more and 'e' .1 row., the rarest"),
        (np.linspace(0, 1, 9), InputError, "9 numbers from 0 to 1, .* probabilities"),
        (np.linspace(0, 3, 9), InputError, "Unknown label type: y holds 9 .* use Heckman"),
        (np.arange(30), InputError, "30 different numbers"),
        ([1, 1, 1], ConstantOutcomeError, "one class, 1, in all 3 selected rows"),
        ([np.nan, np.nan], NoOutcomeError, "no row has an observed outcome"),
        ([0, "1"], InputTypeError, "are text and a number"),
        ([0, 1, np.inf], InputError, "Input y contains infinity"),
        ([b"a", b"b"], InputTypeError, "labels of type bytes"),
        (pd.to_datetime(["2020", "2021"]), InputTypeError, "pass numbers, booleans or texts"),
        ([1 + 0j, 2], InputError, "Complex data not supported"),
        ([[1], [2, 3]], InputError, "^y: "),
        (["a\x1b[2J", "b", "c"], InputError, r"'a\\x1b\[2J'"),
        (None, InputError, "requires y to be passed"),
    ],
)
def test_other_outcomes_are_refused_with_what_to_do(y, error, words):
    with pytest.raises(error, match=words):
        read_classes(y, 0 if y is None else len(y))


def test_a_class_that_is_never_selected_is_named():
    with pytest.raises(ConstantOutcomeError, match="1 occurs only in rows that are not selected"):
        read_classes([0, 0, 1], 3, np.array([True, True, False]))
