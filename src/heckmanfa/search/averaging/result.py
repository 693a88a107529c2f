"""The result of averaging over assignments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.model.moments import Moments
from heckmanfa.search.averaging.columns import Columns
from heckmanfa.search.averaging.weights import KINDS, Kind, Rule, Weighting
from heckmanfa.search.choices import Choices

MOST_COMPONENTS = 5_000
"""The most assignments that intervals use."""

FEW_LEADING = 100
"""The most leading assignments in a model file without candidates; pictures show so many."""

COMPONENT_SHARE = 0.99
"""The heaviest assignments with this share of the weight are enough for intervals."""


# Rounding in a difference of shares.
_ROUNDING = 1e-12


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
    """weight of the heaviest assignment, by each kind and by own weights; an estimate if sampled,
    and an upper bound if no assignment was visited twice"""
    n_half: dict[str, int]
    """how many of the heaviest assignments carry half of the weight, likewise; a lower bound if no
    assignment was visited twice"""
    leading: NDArray[np.uint8]
    """(N, ceil(K / 8)) masks of the heaviest assignments by own weight, eight columns to a byte"""
    leading_weight: Floats
    """(N,) own weight; exact up to one estimated factor if sampled"""
    leading_sse: Floats
    """(N,) SSE, or what an assignment costs by a quadratic form"""
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
    saved_share: float | None = None
    """`component_share`; None unless a file was saved without the other leading assignments"""

    def with_few_leading(self) -> Average:
        """Return the same without most of the leading assignments."""
        return replace(
            self,
            leading=self.leading[:FEW_LEADING],
            leading_weight=self.leading_weight[:FEW_LEADING],
            leading_sse=self.leading_sse[:FEW_LEADING],
            leading_rho=self.leading_rho[:FEW_LEADING],
            saved_share=self.component_share,
        )

    @property
    def component_share(self) -> float:
        """Own weight that the components carry, if they are the heaviest assignments."""
        if self.saved_share is not None:
            return self.saved_share
        return float(self.leading_weight[: len(self.components)].sum())

    @property
    def negative(self) -> Floats:
        """(K,) share of own weight in which a column's coefficient is below zero."""
        difference = self.own_share - self.positive
        return np.where(difference < _ROUNDING, 0.0, difference)

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


@dataclass(frozen=True, eq=False)
class ImrShares:
    """Shares of weight if each assignment also competes without lambda."""

    imr: dict[Kind, float]
    """the share of weight that holds lambda"""
    features: dict[Kind, Floats]
    """(K,) for each kind of weights: the share that holds each column of X"""

    @classmethod
    def of(cls, columns: Columns, held: dict[Kind, Floats], rival: dict[Kind, Floats]) -> ImrShares:
        """Add up what competes.

        ``held`` is the weight of assignments with lambda and ``rival`` that of those without it:
        (1 + U,), of all and of those that hold each unit. Weights with lambda sum to one.
        """
        total = {kind: held[kind][0] + rival[kind][0] for kind in KINDS}
        return cls(
            imr={kind: float(held[kind][0] / total[kind]) for kind in KINDS},
            features={
                kind: over_columns(columns, (held[kind] + rival[kind])[1:] / total[kind])
                for kind in KINDS
            },
        )


@dataclass(frozen=True, eq=False)
class Estimates:
    """Averages by own weights, for the columns as `Columns` arranges and scales them."""

    inclusion: Mapping[Kind, Floats]
    """(U,) share of weight that holds each unit, by each kind"""
    coef: Floats
    """(c,)"""
    positive: Floats
    """(c,) share of own weight in which a coefficient is above zero"""
    others: Floats
    """(4,) rho, sigma, adjusted R^2, and the weight with rho-hat outside (-1, 1)"""


@dataclass(frozen=True, eq=False)
class Kept:
    """The assignments of an average that are kept one by one; fields as in `Average`."""

    exhaustive: bool
    n_assignments: int
    best_weight: dict[str, float]
    n_half: dict[str, int]
    leading: NDArray[np.uint8]
    leading_weight: Floats
    leading_sse: Floats
    leading_rho: Floats
    components: NDArray[np.uint8]
    component_weights: Floats
    components_drawn: bool
    disagreement: float | None = None


def put_together(
    moments: Moments, columns: Columns, rule: Rule, estimates: Estimates, kept: Kept
) -> Average:
    """Undo the scaling of the estimates, and spread them over the columns of X."""
    choices = columns.choices
    slopes = columns.slopes(estimates.coef)
    coef, positive = np.zeros((2, choices.n_features))
    coef[list(columns.positions)] = slopes[1:]
    positive[list(columns.positions)] = np.clip(estimates.positive[1:], 0.0, 1.0)
    means = moments.means
    places = [place - 1 for place in moments.places(columns.positions)]
    shares = {kind: over_columns(columns, estimates.inclusion[kind]) for kind in KINDS}
    rho, sigma, adjusted_r2, outside = (float(value) for value in estimates.others)
    return Average(
        weights=rule.weights,
        rho_range=rule.goal.rho_range,
        choices=choices,
        n_selected=rule.n_selected,
        shares=shares,
        own_share=np.asarray(np.mean([shares[kind] for kind in rule.own], axis=0)),
        positive=positive,
        coef=coef,
        intercept=float(means[-1] - slopes[0] * means[-2] - slopes[1:] @ means[places]),
        imr_coef=float(slopes[0]),
        rho=rho,
        sigma=sigma,
        adjusted_r2=adjusted_r2,
        outside=outside,
        **vars(kept),
    )


def over_columns(columns: Columns, inclusion: Floats) -> Floats:
    """Spread shares of units over the columns of X."""
    share = np.zeros(columns.choices.n_features)
    for unit, value in zip(columns.order, inclusion, strict=True):
        share[list(columns.choices.units[unit])] = min(value, 1.0)
    share[list(columns.choices.always)] = 1.0
    return share
