"""Columns of text and categories become the same dummies, whatever library holds them."""

import datetime

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from heckmanfa.data.columns.feature_reading import read_features
from heckmanfa.errors import InputError, UnknownFeatureError

LEVELS = ["mid", "high", "low", "mid", None, "low", "mid", "high"] * 6
TEXT = pd.Series(LEVELS, name="c", dtype=object)


def _frame(column):
    return pd.DataFrame({"a": np.arange(len(LEVELS)) % 5 / 2, "c": column})


def _dictionary(ordered, levels=("low", "mid", "high", "never")):
    codes = pa.array([None if one is None else levels.index(one) for one in LEVELS], pa.int8())
    return pa.DictionaryArray.from_arrays(codes, pa.array(levels), ordered=ordered)


def _arrow(column):
    return pa.table({"a": _frame(TEXT)["a"].to_numpy(), "c": column})


PLAIN = {
    "objects": lambda: _frame(TEXT),
    "string": lambda: _frame(TEXT.astype("string")),
    "str": lambda: _frame(TEXT.astype("str")),
    "arrow-backed text": lambda: _frame(TEXT.astype("string[pyarrow]")),
    "arrow-backed view": lambda: _frame(
        pd.Series(pa.array(LEVELS, pa.string_view()), dtype=pd.ArrowDtype(pa.string_view()))
    ),
    "arrow-backed dictionary": lambda: _frame(
        pd.Series(_dictionary(False), dtype=pd.ArrowDtype(_dictionary(False).type))
    ),
    "pandas category": lambda: _frame(TEXT.astype("category")),
    "polars text": lambda: pl.from_pandas(_frame(TEXT)),
    "polars categorical": lambda: pl.from_pandas(_frame(TEXT)).with_columns(
        pl.col("c").cast(pl.Categorical)
    ),
    "arrow text": lambda: _arrow(pa.array(LEVELS)),
    "arrow large text": lambda: _arrow(pa.array(LEVELS, pa.large_string())),
    "arrow view": lambda: _arrow(pa.array(LEVELS, pa.string_view())),
    "arrow chunks": lambda: _arrow(pa.chunked_array([LEVELS[:5], LEVELS[5:]])),
    "arrow dictionary": lambda: _arrow(_dictionary(False)),
    "arrow dictionaries": lambda: _arrow(
        pa.chunked_array(
            [pa.array(LEVELS[:3]).dictionary_encode(), pa.array(LEVELS[3:]).dictionary_encode()]
        )
    ),
}
DECLARED = {
    "pandas category": lambda: _frame(pd.Categorical(LEVELS, ["low", "mid", "never", "high"])),
    "polars enum": lambda: pl.from_pandas(_frame(TEXT)).with_columns(
        pl.col("c").cast(pl.Enum(["low", "mid", "never", "high"]))
    ),
    "ordered dictionary": lambda: _arrow(_dictionary(True)),
    "ordered dictionary in pandas": lambda: _frame(
        pd.Series(_dictionary(True), dtype=pd.ArrowDtype(_dictionary(True).type))
    ),
}


def _read(X, categorical="from_dtype", **options):
    table = read_features(X, "Heckman", categorical=categorical, **options)
    columns = range(table.shape[1])
    return table, table.source(columns).take(0, table.shape[0], columns)


def _expected(order):
    """pandas' dummies, the first level left out, missing where the level is."""
    made = pd.get_dummies(pd.Categorical(LEVELS, order), drop_first=True).astype(float)
    made[TEXT.isna().to_numpy()] = np.nan
    return np.column_stack([_frame(TEXT)["a"], made])


@pytest.mark.parametrize("kind", PLAIN)
def test_the_levels_of_text_are_in_alphabetical_order_in_every_library(kind):
    table, values = _read(PLAIN[kind]())
    assert table.names == ("a", "c[low]", "c[mid]")
    np.testing.assert_array_equal(values, _expected(["high", "low", "mid"]))
    assert table.columns.names == ("a", "c")
    assert table.columns.positions == [(0,), (1, 2)]


@pytest.mark.parametrize("kind", DECLARED)
def test_declared_levels_keep_their_order_and_those_without_rows_have_no_dummy(kind):
    table, values = _read(DECLARED[kind]())
    assert table.names == ("a", "c[mid]", "c[high]")
    np.testing.assert_array_equal(values, _expected(["low", "mid", "high"]))


def test_rows_in_another_order_have_the_same_levels():
    frame = _frame(TEXT)
    table, _ = _read(frame.iloc[::-1])
    assert table.names == _read(frame)[0].names


