"""The average over assignments, and what it says of each feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.random_state import generator
from heckmanfa.data.rows import Mask, one_blas_thread
from heckmanfa.model.moments import Moments
from heckmanfa.search.averaging.columns import Columns
from heckmanfa.search.averaging.enumeration import Enumeration, Sums, enumerate_assignments
from heckmanfa.search.averaging.weights import KINDS, Kind, Rule, Weighting
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import KEPT, first_of_ties, no_feasible
from heckmanfa.text.progress import progress_line

MOST_UNITS = 22
"""With more units than this, assignments are sampled."""

MOST_COMPONENTS = 5_000
"""The most assignments that intervals use."""

COMPONENT_SHARE = 0.99
"""The heaviest assignments with this share of the weight are enough for intervals."""

# The size of the sample of rho for the message when none is in the window.
_SEEN = 2**14


@dataclass(frozen=True, eq=False)
class Average:
    """Averages over assignments, weighted by exp(-criterion / 2).

    Coefficients count as zero in assignments without their column. Own weights are those named by
    ``weights``.
    """

    weights: Weighting
    rho_range: tuple[float, float] | None
    choices: Choices
    """the assignments that were weighed, the empty one included"""
    n_selected: float
    """m"""
    exhaustive: bool
    """whether every assignment was evaluated; otherwise they were sampled"""
    n_assignments: int
    """assignments with a positive weight, or distinct ones visited"""
    shares: dict[Kind, Floats]
    """(K,) for each kind of weights: the share of weight that holds each column of X"""
    own_share: Floats
    """(K,) likewise, by own weights"""
    positive: Floats
    """(K,) share of own weight in which a column's coefficient is above zero"""
    coef: Floats
    """(K,) averages by own weights, like those below"""
    intercept: float
    imr_coef: float
    rho: float
    sigma: float
    adjusted_r2: float
    outside: float
    """own weight of assignments with rho-hat outside (-1, 1)"""
    best_weight: dict[str, float]
    """weight of the heaviest assignment, by each kind and by "mean" """
    n_half: dict[str, int]
    """how many of the heaviest assignments carry half of the weight, likewise"""
    leading: NDArray[np.uint8]
    """(N, ceil(K / 8)) masks of the heaviest assignments by own weight, eight columns to a byte"""
    leading_weight: Floats
    """(N,) own weight"""
    leading_sse: Floats
    """(N,)"""
    leading_rho: Floats
    """(N,)"""
    components: NDArray[np.uint8]
    """(C, ceil(K / 8)) masks of the assignments that intervals use"""
    component_weights: Floats
    """(C,) summing to one"""
    components_drawn: bool
    """whether the components are a sample; otherwise they are the heaviest assignments"""
    disagreement: float | None = None
    """largest difference of a share between chains of the sampler; None if exhaustive"""

    @property
    def negative(self) -> Floats:
        """(K,) share of own weight in which a column's coefficient is below zero."""
        return np.maximum(self.own_share - self.positive, 0.0)

    @property
    def leading_masks(self) -> Mask:
        """(N, K) masks of the heaviest assignments over the columns of X."""
        return self._unpacked(self.leading)

    @property
    def component_masks(self) -> Mask:
        """(C, K) masks of the assignments that intervals use."""
        return self._unpacked(self.components)

    def _unpacked(self, packed: NDArray[np.uint8]) -> Mask:
        return np.unpackbits(packed, axis=1, count=self.choices.n_features).astype(bool)


