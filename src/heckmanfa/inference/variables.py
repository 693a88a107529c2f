"""The variables of formulas, and what moving one does to the columns that formulas make.

A variable and its square, its spline or its interactions move together, since the formulas
themselves are evaluated at moved values; slopes are central differences of that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.formula.expressions import parse_factor
from heckmanfa.data.formula.matrix import is_numeric
from heckmanfa.data.rows import Mask
from heckmanfa.errors import HeckmanfaError, InputError
from heckmanfa.inference.targets import with_ones
from heckmanfa.text.printable import quoted

if TYPE_CHECKING:
    from heckmanfa.data.formula.design import Equation

# Near the cube root of the machine's precision a central difference is best.
_STEP = 6e-6
# A step follows the size of the value, but stays within these parts of the variable's spread.
_SMALLEST, _LARGEST = 1e-3, 1.0


class Move(NamedTuple):
    """What a change does to rows of the design: slopes of its columns, or what they become."""

    slopes: Floats | None = None
    """(n, 1 + k), or (1, 1 + k) where they are the same in every row"""
    before: Floats | None = None
    after: Floats | None = None
    """(n, 1 + k)"""


class Use(NamedTuple):
    """How a factor of a formula uses variables."""

    factor: str
    names: list[str]
    categories: list[Any] | None
    """levels of the variable, where the factor is a variable of categories"""
    jumps: bool
    """whether a small move of a number can move the factor by a jump"""


def uses_of(equation: Equation, frame: pd.DataFrame, terms: set[str] | None = None) -> list[Use]:
    """Find out how a formula uses the columns of a frame.

    Parameters
    ----------
    equation : Equation
    frame : DataFrame
    terms : set of str, optional
        Look at these terms only.

    Returns
    -------
    list of Use
        One for each factor, in the order of the formula.
    """
    return [
        _use(factor.expr, equation.encodings.get(factor.expr, ("", None))[1], frame)
        for term in equation.spec().formula
        if terms is None or str(term) in terms
        for factor in term.factors
        if factor.eval_method.value != "literal"
    ]


def moved_columns(
    equation: Equation,
    made_by: dict[str, list[str]],
    frame: pd.DataFrame,
    columns: dict[str, int],
) -> tuple[set[str], dict[str, frozenset[int]]]:
    """Find out which columns of a model an equation's variables move, from its terms.

    Parameters
    ----------
    equation : Equation
    made_by : dict
        Names of the columns that each of its terms makes.
    frame : DataFrame
    columns : dict
        Positions, by name, of the columns that the fitted equation holds.

    Returns
    -------
    terms : set of str
        Those with a column in the equation.
    moved_by : dict
        The positions of columns that are functions of each variable.
    """
    terms: set[str] = set()
    moved_by: dict[str, frozenset[int]] = {}
    for term, made in made_by.items():
        held = frozenset(columns[one] for one in made if one in columns)
        if held:
            terms.add(term)
            for use in uses_of(equation, frame, {term}):
                for name in use.names:
                    moved_by[name] = moved_by.get(name, frozenset()) | held
    return terms, moved_by


def _use(expression: str, categories: list[Any] | None, frame: pd.DataFrame) -> Use:
    if expression in frame:
        return Use(expression, [expression], categories, False)
    tree, found = parse_factor(expression)
    names = [name for name in found if name in frame]
    of_variable = (
        isinstance(tree, ast.Call)
        and ast.unparse(tree.func) == "C"
        and isinstance(tree.args[0], ast.Name)
    )
    jumps = any(isinstance(node, ast.Compare) for node in ast.walk(tree))
    if categories is not None and not of_variable:
        categories, jumps = None, True
    return Use(expression, names, categories, jumps)


@dataclass(frozen=True)
class FormulaColumns:
    """Makes the design of one equation or both from a frame of variables."""

    design: FormulaDesign
    columns: list[int]
    """those of the model's columns that are needed"""
    prediction: bool
    selection: bool
    moved_by: dict[str, frozenset[int]] = field(default_factory=dict)
    """those of the model's columns that are functions of each variable"""

    def still(self, name: str) -> Mask:
        """(1 + k,) whether each column of the design stays as it is when a variable moves."""
        moved = self.moved_by.get(name, frozenset())
        return np.array([True, *(column not in moved for column in self.columns)])

    def of(self, frame: pd.DataFrame) -> Floats:
        """Return the design, of shape (n, 1 + k); rows of NaN where the formulas give NaN."""
        with np.errstate(invalid="ignore", divide="ignore"):
            made = self.design.transform(
                frame, prediction=self.prediction, selection=self.selection
            )
        return with_ones(made.to_numpy()[:, self.columns])

    def of_each(self, frames: Sequence[pd.DataFrame]) -> list[Floats]:
        """Return the designs of several frames, by one evaluation of the formulas."""
        ends = np.cumsum([len(frame) for frame in frames])[:-1]
        return np.split(self.of(pd.concat(frames, ignore_index=True)), ends)

    def near(self, frame: pd.DataFrame, name: str, values: Sequence[Floats]) -> list[Floats]:
        """Return designs with other values of a number; NaN where these leave its domain."""
        moved = [frame.assign(**{name: one}) for one in values]
        try:
            return self.of_each(moved)
        except HeckmanfaError:
            low, high = frame[name].min(), frame[name].max()
            return [self._within(one, one[name].between(low, high).to_numpy()) for one in moved]

    def _within(self, frame: pd.DataFrame, inside: Mask) -> Floats:
        """Return the design; where the formulas refuse the frame, that of some rows of it.

        Some functions refuse a whole column for one value, as a spline does beyond its bounds.
        """
        try:
            return self.of(frame)
        except HeckmanfaError:
            design = np.full((len(frame), 1 + len(self.columns)), np.nan)
            if inside.any():
                design[inside] = self.of(frame[inside])
            return design


