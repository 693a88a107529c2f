"""Trimming bounds: the effect of a treatment on those observed whichever way they are treated.

Lee (2009), "Training, wages, and sample selection", Review of Economic Studies 76. If treatment
can only make an outcome more likely to be observed (or only less), those observed in the group
that is observed less often would be in the other, too. In the group that is observed more often a
share p of the observed would not: at worst these have the lowest outcomes, or the highest. Cutting
off the share p from above, or below, leaves means between which that of the others must lie.

A share is cut off exactly: of rows that tie at the quantile only the part that is needed. Cells of
covariates tighten the bounds: each is trimmed by itself, and their effects are averaged by how
many of the always observed are in each.

With k = 1 - p, q the quantile at k, and mu the mean of what is left below it, a row pulls k mu by
(y - q) 1{y <= q} + k (q - mu), and k pulls mu by (q - mu) / k. Without weights and clusters the
variances of these pulls are those of Lee's Proposition 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.model.worst_case import Codes, Ends, Estimate, SeenRows, average

Direction = Literal["treated", "untreated"]
"""which group is observed more often"""


class Cell(NamedTuple):
    """Rows with the same covariates, as trimming sees them."""

    share: float
    """of all rows"""
    treated: float
    """share of the treated that is observed"""
    untreated: float
    trimmed: float
    """share of the observed that is cut off, in the group that is observed more often"""
    contradicts: bool
    """whether the other group is observed more often here"""


@dataclass(frozen=True, eq=False)
class Trimmed:
    """The ends of an effect on the always observed."""

    ends: Ends
    direction: Direction
    cells: tuple[Cell, ...]
    always: float
    """share of all rows that is always observed"""
    trimmed: float
    """share of the observed that is cut off, in all cells together"""


def trim(
    rows: SeenRows,
    treated: Mask,
    cells: Codes,
    n_cells: int,
    direction: Direction | None = None,
) -> Trimmed:
    """Bound the effect of treatment on the always observed.

    Every cell has treated and untreated rows. Without a ``direction``, the group whose share
    observed is larger in all rows is trimmed; a cell that contradicts it is not trimmed.
    """
    if direction is None:
        one, zero = (_seen_share(rows, chosen) for chosen in (treated, ~treated))
        direction = "treated" if one.value >= zero.value else "untreated"
    found = [_trim_cell(rows, treated, cells == code, direction) for code in range(n_cells)]
    # Rows per always observed row pull the weights of the cells, too.
    total = sum(part.always.value for part in found)
    ends = []
    for place in range(2):
        value = sum(part.ends[place].value * part.always.value for part in found) / total
        pull = np.zeros(len(rows.outcome))
        for part in found:
            pull += part.ends[place].pull * (part.always.value / total)
            pull += part.always.pull * ((part.ends[place].value - value) / total)
        ends.append(Estimate(float(value), pull))
    seen = sum(part.cell.share * getattr(part.cell, direction) for part in found)
    return Trimmed(
        ends=Ends(*ends),
        direction=direction,
        cells=tuple(part.cell for part in found),
        always=float(total),
        trimmed=float(1.0 - total / seen),
    )


class _CellEnds(NamedTuple):
    """The effect in a cell, and the share of all rows that is in it and always observed."""

    ends: Ends
    always: Estimate
    cell: Cell


def _trim_cell(rows: SeenRows, treated: Mask, inside: Mask, direction: Direction) -> _CellEnds:
    more = treated if direction == "treated" else ~treated
    share = average(inside.astype(np.float64), rows.weight)
    often, seldom = (_seen_share(rows, inside & chosen) for chosen in (more, ~more))
    contradicts = often.value < seldom.value
    least = often if contradicts else seldom
    always = Estimate(
        share.value * least.value, share.pull * least.value + share.value * least.pull
    )
    cell = Cell(
        share.value,
        *((often.value, seldom.value) if direction == "treated" else (seldom.value, often.value)),
        0.0 if contradicts or not often.value else 1.0 - seldom.value / often.value,
        contradicts,
    )
    if not least.value:
        # Nobody here is always observed, so the cell has no weight.
        nothing = Estimate(0.0, np.zeros(len(rows.outcome)))
        return _CellEnds(Ends(nothing, nothing), always, cell)
    kept = Estimate(1.0, np.zeros(len(rows.outcome)))
    if not contradicts:
        ratio = seldom.value / often.value
        kept = Estimate(ratio, (seldom.pull - ratio * often.pull) / often.value)
    other = average(rows.outcome, rows.weight * (rows.seen & inside & ~more))
    trimmed = Ends(*(_trimmed_mean(rows, inside & more, kept, sign) for sign in (1.0, -1.0)))
    whole = Ends(other, other)
    ends = trimmed.minus(whole) if direction == "treated" else whole.minus(trimmed)
    return _CellEnds(ends, always, cell)


def _seen_share(rows: SeenRows, inside: Mask) -> Estimate:
    """Return the share of some rows that is observed."""
    return average(rows.seen.astype(np.float64), rows.weight * inside)


def _trimmed_mean(rows: SeenRows, inside: Mask, kept: Estimate, sign: float) -> Estimate:
    """Return the mean of the lowest share ``kept`` of the observed outcomes of some rows.

    A sign of -1 takes the highest.
    """
    weight = rows.weight * (rows.seen & inside)
    values = sign * rows.outcome
    share = kept.value
    left, cut = keep_lowest(values, weight, share)
    mean = float(left @ values / left.sum())
    # At the cut both ways of counting a tie agree: (y - q) is zero.
    below = np.minimum(values - cut, 0.0) + share * (cut - mean)
    pull = weight / weight.sum() * below / share + kept.pull * ((cut - mean) / share)
    return Estimate(sign * mean, sign * pull)


def keep_lowest(values: Floats, weight: Floats, share: float) -> tuple[Floats, float]:
    """Return the weights (n,) that are left of the lowest share of some values, and the last value.

    Of rows that tie there, and of the row that is split, a part is left.
    """
    order = np.argsort(values, kind="stable")
    order = order[weight[order] > 0]
    reached = np.cumsum(weight[order])
    wanted = share * reached[-1]
    before = np.concatenate([[0.0], reached[:-1]])
    left = np.zeros(len(values))
    left[order] = np.clip(wanted - before, 0.0, weight[order])
    last = int(np.searchsorted(reached, wanted * (1.0 - 1e-12)))
    return left, float(values[order[min(last, len(order) - 1)]])
