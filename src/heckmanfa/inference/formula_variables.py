"""The variables of formulas, and how a change in one moves the columns that formulas make.

A variable moves together with its square, its spline and its interactions, since the formulas are
evaluated again at other values. Slopes are central differences.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from heckmanfa.data.arrays import Floats
from heckmanfa.data.formula.design import FormulaDesign
from heckmanfa.data.formula.expressions import parse_factor
from heckmanfa.data.formula.matrix import is_numeric
from heckmanfa.data.rows import Mask
from heckmanfa.errors import HeckmanfaError, InputError
from heckmanfa.inference.effect_cells import Change, fixed_level, fixed_number
from heckmanfa.inference.expectations import with_ones
from heckmanfa.text.printable import quoted

if TYPE_CHECKING:
    from heckmanfa.data.formula.design import Equation

# A central difference is most accurate near the cube root of the machine's precision.
_STEP = 6e-6
# A step scales with the value, but stays between these multiples of the variable's spread.
_SMALLEST, _LARGEST = 1e-3, 1.0


class Use(NamedTuple):
    """How a factor of a formula uses variables."""

    factor: str
    names: list[str]
    categories: list[Any] | None
    """levels of the variable, if the factor is a categorical variable"""
    jumps: bool
    """whether a small change in a number can make the factor jump"""


def uses_of(
    equation: Equation,
    frame: pd.DataFrame,
    terms: set[str] | None = None,
    *,
    lost: Mapping[str, list[Any]] = MappingProxyType({}),
) -> list[Use]:
    """Return how each factor of a formula, or of some of its terms, uses the columns of a frame.

    ``lost`` are levels that the model does not know, by column.
    """
    uses = [
        _use(factor.expr, equation.encodings.get(factor.expr, ("", None))[1], frame)
        for term in equation.spec().formula
        if terms is None or str(term) in terms
        for factor in term.factors
        if factor.eval_method.value != "literal"
    ]
    return [_known(use, lost) for use in uses]


def _known(use: Use, lost: Mapping[str, list[Any]]) -> Use:
    gone = [level for name in use.names for level in lost.get(name, ())]
    if use.categories is None or not gone:
        return use
    left = [level for level in use.categories if level not in gone]
    return Use(use.factor, use.names, left, use.jumps)


def _use(expression: str, categories: list[Any] | None, frame: pd.DataFrame) -> Use:
    if expression in frame:
        return Use(expression, [expression], categories, False)
    tree, variables = parse_factor(expression)
    names = [name for name in variables if name in frame]
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

    formulas: FormulaDesign
    columns: list[int]
    """the k columns of the model that are needed"""
    prediction: bool
    selection: bool
    moved_by: dict[str, frozenset[int]]
    """the columns of the model that are functions of each variable"""

    def unmoved(self, name: str) -> Mask:
        """(1 + k,) whether each column of the design does not depend on a variable."""
        moved = self.moved_by.get(name, frozenset())
        return np.array([True, *(column not in moved for column in self.columns)])

    def design_of(self, frame: pd.DataFrame) -> Floats:
        """Return the design (n, 1 + k), with NaN where the formulas give NaN."""
        with np.errstate(invalid="ignore", divide="ignore"):
            made = self.formulas.transform(
                frame, prediction=self.prediction, selection=self.selection
            )
        return with_ones(made.to_numpy()[:, self.columns])

    def designs_of(self, frames: Sequence[pd.DataFrame]) -> list[Floats]:
        """Return the designs of several frames from one evaluation of the formulas."""
        ends = np.cumsum([len(frame) for frame in frames])[:-1]
        return np.split(self.design_of(pd.concat(frames, ignore_index=True)), ends)

    def at_values(self, frame: pd.DataFrame, name: str, values: Sequence[Floats]) -> list[Floats]:
        """Return designs with other values of a number; NaN where these leave its domain."""
        moved = [frame.assign(**{name: column}) for column in values]
        try:
            return self.designs_of(moved)
        except HeckmanfaError:
            low, high = frame[name].min(), frame[name].max()
            return [
                self._design_within(rows, rows[name].between(low, high).to_numpy())
                for rows in moved
            ]

    def _design_within(self, frame: pd.DataFrame, inside: Mask) -> Floats:
        """Return the design; only that of the rows inside if the formulas refuse the frame.

        Some functions refuse a whole column because of one value, as a spline does beyond its
        bounds.
        """
        try:
            return self.design_of(frame)
        except HeckmanfaError:
            design = np.full((len(frame), 1 + len(self.columns)), np.nan)
            if inside.any():
                design[inside] = self.design_of(frame[inside])
            return design


@dataclass(frozen=True)
class Variable:
    """A variable of the formulas."""

    name: str
    levels: list[Any] | None
    """the base and the other levels; None for a number, whose effect is a slope"""
    spread: float = np.nan
    """standard deviation of a number"""

    def contrasts(self) -> list[tuple[str, tuple[Any, Any] | None]]:
        """Return each change in words, with its levels before and after; None for a slope."""
        if self.levels is None:
            return [("slope", None)]
        base, *others = self.levels
        return [(f"{level_words(base)} to {level_words(level)}", (base, level)) for level in others]

    def change_design(
        self, frame: pd.DataFrame, design: Floats, columns: FormulaColumns
    ) -> Iterator[Change]:
        """Yield what each change does to the design of a frame."""
        unmoved = columns.unmoved(self.name)
        if self.levels is None:
            slopes = np.zeros_like(design)
            if not unmoved.all():
                # Differences of columns that do not depend on the variable are rounding errors.
                slopes = np.where(unmoved, 0.0, self._slopes(frame, design, columns))
            yield Change(slopes=slopes)
            return
        before, *others = (
            np.where(unmoved, design, columns.design_of(frame.assign(**{self.name: level})))
            for level in self.levels
        )
        for after in others:
            yield Change(before=before, after=after)

    def _slopes(self, frame: pd.DataFrame, design: Floats, columns: FormulaColumns) -> Floats:
        x = frame[self.name].to_numpy(dtype=np.float64)
        step = _STEP * np.clip(np.abs(x), _SMALLEST * self.spread, _LARGEST * self.spread)
        step = (x + step) - x
        above, below = columns.at_values(frame, self.name, [x + step, x - step])
        slopes = (above - below) / ((x + step) - (x - step))[:, None]
        for side, there, back in ((1, above, below), (-1, below, above)):
            # At the edge of the domain: a parabola through three points on one side.
            edge = np.isnan(there).any(axis=1) & ~np.isnan(back).any(axis=1)
            if edge.any():
                rows = frame.iloc[np.flatnonzero(edge)].reset_index(drop=True)
                (far,) = columns.at_values(rows, self.name, [(x - 2 * side * step)[edge]])
                rise = 3.0 * design[edge] - 4.0 * back[edge] + far
                slopes[edge] = side * rise / (2.0 * step[edge])[:, None]
        without = np.count_nonzero(np.isnan(slopes).any(axis=1))
        if without:
            raise InputError(
                f"{quoted(self.name)} has no slope in {without} rows: the formulas give NaN or "
                "infinity near its values there. Leave these rows out, or name other features."
            )
        return np.asarray(slopes)


def level_words(level: Any) -> str:
    """Write a level as tables do: true and false are 1 and 0."""
    return str(int(level)) if isinstance(level, bool) else str(level)


def read_variable(
    name: str, frame: pd.DataFrame, uses: list[Use], columns: FormulaColumns
) -> Variable:
    """Decide from complete rows whether a variable has a slope or levels."""
    column = frame[name]
    categories = _categories(name, uses)
    if categories is None and not is_numeric(column):
        categories = sorted(column.unique(), key=str)
    if categories is not None:
        return Variable(name, _base_first(name, list(categories), frame, columns))
    if pd.api.types.is_bool_dtype(column):
        return Variable(name, [False, True])
    x = column.to_numpy(dtype=np.float64)
    if np.all((x == 0) | (x == 1)):
        return Variable(name, [0, 1])
    spread = float(np.std(x))
    return Variable(name, None, spread or float(np.abs(x[0])) or 1.0)


def _categories(name: str, uses: list[Use]) -> list[Any] | None:
    return next(
        (use.categories for use in uses if use.names == [name] and use.categories is not None),
        None,
    )


def fixed_values(
    name: str, values: Sequence[Any], frame: pd.DataFrame, uses: list[Use]
) -> list[Any]:
    """Return the values that a variable is fixed at as its column would hold them."""
    column = frame[name]
    categories = _categories(name, uses)
    if categories is None and not is_numeric(column):
        categories = sorted(column.unique(), key=str)
    if categories is not None:
        return [categories[fixed_level(name, value, categories)] for value in values]
    numbers = [fixed_number(name, value) for value in values]
    if not pd.api.types.is_bool_dtype(column):
        return list(numbers)
    return [bool(fixed_level(name, value, [0, 1])) for value in numbers]


def _base_first(
    name: str, levels: list[Any], frame: pd.DataFrame, columns: FormulaColumns
) -> list[Any]:
    """Put first the level whose dummies are all zero; not every coding has one."""
    row = frame.iloc[:1]
    designs = np.vstack(columns.designs_of([row.assign(**{name: level}) for level in levels]))
    dummies = designs[:, np.any(designs != designs[0], axis=0)]
    base = int(np.argmax(np.all(dummies == 0, axis=1)))
    return [levels[base], *levels[:base], *levels[base + 1 :]]


def at_means(frame: pd.DataFrame, weight: Floats, uses: list[Use]) -> tuple[pd.DataFrame, Floats]:
    """Set numbers to their means; return a row, with its weight, for each set of categories.

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