@dataclass(frozen=True)
class Variable:
    """A variable of the formulas."""

    name: str
    levels: list[Any] | None
    """the base and the other levels; None for a number, whose effect is a slope"""
    spread: float
    """standard deviation of a number"""

    def words(self) -> list[str]:
        """Say each of its changes in words."""
        if self.levels is None:
            return ["slope"]
        said = [str(int(one)) if isinstance(one, bool) else str(one) for one in self.levels]
        return [f"{said[0]} to {one}" for one in said[1:]]

    def moves(self, frame: pd.DataFrame, design: Floats, columns: FormulaColumns) -> Iterator[Move]:
        """Yield what each of its changes does to the design of a frame."""
        still = columns.still(self.name)
        if self.levels is None:
            slopes = np.zeros_like(design)
            if not still.all():
                # Differences of columns that do not depend on the variable are rounding errors.
                slopes = np.where(still, 0.0, self._slopes(frame, design, columns))
            yield Move(slopes=slopes)
            return
        before, *others = (
            np.where(still, design, columns.of(frame.assign(**{self.name: level})))
            for level in self.levels
        )
        for after in others:
            yield Move(before=before, after=after)

    def _slopes(self, frame: pd.DataFrame, design: Floats, columns: FormulaColumns) -> Floats:
        x = frame[self.name].to_numpy(dtype=np.float64)
        step = _STEP * np.clip(np.abs(x), _SMALLEST * self.spread, _LARGEST * self.spread)
        step = (x + step) - x
        above, below = columns.near(frame, self.name, [x + step, x - step])
        slopes = (above - below) / ((x + step) - (x - step))[:, None]
        for side, there, back in ((1, above, below), (-1, below, above)):
            # At the edge of the domain: a parabola through three points on one side.
            edge = np.isnan(there).any(axis=1) & ~np.isnan(back).any(axis=1)
            if edge.any():
                rows = frame.iloc[np.flatnonzero(edge)].reset_index(drop=True)
                (far,) = columns.near(rows, self.name, [(x - 2 * side * step)[edge]])
                rise = 3.0 * design[edge] - 4.0 * back[edge] + far
                slopes[edge] = side * rise / (2.0 * step[edge])[:, None]
        without = np.count_nonzero(np.isnan(slopes).any(axis=1))
        if without:
            raise InputError(
                f"{quoted(self.name)} has no slope in {without} rows: the formulas give NaN or "
                "infinity "
                "near its values there. Leave these rows out, or name other features."
            )
        return np.asarray(slopes)


def read_variable(
    name: str, frame: pd.DataFrame, uses: list[Use], columns: FormulaColumns
) -> Variable:
    """Settle whether a variable has a slope or levels.

    Parameters
    ----------
    name : str
    frame : DataFrame
        Complete rows.
    uses : list of Use
    columns : FormulaColumns

    Returns
    -------
    Variable
    """
    column = frame[name]
    categories = _categories(name, uses)
    if categories is None and not is_numeric(column):
        categories = sorted(column.unique(), key=str)
    if categories is not None:
        return Variable(name, _base_first(name, list(categories), frame, columns), np.nan)
    if pd.api.types.is_bool_dtype(column):
        return Variable(name, [False, True], np.nan)
    x = column.to_numpy(dtype=np.float64)
    if np.all((x == 0) | (x == 1)):
        return Variable(name, [0, 1], np.nan)
    spread = float(np.std(x))
    return Variable(name, None, spread or float(np.abs(x[0])) or 1.0)


def _categories(name: str, uses: list[Use]) -> list[Any] | None:
    return next(
        (use.categories for use in uses if use.names == [name] and use.categories is not None),
        None,
    )


def _base_first(
    name: str, levels: list[Any], frame: pd.DataFrame, columns: FormulaColumns
) -> list[Any]:
    """Put the level first whose dummies are all zero; not every coding has one."""
    row = frame.iloc[:1]
    designs = np.vstack(columns.of_each([row.assign(**{name: level}) for level in levels]))
    dummies = designs[:, np.any(designs != designs[0], axis=0)]
    base = int(np.argmax(np.all(dummies == 0, axis=1)))
    return [levels[base], *levels[:base], *levels[base + 1 :]]


def at_means(frame: pd.DataFrame, weight: Floats, uses: list[Use]) -> tuple[pd.DataFrame, Floats]:
    """Put numbers at their means; one row, with its weight, for each set of categories there is.

    The average of the design over these rows is the design at the means.
    """
    kept = []
    for name in frame.columns:
        column = frame[name]
        numeric = is_numeric(column) and not pd.api.types.is_bool_dtype(column)
        if numeric and _categories(name, uses) is None:
            frame = frame.assign(**{name: weight @ column.to_numpy(dtype=np.float64)})
        else:
            kept.append(name)
    if not kept:
        return frame.iloc[:1], np.ones(1)
    codes = frame.groupby(kept, sort=False, observed=True).ngroup().to_numpy()
    _, first = np.unique(codes, return_index=True)
    shares = np.bincount(codes, weights=weight).astype(np.float64)
    return frame.iloc[first].reset_index(drop=True), shares
