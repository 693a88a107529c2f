"""What cells hold: missing marks, numbers as people write them, and levels of categories.

A pandas category or an Arrow dictionary is declared to be a category, whether its values are text,
numbers or booleans; dates stay dates. Parquet stores a category of numbers as plain numbers, but
the metadata that pandas writes beside them says what it was (`pandas_categories`). Where nothing
says so, as in a CSV file, numbers are numbers. An Arrow dictionary declares the order of its levels
only if it is marked as ordered, or if pandas made it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import DataError, InputError
from heckmanfa.text.option_words import MISSING, option
from heckmanfa.text.printable import quoted, shown

_MARKS = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", ".", "-", "?"})
# What programs write for a missing value is one, whoever declares the levels.
_NO_LEVELS = frozenset({"", "<na>", "nan", "-nan"})
# Among numbers, none is a missing mark; among words it may be a level, such as no schooling.
NUMBER_MARKS = _MARKS | {"none"}
"""missing marks among numbers, in lower case"""


def _spellings(marks: frozenset[str]) -> tuple[str, ...]:
    spelled = {spelled for mark in marks for spelled in (mark, mark.upper(), mark.capitalize())}
    return tuple(sorted(spelled | {"NaN"}))


MISSING_SPELLINGS = _spellings(_MARKS)
"""the missing marks as files spell them"""
EMPTY_SPELLINGS = _spellings(_NO_LEVELS)
"""those of them that are never levels"""

TRUE_WORDS = frozenset({"1", "1.0", "true", "t", "yes", "y"})
"""words for a selected row, in lower case"""
FALSE_WORDS = frozenset({"0", "0.0", "false", "f", "no", "n"})
"""words for an unselected row, in lower case"""

Time = Literal["dates", "times of day", "spans of time"]
UNITS: dict[Time, str] = {"dates": "years", "times of day": "hours", "spans of time": "days"}
"""numbers that can be made of each kind of time"""
_TIMES: dict[str, Time] = {
    "datetime64": "dates",
    "datetime": "dates",
    "date": "dates",
    "period": "dates",
    "time": "times of day",
    "timedelta64": "spans of time",
    "timedelta": "spans of time",
}

DECIMALS = (".", ",")
"""marks that may be the decimal mark"""

# Only marks come before the first digit; anything else takes time in the square of the length.
_NUMBER = re.compile(r"[+-]?(?P<body>[.,' ]*[0-9][0-9.,' ]*)(?P<power>[eE][+-]?[0-9]+)?")
# A double has at most 309 digits before its point.
_LONGEST_NUMBER = 400
_LEAD, _GROUP = re.compile(r"[1-9][0-9]{0,2}"), re.compile(r"[0-9]{3}")

NEARLY_ALL = 0.95
"""share of a column's values that decides what the column is"""
# Fewer numbers among words may be levels that happen to be digits.
_LEAST_NUMBERS = 10
_SHOWN = 3
_LONGEST = 30


@dataclass(frozen=True)
class Levels:
    """The distinct values of a column as text, and which row has which."""

    codes: NDArray[np.signedinteger[Any]]
    """(n,) positions in ``labels``, of the smallest type; -1 for missing values"""
    labels: list[str]
    """in order of first appearance"""

    def counts(self) -> NDArray[np.intp]:
        """Return how many rows have each level."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.labels))


@dataclass(frozen=True)
class NotNumbers:
    """The values of a column that are not numbers."""

    bad: dict[int, str]
    """the first rows that hold something else, counted from 0, and what they hold"""
    n_bad: int
    n_given: int
    """rows that are not missing"""


@dataclass(frozen=True)
class Spellings:
    """The L levels of a column read as numbers; the last entry of an array is for missing rows."""

    value: Floats
    """(L + 1,) NaN for missing marks and for what is not a number"""
    missing: Mask
    """(L + 1,) which levels are missing marks"""
    bad: Mask
    """(L + 1,) which levels are neither numbers nor missing marks"""
    booleans: bool
    """whether they are true and false, which are 1 and 0"""


def is_plain_number(series: pd.Series[Any]) -> bool:
    """Whether a column's type is a real number or a boolean."""
    types = pd.api.types
    return bool(types.is_numeric_dtype(series) or types.is_bool_dtype(series)) and not bool(
        types.is_complex_dtype(series) or isinstance(series.dtype, pd.CategoricalDtype)
    )


