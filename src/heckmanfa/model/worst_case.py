"""Worst-case bounds: what rows say about outcomes of which some are missing, assuming nothing.

An outcome that is missing may be anything in its range [l, u] (Manski, 1989). A mean then lies
between those of the outcomes with every gap filled by l, and by u. A coefficient of the linear
projection on x, e_j' M^-1 E[x y] with M = E[x x'], is a mean of a_i y_i with a_i = e_j' M^-1 x_i.
It is largest where a gap is u if a_i > 0 and l otherwise: the support function of the identified
set in the direction e_j (Beresteanu and Molinari, 2008). All these bounds are sharp.

Each end of a region is an `Estimate`, which says how far every row pulls it; its standard error
follows from the pulls (`Sampling`). By the envelope theorem, the choice of l or u has no part in
them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg as sla

from heckmanfa.data.arrays import Floats
from heckmanfa.data.group_cells import Cells
from heckmanfa.data.rows import Mask
from heckmanfa.model.unit_totals import squares_of_totals
from heckmanfa.text.option_types import WeightKind

Span = tuple[float, float]
Codes = NDArray[np.intp]
Relation = Literal["higher", "lower"]
"""whether rows with an outcome have a mean at least, or at most, as high as the others"""

# A quantile's standard error is read off its 95% interval (Woodruff, 1952).
_REACH = 1.959963984540054


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Rows whose outcome may be missing."""

    outcome: Floats
    """(n,) zero where missing"""
    seen: Mask
    """(n,) whether the outcome is known"""
    weight: Floats
    """(n,) above zero"""

    def filled(self, value: float | Floats) -> Floats:
        """Return the outcomes (n,) with a value in every gap."""
        return np.where(self.seen, self.outcome, value)

    def weighing(self, weight: Floats) -> SeenRows:
        """Return the same rows with other weights."""
        return SeenRows(self.outcome, self.seen, weight)


class Estimate(NamedTuple):
    """A number, and how far each row pulls it: its influence, times its share of the rows."""

    value: float
    pull: Floats
    """(n,) sums to zero"""

    def minus(self, other: Estimate) -> Estimate:
        """Return the difference of two numbers of the same rows."""
        return Estimate(self.value - other.value, self.pull - other.pull)


class Ends(NamedTuple):
    """The lower and the upper end of what is known of a number."""

    low: Estimate
    high: Estimate

    def minus(self, other: Ends) -> Ends:
        """Return the ends of the difference of two numbers, about which nothing joint is known."""
        return Ends(self.low.minus(other.high), self.high.minus(other.low))


@dataclass(frozen=True, eq=False)
class Sampling:
    """How rows were drawn, and so how estimates vary."""

    weight: Floats
    """(n,)"""
    kind: WeightKind = "frequency"
    """whether a weight counts rows, or is one over the probability of being drawn"""
    units: Codes | None = None
    """(n,) the cluster, or the sampling unit of a survey; None if rows are independent"""
    cells: Cells | None = None
    """what units belong to; None if rows are independent"""

    @property
    def seen(self) -> Mask:
        """Which units have a row."""
        assert self.units is not None
        assert self.cells is not None
        return np.bincount(self.units, minlength=self.cells.n) > 0

    def n_draws(self, inside: Mask) -> float:
        """Count what was drawn of some rows: clusters or units if there are any, or rows."""
        if self.cells is not None:
            assert self.units is not None
            seen = np.bincount(self.units[inside], minlength=self.cells.n) > 0
            return min(self.cells.counts(seen))
        return float(self.weight[inside].sum() if self.kind == "frequency" else inside.sum())

    def error(self, pull: Floats) -> float:
        """Return the standard error of an estimate, with the usual small-sample factor."""
        # Squares of large numbers would overflow, and those of small ones vanish.
        largest = float(np.abs(pull).max())
        return largest * self._error(pull / largest) if largest > 0 else self._error(pull)

    def _error(self, pull: Floats) -> float:
        if self.cells is not None:
            assert self.units is not None
            totals = np.zeros((self.cells.n, 1))
            np.add.at(totals[:, 0], self.units, pull)
            return float(np.sqrt(squares_of_totals(self.cells, totals, self.seen)[0, 0]))
        if self.kind == "frequency":
            n, squares = float(self.weight.sum()), float(np.sum(pull**2 / self.weight))
        else:
            n, squares = float(len(pull)), float(pull @ pull)
        return float(np.sqrt(squares * n / (n - 1.0))) if n > 1 else float("nan")