def average(
    moments: Moments,
    choices: Choices,
    *,
    weights: str = "aic",
    rho_range: Any = None,
    names: Sequence[str] | None = None,
    random_state: Any = None,
    max_units: int = MOST_UNITS,
    verbose: int = 0,
) -> Average:
    """Average over all assignments of the choices, the empty one included.

    An assignment weighs nothing if it is collinear, has more than ``max_features`` or m / 3
    columns, or has rho-hat outside ``rho_range``. Above ``max_units`` units, assignments are
    sampled. ``names`` label the columns of X in messages. ``random_state`` seeds the sampler, and
    the draw of components if the heaviest assignments do not suffice.

    Examples
    --------
    >>> from heckmanfa import compress
    >>> from heckmanfa.datasets import make_selection
    >>> from heckmanfa.search import all_features
    >>> from heckmanfa.search.averaging import average
    >>> data = make_selection(2000, 6, 3, random_state=0)
    >>> moments = compress(data.X, data.y).moments
    >>> found = average(moments, all_features(moments), weights="bic")
    >>> found.n_assignments, (found.shares["bic"] > 0.9).nonzero()[0].tolist()
    (64, [2, 3, 4])
    """
    rule = Rule.of(moments, choices, weights, rho_range)
    columns = Columns.of(moments, choices)
    labels = [str(column) for column in range(choices.n_features)] if names is None else names
    total = 1 << len(choices.units)
    with one_blas_thread(), progress_line(verbose, "assignments", total) as progress:
        found = enumerate_assignments(columns, rule, progress=progress)
        return _summarise(moments, found, labels, generator(random_state))


def imr_shares(
    moments: Moments,
    choices: Choices,
    *,
    rho_range: Any = None,
    random_state: Any = None,
    max_units: int = MOST_UNITS,
) -> dict[Kind, float]:
    """Share of weight that holds lambda, if assignments without lambda compete with the others.

    Without lambda, rho is zero and there is one coefficient fewer; criteria are otherwise the same.
    """
    sums = []
    for imr in (True, False):
        rule = Rule.of(moments, choices, "bic", rho_range if imr else None, imr=imr)
        columns = Columns.of(moments, choices, imr=imr)
        with one_blas_thread():
            sums.append(enumerate_assignments(columns, rule, estimates=False).sums)
    shares: dict[Kind, float] = {}
    for kind in KINDS:
        held, free = sums[0][kind], sums[1][kind]
        if not held.total:
            shares[kind] = 0.0 if free.total else np.nan
            continue
        rival = free.total / held.total * np.exp(0.5 * (held.best - free.best))
        shares[kind] = float(1.0 / (1.0 + rival))
    return shares


def _summarise(
    moments: Moments, found: Enumeration, names: Sequence[str], random: np.random.Generator
) -> Average:
    columns, rule = found.columns, found.rule
    n_assignments = int(np.count_nonzero(np.isfinite(found.log_sse)))
    if n_assignments == 0:
        rho, masks = _seen(found)
        raise no_feasible(rule.goal, len(found.rho), rho, masks, names)
    sums = found.sums
    shares = {kind: _over_columns(columns, sums[kind]) for kind in KINDS}
    last = len(columns.least)
    values = np.mean([sums[kind].values / sums[kind].total for kind in rule.own], axis=0)
    positive = np.mean([sums[kind].positive / sums[kind].total for kind in rule.own], axis=0)
    slopes = columns.slopes(values[:last])
    coef, above = np.zeros((2, columns.choices.n_features))
    coef[list(columns.positions)] = slopes[1:]
    above[list(columns.positions)] = positive[1:]
    means = moments.means
    at = [place - 1 for place in moments.places(columns.positions)]
    intercept = means[-1] - slopes[0] * means[-2] - slopes[1:] @ means[at]
    best_weight: dict[str, float] = {}
    n_half: dict[str, int] = {}
    own = np.zeros(0)
    for kind in KINDS:
        weight = _weights(found, kind)
        best_weight[kind], n_half[kind] = float(weight.max()), _half(weight)
        if kind in rule.own:
            own = weight if len(own) == 0 else 0.5 * (own + weight)
    best_weight[rule.weights], n_half[rule.weights] = float(own.max()), _half(own)
    leading, weight = _heaviest(found, own, min(KEPT, n_assignments))
    chosen, component_weights, drawn = _components(own, leading, weight, random)
    return Average(
        weights=rule.weights,
        rho_range=rule.goal.rho_range,
        choices=columns.choices,
        n_selected=rule.n_selected,
        exhaustive=True,
        n_assignments=n_assignments,
        shares=shares,
        own_share=np.asarray(np.mean([shares[kind] for kind in rule.own], axis=0)),
        positive=above,
        coef=coef,
        intercept=float(intercept),
        imr_coef=float(slopes[0]),
        rho=float(values[last + 1]),
        sigma=float(values[last + 2]),
        adjusted_r2=float(values[last + 3]),
        outside=float(values[last + 4]),
        best_weight=best_weight,
        n_half=n_half,
        leading=_packed(found, leading),
        leading_weight=weight,
        leading_sse=np.exp(found.log_sse[leading]),
        leading_rho=found.rho[leading],
        components=_packed(found, chosen),
        component_weights=component_weights,
        components_drawn=drawn,
    )


