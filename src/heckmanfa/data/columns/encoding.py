"""From the columns of a table to the numbers that a model is fitted with, and again later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.columns.declared import frame_as_stored
from heckmanfa.data.columns.features import nearest
from heckmanfa.data.columns.kinds import Kind, can_be_asked_for, decide_kinds
from heckmanfa.data.columns.values import (
    Levels,
    as_number,
    infinite_values,
    is_text,
    levels_of,
    to_numbers,
)
from heckmanfa.errors import InputError, MissingValueError, UnknownFeatureError
from heckmanfa.text.printable import quoted

__all__ = ["Encoding", "order_levels", "refuse_absent", "refuse_same_names"]

_SHOWN = 5
_NAMED = 3


@dataclass(frozen=True)
class Encoding:
    """How each column of a table becomes numbers; `learn` makes one, `transform` applies it.

    A number stays one, and true and false become 1 and 0. A category becomes a dummy named
    ``column[level]`` for each level but the most frequent, its reference.
    """

    sources: tuple[str, ...]
    """columns that a table must have, in the order of the fit"""
    levels: dict[str, tuple[str, ...]]
    """of each category, the reference first"""
    left_out: dict[str, str]
    """columns that are no features, and why"""
    missing: str
    """``"drop"`` leaves what is missing as NaN; ``"mean"`` fills it"""
    means: dict[str, float]
    """of each encoded column over the rows of the fit that have it"""
    n_missing: dict[str, int]
    """in how many rows of the fit each source was missing, where it was"""
    decimal: str | None = None
    """the decimal mark of the file of the fit; None where its numbers had no marks, or types"""
    thousands: str | None = None
    """the mark between thousands there, where the user said so"""
    percent: tuple[str, ...] = ()
    """sources that were in per cent there, and of which the sign was left out"""

    @classmethod
    def learn(
        cls,
        frame: pd.DataFrame,
        features: Sequence[str],
        *,
        categorical: Sequence[str] = (),
        numeric: Sequence[str] = (),
        missing: str = "drop",
        untyped: bool = False,
    ) -> tuple[Self, pd.DataFrame]:
        """Learn from the rows of a fit.

        Parameters
        ----------
        frame : DataFrame
        features : sequence of str
            Columns to use; identifiers, constants, dates and long text among them are left out.
        categorical, numeric : sequence of str
            Columns for which the user has decided; those not among ``features`` do nothing.
        missing : {"drop", "mean"}
            With "mean", a missing number becomes the mean of the rows that have it, and each
            dummy of a missing category the share of its level among the rows that have one: in
            every way the mean of the encoded column, here and whenever other rows are encoded.
        untyped : bool
            Whether text that spells numbers is numbers, as in CSV and Excel files, which have no
            types; see `decide_kinds`.

        Returns
        -------
        encoding : Encoding
        encoded : DataFrame
            What `transform` makes of the same rows.
        """
        if missing not in ("drop", "mean"):
            raise InputError(f"missing must be 'drop' or 'mean'; got {quoted(missing)}")
        features = list(features)
        refuse_absent(frame, [*features, *categorical, *numeric])
        twice = sorted({one for one in features if features.count(one) > 1})
        if twice:
            raise InputError(f"the feature {quoted(twice[0])} is named twice")
        frame = frame_as_stored(frame[features])
        kinds = decide_kinds(
            frame,
            categorical=[one for one in categorical if one in features],
            numeric=[one for one in numeric if one in features],
            untyped=untyped,
        )
        plain = cls.of_kinds(
            {name: kinds[name] for name in features}, lambda name: _ordered(frame[name])
        )
        encoded = plain.transform(frame)
        return cls._filled(plain, missing, encoded)

    @classmethod
    def of_kinds(cls, kinds: dict[str, Kind], levels: Callable[[str], tuple[str, ...]]) -> Self:
        """Make an encoding that fills nothing from what each column is.

        Parameters
        ----------
        kinds : dict of str to Kind
            In the order of the features.
        levels : callable
            Returns those of a category, the reference first.

        Returns
        -------
        Encoding
            Without means and counts of what is missing.
        """
        used = [name for name, one in kinds.items() if one.kind in ("number", "category")]
        if not used:
            said = "; ".join(
                f"{quoted(one.name)} {one.reason}" for one in list(kinds.values())[:_SHOWN]
            )
            raise InputError(f"no column is left to fit a model with: {said or 'none was named'}")
        plain = cls(
            sources=tuple(used),
            levels={name: levels(name) for name in used if kinds[name].kind == "category"},
            left_out={name: one.reason for name, one in kinds.items() if name not in used},
            missing="drop",
            means={},
            n_missing={},
        )
        refuse_same_names(plain.columns)
        return plain

    @classmethod
    def of_numbers(cls, columns: Sequence[str]) -> Self:
        """Make an encoding of columns that are numbers already, and pass as they are.

        Parameters
        ----------
        columns : sequence of str

        Returns
        -------
        Encoding
        """
        return cls(tuple(columns), {}, left_out={}, missing="drop", means={}, n_missing={})

    @classmethod
    def _filled(
        cls, plain: Encoding, missing: str, encoded: pd.DataFrame
    ) -> tuple[Self, pd.DataFrame]:
        for name in plain.sources:
            if name not in plain.levels and np.isinf(encoded[name].to_numpy()).any():
                raise MissingValueError(infinite_values(name))
        holes = {name: int(encoded[name].isna().sum()) for name in plain.columns}
        first = {name: plain._columns_of(name)[0] for name in plain.sources}
        encoding = cls(
            sources=plain.sources,
            levels=plain.levels,
            left_out=plain.left_out,
            missing=missing,
            means={name: float(encoded[name].mean()) for name in plain.columns},
            n_missing={name: holes[one] for name, one in first.items() if holes[one]},
        )
        if missing == "mean" and encoding.n_missing:
            encoded = encoded.fillna(encoding.means)
        return encoding, encoded

    @property
    def columns(self) -> list[str]:
        """Names of the encoded columns, in order."""
        return [one for name in self.sources for one in self._columns_of(name)]

    @property
    def groups(self) -> dict[str, list[str]]:
        """The dummies of each category, which a search may hold together."""
        return {name: self._columns_of(name) for name in self.levels}

    @property
    def references(self) -> dict[str, str]:
        """The level of each category that has no dummy."""
        return {name: levels[0] for name, levels in self.levels.items()}

    def _columns_of(self, name: str) -> list[str]:
        if name not in self.levels:
            return [name]
        return [f"{name}[{level}]" for level in self.levels[name][1:]]

    def transform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Encode the rows of a table.

        Parameters
        ----------
        frame : DataFrame
            With the columns of the fit; others are ignored.

        Returns
        -------
        DataFrame
            Of float64, with the columns of the fit in their order and the rows of ``frame``. NaN
            where something is missing (in all dummies of a category), unless means fill it.
        """
        refuse_absent(frame, self.sources)
        frame = frame_as_stored(frame[list(self.sources)])
        arrays: dict[str, Floats] = {}
        for name in self.sources:
            if name in self.levels:
                codes = self._codes(frame[name], name)
                for place, column in enumerate(self._columns_of(name), start=1):
                    arrays[column] = np.where(codes < 0, np.nan, codes == place)
            else:
                self._refuse_points(frame[name], name)
                arrays[name] = to_numbers(frame[name], name)
        if self.missing == "mean":
            for column, values in arrays.items():
                arrays[column] = np.where(np.isnan(values), self.means[column], values)
        # Not copied into one block: the fit reads a column at a time.
        return pd.DataFrame(arrays, index=frame.index, copy=False)

    def _refuse_points(self, series: pd.Series[Any], name: str) -> None:
        """Refuse text with points where the fit took commas for decimal marks.

        Text of CSV and Excel files has become numbers when it was read, and needs nothing here.
        """
        if self.decimal != "," or not is_text(series):
            return
        if series.dropna().astype(str).str.contains(".", regex=False).any():
            raise InputError(
                f"column {quoted(name)} is text with points, and ',' was the decimal mark in the "
                "table of the fit; store it as numbers"
            )

    def _codes(self, series: pd.Series[Any], name: str) -> Any:
        """Return each row's place among the levels, -1 where missing; refuse levels never seen."""
        found = _levels(series, name)
        known = {level: place for place, level in enumerate(self.levels[name])}
        unseen = [place for place, label in enumerate(found.labels) if label not in known]
        if unseen:
            counts = found.counts()
            said = [
                f"{quoted(found.labels[place])} ({_count(int(counts[place]), 'row')}, the first "
                "is row "
                f"{int(np.argmax(found.codes == place)) + 1} of the data)"
                for place in unseen[:_SHOWN]
            ]
            more = f" and {len(unseen) - _SHOWN} more" if len(unseen) > _SHOWN else ""
            raise InputError(
                f"column {quoted(name)} holds levels that the model was not fitted with: "
                f"{', '.join(said)}{more}; known are {_list(self.levels[name])}"
            )
        places = np.array([known[label] for label in found.labels] + [-1], dtype=np.intp)
        return places[found.codes]

    def explain(self, left_out: Mapping[str, str] | None = None) -> list[str]:
        """Say in sentences what became of the columns.

        Parameters
        ----------
        left_out : mapping of str to str, optional
            Columns that are in no equation, and why, where a fit left out more than these.

        Returns
        -------
        list of str
        """
        left_out = self.left_out if left_out is None else left_out
        sources = [one for one in self.sources if one not in left_out]
        columns = [one for name in sources for one in self._columns_of(name)]
        n_numbers = sum(one not in self.levels for one in sources)
        n_categories = len(sources) - n_numbers
        kinds = [_count(n_numbers, "number")] if n_numbers else []
        if n_categories:
            kinds.append(_count(n_categories, "category", "categories"))
        said = [
            f"{_count(len(sources), 'column')} became {_count(len(columns), 'feature')}: "
            f"{' and '.join(kinds)}."
        ]
        for name, levels in self.levels.items():
            if name in left_out:
                continue
            said.append(
                f"The category {quoted(name)} became "
                f"{_count(len(levels) - 1, 'dummy', 'dummies')}, "
                f"compared with its most frequent level, {quoted(levels[0])}."
            )
        if self.n_missing:
            where = ", ".join(
                f"{quoted(name)} ({_count(count, 'row')})" for name, count in self.n_missing.items()
            )
            done = (
                "filled with the mean of the rows that have them (shares of the levels for "
                "categories), which makes standard errors too small"
                if self.missing == "mean"
                else "left missing"
            )
            said.append(f"Missing values were {done}: {where}.")
        said += [f"Left out: {quoted(name)} {reason}." for name, reason in left_out.items()]
        others = [name for name, reason in self.left_out.items() if can_be_asked_for(reason)]
        if others:
            listed = " or ".join(quoted(one) for one in others)
            which = listed if len(others) <= _NAMED else "such a column"
            if len(others) == len(self.left_out):
                which = "a column"
            said.append(f"To use {which} all the same, pass it to --numeric or --categorical.")
        return said


