"""What each column of a table is: a number, a category, or nothing to fit a model with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.features import nearest
from heckmanfa.normal import Floats
from heckmanfa.tabular.values import (
    Levels,
    Numbers,
    is_date,
    is_plain_number,
    levels_of,
    not_numbers,
    numbers_of,
    to_numbers,
)

__all__ = ["Kind", "KindName", "decide_kinds"]

KindName = Literal["number", "category", "identifier", "constant", "text"]

_MOST_LEVELS = 50
_NEARLY_ALL = 0.95
_FEW_ROWS = 20
# So few numbers among words may be levels that happen to be digits.
_LEAST_NUMBERS = 10

_ID = re.compile(r"(?:^|[\W_])(?:id|ids|uuid|guid)$|^(?:id|uuid|guid)[\W_]", re.IGNORECASE)
_CAMEL_ID = re.compile(r"[a-z](?:Id|ID|Uuid|UUID|Guid|GUID)$")
_INDEX = re.compile(
    r"(?:^|[\W_])(?:index|idx|key|row|row_?id|row_?num(?:ber)?|record|serial|nr|no)$"
    r"|^Unnamed: \d+$",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2}))(?:[ T]\d{1,2}:.*)?"
)


@dataclass(frozen=True)
class Kind:
    """What a column is taken for, and why."""

    name: str
    kind: KindName
    reason: str
    """a phrase for the user that goes on after the column's name"""


def decide_kinds(
    frame: pd.DataFrame, *, categorical: Sequence[str] = (), numeric: Sequence[str] = ()
) -> dict[str, Kind]:
    """Decide what each column is.

    A *number* has a numeric or boolean type, or is text that spells numbers; where nearly all of
    it (95%) does, the rest is an error that says where it is. A *category* is other text with at
    most 50 levels, and with no more levels than half of its values. An *identifier* tells rows
    apart: text that is nearly always different, whole numbers that count the rows from 0 or 1, or
    whole numbers of many different values under a name such as ``id``. A *constant* has one value
    at most. *Text* is what is left: text of too many levels, dates, and objects. The last three
    are nothing to fit a model with.

    Parameters
    ----------
    frame : DataFrame
    categorical, numeric : sequence of str
        Columns for which the user has decided. A column with one value stays a constant.

    Returns
    -------
    dict of str to Kind
        In the order of the columns.
    """
    names = [str(one) for one in frame.columns]
    for option, wanted in (("--categorical", categorical), ("--numeric", numeric)):
        for one in wanted:
            if one not in names:
                raise UnknownFeatureError(
                    f"{option} names {one!r}, which the data does not have{nearest(one, names)}"
                )
    both = [one for one in categorical if one in numeric]
    if both:
        raise InputError(f"{both[0]!r} is in both --categorical and --numeric; choose one")
    kinds = {}
    for name in names:
        series = frame[name]
        if name in categorical:
            kinds[name] = _as_category(series, name)
        elif name in numeric:
            values = to_numbers(series, name)
            kinds[name] = _constant(values, name) or Kind(name, "number", "is a number, as asked")
        else:
            kinds[name] = _decide(series, name)
    return kinds


def _decide(series: pd.Series[Any], name: str) -> Kind:
    if is_plain_number(series):
        return _plain(series, name)
    if is_date(series):
        return _date(name)
    try:
        levels = levels_of(series)
    except TypeError:
        return Kind(name, "text", "holds lists or other objects, which no model can use")
    if len(levels.labels) <= 1:
        return _one_level(levels, name)
    numbers = None if _is_factor(series) else numbers_of(series)
    if numbers is not None:
        if numbers.n_bad == 0:
            return _spelt(numbers, levels, name)
        good = numbers.n_given - numbers.n_bad
        if good >= _NEARLY_ALL * numbers.n_given and good >= _LEAST_NUMBERS:
            raise InputError(not_numbers(numbers, name, asked=False))
    dated = [_DATE.fullmatch(label) is not None for label in levels.labels]
    if sum(dated) >= _NEARLY_ALL * len(dated):
        return _date(name)
    return _words(levels, numbers, name)