def _packed(found: Enumeration, assignments: NDArray[np.intp]) -> NDArray[np.uint8]:
    return np.packbits(found.columns.masks(found.inside(assignments)), axis=1)


def _over_columns(columns: Columns, sums: Sums) -> Floats:
    """The share of weight that holds each column of X."""
    share = np.zeros(columns.choices.n_features)
    inclusion = sums.inclusion / sums.total
    for unit, value in zip(columns.order, inclusion, strict=True):
        share[list(columns.choices.units[unit])] = min(value, 1.0)
    share[list(columns.choices.always)] = 1.0
    return share


def _weights(found: Enumeration, kind: Kind) -> Floats:
    """The weight of every assignment, summing to one."""
    values = found.criterion(kind)
    np.subtract(found.sums[kind].best, values, out=values)
    values *= 0.5
    np.exp(values, out=values)
    values /= values.sum()
    return values


def _half(weight: Floats) -> int:
    """How many of the heaviest assignments carry half of the weight."""
    # All that weigh less than this share of the heaviest carry less than a quarter of its weight.
    some = weight[weight >= weight.max() / (4.0 * len(weight))]
    some.sort()
    carried = np.cumsum(some[::-1])
    # Rounding must not decide between two assignments of equal weight.
    return int(np.searchsorted(carried, 0.5 * (1.0 - 1e-12))) + 1


def _heaviest(found: Enumeration, own: Floats, count: int) -> tuple[NDArray[np.intp], Floats]:
    """The heaviest assignments, best first, and their weights."""
    chosen = np.argpartition(own, len(own) - count)[len(own) - count :]
    chosen.sort()
    chosen = chosen[own[chosen] > 0.0]
    loss = -2.0 / found.rule.n_selected * np.log(own[chosen])
    ranked = first_of_ties(loss, found.columns.masks(found.inside(chosen)))
    chosen = chosen[ranked]
    return chosen, own[chosen]


def _components(
    own: Floats, leading: NDArray[np.intp], weight: Floats, random: np.random.Generator
) -> tuple[NDArray[np.intp], Floats, bool]:
    """The assignments for intervals: the heaviest if they suffice, otherwise draws by weight."""
    carried = np.cumsum(weight[:MOST_COMPONENTS])
    if carried[-1] >= COMPONENT_SHARE:
        count = int(np.searchsorted(carried, COMPONENT_SHARE)) + 1
        return leading[:count], weight[:count] / carried[count - 1], False
    # Evenly spaced places along the sum of the weights, from a random start.
    places = (random.random() + np.arange(MOST_COMPONENTS)) / MOST_COMPONENTS
    cumulated = np.cumsum(own)
    drawn = np.searchsorted(cumulated, places * cumulated[-1], side="right")
    chosen, counts = np.unique(np.minimum(drawn, len(own) - 1), return_counts=True)
    order = np.argsort(-own[chosen], kind="stable")
    return chosen[order], counts[order] / MOST_COMPONENTS, True


def _seen(found: Enumeration) -> tuple[Floats, Mask]:
    """An even sample of rho with those nearest to the window, and their assignments."""
    some = np.arange(0, len(found.rho), max(len(found.rho) // _SEEN, 1))
    nearest = np.argsort(found.rule.goal.distance(found.rho), kind="stable")[:3]
    finite = np.flatnonzero(np.isfinite(found.rho))
    ends = (
        finite[[np.argmin(found.rho[finite]), np.argmax(found.rho[finite])]]
        if len(finite)
        else finite
    )
    rows = np.unique(np.concatenate([some, nearest, ends]))
    return found.rho[rows], found.columns.masks(found.inside(rows))