def _levels(series: pd.Series[Any], name: str) -> Levels:
    try:
        return levels_of(series)
    except TypeError as error:
        raise InputError(
            f"column {quoted(name)} holds lists or other objects, not levels"
        ) from error


def _ordered(series: pd.Series[Any]) -> tuple[str, ...]:
    found = _levels(series, str(series.name))
    declared = None
    if isinstance(series.dtype, pd.CategoricalDtype):
        declared = levels_of(pd.Series(series.cat.categories)).labels
    return order_levels(dict(zip(found.labels, found.counts(), strict=True)), declared)


def order_levels(
    counts: Mapping[str, int], declared: Sequence[str] | None = None
) -> tuple[str, ...]:
    """Order the levels, the most frequent first, then as declared, by size, or by alphabet.

    Parameters
    ----------
    counts : mapping of str to int
        How many rows have each level.
    declared : sequence of str, optional
        Levels in the order in which the data declares them.

    Returns
    -------
    tuple of str
    """
    if declared is not None:
        order = [one for one in declared if one in counts]
    else:
        numbers = {one: as_number(one) for one in counts}
        order = sorted(counts)
        if None not in numbers.values():
            order.sort(key=lambda one: numbers[one] or 0.0)
    reference = max(order, key=lambda one: counts[one])
    return (reference, *(one for one in order if one != reference))


def refuse_absent(frame: pd.DataFrame, names: Sequence[str]) -> None:
    """Refuse a table that lacks some columns, and name them all."""
    there = [str(one) for one in frame.columns]
    absent = list(dict.fromkeys(one for one in names if one not in there))
    if absent:
        hint = nearest(absent[0], there) if len(absent) == 1 else ""
        raise UnknownFeatureError(
            f"the data has no column{'s' if len(absent) > 1 else ''} "
            + ", ".join(quoted(one) for one in absent)
            + hint
        )


def refuse_same_names(columns: Sequence[str]) -> None:
    """Refuse dummies that would be called like another column."""
    twice = sorted({one for one in columns if columns.count(one) > 1})
    if twice:
        raise InputError(
            f"two features would be called {quoted(twice[0])}: a dummy and a column; rename the "
            "column"
        )


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def _list(levels: Sequence[str]) -> str:
    more = f" and {len(levels) - _SHOWN} more" if len(levels) > _SHOWN else ""
    return ", ".join(quoted(one) for one in levels[:_SHOWN]) + more