@pytest.mark.parametrize(
    ("column", "names"),
    [
        (pd.Categorical([3, 10, 3, 7] * 12), ("c[7]", "c[10]")),
        (["3", "10", "3", "7"] * 12, ("c[7]", "c[10]")),
        (pd.cut(pd.Series(range(48)), 3, labels=["s", "m", "l"]), ("c[m]", "c[l]")),
        ([True, False] * 24, ("c",)),
        (pd.array([1, 2, 3, 4] * 12, dtype="Int64"), ("c",)),
        (pd.array([True, False] * 24, dtype="boolean"), ("c",)),
        (pd.array([1, 2, 3, 4] * 12, dtype="int64[pyarrow]"), ("c",)),
        (pd.arrays.SparseArray([0.0, 0.0, 1.0, 2.0] * 12), ("c",)),
    ],
)
def test_types_decide_what_is_a_category(column, names):
    table, values = _read(_frame(column))
    assert table.names == ("a", *names)
    assert values.dtype == np.float64
    assert not np.isnan(values).any()


def test_the_user_decides_with_names_positions_or_a_mask():
    frame = _frame(TEXT.fillna("low"))
    for asked in (["c"], [1], [False, True]):
        assert _read(frame, asked)[0].names == ("a", "c[low]", "c[mid]")
    both = _read(frame, ["a", "c"])[0]
    assert both.names[:4] == ("a[0.5]", "a[1]", "a[1.5]", "a[2]")
    for asked in (None, ["a"]):
        with pytest.raises(InputError, match="column 'c' does not hold numbers"):
            _read(frame, asked)
    with pytest.raises(UnknownFeatureError, match="categorical_features: X has no column 'd'"):
        _read(frame, ["d"])


def test_columns_of_arrays_are_categories_by_position():
    codes = np.array([2.0, 1.0, 10.0, 2.0])
    table, values = _read(np.column_stack([np.arange(4.0), codes]), [1])
    assert table.names == ("x0", "x1[2]", "x1[10]")
    assert table.columns.names is None
    np.testing.assert_array_equal(values[:, 1:], [[1, 0], [0, 0], [0, 1], [1, 0]])
    text, same = _read(np.array([[0, "b"], [1, "a"], [2, "c"], [3, "b"]], dtype=object), [1])
    assert text.names == ("x0", "x1[b]", "x1[c]")
    np.testing.assert_array_equal(same, values)
    plain, _ = _read(np.column_stack([np.arange(4.0), codes]))
    assert plain.names is None
    assert plain.shape == (4, 2)


def test_text_that_labels_rows_is_refused_unless_it_is_named_or_not_read():
    names = [f"person {index}" for index in range(48)]
    with pytest.raises(InputError, match=r"as an identifier does; .*categorical_features"):
        _read(_frame(names))
    assert _read(_frame(names), ["c"])[0].shape == (48, 48)
    table = read_features(_frame(names), "Heckman", categorical="from_dtype", lists=(["a"], ["a"]))
    assert table.names == ("a", "c")
    many = [f"{index % 60:02}" for index in range(600)]
    with pytest.raises(InputError, match="60 different values in 600 rows, too many"):
        _read(pd.DataFrame({"c": many}))
    # A type that declares categories is the user's word.
    assert _read(pd.DataFrame({"c": pd.Categorical(many)}))[0].shape == (600, 59)


@pytest.mark.parametrize(
    "column",
    [
        pd.date_range("2020-01-01", periods=48),
        [datetime.date(2020, 1, 1 + day % 28) for day in range(48)],
        [f"2020-01-{1 + day % 28:02}" for day in range(48)],
    ],
)
def test_dates_are_refused_with_what_to_do(column):
    with pytest.raises(InputError, match=r"\.dt\.year|make numbers of them, such as years"):
        _read(_frame(column))


def test_a_category_with_one_level_is_a_constant_column():
    table, values = _read(_frame(["only"] * 48))
    assert table.names == ("a", "c[only]")
    assert (values[:, 1] == 1).all()
    empty, values = _read(_frame(pd.Categorical([None] * 48)))
    assert empty.names == ("a", "c")
    assert np.isnan(values[:, 1]).all()


def test_dummies_with_the_name_of_another_column_are_refused():
    frame = _frame(TEXT).rename(columns={"a": "c[low]"})
    with pytest.raises(InputError, match=r"two features would be called 'c\[low\]'"):
        _read(frame)


def test_later_tables_are_read_with_the_levels_of_the_fit():
    frame = _frame(TEXT)
    columns = _read(frame)[0].columns
    other = pl.DataFrame({"a": [1.0, 2.0, 3.0], "c": ["mid", "new", "high"]})
    with pytest.raises(InputError, match=r"'new' \(1 row, the first is row 2.*known are 'high'"):
        read_features(other, columns).source(range(3))
    table = read_features(other, columns, unknown="missing")
    values = table.source(range(3)).take(0, 3, range(3))
    np.testing.assert_array_equal(values, [[1, 0, 1], [2, np.nan, np.nan], [3, 0, 0]])
    # Only the columns that are asked for are encoded.
    assert read_features(other, columns).source([0]).take(0, 3, [0])[:, 0].tolist() == [1, 2, 3]
    encoded = columns.encoding.transform(frame)
    made = read_features(encoded, columns)
    assert made.names == table.names
    assert isinstance(made.native, nw.DataFrame)
    with pytest.raises(InputError, match="feature names"):
        read_features(frame[["c", "a"]], columns)
