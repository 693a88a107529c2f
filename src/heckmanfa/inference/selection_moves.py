"""What moves the probability of being selected, in passes over the rows of a fit.

One pass gathers averages and spreads, by selected or not; another the average marginal effects
with their gradients. Rows may be in memory or in files. A column that is the square of another, or
a product, moves along with its factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Block, Mask, Rows, one_blas_thread, total
from heckmanfa.fit import Fit
from heckmanfa.inference.average_effects import Functions
from heckmanfa.inference.effect_cells import ColumnMove
from heckmanfa.inference.expectations import Estimates, with_ones
from heckmanfa.inference.margins import judged, sum_effects
from heckmanfa.model.expectation_parts import selection_parts
from heckmanfa.results.distribution import distribution_of

CONF_LEVEL = 0.95


@dataclass(frozen=True)
class Product:
    """A column of X that is the product of others; the factors of a square are the same."""

    column: int
    factors: tuple[int, ...]


@dataclass(frozen=True)
class Moved:
    """A feature of the selection equation, and what changes with it."""

    name: str
    columns: tuple[int, ...]
    """its columns of X: one, or the dummies of a category"""
    levels: tuple[str, ...] = ()
    """level of each dummy"""
    reference: str = ""
    """level without a dummy"""
    products: tuple[Product, ...] = ()
    """columns of the equation that its columns are factors of"""
    along: tuple[str, ...] = ()
    """what these are, in words"""


@dataclass(frozen=True, eq=False)
class GroupMeans:
    """Weights, means and spreads of k columns among rows that are selected, and others."""

    weight: Floats
    """(2,) sums of weights: not selected, selected"""
    mean: Floats
    """(2, k)"""
    squares: Floats
    """(2, k) sums of squares about these means"""
    two_valued: Mask
    """(k,) whether a column holds only 0 and 1"""

    @property
    def overall(self) -> Floats:
        """(k,) means of all rows."""
        return np.asarray(self.weight @ self.mean / self.weight.sum())

    @property
    def spread(self) -> Floats:
        """(k,) standard deviations of all rows."""
        between = self.weight @ (self.mean - self.overall) ** 2
        within = self.squares.sum(axis=0)
        return np.asarray(np.sqrt((within + between) / max(self.weight.sum() - 1.0, 1.0)))

    def __add__(self, other: GroupMeans) -> GroupMeans:
        weight = self.weight + other.weight
        share = np.divide(other.weight, weight, out=np.zeros(2), where=weight > 0)[:, None]
        gap = other.mean - self.mean
        return GroupMeans(
            weight,
            self.mean + share * gap,
            self.squares + other.squares + self.weight[:, None] * share * gap**2,
            self.two_valued & other.two_valued,
        )


def group_means(values: Floats, selected: Mask, weight: Floats | None) -> GroupMeans:
    """Return the means of columns (n, k) among rows that are selected, and others."""
    weight = np.ones(len(values)) if weight is None else weight
    sums = []
    for chosen in (~selected, selected):
        own, rows = weight[chosen], values[chosen]
        size = float(own.sum())
        mean = own @ rows / size if size > 0 else np.zeros(values.shape[1])
        sums.append((size, mean, own @ (rows - mean) ** 2))
    sizes, means, squares = zip(*sums, strict=True)
    binary = np.all((values == 0) | (values == 1), axis=0)
    return GroupMeans(np.array(sizes), np.array(means), np.array(squares), binary)


def _block_means(block: Block) -> GroupMeans:
    return group_means(block.features, block.selected, block.weight)


def _joined(blocks: list[GroupMeans]) -> GroupMeans:
    first, *others = blocks
    for block in others:
        first = first + block
    return first


def means_of(rows: Rows, columns: Sequence[int]) -> GroupMeans:
    """Return the means of some columns of X, in one pass."""
    return _joined(list(rows.map(_block_means, columns=list(columns), merge=_joined)))


def _block_effects(
    block: Block, estimates: Estimates, steps: Sequence[ColumnMove], weight_sum: float
) -> tuple[Floats, Floats]:
    """Sum effects and their gradients over a block; see `sum_effects`."""
    values = with_ones(block.features)
    k = len(estimates.columns)
    weight = (np.ones(len(values)) if block.weight is None else block.weight) / weight_sum
    design = values[:, : 1 + k]
    effects = np.zeros(len(steps))
    gradients = np.zeros((len(steps), len(estimates.covariance)))
    # The sums of single columns are those of a probit.
    general = [bool(step.products) or estimates.shaped for step in steps]
    for wanted, sums in (
        ([i for i, _ in enumerate(steps) if general[i]], None),
        ([i for i, step in enumerate(steps) if not general[i] and step.before], _switched),
        ([i for i, step in enumerate(steps) if not general[i] and not step.before], _sloped),
    ):
        some = [steps[i] for i in wanted]
        if not some:
            continue
        if sums is None:
            changes = (step.change(values, 1 + k) for step in some)
            block_changes = [(weight, design, changes)]
            effects[wanted], gradients[wanted] = sum_effects(
                estimates, ["selection"], len(some), block_changes
            )
        else:
            effects[wanted], own = sums(weight, design, estimates.selection_coef, some)
            gradients[wanted, 1 + k : 2 * (1 + k)] = own
    return effects, gradients


def _column(step: ColumnMove) -> int:
    """Return the place of the column that moves; dummies of other levels, if any, come after it."""
    return next(iter(step.after))


def _sloped(
    weight: Floats, design: Floats, gamma: Floats, steps: Sequence[ColumnMove]
) -> tuple[Floats, Floats]:
    """Sum the slopes in single columns: phi(u) times their coefficients, all from two sums."""
    parts = selection_parts(design @ gamma)
    density = float(weight @ parts.index)
    places = [_column(step) for step in steps]
    gradients = np.outer(gamma[places], (weight * parts.index_index) @ design)
    gradients[np.arange(len(steps)), places] += density
    return gamma[places] * density, gradients


def _switched(
    weight: Floats, design: Floats, gamma: Floats, steps: Sequence[ColumnMove]
) -> tuple[Floats, Floats]:
    """Sum discrete changes of single columns; only these differ from the design."""
    index = design @ gamma
    before, places = np.empty((len(design), len(steps))), [_column(step) for step in steps]
    for i, step in enumerate(steps):
        touched = list(step.after)
        before[:, i] = index - design[:, touched] @ gamma[touched]
    off = selection_parts(before)
    on = selection_parts(before + gamma[places])
    gradients = ((on.index - off.index) * weight[:, None]).T @ design
    for i, step in enumerate(steps):
        gradients[i, list(step.after)] = 0.0
    gradients[np.arange(len(steps)), places] = weight @ on.index
    return weight @ (on.value - off.value), gradients


def selection_effects(
    fit: Fit,
    rows: Rows,
    moved: Sequence[Moved],
    changes: dict[int, tuple[float, bool]],
    weight_sum: float,
) -> list[list[Floats]]:
    """Return, for each feature and each of its levels, the effect on P(selected) and its ends.

    ``changes`` has the step of each column, and whether it holds only 0 and 1. The effect of a
    number is its average slope times its step.
    """
    estimates = Estimates.of(fit, prediction=False, selection=True)
    read = list(estimates.columns)
    for feature in moved:
        for product in feature.products:
            read += [column for column in product.factors if column not in read]
    place = {column: 1 + i for i, column in enumerate(read)}
    steps: list[ColumnMove] = []
    scales: list[float] = []
    for feature in moved:
        for column in feature.columns:
            step, binary = changes[column]
            discrete = binary or bool(feature.levels)
            others = [place[other] for other in feature.columns if other != column]
            before, after = (
                {place[column]: level} | dict.fromkeys(others, 0.0) for level in (0.0, 1.0)
            )
            products = tuple(
                (place[product.column], tuple(place[factor] for factor in product.factors))
                for product in feature.products
            )
            steps.append(
                ColumnMove(after, before, products)
                if discrete
                else ColumnMove({place[column]: 1.0}, None, products)
            )
            scales.append(1.0 if discrete else step)

    def effects_at(own: Estimates) -> tuple[Floats, Floats]:
        values, gradients = total(
            rows.map(_block_effects, own, steps, weight_sum, columns=read, merge=total)
        )
        return values, gradients

    table = effect_ends(fit, estimates, effects_at) * np.array(scales)[:, None]
    rows_left = iter(table)
    return [[next(rows_left) for _ in feature.columns] for feature in moved]


def effect_ends(fit: Fit, estimates: Estimates, effects_at: Functions) -> Floats:
    """Return effects on P(selected) and the ends of their 95% intervals, (q, 3)."""
    with one_blas_thread():
        effects, errors, limits, _ = judged(fit, estimates, effects_at, conf_level=CONF_LEVEL)
    if limits is None:
        reach = distribution_of(fit).quantile(CONF_LEVEL) * errors
        limits = np.column_stack([effects - reach, effects + reach])
    return np.column_stack([effects, limits])
