"""From the states of a Gibbs sampler to an average.

Averages are means over the states that the chains of a kind visit. The weight of one assignment is
exp(-criterion / 2) relative to the others, which is exact, times one factor per kind. That factor
comes from how often half of the chains visit what the other half has visited.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.data.rows import Mask, one_blas_thread
from heckmanfa.model.moments import Moments
from heckmanfa.search.averaging.columns import Columns
from heckmanfa.search.averaging.gibbs import NoStateError, Sampled, sample_assignments
from heckmanfa.search.averaging.result import MOST_COMPONENTS, Estimates, ImrShares, Kept
from heckmanfa.search.averaging.weights import KINDS, Kind, Rule, penalties
from heckmanfa.search.choices import Choices
from heckmanfa.search.evaluation import KEPT
from heckmanfa.search.quadratic import QuadraticForm


def sampled_estimates(found: Sampled, columns: Columns, rule: Rule) -> Estimates:
    """Average over the chains of each kind."""
    m = rule.n_selected
    n_columns = found.inside @ np.array(columns.sizes) + len(columns.choices.always)
    r2 = 1.0 - found.sse / rule.goal.total_squares
    adjusted = 1.0 - (1.0 - r2) * (m - 1.0) / (m - n_columns - 1.0)
    each = (found.rho, found.sigma, adjusted, np.abs(found.rho) >= 1.0)
    own = [found.chains(kind) for kind in rule.own]
    # Shares are less noisy than counts of visits, so they replace them in means over states.
    ratio = [np.repeat(_share_per_visit(found, chains), columns.sizes) for chains in own]
    scale = np.array([np.append(np.ones(columns.n_fixed), part) for part in ratio])
    coef = np.array([found.coef[chains].mean(axis=0) for chains in own])
    positive = np.array([found.positive[chains].mean(axis=0) for chains in own])
    return Estimates(
        inclusion={kind: found.shares[found.chains(kind)].mean(axis=0) for kind in KINDS},
        coef=(coef * scale).mean(axis=0),
        positive=(positive * scale).mean(axis=0),
        others=np.array([np.mean([part[:, chains] for chains in own]) for part in each]),
    )


def _share_per_visit(found: Sampled, chains: slice) -> Floats:
    """The share of weight that holds a unit, divided by its share of the visits, (U,)."""
    visits = found.inside[:, chains].mean(axis=(0, 1))
    share = found.shares[chains].mean(axis=0)
    return np.asarray(np.divide(share, visits, out=np.ones_like(share), where=visits > 0.0))


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
        leading_sse=visited.sse[leading],
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
        self.sse, self.rho = found.sse.ravel()[first], found.rho.ravel()[first]
        n_columns = self.inside @ np.array(columns.sizes) + len(columns.choices.always)
        n_chosen = self.inside.sum(axis=1)
        fit = rule.n_selected * rule.goal.misfit(self.sse)
        self._weights: dict[Kind, Floats] = {}
        for kind in KINDS:
            criterion = fit + rule.penalties[kind][n_columns, n_chosen]
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
        """Masks of some of the assignments over the columns of X, eight to a byte."""
        return np.packbits(columns.masks(self.inside[rows]), axis=1)


def sampled_imr_shares(
    moments: Moments,
    choices: Choices,
    rho_range: Any,
    random: np.random.Generator,
    form: QuadraticForm | None = None,
) -> ImrShares:
    """Weigh assignments with and without lambda, from chains that hold it.

    The weight without lambda, relative to that with it, is the mean over the chains of the ratio
    of the two for each assignment. The ratio is bounded, since the SSE without lambda is larger.
    """
    columns = Columns.of(moments, choices)
    rule = Rule.of(moments, choices, "bic", rho_range, form=form)
    free = penalties(rule.n_selected, choices, imr=False)
    with one_blas_thread():
        try:
            found = sample_assignments(columns, rule, random, free=free)
        except NoStateError:
            nowhere = dict.fromkeys(KINDS, np.full(1 + len(columns.order), np.nan))
            return ImrShares.of(columns, nowhere, nowhere)
    assert found.rival is not None
    chains = {kind: found.chains(kind) for kind in KINDS}
    return ImrShares.of(
        columns,
        {kind: np.append(1.0, found.shares[own].mean(axis=0)) for kind, own in chains.items()},
        {kind: found.rival[own].mean(axis=0) for kind, own in chains.items()},
    )
