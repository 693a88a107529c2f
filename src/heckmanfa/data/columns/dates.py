"""Dates as numbers: days or years since the earliest date of a column.

Text that spells dates is read by one rule for its whole column. ``2020-04-03`` needs none; whether
``03/04/2020`` is in April or in March is decided by a part above 12 in any row, and refused if
there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.values import (
    NEARLY_ALL,
    as_declared,
    is_plain_number,
    levels_of,
    time_in,
)
from heckmanfa.errors import InputError
from heckmanfa.text.option_types import Unit
from heckmanfa.text.option_words import MISSING
from heckmanfa.text.printable import quoted

Order = Literal["ymd", "dmy", "mdy"]
"""the order of day, month and year in text; dates with a type have the first"""

_EPOCH = date(1970, 1, 1).toordinal()
_PER_UNIT: dict[str, float] = {"days": 1.0, "years": 365.25}
_FIRST = 50
_DATE = re.compile(
    r"(?:(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})"
    r"|(?P<one>\d{1,2})(?P<mark>[-/.])(?P<two>\d{1,2})[-/.](?P<last>\d{4}|\d{2}))"
    r"(?:[ T](?P<time>\d{1,2}:.*))?"
)
_TIME = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))?"
    r" ?(?:(?P<half>[ap])\.?m\.?)?"
    r"(?:z|utc|gmt|(?P<sign>[+-])(?P<ahead>\d{2}):?(?P<minutes>\d{2})?)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class DateScale:
    """How the dates of a column become numbers."""

    unit: Unit
    first: float
    """the day that is zero, in days since 1 January 1970"""
    order: Order

    @property
    def since(self) -> str:
        """The day that is zero, as ISO 8601 writes it."""
        return str(np.datetime64(int(np.floor(self.first)), "D"))

    def numbers(self, series: pd.Series[Any], name: str) -> Floats:
        """Return the dates of a column as numbers, NaN where missing."""
        return (_days(series, name, self.order) - self.first) / _PER_UNIT[self.unit]


def scale_of(series: pd.Series[Any], name: str, unit: Unit) -> DateScale | None:
    """Return how a column's dates become numbers; None if it does not hold dates."""
    order: Order = "ymd"
    if time_in(series) != "dates":
        if is_plain_number(series) or not _may_be_dates(series):
            return None
        labels = levels_of(series).labels
        if not are_dates(labels):
            return None
        order = _order_of(labels, name)
    days = _days(series, name, order)
    known = days[~np.isnan(days)]
    return DateScale(unit, float(np.floor(known.min())), order) if len(known) else None


def are_dates(labels: Sequence[str]) -> bool:
    """Whether (nearly) all texts spell dates."""
    dated = sum(_DATE.fullmatch(label) is not None for label in labels)
    return bool(labels) and dated >= NEARLY_ALL * len(labels)


def _may_be_dates(series: pd.Series[Any]) -> bool:
    first = [text for text in series.dropna().head(_FIRST) if isinstance(text, str)]
    return any(_DATE.fullmatch(" ".join(text.split())) for text in first)


def _days(series: pd.Series[Any], name: str, order: Order) -> Floats:
    """Return dates in days since 1970, NaN where missing."""
    if time_in(series) == "dates":
        return _typed_days(series)
    levels = levels_of(series)
    read = [_day(label, order) for label in levels.labels]
    wrong = [label for label, day in zip(levels.labels, read, strict=True) if day is None]
    if wrong:
        row = int(np.argmax(levels.codes == levels.labels.index(wrong[0]))) + 1
        raise InputError(
            f"column {quoted(name)} holds dates, and row {row} of the data holds "
            f"{quoted(wrong[0], 30)}, which is not one{_two_digits(wrong[0])}; correct it, or "
            f"mark it {MISSING}"
        )
    days = np.array([np.nan if day is None else day for day in read] + [np.nan])
    return np.asarray(days[levels.codes])


def _typed_days(series: pd.Series[Any]) -> Floats:
    if isinstance(series.dtype, pd.PeriodDtype):
        series = series.dt.to_timestamp()
    elif series.dtype == object and len(series.dropna()):
        first = series.dropna().iloc[0]
        if isinstance(first, pd.Period):
            series = series.map(lambda cell: cell if cell is None else cell.to_timestamp())
    stamps = pd.to_datetime(series, utc=True)
    days = (stamps - pd.Timestamp("1970-01-01", tz="UTC")) / pd.Timedelta(days=1)
    return np.asarray(days.to_numpy(dtype=np.float64, na_value=np.nan))


def _order_of(labels: Iterable[str], name: str) -> Order:
    """Return the order of day and month in the texts of a column; refuse what shows none."""
    matches = [(label, _DATE.fullmatch(label)) for label in labels]
    parts = [(label, match) for label, match in matches if match is not None and match["mark"]]
    if not parts:
        return "ymd"
    day_first = any(int(match["one"]) > 12 for _, match in parts)
    month_first = any(int(match["two"]) > 12 for _, match in parts)
    label = parts[0][0]
    if day_first and month_first:
        raise InputError(
            f"column {quoted(name)} has the day first in some dates and the month first in others; "
            "write them one way, such as 2020-04-03"
        )
    if not day_first and not month_first:
        # Where points separate its parts, the day comes first.
        if all(match["mark"] == "." for _, match in parts):
            return "dmy"
        raise InputError(
            f"column {quoted(name)} holds {quoted(label)}, and nothing in it says whether the day "
            "or the month comes first; write dates as 2020-04-03"
        )
    return "dmy" if day_first else "mdy"


def _day(label: str, order: Order) -> float | None:
    """Return a text as days since 1970; None if it is not a date of that order."""
    match = _DATE.fullmatch(label)
    if match is None:
        return None
    if match["year"]:
        year, month, day = match["year"], match["month"], match["day"]
    else:
        first, second, year = match["one"], match["two"], match["last"]
        day, month = (second, first) if order == "mdy" else (first, second)
    if len(year) != 4:
        return None
    try:
        days = float(date(int(year), int(month), int(day)).toordinal() - _EPOCH)
    except ValueError:
        return None
    time = 0.0 if match["time"] is None else _time_of_day(match["time"])
    return None if time is None else days + time


def _time_of_day(text: str) -> float | None:
    """Return a time in days, in UTC if it says how far ahead of that it is; None if it is none."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hour, minute = int(match["hour"]), int(match["minute"])
    second = float((match["second"] or "0").replace(",", "."))
    half = (match["half"] or "").lower()
    if hour > (12 if half else 24) or (half and hour == 0) or minute > 59 or second >= 61.0:
        return None
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    ahead = 0
    if match["sign"]:
        ahead = 60 * int(match["ahead"]) + int(match["minutes"] or 0)
        ahead = -ahead if match["sign"] == "-" else ahead
    return hour / 24 + (minute - ahead) / 1440 + second / 86400


def _two_digits(label: str) -> str:
    match = _DATE.fullmatch(label)
    return " (years need four digits)" if match and len(match["last"] or "1234") == 2 else ""


def scales_of(frame: pd.DataFrame, unit: Unit, categorical: Sequence[str]) -> dict[str, DateScale]:
    """Return how columns of dates become numbers; those that are to be categories stay."""
    scales = {
        str(name): scale_of(as_declared(frame[name], numeric=True), str(name), unit)
        for name in frame.columns
        if name not in categorical
    }
    return {name: scale for name, scale in scales.items() if scale is not None}
