"""`average`: weigh the assignments of a form, all of them or a sample.

Averages over a sample are means over the states that the chains of a kind visit. The weight of one
assignment is exp(-criterion / 2) relative to the others, which is exact, times one factor per kind.
That factor comes from how often half of the chains visit what the other half has visited.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.random_state import generator
from heckmanfa.data.rows import Mask, one_blas_thread
from heckmanfa.errors import InputError, NoFeasibleAssignmentError, SearchWarning, warn
from heckmanfa.search.averaging.enumeration import (
    Enumeration,
    enumerate_assignments,
    estimates_of,
    kept_of,
)
from heckmanfa.search.averaging.gibbs import AGREEMENT, Sampled, most_sweeps, sample_assignments
from heckmanfa.search.averaging.members import Members
from heckmanfa.search.averaging.result import (
    MOST_COMPONENTS,
    PROBABLE,
    Average,
    Estimates,
    Kept,
    pack_states,
    put_together,
)
from heckmanfa.search.averaging.weights import (
    ALL_FEATURES_SHARE,
    MOST_COLUMNS,
    WEIGHT_CRITERIA,
    Columns,
    Correction,
    Rule,
    WeightCriterion,
)
from heckmanfa.search.choices import Choices
from heckmanfa.search.form import Form
from heckmanfa.search.goal import KEPT
from heckmanfa.text.chances import CHANCES_BY
from heckmanfa.text.option_words import instead, option
from heckmanfa.text.progress import progress_line

# The same fit gets the same words.
_SEED = 0

MOST_UNITS = 22
"""With more units than this, the correction and the index among them, assignments are sampled."""


def average(
    form: Form,
    choices: Choices,
    *,
    weights: str = "bic",
    correction: Correction = "optional",
    all_features_share: float = ALL_FEATURES_SHARE,
    rho_range: Any = None,
    random_state: Any = None,
    max_units: int = MOST_UNITS,
    max_sweeps: int | None = None,
    verbose: int = 0,
    selecting: Choices | None = None,
) -> Average:
    """Average over all assignments of the choices, the empty one included.

    ``selecting`` are the choices of the selection equation, if both equations are searched.

    An assignment weighs nothing if it has more than ``max_features`` or m / 3 columns, if it holds
    the index and drops fewer than two of its columns, or if rho lies outside ``rho_range``. Above
    ``max_units`` units, assignments are sampled, in at most ``max_sweeps`` sweeps. Intervals give
    ``all_features_share`` of their weight to the assignment that holds everything.
    ``random_state`` seeds the sampler, and the draw of components if there are too many
    assignments for intervals.
    """
    columns = Columns.of(form, choices, correction, selecting)
    rule = Rule.of(form.n_selected, columns.choices, weights, rho_range, form)
    _refuse_few_rows(rule, columns.choices)
    random, n_units = generator(random_state), len(columns.order)
    if n_units > max_units:
        estimates, kept = _sampled(columns, rule, random, max_sweeps, verbose)
        return put_together(columns, rule, estimates, kept, all_features_share)
    line = progress_line(verbose, "average", "assignments", 1 << n_units)
    with one_blas_thread(), line as progress:
        enumeration = enumerate_assignments(columns, rule, progress=progress)
        _refuse_empty(enumeration)
        kept = kept_of(enumeration, random)
    return put_together(columns, rule, estimates_of(enumeration), kept, all_features_share)


def _refuse_few_rows(rule: Rule, choices: Choices) -> None:
    """Refuse choices of which none has weight, since even the smallest has too many columns."""
    if np.isfinite(rule.penalties["bic"]).any():
        return
    m, n_always = rule.n_selected, len(choices.always)
    if n_always > MOST_COLUMNS * m:
        raise NoFeasibleAssignmentError(
            f"always holds {n_always} columns, but an average gives weight only to assignments "
            f"with at most a third as many columns as selected rows, here {m:.6g}. Name at most "
            f"{int(MOST_COLUMNS * m)} in always, or fit them all with Heckman."
        )
    raise NoFeasibleAssignmentError(
        f"{m:.6g} selected rows are too few to weigh any assignment of an average"
    )


def _refuse_empty(enumeration: Enumeration) -> None:
    """Refuse a window of rho that holds no assignment."""
    if np.isfinite(enumeration.cost).any():
        return
    rho = enumeration.rho
    known = rho[np.isfinite(rho)]
    seen = f": they have rho from {known.min():.3g} to {known.max():.3g}" if len(known) else ""
    window = ""
    if enumeration.rule.rho_range is not None:
        low, high = enumeration.rule.rho_range
        window = f" with rho in [{low:g}, {high:g}]"
    raise NoFeasibleAssignmentError(
        f"no assignment{window} has weight among {len(rho):,}{seen}. Widen "
        f"{option('rho_range')}{instead(', or raise max_features', '')}."
    )


def _sampled(
    columns: Columns,
    rule: Rule,
    random: np.random.Generator,
    max_sweeps: int | None,
    verbose: int,
) -> tuple[Estimates, Kept]:
    """Average over sampled assignments."""
    if rule.rho_range is not None:
        raise InputError(
            f"{option('rho_range')} needs every assignment evaluated, and that takes at most "
            f"{MOST_UNITS} features and groups, the correction and the index among them; there "
            f"are {len(columns.order)}. Leave it out, name fewer in "
            f"{option('prediction_features')}{instead(', or group some with feature_groups', '')}."
        )
    most = most_sweeps(len(columns.order), max_sweeps)
    line = progress_line(verbose, "average", "sweeps of the sampler", most, at_most=True)
    with one_blas_thread(), line as progress:
        chains = sample_assignments(columns, rule, random, max_sweeps=max_sweeps, progress=progress)
    if chains.disagreement > AGREEMENT:
        warn(
            "the shares of weight are uncertain: two halves of the sampled chains differ by up to "
            f"{chains.disagreement:.3f} after {len(chains.cost)} sweeps. Nearly equal features do "
            f"this{instead(': group them with feature_groups', '')}.",
            SearchWarning,
        )
    return sampled_estimates(chains, columns, rule), sampled_kept(chains, columns, rule)


def with_drivers(form: Form, selecting: Choices) -> Form:
    """Return a form of both equations whose index holds only what probably drives selection.

    The estimates of the selection equation and their covariance are a form of their own. It gives
    each feature or group, ``selecting``, its chance to drive selection.
    """
    own = form.free[form.n_slopes + form.n_corrections :]
    equation = Form.of_slopes(
        form.searched,
        form.estimates[own],
        form.covariance[np.ix_(own, own)],
        n_features=form.n_features,
        n_selected=form.n_selected,
    )
    with warnings.catch_warnings():
        # The average over both equations, with the same features, says whether chains agree.
        warnings.simplefilter("ignore", SearchWarning)
        averaged = average(
            equation, selecting, weights="bic", correction="never", random_state=_SEED
        )
    chances = averaged.shares[CHANCES_BY]
    return replace(form, drivers=tuple(c for c in form.columns if chances[c] >= PROBABLE))


def without_correction(form: Form, averaged: Average) -> tuple[Members, Floats | None]:
    """Return the same assignments as least squares has them: none holds the correction.

    Beside them are the BIC shares of the columns of X, (K,), if they are known. Sampled assignments
    are weighed again instead of sampled again: one that was drawn with or without the correction
    counts by how much of its weight is without.
    """
    if averaged.exhaustive or averaged.correction == "never":
        alike = averaged
        if averaged.correction != "never":
            by = averaged.weights
            alike = average(
                form,
                averaged.choices,
                weights=by,
                correction="never",
                random_state=_SEED,
                selecting=averaged.selecting,
            )
        return alike.members(form), alike.shares[CHANCES_BY]
    states, place = averaged.component_states, -2
    without, inside = states.copy(), states.copy()
    without[:, place], inside[:, place] = False, True
    kind = "aic" if averaged.weights == "mean" else averaged.weights
    even = np.full(len(states), 1.0 / len(states))
    with_it, without_it = (
        averaged.criteria(form, some, Members(form, some, even).costs)[kind]
        for some in (inside, without)
    )
    apart = with_it - without_it
    ratio = averaged.component_weights / (1.0 + np.exp(-0.5 * np.clip(apart, -1400.0, 1400.0)))
    weights = ratio / ratio.sum()
    share = None
    if kind == "bic":
        either = without[:, : form.n_features].copy()
        either[:, list(form.columns)] |= without[:, -1:] & form.drives
        share = weights @ either
    return Members(form, without, weights), share


def sampled_estimates(sampled: Sampled, columns: Columns, rule: Rule) -> Estimates:
    """Average over the chains of each kind."""
    each = np.moveaxis(sampled.ends, -1, 0)
    own = [sampled.chains(kind) for kind in rule.own]
    scale = np.array([_share_per_visit(sampled, columns, chains) for chains in own])

    def mean(values: Floats) -> Floats:
        by_kind = np.array([values[chains].mean(axis=0) for chains in own])
        return np.asarray((by_kind * scale).mean(axis=0))

    return Estimates(
        inclusion={
            kind: sampled.shares[sampled.chains(kind)].mean(axis=0) for kind in WEIGHT_CRITERIA
        },
        beside_index={
            kind: sampled.beside_index[sampled.chains(kind)].mean(axis=0)
            for kind in WEIGHT_CRITERIA
        },
        effects=mean(sampled.effects),
        positive=mean(sampled.positive),
        negative=mean(sampled.negative),
        others=np.array([np.mean([values[:, chains] for chains in own]) for values in each]),
    )


def _share_per_visit(sampled: Sampled, columns: Columns, chains: slice) -> Floats:
    """The share of weight in which a column acts, divided by its share of the visits, (c,).

    Shares are less noisy than counts of visits, so they replace them in means over states. A column
    that the index has too acts wherever the index is held; those are taken as they are.
    """
    visits = sampled.inside[:, chains].mean(axis=(0, 1))
    share = sampled.shares[chains].mean(axis=0)
    ratio = np.divide(share, visits, out=np.ones_like(share), where=visits > 0.0)
    if columns.has_index and share[0] > 0.0:
        ratio[columns.n_in_index > 0] = 1.0
    return np.append(np.ones(columns.n_fixed), np.repeat(ratio, columns.sizes))


def sampled_kept(sampled: Sampled, columns: Columns, rule: Rule) -> Kept:
    """Find the heaviest of the assignments visited, and those for intervals."""
    visited = _Visited(sampled, columns, rule)
    best_weight: dict[str, float] = {}
    n_half: dict[str, int] = {}
    for kind in WEIGHT_CRITERIA:
        best_weight[kind], n_half[kind] = visited.heaviest((kind,))
    best_weight[rule.weights], n_half[rule.weights] = visited.heaviest(rule.own)
    places = visited.places(rule.own)
    distinct, counts = np.unique(places, return_counts=True)
    weight = visited.weight(rule.own)
    order = np.argsort(-weight[distinct], kind="stable")
    leading = distinct[order[:KEPT]]
    if len(distinct) > MOST_COMPONENTS:
        even = np.linspace(0, len(places) - 1, MOST_COMPONENTS).round().astype(np.intp)
        distinct, counts = np.unique(places[even], return_counts=True)
        order = np.argsort(-weight[distinct], kind="stable")
    return Kept(
        exhaustive=False,
        n_assignments=len(np.unique(places)),
        best_weight=best_weight,
        n_half=n_half,
        leading=visited.packed(columns, leading),
        leading_weight=weight[leading],
        leading_cost=visited.cost[leading],
        leading_rho=visited.rho[leading],
        components=visited.packed(columns, distinct[order]),
        component_weights=counts[order] / counts.sum(),
        components_drawn=True,
        disagreement=sampled.disagreement,
    )


class _Visited:
    """The N distinct assignments that any chain visited."""

    def __init__(self, sampled: Sampled, columns: Columns, rule: Rule) -> None:
        n_units = sampled.inside.shape[2]
        states = sampled.inside.reshape(-1, n_units)
        # One opaque value per row sorts faster than rows of numbers.
        rows = np.packbits(states, axis=1)
        keys = np.ascontiguousarray(rows).view(f"V{rows.shape[1]}").ravel()
        _, first, self._place = np.unique(keys, return_index=True, return_inverse=True)
        self._place = self._place.reshape(sampled.inside.shape[:2])
        self._sampled = sampled
        self.inside: Mask = states[first]
        self.cost, names = sampled.cost.ravel()[first], columns.form.ends.averaged
        self.rho = np.full(len(first), np.nan)
        if "rho" in names:
            self.rho = sampled.ends[..., names.index("rho")].ravel()[first]
        counts = columns.counts(self.inside.astype(np.intp), 0)
        holds_index = self.inside[:, 0] & columns.has_index
        self._weights: dict[WeightCriterion, Floats] = {}
        for kind in WEIGHT_CRITERIA:
            criterion = self.cost + columns.penalty(rule.penalties[kind], counts, holds_index)
            relative = np.exp(0.5 * (criterion.min() - criterion))
            self._weights[kind] = relative * self._factor(kind, relative)

    def _factor(self, kind: WeightCriterion, relative: Floats) -> float:
        """Weight of an assignment whose relative weight is one."""
        places = self._place[:, self._sampled.chains(kind)]
        middle = places.shape[1] // 2
        halves = places[:, :middle].ravel(), places[:, middle:].ravel()
        seen, expected = 0.0, 0.0
        for mine, other in (halves, halves[::-1]):
            known = np.unique(mine)
            seen += float(np.mean(np.isin(other, known)))
            expected += float(relative[known].sum())
        # If no assignment was visited twice, each weighs less than about one visit.
        seen = max(seen, 1.0 / len(halves[0]))
        visited = float(relative[np.unique(places)].sum())
        return min(seen / expected, 1.0 / visited)

    def weight(self, kinds: tuple[WeightCriterion, ...]) -> Floats:
        """Weights of the distinct assignments, (N,), averaged over some kinds."""
        return np.asarray(np.mean([self._weights[kind] for kind in kinds], axis=0))

    def places(self, kinds: tuple[WeightCriterion, ...]) -> NDArray[np.intp]:
        """Which distinct assignments the chains of some kinds visited, one after another."""
        parts = [self._place[:, self._sampled.chains(kind)] for kind in kinds]
        return np.concatenate(parts, axis=1).ravel()

    def heaviest(self, kinds: tuple[WeightCriterion, ...]) -> tuple[float, int]:
        """Weight of the heaviest assignment, and how many carry half of the weight."""
        weight, places = self.weight(kinds), self.places(kinds)
        ordered = np.sort(weight[np.unique(places)])[::-1]
        carried = np.cumsum(ordered)
        if carried[-1] >= 0.5:
            return float(ordered[0]), int(np.searchsorted(carried, 0.5)) + 1
        # Assignments are visited in proportion to their weight, so the mean of 1 / weight over the
        # heavier half of the visits counts the assignments there.
        visits = np.sort(weight[places])[::-1]
        count = np.sum(1.0 / visits[: (len(visits) + 1) // 2]) / len(visits)
        return float(ordered[0]), max(int(min(round(count), 2**62)), 1)

    def packed(self, columns: Columns, rows: NDArray[np.intp]) -> NDArray[np.uint8]:
        """States of some of the assignments, eight to a byte."""
        return pack_states(columns.states(self.inside[rows]))
