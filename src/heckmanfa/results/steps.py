"""Which step of a feature an effect is of: one unit, or a round number near its spread.

A step is one unit if the standard deviation among the rows with an outcome is 2 to 50 units.
Otherwise it is 1, 2 or 5 times a power of ten: the largest that is at most a little more than that
standard deviation, as the spread of a skewed column is more than most of its values are apart.
Columns of whole numbers never have less than one, the smallest step that they can take. With
sampling weights the compressed data do not tell which these are, and columns with a spread of a
small count are taken for one. A column of 0 and 1, and a level of a category, have one step.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.errors import InputError
from heckmanfa.fit import Fit
from heckmanfa.model.linalg import column_norms
from heckmanfa.model.moments import Moments
from heckmanfa.results.average_tables import has_pseudo_weights
from heckmanfa.text.labels import one_unit, with_unit
from heckmanfa.text.printable import quoted

# Between these spreads, one unit is a step that readers know and that rows take.
_FEWEST, _MOST = 2.0, 50.0
# Numbers of children and the like are spread by at least this.
_COUNT = 0.3
# A step is at most so many standard deviations: those of standardised columns, which are about one
# among the rows with an outcome, are one.
_BEYOND = 1.25
_ROUND = (5.0, 2.0, 1.0)
# Sums that are whole numbers are so up to this share, and cannot be told apart from others if that
# is more than a small part of one.
_ROUNDING, _TOLD = 1e-12, 0.01
# Steps of fewer or more digits are written with an exponent.
_SMALLEST, _LARGEST = 1e-7, 1e15


def round_step(spread: float, *, whole: bool | None = False) -> float:
    """Return the step of a column with this standard deviation; one if that is not known.

    ``whole`` says that the column holds whole numbers only, or is None if that is not known.

    >>> [round_step(spread) for spread in (2.28, 0.144, 26_000, 1.03)]
    [1.0, 0.1, 20000.0, 1.0]
    """
    if not math.isfinite(spread) or spread <= 0.0 or _FEWEST <= spread <= _MOST:
        return 1.0
    if spread < _FEWEST and (spread >= _COUNT if whole is None else whole):
        return 1.0
    most = _BEYOND * spread * (1.0 + 1e-9)
    power = math.floor(math.log10(most))
    leading = most / 10.0**power
    digit = next((digit for digit in _ROUND if digit <= leading), 1.0)
    # As it is written: 2 times ten to the power of -1 is 0.2 to the last bit.
    return float(f"{digit:g}e{power}")


def steps_of(fit: Fit, single: Collection[int]) -> tuple[float, ...]:
    """Return the step of each column of X, (K,); those of ``single`` columns are one."""
    whole = None if has_pseudo_weights(fit) else whole_columns(fit.moments)
    return tuple(
        1.0
        if column in single
        else round_step(float(spread), whole=None if whole is None else column in whole)
        for column, spread in enumerate(spreads_of(fit))
    )


def spreads_of(fit: Fit) -> Floats:
    """Return standard deviations among the rows with an outcome, (K,).

    A column that does not vary there has that of all rows, if it is in the selection equation.
    NaN where a column is in neither equation.
    """
    moments = fit.moments
    k, m = len(moments.columns), moments.n_selected
    # Sampling weights sum to anything.
    spare = m if has_pseudo_weights(fit) or m <= 1.0 else m - 1.0
    spreads = np.full(moments.n_features, np.nan)
    squares = column_norms(moments.factor[1:, 1 : k + 1]) ** 2
    spreads[list(moments.columns)] = np.sqrt(squares / spare)
    if fit.probit is not None:
        constant = {*moments.constant_columns()}
        for column, scale in zip(fit.probit.features, fit.probit.coordinates.scale, strict=True):
            if column in constant:
                spreads[column] = scale
    return spreads


def whole_columns(moments: Moments) -> frozenset[int]:
    """Find the columns that hold only whole numbers among the rows with an outcome.

    The sums of such a column and of its squares are whole numbers. Those of other columns are so
    by coincidence only.
    """
    k, first = len(moments.columns), float(moments.factor[0, 0])
    total = np.abs(moments.factor[0, 1 : k + 1] * first)
    squares = column_norms(moments.factor[:, 1 : k + 1]) ** 2
    about_mean = column_norms(moments.factor[1:, 1 : k + 1]) ** 2 * first**2
    # Both are whole; far from zero, the squares about the mean have fewer digits to lose.
    second = np.minimum(squares, about_mean)
    are_whole = _is_whole(total) & _is_whole(second)
    return frozenset(np.asarray(moments.columns, dtype=int)[are_whole].tolist())


def _is_whole(sums: Floats) -> Mask:
    tolerance = np.maximum(_ROUNDING * sums, 1e-9)
    return np.asarray((np.abs(sums - np.round(sums)) <= tolerance) & (tolerance <= _TOLD))


def read_step(column: str, step: Any, where: str) -> float:
    """Return a step that a user gives for a column; refuse what is not a positive number.

    ``where`` is the option that it is from.
    """
    try:
        value = math.nan if isinstance(step, bool) else float(step)
    except (TypeError, ValueError):
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise InputError(
            f"{where}: the step of {quoted(column)} must be a number above 0, as in "
            f"1000; got {quoted(step)}"
        )
    return value


def step_text(step: float) -> str:
    """Write a step with all its digits: "10,000", "0.1"."""
    if not _SMALLEST <= step < _LARGEST:
        return f"{step:g}"
    digits = np.format_float_positional(step, trim="-")
    units, point, decimals = digits.partition(".")
    return f"{int(units):,}{point}{decimals}"


def more_of(column: str, step: float) -> str:
    """Say how much more of a column a step is: "one more", "0.1 more", "10,000 dollars more"."""
    unit = one_unit(column)
    if step == 1.0:
        return f"one more {unit}" if unit else "one more"
    return f"{with_unit(step_text(step), column)} more"
