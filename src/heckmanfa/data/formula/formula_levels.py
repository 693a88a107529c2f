"""The categories of formulas: levels that rows of a fit have, and a reference among them.

formulaic takes the levels of all rows that it gets, and those that a category declares, and the
first of them is the reference. So the columns are changed before it sees them: they declare the
levels of the rows that are fitted, and other rows get one of these.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from formulaic import Formula
from numpy.typing import NDArray

from heckmanfa.data.columns.values import label_of, with_columns
from heckmanfa.data.fitted_levels import level_named, reference_first
from heckmanfa.data.formula.expressions import columns_in, parse_factor
from heckmanfa.data.formula.matrix import is_numeric, is_time, refuse_nested
from heckmanfa.data.rows import ArrayRows, Mask, Rows
from heckmanfa.errors import InputError, UnknownFeatureError
from heckmanfa.text.option_words import option
from heckmanfa.text.printable import quoted, quoted_list
from heckmanfa.text.wording import nearest

_SHOWN = 5


class ReferenceLostError(Exception):
    """No row of a category's reference is left in a fit."""

    def __init__(self, levels: dict[str, Any]) -> None:
        super().__init__("no row of a reference is left")
        self.levels = levels
        """the first level that is left, by column"""


@dataclass(frozen=True, eq=False)
class FactorRows:
    """The levels of a column that a formula takes as a category."""

    levels: list[Any]
    """the reference first, unless the formula says what the contrasts are"""
    codes: NDArray[Any]
    """(n,) index of each row's level; -1 if missing"""
    plain: bool
    """whether the first level is the reference"""


def factors_in(formulas: Iterable[Formula], frame: pd.DataFrame) -> dict[str, bool]:
    """Return the columns that are categories of formulas.

    The values say whether their first level is the reference, so no formula names contrasts.
    """
    factors: dict[str, bool] = {}
    for expression, column in chain.from_iterable(
        columns_in(formula, frame, "C") for formula in formulas
    ):
        bare = expression in frame
        if is_time(column) or (bare and is_numeric(column)):
            continue
        refuse_nested(column)
        # Numbers that became a category to move its reference would not be numbers elsewhere.
        plain = bare or (_is_plain(expression) and not is_numeric(column))
        factors[str(column.name)] = plain and factors.get(str(column.name), True)
    return factors


def _is_plain(expression: str) -> bool:
    """Whether C() has a column and nothing else."""
    call = parse_factor(expression)[0]
    return isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords


def read_factor_references(
    factors: Mapping[str, bool], frame: pd.DataFrame, reference: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the level that the user names as the reference of each category, or refuse it."""
    asked: dict[str, Any] = {}
    for name, value in (reference or {}).items():
        if name not in factors:
            near = nearest(str(name), factors) or f"; they have {quoted_list([*factors], _SHOWN)}"
            raise UnknownFeatureError(
                f"{option('reference')}: the formulas have no category "
                f"{quoted(name)}{near if factors else ''}"
            )
        if not factors[name]:
            raise InputError(
                f"{option('reference')} names {quoted(name)}, whose reference the formulas "
                f"choose: write C({name}, contr.treatment({value!r}))"
            )
        levels = {label_of(level): level for level in frame[name].dropna().unique()}
        asked[name] = level_named(name, value, dict(sorted(levels.items())))
    return asked


def declare_fitted_levels(
    frame: pd.DataFrame, factors: Mapping[str, bool], fitted: Mask, asked: Mapping[str, Any]
) -> pd.DataFrame:
    """Return a frame whose categories have the levels of the rows that are ``fitted``."""
    new: dict[str, Any] = {}
    for name in factors:
        column = frame[name]
        have = _in_order(column, fitted)
        if not have:
            continue
        order = reference_first(name, have, asked)
        lost = column.notna() & ~column.isin(have)
        declared = isinstance(column.dtype, pd.CategoricalDtype)
        unused = declared and len(column.cat.categories) > len(have)
        if not (lost.any() or unused or name in asked):
            continue
        # Rows that are not fitted may hold anything.
        values = column.astype(object if declared else column.dtype).mask(lost, have[0])
        if declared or name in asked:
            values = pd.Series(pd.Categorical(values, order), index=frame.index, name=name)
        new[name] = values
    return with_columns(frame, new) if new else frame


def _in_order(column: pd.Series[Any], fitted: Mask) -> list[Any]:
    """Return the levels of some rows, in the order that formulaic would give them."""
    present = column[fitted].dropna().unique()
    if isinstance(column.dtype, pd.CategoricalDtype):
        return [level for level in column.cat.categories if level in {*present}]
    try:
        return sorted(present)
    except TypeError:
        # Numbers and text together.
        return sorted(present, key=str)


def factor_rows(
    factors: Mapping[str, bool], frame: pd.DataFrame, rows: Mask
) -> dict[str, FactorRows]:
    """Return the levels of categories in the rows of a fit."""
    by_column = {}
    for name, plain in factors.items():
        values = pd.Categorical(frame[name][rows], _in_order(frame[name], rows))
        by_column[name] = FactorRows(list(values.categories), np.asarray(values.codes), plain)
    return by_column


class FactorsLeft:
    """Notes which levels have no rows left after others were decided."""

    def __init__(self, factors: Mapping[str, FactorRows]) -> None:
        self._factors = factors
        self.lost: dict[str, list[Any]] = {}
        """levels without rows, by column"""

    def __call__(self, rows: Rows) -> None:
        """Count rows by level; raise `ReferenceLostError` if a reference has none left."""
        assert isinstance(rows, ArrayRows)
        used = np.asarray(rows.used, dtype=bool)
        moved: dict[str, Any] = {}
        for name, factor in self._factors.items():
            counts = _counts(factor, used)
            lost = [level for level, n in zip(factor.levels, counts, strict=True) if not n]
            if lost:
                self.lost[name] = lost
            if factor.plain and not counts[0] and counts.any():
                moved[name] = factor.levels[int(np.flatnonzero(counts)[0])]
        if moved:
            raise ReferenceLostError(moved)


def _counts(factor: FactorRows, used: Mask) -> NDArray[np.intp]:
    codes = factor.codes[used]
    return np.bincount(codes[codes >= 0], minlength=len(factor.levels))
