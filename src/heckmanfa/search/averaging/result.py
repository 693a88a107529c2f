"""The result of averaging over assignments, and what a fit keeps of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.search.averaging.members import Gathered, Members
from heckmanfa.search.averaging.weights import (
    WEIGHT_CRITERIA,
    Columns,
    Correction,
    Rule,
    WeightCriterion,
    Weighting,
    penalties,
)
from heckmanfa.search.choices import Choices, join_equations
from heckmanfa.search.form import Form

MOST_COMPONENTS = 5_000
"""The most assignments that intervals use."""

FEW_LEADING = 100
"""The most leading assignments in a model file without candidates; pictures show so many."""
PROBABLE = 0.5
"""A feature with at least this BIC share is a prediction feature of an average."""


# Ends of intervals are then within 1% of half their width on average over rows, and 6% at worst.
_GROUPS = 24


@dataclass(frozen=True, eq=False, kw_only=True)
class Kept:
    """The assignments of an average that are kept one by one."""

    exhaustive: bool
    """whether every assignment was evaluated; otherwise they were sampled"""
    n_assignments: int
    """assignments with a positive weight, or distinct ones visited"""
    best_weight: dict[str, float]
    """weight of the heaviest assignment, by each kind and by own weights; an estimate if sampled,
    and an upper bound if no assignment was visited twice"""
    n_half: dict[str, int]
    """how many of the heaviest assignments carry half of the weight, likewise; a lower bound if no
    assignment was visited twice"""
    leading: NDArray[np.uint8]
    """(N, 1 + ceil(K / 8)) states of the heaviest assignments by own weight, as `pack_states` has
    them: whether the correction and the index are held, and which columns on their own"""
    leading_weight: Floats
    """(N,) own weight; exact up to one estimated factor if sampled"""
    leading_cost: Floats
    """(N,) what it costs to drop the others"""
    leading_rho: Floats
    """(N,)"""
    components: NDArray[np.uint8]
    """(C, 1 + ceil(K / 8)) states of the assignments behind intervals and averages of functions"""
    component_weights: Floats
    """(C,) own weights, summing to one"""
    components_drawn: bool
    """whether the components are a sample; otherwise they are all that weigh anything"""
    disagreement: float | None = None
    """largest difference of a share between chains of the sampler; None if exhaustive"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Average(Kept):
    """Averages over assignments, weighted by exp(-criterion / 2).

    Own weights are those named by ``weights``. An assignment holds columns of X on their own, and
    may hold the correction and the index. The effect of a column is its own coefficient, if the
    assignment holds it, and what the index adds.
    """

    weights: Weighting
    correction: Correction
    has_index: bool
    """whether the index was offered"""
    rho_range: tuple[float, float] | None
    choices: Choices
    """the assignments that were weighed, the empty one included"""
    n_selected: float
    """m, or the number of all rows if both equations are searched"""
    shares: dict[WeightCriterion, Floats]
    """(K,) for each kind of weights: the share of weight in which each column of X predicts, on its
    own or with the index"""
    alone: dict[WeightCriterion, Floats]
    """(K,) likewise, of the weight that holds it on its own"""
    correction_share: dict[WeightCriterion, float]
    """the share of weight that holds the correction, by each kind"""
    index_share: dict[WeightCriterion, float]
    """the share of weight that holds the index, by each kind"""
    own_share: Floats
    """(K,) `shares` by own weights"""
    positive: Floats
    """(K,) share of own weight in which a column's effect is above zero"""
    negative: Floats
    """(K,) share of own weight in which it is below zero"""
    correction_signs: tuple[float, float]
    """share of own weight in which the correction is above zero, and below"""
    free: Floats
    """(f,) averages by own weights of the free parameters of the form: effects, the correction,
    and the slopes of the selection equation if that is searched"""
    rho: float
    """average by own weights, like that of sigma"""
    sigma: float
    """one if it is not known, as of classes; NaN if there are several"""
    outside: float
    """own weight of assignments with rho-hat outside (-1, 1), or where the form does not hold"""
    all_features_share: float
    """what the assignment that holds everything gets of the weight of an interval; zero if it is
    not one of the assignments allowed"""
    has_few: bool = False
    """whether a file was saved without the other leading assignments"""
    selecting: Choices | None = None
    """which columns may drive selection; None if the selection equation is not searched"""
    selection_shares: dict[WeightCriterion, Floats] | None = None
    """(K,) for each kind: the share of weight in which each column of X drives selection"""
    selection_signs: Floats | None = None
    """(2, K) share of own weight in which its selection coefficient is above zero, and below"""
    ends: dict[str, float] = field(default_factory=dict)
    """averages of other error terms than rho and sigma, by name"""

    def members(self, form: Form) -> Members:
        """Return the components, by own weights."""
        return Members(form, self.component_states, self.component_weights)

    def interval_members(self, form: Form) -> Members:
        """Return the components and, last, everything, by the weights of intervals."""
        whole = form.everything(corrected=self.correction != "never")
        return self.members(form).beside(whole, self.all_features_share)

    @property
    def searches_both(self) -> bool:
        """Whether features may be left out of the selection equation, too."""
        return self.selecting is not None

    @property
    def joint(self) -> Choices:
        """The choices of both equations as one."""
        return join_equations(self.choices, self.selecting)

    def criteria(self, form: Form, states: Mask, costs: Floats) -> dict[WeightCriterion, Floats]:
        """Return the criterion of some states by each kind, given their costs, (N,)."""
        joint = self.joint
        held = states[:, :-2].sum(axis=1)
        units = states[:, [unit[0] for unit in joint.units]].sum(axis=1)
        extra = states[:, -2] * form.n_corrections + states[:, -1] * form.n_equations
        tables = penalties(self.n_selected, joint, form)
        own = costs - form.correction_excess * ~states[:, -2]
        return {
            kind: np.asarray(own + tables[kind][held, extra, units]) for kind in WEIGHT_CRITERIA
        }

    def with_few_leading(self) -> Average:
        """Return the same without most of the leading assignments."""
        return replace(
            self,
            leading=self.leading[:FEW_LEADING],
            leading_weight=self.leading_weight[:FEW_LEADING],
            leading_cost=self.leading_cost[:FEW_LEADING],
            leading_rho=self.leading_rho[:FEW_LEADING],
            has_few=True,
        )

    @property
    def with_index(self) -> dict[WeightCriterion, Floats]:
        """(K,) for each kind: the share in which a column predicts with the index alone."""
        return {kind: self.shares[kind] - self.alone[kind] for kind in WEIGHT_CRITERIA}

    @property
    def leading_states(self) -> Mask:
        """(N, K + 2) states of the heaviest assignments, as `Members` has them."""
        return unpack_states(self.leading, self.joint.n_features)

    @property
    def component_states(self) -> Mask:
        """(C, K + 2) states of the assignments that intervals use, as `Members` has them."""
        return unpack_states(self.components, self.joint.n_features)

    @property
    def leading_masks(self) -> Mask:
        """(N, K) which columns of X the heaviest assignments hold on their own."""
        return self.leading_states[:, : self.choices.n_features]

    @property
    def component_masks(self) -> Mask:
        """(C, K) which columns of X the assignments that intervals use hold on their own."""
        return self.component_states[:, : self.choices.n_features]