def average(values: Floats, weight: Floats) -> Estimate:
    """Return the mean of some values (n,); rows of weight zero are not in it."""
    shares = weight / weight.sum()
    mean = float(shares @ values)
    return Estimate(mean, shares * (values - mean))


def mean_ends(
    rows: SeenRows, inside: Mask | None, span: Span, missing: Relation | None = None
) -> Ends:
    """Return the ends of the mean outcome of the rows ``inside``, by default of all.

    If rows with an outcome have the ``missing`` relation to the others, their mean is an end.
    """
    weight = rows.weight if inside is None else rows.weight * inside
    low, high = (average(rows.filled(value), weight) for value in span)
    if missing is None:
        return Ends(low, high)
    seen = average(rows.outcome, weight * rows.seen)
    return Ends(low, seen) if missing == "higher" else Ends(seen, high)


def effect_ends(rows: SeenRows, treated: Mask, span: Span) -> Ends:
    """Return the ends of the mean of y1 - y0 over all rows, each of which shows one of them."""
    one, zero = (
        mean_ends(SeenRows(rows.outcome, rows.seen & chosen, rows.weight), None, span)
        for chosen in (treated, ~treated)
    )
    return one.minus(zero)


class QuantileEnd(NamedTuple):
    """One end of a quantile: its value, and its standard error, NaN where it is infinite."""

    value: float
    std_error: float


def quantile_ends(
    rows: SeenRows, inside: Mask | None, q: float, span: Span, sampling: Sampling
) -> tuple[QuantileEnd, QuantileEnd]:
    """Return the ends of a quantile: of the outcomes with all gaps below, and above, the others.

    Standard errors are half the interval that the errors of the distribution function give, over
    1.96.
    """
    weight = rows.weight if inside is None else rows.weight * inside
    ends = []
    for value in span:
        filled = rows.filled(value)
        found = _quantile(filled, weight, q)
        pull = average((filled <= found).astype(np.float64), weight).pull
        reach = _REACH * sampling.error(pull)
        sides = (abs(_quantile(filled, weight, q + side) - found) for side in (-reach, reach))
        known = [side for side in sides if np.isfinite(side)]
        error = np.mean(known) / _REACH if known and np.isfinite(found) else np.nan
        ends.append(QuantileEnd(found, float(error)))
    return ends[0], ends[1]


def _quantile(values: Floats, weight: Floats, q: float) -> float:
    """Return the smallest value at which the weighted distribution function reaches q."""
    order = np.argsort(values, kind="stable")
    order = order[weight[order] > 0]
    reached = np.cumsum(weight[order])
    # Shares that are equal on paper may differ in the last digit.
    wanted = min(max(q, 0.0), 1.0) * reached[-1] * (1.0 - 1e-12)
    return float(values[order[min(int(np.searchsorted(reached, wanted)), len(order) - 1)]])


def projection_ends(rows: SeenRows, design: Floats, span: Span) -> list[Ends]:
    """Return the ends of every coefficient of the projection on the columns of a design (n, k)."""
    root = np.sqrt(rows.weight)
    q, r = sla.qr(root[:, None] * design, mode="economic")
    # Row j holds how far each outcome moves coefficient j.
    moves = sla.solve_triangular(r, q.T) * root
    ends = []
    for place, move in enumerate(moves):
        rises = move > 0
        filled = (rows.filled(np.where(rises, *pair)) for pair in (span, span[::-1]))
        low, high = (_coefficient(place, moves, design, outcome) for outcome in filled)
        ends.append(Ends(low, high))
    return ends


def _coefficient(place: int, moves: Floats, design: Floats, outcome: Floats) -> Estimate:
    """Return a coefficient of the projection of an outcome without gaps."""
    coef = moves @ outcome
    return Estimate(float(coef[place]), moves[place] * (outcome - design @ coef))
