"""The correction in the assignments behind a choice, and features that stand in for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heckmanfa.data.arrays import Floats
from heckmanfa.results.average_tables import TermMixture
from heckmanfa.results.reference import tails
from heckmanfa.search.averaging import Average
from heckmanfa.search.form import Form
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


@dataclass(frozen=True, eq=False)
class RhoMixture:
    """Rho in the assignments that carry the weight."""

    rho: Floats
    """(C,) in the components of the average"""
    interval: tuple[float, float]
    """where rho lies with 95%, by the mixture behind intervals"""


def rho_mixture(form: Form, found: Average) -> RhoMixture:
    """Return rho of the assignments of an average, by the form."""
    members = found.interval_members(form)
    place = -1 if form.errors == "binary" else -2
    rho, errors = members.terms[:, place], members.term_errors[:, place]
    optional = found.correction == "optional" and found.rho_range is None
    chance = found.correction_share[CHANCES_BY] if optional else np.nan
    mixture = TermMixture(members.weights, rho[:, None], errors[:, None])
    ends = mixture.intervals(tails(0.95), None, np.array([chance]))
    low, high = ends[0].clip(-1.0, 1.0)
    return RhoMixture(rho[:-1], (float(low), float(high)))