def pack_states(states: Mask) -> NDArray[np.uint8]:
    """Put states, (N, K + 2), into bytes of eight; the first has the correction and the index."""
    ends, columns = (np.packbits(some, axis=1) for some in (states[:, -2:], states[:, :-2]))
    return np.concatenate([ends, columns], axis=1)


def unpack_states(packed: NDArray[np.uint8], n_features: int) -> Mask:
    """Undo `pack_states`."""
    columns = np.unpackbits(packed[:, 1:], axis=1, count=n_features)
    ends = np.unpackbits(packed[:, :1], axis=1, count=2)
    return np.concatenate([columns, ends], axis=1).astype(bool)


def with_shares_of(averaged: Average, other: Average) -> Average:
    """Return an average with the shares of another, which knows them better."""
    names = ("shares", "alone", "correction_share", "index_share", "selection_shares")
    known = {name: getattr(other, name) for name in (*names, "disagreement")}
    return replace(averaged, **known)


@dataclass(frozen=True, eq=False)
class Estimates:
    """Averages by own weights, for the columns as `Columns` arranges and scales them."""

    inclusion: Mapping[WeightCriterion, Floats]
    """(U,) share of weight that holds each unit, by each kind"""
    beside_index: Mapping[WeightCriterion, Floats]
    """(U,) share of weight that holds each unit and the index"""
    effects: Floats
    """(c,)"""
    positive: Floats
    """(c,) share of own weight in which an effect is above zero"""
    negative: Floats
    """(c,) and below zero"""
    others: Floats
    """(E + 1,) the error terms that are averaged, and the weight with rho-hat outside (-1, 1), or
    where no form holds"""


