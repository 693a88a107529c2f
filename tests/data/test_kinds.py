"""What columns are taken for, and how what is neither one nor the other is told."""

import datetime
import decimal
import re

import numpy as np
import pandas as pd
import pytest

from heckmanfa.data.columns.dates import are_dates
from heckmanfa.data.columns.kinds import learn_columns
from heckmanfa.data.columns.values import to_numbers
from heckmanfa.datasets import load_mroz
from heckmanfa.errors import InputError, UnknownFeatureError

N = 200


def decide_kinds(frame, **options):
    return {learned.kind.name: learned.kind for learned in learn_columns(frame, **options)}


def kinds(**columns):
    return {
        name: one.kind for name, one in decide_kinds(pd.DataFrame(columns), untyped=True).items()
    }


def kind(values, name="x", untyped=True):
    """What a column of cells is, as CSV and Excel files have them."""
    return decide_kinds(pd.DataFrame({name: values}), untyped=untyped)[name]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_realistic_table(rng):
    found = kinds(
        person_id=np.arange(N) + 10_000,
        age=rng.integers(18, 65, N),
        wage=rng.normal(size=N),
        region=rng.choice(["north", "south", None], N),
        union=rng.random(N) < 0.3,
        hired=pd.date_range("2020-01-01", periods=N),
        remark=[f"remark {i % 120}" for i in range(N)],
        country="NO",
        empty=[None] * N,
    )
    assert found == {
        "person_id": "identifier",
        "age": "number",
        "wage": "number",
        "region": "category",
        "union": "number",
        "hired": "text",
        "remark": "text",
        "country": "constant",
        "empty": "constant",
    }


def test_every_column_of_a_real_table_is_a_number():
    assert {one.kind for one in decide_kinds(load_mroz()).values()} == {"number"}


def test_numbers_that_come_as_something_else(rng):
    found = decide_kinds(
        pd.DataFrame(
            {
                "spelt": [f" {one} " for one in rng.normal(size=N)],
                "marks": (["1.5", "2", "?", "N/A", "none"] * N)[:N],
                "minus": (["\N{MINUS SIGN}1", "2e3"] * N)[:N],
                "decimals": [decimal.Decimal(i) / 7 for i in range(N)],
                "nullable": pd.array(([1, None, 3] * N)[:N], dtype="Int64"),
                "truths": pd.array(([True, False, None] * N)[:N], dtype="boolean"),
                "objects": np.array(([True, False, None] * N)[:N], dtype=object),
                "words": (["TRUE", "false", ""] * N)[:N],
            }
        ),
        untyped=True,
    )
    assert {one.kind for one in found.values()} == {"number"}
    assert found["spelt"].reason == "spells numbers"
    for name in ("truths", "objects", "words"):
        assert found[name].reason == "is true or false, read as 1 or 0"


def test_a_few_words_among_numbers_are_named_with_their_rows():
    ages = [str(20 + i % 40) for i in range(500)]
    ages[16], ages[202], ages[300] = "n/a?", "abc", "NA"
    words = r"'age': 2 of 499 .* row 17 'n/a\?', row 203 'abc' .*NaN, or name 'age' in categorical"
    with pytest.raises(InputError, match=words):
        kind(ages, "age")


def test_many_words_are_not_all_shown_and_long_ones_not_whole():
    values = [str(i) for i in range(1000)]
    values[::50] = ["a\n" + "b" * 100] * 20
    with pytest.raises(InputError) as caught:
        kind(values, "net wage")
    said = str(caught.value)
    assert "20 of 1000 values are not numbers: row 1 'a bbb" in said
    assert "…bbbbbbbbbbbbbb' (102 characters), row 51 " in said
    assert "row 151" not in said
    assert ", … (rows" in said
    assert said.endswith("or name 'net wage' in categorical")
    assert "\n" not in said
    values[1:] = [str(i) for i in range(999)]
    with pytest.raises(
        InputError, match=r"1 of 1000 values is not a number: .*; correct it, mark it"
    ):
        kind(values)


def test_numbers_and_words_of_a_spreadsheet_in_one_column():
    with pytest.raises(InputError, match=r"1 of 40 values is not a number: row 3 'abc'"):
        kind([1, 2.5, "abc", *range(37)])


def test_few_values_are_levels():
    assert kind(["1", "2", "2", "x", "1", "x"]).kind == "category"
    assert kind(["1", "1", "2", "2"]).kind == "number"


def test_half_numbers_are_text_that_says_so():
    found = kind([str(i / 7) for i in range(170)] + ["<5"] * 30)
    assert found.kind == "text"
    assert re.search("170 of its 200 .* row 171 .* '<5'", found.reason)


def test_identifiers(rng):
    some = np.r_[np.arange(N - 5) * 3, np.zeros(5)].astype(int)
    found = kinds(
        **{
            "Unnamed: 0": np.arange(N),
            "row": rng.permutation(N) + 1,
            "counter": np.arange(1, N + 1, dtype=float),
            "case id": some,
            "personId": some,
            "uuid": some,
            "panel_id": np.arange(N) // 5 + 500,
            "key": some,
            "name": [f"{one:x}" + "g" for one in some],
        }
    )
    assert set(found.values()) == {"identifier"}, found


def test_numbers_that_only_look_like_identifiers(rng):
    found = kinds(
        year=1850 + np.arange(N),
        paid=np.arange(N) * 3,
        price_index=rng.normal(size=N),
        kids_no=np.arange(N) % 5,
        region_id=np.arange(N) % 7,
    )
    assert set(found.values()) == {"number"}, found
    assert kind(np.arange(20), "id").kind == "number"


