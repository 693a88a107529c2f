"""Intervals over the assignments behind a choice, and features that stand in for the correction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.results.average_tables import TermMixture
from heckmanfa.results.reference import tails
from heckmanfa.search.averaging import Average
from heckmanfa.search.averaging.members import Members
from heckmanfa.text.chances import CHANCES_BY, says

STAND_IN = 0.5
"""A feature stands in for the correction if the share of weight that holds the correction differs
by this much between assignments with and without it."""


@dataclass(frozen=True)
class StandIn:
    """A feature or group with and without which the share of the correction differs."""

    columns: tuple[int, ...]
    corrected_with: float
    """share of weight that holds the correction, of the assignments that hold it"""
    corrected_without: float
    """likewise, of the others"""

    @property
    def difference(self) -> float:
        """How far the two shares are apart."""
        return abs(self.corrected_with - self.corrected_without)


def stand_ins_of(found: Average) -> tuple[StandIn, ...]:
    """Find features that cannot be told, with and without which the correction differs."""
    states, weight = found.component_states, found.component_weights
    corrected = states[:, -2].astype(np.float64)
    stand_ins = []
    for unit in found.choices.units:
        held = states[:, unit[0]]
        doubtful = says(float(found.shares[CHANCES_BY][unit[0]])) == "unknown"
        if not doubtful or not held.any() or held.all():
            continue
        inside, outside = (
            float(np.average(corrected[part], weights=weight[part])) for part in (held, ~held)
        )
        stand_ins.append(StandIn(unit, inside, outside))
    stand_ins = [item for item in stand_ins if item.difference >= STAND_IN]
    return tuple(sorted(stand_ins, key=lambda item: -item.difference))


def interval_of(
    members: Members, place: int, chance: float, conf_level: float = 0.95
) -> tuple[float, float]:
    """Return where a term lies, by the mixture of the assignments behind intervals."""
    values, errors = members.terms[:, place], members.term_errors[:, place]
    mixture = TermMixture(members.weights, values[:, None], errors[:, None])
    low, high = mixture.intervals(tails(conf_level), None, np.array([chance]))[0]
    return float(low), float(high)