def put_together(
    columns: Columns, rule: Rule, estimates: Estimates, kept: Kept, all_features_share: float
) -> Average:
    """Undo the scaling of the estimates, and spread them over the columns of X."""
    (choices, selecting), form = columns.equations, columns.form
    k, own = choices.n_features, columns.places >= 0
    places = columns.places[own]
    free = np.zeros(len(form.free))
    free[places] = (estimates.effects * columns.scale)[own]
    signs = np.zeros((2, columns.choices.n_features + 1))
    # The correction, whose signs are apart, has the place after all columns.
    of = np.array(form.places_in(columns.choices.n_features + 2))[places]
    signs[0, of], signs[1, of] = estimates.positive[own], estimates.negative[own]
    signs = np.clip(signs[:, :-1], 0.0, 1.0)
    alone = {kind: _over_columns(columns, estimates.inclusion[kind]) for kind in WEIGHT_CRITERIA}
    extra = {kind: _beside(columns, estimates, kind) for kind in WEIGHT_CRITERIA}
    shares = {kind: np.minimum(alone[kind] + extra[kind], 1.0)[:k] for kind in WEIGHT_CRITERIA}
    both = selecting is not None
    means = form.ends.from_means(estimates.others[:-1])
    known = (form.known_sigma or 1.0) if form.errors == "binary" else float("nan")
    always = float(columns.correction == "always")
    return Average(
        weights=rule.weights,
        correction=columns.correction,
        has_index=columns.has_index,
        rho_range=rule.rho_range,
        choices=choices,
        n_selected=rule.n_selected,
        shares=shares,
        alone={kind: alone[kind][:k] for kind in WEIGHT_CRITERIA},
        correction_share={
            kind: _share(columns, estimates, kind, -1, always) for kind in WEIGHT_CRITERIA
        },
        index_share={kind: _share(columns, estimates, kind, -2) for kind in WEIGHT_CRITERIA},
        own_share=np.asarray(np.mean([shares[kind] for kind in rule.own], axis=0)),
        positive=signs[0, :k],
        negative=signs[1, :k],
        correction_signs=_correction_signs(columns, estimates),
        free=free,
        rho=means.pop("rho", float("nan")),
        sigma=means.pop("sigma", known),
        outside=float(estimates.others[-1]),
        ends=means,
        all_features_share=all_features_share if _allows_everything(columns, rule) else 0.0,
        selecting=selecting,
        selection_shares={kind: alone[kind][k:] for kind in WEIGHT_CRITERIA} if both else None,
        selection_signs=signs[:, k:] if both else None,
        **vars(kept),
    )


def _allows_everything(columns: Columns, rule: Rule) -> bool:
    """Whether the assignment that holds everything is one that may have weight."""
    form, n_units = columns.form, len(columns.choices.units)
    corrected = columns.correction != "never"
    n_corrections = form.n_corrections if corrected else 0
    if not np.isfinite(rule.penalties["bic"][-1, n_corrections, n_units]):
        return False
    rho = form.error_terms(form.estimates).get("rho", np.zeros(1))
    return bool(np.all(rule.in_range(np.atleast_1d(rho if corrected else 0.0))))


def _share(
    columns: Columns, estimates: Estimates, kind: WeightCriterion, unit: int, otherwise: float = 0.0
) -> float:
    """Share of weight that holds the correction, -1, or the index, -2."""
    if unit not in columns.order:
        return otherwise
    return min(float(estimates.inclusion[kind][columns.order.index(unit)]), 1.0)


def _correction_signs(columns: Columns, estimates: Estimates) -> tuple[float, float]:
    place = columns.place_of(columns.form.n_slopes)
    if place is None:
        return 0.0, 0.0
    return float(estimates.positive[place]), float(estimates.negative[place])


def _over_columns(columns: Columns, inclusion: Floats) -> Floats:
    """Spread shares of units over the columns of X."""
    share = np.zeros(columns.choices.n_features)
    for unit, value in zip(columns.order, inclusion, strict=True):
        if unit >= 0:
            share[list(columns.choices.units[unit])] = min(value, 1.0)
    share[list(columns.choices.always)] = 1.0
    return share


def _beside(columns: Columns, estimates: Estimates, kind: WeightCriterion) -> Floats:
    """(K,) share of weight that holds the index, and not the column on its own."""
    share = np.zeros(columns.choices.n_features)
    if not columns.has_index:
        return share
    whole, held = float(estimates.inclusion[kind][0]), estimates.beside_index[kind]
    for unit, value, moved in zip(columns.order, held, columns.n_in_index, strict=True):
        if moved:
            share[list(columns.choices.units[unit])] = max(whole - value, 0.0)
    return share


@dataclass(frozen=True, eq=False)
class AverageOutcome:
    """The average over assignments behind the estimates of a fit."""

    choices: Choices
    """what the user allowed"""
    mixture: Average
    """the assignments and their weights, with their averages"""
    form: Form
    """the model with everything in it, from which all assignments follow"""
    selecting: Choices | None = None
    """what the user allowed in the selection equation, if both equations are searched"""
    two_step_chance: float | None = None
    """chance of the correction by two-step estimates of the same rows; None unless a linear outcome
    is averaged by maximum likelihood, which finds selection where errors are not normal"""

    def without_candidates(self) -> AverageOutcome:
        """Return what a small model file keeps: few leading assignments.

        The components, which predictions average over, stay.
        """
        return replace(self, mixture=self.mixture.with_few_leading())

    @property
    def columns(self) -> tuple[int, ...]:
        """Columns that could predict in these rows."""
        return self.form.columns

    @cached_property
    def members(self) -> Members:
        """The assignments behind averages of functions, by own weights."""
        return self.mixture.members(self.form)

    @cached_property
    def interval_members(self) -> Members:
        """The same and, last, everything, by the weights of intervals."""
        return self.mixture.interval_members(self.form)

    @cached_property
    def groups(self) -> list[Gathered]:
        """Assignments taken together where they agree on what is most in doubt."""
        return self.members.groups(_GROUPS)
