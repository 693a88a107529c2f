"""Dates in every spelling and type are the numbers that pandas has for them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from heckmanfa.data.columns.dates import scale_of
from heckmanfa.data.columns.encoding import Encoding
from heckmanfa.errors import InputError

DAY = pd.Timedelta(days=1)
# The 25th shows which part of a date is the day.
STAMPS = pd.Series(
    pd.to_datetime(
        ["2021-03-04 05:06:07.5", "2020-12-25 23:59:01", None, "1969-07-20 20:17:40", "2020-02-29"]
        * 9,
        format="ISO8601",
    )
)
# How a date is written, and what of it that keeps.
SPELLINGS = {
    "%Y-%m-%d": "D",
    "%Y/%m/%d": "D",
    "%d/%m/%Y": "D",
    "%m/%d/%Y": "D",
    "%d.%m.%Y": "D",
    "%d-%m-%Y %H:%M": "min",
    "%m/%d/%Y %H:%M:%S": "s",
    "%Y-%m-%d %H:%M": "min",
    "%Y-%m-%d %H:%M:%S": "s",
    "%Y-%m-%dT%H:%M:%S.%f": "us",
    "%Y-%m-%dT%H:%M:%SZ": "s",
    "%Y-%m-%dT%H:%M:%S+00:00": "s",
    "%Y-%m-%d %I:%M %p": "min",
    "%m/%d/%Y %I:%M:%S %p": "s",
    "%d.%m.%Y %I:%M%p": "min",
}
# Texts that pandas reads with the same offset, and ones that are no time.
OFFSETS = ["2020-05-01T05:06:07+02:00", "2020-05-01T23:30-0530", "2020-05-01 12:00:00.25+09"]
NO_TIMES = ["25:00", "10:60", "1:2", "13:00 PM", "0:30 am", "10:00 +", "10:00 CET", "10:00x"]
TYPES = {
    "stamps": (lambda v: v, "ns"),
    "zoned": (lambda v: v.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"), "ns"),
    "periods": (lambda v: v.dt.to_period("D"), "D"),
    "period objects": (lambda v: v.dt.to_period("D").astype(object).where(v.notna(), None), "D"),
    "date objects": (lambda v: v.dt.date, "D"),
    "arrow": (lambda v: v.astype("timestamp[us][pyarrow]"), "us"),
}


def _check(column, kept, unit):
    frame = pd.DataFrame({"day": column, "x": np.arange(len(column)) % 7 + 0.5})
    encoding, encoded = Encoding.learn(frame, ["day", "x"], dates=unit)
    wanted = STAMPS.dt.floor(kept) if kept != "ns" else STAMPS
    days = (wanted - wanted.min().floor("D")) / DAY
    days = days if unit == "days" else days / 365.25
    np.testing.assert_allclose(encoded["day"], days, rtol=1e-12, atol=1e-9)
    assert encoding.dates["day"].since == "1969-07-20"
    again = encoding.transform(frame.iloc[::-1])
    np.testing.assert_array_equal(again["day"], encoded["day"].iloc[::-1])


@pytest.mark.parametrize("unit", ["days", "years"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_the_same_time(spelling, unit):
    _check(STAMPS.dt.strftime(spelling).where(STAMPS.notna(), None), SPELLINGS[spelling], unit)


def test_a_time_with_an_offset_is_the_time_in_utc():
    column = pd.Series(OFFSETS * 5)
    days = scale_of(column, "day", "days").numbers(column, "day")
    stamps = pd.to_datetime(column, utc=True, format="ISO8601")
    wanted = (stamps - stamps.min().floor("D")) / DAY
    np.testing.assert_allclose(days, wanted, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("time", NO_TIMES)
def test_what_follows_a_date_and_is_no_time_is_refused(time):
    column = pd.Series(["2020-01-02 10:00"] * 30 + [f"2020-01-02 {time}"])
    with pytest.raises(InputError, match=r"row 31 of the data holds '2020-01-02 .*is not one"):
        scale_of(column, "day", "days")


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_is_the_same_time(kind):
    make, kept = TYPES[kind]
    _check(make(STAMPS), kept, "days")


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["13/01/2020", "01/13/2020"], "the day first in some dates and the month first in others"),
        (["03/04/2020", "05/06/2020"], "holds '03/04/2020', and nothing in it says whether"),
        (["2020-01-02"] * 30 + ["2020-02-30"], r"row 31 of the data holds '2020-02-30', which is"),
        (["02.01.2020"] * 30 + ["02.01.20"], r"'02\.01\.20', which is not one \(years need four d"),
        (
            [f"2020-01-{day}" for day in range(1, 31)] + ["soon"],
            r"row 31 of the data holds 'soon', which is not one; ",
        ),
    ],
)
def test_texts_that_are_no_dates_are_named(texts, words):
    with pytest.raises(InputError, match=f"column 'day' .*{words}"):
        scale_of(pd.Series(texts), "day", "days")


def test_columns_without_dates_have_no_scale():
    for column in ([1.0, 2.0], ["a", "b"], [None, None], ["2020-01-02"] + ["x"] * 30):
        assert scale_of(pd.Series(column, dtype=object), "day", "days") is None
    assert scale_of(pd.Series([pd.NaT, pd.NaT]), "day", "days") is None
