"""Weights of one over the probability of selection, and what they leave of the rows.

The weights are computed a block of rows at a time. Their probabilities are estimated, and the
covariance of a weighted regression allows for that: the probit's equations and the weighted normal
equations are stacked (Newey and McFadden, 1994, 6.1; Wooldridge, 2007). It also allows for the
leverage that large weights give to few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from heckmanfa.data.arrays import Floats, highest, lowest
from heckmanfa.data.rows import Block, Mask, Merge, Positions, Rows, pick, total
from heckmanfa.model.covariance import CovarianceKind
from heckmanfa.model.leverage import Regressions, Uncertainty, leveraged_sandwich
from heckmanfa.model.linalg import solve_upper, with_constant
from heckmanfa.model.moments import Moments
from heckmanfa.model.normal import log_cdf, log_cdf_and_mills
from heckmanfa.model.probit import Probit, stacked_scores

_LARGEST_EXPONENT = 700.0
_LARGEST_SHARE = 0.01
# Log weights are counted in cells this wide: a share of weight is exact to about one percent of it.
_CELL = 1.0 / 256.0
_N_CELLS = 5120
_FIRST_CELL = 1024
"""that of a weight of one: sampling weights may be smaller"""
_LARGEST_COUNTED = 1e6


@dataclass(frozen=True)
class Bounds:
    """What is done about large weights."""

    clip: float
    """the largest weight: larger ones are capped at it"""
    trim: float | None = None
    """rows whose probability is below this are left out"""

    def weights(self, log_probability: Floats) -> tuple[Floats, Mask, Mask]:
        """Return weights, which of them were capped, and which rows were left out."""
        # A weight too large for a float is capped in any case.
        inverse = np.exp(np.minimum(-log_probability, _LARGEST_EXPONENT))
        capped = inverse > self.clip
        low = np.zeros(len(inverse), dtype=bool)
        if self.trim is not None:
            low = np.asarray(log_probability < np.log(self.trim))
        return np.where(low, 0.0, np.minimum(inverse, self.clip)), capped & ~low, low


@dataclass(frozen=True)
class Overlap:
    """How the weight of the rows with an outcome is spread over them."""

    n_rows: float
    """rows with an outcome that keep a weight"""
    n_capped: int
    """of these, rows whose weight was capped"""
    n_dropped: int
    """rows with an outcome that were left out, since they were unlikely to have one"""
    share_capped: float
    """share of the weight that the capped rows carry"""
    share_dropped: float
    """share of the weight, before any was dropped or capped, that dropped rows had"""
    largest: float
    """largest weight before capping"""
    effective: float
    """(sum of weights)^2 / sum of squared weights"""
    share_largest: float
    """share of the weight that the largest 1% of weights carry"""
    lowest: float
    """smallest probability of selection among the rows that keep a weight"""
    highest: float
    """the largest"""
    n_low: int = 0
    """rows left out in all, with or without an outcome"""


@dataclass(frozen=True)
class WeightSums:
    """Sums over rows that an `Overlap` follows from; those of blocks are added."""

    sums: Floats
    """rows, capped, dropped, and left out in all; weight, its square, that of capped rows, and
    inverse probabilities of all rows and of dropped ones"""
    largest: float
    """weight before capping"""
    ends: tuple[float, float]
    """smallest and largest log probability of rows that keep a weight"""
    cells: Floats
    """(2, cells) rows and their weight, by the logarithm of the weight"""

    @classmethod
    def of(
        cls,
        log_probability: Floats,
        selected: Mask,
        given: Floats | None,
        bounds: Bounds,
        *,
        sampling: bool,
    ) -> WeightSums:
        """Add up rows; weights that were ``given`` count rows, or multiply theirs if sampling."""
        n_low = float(np.count_nonzero(bounds.weights(log_probability)[2]))
        log_probability = log_probability[selected]
        given = np.ones(len(selected)) if given is None else given
        given, one = given[selected], np.ones(len(log_probability))
        count, factor = (one, given) if sampling else (given, one)
        inverse, capped, low = bounds.weights(log_probability)
        weight, kept = factor * inverse, ~low
        place = np.log(np.where(low, 1.0, weight)) / _CELL + _FIRST_CELL
        at = np.clip(place, 0, _N_CELLS - 1).astype(int)[kept]
        rows, mass = count[kept], (count * weight)[kept]
        cells = [np.bincount(at, values, _N_CELLS) for values in (rows, mass)]
        before = np.exp(np.minimum(-log_probability, _LARGEST_EXPONENT))
        # Infinite weights would leave no shares.
        all_mass = given * np.minimum(before, _LARGEST_COUNTED)
        sums = [
            rows.sum(),
            np.count_nonzero(capped),
            np.count_nonzero(low),
            n_low,
            mass.sum(),
            (count * weight**2).sum(),
            (count * weight)[capped].sum(),
            all_mass.sum(),
            all_mass[low].sum(),
        ]
        ends = lowest(log_probability[kept]), highest(log_probability[kept])
        largest = float("inf") if np.isneginf(log_probability).any() else before.max(initial=1.0)
        return cls(np.array(sums, dtype=np.float64), float(largest), ends, np.array(cells))

    @staticmethod
    def merged(parts: list[WeightSums]) -> WeightSums:
        """Add the sums of blocks."""
        return WeightSums(
            np.sum([part.sums for part in parts], axis=0),
            float(max(part.largest for part in parts)),
            (min(part.ends[0] for part in parts), max(part.ends[1] for part in parts)),
            np.sum([part.cells for part in parts], axis=0),
        )

    def overlap(self) -> Overlap:
        """Return what the sums say."""
        n, capped, dropped, low, weight, squares, of_capped, before, of_dropped = self.sums
        return Overlap(
            n_rows=float(n),
            n_capped=int(capped),
            n_dropped=int(dropped),
            share_capped=_ratio(of_capped, weight),
            share_dropped=_ratio(of_dropped, before),
            largest=float(self.largest),
            effective=_ratio(weight**2, squares),
            share_largest=self._share_largest(),
            lowest=float(np.exp(self.ends[0])),
            highest=float(np.exp(self.ends[1])),
            n_low=int(low),
        )

    def _share_largest(self) -> float:
        """Share of weight of the largest 1% of rows, counted from the heaviest cell down."""
        rows, mass = self.cells[:, ::-1]
        wanted = _LARGEST_SHARE * rows.sum()
        before = np.cumsum(rows) - rows
        with np.errstate(divide="ignore", invalid="ignore"):
            taken = np.where(rows > 0, np.clip((wanted - before) / rows, 0.0, 1.0), 0.0)
        return _ratio(float(taken @ mass), float(mass.sum()))


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole > 0 else float("nan")


def measure_overlap(rows: Rows, probit: Probit, bounds: Bounds, *, sampling: bool) -> Overlap:
    """Measure the weights of some rows, in one pass."""
    args = (probit, bounds, sampling)
    parts = rows.map(_count, *args, columns=probit.features, merge=WeightSums.merged)
    return WeightSums.merged(list(parts)).overlap()


def _count(block: Block, probit: Probit, bounds: Bounds, sampling: bool) -> WeightSums:
    log_probability = log_cdf(_index(block, probit))
    return WeightSums.of(log_probability, block.selected, block.weight, bounds, sampling=sampling)


@dataclass(frozen=True)
class WeightedRows:
    """Rows whose weights are multiplied by one over the probability of being selected.

    The weights are computed block by block in every pass, so rows need not be in memory.
    """

    rows: Rows
    probit: Probit
    """the selection equation"""
    bounds: Bounds

    def map(
        self,
        function: Callable[..., Any],
        *args: Any,
        columns: Positions,
        merge: Merge | None = None,
    ) -> Iterator[Any]:
        """Yield what a function returns for each block, weighted."""
        columns = list(columns)
        features = self.probit.features
        read = [*columns, *(feature for feature in features if feature not in columns)]
        positions = [read.index(feature) for feature in features]
        weighting = (self.probit, self.bounds, positions, len(columns))
        return self.rows.map(_weigh, weighting, function, args, columns=read, merge=merge)


def _weigh(
    block: Block,
    weighting: tuple[Probit, Bounds, list[int], int],
    function: Callable[..., Any],
    args: tuple[Any, ...],
) -> Any:
    """Call a function on a block with its weights."""
    probit, bounds, positions, width = weighting
    selecting = replace(block, features=pick(block.features, positions))
    inverse = bounds.weights(log_cdf(_index(selecting, probit)))[0]
    weight = np.where(block.selected, inverse, 1.0)
    if block.weight is not None:
        weight = weight * block.weight
    features = pick(block.features, list(range(width)))
    return function(replace(block, features=features, weight=weight), *args)


def _index(block: Block, probit: Probit) -> Floats:
    index: Floats = probit.coordinates.design(block.features).times(probit.inner_coef)
    return index


# The covariance of a weighted regression. ---------------------------------------------------------


@dataclass(frozen=True)
class WeightedEquations:
    """The probit's and the weighted regression's equations at their estimates."""

    probit: Probit
    bounds: Bounds
    selection: list[int]
    """positions of the probit's features among a block's columns"""
    prediction: list[int]
    coef: Floats
    """(1 + J,) of the regression, intercept first"""
    inverse_root: Floats
    """of the triangular factor of its weighted columns"""

    def scores(self, block: Block) -> Floats:
        """Scores of each row, of the probit, then of the regression, and r, (b, p + 2j).

        r is the row of the weighted design, as `heckmanfa.model.leverage.Regressions` has it.
        """
        p, j = len(self.selection) + 1, len(self.coef)
        scores, index = stacked_scores(block, self.probit, self.selection, p + 2 * j)
        chosen = block.selected
        weight = self.bounds.weights(log_cdf(index[chosen]))[0]
        columns, residual = self._residuals(block.only_selected())
        root = columns @ self.inverse_root
        scores[chosen, p : p + j] = root * (weight * residual)[:, None]
        scores[chosen, p + j :] = root * np.sqrt(weight)[:, None]
        return np.asarray(scores)

    def slope(self, block: Block) -> tuple[Floats]:
        """Sum of the derivatives of the regression's scores in the probit's coefficients, (j, p).

        A weight 1 / Phi(z'gamma) falls by lambda times itself; one that is capped stays.
        """
        block = block.only_selected()
        design = self.probit.coordinates.design(pick(block.features, self.selection))
        value, ratio, _ = log_cdf_and_mills(design.times(self.probit.inner_coef))
        weight, capped, _ = self.bounds.weights(value)
        columns, residual = self._residuals(block)
        change = -np.where(capped, 0.0, weight * ratio) * residual
        if block.weight is not None:
            change = change * block.weight
        root = columns @ self.inverse_root
        return (np.stack([design.pull(change * column) for column in root.T]),)

    def _residuals(self, block: Block) -> tuple[Floats, Floats]:
        columns = with_constant(block.features, self.prediction)
        return columns, block.outcome - columns @ self.coef


def weighted_covariance(
    rows: Rows,
    probit: Probit,
    bounds: Bounds,
    moments: Moments,
    features: Positions,
    coef: Floats,
    kind: CovarianceKind,
) -> Uncertainty:
    """Joint covariance of a weighted regression and its probit, (j + p) squared, in that order.

    ``moments`` are those of the weighted rows; which rows were left out is taken as given.
    """
    root = moments.subset(features, imr=False, outcome=False)
    inverse_root = solve_upper(root, np.eye(len(root)))
    equations = WeightedEquations(
        probit,
        bounds,
        moments.positions(probit.features),
        moments.positions(features),
        coef,
        inverse_root,
    )
    (slope,) = total(rows.map(equations.slope, columns=moments.columns, merge=total))
    p, j = len(probit.features) + 1, len(coef)
    bread = np.zeros((j + p, p + j))
    bread[j:, :p] = probit.coordinates.back() @ probit.inner_covariance
    bread[:j, p:] = inverse_root
    bread[:j, :p] = inverse_root @ slope @ probit.inner_covariance
    stacked = Regressions(equations.scores, (j,), p + j)
    return leveraged_sandwich(rows, kind, bread, stacked, columns=moments.columns)
