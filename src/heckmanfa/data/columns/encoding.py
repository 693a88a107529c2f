"""How columns of a table become the numbers that a model is fitted to, now and later."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.column_names import refuse_absent, refuse_far_more, repeated
from heckmanfa.data.columns.dates import DateScale, scales_of
from heckmanfa.data.columns.kinds import LearnedColumn, learn_columns
from heckmanfa.data.columns.missing_codes import Codes, blank
from heckmanfa.data.columns.tally import OTHER
from heckmanfa.data.columns.values import (
    Levels,
    encoded_names,
    frame_as_declared,
    is_mark,
    is_plain_number,
    is_text,
    levels_of,
    one_case,
    to_numbers,
    with_columns,
)
from heckmanfa.errors import InputError
from heckmanfa.text.option_types import Missing, Unit
from heckmanfa.text.option_words import option, told
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import plural

Unknown = Literal["error", "missing"]
"""what to do with a level of a category that the fit did not have"""
UNSEEN_ADVICE = (
    f"Correct these cells, or pass {option('unknown', 'missing')} to count them as missing: a row "
    "that lacks a feature gets no prediction"
)
"""what to do about levels that the fit did not have"""


UNSEEN_ADVICE_FILLED = (
    f"Correct these cells, or pass {option('unknown', 'missing')} to count them as missing: the "
    "means of the fit then fill them"
)
"""the same, if means fill what is missing"""
_SHOWN = 5
_NAMED = 3
# A number and a unit.
_MEASURED = re.compile(r"[-+]?\d+(?:[.,]\d+)? ?([^\W\d_]+)\.?")


@dataclass(frozen=True)
class Encoding:
    """How each column of a table becomes numbers; `learn` makes it, `transform` applies it.

    Numbers stay as they are, and true and false become 1 and 0. A category becomes a dummy named
    ``column[level]`` for each level but the first, its reference.
    """

    sources: tuple[str, ...]
    """columns that a table must have, in the order of the fit"""
    levels: dict[str, tuple[str, ...]]
    """levels of each category, the reference first"""
    left_out: dict[str, str]
    """columns that are not features, and why"""
    missing: Missing
    """``"drop"`` leaves missing values as NaN; ``"mean"`` fills them"""
    means: dict[str, float]
    """mean of each encoded column over the rows of the fit that have it"""
    n_missing: dict[str, int]
    """rows of the fit in which a source was missing; sources without gaps are not listed"""
    decimal: str | None = None
    """decimal mark of the file of the fit; None if its numbers had no marks, or had types"""
    thousands: str | None = None
    """mark between thousands in that file, if the user named it"""
    percent: tuple[str, ...] = ()
    """sources that were percentages in that file, read without their sign"""
    can_override: tuple[str, ...] = ()
    """columns left out that the user can make numbers or categories"""
    dated: tuple[str, ...] = ()
    """columns left out that hold dates, which the user can make numbers"""
    money: dict[str, str] = field(default_factory=dict)
    """currency signs of the sources that had them in that file, read without them"""
    missing_codes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """values of sources that mean missing"""
    merged: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """rare levels of categories that have the level ``(other)``"""
    dates: dict[str, DateScale] = field(default_factory=dict)
    """sources of dates, and how they become numbers"""
    level_rows: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """rows of the fit that have each level, in the order of ``levels``; a level without rows is
    not known to the model, even if it has a dummy"""
    ignore_case: bool = False
    """whether levels that differ only in case or blanks are the same"""

    @classmethod
    def learn(
        cls,
        frame: pd.DataFrame,
        features: Sequence[str],
        *,
        categorical: Sequence[str] = (),
        numeric: Sequence[str] = (),
        missing: Missing = "drop",
        untyped: bool = False,
        missing_codes: Codes | None = None,
        dates: Unit | None = None,
        min_level_rows: int = 0,
        literal: Sequence[str] = (),
        ignore_case: bool = False,
    ) -> tuple[Self, pd.DataFrame]:
        """Learn from the rows of a fit, in memory, and return them encoded as by `transform`.

        Of ``features``, identifiers, constants, dates and long text are left out. The user has
        decided for ``categorical`` and ``numeric``; those that are not features do nothing.
        With ``missing="mean"``, a missing value of an encoded column becomes the column's mean over
        the rows that have it, here and in other rows. For the dummies of a category, that mean is
        the share of each level. ``untyped`` is as in `learn_columns`.

        ``missing_codes`` are values that mean missing, by column. ``dates`` makes numbers of
        dates: days or years since the earliest. Levels of a category with fewer than
        ``min_level_rows`` rows become one level, ``(other)``. In columns that are ``literal`` or
        ``categorical``, marks such as NA are levels. ``ignore_case`` makes levels that differ only
        in case or blanks one level, spelled as in most rows.
        """
        if missing not in ("drop", "mean"):
            raise InputError(f"missing must be 'drop' or 'mean'; got {quoted(missing)}")
        features = list(features)
        refuse_absent([*features, *categorical, *numeric], frame.columns)
        if twice := repeated(features):
            raise InputError(f"the feature {quoted(twice[0])} is named twice")
        refuse_far_more(len(features), len(frame))
        codes = {
            name: tuple(missing_codes[name])
            for name in features
            if missing_codes and name in missing_codes
        }
        frame = stored = blank(frame[features], codes).frame
        scales = {} if dates is None else scales_of(frame, dates, categorical)
        numbers = {
            name: pd.Series(scale.numbers(frame[name], name), index=frame.index)
            for name, scale in scales.items()
        }
        frame = with_columns(frame, numbers)
        known, as_numbers = {*features}, {*numeric, *scales}
        learned = learn_columns(
            frame,
            categorical=[name for name in categorical if name in known],
            # Days that count the rows are not an identifier.
            numeric=[name for name in features if name in as_numbers],
            untyped=untyped,
            literal=literal,
        )
        encoding = cls.of_columns(learned, missing, min_level_rows, ignore_case=ignore_case)
        encoding = replace(
            encoding,
            missing_codes={name: codes[name] for name in encoding.sources if name in codes},
            dates={name: scales[name] for name in encoding.sources if name in scales},
        )
        return encoding, encoding.transform(stored)

    @classmethod
    def of_columns(
        cls,
        learned: Sequence[LearnedColumn],
        missing: Missing,
        min_level_rows: int = 0,
        *,
        ignore_case: bool = False,
    ) -> Self:
        """Make an encoding from what was learned about each column, in the order of features."""
        if ignore_case:
            learned = [column.with_one_case() for column in learned]
        learned = [column.with_other(min_level_rows) for column in learned]
        used = [column for column in learned if column.kind.is_feature]
        left_out = [column.kind for column in learned if not column.kind.is_feature]
        if not used:
            reasons = "; ".join(f"{quoted(kind.name)} {kind.reason}" for kind in left_out[:_SHOWN])
            raise InputError(
                f"no column is left to fit a model with: {reasons or 'none was named'}"
            )
        levels = {
            column.kind.name: column.levels for column in used if column.kind.kind == "category"
        }
        return replace(
            cls.plain([column.kind.name for column in used], levels),
            left_out={kind.name: kind.reason for kind in left_out},
            missing=missing,
            means={name: mean for column in used for name, mean in column.means().items()},
            n_missing={column.kind.name: column.gaps for column in used if column.gaps},
            can_override=tuple(kind.name for kind in left_out if kind.can_override),
            dated=tuple(kind.name for kind in left_out if kind.is_dated),
            merged={column.kind.name: column.merged for column in used if column.merged},
            ignore_case=ignore_case,
        )

    @classmethod
    def plain(
        cls, sources: Sequence[str], levels: Mapping[str, tuple[str, ...]] | None = None
    ) -> Self:
        """Make an encoding that fills nothing and has counted nothing.

        Columns without ``levels`` are numbers. A dummy with the name of another column is refused.
        """
        made = cls(
            tuple(sources), dict(levels or {}), left_out={}, missing="drop", means={}, n_missing={}
        )
        refuse_same_names(made.columns)
        return made

    @property
    def columns(self) -> list[str]:
        """Names of the encoded columns, in order."""
        return [column for source in self.sources for column in self.columns_of(source)]

    @property
    def made_from(self) -> list[str]:
        """The source of each encoded column."""
        return [source for source in self.sources for _ in self.columns_of(source)]

    @property
    def positions(self) -> dict[str, tuple[int, ...]]:
        """Positions of the encoded columns that each source becomes."""
        ends = list(accumulate((len(self.columns_of(name)) for name in self.sources), initial=0))
        places = (tuple(range(start, end)) for start, end in pairwise(ends))
        return dict(zip(self.sources, places, strict=True))

    @property
    def dummy_positions(self) -> list[int]:
        """Positions of the dummies of categories."""
        groups = self.positions.items()
        return [place for name, group in groups if self.levels.get(name) for place in group]

    @property
    def groups(self) -> dict[str, list[str]]:
        """The dummies of each category, which a search may hold together."""
        return {name: self.columns_of(name) for name in self.levels}

    @property
    def has_rules(self) -> bool:
        """Whether it does more than to take numbers as they are."""
        return bool(self.levels or self.dates or self.missing_codes or self.missing == "mean")

    @property
    def references(self) -> dict[str, str]:
        """The level of each category that has no dummy."""
        return {name: levels[0] for name, levels in self.levels.items() if len(levels) > 1}

    @property
    def literal(self) -> list[str]:
        """Categories of which a level is a mark such as NA."""
        return [name for name, levels in self.levels.items() if any(map(is_mark, levels))]

    def of_sources(self, sources: Sequence[str]) -> Self:
        """Return the encoding of some of the sources, in this order."""
        return replace(
            self,
            sources=tuple(sources),
            levels={name: self.levels[name] for name in sources if name in self.levels},
            level_rows={name: self.level_rows[name] for name in sources if name in self.level_rows},
        )

    def known_levels(self, name: str) -> tuple[str, ...]:
        """Return the levels of a category that rows of the fit have, the reference first."""
        levels = self.levels[name]
        rows = self.level_rows.get(name, (1,) * len(levels))
        return tuple(level for level, n in zip(levels, rows, strict=True) if n)

    def as_fitted(self) -> Self:
        """Return the encoding for the rows of the fit, some of which it left out."""
        return replace(self, level_rows={})

    def columns_of(self, source: str) -> list[str]:
        """Names of the encoded columns that a source becomes."""
        return encoded_names(source, self.levels.get(source))

    def transform(self, frame: pd.DataFrame, *, unknown: Unknown = "error") -> pd.DataFrame:
        """Encode the rows of a table as float64; columns that the fit did not have are ignored.

        Missing values are NaN (in all dummies of a category), unless means fill them. ``unknown``
        is as in `codes`.
        """
        refuse_absent(self.sources, frame.columns)
        frame = frame_as_declared(frame[list(self.sources)])
        arrays: dict[str, Floats] = {}
        for name in self.sources:
            if name in self.levels:
                codes = self.codes(self.levels_in(frame[name], name), name, unknown)
                for column, code in self.dummies(name).items():
                    arrays[column] = np.where(codes < 0, np.nan, codes == code)
            else:
                arrays[name] = self.numbers(frame[name], name)
        if self.missing == "mean":
            for column, values in arrays.items():
                arrays[column] = np.where(np.isnan(values), self.means[column], values)
        # No copy into one block: the fit reads a column at a time.
        return pd.DataFrame(arrays, index=frame.index, copy=False)

    def numbers(self, series: pd.Series[Any], name: str) -> Floats:
        """Return a source of numbers or dates as float64, NaN where missing."""
        series = self._without_codes(series, name)
        if name in self.dates:
            return self._date_numbers(series, name)
        self._refuse_points(series, name)
        return to_numbers(series, name)

    def dummies(self, name: str) -> dict[str, int]:
        """Return the code of the level that each dummy of a category stands for."""
        first = 0 if len(self.levels[name]) == 1 else 1
        return {column: code for code, column in enumerate(self.columns_of(name), start=first)}

    def _date_numbers(self, series: pd.Series[Any], name: str) -> Floats:
        """Return a column of dates as numbers; refuse numbers, whose unit nobody knows."""
        if is_plain_number(series) and series.notna().any():
            raise InputError(
                f"column {quoted(name)} holds numbers, and held dates in the table of the fit; "
                "write dates, such as 2020-04-03"
            )
        return self.dates[name].numbers(series, name)

    def _refuse_points(self, series: pd.Series[Any], name: str) -> None:
        """Refuse text with points if commas were the decimal marks of the fit.

        Text of CSV and Excel files became numbers when it was read, so it does not get here.
        """
        if self.decimal != "," or not is_text(series):
            return
        if series.dropna().astype(str).str.contains(".", regex=False).any():
            raise InputError(
                f"column {quoted(name)} is text with points, and ',' was the decimal mark in the "
                "table of the fit; store it as numbers"
            )

    def levels_in(self, series: pd.Series[Any], name: str, *, literal: bool = False) -> Levels:
        """Find the levels that a category has in a table; ``literal`` is as in `levels_of`."""
        known = {*self.levels.get(name, ()), *self.merged.get(name, ())}
        try:
            return levels_of(self._without_codes(series, name), known, literal=literal)
        except TypeError as error:
            raise InputError(
                f"column {quoted(name)} holds lists or other objects, not levels"
            ) from error

    def _without_codes(self, series: pd.Series[Any], name: str) -> pd.Series[Any]:
        """Return a source in which the values that mean missing are missing."""
        if name not in self.missing_codes:
            return series
        return blank(series.to_frame(name), self.missing_codes).frame[name]

    def _known(self, name: str, labels: Sequence[str]) -> dict[str, int]:
        """Return the indices of those of some labels that are levels of a source, or merged."""
        fitted = {*self.known_levels(name)}
        known = {level: i for i, level in enumerate(self.levels[name]) if level in fitted}
        if OTHER in known:
            known |= dict.fromkeys(self.merged.get(name, ()), known[OTHER])
        if self.ignore_case:
            places = {one_case(level): place for level, place in known.items()}
            spelled = {label: places.get(one_case(label)) for label in labels}
            known |= {label: place for label, place in spelled.items() if place is not None}
        return known

    def unseen(self, frame: pd.DataFrame) -> list[str]:
        """Say in sentences which levels the fit did not have, if they count as missing."""
        said = []
        how = "count as missing" if self.missing == "drop" else "the means of the fit replace"
        rows = frame_as_declared(frame[[name for name in self.sources if name in self.levels]])
        for name in rows.columns:
            levels = self.levels_in(rows[name], name)
            known = self._known(name, levels.labels)
            counts = zip(levels.labels, levels.counts(), strict=True)
            others = {label: int(n) for label, n in counts if label not in known and n}
            if others:
                said.append(
                    f"{quoted(name)} holds levels that the model was not fitted with in "
                    f"{plural(sum(others.values()), 'row')}, which {how}: "
                    f"{quoted_list(sorted(others), _SHOWN)}."
                )
        return said

    def codes(self, levels: Levels, name: str, unknown: Unknown = "error") -> NDArray[Any]:
        """Return each row's index among the levels of the fit, -1 if missing.

        Levels that the fit did not have are refused, or missing if ``unknown`` says so.
        """
        known = self._known(name, levels.labels)
        unseen = [index for index, label in enumerate(levels.labels) if label not in known]
        if unseen and unknown == "error":
            counts = levels.counts()
            examples = [
                f"{quoted(levels.labels[index])} ({plural(int(counts[index]), 'row')}, the first "
                f"is row {int(np.argmax(levels.codes == index)) + 1} of the data)"
                for index in unseen[:_SHOWN]
            ]
            more = f" and {len(unseen) - _SHOWN} more" if len(unseen) > _SHOWN else ""
            raise InputError(
                f"column {quoted(name)} holds levels that the model was not fitted with: "
                f"{', '.join(examples)}{more}; known are "
                f"{quoted_list(self.known_levels(name), _SHOWN)}. "
                f"{UNSEEN_ADVICE if self.missing == 'drop' else UNSEEN_ADVICE_FILLED}"
            )
        smallest = np.min_scalar_type(-max(len(known), 1))
        codes = np.array([known.get(label, -1) for label in levels.labels] + [-1], dtype=smallest)
        return np.asarray(codes[levels.codes])

    def explain(self, left_out: Mapping[str, str] | None = None) -> list[str]:
        """Return sentences about how the columns were encoded.

        ``left_out`` gives reasons by column if a fit left out more columns than the encoding did.
        """
        left_out = self.reasons if left_out is None else left_out
        sources = [source for source in self.sources if source not in left_out]
        columns = [column for name in sources for column in self.columns_of(name)]
        n_numbers = sum(source not in self.levels for source in sources)
        n_categories = len(sources) - n_numbers
        kinds = [plural(n_numbers, "number")] if n_numbers else []
        if n_categories:
            kinds.append(plural(n_categories, "category", "categories"))
        sentences = [
            f"{plural(len(sources), 'column')} became {plural(len(columns), 'feature')}: "
            f"{' and '.join(kinds)}."
        ]
        categories = {name: self.levels[name] for name in self.levels if name not in left_out}
        if len(categories) > _SHOWN:
            first = [f"{quoted(name)} with {quoted(categories[name][0])}" for name in categories]
            sentences.append(
                "Each category became dummies, compared with its reference: "
                f"{', '.join(first[:_SHOWN])} and {len(first) - _SHOWN} more."
            )
        for name, levels in categories.items():
            if len(categories) <= _SHOWN:
                sentences.append(
                    f"The category {quoted(name)} became "
                    f"{plural(len(levels) - 1, 'dummy', 'dummies')}, "
                    f"compared with its reference, {quoted(levels[0])}."
                )
            unit = _unit_of(levels)
            if unit:
                sentences.append(
                    f"The levels of {quoted(name)} are numbers and {quoted(unit)}: to use them as "
                    "numbers, take that word out of its cells."
                )
            rare = self.merged.get(name)
            if rare:
                sentences.append(
                    f"{plural(len(rare), 'rare level')} of {quoted(name)} became {quoted(OTHER)}: "
                    f"{quoted_list(rare, _SHOWN)}."
                )
        if self.ignore_case and categories:
            sentences.append("Levels that differ only in case or blanks are one.")
        sentences += [
            f"The dates in {quoted(name)} became {scale.unit} since {scale.since}."
            for name, scale in self.dates.items()
        ]
        if self.n_missing:
            where = ", ".join(
                f"{quoted(name)} ({plural(count, 'row')})" for name, count in self.n_missing.items()
            )
            done = (
                "filled with the mean of the rows that have them (shares of the levels for "
                "categories), which makes standard errors too small"
                if self.missing == "mean"
                else "not filled"
            )
            sentences.append(f"Missing values were {done}: {where}.")
        return [*sentences, *self.explain_left_out(left_out)]

    @property
    def reasons(self) -> dict[str, str]:
        """Why columns are left out, and the options that make numbers of dates."""
        hint = told(f" ({option('dates', 'years')} or {option('dates', 'days')})", keywords=True)
        return {name: why + hint * (name in self.dated) for name, why in self.left_out.items()}

    def explain_left_out(self, left_out: Mapping[str, str]) -> list[str]:
        """Say in sentences why columns are not features, and how to use them all the same."""
        sentences = [f"Left out: {quoted(name)} {reason}." for name, reason in left_out.items()]
        if self.can_override:
            names = " or ".join(quoted(name) for name in self.can_override)
            which = names if len(self.can_override) <= _NAMED else "such a column"
            if len(self.can_override) == len(self.left_out):
                which = "a column"
            ways = told(f"{option('numeric')} or {option('categorical')}", keywords=True)
            sentences.append(f"To use {which} all the same, pass it to {ways}.")
        return sentences


def refuse_same_names(columns: Sequence[str]) -> None:
    """Refuse dummies that would have the name of another column."""
    if twice := repeated(columns):
        raise InputError(
            f"two features would be called {quoted(twice[0])}: a dummy and a column; rename the "
            "column"
        )


def _unit_of(levels: Sequence[str]) -> str:
    """Return the word that follows a number in every level, as in "3 years"; empty if none does."""
    matches = [_MEASURED.fullmatch(level.strip()) for level in levels if level != OTHER]
    words = {match[1] if match else "" for match in matches}
    # A single letter is more likely part of a code, such as 4a.
    word = words.pop() if len(words) == 1 else ""
    return word if len(matches) > _NAMED and len(word) > 1 else ""