def test_dates_are_left_out_with_words():
    days = pd.date_range("2020-01-01", periods=N)
    found = decide_kinds(
        pd.DataFrame(
            {
                "stamp": days,
                "zone": days.tz_localize("UTC"),
                "object": np.array([datetime.date(2020, 1, 1 + i % 9) for i in range(N)], object),
                "iso": days.strftime("%Y-%m-%d"),
                "time": days.strftime("%Y-%m-%d %H:%M:%S"),
                "german": [f"{1 + i % 5}.1.2020" for i in range(N)],
                "american": [f"1/{1 + i % 5}/20" for i in range(N)],
            }
        )
    )
    assert {one.kind for one in found.values()} == {"text"}
    assert len({column.reason for column in found.values()}) == 1
    clock = np.array([datetime.time(1 + i % 9) for i in range(N)], object)
    for times, words in (
        (days, "dates, .* years"),
        (days - days[0], "spans of time, .* days"),
        (clock, "times of day, .* hours"),
    ):
        assert re.search(words, kind(times).reason)


def test_labels_are_dates_if_nearly_all_of_them_are():
    days = [f"2020-01-{day:02}" for day in range(1, 20)]
    assert are_dates([*days, "none"])
    assert not are_dates([*days, "none", "n/a"])
    assert not are_dates([])


def test_categories_have_few_levels(rng):
    assert kind([f"c{i % 50}" for i in range(N)]).kind == "category"
    assert kind([f"c{i % 51}" for i in range(N)]).kind == "text"
    assert kind(["a", "b", "c", "c"]).kind == "text"
    assert "2 levels" in kind(["a", " a", "b ", "b"]).reason
    assert kind([["a"]] * N).kind == "text"


def test_declared_categories_stay_categories_whatever_their_values():
    assert kind(pd.Categorical([1, 2, 3, 1, 2, 3])).kind == "category"
    assert kind(pd.Categorical([2021, 2022, 2023] * 2)).kind == "category"
    assert re.search(f"numbers .* 51 .* {N} rows", kind(pd.Categorical(np.arange(N) % 51)).reason)
    assert kind(pd.Categorical(["1", "2", "3"] * 2)).kind == "category"
    assert kind(pd.Categorical([f"c{i}" for i in range(N)])).kind == "identifier"
    # Stata labels some values of a number.
    with pytest.raises(InputError, match="row 1 'refused'"):
        kind(pd.Categorical(["refused", *range(1, 40)]))


def test_the_user_decides_otherwise():
    frame = pd.DataFrame(
        {
            "id": np.arange(N),
            "city": [f"c{i % 60}" for i in range(N)],
            "code": np.arange(N) % 7,
            "one": 1,
            "word": "x",
        }
    )
    found = decide_kinds(frame, numeric=["id", "one"], categorical=["city", "code", "word"])
    assert [one.kind for one in found.values()] == [
        "number",
        "category",
        "category",
        "constant",
        "constant",
    ]
    assert "7 levels, as asked" in found["code"].reason
    with pytest.raises(InputError, match="200 of 200 values are not numbers: row 1 'c0'"):
        decide_kinds(frame, numeric=["city"])
    with pytest.raises(InputError, match="'id' is in both categorical and numeric"):
        decide_kinds(frame, numeric=["id"], categorical=["id"])
    with pytest.raises(UnknownFeatureError, match=r"numeric names 'cod'.*mean 'code'"):
        decide_kinds(frame, numeric=["cod"])


def test_an_outcome_as_numbers():
    found = to_numbers(pd.Series(["1.5", "NA", " 2"]), "wage")
    np.testing.assert_array_equal(found, [1.5, np.nan, 2.0])
    with pytest.raises(
        InputError, match=r"column 'wage': 1 of 2 .* row 2 'x' .*; correct it or mark"
    ):
        to_numbers(pd.Series(["1", "x"]), "wage")
    with pytest.raises(InputError, match="column 'day' holds dates"):
        to_numbers(pd.Series(pd.date_range("2020", periods=3)), "day")
    with pytest.raises(InputError, match="holds lists"):
        to_numbers(pd.Series([[1], [2]]), "x")


# Text by its type. --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["str", "string", "object", "category", "string[pyarrow]"])
def test_text_by_its_type_is_text_even_where_it_spells_numbers(dtype):
    codes = pd.Series((["4012", "0815", "4012", None] * N)[:N], dtype=dtype)
    assert kind(codes, "zip", untyped=False).kind == "category"
    assert kind(codes.astype(object), "zip").kind == "number"


def test_objects_that_are_not_all_text_are_judged_by_their_values():
    truths = np.array(([True, False, None] * N)[:N], dtype=object)
    assert kind(truths, untyped=False).kind == "number"
    assert kind([decimal.Decimal(i) / 7 for i in range(N)], untyped=False).kind == "number"
    assert kind([1, 2.5, "3", *range(N)], untyped=False).kind == "number"


def test_text_that_is_left_out_though_it_spells_numbers_says_so():
    found = kind([f"{i / 7:.3f}" for i in range(N)], untyped=False)
    assert found.kind == "identifier"
    assert found.reason.endswith("; it is text that spells numbers")
    assert "spells numbers" not in kind([f"w{i}" for i in range(N)], untyped=False).reason


@pytest.mark.parametrize("text", ["10,910", "72.1%", "1'234.5"])
def test_marks_in_text_that_is_asked_to_be_numbers_are_refused_with_what_to_do(text):
    with pytest.raises(InputError, match=r"not a number: .*decimal point, and without marks"):
        to_numbers(pd.Series([text, "2", "3"]), "x")