def _is_factor(series: pd.Series[Any]) -> bool:
    """Whether the levels were declared; Stata declares some of a number's values."""
    if not isinstance(series.dtype, pd.CategoricalDtype):
        return False
    return len({isinstance(one, str) for one in series.cat.categories}) == 1


def _words(levels: Levels, numbers: Numbers | None, name: str) -> Kind:
    given = int(np.count_nonzero(levels.codes >= 0))
    distinct = len(levels.labels)
    many = distinct > _MOST_LEVELS or 2 * distinct > given
    if many and numbers is not None and 2 * numbers.n_bad < numbers.n_given:
        row, text = next(iter(numbers.bad.items()))
        return Kind(
            name,
            "text",
            f"is text, though {numbers.n_given - numbers.n_bad} of its {numbers.n_given} values "
            f"are numbers; row {row + 1} of the data holds {text[:30]!r}",
        )
    if given > _FEW_ROWS and distinct >= _NEARLY_ALL * given:
        return Kind(name, "identifier", "differs in (nearly) every row, as an identifier does")
    if many:
        return Kind(
            name,
            "text",
            f"is text with {distinct} different values in {given} rows, too many for a category",
        )
    return Kind(name, "category", f"is a category of {distinct} levels")


def _as_category(series: pd.Series[Any], name: str) -> Kind:
    try:
        levels = levels_of(series)
    except TypeError as error:
        raise InputError(
            f"column {name!r} holds lists or other objects, which cannot be a category"
        ) from error
    if len(levels.labels) <= 1:
        return _one_level(levels, name)
    return Kind(name, "category", f"is a category of {len(levels.labels)} levels, as asked")


def _plain(series: pd.Series[Any], name: str) -> Kind:
    values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    if pd.api.types.is_bool_dtype(series):
        reason = "is true or false, read as 1 or 0"
        return _constant(values, name) or Kind(name, "number", reason)
    return (
        _constant(values, name) or _identifier(values, name) or Kind(name, "number", "is a number")
    )


def _spelt(numbers: Numbers, levels: Levels, name: str) -> Kind:
    truths = {label.lower() for label in levels.labels} <= {"true", "false"}
    reason = "is true or false, read as 1 or 0" if truths else "spells numbers"
    return (
        _constant(numbers.found, name)
        or _identifier(numbers.found, name)
        or Kind(name, "number", reason)
    )


def _constant(values: Floats, name: str) -> Kind | None:
    given = values[~np.isnan(values)]
    if len(given) == 0:
        return Kind(name, "constant", "has no values")
    if given[0] == given[-1] and np.all(given == given[0]):
        return Kind(name, "constant", f"is {given[0]:g} wherever it is not missing")
    return None


def _one_level(levels: Levels, name: str) -> Kind:
    if not levels.labels:
        return Kind(name, "constant", "has no values")
    return Kind(name, "constant", f"is {levels.labels[0]!r} wherever it is not missing")


def _identifier(values: Floats, name: str) -> Kind | None:
    """Whether whole numbers count the rows, or are many under a name such as id."""
    given = values[~np.isnan(values)]
    n = len(given)
    if n <= _FEW_ROWS or not np.all(np.isfinite(given)):
        return None
    low, high = given.min(), given.max()
    counts = low in (0, 1) and n <= high - low + 1 <= n / _NEARLY_ALL
    is_id = _ID.search(name) is not None or _CAMEL_ID.search(name) is not None
    if not (counts or is_id or _INDEX.search(name)) or np.any(given != np.floor(given)):
        return None
    distinct = len(np.unique(given))
    if counts and distinct >= _NEARLY_ALL * n:
        return Kind(name, "identifier", "counts the rows")
    if distinct >= _NEARLY_ALL * n or (is_id and distinct > _FEW_ROWS):
        return Kind(name, "identifier", f"is named like an identifier and has {distinct} values")
    return None


def _date(name: str) -> Kind:
    return Kind(
        name, "text", "holds dates, which no model can use; make numbers of them, such as years"
    )
