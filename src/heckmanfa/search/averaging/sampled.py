"""From the states of a Gibbs sampler to an average.

Averages are means over the states that the chains of a kind visit. The weight of one assignment is
exp(-criterion / 2) relative to the others, which is exact, times one factor per kind. That factor
comes from how often half of the chains visit what the other half has visited.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask
from heckmanfa.search.averaging.columns import Columns
from heckmanfa.search.averaging.gibbs import Sampled
from heckmanfa.search.averaging.result import MOST_COMPONENTS, Estimates, Kept, pack_states
from heckmanfa.search.averaging.weights import KINDS, Kind, Rule
from heckmanfa.search.evaluation import KEPT


def sampled_estimates(found: Sampled, columns: Columns, rule: Rule) -> Estimates:
    """Average over the chains of each kind."""
    each = (found.rho, found.sigma, columns.form.misfits(found.rho))
    own = [found.chains(kind) for kind in rule.own]
    scale = np.array([_share_per_visit(found, columns, chains) for chains in own])

    def mean(values: Floats) -> Floats:
        by_kind = np.array([values[chains].mean(axis=0) for chains in own])
        return np.asarray((by_kind * scale).mean(axis=0))

    return Estimates(
        inclusion={kind: found.shares[found.chains(kind)].mean(axis=0) for kind in KINDS},
        beside_index={kind: found.beside_index[found.chains(kind)].mean(axis=0) for kind in KINDS},
        effects=mean(found.effects),
        positive=mean(found.positive),
        negative=mean(found.negative),
        others=np.array([np.mean([part[:, chains] for chains in own]) for part in each]),
    )


def _share_per_visit(found: Sampled, columns: Columns, chains: slice) -> Floats:
    """The share of weight in which a column acts, divided by its share of the visits, (c,).

    Shares are less noisy than counts of visits, so they replace them in means over states. A column
    that the index has too acts wherever the index is held; those are taken as they are.
    """
    visits = found.inside[:, chains].mean(axis=(0, 1))
    share = found.shares[chains].mean(axis=0)
    ratio = np.divide(share, visits, out=np.ones_like(share), where=visits > 0.0)
    if columns.has_index and share[0] > 0.0:
        ratio[columns.n_in_index > 0] = 1.0
    return np.append(np.ones(columns.n_fixed), np.repeat(ratio, columns.sizes))


def sampled_kept(found: Sampled, columns: Columns, rule: Rule) -> Kept:
    """Find the heaviest of the assignments visited, and those for intervals."""
    visited = _Visited(found, columns, rule)
    best_weight: dict[str, float] = {}
    n_half: dict[str, int] = {}
    for kind in KINDS:
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
        disagreement=found.disagreement,
    )


class _Visited:
    """The N distinct assignments that any chain visited."""

    def __init__(self, found: Sampled, columns: Columns, rule: Rule) -> None:
        n_units = found.inside.shape[2]
        states = found.inside.reshape(-1, n_units)
        # One opaque value per row sorts faster than rows of numbers.
        rows = np.packbits(states, axis=1)
        keys = np.ascontiguousarray(rows).view(f"V{rows.shape[1]}").ravel()
        _, first, self._place = np.unique(keys, return_index=True, return_inverse=True)
        self._place = self._place.reshape(found.inside.shape[:2])
        self._found = found
        self.inside: Mask = states[first]
        self.cost, self.rho = found.cost.ravel()[first], found.rho.ravel()[first]
        counts = columns.counts(self.inside.astype(np.intp), 0)
        holds_index = self.inside[:, 0] & columns.has_index
        self._weights: dict[Kind, Floats] = {}
        for kind in KINDS:
            criterion = self.cost + columns.penalty(rule.penalties[kind], counts, holds_index)
            relative = np.exp(0.5 * (criterion.min() - criterion))
            self._weights[kind] = relative * self._factor(kind, relative)

    def _factor(self, kind: Kind, relative: Floats) -> float:
        """Weight of an assignment whose relative weight is one."""
        places = self._place[:, self._found.chains(kind)]
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

    def weight(self, kinds: tuple[Kind, ...]) -> Floats:
        """Weights of the distinct assignments, (N,), averaged over some kinds."""
        return np.asarray(np.mean([self._weights[kind] for kind in kinds], axis=0))

    def places(self, kinds: tuple[Kind, ...]) -> NDArray[np.intp]:
        """Which distinct assignments the chains of some kinds visited, one after another."""
        parts = [self._place[:, self._found.chains(kind)] for kind in kinds]
        return np.concatenate(parts, axis=1).ravel()

    def heaviest(self, kinds: tuple[Kind, ...]) -> tuple[float, int]:
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
