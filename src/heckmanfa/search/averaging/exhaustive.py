"""From an enumeration to an average: its sums, and the assignments worth keeping."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from heckmanfa.data.arrays import Floats
from heckmanfa.search.averaging.enumeration import Enumeration
from heckmanfa.search.averaging.result import MOST_COMPONENTS, Estimates, Kept, pack_states
from heckmanfa.search.averaging.weights import KINDS
from heckmanfa.search.evaluation import KEPT, first_of_ties


def estimates_of(found: Enumeration) -> Estimates:
    """Divide the sums of an enumeration by the sums of the weights."""
    own = [found.sums[kind] for kind in found.rule.own]
    n = len(found.columns.places)

    def mean(name: str) -> Floats:
        return np.asarray(np.mean([getattr(sums, name) / sums.total for sums in own], axis=0))

    values = mean("values")
    return Estimates(
        inclusion={kind: sums.inclusion / sums.total for kind, sums in found.sums.items()},
        beside_index={kind: sums.beside_index / sums.total for kind, sums in found.sums.items()},
        effects=values[:n],
        positive=mean("positive"),
        negative=mean("negative"),
        others=values[n + 1 :],
    )


def kept_of(found: Enumeration, random: np.random.Generator) -> Kept:
    """Find the heaviest assignments, and those for intervals."""
    rule = found.rule
    n_assignments = int(np.count_nonzero(np.isfinite(found.cost)))
    best_weight: dict[str, float] = {}
    n_half: dict[str, int] = {}
    own = np.zeros(0)
    for kind in KINDS:
        weight = found.weights(kind)
        best_weight[kind], n_half[kind] = float(weight.max()), _half(weight)
        if kind in rule.own:
            own = weight if len(own) == 0 else 0.5 * (own + weight)
    if rule.weights == "mean":
        best_weight["mean"], n_half["mean"] = float(own.max()), _half(own)
    leading, weight = _heaviest(found, own, min(KEPT, n_assignments))
    chosen, component_weights, drawn = _components(own, leading, weight, random)
    return Kept(
        exhaustive=True,
        n_assignments=n_assignments,
        best_weight=best_weight,
        n_half=n_half,
        leading=_packed(found, leading),
        leading_weight=weight,
        leading_cost=found.cost[leading],
        leading_rho=found.rho[leading],
        components=_packed(found, chosen),
        component_weights=component_weights,
        components_drawn=drawn,
    )


def _packed(found: Enumeration, assignments: NDArray[np.intp]) -> NDArray[np.uint8]:
    return pack_states(found.columns.states(found.inside(assignments)))


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
    ranked = first_of_ties(loss, found.columns.states(found.inside(chosen)))
    chosen = chosen[ranked]
    return chosen, own[chosen]


def _components(
    own: Floats, leading: NDArray[np.intp], weight: Floats, random: np.random.Generator
) -> tuple[NDArray[np.intp], Floats, bool]:
    """The assignments for intervals: all that weigh anything, otherwise draws by weight."""
    if len(leading) <= MOST_COMPONENTS:
        return leading, weight / weight.sum(), False
    # Evenly spaced places along the sum of the weights, from a random start.
    places = (random.random() + np.arange(MOST_COMPONENTS)) / MOST_COMPONENTS
    cumulated = np.cumsum(own)
    drawn = np.searchsorted(cumulated, places * cumulated[-1], side="right")
    chosen, counts = np.unique(np.minimum(drawn, len(own) - 1), return_counts=True)
    order = np.argsort(-own[chosen], kind="stable")
    return chosen[order], counts[order] / MOST_COMPONENTS, True