def is_text(series: pd.Series[Any]) -> bool:
    """Whether a column's type is text, or all of its objects are."""
    return bool(pd.api.types.infer_dtype(series, skipna=True) == "string")


def as_number(text: str) -> float | None:
    """Return the number that a text spells, or None."""
    if len(text) > _LONGEST_NUMBER:
        return None
    try:
        # Python takes 1_000 for a number, but no spreadsheet does.
        return None if "_" in text else float(text.replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        return None


def by_size(labels: Iterable[str]) -> list[str]:
    """Order levels that nobody has put in order: by size if all spell numbers, else by alphabet."""
    order = sorted(labels)
    numbers = {label: as_number(label) for label in order}
    if None not in numbers.values():
        order.sort(key=lambda label: numbers[label] or 0.0)
    return order


def label_of(value: Any) -> str:
    """Spell a value as a level: 2.0 as 2, and runs of white space as one blank."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return " ".join(str(value).split())


def numeric_label(value: float) -> int | float:
    """Return a number as a class: 2.0 as 2."""
    return int(value) if float(value).is_integer() else float(value)


def one_case(label: str) -> str:
    """Return a level without case and blanks; levels that agree in this may mean the same."""
    return "".join(label.split()).casefold()


def in_one_case(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the most frequent spelling of each level, by case and blanks; given their rows."""
    spelled: dict[str, str] = {}
    for level in sorted(counts, key=lambda level: (-counts[level], level)):
        spelled.setdefault(one_case(level), level)
    return {level: spelled[one_case(level)] for level in counts}


def is_mark(label: str) -> bool:
    """Whether a level is a missing mark where nobody declares it as a level."""
    return label.lower() in _MARKS


def levels_of(
    series: pd.Series[Any], known: Container[str] = (), *, literal: bool = False
) -> Levels:
    """Find the distinct values of a column.

    Missing marks are missing values, except for levels that are ``known``, and in a ``literal``
    column, whose levels somebody declares: there, only empty text and NaN are. Values that differ
    only in white space are the same. Objects without a hash, such as lists, raise a TypeError.
    """
    marks = _NO_LEVELS if literal else _MARKS
    codes, uniques = pd.factorize(series)
    labels: dict[str, int] = {}
    # The last entry is for -1, pandas' code for missing values.
    new = np.full(len(uniques) + 1, -1, dtype=np.min_scalar_type(-max(len(uniques), 1)))
    for code, value in enumerate(uniques):
        label = label_of(value)
        if label in known or label.lower() not in marks:
            new[code] = labels.setdefault(label, len(labels))
    return Levels(new[codes], list(labels))


def numbers_of(series: pd.Series[Any]) -> tuple[Floats, NotNumbers]:
    """Read a column as numbers: text that spells them, and true and false as 1 and 0.

    Missing values, and those that are not numbers, are NaN.
    """
    if is_plain_number(series):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        n_known = int(np.count_nonzero(~np.isnan(values)))
        return values, NotNumbers({}, 0, n_known)
    levels = levels_of(series)
    spelled = spellings_of(levels.labels)
    bad = np.flatnonzero(spelled.bad[levels.codes])
    first = {int(row): levels.labels[levels.codes[row]] for row in bad[:_SHOWN]}
    n_given = int(np.count_nonzero(~spelled.missing[levels.codes]))
    return spelled.value[levels.codes], NotNumbers(first, len(bad), n_given)


def spellings_of(labels: Sequence[str], *, booleans: bool = True) -> Spellings:
    """Read all levels of a column as numbers; true and false count only if there are no others.

    Pass ``booleans=False`` for the levels of some rows only, where true and false are not numbers.
    """
    words = [label.lower() for label in labels]
    missing = np.array([word in NUMBER_MARKS for word in words] + [True])
    booleans = booleans and {*words} - NUMBER_MARKS <= {"true", "false"}
    if booleans:
        spelled: list[float | None] = [float(word == "true") for word in words]
    else:
        spelled = [as_number(label) for label in labels]
    value = np.array([np.nan if number is None else number for number in spelled] + [np.nan])
    value[missing] = np.nan
    bad = np.array([number is None for number in spelled] + [False]) & ~missing
    return Spellings(value, missing, bad, booleans)


def nearly_all(good: int, n_given: int) -> bool:
    """Whether so many of a column's values are numbers that the others must be mistakes."""
    return good >= NEARLY_ALL * n_given and good >= _LEAST_NUMBERS


def to_numbers(series: pd.Series[Any], name: str) -> Floats:
    """Return a column as (n,) float64, NaN where missing; refuse what is not a number."""
    time = time_in(series)
    if time is not None:
        raise InputError(times_not_numbers(name, time))
    try:
        values, others = numbers_of(series)
    except TypeError as error:
        raise InputError(
            f"column {quoted(name)} holds lists or other objects, not numbers"
        ) from error
    if others.n_bad:
        raise InputError(not_numbers(others, name, asked=True))
    return values


def times_not_numbers(name: str, time: Time) -> str:
    """Explain that a column that must hold numbers holds dates or the like."""
    return (
        f"column {quoted(name)} holds {time}, not numbers; make numbers of them first, such as "
        f"{UNITS[time]}"
    )


def not_numbers(numbers: NotNumbers, name: str, *, asked: bool) -> str:
    """Explain which rows of a column are not numbers, and what to do.

    Unless numbers were ``asked`` for, that may be to make it a category.
    """
    where = ", ".join(
        f"row {row + 1} {quoted(text, _LONGEST)}" for row, text in numbers.bad.items()
    )
    more = ", …" if numbers.n_bad > len(numbers.bad) else ""
    verb, it = ("is not a number", "it") if numbers.n_bad == 1 else ("are not numbers", "them")
    way_out = (
        f"correct {it} or mark {it} {MISSING}"
        if asked
        else f"correct {it}, mark {it} {MISSING}, or name {quoted(name)} in {option('categorical')}"
    )
    if any(shape_of(text) is not None for text in numbers.bad.values()):
        way_out += (
            " (write numbers with a decimal point, and without marks between thousands or per "
            "cent signs)"
        )
    return (
        f"column {quoted(name)}: {numbers.n_bad} of {numbers.n_given} values {verb}: {where}{more} "
        f"(rows of the data, the first is 1); {way_out}"
    )


def time_in(series: pd.Series[Any] | pd.Index) -> Time | None:
    """Return whether a column holds dates, times of day or spans of time; None if none of them."""
    return _TIMES.get(pd.api.types.infer_dtype(series, skipna=True))


class Shape(NamedTuple):
    """The marks of a number, as far as the number alone shows what they are."""

    decimal: str | None
    thousands: str | None
    either: str | None
    """a mark that may be one or the other: three digits follow, and one to three come before"""
    lead: int
    """digits before the first mark"""


def tidy(text: str) -> str:
    """Unify the kinds of blanks, minus signs and apostrophes."""
    text = " ".join(text.split())
    return text.replace("\N{MINUS SIGN}", "-").replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def shape_of(text: str) -> Shape | None:
    """Return the marks of a number; None if a text is not a number in any country."""
    if len(text) > _LONGEST_NUMBER:
        return None
    match = _NUMBER.fullmatch(tidy(text).removesuffix("%").strip())
    if match is None:
        return None
    body: str = match["body"]
    marks = [char for char in body if not char.isdigit()]
    kinds = list(dict.fromkeys(marks))
    lead = len(body) if not kinds else body.index(kinds[0])
    if not kinds:
        return Shape(None, None, None, lead)
    last = kinds[-1]
    if len(kinds) > 2 or body != body.strip():
        return None
    if len(kinds) == 2:
        whole, _, rest = body.rpartition(last)
        alone = last in DECIMALS and marks.count(last) == 1 and rest.isdigit()
        return Shape(last, kinds[0], None, lead) if alone and _grouped(whole, kinds[0]) else None
    if last in DECIMALS and len(marks) == 1:
        unclear = _grouped(body, last) and not match["power"]
        return Shape(None, None, last, lead) if unclear else Shape(last, None, None, lead)
    return Shape(None, last, None, lead) if _grouped(body, last) else None


def _grouped(body: str, mark: str) -> bool:
    """Whether a mark separates the thousands of a number."""
    lead, *groups = body.split(mark)
    return _LEAD.fullmatch(lead) is not None and all(_GROUP.fullmatch(group) for group in groups)


def with_columns(frame: pd.DataFrame, new: dict[str, pd.Series[Any]]) -> pd.DataFrame:
    """Replace some columns; unlike ``assign``, this allows a column named self."""
    frame = frame.copy(deep=False)
    for name, values in new.items():
        frame[name] = values
    return frame


# Declared levels of these types are numbers.
_NUMBER_TYPES = ("integer", "floating", "mixed-integer-float", "decimal", "boolean")


def pandas_categories(schema: Any, what: Any = "the table") -> set[str]:
    """Return the columns of an Arrow schema that were categories of pandas.

    Metadata that pandas cannot have written is refused, since a category in it may be lost;
    ``what`` names the table.
    """
    try:
        made_by = schema.pandas_metadata or {}
        return {
            column["field_name"]
            for column in made_by.get("columns", ())
            if column.get("pandas_type") == "categorical" and column.get("field_name") is not None
        }
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise DataError(
            f"what pandas wrote of the columns of {shown(what)} (their types, as metadata) is "
            "damaged. Write it again, or drop that with pyarrow: replace_schema_metadata(None)"
        ) from error


def as_declared(series: pd.Series[Any], *, numeric: bool = False) -> pd.Series[Any]:
    """Return a column as the data declares it.

    An Arrow dictionary becomes a pandas category, and a category of dates a plain column. So does a
    category of numbers if the user wants it ``numeric``. Other columns are returned unchanged.
    """
    series = as_category(series)
    if not isinstance(series.dtype, pd.CategoricalDtype):
        return series
    levels = series.dtype.categories
    is_number = pd.api.types.infer_dtype(levels, skipna=True) in _NUMBER_TYPES
    if time_in(levels) is not None or (numeric and is_number):
        return _plain(series)
    return series


def frame_as_declared(frame: pd.DataFrame, categories: Container[Any] = ()) -> pd.DataFrame:
    """Return a table in which only the columns ``categories`` may be categories of numbers.

    Those of the others are numbers; see `as_declared`.
    """
    changed = {
        name: as_declared(frame[name], numeric=name not in categories)
        for name, dtype in zip(frame.columns, frame.dtypes, strict=True)
        if isinstance(dtype, pd.CategoricalDtype) or _is_dictionary(dtype)
    }
    return frame.assign(**changed) if changed else frame


def _plain(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return the values of a category as a plain column."""
    codes = series.cat.codes.to_numpy()
    levels: Any = series.cat.categories.array
    if isinstance(levels, pd.arrays.NumpyExtensionArray):
        # pandas 2.1 warns of its own wrapper of NumPy.
        levels = levels.to_numpy()
    taken: Any = pd.api.extensions.take(levels, codes, allow_fill=True)
    return pd.Series(taken, index=series.index, name=series.name)


def as_category(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return an Arrow dictionary as a pandas category, and any other column unchanged."""
    if not _is_dictionary(series.dtype):
        return series
    import pyarrow as pa

    table = pa.table({"levels": pa.array(series.array)}).unify_dictionaries()
    values = table["levels"].to_pandas()
    if isinstance(values.dtype, pd.CategoricalDtype) and not table["levels"].type.ordered:
        values = values.cat.reorder_categories(_in_order(values.dtype.categories))
    return pd.Series(values.array, index=series.index, name=series.name)


def _in_order(levels: pd.Index) -> list[Any]:
    """Return the levels of a dictionary that declares no order as `by_size` puts their labels."""
    places = {label: place for place, label in enumerate(by_size({*map(label_of, levels)}))}
    return sorted(levels, key=lambda level: places[label_of(level)])


def _is_dictionary(dtype: Any) -> bool:
    if not isinstance(dtype, pd.ArrowDtype):
        return False
    import pyarrow as pa

    return bool(pa.types.is_dictionary(dtype.pyarrow_dtype))


def encoded_names(source: str, levels: Sequence[str] | None) -> list[str]:
    """Name what a column becomes: itself, or a dummy for each level but the first.

    A category with one level has a dummy too, which is constant, and one without levels is missing.
    """
    if not levels:
        return [source]
    return [f"{source}[{level}]" for level in (levels[1:] or levels)]
